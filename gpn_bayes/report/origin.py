"""What reproduces a posterior: settings, versions, and the call that made it."""

import platform
from importlib.metadata import version
from typing import Any

import gpn_bayes
from gpn_bayes.data import UnknownTargets
from gpn_bayes.posterior.protocols import DrawnPosterior
from gpn_bayes.posterior.score_setting import score_of, score_text
from gpn_bayes.samplers import BUILT_IN

_PACKAGES = ("numpy", "scipy", "numba", "pymc", "arviz")
# Settings with defaults that are left out of the call.
_DEFAULTS = {"until": None, "random_seed": None}
# What settings hold for other parts of a report.
_SHOWN_ELSEWHERE = ("assumptions", "data_flags", "either_kind", "excluded", "impossible_pairs", "kinds")
# How a setting was typed, by how it is kept.
ORDER_BIAS = {"kept": "keep", "corrected": "correct"}


def origin_of(post: DrawnPosterior) -> dict[str, Any]:
    """Return what reproduces a posterior.

    Returns
    -------
    dict
        `settings` and `versions`, lists of (name, text); `call`, Python code, None where the settings don't tell all of
        it; `seeded`, whether that draws the very same networks; and `unseeded`, what to say if not.
    """
    settings = post.settings
    listed = [
        (name.replace("_", " "), _text(name, value, post.names))
        for name, value in settings.items()
        if name not in _SHOWN_ELSEWHERE
    ]
    return {
        "settings": listed,
        "versions": versions(),
        "call": _call(settings, post.names),
        "seeded": settings.get("random_seed") is not None,
        "unseeded": "Drawn without a seed: another run draws other networks.",
    }


def versions() -> list[tuple[str, str]]:
    """Return the versions of this package, of Python and of the packages that answers depend on."""
    reporter = [("gpn_bayes", gpn_bayes.__version__), ("Python", platform.python_version())]
    return [*reporter, *((name, version(name)) for name in _PACKAGES)]


def _text(name: str, value: Any, names: tuple[str, ...]) -> str:
    """Return a setting in words."""
    if name == "score":
        return score_text({"score": value})
    if name == "prior" and isinstance(value, dict):
        return _prior_text(value, names)
    if name == "interventions" and isinstance(value, dict):
        return _experiments_text(value)
    if name == "missing" and isinstance(value, dict):
        if "imputed" in value:
            return f"{value['imputed']} values in {value['rows_concerned']} of {value['rows']} rows imputed"
        return f"{value['dropped']} of {value['rows']} rows dropped"
    if isinstance(value, dict):
        return ", ".join(f"{key} {plain_text(own)}" for key, own in value.items()) or "none"
    return plain_text(value)


def _experiments_text(done: dict[str, Any]) -> str:
    """Return in words what experiments changed, or may have changed."""
    if done["kind"] == UnknownTargets.kind:
        listed = ", ".join(f"{own['context']} ({own['rows']} rows)" for own in done["contexts"])
        reference = done["reference"]
        chosen = next(name for name in ("target_penalty", "target_probability") if name in done)
        prior = f"{chosen.replace('_', ' ')} {done[chosen]:.4g}"
        name = reference["context"] or "without a name"
        return f"unknown targets of {listed}; reference {name} ({reference['rows']} rows); {prior}"
    listed = ", ".join(f"{' and '.join(own['targets'])} ({own['rows']} rows)" for own in done["experiments"])
    return f"{done['kind']}, of {listed}"


def plain_text(value: Any) -> str:
    """Return the value of a setting in words.

    Examples
    --------
    >>> plain_text(None), plain_text(True), plain_text([1, 0.123456]), plain_text(())
    ('none', 'yes', '1, 0.1235', 'none')
    """
    if value is None or (isinstance(value, list | tuple | dict) and not value):
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return ", ".join(plain_text(own) for own in value)
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _prior_text(prior: dict[str, Any], names: tuple[str, ...]) -> str:
    parts = [str(prior.get("kind", "unknown"))]
    parts += ["with edge probabilities of its own"] if prior.get("log_odds") is not None else []
    parts += [f"edge penalty {prior['edge_penalty']:.4g}"] if prior.get("edge_penalty") else []
    parts += [f"tiers {' < '.join(', '.join(group) for group in _groups(prior, names))}"] if prior.get("tiers") else []
    for name in ("required", "forbidden"):
        edges = [f"{names[i]} → {names[j]}" for i, j in _edges(prior, name)]
        parts += [f"{name} {', '.join(edges)}"] if edges else []
    return "; ".join(parts)


def _edges(prior: dict[str, Any], name: str) -> list[tuple[int, int]]:
    """Return the edges of a prior, without those from a variable to itself and those that tiers forbid."""
    tiers = prior.get("tiers")
    return [(i, j) for i, j in prior.get(name) or [] if i != j and not (tiers and tiers[i] > tiers[j])]


def _groups(prior: dict[str, Any], names: tuple[str, ...]) -> list[list[str]]:
    """Return the variables of each tier, the earliest first."""
    tiers = prior["tiers"]
    return [[name for name, own in zip(names, tiers, strict=True) if own == tier] for tier in sorted(set(tiers))]


def _call(settings: dict[str, Any], names: tuple[str, ...]) -> str | None:
    """Return the call of `gpn_bayes.sample` that draws the same, given the same table."""
    prior, candidates = settings.get("prior") or {}, settings.get("candidates") or {}
    score = _score(settings)
    named_prior = prior.get("kind") in ("uniform", "fair") and prior.get("log_odds") is None
    named_prior &= not prior.get("edge_penalty")
    all_others = candidates.get("method") == "all others" and not settings.get("plus_one")
    cut_short = settings.get("interrupted") or settings.get("reweight") == "interrupted"
    if score is None or not named_prior or not all_others or cut_short:
        return None
    sampler = _sampler(settings)
    if sampler is None:
        return None
    named = {name: [(names[i], names[j]) for i, j in _edges(prior, name)] for name in ("required", "forbidden")}
    given = {"draws": settings["draws"], "tune": settings["tune"], "chains": settings["chains"]}
    given |= {name: settings[name] for name, default in _DEFAULTS.items() if settings.get(name) != default}
    given |= {} if prior["kind"] == "uniform" else {"prior": prior["kind"]}
    given |= {"tiers": _groups(prior, names)} if prior.get("tiers") else {}
    given |= {name: edges for name, edges in named.items() if edges}
    missing = settings.get("missing")
    given |= {"missing": "impute" if "imputed" in missing else "drop"} if missing else {}
    given |= {"imputations": missing["tables"]} if missing and "tables" in missing else {}
    lines = [f"score=gpn.scores.{score}", f"sampler=gpn.samplers.{sampler}"]
    if (most := settings.get("max_parents")) is not None:
        lines.append(f"space=gpn.Space(max_parents={most})")
    lines += [f"{name}={value!r}" for name, value in given.items()]
    lines += _experiments(settings.get("interventions")) + ["weights=weights"] * ("row_weights" in settings)
    joined = ",\n    ".join(lines)
    return f"import gpn_bayes as gpn\n\npost = gpn.sample(\n    df,\n    {joined},\n)"


def _experiments(done: dict[str, Any] | None) -> list[str]:
    """Return the arguments that tell what experiments did to each row; the labels of rows aren't among the settings."""
    if done is None:
        return []
    if done["kind"] == UnknownTargets.kind:
        prior = [f"{name}={done[name]!r}" for name in ("target_probability", "target_penalty") if name in done]
        return ["contexts=contexts", *prior]
    return ["targets=targets", f"intervention={done['kind']!r}"]


def _sampler(settings: dict[str, Any]) -> str | None:
    """Return the call that makes the sampler; None where it isn't one of the package, or has moves of its own."""
    kind = BUILT_IN.get(settings["sampler"])
    if kind is None or "shares_of_moves" in settings:
        return None
    given: dict[str, Any] = {} if kind.independent else {"thin": settings.get("planned_thin", settings["thin"])}
    given |= {} if settings.get("temperatures", 1) == 1 else {"temperatures": settings["temperatures"]}
    given |= {"bias": ORDER_BIAS[settings["order_bias"]]} if settings.get("order_bias") else {}
    given |= {} if settings.get("reweight") or not (_score(settings) or "").startswith("GP(") else {"reweight": None}
    return f"{kind.__name__}({', '.join(f'{name}={value!r}' for name, value in given.items())})"


def _score(settings: dict[str, Any]) -> str | None:
    """Return the call that makes the score; None where its name and parameters don't tell all of it."""
    try:
        return repr(score_of(settings))
    except ValueError:
        return None

"""What reproduces a posterior: settings, versions, and the call that made it."""

import platform
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Any

import gpn_bayes
from gpn_bayes.data import UnknownTargets
from gpn_bayes.data.keywords import KEYWORDS, ReadingKeywords
from gpn_bayes.posterior.draws import Draws
from gpn_bayes.posterior.run_record import ExperimentsRecord, PriorRecord, RunRecord
from gpn_bayes.samplers import BUILT_IN

_PACKAGES = ("numpy", "scipy", "numba", "pymc", "arviz")
# Settings that are left out of the call where they are as by default.
_LEFT_OUT = ("until", "random_seed")
# What settings hold for other parts of a report.
_SHOWN_ELSEWHERE = ("assumptions", "can_join", "data_flags", "either_kind", "excluded", "impossible_pairs", "kinds")
# What the call names a table that was read before.
_READ_BEFORE = "post.data"


def origin_of(post: Draws, read_before: bool = False) -> dict[str, Any]:
    """Return what reproduces a posterior.

    Parameters
    ----------
    post : GraphPosterior
        The posterior.
    read_before : bool, default False
        Whether the settings don't say how the table was read, as a command did.

    Returns
    -------
    dict
        `settings` and `versions`, lists of (name, text); `call`, Python code, None where the settings don't tell all of
        it; `table`, what that calls the table; `seeded`, whether that draws the very same networks; and `unseeded`,
        what to say if not.
    """
    record = replace(post.record, table=None) if read_before else post.record
    listed = [
        (name.replace("_", " "), _text(name, value, post))
        for name, value in post.settings.items()
        if name not in _SHOWN_ELSEWHERE
    ]
    return {
        "settings": listed,
        "versions": versions(),
        "call": _call(record, post.names),
        "table": "df" if record.table is not None else _READ_BEFORE,
        "seeded": post.record.random_seed is not None,
        "unseeded": "Drawn without a seed: another run draws other networks.",
    }


def versions() -> list[tuple[str, str]]:
    """Return the versions of this package, of Python and of the packages that answers depend on."""
    reporter = [("gpn_bayes", gpn_bayes.__version__), ("Python", platform.python_version())]
    return [*reporter, *((name, version(name)) for name in _PACKAGES)]


def _text(name: str, value: Any, post: Draws) -> str:
    """Return a setting in words."""
    if name == "score":
        return post.record.score_text()
    if name == "prior":
        return _prior_text(post.record.prior, post.names)
    if name == "interventions" and isinstance(value, dict):
        return _experiments_text(value)
    if name == "table":
        return "as it was read before" if value is None else _arguments(value)
    if name == "missing":
        gaps = post.record.missing
        if post.record.is_imputed:
            return f"{gaps.imputed} values in {gaps.rows_concerned} of {gaps.rows} rows imputed"
        return f"{gaps.dropped} of {gaps.rows} rows dropped"
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


def _prior_text(prior: PriorRecord, names: tuple[str, ...]) -> str:
    parts = [prior.kind]
    parts += ["with edge probabilities of its own"] if prior.log_odds is not None else []
    parts += [f"edge penalty {prior.edge_penalty:.4g}"] if prior.edge_penalty else []
    parts += [f"tiers {' < '.join(', '.join(group) for group in _groups(prior, names))}"] if prior.tiers else []
    for name, own in (("required", prior.required), ("forbidden", prior.forbidden)):
        edges = [f"{names[i]} → {names[j]}" for i, j in _edges(prior, own)]
        parts += [f"{name} {', '.join(edges)}"] if edges else []
    return "; ".join(parts)


def _edges(prior: PriorRecord, edges: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return edges of a prior, without those from a variable to itself and those that tiers forbid."""
    tiers = prior.tiers
    return [(i, j) for i, j in edges if i != j and not (tiers and tiers[i] > tiers[j])]


def _groups(prior: PriorRecord, names: tuple[str, ...]) -> list[list[str]]:
    """Return the variables of each tier, the earliest first."""
    tiers = prior.tiers or ()
    return [[name for name, own in zip(names, tiers, strict=True) if own == tier] for tier in sorted(set(tiers))]


def _call(record: RunRecord, names: tuple[str, ...]) -> str | None:
    """Return the call of `gpn_bayes.sample` that draws the same, given the same table.

    That is `post.data` where it isn't known how the table was read: it has all that was said of it.
    """
    prior, score = record.prior, _score(record)
    named_prior = prior.kind in ("uniform", "fair") and prior.log_odds is None and not prior.edge_penalty
    all_others = record.candidates.method == "all others" and not record.plus_one
    if score is None or not named_prior or not all_others or record.was_cut_short:
        return None
    sampler = _sampler(record, score)
    if sampler is None:
        return None
    edges = {"required": prior.required, "forbidden": prior.forbidden}
    named = {name: [(names[i], names[j]) for i, j in _edges(prior, own)] for name, own in edges.items()}
    given: dict[str, Any] = {"draws": record.draws, "tune": record.tune, "chains": record.chains}
    given |= {name: getattr(record, name) for name in _LEFT_OUT if getattr(record, name) != getattr(RunRecord, name)}
    given |= {} if prior.kind == "uniform" else {"prior": prior.kind}
    given |= {"tiers": _groups(prior, names)} if prior.tiers else {}
    given |= {name: own for name, own in named.items() if own}
    stated = {name: own for name, own in (record.table or {}).items() if name in KEYWORDS}
    reading = {name: own for name, own in stated.items() if name in ReadingKeywords.__annotations__}
    described = {name: own for name, own in stated.items() if name not in reading}
    if record.table is not None:
        given |= {"missing": "impute"} if record.is_imputed else {"missing": "drop"} if record.missing.dropped else {}
        given |= {"imputations": record.missing.tables} if record.missing.tables else {}
        given |= {name: own for name, own in described.items() if not KEYWORDS[name].of_rows}
    lines = [f"score=gpn.scores.{score}", f"sampler=gpn.samplers.{sampler}"]
    if record.max_parents is not None:
        lines.append(f"space=gpn.Space(max_parents={record.max_parents})")
    lines += [f"{name}={value!r}" for name, value in given.items()]
    if record.table is not None:
        lines += _experiments(record.interventions) + ["weights=weights"] * (record.row_weights is not None)
        # Columns about rows are named; other values of rows aren't among the settings.
        columns = {f"{name}={name}": f"{name}={own!r}" for name, own in described.items() if KEYWORDS[name].of_rows}
        lines = [columns.pop(line, line) for line in lines]
        lines += columns.values()
    table = f"gpn.Table(df, {_arguments(reading)})" if reading else "df" if record.table is not None else _READ_BEFORE
    joined = ",\n    ".join([table, *lines])
    return f"import gpn_bayes as gpn\n\npost = gpn.sample(\n    {joined},\n)"


def _experiments(done: ExperimentsRecord | None) -> list[str]:
    """Return the arguments that tell what experiments did to each row; the labels of rows aren't among the settings."""
    if done is None:
        return []
    if done.unknown:
        prior = {"target_probability": done.target_probability, "target_penalty": done.target_penalty}
        return ["contexts=contexts", *(f"{name}={value!r}" for name, value in prior.items() if value is not None)]
    return ["targets=targets", f"intervention={done.kind!r}"]


def _arguments(given: dict[str, Any]) -> str:
    """Return arguments by name, as typed."""
    return ", ".join(f"{name}={value!r}" for name, value in given.items())


def _sampler(record: RunRecord, score: str) -> str | None:
    """Return the call that makes the sampler; None where it isn't one of the package, or has moves of its own."""
    kind = BUILT_IN.get(record.sampler)
    if kind is None or record.shares_of_moves is not None:
        return None
    given: dict[str, Any] = {} if record.independent else {"thin": record.planned_thin or record.thin}
    given |= {} if record.temperatures == 1 else {"temperatures": record.temperatures}
    given |= {"bias": record.order_bias} if record.order_bias else {}
    given |= {} if record.reweight or not score.startswith("GP(") else {"reweight": None}
    return f"{kind.__name__}({_arguments(given)})"


def _score(record: RunRecord) -> str | None:
    """Return the call that makes the score; None where its name and parameters don't tell all of it."""
    try:
        return None if record.score is None else repr(record.score.make())
    except ValueError:
        return None

"""From a netCDF file that `GraphPosterior.save` wrote to the posterior."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from gpn_bayes import graphs
from gpn_bayes._util.types import Words
from gpn_bayes.data import Dataset, Flag, SufficientStatistics
from gpn_bayes.data.reading import check_names
from gpn_bayes.posterior import file_reading, stored_data
from gpn_bayes.posterior.draws import ExactAnswers
from gpn_bayes.posterior.export import COMPLETED, FORMAT
from gpn_bayes.posterior.file_reading import StoredGroup
from gpn_bayes.posterior.graph_posterior import GraphPosterior
from gpn_bayes.posterior.imputed_tables import can_complete
from gpn_bayes.posterior.run_record import RunRecord
from gpn_bayes.scores.dag_scorer import DagScorer
from gpn_bayes.scores.prior import GraphPrior

# What files that somebody has changed make their readers raise.
_UNREADABLE = (
    OSError, ValueError, KeyError, TypeError, AttributeError, IndexError, RuntimeError, RecursionError, MemoryError,
    OverflowError,
)  # fmt: skip


def load(path: str | os.PathLike[str]) -> GraphPosterior:
    """Read a posterior that `GraphPosterior.save` wrote.

    Parameters
    ----------
    path : path
        The netCDF file.

    Returns
    -------
    GraphPosterior
        It answers as the saved one did. Where the file was saved with the data, curves, reports and scores of other
        DAGs need nothing else.

    Examples
    --------
    >>> import tempfile
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     post.save(f"{folder}/posterior.nc")
    ...     again = gpn.load(f"{folder}/posterior.nc")
    >>> print(again.edge_probability("raf", "akt"))
    0.023 (exact)
    >>> round(again.log_score_gap([("raf", "mek")]), 1)
    488.6
    """
    source = Path(path)
    if not source.is_file():
        raise ValueError(f"the posterior's file must exist; {str(source)!r} is not a file")
    try:
        groups = file_reading.read_file(source)
    except _UNREADABLE as error:
        raise ValueError(f"{source.name!r} can't be read as a netCDF file: {error}".splitlines()[0]) from None
    if "posterior" not in groups or groups["posterior"].attrs.get("format") != FORMAT:
        raise ValueError(f"{source.name!r} must be a posterior written by GraphPosterior.save; it isn't")
    try:
        post = _read_posterior(groups)
        _check(post)
    except _UNREADABLE as error:
        reason = str(error).splitlines()[0] if isinstance(error, ValueError) and str(error) else "parts are missing"
        raise ValueError(f"{source.name!r} must be as GraphPosterior.save wrote it; it isn't: {reason}") from None
    return post


def _read_posterior(groups: Mapping[str, StoredGroup]) -> GraphPosterior:
    drawn = groups["posterior"]
    # Copies: what was read goes as soon as nothing refers to it.
    stats = {name: values.copy() for name, values in groups["sample_stats"].variables.items()}
    names = tuple(str(name) for name in drawn.coordinates["parent"])
    if names != tuple(str(name) for name in drawn.coordinates["child"]):
        raise ValueError("parents and children have different names")
    check_names(names)
    settings = json.loads(drawn.attrs["settings"])
    if not isinstance(settings, dict):
        raise ValueError("its settings are no JSON object")
    _check_score(settings)
    _check_prior(settings, names)
    data = stored_data.from_groups(groups, names, settings.get("data_fingerprint"))
    return GraphPosterior(
        names=names,
        parents=np.stack([_packed(chain) for chain in drawn.variables["edge"]]),
        log_score=stats.pop("lp"),
        log_weights=_optional(groups, "log_weights", "log_weight"),
        stats=stats,
        settings=settings,
        exact=_read_exact(groups["exact"], len(names)) if "exact" in groups else None,
        scorer=_read_scorer(settings, names, data),
        score_errors=_optional(groups, "score_errors", "score_error"),
        data=data,
        completed=_optional(groups, COMPLETED, "value"),
    )


def _optional(groups: Mapping[str, StoredGroup], group: str, variable: str) -> np.ndarray | None:
    return groups[group].variables[variable].copy() if group in groups else None


def _packed(dags: np.ndarray) -> Words:
    """Return the DAGs of one chain as parent bits, if they are DAGs."""
    if dags.dtype.kind not in "biuf" or dags.ndim != 3 or not np.isin(dags, (0, 1)).all():
        raise ValueError("edges are neither 0 nor 1")
    if not np.all(graphs.is_acyclic(dags)):
        raise ValueError("a DAG has a cycle")
    return graphs.pack(dags)


def _check(post: GraphPosterior) -> None:
    """Refuse arrays whose shapes don't belong together, and numbers that no run leaves."""
    shape = post.parents.shape[:2]
    if not all(shape):
        raise ValueError("it holds no draws")
    arrays = {"lp": post.log_score, **post.stats}
    if post.log_weights is not None:
        arrays["log_weight"] = post.log_weights
    for name, values in arrays.items():
        if values.shape != shape or values.dtype.kind not in "biuf":
            raise ValueError(f"{name} isn't one number for every draw")
    if not np.isfinite(post.log_score).all():
        raise ValueError("log scores are infinite or NaN")
    if post.log_weights is not None and not (post.log_weights < np.inf).all():
        raise ValueError("log weights are infinite or NaN")
    if post.score_errors is not None and post.score_errors.shape != (*shape, len(post.names)):
        raise ValueError("score errors aren't one number for every node of every draw")
    if post.completed is not None:
        gaps = getattr(post.data, "missing", None)
        count = 0 if gaps is None else int(gaps.sum())
        known = post.completed.dtype.kind == "f" and bool(np.isfinite(post.completed).all())
        if not known or post.completed.ndim != 2 or count == 0 or post.completed.shape[1] != count:
            raise ValueError("completed tables aren't one number for every missing value")
        if not can_complete(post.data, post.completed):
            raise ValueError("completed tables hold levels that there are not")
    if post.record.tables < 1 or shape[0] % post.record.tables:
        raise ValueError("its chains aren't as many for each completed table")
    tuple(map(Flag.read, post.record.data_flags or ()))
    _ = post._known_targets
    if any(not 0 <= node < len(post.names) for pair in post.record.impossible_pairs for node in pair):
        raise ValueError("pairs that can't be joined aren't pairs of its variables")
    if post.exact is not None:
        _check_exact(post.exact, len(post.names))


def _check_exact(exact: ExactAnswers, n: int) -> None:
    """Refuse exact answers that no run leaves."""
    # Sums over DAGs, which rounding may take a little beyond 1.
    sound = all(((values >= 0) & (values <= 1 + 1e-9)).all() for values in exact.parent_sets)
    if exact.edges.shape != (n, n) or not sound or not ((exact.edges >= 0) & (exact.edges <= 1)).all():
        raise ValueError("exact probabilities don't lie between 0 and 1")
    # Minus infinity is the score of a set that isn't allowed.
    if not np.isfinite(exact.log_z) or not all((values < np.inf).all() for values in exact.log_scores):
        raise ValueError("exact log scores are infinite or NaN")


def _candidates(text: str, n: int) -> list[list[int]]:
    """Return the candidate parents of each node, as a file keeps them."""
    lists = json.loads(text)
    if not isinstance(lists, list) or len(lists) != n:
        raise ValueError("exact candidates aren't one list for every variable")
    for node, chosen in enumerate(lists):
        others = isinstance(chosen, list) and all(type(j) is int and 0 <= j < n and j != node for j in chosen)
        if not others or len(set(chosen)) < len(chosen):
            raise ValueError("exact candidates aren't lists of other variables, each once")
    candidates: list[list[int]] = lists
    return candidates


def _check_score(settings: dict[str, Any]) -> None:
    """Refuse a score that isn't given by its name and parameters; posteriors that weren't sampled may have none."""
    own = settings.get("score", {"name": "", "parameters": {}})
    if not isinstance(own, dict) or own.keys() != {"name", "parameters"} or not isinstance(own["parameters"], dict):
        raise ValueError("its score isn't a name and parameters")


def _check_prior(settings: dict[str, Any], names: tuple[str, ...]) -> None:
    """Refuse a prior that can't be one; posteriors that weren't sampled may have none."""
    if "prior" not in settings:
        return
    try:
        prior = GraphPrior.from_parameters(names, settings["prior"])
        numbers = json.dumps([prior.edge_penalty, settings["prior"]["log_odds"]], allow_nan=False)
        ends = [end for role in ("required", "forbidden") for edge in settings["prior"][role] for end in edge]
        numbers = numbers if all(type(end) is int and end >= 0 for end in ends) else ""
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, OverflowError):
        numbers = ""
    if not numbers:
        raise ValueError("its prior isn't one of graphs over its variables")


def _read_scorer(
    settings: dict[str, Any], names: tuple[str, ...], data: Dataset | SufficientStatistics | None
) -> DagScorer | None:
    """Return the scores behind a posterior; None where the file doesn't say all of them."""
    try:
        known = RunRecord.read(settings).score
        if known is None:
            return None
        return DagScorer(known.make(), GraphPrior.from_parameters(names, settings["prior"]), data)
    except (ValueError, KeyError, TypeError):
        return None


def _read_exact(group: StoredGroup, n: int) -> ExactAnswers:
    candidates = _candidates(group.attrs["candidates"], n)
    cuts = np.cumsum([1 << len(chosen) for chosen in candidates])[:-1]
    for name in ("set_log_score", "set_probability"):
        values = group.variables[name]
        if values.dtype.kind != "f" or values.shape != (sum(1 << len(chosen) for chosen in candidates),):
            raise ValueError(f"{name} isn't one number for every set of candidates")
    return ExactAnswers(
        edges=group.variables["edge_probability"].copy(),
        log_z=float(group.attrs["log_z"]),
        candidates=candidates,
        log_scores=np.split(group.variables["set_log_score"].copy(), cuts),
        parent_sets=np.split(group.variables["set_probability"].copy(), cuts),
    )

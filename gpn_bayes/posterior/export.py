"""Between a GraphPosterior, an ArviZ DataTree and a netCDF file."""

import json
import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from gpn_bayes import graphs
from gpn_bayes._util.files import new_file, write_whole
from gpn_bayes.data import Dataset, SufficientStatistics
from gpn_bayes.posterior import stored_data
from gpn_bayes.posterior.diagnostics import weight_ess
from gpn_bayes.posterior.exact import ExactAnswers
from gpn_bayes.posterior.graph_posterior import GraphPosterior
from gpn_bayes.posterior.score_setting import score_of
from gpn_bayes.scores.dag_scorer import DagScorer
from gpn_bayes.scores.prior import GraphPrior
from gpn_bayes.scores.recorded import from_parameters

_FORMAT = "gpn_bayes posterior 1"
_PACKED = {"zlib": True, "complevel": 4}


def to_arviz(
    post: GraphPosterior, varying_only: bool = False, resample: bool = True, random_seed: int = 0
) -> xr.DataTree:
    """Return the draws as an ArviZ DataTree, each of weight one; see `GraphPosterior.to_arviz`."""
    if post.log_weights is not None and resample:
        kept = resampled_draws(post.weights, random_seed)
        tree = _tree(_pick(post, kept), varying_only)
        distinct = sum(len(np.unique(own)) for own in kept)
        tree["posterior"].attrs |= {"weight_ess": weight_ess(post.weights), "distinct_draws": distinct}
        return tree
    return _tree(post, varying_only)


def resampled_draws(weights: np.ndarray, random_seed: int = 0) -> np.ndarray:
    """Return which draws of each chain to keep, in their order, so that the weights are 1: systematic resampling.

    A draw of weight w, in a chain of mean weight m, is kept floor(w / m) or one more times (Kitagawa 1996).

    Parameters
    ----------
    weights : ndarray of shape (chain, draw)
        The weights.
    random_seed : int, default 0
        Where the one random number of each chain comes from.

    Returns
    -------
    ndarray of int, shape (chain, draw)

    Examples
    --------
    >>> resampled_draws(np.array([[1.0, 0.0, 2.0, 1.0]])).tolist()
    [[0, 2, 2, 3]]
    """
    chains, draws = weights.shape
    offsets = np.random.default_rng(random_seed).random((chains, 1))
    ends = np.cumsum(weights, axis=1)
    places = (np.arange(draws) + offsets) / draws * ends[:, -1:]
    return np.array([np.searchsorted(own, at, side="right") for own, at in zip(ends, places, strict=True)])


def _pick(post: GraphPosterior, kept: np.ndarray) -> GraphPosterior:
    """Return the posterior of these draws of each chain, of equal weight."""
    rows = np.arange(len(kept))[:, None], kept
    return replace(
        post,
        parents=post.parents[rows],
        log_score=post.log_score[rows],
        log_weights=None,
        stats={name: values[rows] for name, values in post.stats.items()},
        score_errors=None if post.score_errors is None else post.score_errors[rows],
    )


def _tree(post: GraphPosterior, varying_only: bool = False) -> xr.DataTree:
    """Return the draws as they are, with the weights that they have."""
    import arviz_base

    edges, coords, dims = _varying_edges(post) if varying_only else _all_edges(post)
    groups: dict[str, dict[str, np.ndarray]] = {
        "posterior": {"edge": edges},
        "sample_stats": {"lp": post.log_score, **post.stats},
    }
    if post.log_weights is not None:
        groups["log_weights"] = {"log_weight": post.log_weights}
    if post.score_errors is not None:
        groups["score_errors"] = {"score_error": post.score_errors}
        coords = coords | {"node": list(post.names)}
    return arviz_base.from_dict(
        groups,
        coords=coords,
        dims={"edge": dims, "score_error": ["node"]},
        attrs={"posterior": {"settings": json.dumps(post.settings)}},
    )


def _all_edges(post: GraphPosterior) -> tuple[np.ndarray, dict[str, list[str]], list[str]]:
    return post.adjacency, {"parent": list(post.names), "child": list(post.names)}, ["parent", "child"]


def _varying_edges(post: GraphPosterior) -> tuple[np.ndarray, dict[str, list[str]], list[str]]:
    varies = np.argwhere((post.adjacency != post.adjacency[:, :1]).any(axis=(0, 1)))
    names = [f"{post.names[i]} -> {post.names[j]}" for i, j in varies]
    return post.adjacency[..., varies[:, 0], varies[:, 1]], {"edge_name": names}, ["edge_name"]


def save(post: GraphPosterior, path: str | os.PathLike[str], overwrite: bool = False, data: bool = True) -> None:
    """Write a posterior to a netCDF file, all or nothing; see `GraphPosterior.save`."""
    target = new_file(path, overwrite)
    tree = _tree(post)
    tree["posterior"].attrs |= {"format": _FORMAT}
    encoding = {"/posterior": {"edge": _PACKED}}
    if post.exact is not None:
        tree["exact"] = xr.DataTree(_exact_dataset(post.exact, post.names))
    if post.score_errors is not None:
        encoding["/score_errors"] = {"score_error": _PACKED}
    if data and post.data is not None:
        name, dataset = stored_data.to_xarray(post.data)
        tree[name] = xr.DataTree(dataset)
    # Made in memory: HDF5 itself crashes the process when it can't write, on a full disk.
    write_whole(target, bytes(tree.to_netcdf(engine="h5netcdf", encoding=encoding)))


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
        with xr.open_datatree(source, engine="h5netcdf") as tree:
            tree.load()
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"{source.name!r} can't be read as a netCDF file: {error}".splitlines()[0]) from None
    if "posterior" not in tree or tree["posterior"].attrs.get("format") != _FORMAT:
        raise ValueError(f"{source.name!r} must be a posterior written by GraphPosterior.save; it isn't")
    edge = tree["posterior"]["edge"]
    stats = {str(name): values.to_numpy() for name, values in tree["sample_stats"].data_vars.items()}
    names = tuple(str(name) for name in edge.coords["parent"].to_numpy())
    settings = json.loads(tree["posterior"].attrs["settings"])
    data = stored_data.from_tree(tree, names, settings.get("data_fingerprint"))
    return GraphPosterior(
        names=names,
        parents=graphs.pack(edge.to_numpy().astype(np.int8)),
        log_score=stats.pop("lp"),
        log_weights=tree["log_weights"]["log_weight"].to_numpy() if "log_weights" in tree else None,
        stats=stats,
        settings=settings,
        exact=_read_exact(tree["exact"]) if "exact" in tree else None,
        scorer=_read_scorer(tree["posterior"].attrs.get("score"), settings, names, data),
        score_errors=tree["score_errors"]["score_error"].to_numpy() if "score_errors" in tree else None,
        data=data,
    )


def _read_scorer(
    text: str | None, settings: dict[str, Any], names: tuple[str, ...], data: Dataset | SufficientStatistics | None
) -> DagScorer | None:
    """Return the scores behind a posterior; None where the file doesn't say all of them."""
    try:
        # Files of versions that kept the score's label in the settings may have its name and parameters here.
        score = score_of(settings) if text is None else from_parameters(**json.loads(text))
        return DagScorer(score, GraphPrior.from_parameters(names, settings["prior"]), data)
    except (ValueError, KeyError, TypeError):
        return None


def _exact_dataset(exact: ExactAnswers, names: tuple[str, ...]) -> xr.Dataset:
    return xr.Dataset(
        {
            "edge_probability": (("parent", "child"), exact.edges),
            "set_log_score": ("parent_set", np.concatenate(exact.log_scores)),
            "set_probability": ("parent_set", np.concatenate(exact.parent_sets)),
        },
        coords={"parent": list(names), "child": list(names)},
        attrs={"log_z": exact.log_z, "candidates": json.dumps(exact.candidates)},
    )


def _read_exact(group: Any) -> ExactAnswers:
    candidates = json.loads(group.attrs["candidates"])
    cuts = np.cumsum([1 << len(chosen) for chosen in candidates])[:-1]
    return ExactAnswers(
        edges=group["edge_probability"].to_numpy(),
        log_z=float(group.attrs["log_z"]),
        candidates=candidates,
        log_scores=np.split(group["set_log_score"].to_numpy(), cuts),
        parent_sets=np.split(group["set_probability"].to_numpy(), cuts),
    )

"""From a posterior to an ArviZ DataTree, and to a netCDF file that `gpn_bayes.posterior.loading` reads."""

import json
import os

import numpy as np
import xarray as xr

from gpn_bayes._util.files import new_file, write_whole
from gpn_bayes.posterior import leave_one_out, stored_data
from gpn_bayes.posterior.diagnostics import weight_ess
from gpn_bayes.posterior.exact import ExactAnswers
from gpn_bayes.posterior.leave_one_out import Wanted
from gpn_bayes.posterior.protocols import DrawnPosterior

# What a file says that it holds.
FORMAT = "gpn_bayes posterior 1"
# The group of the missing entries of completed tables.
COMPLETED = "completed_data"
# netCDF by its name, so that no reader takes the file for something else.
_ENDINGS = (".nc",)
_PACKED = {"zlib": True, "complevel": 4}


def to_arviz(
    post: DrawnPosterior,
    varying_only: bool = False,
    resample: bool = True,
    random_seed: int = 0,
    wanted: Wanted | None = None,
) -> xr.DataTree:
    """Return the draws as an ArviZ DataTree, each of weight one; see `GraphPosterior.to_arviz`."""
    kept = resampled_draws(post.weights, random_seed) if post.log_weights is not None and resample else None
    tree = _tree(post, varying_only, kept)
    if kept is not None:
        distinct = sum(len(np.unique(own)) for own in kept)
        tree["posterior"].attrs |= {"weight_ess": weight_ess(post.weights), "distinct_draws": distinct}
    if wanted is not None:
        chains, draws = post.log_score.shape
        places = np.arange(chains)[:, None] * draws + (np.arange(draws) if kept is None else kept)
        weights = "equal" if post.log_weights is None else "log_weights" if kept is None else "resampled"
        for name, dataset in leave_one_out.groups(post, places, wanted).items():
            tree[name] = xr.DataTree(dataset.assign_attrs(weights=weights) if "chain" in dataset.dims else dataset)
    return tree


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


def _tree(post: DrawnPosterior, varying_only: bool = False, kept: np.ndarray | None = None) -> xr.DataTree:
    """Return all draws with their weights; or, of each chain, those that were kept, of equal weight."""
    import arviz_base

    picked = ... if kept is None else (np.arange(len(kept))[:, None], kept)
    edges, coords, dims = (_varying_edges if varying_only else _all_edges)(post.adjacency[picked], post.names)
    groups: dict[str, dict[str, np.ndarray]] = {
        "posterior": {"edge": edges},
        "sample_stats": {
            "lp": post.log_score[picked],
            **{name: values[picked] for name, values in post.stats.items()},
        },
    }
    if post.log_weights is not None and kept is None:
        groups["log_weights"] = {"log_weight": post.log_weights}
    if post.score_errors is not None:
        groups["score_errors"] = {"score_error": post.score_errors[picked]}
        coords = coords | {"node": list(post.names)}
    return arviz_base.from_dict(
        groups,
        coords=coords,
        dims={"edge": dims, "score_error": ["node"]},
        attrs={"posterior": {"settings": json.dumps(post.settings)}},
    )


def _all_edges(adjacency: np.ndarray, names: tuple[str, ...]) -> tuple[np.ndarray, dict[str, list[str]], list[str]]:
    return adjacency, {"parent": list(names), "child": list(names)}, ["parent", "child"]


def _varying_edges(adjacency: np.ndarray, names: tuple[str, ...]) -> tuple[np.ndarray, dict[str, list[str]], list[str]]:
    varies = np.argwhere((adjacency != adjacency[:, :1]).any(axis=(0, 1)))
    labels = [f"{names[i]} -> {names[j]}" for i, j in varies]
    return adjacency[..., varies[:, 0], varies[:, 1]], {"edge_name": labels}, ["edge_name"]


def save(post: DrawnPosterior, path: str | os.PathLike[str], overwrite: bool = False, data: bool = True) -> None:
    """Write a posterior to a netCDF file, all or nothing; see `GraphPosterior.save`."""
    target = new_file(path, overwrite, _ENDINGS)
    tree = _tree(post)
    tree["posterior"].attrs |= {"format": FORMAT}
    encoding = {"/posterior": {"edge": _PACKED}}
    if post.exact is not None:
        tree["exact"] = xr.DataTree(_exact_dataset(post.exact, post.names))
    if post.score_errors is not None:
        encoding["/score_errors"] = {"score_error": _PACKED}
    if data and post.data is not None:
        name, dataset = stored_data.to_xarray(post.data)
        tree[name] = xr.DataTree(dataset)
        if post.completed is not None:
            tree[COMPLETED] = xr.DataTree(xr.Dataset({"value": (("table", "entry"), post.completed)}))
    # Made in memory: HDF5 itself crashes the process when it can't write, on a full disk.
    write_whole(target, bytes(tree.to_netcdf(engine="h5netcdf", encoding=encoding)))


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

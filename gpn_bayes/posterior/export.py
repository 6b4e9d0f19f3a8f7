"""From a posterior to an ArviZ DataTree, and to a netCDF file that `gpn_bayes.posterior.loading` reads."""

import json
import os
import warnings
from collections.abc import Hashable

import numpy as np
import xarray as xr

from gpn_bayes import graphs
from gpn_bayes._util.effective_size import effective_size
from gpn_bayes._util.files import new_file, write_whole
from gpn_bayes.posterior import densities, stored_data
from gpn_bayes.posterior.densities import Wanted
from gpn_bayes.posterior.draws import Draws, ExactAnswers, resampled_draws
from gpn_bayes.scores.dag_scorer import DagScorer
from gpn_bayes.scores.recorded import unmakeable

# What a file says that it holds.
FORMAT = "gpn_bayes posterior 1"
# The group of the missing entries of completed tables.
COMPLETED = "completed_data"
# netCDF by its name, so that no reader takes the file for something else.
_ENDINGS = (".nc",)
_PACKED = {"zlib": True, "complevel": 4}


def to_arviz(
    post: Draws,
    varying_only: bool = False,
    resample: bool = True,
    random_seed: int = 0,
    *,
    log_likelihood: bool = False,
    posterior_predictive: bool = False,
    variable: Hashable | None = None,
    progressbar: bool = True,
) -> xr.DataTree:
    """Return the draws as an ArviZ DataTree: ``edge`` in ``posterior``, ``lp`` in ``sample_stats``.

    ``edge`` is int8 over (chain, draw, parent, child). ArviZ knows no weights, so weighted draws are resampled to
    draws of equal weight, each chain by itself (systematic resampling); a draw of large weight then appears
    several times in a row. The attributes of the group ``posterior`` keep the effective size of the weights,
    ``weight_ess``, and the number of ``distinct_draws``. Errors that ArviZ reports are those of the draws alone:
    `summary` also counts the errors of the scores, which are in the group ``score_errors``.

    Parameters
    ----------
    varying_only : bool, default False
        Export only edges that change within some chain, along one dimension named like "a -> b". ArviZ divides by
        zero on the others, post-loops among them, when it computes R-hat for its summaries and plots.
    resample : bool, default True
        With False, weighted draws are exported as they were drawn, with their weights in a group ``log_weights``.
        ArviZ ignores that group: means over such draws are not posterior means.
    random_seed : int, default 0
        For the resampling, and for the tables of `posterior_predictive`.
    log_likelihood : bool, default False
        Add a group ``log_likelihood``: ``rows``, over (chain, draw, row), is log p(row | all other rows, DAG),
        parameters integrated out and variables standardised as they were with the row, in units of the table. With
        these, ``arviz.loo`` estimates how well the posterior, averaged over DAGs, predicts a row from all others.
        Parameters being integrated out, weights are bounded and come in ties, one for each class of DAGs: where
        ArviZ finds no tail to fit, its Pareto k is NaN, and where a tail is made of few ties, k can be large
        though nothing is wrong.
    posterior_predictive : bool, default False
        Add a group ``posterior_predictive``: each variable, over (chain, draw, row), in a new table from every DAG
        with one draw of its parameters; categories as codes of their levels. ``observed_data`` has the old table.
    variable : str or int, optional
        Let these groups be about one variable given its parents in the same row, under its own name: then
        ``arviz.loo`` says how well it is predicted from its parents, and ``arviz.loo_pit`` and ``plot_loo_pit``
        whether these predictions are calibrated.
    progressbar : bool, default True
        Whether to show progress where these take long, under Gaussian processes.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> tree = post.to_arviz()
    >>> float(tree["posterior"]["edge"].sel(parent="raf", child="mek").mean())
    0.4975

    How well are rows predicted from all others, per row on average?

    >>> import arviz as az
    >>> few = gpn.sample(data[["raf", "mek"]], score="bge", draws=100, random_seed=1, progressbar=False)
    >>> float(round(az.loo(few.to_arviz(log_likelihood=True)).elpd / len(data), 2))
    -2.27
    """
    wanted = None
    if log_likelihood or posterior_predictive:
        node = None if variable is None else graphs.node_index(variable, post.names)
        wanted = Wanted(log_likelihood, posterior_predictive, node, random_seed, progressbar)
    kept = resampled_draws(post.weights, random_seed) if post.log_weights is not None and resample else None
    tree = _tree(post, varying_only, kept)
    if kept is not None:
        distinct = sum(len(np.unique(own)) for own in kept)
        tree["posterior"].attrs |= {"weight_ess": effective_size(post.weights), "distinct_draws": distinct}
    if wanted is not None:
        chains, draws = post.log_score.shape
        places = np.arange(chains)[:, None] * draws + (np.arange(draws) if kept is None else kept)
        weights = "equal" if post.log_weights is None else "log_weights" if kept is None else "resampled"
        for name, dataset in densities.groups(post, places, wanted).items():
            tree[name] = xr.DataTree(dataset.assign_attrs(weights=weights) if "chain" in dataset.dims else dataset)
    return tree


def _tree(post: Draws, varying_only: bool = False, kept: np.ndarray | None = None) -> xr.DataTree:
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


def save(post: Draws, path: str | os.PathLike[str], overwrite: bool = False, data: bool = True) -> None:
    """Write the posterior to a netCDF file, to be read by `gpn_bayes.load`.

    Parameters
    ----------
    path : path
        Where to write, such as ``"posterior.nc"``.
    overwrite : bool, default False
        Whether an existing file may be replaced.
    data : bool, default True
        Whether the file holds the table too, so that curves, reports and scores need nothing else after loading.
        Use False where rows must not leave your hands.

    Warns
    -----
    UserWarning
        If your own score can't be made again from its `parameters`.

    Examples
    --------
    >>> import tempfile
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     post.save(f"{folder}/posterior.nc")
    ...     gpn.load(f"{folder}/posterior.nc")
    <GraphPosterior: 4 variables, 4 x 100 DAGs, exact sampler, score BGe(alpha_mu=1.0, alpha_w=None, t0=None)>
    """
    target = new_file(path, overwrite, _ENDINGS)
    score = post.scorer.score if isinstance(post.scorer, DagScorer) else None
    if score is not None and (why := unmakeable(score.name, score.parameters)):
        warnings.warn(f"the file will answer only what needs no score: {why}", UserWarning, stacklevel=2)
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

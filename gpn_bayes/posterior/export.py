"""Between a GraphPosterior, an ArviZ DataTree and a netCDF file."""

import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from gpn_bayes import graphs
from gpn_bayes.files import new_file
from gpn_bayes.posterior.exact import ExactAnswers
from gpn_bayes.posterior.graph_posterior import GraphPosterior

_FORMAT = "gpn_bayes posterior 1"
_PACKED = {"zlib": True, "complevel": 4}


def to_arviz(post: GraphPosterior, varying_only: bool = False) -> xr.DataTree:
    """Return the draws as an ArviZ DataTree.

    ``posterior`` holds `edge`, int8 over (chain, draw, parent, child), or over (chain, draw, edge_name) for the edges
    that vary; ``sample_stats`` the log score `lp` and what the sampler reports; weighted draws come with a group
    ``log_weights``, draws under scores that carry errors with a group ``score_errors`` over (chain, draw, node).
    """
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
        attrs={"posterior": {"format": _FORMAT, "settings": json.dumps(post.settings)}},
    )


def _all_edges(post: GraphPosterior) -> tuple[np.ndarray, dict[str, list[str]], list[str]]:
    return post.adjacency, {"parent": list(post.names), "child": list(post.names)}, ["parent", "child"]


def _varying_edges(post: GraphPosterior) -> tuple[np.ndarray, dict[str, list[str]], list[str]]:
    varies = np.argwhere((post.adjacency != post.adjacency[:, :1]).any(axis=(0, 1)))
    names = [f"{post.names[i]} -> {post.names[j]}" for i, j in varies]
    return post.adjacency[..., varies[:, 0], varies[:, 1]], {"edge_name": names}, ["edge_name"]


def save(post: GraphPosterior, path: str | os.PathLike[str], overwrite: bool = False) -> None:
    """Write a posterior to a netCDF file, all or nothing."""
    target = new_file(path, overwrite)
    tree = to_arviz(post)
    if post.exact is not None:
        tree["exact"] = xr.DataTree(_exact_dataset(post.exact, post.names))
    part = target.with_name(f".{target.name}.part")
    encoding = {"/posterior": {"edge": _PACKED}}
    if post.score_errors is not None:
        encoding["/score_errors"] = {"score_error": _PACKED}
    try:
        tree.to_netcdf(part, engine="h5netcdf", encoding=encoding)
        part.replace(target)
    finally:
        part.unlink(missing_ok=True)


def load(path: str | os.PathLike[str]) -> GraphPosterior:
    """Read a posterior that `GraphPosterior.save` wrote.

    Parameters
    ----------
    path : path
        The netCDF file.

    Returns
    -------
    GraphPosterior
        It answers as the saved one did; but it has neither the data nor their scores.

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
        raise ValueError(f"{source.name!r} must be a posterior saved by gpn_bayes; it isn't")
    edge = tree["posterior"]["edge"]
    stats = {str(name): values.to_numpy() for name, values in tree["sample_stats"].data_vars.items()}
    return GraphPosterior(
        names=tuple(str(name) for name in edge.coords["parent"].to_numpy()),
        parents=graphs.pack(edge.to_numpy().astype(np.int8)),
        log_score=stats.pop("lp"),
        log_weights=tree["log_weights"]["log_weight"].to_numpy() if "log_weights" in tree else None,
        stats=stats,
        settings=json.loads(tree["posterior"].attrs["settings"]),
        exact=_read_exact(tree["exact"]) if "exact" in tree else None,
        score_errors=tree["score_errors"]["score_error"].to_numpy() if "score_errors" in tree else None,
    )


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

"""What ArviZ needs for leave-one-out and predictive checks: densities of rows left out, and tables drawn anew."""

from typing import NamedTuple

import numpy as np
import xarray as xr

from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.posterior import densities
from gpn_bayes.posterior.densities import RowDensities
from gpn_bayes.posterior.outcomes import replicated, replicated_variable
from gpn_bayes.posterior.protocols import DrawnPosterior

# Log densities are rounded to this many decimals: those of equivalent DAGs are then equal in spite of rounding errors.
_DECIMALS = 10
# More numbers than these, 8 GB of them, aren't held.
_MOST = 1_000_000_000
# Names of dimensions, which an array can't have.
_TAKEN = ("chain", "draw", "row")
_PURPOSE = "leave-one-out and predictive checks"


class Wanted(NamedTuple):
    """Which groups are wanted, of which variable (None for whole rows), and where random numbers come from."""

    log_likelihood: bool
    posterior_predictive: bool
    variable: int | None
    random_seed: int
    progressbar: bool


def tied(joint: Floats) -> Floats:
    """Return log p(row | all other rows, DAG), (draw, row), such that ArviZ takes ties for what they are.

    The draws hold a limited number of DAGs, and equivalent ones share their densities: leave-one-out weights come in
    ties. ArviZ fits no tail to ties that are exact, which is right: such weights are bounded. But it raises an error
    where all of the tail is one tie, so the smallest density of each row is lowered by 1e-10.

    Examples
    --------
    >>> tied(np.array([[-1.0], [-1.0 + 1e-14], [-0.5]])).ravel().tolist()
    [-1.0000000001, -1.0, -0.5]
    """
    found = joint.round(_DECIMALS)
    found[found.argmin(axis=0), np.arange(found.shape[1])] -= 10.0**-_DECIMALS
    return found


def groups(post: DrawnPosterior, kept: Ints, wanted: Wanted) -> dict[str, xr.Dataset]:
    """Return the groups ``observed_data``, ``log_likelihood`` and ``posterior_predictive``.

    Parameters
    ----------
    post : GraphPosterior
        The posterior.
    kept : ndarray of int, shape (chain, draw)
        Which of its draws, counted through all chains.
    wanted : Wanted
        What is wanted.
    """
    rows = densities.rows_behind(post, _PURPOSE)
    shown = range(len(post.names)) if wanted.variable is None else [wanted.variable]
    found = {"observed_data": _named(post, {v: rows[:, v] for v in shown}, ("row",))}
    dims = ("chain", "draw", "row")
    if wanted.log_likelihood:
        _check_size(kept.size * len(rows))
        left_out = densities.of_rows_left_out(post, kept.ravel(), wanted.progressbar)
        own = tied(_of(left_out, wanted.variable)).reshape(*kept.shape, -1)
        name = "rows" if wanted.variable is None else _free(post.names[wanted.variable])
        found["log_likelihood"] = xr.Dataset({name: (dims, own)})
    if wanted.posterior_predictive:
        _check_size(kept.size * len(rows) * len(shown))
        if wanted.variable is None:
            tables = replicated(post, kept.ravel(), len(rows), wanted.random_seed, wanted.progressbar)
        else:
            tables = replicated_variable(
                post, kept.ravel(), rows, wanted.variable, wanted.random_seed, wanted.progressbar
            )[..., None]
        drawn = {v: tables[..., place].reshape(*kept.shape, -1) for place, v in enumerate(shown)}
        found["posterior_predictive"] = _named(post, drawn, dims)
    return found


def _of(left_out: RowDensities, variable: int | None) -> Floats:
    """Return the densities of whole rows, or of one variable given its parents: (draw, row)."""
    if variable is None:
        return left_out.joint(slice(None))
    own: Floats = left_out.by_set[left_out.places[:, variable]]
    return own


def _named(post: DrawnPosterior, arrays: dict[int, np.ndarray], dims: tuple[str, ...]) -> xr.Dataset:
    return xr.Dataset({_free(post.names[v]): (dims, values) for v, values in arrays.items()})


def _free(name: str) -> str:
    return f"{name}_" if name in _TAKEN else name


def _check_size(numbers: int) -> None:
    if numbers > _MOST:
        raise ValueError(
            f"draws times rows (times variables) must be at most {_MOST:,} here; received {numbers:,}: name one "
            "variable, or sample fewer draws"
        )

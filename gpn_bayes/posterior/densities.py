"""Densities of rows under each DAG, of new ones and of rows left out; and DAGs weighed without a row, by ArviZ."""

import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import xarray as xr

from gpn_bayes._util.effective_size import effective_size
from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.data import Dataset
from gpn_bayes.posterior.draws import Draws, choose, resampled_draws
from gpn_bayes.posterior.equations import scorer_of
from gpn_bayes.posterior.estimate import ess_of
from gpn_bayes.posterior.outcomes import replicated, replicated_variable
from gpn_bayes.posterior.score_noise import DrawnSets, drawn_sets
from gpn_bayes.scores.densities import left_out, log_densities

if TYPE_CHECKING:
    from arviz_stats.utils import ELPDData

# Log densities are rounded to this many decimals: those of equivalent DAGs are then equal in spite of rounding errors.
_DECIMALS = 10
# More numbers than these, 8 GB of them, aren't held.
_MOST = 1_000_000_000
# Names of dimensions, which an array can't have.
_TAKEN = ("chain", "draw", "row")
# With fewer draws ArviZ finds no tail of weights to smooth.
_FEWEST = 25
_PURPOSE = "leave-one-out and predictive checks"


class RowDensities(NamedTuple):
    """Log densities of rows in units of the table, for every parent set that some DAGs have.

    Attributes
    ----------
    by_set : ndarray of shape (parent set, row)
        Of a variable given these parents.
    places : ndarray of int, shape (draw, variable)
        Which parent set each variable has, in every DAG.
    below : ndarray of shape (parent set, row), optional
        The probability of a smaller value of the variable.
    """

    by_set: Floats
    places: Ints
    below: Floats | None = None

    def joint(self, rows: slice) -> Floats:
        """Return the log densities of some whole rows, of shape (draw, row): a sum over variables."""
        total = np.zeros((len(self.places), len(range(*rows.indices(self.by_set.shape[1])))))
        for own in self.places.T:
            total += self.by_set[own, rows]
        return total


def of_new_rows(post: Draws, values: np.ndarray, places: Ints, progressbar: bool) -> RowDensities:
    """Return the densities of new rows given all rows of the data.

    Parameters
    ----------
    post : GraphPosterior
        The posterior.
    values : ndarray of shape (row, variable)
        The rows, as `gpn_bayes.scores.densities.values_of` returns them.
    places : ndarray of int
        Which of its draws, counted through all chains.
    progressbar : bool
        Whether to show progress where it takes long.
    """
    sets = _sets(post, places)
    by_set = log_densities(scorer_of(post, "predictions"), post.data, sets.keys, values, progressbar)
    return RowDensities(by_set, sets.places.reshape(-1, len(post.names)))


def of_rows_left_out(post: Draws, places: Ints, progressbar: bool, below: bool = False) -> RowDensities:
    """Return the density of every row of the data given all others.

    Parameters
    ----------
    post : GraphPosterior
        The posterior.
    places : ndarray of int
        Which of its draws, counted through all chains.
    progressbar : bool
        Whether to show progress where it takes long.
    below : bool, default False
        Whether the probabilities of smaller values are wanted too.
    """
    purpose = "leave-one-out densities"
    n_rows = len(rows_behind(post, purpose))
    sets = _sets(post, places)
    by_set = np.empty((len(sets.keys), n_rows))
    smaller = np.empty_like(by_set) if below else None
    for k, found in enumerate(left_out(scorer_of(post, purpose), post.data, sets.keys, progressbar)):
        by_set[k] = found.log_density
        if smaller is not None:
            smaller[k] = found.below
    return RowDensities(by_set, sets.places.reshape(-1, len(post.names)), smaller)


def rows_behind(post: Draws, purpose: str) -> np.ndarray:
    """Return the rows that a posterior is of, as numbers or as codes of levels: (row, variable).

    Parameters
    ----------
    post : GraphPosterior
        The posterior.
    purpose : str
        What needs them, to begin a message with.
    """
    scorer = scorer_of(post, purpose)
    data: Dataset = post.data.with_rows(f"{purpose} need the rows")
    if data.interventions is not None:
        raise ValueError(f"{purpose} need rows that were merely observed; received some of experiments")
    if data.weights is not None:
        raise ValueError(f"{purpose} need rows that all count alike; received weights of rows")
    return scorer.rows(data)


def _sets(post: Draws, places: Ints) -> DrawnSets:
    """Return the parent sets of some of a posterior's draws."""
    return drawn_sets(post.parents.reshape(1, -1, *post.parents.shape[2:])[:, places])


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


def groups(post: Draws, kept: Ints, wanted: Wanted) -> dict[str, xr.Dataset]:
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
    rows = rows_behind(post, _PURPOSE)
    shown = range(len(post.names)) if wanted.variable is None else [wanted.variable]
    found = {"observed_data": _named(post, {v: rows[:, v] for v in shown}, ("row",))}
    dims = ("chain", "draw", "row")
    if wanted.log_likelihood:
        _check_size(kept.size * len(rows))
        left_out = of_rows_left_out(post, kept.ravel(), wanted.progressbar)
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


def _named(post: Draws, arrays: dict[int, np.ndarray], dims: tuple[str, ...]) -> xr.Dataset:
    return xr.Dataset({_free(post.names[v]): (dims, values) for v, values in arrays.items()})


def _free(name: str) -> str:
    return f"{name}_" if name in _TAKEN else name


def _check_size(numbers: int) -> None:
    if numbers > _MOST:
        raise ValueError(
            f"draws times rows (times variables) must be at most {_MOST:,} here; received {numbers:,}: name one "
            "variable, or sample fewer draws"
        )


class RowsLeftOut(NamedTuple):
    """What the DAGs of a posterior say of each row when it is left out.

    Attributes
    ----------
    densities : RowDensities
        Of each variable given its parents, in every DAG.
    joint : ndarray of shape (draw, row)
        Log densities of whole rows given all others, in every DAG.
    log_weights : ndarray of shape (draw, row)
        How much each DAG counts without the row: normalised, smoothed.
    elpd : ELPDData
        What ArviZ found: elpd and Pareto k of every row.
    share : float
        Effective draws for each of the posterior's, at most 1.
    """

    densities: RowDensities
    joint: Floats
    log_weights: Floats
    elpd: "ELPDData"
    share: float


def rows_left_out(post: Draws, draws: int, progressbar: bool, below: bool = False) -> RowsLeftOut:
    """Leave out each row of the data in turn.

    Parameters
    ----------
    post : GraphPosterior
        The posterior.
    draws : int
        Over how many of its DAGs to average; draws with weights are resampled first.
    progressbar : bool
        Whether to show progress where it takes long.
    below : bool, default False
        Whether the probabilities of smaller values are wanted too.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek"]]
    >>> post = gpn.sample(data, score="bge", draws=50, random_seed=1, progressbar=False)
    >>> found = rows_left_out(post, 100, progressbar=False)
    >>> found.joint.shape, bool(np.allclose(np.exp(found.log_weights).sum(axis=0), 1))
    ((100, 853), True)
    """
    from arviz_stats.loo.loo import loo

    chosen = choose(post, max(draws, _FEWEST))
    if chosen.weights.size < _FEWEST:
        raise ValueError(f"leaving rows out needs {_FEWEST} draws or more; received {chosen.weights.size}")
    kept = np.arange(chosen.weights.size).reshape(chosen.weights.shape)
    if post.log_weights is not None:
        kept = resampled_draws(chosen.weights) + kept[:, :1]
    known = of_rows_left_out(post, chosen.places[kept.ravel()], progressbar, below)
    joint = tied(known.joint(slice(None)))
    # Where the log score never changes only the weights tell.
    size = float(np.fmin(ess_of(post.log_score), effective_size(post.weights)))
    share = min(1.0, size / post.log_score.size)
    tree = xr.DataTree.from_dict(
        {"log_likelihood": xr.Dataset({"rows": (("chain", "draw", "row"), joint.reshape(*kept.shape, -1))})}
    )
    with warnings.catch_warnings():
        # Ties make Pareto's k large where nothing is wrong; ArviZ's table says for how many rows.
        warnings.filterwarnings("ignore", message="Estimated shape parameter of Pareto distribution")
        found = loo(tree, pointwise=True, reff=share)
    log_weights = found.log_weights.transpose("chain", "draw", "row").to_numpy().reshape(joint.shape)
    return RowsLeftOut(known, joint, log_weights, found, share)

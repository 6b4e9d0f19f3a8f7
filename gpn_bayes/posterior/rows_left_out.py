"""Draws of DAGs weighed as if a row of the data had been left out, by ArviZ's smoothed importance sampling."""

import warnings
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from gpn_bayes._util.types import Floats
from gpn_bayes.posterior import densities
from gpn_bayes.posterior.chosen_draws import choose
from gpn_bayes.posterior.densities import RowDensities
from gpn_bayes.posterior.diagnostics import weight_ess
from gpn_bayes.posterior.estimate import ess_of
from gpn_bayes.posterior.export import resampled_draws
from gpn_bayes.posterior.leave_one_out import tied
from gpn_bayes.posterior.protocols import DrawnPosterior

if TYPE_CHECKING:
    from arviz_stats.utils import ELPDData

# With fewer draws ArviZ finds no tail of weights to smooth.
_FEWEST = 25


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


def rows_left_out(post: DrawnPosterior, draws: int, progressbar: bool, below: bool = False) -> RowsLeftOut:
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
    import xarray as xr
    from arviz_stats.loo.loo import loo

    chosen = choose(post, max(draws, _FEWEST))
    if chosen.weights.size < _FEWEST:
        raise ValueError(f"leaving rows out needs {_FEWEST} draws or more; received {chosen.weights.size}")
    kept = np.arange(chosen.weights.size).reshape(chosen.weights.shape)
    if post.log_weights is not None:
        kept = resampled_draws(chosen.weights) + kept[:, :1]
    known = densities.of_rows_left_out(post, chosen.places[kept.ravel()], progressbar, below)
    joint = tied(known.joint(slice(None)))
    # Where the log score never changes only the weights tell.
    size = float(np.fmin(ess_of(post.log_score), weight_ess(post.weights)))
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

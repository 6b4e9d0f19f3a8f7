"""Which of a posterior's draws an answer is averaged over."""

from typing import NamedTuple

import numpy as np

from gpn_bayes._util.checks import check_count
from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.posterior.protocols import DrawnPosterior

# DAGs to average over by default where each takes long: curves and densities of Gaussian processes.
CURVE_DRAWS = 500


class Chosen(NamedTuple):
    """The draws that an answer is averaged over: places among all, counted through the chains, and their weights."""

    places: Ints
    weights: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """Chains and draws."""
        chains, draws = self.weights.shape
        return chains, draws


def choose(post: DrawnPosterior, draws: int | None) -> Chosen:
    """Return roughly this many draws, evenly spaced within each chain, with their weights; all of them by default."""
    chains, length = post.log_score.shape
    wanted = length
    if draws is not None:
        check_count("draws", draws, 1)
        wanted = min(length, -(-draws // chains))
    columns = np.unique(np.linspace(0, length - 1, wanted).round().astype(np.int64))
    places = (np.arange(chains)[:, None] * length + columns).ravel()
    weights = post.weights[:, columns]
    return Chosen(places, weights / weights.mean())

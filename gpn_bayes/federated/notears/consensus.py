"""The coordinator's part of ADMM: what is shared follows the clients' answers, while cycles are driven out of it."""

import math
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from gpn_bayes.estimators.quasi_newton import minimise
from gpn_bayes.federated.interface import Channel
from gpn_bayes.federated.notears.shared_models import SharedModel
from gpn_bayes.federated.notears.tasks import LARGEST_RHO, ROUND, ROWS, next_rho

# By how much the strength of acyclicity grows from round to round.
_GROWTH_OF_RHO1 = 1.75
# With the largest rho, a run in which this many rounds halve neither h nor the distance has stalled.
_PATIENCE = 10
# To the last digits: what minimises a round exactly doesn't depend on how the clients' sums were rounded.
_TOLERANCE = 1e-14


class Schedule(NamedTuple):
    """How the constraints are tightened, and when that ends.

    Attributes
    ----------
    rho1, rho2 : float
        The strengths of acyclicity and of consensus in the first round.
    tolerance : float
        The run has converged once h and the sum over the clients of ||B_k - W||^2 are below it.
    most_rounds : int
        It ends here at the latest.
    """

    rho1: float
    rho2: float
    tolerance: float = 1e-8
    most_rounds: int = 200


def expected_rounds(schedule: Schedule) -> int:
    """Return after how many rounds acyclicity is as strong as it gets: most runs end about there.

    Examples
    --------
    >>> expected_rounds(Schedule(0.001, 0.001))
    79
    """
    rounds = math.ceil(math.log(LARGEST_RHO / schedule.rho1) / math.log(_GROWTH_OF_RHO1))
    return min(max(rounds, 1), schedule.most_rounds)


class Round(NamedTuple):
    """Where a run stands after a round.

    Attributes
    ----------
    number : int
        From 1 on.
    shared : ndarray
        The shared parameters, W.
    h : float
        How far they are from acyclic.
    consensus : float
        The sum over the clients of ||B_k - W||^2.
    rho1, rho2 : float
        The strengths of acyclicity and of consensus in this round.
    state : {"running", "converged", "stalled", "out of rounds"}
        Whether this round was the last, and why.
    centre : ndarray or None
        The means of all rows, where the clients have sent their sum.
    """

    number: int
    shared: np.ndarray
    h: float
    consensus: float
    rho1: float
    rho2: float
    state: str
    centre: np.ndarray | None


def consensus_rounds(channel: Channel, model: SharedModel, schedule: Schedule) -> Iterator[Round]:
    """Yield where every round ends, until the run has converged or stalled.

    A round asks all clients for the sum of B_k + beta_k / rho2, where B_k fits the client's rows near the shared W, and
    minimises over W

        penalties + alpha h(W) + rho1 / 2 h(W)^2 + K rho2 / 2 ||W - the mean of their answers||^2;

    alpha grows by rho1 h, and each client adds rho2 (B_k - W) to its own beta_k when it gets the new W (Ng & Zhang
    2022, algorithm 1). How far the B_k are from W comes with the answers of the next round.

    It depends on nothing but its arguments and the sums: a run is resumed by replaying them.

    Parameters
    ----------
    channel : Channel
        The way to the clients.
    model : SharedModel
        What they agree on.
    schedule : Schedule
        How fast.
    """
    public, centre = _about_rows(channel)
    shared, alpha, rho1, rho2, last_rho2 = model.start, 0.0, schedule.rho1, schedule.rho2, schedule.rho2
    watch = _Watch(schedule)
    pending: Round | None = None
    while True:
        values = public | {"shared": shared, "rho": rho2, "last_rho": last_rho2}
        sums = channel.sum(ROUND, values, answer_shapes(model))
        if pending is not None:
            pending = watch.judged(pending, float(sums["distance"]))
            yield pending
            if pending.state != "running":
                return
        clients = len(channel.clients)
        shared, h = _solve(model, shared, sums["target"] / clients, clients * rho2, alpha, rho1)
        number = 0 if pending is None else pending.number
        pending = Round(number, shared, h, np.inf, rho1, rho2, "running", centre)
        alpha, last_rho2 = alpha + rho1 * h, rho2
        rho1 = rho1 * _GROWTH_OF_RHO1 if rho1 < LARGEST_RHO else rho1
        rho2 = next_rho(rho2)


def answer_shapes(model: SharedModel) -> dict[str, tuple[int, ...]]:
    """Return the shapes of an answer in a round, by name of the array; what is said of rows is smaller."""
    return {"target": model.start.shape, "distance": ()}


def _about_rows(channel: Channel) -> tuple[dict[str, ArrayLike], np.ndarray | None]:
    """Return what every task says about all rows, and their means where intercepts are shared."""
    sums = channel.sum(ROWS, {})
    rows = float(sums["rows"])
    if "total" not in sums:
        return {"rows": rows}, None
    centre = sums["total"] / rows
    return {"rows": rows, "centre": centre}, centre


class _Watch:
    """Decides when a run is over."""

    def __init__(self, schedule: Schedule) -> None:
        self.schedule = schedule
        self.least = np.inf
        self.idle = 0

    def judged(self, last: Round, consensus: float) -> Round:
        """Return a round with the consensus it reached and what that means."""
        number = last.number + 1
        worse = max(last.h, consensus)
        self.idle += 1
        if worse < 0.5 * self.least or last.rho1 < LARGEST_RHO:
            self.least, self.idle = worse, 0
        state = "running"
        if worse < self.schedule.tolerance:
            state = "converged"
        elif self.idle >= _PATIENCE:
            state = "stalled"
        elif number >= self.schedule.most_rounds:
            state = "out of rounds"
        return last._replace(number=number, consensus=consensus, state=state)


def _solve(
    model: SharedModel, start: np.ndarray, target: np.ndarray, pull: float, alpha: float, rho1: float
) -> tuple[np.ndarray, float]:
    """Return the shared parameters of a round, and h there."""
    free = model.free
    # Parameters that close strong cycles bend most by far; scaled, all bend about alike, and steps go straight there.
    strength = alpha + rho1 * model.cycles(start)[0]
    scale = 1 / np.sqrt(pull + (model.squares_penalties + strength * model.curvatures(start))[free])

    def unscaled(x: np.ndarray) -> np.ndarray:
        shared = np.zeros(free.shape)
        shared[free] = scale * x
        return shared

    def function(x: np.ndarray) -> tuple[float, np.ndarray]:
        shared = unscaled(x)
        h, slope = model.cycles(shared)
        gap = shared - target
        squares = model.squares_penalties * shared
        # A product, not a power: Python's powers raise where a product overflows.
        value = alpha * h + rho1 / 2 * h * h + pull / 2 * float(np.vdot(gap, gap)) + float(np.vdot(squares, shared)) / 2
        if not np.isfinite(value):
            return np.inf, np.zeros(len(x))
        return value, scale * ((alpha + rho1 * h) * slope + pull * gap + squares)[free]

    minimum = unscaled(minimise(function, start[free] / scale, scale * model.penalties[free], _TOLERANCE).x)
    return minimum, float(model.cycles(minimum)[0])

"""The best DAG by integer programming with cluster cuts (Jaakkola et al. 2010, Cussens 2011), on HiGHS.

Rows for all 2^n clusters would be far too many. The linear relaxation gets those that its solutions break, until none
is broken. What is then left between its bound and the best DAG known is settled by branching over the order of two
nodes, with further cuts on the way, which hold in all branches.
"""

from collections.abc import Callable

import numpy as np

from gpn_bayes._util.types import Ints
from gpn_bayes.estimators.exact.branching import Branch, OpenBranches, doubtful_pairs
from gpn_bayes.estimators.exact.outcome import NO_GAP, Clock, Outcome
from gpn_bayes.estimators.exact.relaxation import Relaxation, Solved
from gpn_bayes.estimators.exact.separation import grown, most_broken
from gpn_bayes.estimators.exact.start import rows_near
from gpn_bayes.kernels.learners.parent_sets import ParentSets

# As many pairs of nodes are tried before a branch is split by one of them: that saves far more branches than it takes.
_TRIED_PAIRS = 8
# Cuts that only the integer programme finds are sought while they close such a share of the gap, and quickly enough.
_WORTHWHILE = 0.01
_SEPARATION_SECONDS = 5.0

Split = list[tuple[Branch, float]]


class IntegerProgramme:
    """Search for the best DAG.

    Parameters
    ----------
    sets : ParentSets
        What the nodes choose from.
    start : ndarray of int64
        The row of each node's set in a good DAG.
    clock : Clock
        When to stop.
    gap : float
        How many nats from the optimum suffice.
    rng : Generator
        Used to look for better DAGs on the way.
    tell : callable
        Gets a line about the state of things.
    """

    def __init__(
        self,
        sets: ParentSets,
        start: Ints,
        clock: Clock,
        gap: float,
        rng: np.random.Generator,
        tell: Callable[[str], None],
    ) -> None:
        self._sets, self._clock, self._rng, self._tell = sets, clock, rng, tell
        # HiGHS may be off by NO_GAP / 10; what is called no gap is to be within reach.
        self._gap = max(gap, NO_GAP / 2)
        self._relaxation = Relaxation(sets)
        self._rows = start
        self._bound = float(sets.scores[sets.starts[:-1]].sum())
        # The last solution before any branch, and the sets that are out of question by its reduced costs.
        self._root: Solved | None = None
        self._left_out = np.zeros(len(sets.scores), dtype=bool)
        # The highest bound among branches that are near enough to the best DAG known.
        self._given_up = -np.inf
        self._branches = 0

    def run(self) -> Outcome:
        """Search until the best DAG is proved, the time is up, or Ctrl-C."""
        interrupted = False
        try:
            self._tighten()
            self._branch()
        except KeyboardInterrupt:
            interrupted = True
        statistics = {
            "cuts": self._relaxation.cuts,
            "linear_programmes": self._relaxation.solutions,
            "branches": self._branches,
            "left_out": int(self._left_out.sum()),
        }
        return Outcome(self._rows, max(self._bound, self._value), interrupted, statistics)

    @property
    def _value(self) -> float:
        return float(self._sets.scores[self._rows].sum())

    @property
    def _done(self) -> bool:
        return self._clock.over or self._bound <= self._value + self._gap

    def _report(self) -> None:
        missing = max(self._bound - self._value, 0.0)
        self._tell(
            f"Score {self._value:.3f}, at most {missing:.3f} nats below the best; "
            f"{self._relaxation.cuts} cuts, {self._branches} branches"
        )

    def _tighten(self) -> None:
        """Add cuts until the solution of the relaxation breaks none, or they hardly help; leave out hopeless sets."""
        previous = np.inf
        while not self._done:
            solved = self._relaxation.solve(self._left_out, self._clock.left)
            if not len(solved.shares):
                return
            self._bound = min(self._bound, solved.bound)
            self._root = solved
            self._take(rows_near(self._sets, solved.shares, self._rng))
            self._leave_out()
            self._report()
            clusters = grown(self._sets, solved.shares)
            if not len(clusters):
                if previous - solved.bound < _WORTHWHILE * (solved.bound - self._value):
                    return
                previous = solved.bound
                clusters = most_broken(self._sets, solved.shares, min(self._clock.left, _SEPARATION_SECONDS))
            if not len(clusters):
                return
            self._relaxation.add_clusters(clusters)

    def _branch(self) -> None:
        """Split the problem, best bound first, until no branch can hold a better DAG."""
        n = len(self._rows)
        waiting = OpenBranches()
        waiting.add(Branch(np.zeros((n, n), dtype=bool)), self._bound)
        while not self._done:
            branch = waiting.pop()
            self._branches += 1
            solved = self._solve_branch(branch)
            if solved.bound == np.inf:
                return
            for child, bound in self._split(branch, solved):
                waiting.add(child, bound)
            self._bound = min(self._bound, max(waiting.bound, self._given_up, self._value))
            self._report()

    def _solve_branch(self, branch: Branch) -> Solved:
        """Solve the relaxation within a branch, with new cuts, as far as that may lead to a better DAG."""
        while True:
            solved = self._relaxation.solve(self._left_out | branch.ruled_out(self._sets), self._clock.left)
            if not len(solved.shares):
                return solved
            self._take(rows_near(self._sets, solved.shares, self._rng))
            clusters = grown(self._sets, solved.shares)
            if not len(clusters) or solved.bound <= self._value + self._gap:
                return solved
            self._relaxation.add_clusters(clusters)

    def _split(self, branch: Branch, solved: Solved) -> Split:
        """Return the two parts of a branch, less those without hope, by the pair after which the bounds fall most."""
        pairs: list[tuple[int, int]] = []
        if solved.bound > self._value + self._gap:
            pairs = [pair for pair in doubtful_pairs(self._sets, solved.shares) if not branch.settles(*pair)]
        if not pairs:
            # Solutions that fit an order are DAGs, which are known by now: no more than rounding can be above them.
            self._given_up = max(self._given_up, solved.bound)
        best = -1.0
        chosen: Split = []
        for pair in pairs[:_TRIED_PAIRS]:
            parts = self._parts(branch, solved, *pair)
            if len(parts) < 2:
                return parts
            left_to_fall = solved.bound - self._value
            falls = [min(max(solved.bound - bound, 1e-6), left_to_fall) for _, bound in parts]
            if falls[0] * falls[1] > best:
                best, chosen = falls[0] * falls[1], parts
        return chosen

    def _parts(self, branch: Branch, solved: Solved, first: int, second: int) -> Split:
        parts = []
        for child in (branch.with_order(first, second), branch.with_order(second, first)):
            left_out = self._left_out | child.ruled_out(self._sets)
            bound = min(self._relaxation.solve(left_out, self._clock.left).bound, solved.bound)
            if bound > self._value + self._gap:
                parts.append((child, bound))
            else:
                self._given_up = max(self._given_up, bound)
        return parts

    def _take(self, rows: Ints) -> None:
        """Keep a DAG if it is better than the best so far."""
        if self._sets.scores[rows].sum() > self._value:
            self._rows = rows
            self._leave_out()

    def _leave_out(self) -> None:
        """Drop the sets that no better DAG can have: a whole share would cost more than what is left to gain."""
        if self._root is None:
            return
        hopeless = self._root.reduced_costs > self._root.bound - self._value + NO_GAP
        hopeless[self._rows] = False
        self._left_out |= hopeless

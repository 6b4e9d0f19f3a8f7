"""The relaxed problem, as a HiGHS model that grows: a share of each parent set, and a row for every cut."""

from typing import NamedTuple

import highspy
import numpy as np

from gpn_bayes._util.types import Bools, Words
from gpn_bayes.kernels.learners.parent_sets import ParentSets
from gpn_bayes.kernels.learners.relaxed import rows_avoiding

# Tighter than by default: losses are up to thousands of nats, and the bound is to hold to a small part of one.
_TOLERANCE = 1e-9


class Solved(NamedTuple):
    """A solution of the relaxed problem.

    Attributes
    ----------
    bound : float
        No DAG with the sets allowed scores higher: minus infinity where there is none, infinite where the time was up.
    shares : ndarray of float
        The share of each parent set; empty where there is no solution.
    reduced_costs : ndarray of float
        How much of the bound a whole share of each set would cost at least; empty where there is no solution.
    """

    bound: float
    shares: np.ndarray
    reduced_costs: np.ndarray


class Relaxation:
    """Choose shares of parent sets, 1 per node in all, with the highest score, under the cluster rules added so far.

    Parameters
    ----------
    sets : ParentSets
        What to choose from.

    Attributes
    ----------
    cuts, solutions : int
        Numbers of cluster rules added, and of solutions so far.
    """

    def __init__(self, sets: ParentSets) -> None:
        self.cuts = self.solutions = 0
        self._sets = sets
        self._best = float(sets.scores[sets.starts[:-1]].sum())
        self._model = model = quiet_model()
        for option in ("primal_feasibility_tolerance", "dual_feasibility_tolerance"):
            model.setOptionValue(option, _TOLERANCE)
        self._columns = np.arange(len(sets.scores), dtype=np.int32)
        nothing = np.zeros(len(self._columns))
        model.addVars(len(self._columns), nothing, nothing + 1.0)
        # The loss against a node's best set, to be small: numbers nearer to 0 are rounded less.
        losses = np.repeat(sets.scores[sets.starts[:-1]], np.diff(sets.starts)) - sets.scores
        model.changeColsCost(len(losses), self._columns, losses)
        for start, end in zip(sets.starts[:-1], sets.starts[1:], strict=True):
            model.addRow(1.0, 1.0, end - start, self._columns[start:end], np.ones(end - start))

    def add_clusters(self, clusters: Words) -> None:
        """Ask of each cluster that one of its nodes has all parents outside."""
        for cluster in clusters:
            rows = rows_avoiding(self._sets, cluster)
            self._model.addRow(1.0, np.inf, len(rows), rows, np.ones(len(rows)))
        self.cuts += len(clusters)

    def solve(self, left_out: Bools, seconds: float) -> Solved:
        """Solve it without the parent sets marked."""
        model = self._model
        count = len(left_out)
        model.changeColsBounds(count, self._columns, np.zeros(count), np.where(left_out, 0.0, 1.0))
        # HiGHS adds up the time of all runs of a model.
        model.setOptionValue("time_limit", model.getRunTime() + seconds)
        model.run()
        self.solutions += 1
        status = model.getModelStatus()
        if status == highspy.HighsModelStatus.kOptimal:
            solution = model.getSolution()
            bound = self._best - model.getInfo().objective_function_value
            return Solved(bound, np.array(solution.col_value), np.array(solution.col_dual))
        impossible = status == highspy.HighsModelStatus.kInfeasible
        return Solved(-np.inf if impossible else np.inf, np.empty(0), np.empty(0))


def quiet_model() -> highspy.Highs:
    """Return an empty HiGHS model that keeps silent and to one thread."""
    model = highspy.Highs()
    model.setOptionValue("output_flag", False)
    model.setOptionValue("threads", 1)
    return model

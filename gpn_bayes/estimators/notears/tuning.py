"""The penalty and the threshold that maximise a decomposable score of the resulting DAG."""

from typing import Any

import numpy as np
import pandas as pd

from gpn_bayes import scores
from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.estimators.notears.dags import cut
from gpn_bayes.estimators.notears.objective import LinearProblem
from gpn_bayes.estimators.notears.orders import order_search, weights_of
from gpn_bayes.scores.cache import ScoreCache

# Each penalty of the path is this share of the one before it.
_PATH_STEP = 0.6
# The path ends at this share of the least variance; what is weaker than that is noise at any number of rows.
_PATH_END = 0.01
# It ends early after this many penalties without a better score.
_PATIENCE = 8
_KICKS = 3


class DagScores:
    """The score of DAGs, remembered by node."""

    def __init__(self, score: Any, problem: LinearProblem) -> None:
        self.store = ScoreCache(scores.by_name(score).bind(problem.data))
        self.required = problem.required

    def total(self, weights: Floats) -> float:
        """Return the score of the DAG of the weights that aren't zero, and the required edges."""
        edges = (weights != 0) | self.required
        return sum(self.store.get(i, np.flatnonzero(edges[:, i]).tolist()) for i in range(len(edges)))

    def best_threshold(self, weights: Floats) -> tuple[float, float]:
        """Return the threshold whose DAG scores highest, the largest of equals, and that score.

        Parameters
        ----------
        weights : ndarray, shape (d, d)
            Acyclic; magnitudes at the threshold are kept.
        """
        sizes = np.unique(np.abs(weights[(weights != 0) & ~self.required]))
        nothing = float(np.nextafter(sizes[-1], np.inf)) if len(sizes) else 0.0
        best, highest = nothing, self.total(cut(weights, nothing, self.required))
        for threshold in sizes[::-1].tolist():
            found = self.total(cut(weights, threshold, self.required))
            if found > highest:
                best, highest = threshold, found
        return best, highest


def lambda_path(problem: LinearProblem) -> Floats:
    """Return penalties from the least at which all weights are zero down to a hundredth of the least variance."""
    gradient = problem.loss_and_gradient(_intercepts_alone(problem))[1][: problem.d]
    largest = np.abs(gradient[problem.allowed & ~problem.required]).max(initial=1e-6)
    smallest = min(_PATH_END * float(np.diag(problem.covariance).min()), _PATH_STEP * largest)
    return np.geomspace(largest, smallest, 1 + int(np.ceil(np.log(smallest / largest) / np.log(_PATH_STEP))))


def _intercepts_alone(problem: LinearProblem) -> Floats:
    weights = np.zeros(problem.shape)
    if problem.rows is not None:
        means = problem.rows[:, : problem.d].mean(axis=0)
        weights[-1] = np.log(means / (1 - means)) if problem.loss == "logistic" else np.log(means)
    return weights


def choose_lambda1(
    problem: LinearProblem, score: DagScores, threshold: float | str, rng: np.random.Generator
) -> tuple[float, Ints, pd.DataFrame]:
    """Return the penalty whose DAG scores highest, an order that is good there, and the table of the whole path.

    Parameters
    ----------
    problem : LinearProblem
        The problem; its own penalty isn't used.
    score : DagScores
        What to maximise.
    threshold : float or "auto"
        Where weights are cut off; "auto" takes the best at each penalty.
    rng : Generator
        Source of randomness.
    """
    order = np.argsort(np.diag(problem.covariance), kind="stable")
    rows, orders = [], []
    for lambda1 in lambda_path(problem).tolist():
        search = order_search(problem.with_lambda1(lambda1), rng)
        state, _, lowest = search.begin(order)
        for _ in range(_KICKS):
            fresh, fresh_score = search.kicked(state)
            if fresh_score < lowest:
                state, lowest = fresh, fresh_score
        order = state.order
        weights = weights_of(problem, search, state)[: problem.d]
        if threshold == "auto":
            used, value = score.best_threshold(weights)
        else:
            used, value = float(threshold), score.total(cut(weights, float(threshold), problem.required))
        edges = int(np.count_nonzero(cut(weights, used, problem.required)))
        rows.append((lambda1, used, edges, value))
        orders.append(order)
        if len(rows) - int(np.argmax([row[-1] for row in rows])) > _PATIENCE:
            break
    table = pd.DataFrame(rows, columns=["lambda1", "threshold", "edges", "score"])
    chosen = int(table["score"].to_numpy().argmax())
    return rows[chosen][0], orders[chosen], table

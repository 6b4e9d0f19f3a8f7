"""The reference cases of NOTEARS, F on exactly acyclic weights, and the exact minimum over all orders."""

from pathlib import Path

import numpy as np

from gpn_bayes.estimators.notears.objective import LinearProblem
from gpn_bayes.estimators.notears.orders import refit
from gpn_bayes.scores import Lasso

FOLDER = Path(__file__).parent / "reference" / "notears"
CASES = ("ER2_d20_gauss_n1000_s0", "ER2_d20_gauss_n1000_s1", "SF4_d20_gauss_n1000_s0")
LAMBDA1 = 0.1


def load_case(case):
    """Return the rows and the true adjacency matrix."""
    with np.load(FOLDER / f"{case}_data.npz") as stored:
        return stored["X"], stored["B_true"].astype(np.int8)


def reference_weights(case):
    """Return the weights that each other program found, before its threshold."""
    found = {}
    for path in sorted(FOLDER.glob(f"{case}_*_lam0.1.npz")):
        with np.load(path) as stored:
            found[path.name.removeprefix(f"{case}_").removesuffix("_lam0.1.npz")] = stored["W_est"]
    return found


def acyclic_objective(problem: LinearProblem, weights):
    """Return F once weakest cycle-closing entries are gone and every node is refitted on its predecessors."""
    return problem.objective(refit(problem, weights))


def plain_objective(values, weights, lambda1):
    """Return F from the rows, as it is written in the paper."""
    centred = values - values.mean(axis=0)
    return 0.5 * np.sum((centred - centred @ weights) ** 2) / len(values) + lambda1 * np.abs(weights).sum()


def exact_minimum(values, lambda1):
    """Return the least F over all DAGs, by dynamic programming over subsets of the variables."""
    scorer = Lasso(lambda1).bind(values)
    d = values.shape[1]
    tables = [-scorer.table(i, [j for j in range(d) if j != i]) for i in range(d)]
    least = np.zeros(1 << d)
    for members in range(1, 1 << d):
        least[members] = min(
            least[members & ~(1 << i)] + tables[i][_without(members, i)] for i in range(d) if members >> i & 1
        )
    return least[-1]


def _without(members, node):
    """Return the bits of the others, in the order of a table that leaves the node out."""
    low = members & ((1 << node) - 1)
    return low | (members >> (node + 1)) << node

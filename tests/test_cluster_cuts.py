"""The parts of the integer programme: clusters that a relaxed solution breaks, branches, and the bounds they give."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest

from gpn_bayes.estimators.exact.branching import Branch, OpenBranches, doubtful_pairs
from gpn_bayes.estimators.exact.relaxation import Relaxation
from gpn_bayes.estimators.exact.separation import grown, most_broken
from gpn_bayes.estimators.exact.start import rows_near
from gpn_bayes.estimators.parent_sets import adjacency_of, as_words, gather, members
from gpn_bayes.kernels.learners.relaxed import edge_shares, rows_avoiding

pytestmark = pytest.mark.more("statistics that take long")

N = 6


def random_sets(seed, n=N):
    """Return all parent sets of up to two members, with random scores; fewer members score less on the whole."""
    rng = np.random.default_rng(seed)
    scored = []
    for i in range(n):
        others = [j for j in range(n) if j != i]
        chosen = [part for size in range(3) for part in combinations(others, size)]
        padded = np.array([list(part) + [-1] * (2 - len(part)) for part in chosen], dtype=np.int16)
        sizes = np.array([len(part) for part in chosen])
        scored.append((padded, np.where(sizes > 0, 3.0 * sizes + rng.normal(size=len(chosen)), 0.0)))
    return gather(scored, n)


def random_shares(sets, seed):
    """Return shares that sum to 1 for each node, on about three sets each."""
    rng = np.random.default_rng(seed)
    shares = np.zeros(len(sets.scores))
    for start, end in zip(sets.starts[:-1], sets.starts[1:], strict=True):
        shares[start + rng.permutation(end - start)[:3]] = rng.dirichlet(np.ones(3))
    return shares


def outside(sets, shares, cluster):
    """Return the shares of the sets that avoid a cluster, by its definition."""
    total = 0.0
    for node in cluster:
        for row in range(sets.starts[node], sets.starts[node + 1]):
            if not set(members(sets.words[row])) & set(cluster):
                total += shares[row]
    return total


def clusters_of(n):
    return [cluster for size in range(2, n + 1) for cluster in combinations(range(n), size)]


@pytest.mark.parametrize("seed", range(8))
def test_separation_finds_what_is_broken(seed):
    sets = random_sets(seed)
    shares = random_shares(sets, seed)
    sums = {cluster: outside(sets, shares, cluster) for cluster in clusters_of(N)}
    for words in grown(sets, shares):
        assert sums[tuple(members(words))] < 1.0
    worst = most_broken(sets, shares)
    least = min(sums.values())
    assert len(worst) == (least < 1.0 - 1e-6)
    for words in worst:
        assert sums[tuple(members(words))] == pytest.approx(least, abs=1e-6)


def test_separation_finds_nothing_in_a_dag():
    """Negative control."""
    sets = random_sets(1)
    shares = np.zeros(len(sets.scores))
    shares[rows_near(sets, shares, np.random.default_rng(0))] = 1.0
    assert edge_shares(sets, shares).sum() > 0
    assert len(grown(sets, shares)) == len(most_broken(sets, shares)) == 0
    assert doubtful_pairs(sets, shares) == []


def test_rows_avoiding_a_cluster():
    sets = random_sets(2)
    shares = np.random.default_rng(2).random(len(sets.scores))
    for cluster in clusters_of(N)[::7]:
        rows = rows_avoiding(sets, as_words(np.array([cluster]), N)[0])
        assert shares[rows].sum() == pytest.approx(outside(sets, shares, cluster))


def best_by_orders(sets, before):
    """Return the best score over the DAGs of all orders that go with a partial one, from every subset of the nodes."""
    n = len(sets.starts) - 1
    best = {frozenset(): 0.0}
    for size in range(1, n + 1):
        for chosen in combinations(range(n), size):
            values = []
            for sink in chosen:
                rest = frozenset(chosen) - {sink}
                if any(before[sink, other] for other in rest):
                    continue
                own = [row for row in range(sets.starts[sink], sets.starts[sink + 1])]
                inside = [sets.scores[row] for row in own if set(members(sets.words[row])) <= rest]
                values.append(best[rest] + max(inside))
            best[frozenset(chosen)] = max(values, default=-np.inf)
    return best[frozenset(range(n))]


@pytest.mark.parametrize("seed", range(4))
def test_the_relaxation_with_all_rules_bounds_every_branch(seed):
    sets = random_sets(seed)
    relaxation = Relaxation(sets)
    nothing = np.zeros(len(sets.scores), dtype=bool)
    loose = relaxation.solve(nothing, np.inf)
    assert loose.bound == pytest.approx(sets.scores[sets.starts[:-1]].sum())
    relaxation.add_clusters(np.concatenate([as_words(np.array([cluster]), N) for cluster in clusters_of(N)]))
    branch = Branch(np.zeros((N, N), dtype=bool))
    rng = np.random.default_rng(seed)
    for first, second in rng.permutation(list(combinations(range(N), 2))).tolist():
        solved = relaxation.solve(branch.ruled_out(sets), np.inf)
        optimum = best_by_orders(sets, branch.before)
        assert optimum - 1e-6 <= solved.bound <= loose.bound + 1e-6
        if not branch.settles(first, second):
            branch = branch.with_order(first, second)
    # A full order leaves nothing to choose.
    assert relaxation.solve(branch.ruled_out(sets), np.inf).bound == pytest.approx(best_by_orders(sets, branch.before))


def test_a_problem_without_solution_and_one_without_time():
    sets = random_sets(0)
    relaxation = Relaxation(sets)
    everything = np.ones(len(sets.scores), dtype=bool)
    assert relaxation.solve(everything, np.inf).bound == -np.inf
    assert relaxation.solve(~everything, 0.0).bound in (np.inf, sets.scores[sets.starts[:-1]].sum())


def test_open_branches_come_by_their_bound():
    waiting = OpenBranches()
    branches = [Branch(np.zeros((1, 1), dtype=bool)) for _ in range(4)]
    for branch, bound in zip(branches, (1.0, 3.0, 2.0, 3.0), strict=True):
        waiting.add(branch, bound)
    assert waiting.bound == 3.0
    assert [branches.index(waiting.pop()) for _ in range(4)] == [3, 1, 2, 0]
    assert waiting.bound == -np.inf


@pytest.mark.parametrize("seed", range(5))
def test_doubtful_pairs_lie_on_circles(seed):
    sets = random_sets(seed)
    shares = random_shares(sets, seed)
    edges = edge_shares(sets, shares)
    parts = nx.strongly_connected_components(nx.from_numpy_array(edges, create_using=nx.DiGraph))
    together = {pair for part in parts for pair in combinations(sorted(part), 2)}
    assert set(doubtful_pairs(sets, shares)) == together


def test_rows_near_a_solution_are_a_dag():
    sets = random_sets(3)
    for seed in range(5):
        rows = rows_near(sets, random_shares(sets, seed), np.random.default_rng(seed))
        graph = nx.from_numpy_array(adjacency_of(sets, rows), create_using=nx.DiGraph)
        assert nx.is_directed_acyclic_graph(graph)

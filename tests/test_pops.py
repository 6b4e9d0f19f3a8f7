"""Potentially optimal parent sets lose no optimum, under any score and with required edges, and do leave sets out."""

from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest

from gpn_bayes.estimators import parent_sets, pops
from gpn_bayes.estimators.parent_sets import members, tabulated_up_to
from gpn_bayes.estimators.pops import _LevelSearch, _undominated, potentially_optimal_sets, prune
from gpn_bayes.estimators.problem import read_problem
from gpn_bayes.scores import BIC
from tests.learners import all_parent_sets

N = 5


def discrete_table(seed, rows, n=N):
    """Return a table of codes in which every column depends on up to two earlier ones, and its cardinalities."""
    rng = np.random.default_rng(seed)
    levels = rng.integers(2, 5, n)
    table = np.empty((rows, n), dtype=np.int64)
    for i in range(n):
        parents = rng.permutation(i)[:2]
        preferred = (table[:, parents].sum(axis=1) + rng.integers(levels[i])) % levels[i]
        noisy = rng.random(rows) < rng.uniform(0.1, 0.6)
        table[:, i] = np.where(noisy, rng.integers(0, levels[i], rows), preferred)
    # Every column varies, however few the rows.
    table[:2] = [[0], [1]]
    names = [f"v{i + 1}" for i in range(n)]
    return pd.DataFrame(table, columns=names), dict(zip(names, levels.tolist(), strict=True))


def some_edges(seed, names):
    """Return required edges that go with a random order, and forbidden ones beside them."""
    rng = np.random.default_rng(seed)
    pairs = [tuple(pair) for pair in combinations(rng.permutation(names).tolist(), 2)]
    chosen = rng.permutation(len(pairs))
    required = [pairs[place] for place in chosen[:2]]
    forbidden = [pairs[place] for place in chosen[2:4]] + [pairs[chosen[4]][::-1]]
    return {"required": required, "forbidden": forbidden}


def by_node(sets):
    """Return the sets of each node as a dictionary of scores."""
    rows = [range(start, end) for start, end in zip(sets.starts[:-1], sets.starts[1:], strict=True)]
    return [{frozenset(members(sets.words[row])): sets.scores[row] for row in own} for own in rows]


def best_within(scores, allowed):
    return max((value for chosen, value in scores.items() if chosen <= allowed), default=-np.inf)


def best_total(nodes):
    """Return the best score of a DAG, by way of every order."""
    totals = []
    for order in permutations(range(len(nodes))):
        totals.append(sum(best_within(nodes[i], set(order[:place])) for place, i in enumerate(order)))
    return max(totals)


def close(value):
    """Return what equals a value but for rounding: sums of the same terms in another order differ."""
    return pytest.approx(value, abs=1e-9, rel=0)


def assert_nothing_lost(problem):
    everything, kept = by_node(all_parent_sets(problem)), by_node(potentially_optimal_sets(problem))
    for i in range(problem.n):
        assert all(value == close(everything[i][chosen]) for chosen, value in kept[i].items())
        others = [j for j in range(problem.n) if j != i]
        for size in range(len(others) + 1):
            for allowed in combinations(others, size):
                assert best_within(kept[i], set(allowed)) == close(best_within(everything[i], set(allowed)))
        for chosen, value in kept[i].items():
            assert all(value > rival - 1e-9 for smaller, rival in everything[i].items() if smaller < chosen)
    assert best_total(kept) == close(best_total(everything))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("constrained", [False, True])
def test_discrete_bic_loses_no_optimum(seed, constrained):
    table, cardinalities = discrete_table(seed, rows=[15, 40, 150, 600][seed % 4])
    edges = some_edges(seed, table.columns) if constrained else {}
    assert_nothing_lost(read_problem(table, BIC(cardinalities), 2 + seed % 3, **edges))


@pytest.mark.parametrize("score", ["bdeu", "k2"])
@pytest.mark.parametrize("constrained", [False, True])
def test_other_discrete_scores_lose_no_optimum(score, constrained):
    for seed in range(3):
        table, _ = discrete_table(seed, rows=100)
        edges = some_edges(seed, table.columns) if constrained else {}
        assert_nothing_lost(read_problem(table, score, **edges))


@pytest.mark.parametrize("score", ["bge", "bic"])
def test_continuous_scores_lose_no_optimum(score):
    rng = np.random.default_rng(3)
    values = rng.normal(size=(60, N)) @ (np.eye(N) + np.triu(rng.normal(size=(N, N)), 1))
    table = pd.DataFrame(values, columns=[f"v{i + 1}" for i in range(N)])
    assert_nothing_lost(read_problem(table, score))
    assert_nothing_lost(read_problem(table, score, **some_edges(1, table.columns)))


def entropies(table):
    """Return m H(X_i|P) of every node and set, from counts by pandas."""
    known = {}
    for i, name in enumerate(table.columns):
        others = [j for j in range(len(table.columns)) if j != i]
        for size in range(len(others) + 1):
            for chosen in combinations(others, size):
                given = [table.columns[j] for j in chosen]
                cells = table.groupby([*given, name]).size()
                margins = cells.groupby(level=given).transform("sum") if given else cells.sum()
                known[i, frozenset(chosen)] = float(-(cells * np.log(cells / margins)).sum())
    return known


class ByTheBook:
    """The three rules, written as they are stated, for a table without required edges."""

    def __init__(self, table, cardinalities):
        self.m = len(table)
        self.r = [cardinalities[name] for name in table.columns]
        self.entropy = entropies(table)

    def configurations(self, chosen):
        return np.prod([self.r[p] for p in chosen])

    def penalty(self, i, chosen):
        return np.log(self.m) / 2 * (self.r[i] - 1) * self.configurations(chosen)

    def score(self, i, chosen):
        return -self.entropy[i, chosen] - self.penalty(i, chosen)

    def by_first(self, i, chosen):
        return self.configurations(chosen) > 1 + 2 * self.m * np.log(self.r[i]) / ((self.r[i] - 1) * np.log(self.m))

    def by_second(self, i, chosen):
        return any(
            self.penalty(i, part) + self.score(i, frozenset(smaller)) > 0
            for size in range(1, len(chosen) + 1)
            for part in combinations(sorted(chosen), size)
            for shorter in range(size)
            for smaller in combinations(part, shorter)
        )

    def by_third(self, i, chosen, right=True):
        """Tell whether the rule shuts out a set, or would with its inequality turned round."""
        for j in chosen:
            for size in range(len(chosen)):
                for part in combinations(sorted(chosen - {j}), size):
                    least = min(self.entropy[i, frozenset(part)], self.entropy[j, frozenset(part)])
                    price = (self.r[j] - 1) * self.penalty(i, part)
                    if (least <= price) if right else (least >= price):
                        return True
        return False


def test_every_set_a_rule_shuts_out_is_as_bad_as_a_subset():
    met = {"by_first": 0, "by_second": 0, "by_third": 0}
    for seed in range(4):
        table, cardinalities = discrete_table(seed, rows=120)
        book = ByTheBook(table, cardinalities)
        kept = by_node(potentially_optimal_sets(read_problem(table, BIC(cardinalities))))
        for i, chosen in book.entropy:
            for rule in met:
                if getattr(book, rule)(i, chosen):
                    met[rule] += 1
                    assert chosen not in kept[i]
            assert book.by_second(i, chosen) or not book.by_first(i, chosen)
            if chosen in kept[i]:
                assert kept[i][chosen] == pytest.approx(book.score(i, chosen), abs=1e-8)
    assert min(met.values()) > 10


def test_third_rule_the_other_way_round_would_lose_optima():
    """Negative control."""
    lost = 0
    for seed in range(4):
        table, cardinalities = discrete_table(seed, rows=120)
        book = ByTheBook(table, cardinalities)
        kept = by_node(potentially_optimal_sets(read_problem(table, BIC(cardinalities))))
        wrong = [
            {chosen: value for chosen, value in own.items() if not book.by_third(i, chosen, right=False)}
            for i, own in enumerate(kept)
        ]
        lost += best_total(wrong) < best_total(kept) - 1e-6
    assert lost == 4


def test_what_the_rules_shut_out_is_not_scored():
    table, cardinalities = discrete_table(2, rows=120, n=10)
    book = ByTheBook(table.iloc[:, :N], cardinalities)
    problem = read_problem(table, BIC(cardinalities), 9)
    search = _LevelSearch(problem, problem.store.scorer)
    kept = search.run()
    assert sum(len(scores) for _, scores in kept) < search.scored < 0.25 * 10 * 2**9
    few = dict(list(cardinalities.items())[:N])
    small = read_problem(table.iloc[:, :N], BIC(few), N - 1)
    search = _LevelSearch(small, small.store.scorer)
    search.run()
    # Just those that no rule shuts out: where a node's list lacks a set, the bound by pairs stands in for its entropy.
    open_sets = sum(not (book.by_second(*key) or book.by_third(*key)) for key in book.entropy)
    assert open_sets <= search.scored <= 1.1 * open_sets


def test_of_equal_scores_the_smaller_set_stays():
    sets = np.array([[-1, -1], [0, -1], [1, -1], [0, 1]], dtype=np.int16)
    kept, scores = _undominated(sets, np.array([-5.0, -5.0, -4.0, -4.0]), np.ones(3, dtype=bool))
    assert kept.tolist() == [[-1, -1], [1, -1]]
    assert scores.tolist() == [-5.0, -4.0]


def test_a_subset_without_a_required_edge_does_not_count():
    sets = np.array([[0, -1], [0, 1]], dtype=np.int16)
    kept, _ = _undominated(sets, np.array([-5.0, -6.0]), np.array([False, True, True]))
    assert kept.tolist() == [[0, -1]]
    kept, _ = _undominated(sets, np.array([-np.inf, -np.inf]), np.array([False, True, True]))
    assert kept.tolist() == [[0, -1]]


def test_more_variables_than_a_word_has_bits():
    rng = np.random.default_rng(5)
    values = rng.normal(size=(80, 70))
    values[:, 69] += values[:, 66]
    table = pd.DataFrame(values > 0).astype(int)
    for score in ("bic", "bdeu"):
        kept = by_node(potentially_optimal_sets(read_problem(table, score, 1)))
        assert frozenset([66]) in kept[69]
        assert frozenset([69]) in kept[66]
        assert all(frozenset() in own for own in kept)


def test_no_parents_at_all():
    table, cardinalities = discrete_table(0, rows=50)
    for score in (BIC(cardinalities), "bdeu"):
        kept = by_node(potentially_optimal_sets(read_problem(table, score, 0)))
        assert [list(own) for own in kept] == [[frozenset()]] * N


@pytest.mark.parametrize("score", ["bge", "bic", "bdeu"])
def test_tables_of_all_subsets_lose_no_optimum(score, monkeypatch):
    monkeypatch.setattr(pops, "MOST_SETS", 4)
    table, _ = discrete_table(7, rows=80)
    if score != "bdeu":
        table = table + np.random.default_rng(1).normal(size=table.shape)
    for rules in ({}, some_edges(1, table.columns), {"max_parents": 3}):
        problem = read_problem(table, score, **rules)
        assert pops._has_tables(problem)
        assert_nothing_lost(problem)


def test_a_limit_that_nobody_stated_is_reported(monkeypatch):
    rng = np.random.default_rng(2)
    numbers = pd.DataFrame(rng.normal(size=(40, 24)))
    free, stated = read_problem(numbers, "bge"), read_problem(numbers, "bge", 2)
    assert tabulated_up_to(free) == 5
    monkeypatch.setattr(parent_sets, "MOST_SETS", 300)
    assert (free.max_parents, tabulated_up_to(free), prune(free).up_to) == (23, 2, 2)
    assert (stated.max_parents, tabulated_up_to(stated), prune(stated).up_to) == (2, 2, None)
    # Where tiers leave every variable two candidates at most, no set is left out.
    tiers = [[0, 1], [2], list(range(3, 24))]
    forbidden = [(2, v) for v in range(3, 24)] + [(v, w) for v in range(3, 24) for w in range(3, 24) if v != w]
    assert prune(read_problem(numbers, "bge", tiers=tiers, forbidden=forbidden)).up_to is None


def test_the_bounds_of_the_discrete_bic_end_the_search_by_themselves(monkeypatch):
    # With 30 rows, ln(30) / 2 for each of 2^k configurations exceeds 30 ln 2, which a perfect fit gains, from k = 4 on.
    rng = np.random.default_rng(3)
    table = pd.DataFrame(rng.integers(0, 2, (30, 22)))
    problem = read_problem(table, "bic")
    ended = prune(problem)
    assert problem.max_parents == 21 and ended.up_to is None
    assert max(sets.shape[1] for sets, _ in ended.scored) <= 4
    monkeypatch.setattr(pops, "MOST_SETS", 100)
    monkeypatch.setattr(pops, "_SCORING_SECONDS", 0.0)
    assert prune(problem).up_to == 1
    assert prune(read_problem(table, "bic", 21)).up_to is None

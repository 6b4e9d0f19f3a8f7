"""Distance correlations and forward selection against plain statements of both."""

import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from gpn_bayes import graphs, simulate
from gpn_bayes.candidates.screening import distance_correlations, forward_selection, strongest
from gpn_bayes.scores import BGe
from gpn_bayes.scores.base import Score, ScoreBatch, Scorer
from gpn_bayes.scores.cache import ScoreCache
from tests.rough_scores import Noisy


def plain_distance_correlation(x, y):
    """State the bias-corrected distance correlation with whole matrices."""
    rows = len(x)

    def centred(values):
        distances = np.abs(values[:, None] - values[None, :])
        sums = distances.sum(axis=0) / (rows - 2)
        matrix = distances - sums[:, None] - sums[None, :] + distances.sum() / ((rows - 1) * (rows - 2))
        np.fill_diagonal(matrix, 0)
        return matrix

    a, b = centred(x), centred(y)
    return (a * b).sum() / np.sqrt((a * a).sum() * (b * b).sum())


@pytest.mark.parametrize("rows", [7, 37, 200])
def test_distance_correlations_are_those_of_the_plain_statement(rows):
    rng = np.random.default_rng(rows)
    values = rng.normal(size=(rows, 4)) * [1, 1e-6, 1e6, 1]
    values[:, 1] = 1e-6 * values[:, 0] ** 2
    values[:, 3] = rng.integers(0, 3, rows)
    values[:2, 3] = 0, 1
    expected = [[plain_distance_correlation(x, y) for y in values.T] for x in values.T]
    np.testing.assert_allclose(distance_correlations(values), expected, rtol=1e-8, atol=1e-10)


def test_blocks_of_rows_add_up(monkeypatch):
    values = np.random.default_rng(1).normal(size=(50, 3))
    whole = distance_correlations(values)
    monkeypatch.setattr("gpn_bayes.candidates.screening._BLOCK", 7 * values.size)
    np.testing.assert_allclose(distance_correlations(values), whole, rtol=1e-12, atol=1e-14)


def test_distance_correlation_sees_what_correlation_does_not():
    rng = np.random.default_rng(3)
    x = rng.normal(size=800)
    values = np.column_stack([x, x**2 + 0.3 * rng.normal(size=800), rng.normal(size=800)])
    found = distance_correlations(values)
    assert found[0, 1] > 0.15
    assert np.abs(np.corrcoef(values, rowvar=False)[0, 1]) < 0.12
    # Negative control: unlike the plain coefficient, the corrected one is unbiased for independent columns.
    free = [distance_correlations(np.random.default_rng(s).normal(size=(100, 2)))[0, 1] for s in range(200)]
    assert abs(np.mean(free)) < 4 * np.std(free) / np.sqrt(len(free))
    assert np.abs(free).max() < 0.08


def test_many_rows_are_thinned_in_the_same_way_each_time():
    values = np.random.default_rng(4).normal(size=(3000, 3))
    values[:, 2] = np.sin(values[:, 0])
    first, again = distance_correlations(values), distance_correlations(values)
    np.testing.assert_array_equal(first, again)
    assert first[0, 2] == pytest.approx(distance_correlations(values, max_rows=3000)[0, 2], abs=0.05)


def test_three_rows_are_too_few():
    with pytest.raises(ValueError, match="^distance correlations need at least 4 rows; received 3$"):
        distance_correlations(np.eye(3))


def test_columns_with_one_odd_row_give_numbers():
    values = np.zeros((10, 3))
    values[0], values[:, 2] = 1, np.arange(10)
    assert np.isfinite(distance_correlations(values)).all()


def test_columns_without_a_centred_distance_say_nothing():
    found = distance_correlations(np.array([[0, 1, 1, 2], [3, 1, 4, 1.5]]).T / 3)
    np.testing.assert_allclose(found, [[0, 0], [0, 1]], atol=1e-12)


def test_the_strongest_come_first_and_only_those_allowed():
    strengths = np.array([[9, 1, 5.0], [2, 9, 5.0], [3, 4, 9.0]])
    allowed = ~np.eye(3, dtype=bool)
    assert strongest(strengths, allowed, 2) == [[2, 1], [2, 0], [0, 1]]
    allowed[2, 1] = False
    assert strongest(strengths, allowed, 1) == [[2], [0], [0]]


def plain_selection(scorer, node, pool, start, limit, margin, at_least):
    chosen = list(start)
    while len(chosen) < limit:
        now = scorer.local(node, chosen)
        gains = {j: scorer.local(node, [*chosen, j]) - now for j in pool if j not in chosen}
        if not gains or (len(chosen) >= at_least and max(gains.values()) <= margin):
            break
        chosen.append(max(gains, key=gains.__getitem__))
    return chosen[len(start) :]


def linear_data(n=12, n_rows=200, seed=1):
    dag = simulate.random_dag(n, edges_per_node=1.5, random_seed=seed)
    return dag, simulate.linear(dag, n_rows, random_seed=seed)


@pytest.mark.parametrize(
    "settings",
    [
        {}, {"margin": 3.0}, {"margin": -4.0}, {"limit": 2}, {"limit": 0}, {"at_least": 5}, {"at_least": 11},
        {"start": [[(i + 1) % 12] for i in range(12)]}, {"at_least": 4, "start": [[(i + 1) % 12] for i in range(12)]},
    ],
    ids=str,
)  # fmt: skip
def test_forward_selection_is_that_of_the_plain_statement(settings):
    scorer = BGe().bind(linear_data()[1])
    pools = [[j for j in range(12) if j != i and (i + j) % 5] for i in range(12)]
    found = forward_selection(ScoreCache(scorer), pools, **settings, progressbar=False)
    full = {"start": [[]] * 12, "limit": 12, "margin": 0.0, "at_least": 0} | settings
    starts = full.pop("start")
    assert found == [plain_selection(scorer, i, pools[i], starts[i], **full) for i in range(12)]


def test_forward_selection_finds_markov_blankets():
    dag, data = linear_data(n=15, n_rows=5000, seed=3)
    names = list(data.columns)
    pools = [[j for j in range(15) if j != i] for i in range(15)]
    found = forward_selection(ScoreCache(BGe().bind(data)), pools, limit=14, progressbar=False)
    for i, own in enumerate(found):
        parents, children = set(dag.predecessors(names[i])), set(dag.successors(names[i]))
        blanket = (parents | children).union(*(dag.predecessors(child) for child in children)) - {names[i]}
        assert blanket <= {names[j] for j in own}


class SlowScore(Score):
    """BGe in a form that doesn't say it is quick."""

    name = "slow"
    parameters = {}

    def _bind(self, data):
        return SlowScorer(self, BGe().bind(data))


class SlowScorer(Scorer):
    def __init__(self, score, quick):
        super().__init__(score, quick.names, quick.data_fingerprint)
        self.quick = quick

    def score_sets(self, node, parent_sets) -> ScoreBatch:
        return self.quick.score_sets(node, parent_sets)


def test_scores_without_a_closed_form_are_kept_and_spread(tmp_path):
    _, data = linear_data()
    pools = [[j for j in range(12) if j != i] for i in range(12)]
    expected = forward_selection(ScoreCache(BGe().bind(data)), pools, progressbar=False)
    scorer = SlowScore().bind(data)
    with ScoreCache(scorer, tmp_path / "s.sqlite") as store, ThreadPoolExecutor(2) as executor:
        assert forward_selection(store, pools, executor=executor, progressbar=False) == expected
        known = len(store)
    assert known > 12 * 12
    with ScoreCache(scorer, tmp_path / "s.sqlite") as store:
        scorer.score_sets = None  # nothing is computed again
        assert forward_selection(store, pools, progressbar=False) == expected
        assert len(store) == known


def test_impossible_scores_are_not_chosen():
    _, data = linear_data()

    class Picky(SlowScorer):
        def score_sets(self, node, parent_sets):
            found = self.quick.score_sets(node, parent_sets)
            return found._replace(values=np.array([-np.inf if parents else 0.0 for parents in parent_sets]))

    scorer = Picky(SlowScore(), BGe().bind(data))
    pools = [[1], [0], *[[]] * 10]
    assert forward_selection(ScoreCache(scorer), pools, progressbar=False) == [[]] * 12
    assert forward_selection(ScoreCache(scorer), pools, at_least=1, progressbar=False) == [[]] * 12


def test_forward_selection_of_a_hundred_variables_takes_little_time():
    dag = simulate.random_dag(100, edges_per_node=2, random_seed=1)
    data = simulate.linear(dag, 1000, random_seed=2)
    pools = [[j for j in range(100) if j != i] for i in range(100)]
    begin = time.perf_counter()
    found = forward_selection(ScoreCache(BGe().bind(data)), pools, progressbar=False)
    print(f"forward selection of 100 variables: {time.perf_counter() - begin:.2f} s")
    truth = graphs.as_adjacency(dag, list(data.columns))
    assert np.mean([i in found[j] for i, j in np.argwhere(truth)]) > 0.95


def test_progress_says_which_step_of_forward_selection_is_under_way(capsys, progress_at_once):
    table = simulate.linear(simulate.random_dag(4, edges_per_node=1, random_seed=1), 100, random_seed=1)
    forward_selection(ScoreCache(Noisy().bind(table)), [[j for j in range(4) if j != i] for i in range(4)], limit=2)
    shown = capsys.readouterr().err
    assert all(f"Candidates, sets of {size} of at most 2 100%" in shown for size in (0, 1, 2))

"""Score tables: sums over the subset lattice and draws of parent sets, against brute force."""

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from gpn_bayes import graphs
from gpn_bayes.kernels.graphs.subsets import subset_sums, sums_containing, superset_sums, without_bit
from gpn_bayes.mcmc.choices import Chance
from gpn_bayes.mcmc.draw_dag import draw_parents, store_parents
from gpn_bayes.mcmc.sums import log_sum_inside, log_sum_meeting
from gpn_bayes.mcmc.tables import (
    MAX_TABULATED,
    ScoreTables,
    bit_of,
    build_tables,
    candidate,
    heir,
    log_score,
    log_score_of,
    n_candidates,
    n_heirs,
    ranked_mask,
    scores_of,
)

KINDS = ["plain", "with -inf", "cancelling", "mostly -inf", "huge"]


def random_scores(k: int, kind: str, seed: int = 1) -> np.ndarray:
    rng = np.random.default_rng([seed, k])
    masks = np.arange(1 << k)
    sizes = np.array([int(mask).bit_count() for mask in masks])
    scores = rng.normal(scale=1e4 if kind == "huge" else 2.0, size=1 << k) - 300.0
    if kind == "cancelling":
        # Every set that holds a parent weighs 1e-20 or less of the empty set.
        scores -= 50.0 * sizes
    if kind == "with -inf":
        scores[rng.random(1 << k) < 0.3] = -np.inf
    if kind == "mostly -inf":
        scores[rng.random(1 << k) < 0.95] = -np.inf
        scores[-1] = -280.0
    return scores


def one_node(scores: np.ndarray) -> ScoreTables:
    """Return the tables of node 0 with all the others, which have no candidates themselves."""
    k = len(scores).bit_length() - 1
    return build_tables([list(range(1, k + 1))] + [[]] * k, [scores] + [np.zeros(1)] * k)


def brute_force(scores: np.ndarray, inside: int, needed: int | None = None) -> float:
    masks = np.arange(len(scores))
    chosen = (masks & ~inside) == 0
    if needed is not None:
        chosen &= (masks & needed) != 0
    finite = scores[chosen & np.isfinite(scores)]
    return float(logsumexp(finite)) if len(finite) else -np.inf


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [0, 1, 2, 5, 8])
def test_lattice_sums_match_brute_force(k, kind):
    scores = random_scores(k, kind)
    masks = np.arange(1 << k)
    finite = [scores[np.isfinite(scores) & chosen] for chosen in (masks & masks[:, None]) == masks]
    below = [logsumexp(own) if len(own) else -np.inf for own in finite]
    np.testing.assert_allclose(subset_sums(scores), below, rtol=1e-13)
    finite = [scores[np.isfinite(scores) & chosen] for chosen in (masks & masks[:, None]) == masks[:, None]]
    above = [logsumexp(own) if len(own) else -np.inf for own in finite]
    np.testing.assert_allclose(superset_sums(scores), above, rtol=1e-13)
    for bit in range(k):
        sums = sums_containing(scores, bit)
        assert len(sums) == 1 << (k - 1)
        for mask in masks[masks >> bit & 1 == 1]:
            expected = brute_force(scores, int(mask), 1 << bit)
            np.testing.assert_allclose(sums[without_bit(int(mask), bit)], expected, rtol=1e-13)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [0, 1, 2, 6])
def test_every_sum_of_a_node_matches_brute_force(k, kind):
    scores = random_scores(k, kind)
    tables = one_node(scores)
    for inside in range(1 << k):
        assert log_sum_inside(tables, 0, inside) == pytest.approx(brute_force(scores, inside), rel=1e-13)
        assert log_sum_meeting(tables, 0, inside, 0) == -np.inf
        needed = inside
        while needed:
            expected = brute_force(scores, inside, needed)
            assert log_sum_meeting(tables, 0, inside, needed) == pytest.approx(expected, abs=1e-9, rel=1e-12)
            needed = (needed - 1) & inside


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("k", [MAX_TABULATED, MAX_TABULATED + 1, MAX_TABULATED + 2])
def test_sums_match_brute_force_on_either_side_of_the_limit(k, kind):
    scores = random_scores(k, kind)
    tables = one_node(scores)
    rng = np.random.default_rng(2)
    for _ in range(40):
        inside = int(rng.integers(1 << k)) | int(rng.integers(1 << k))
        needed = inside & int(rng.integers(1 << k)) & int(rng.integers(1 << k))
        expected = brute_force(scores, inside, needed)
        assert log_sum_inside(tables, 0, inside) == pytest.approx(brute_force(scores, inside), rel=1e-12)
        assert log_sum_meeting(tables, 0, inside, needed) == pytest.approx(expected, abs=1e-8, rel=1e-12)


@pytest.mark.parametrize("k", [6, MAX_TABULATED + 1])
@pytest.mark.parametrize("log_share", [-1.0, -5.0, -12.0, -13.5, -15.0, -25.0, -46.0, -200.0])
def test_sums_survive_any_degree_of_cancellation(k, log_share):
    scores = random_scores(k, "plain")
    masks = np.arange(1 << k)
    needed, inside = 0b11, (1 << k) - 1
    meets = masks & needed != 0
    scores[meets] += log_share + logsumexp(scores[~meets]) - logsumexp(scores[meets])
    expected = float(logsumexp(scores[meets]))
    found = log_sum_meeting(one_node(scores), 0, inside, needed)
    # A plain difference of the two sums has lost all digits once the share is below 1e-13.
    plain = logsumexp(scores) + np.log(max(-np.expm1(logsumexp(scores[~meets]) - logsumexp(scores)), 1e-300))
    assert found == pytest.approx(expected, abs=1e-6)
    assert abs(plain - expected) > 0.1 or log_share > -40.0


def test_layout_names_candidates_bits_and_heirs():
    candidates = [[2, 1], [], [1]]
    scores = [np.array([0.0, -1.0, -np.inf, -3.0]), np.array([-4.0]), np.array([-5.0, -2.0])]
    tables = build_tables(candidates, scores)
    assert [n_candidates(tables, i) for i in range(3)] == [2, 0, 1]
    assert [[candidate(tables, i, b) for b in range(len(candidates[i]))] for i in range(3)] == candidates
    assert [[bit_of(tables, i, j) for j in range(3)] for i in range(3)] == [
        [-1, 1, 0],
        [-1, -1, -1],
        [-1, 0, -1],
    ]
    assert [[heir(tables, i, h) for h in range(n_heirs(tables, i))] for i in range(3)] == [[], [0, 2], [0]]
    for i, own in enumerate(scores):
        np.testing.assert_array_equal(scores_of(tables, i), own)
        assert [log_score(tables, i, mask) for mask in range(len(own))] == own.tolist()
        ranked = [ranked_mask(tables, i, rank, False) for rank in range(len(own))]
        assert ranked == sorted(range(len(own)), key=lambda mask: -own[mask])
    assert log_score_of(tables, np.array([1, 0, 1])) == -1.0 - 4.0 - 2.0


def test_building_leaves_the_scores_alone():
    scores = [random_scores(1, "plain"), random_scores(1, "plain", 2)]
    before = [own.copy() for own in scores]
    tables = build_tables([[1], [0]], scores)
    tables.values[:] = 0.0
    np.testing.assert_array_equal(scores, before)


@pytest.mark.parametrize(
    ("candidates", "scores", "message"),
    [
        ([[0], []], [np.zeros(2), np.zeros(1)], r"other than the node; node 0 has \[0\]"),
        ([[], [0, 0]], [np.zeros(1), np.zeros(4)], r"distinct nodes from 0 to 1 .* node 1 has \[0, 0\]"),
        ([[2], []], [np.zeros(2), np.zeros(1)], r"from 0 to 1 .* node 0 has \[2\]"),
        ([[-1], []], [np.zeros(2), np.zeros(1)], r"from 0 to 1 .* node 0 has \[-1\]"),
        ([[1], []], [np.zeros(3), np.zeros(1)], "node 0 with 1 candidates needs 2 scores; got 3"),
        ([[1], []], [np.zeros(2)], "received 1 for 2 nodes"),
        ([[1], []], [np.zeros(2), np.zeros(1), np.zeros(1)], "received 3 for 2 nodes"),
        ([[1], []], [np.array([0.0, np.nan]), np.zeros(1)], "node 0 must have no score that is NaN"),
        ([[1], []], [np.array([0.0, np.inf]), np.zeros(1)], "node 0 must have no score that is NaN"),
        ([[1], []], [np.zeros(2), np.array([-np.inf])], "node 1 must have a finite score"),
        ([list(range(1, 22))] + [[]] * 21, [np.zeros(1)] * 22, "at most 20 candidates .* received 21"),
    ],
)
def test_bad_tables_are_refused(candidates, scores, message):
    with pytest.raises(ValueError, match=message) as error:
        build_tables(candidates, scores)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("n", [3, 63, 64, 65, 130])
def test_parents_are_stored_as_words_of_node_bits(n):
    rng = np.random.default_rng(n)
    candidates = [sorted(rng.choice(i, size=min(i, 6), replace=False).tolist(), reverse=True) for i in range(n)]
    tables = build_tables(candidates, [np.zeros(1 << len(chosen)) for chosen in candidates])
    parents = np.array([int(rng.integers(1 << len(chosen))) for chosen in candidates])
    adjacency = np.zeros((n, n), np.int8)
    for i, chosen in enumerate(candidates):
        adjacency[[j for b, j in enumerate(chosen) if parents[i] >> b & 1], i] = 1
    words = np.full((n, (n + 63) // 64), 2**64 - 1, np.uint64)
    store_parents(tables, parents, words)
    np.testing.assert_array_equal(graphs.unpack(words, n), adjacency)
    for i in range(n):
        held = [j for j in range(n) if int(words[i, j // 64]) >> (j % 64) & 1]
        assert held == np.flatnonzero(adjacency[:, i]).tolist()


def drawn(tables: ScoreTables, inside: int, needed: int, log_total: float, draws: int) -> np.ndarray:
    rng = np.random.default_rng(5)
    return np.array(
        [draw_parents(Chance(rng), tables, 0, inside, needed, log_total) for _ in range(draws)]
    )  # fmt: skip


def p_value(counts: np.ndarray, probability: np.ndarray) -> float:
    """Return the chi-square p value of counts, with the rare sets pooled."""
    expected = probability * counts.sum()
    rare = expected < 10.0
    pooled = np.bincount(np.where(rare, 0, 1 + np.arange(len(rare))), weights=counts)
    pooled_expected = np.bincount(np.where(rare, 0, 1 + np.arange(len(rare))), weights=expected)
    used = pooled_expected > 0.0
    return float(stats.chisquare(pooled[used], pooled_expected[used]).pvalue)


# Up to six nodes inside, their subsets are run through; with more, the ranked table.
DRAWS = [(4, 0b1101, 0), (4, 0b1101, 0b101), (8, 0b11111111, 0), (8, 0b11011111, 0b11000), (8, 0b100, 0b100)]


@pytest.mark.parametrize("kind", ["plain", "with -inf"])
@pytest.mark.parametrize(("k", "inside", "needed"), DRAWS)
def test_parents_are_drawn_in_proportion_to_their_scores(k, inside, needed, kind):
    scores = random_scores(k, kind, seed=4)
    masks = np.arange(1 << k)
    allowed = ((masks & ~inside) == 0) & ((masks & needed != 0) | (needed == 0)) & np.isfinite(scores)
    log_total = float(logsumexp(scores[allowed]))
    counts = np.bincount(drawn(one_node(scores), inside, needed, log_total, 8000), minlength=1 << k)
    assert counts[~allowed].sum() == 0
    if allowed.sum() == 1:
        return
    probability = np.exp(scores[allowed] - log_total)
    assert p_value(counts[allowed], probability) > 1e-4
    assert p_value(counts[allowed], np.roll(probability, 1)) < 1e-10


@pytest.mark.parametrize(("k", "inside", "needed"), [(4, 0b1111, 0b11), (8, 0b11111111, 0b11)])
def test_rounding_never_leaves_a_node_without_an_answer(k, inside, needed):
    scores = random_scores(k, "with -inf", seed=3)
    masks = np.arange(1 << k)
    allowed = (masks & needed != 0) & np.isfinite(scores)
    # A total that is far too large stands in for a sum that rounding left short of the target.
    log_total = float(logsumexp(scores[allowed])) + 1.0
    found = drawn(one_node(scores), inside, needed, log_total, 300)
    assert allowed[found].all()
    last = np.bincount(found).max() / 300
    assert last > 0.5  # all the missing mass goes to the set that was looked at last

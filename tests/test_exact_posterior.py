"""Exact probabilities and exact draws, against the enumeration of all DAGs."""

from itertools import product

import numpy as np
import pytest
from scipy import stats
from scipy.special import logsumexp

from gpn_bayes.mcmc import exact_posterior
from gpn_bayes.mcmc.choices import CURSOR, OPTIONS, OUTCOME, PROBABILITY, Chance, new_script
from gpn_bayes.mcmc.exact_draws import LayeredWeights, draw_exact, layered_weights
from gpn_bayes.mcmc.exact_posterior import exact_probabilities
from gpn_bayes.mcmc.tables import (
    ScoreTables,
    build_tables,
    candidate,
    log_score_of,
    n_candidates,
    scores_of,
)

# OEIS A003024.
NUMBER_OF_DAGS = (
    1, 3, 25, 543, 29281, 3781503, 1138779265, 783702329343, 1213442454842881, 4175098976430598143,
    31603459396418917607425,
)  # fmt: skip


def flat_tables(n: int) -> ScoreTables:
    others = [[j for j in range(n) if j != i] for i in range(n)]
    return build_tables(others, [np.zeros(1 << (n - 1)) for _ in range(n)])


def random_tables(n: int, kind: str, seed: int = 1) -> ScoreTables:
    rng = np.random.default_rng(seed)
    candidates = [[int(j) for j in rng.permutation(n) if j != i] for i in range(n)]
    if kind == "restricted":
        candidates = [[j for j in chosen if rng.random() < 0.6] for chosen in candidates]
    spread = {"huge": 1e5, "peaked": 30.0}.get(kind, 1.5)
    scores = []
    for i, chosen in enumerate(candidates):
        masks = np.arange(1 << len(chosen))
        sizes = np.array([int(mask).bit_count() for mask in masks])
        table = rng.normal(scale=spread, size=len(masks)) - 1000.0
        if kind == "cliffs":
            table -= 1e5 * rng.integers(2, size=len(masks))
        if kind == "independent":
            table -= 40.0 * sizes
        if kind == "few parents":
            table[sizes > 1] = -np.inf
        if kind == "required" and i > 0:
            table[(masks >> chosen.index(0)) & 1 == 0] = -np.inf
        if kind == "required chain" and i > 0:
            table[(masks >> chosen.index(i - 1)) & 1 == 0] = -np.inf
        scores.append(table)
    return build_tables(candidates, scores)


KINDS = [
    "plain", "restricted", "peaked", "huge", "cliffs", "independent", "few parents",
    "required", "required chain",
]  # fmt: skip


def is_dag(tables: ScoreTables, masks: tuple[int, ...]) -> bool:
    placed: set[int] = set()
    waiting = {
        i: {candidate(tables, i, b) for b in range(n_candidates(tables, i)) if (mask >> b) & 1}
        for i, mask in enumerate(masks)
    }
    while waiting:
        ready = [i for i, parents in waiting.items() if parents <= placed]
        if not ready:
            return False
        placed.update(ready)
        for i in ready:
            del waiting[i]
    return True


def enumerate_dags(tables: ScoreTables) -> tuple[list[tuple[int, ...]], np.ndarray]:
    """Return all DAGs as local parent masks, and their log scores."""
    dags = [
        masks
        for masks in product(*(range(len(scores_of(tables, i))) for i in range(len(tables.layout))))
        if is_dag(tables, masks)
    ]
    return dags, np.array([log_score_of(tables, np.array(masks)) for masks in dags])


def enumerated_probabilities(tables: ScoreTables) -> tuple[float, np.ndarray, np.ndarray]:
    dags, log_scores = enumerate_dags(tables)
    log_z = logsumexp(log_scores)
    n = len(tables.layout)
    sets, edges = [np.zeros(len(scores_of(tables, i))) for i in range(n)], np.zeros((n, n))
    for masks, probability in zip(dags, np.exp(log_scores - log_z), strict=True):
        for i, mask in enumerate(masks):
            sets[i][mask] += probability
            for b in range(n_candidates(tables, i)):
                if (mask >> b) & 1:
                    edges[candidate(tables, i, b), i] += probability
    return float(log_z), np.concatenate(sets), edges


def total_weight(weights: LayeredWeights) -> float:
    return weights.log_z[-1] + weights.log_scale


def draw(tables: ScoreTables, weights: LayeredWeights, rng: np.random.Generator, draws: int):
    words, log_scores = np.empty((draws, len(tables.layout), 1), dtype=np.uint64), np.empty(draws)
    draw_exact(Chance(rng), tables, weights, words, log_scores)
    return words[:, :, 0].astype(np.int64), log_scores


def edges_of(words: np.ndarray) -> np.ndarray:
    """Return the adjacency of each draw, [draw, parent, child]."""
    n = words.shape[1]
    return ((words[:, None, :] >> np.arange(n)[None, :, None]) & 1).astype(np.int8)


@pytest.mark.parametrize("n", range(1, 12))
def test_flat_scores_count_the_dags(n):
    tables, expected = flat_tables(n), float(NUMBER_OF_DAGS[n - 1])
    exact = exact_probabilities(tables)
    np.testing.assert_allclose(np.exp(exact.log_z), expected, rtol=1e-10)
    # By symmetry, all edges are equally probable.
    off_diagonal = exact.edge_probabilities[~np.eye(n, dtype=bool)]
    np.testing.assert_allclose(off_diagonal, off_diagonal[:1].repeat(len(off_diagonal)), rtol=1e-10)
    if n <= 10:
        np.testing.assert_allclose(np.exp(total_weight(layered_weights(tables))), expected, rtol=1e-10)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [3, 4])
def test_probabilities_match_enumeration(n, kind):
    for seed in range(3):
        tables = random_tables(n, kind, seed)
        log_z, sets, edges = enumerated_probabilities(tables)
        exact = exact_probabilities(tables)
        assert abs(exact.log_z - log_z) < 1e-9
        assert abs(total_weight(layered_weights(tables)) - log_z) < 1e-9
        np.testing.assert_allclose(exact.parent_set_probabilities, sets, atol=1e-9)
        np.testing.assert_allclose(exact.edge_probabilities, edges, atol=1e-9)
        no_parents = exact.parent_set_probabilities[exact.offsets[:-1]]
        np.testing.assert_allclose(no_parents, [own[0] for own in np.split(sets, exact.offsets[1:-1])], atol=1e-9)
        assert exact.rounding < 1e-9
        assert 1.0 - 1e-9 <= exact.condition <= 2.0**n - 1.0 + 1e-6


def test_condition_is_the_expected_number_of_sets_of_sinks():
    tables = random_tables(4, "plain")
    dags, log_scores = enumerate_dags(tables)
    expected = 0.0
    for masks, probability in zip(dags, np.exp(log_scores - logsumexp(log_scores)), strict=True):
        parents = {candidate(tables, i, b) for i in range(4) for b in range(3) if (masks[i] >> b) & 1}
        expected += probability * (2.0 ** (4 - len(parents)) - 1.0)
    np.testing.assert_allclose(exact_probabilities(tables).condition, expected, rtol=1e-9)


@pytest.mark.parametrize("kind", KINDS)
def test_the_two_recursions_agree(kind):
    tables = random_tables(9, kind)
    exact = exact_probabilities(tables)
    assert abs(exact.log_z - total_weight(layered_weights(tables))) < 1e-9
    assert exact.rounding < 1e-9


def test_chunks_change_nothing_and_report_progress(monkeypatch):
    tables = random_tables(6, "plain")
    whole, whole_weights = exact_probabilities(tables), layered_weights(tables)
    monkeypatch.setattr(exact_posterior, "_STEPS_PER_CHUNK", 100)
    for function, expected in ((exact_probabilities, whole), (layered_weights, whole_weights)):
        seen: list[float] = []
        for new, old in zip(function(tables, seen.append), expected, strict=True):
            np.testing.assert_array_equal(new, old)
        assert len(seen) > 5 and seen == sorted(seen) and seen[-1] == 1.0


def test_impossible_scores_are_refused():
    needs_the_other = np.array([-np.inf, 0.0])
    tables = build_tables([[1], [0]], [needs_the_other, needs_the_other])
    for function in (exact_probabilities, layered_weights):
        with pytest.raises(ValueError, match="at least one DAG"):
            function(tables)


def test_large_networks_are_refused():
    tables = build_tables([[] for _ in range(21)], [np.zeros(1) for _ in range(21)])
    with pytest.raises(ValueError, match="at most 20 nodes; received 21"):
        exact_probabilities(tables)
    with pytest.raises(ValueError, match="at most 17 nodes; received 21"):
        layered_weights(tables)


def scripted_distribution(tables: ScoreTables) -> dict[tuple[int, ...], float]:
    """Walk through every path of a draw; return the exact probability of each DAG it can give."""
    weights = layered_weights(tables)
    n = len(tables.layout)
    rng, words, log_score = np.random.default_rng(0), np.empty((1, n, 1), dtype=np.uint64), np.empty(1)
    found: dict[tuple[int, ...], float] = {}
    outcomes = [0]
    while outcomes:
        script = new_script(outcomes, 4 * n)
        draw_exact(Chance(rng, script), tables, weights, words, log_score)
        used = int(script[CURSOR, 0])
        key = tuple(int(word) for word in words[0, :, 0])
        found[key] = found.get(key, 0.0) + script[PROBABILITY, :used].prod()
        outcomes = [int(outcome) for outcome in script[OUTCOME, :used]]
        while outcomes and outcomes[-1] + 1 >= script[OPTIONS, len(outcomes) - 1]:
            outcomes.pop()
        if outcomes:
            outcomes[-1] += 1
    return found


def node_bits(tables: ScoreTables, masks: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(
        sum(1 << candidate(tables, i, b) for b in range(n_candidates(tables, i)) if (mask >> b) & 1)
        for i, mask in enumerate(masks)
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("n", [3, 4])
def test_every_path_of_a_draw_adds_up_to_the_posterior(n, kind):
    tables = random_tables(n, kind)
    found = scripted_distribution(tables)
    dags, log_scores = enumerate_dags(tables)
    expected = np.exp(log_scores - logsumexp(log_scores))
    for masks, probability in zip(dags, expected, strict=True):
        assert abs(found.pop(node_bits(tables, masks), 0.0) - probability) < 1e-10
    assert not found


def frequency_p_value(words: np.ndarray, tables: ScoreTables) -> float:
    """Return the chi-square p value of drawn DAGs against the enumerated posterior, rare DAGs pooled."""
    dags, log_scores = enumerate_dags(tables)
    expected = np.exp(log_scores - logsumexp(log_scores)) * len(words)
    index = {node_bits(tables, masks): k for k, masks in enumerate(dags)}
    observed = np.bincount([index[tuple(row)] for row in words.tolist()], minlength=len(dags))
    rare = expected < 10.0
    observed = np.append(observed[~rare], observed[rare].sum())
    expected = np.append(expected[~rare], max(expected[rare].sum(), 1e-300))
    return float(stats.chisquare(observed, expected).pvalue)


def test_frequencies_of_all_dags_match_and_a_wrong_target_is_rejected():
    tables, other = random_tables(3, "plain", 5), random_tables(3, "plain", 6)
    words, _ = draw(tables, layered_weights(tables), np.random.default_rng(11), 20_000)
    assert frequency_p_value(words, tables) > 1e-4
    assert frequency_p_value(words, other) < 1e-10


def worst_edge_gap(words: np.ndarray, tables: ScoreTables) -> float:
    """Return the largest |frequency - probability| of an edge over what four sigma allow."""
    probability, draws = exact_probabilities(tables).edge_probabilities, len(words)
    allowed = 4.0 * np.sqrt(probability * (1.0 - probability) / draws) + 4.0 / draws
    return float((np.abs(edges_of(words).mean(axis=0) - probability) / allowed).max())


@pytest.mark.parametrize("n", [4, 5, 8])
@pytest.mark.parametrize("kind", ["plain", "restricted", "cliffs", "few parents", "required chain"])
def test_edge_frequencies_match_and_a_wrong_target_is_rejected(n, kind):
    tables, other = random_tables(n, kind, 5), random_tables(n, kind, 6)
    words, _ = draw(tables, layered_weights(tables), np.random.default_rng(7), 10_000)
    assert worst_edge_gap(words, tables) < 1.0
    assert worst_edge_gap(words, other) > 2.0


def test_draws_depend_on_the_generator_alone():
    tables = random_tables(5, "plain")
    weights = layered_weights(tables)
    words, log_scores = draw(tables, weights, np.random.default_rng(3), 300)
    rng = np.random.default_rng(3)
    blocks = [draw(tables, weights, rng, size) for size in (100, 1, 199)]
    np.testing.assert_array_equal(np.concatenate([block[0] for block in blocks]), words)
    np.testing.assert_array_equal(np.concatenate([block[1] for block in blocks]), log_scores)
    assert not np.array_equal(draw(tables, weights, np.random.default_rng(4), 300)[0], words)


def test_log_scores_belong_to_the_drawn_dags():
    tables = random_tables(5, "plain")
    words, log_scores = draw(tables, layered_weights(tables), np.random.default_rng(3), 200)
    for row, log_score in zip(words, log_scores, strict=True):
        total = 0.0
        for i in range(5):
            mask = sum(((int(row[i]) >> candidate(tables, i, b)) & 1) << b for b in range(n_candidates(tables, i)))
            total += scores_of(tables, i)[mask]
        assert abs(total - log_score) < 1e-9

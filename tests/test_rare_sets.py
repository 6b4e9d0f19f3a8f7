"""Rare parent sets: which they are, and how well their scores are predicted."""

import numpy as np
import pytest

from gpn_bayes import graphs
from gpn_bayes.posterior.score_noise import drawn_sets
from gpn_bayes.sampling.slow_scores.predicted_scores import often_drawn, with_predictions
from gpn_bayes.scores.cache import ScoreRecord

pytestmark = pytest.mark.more("statistics that take long")


def many_sets(rng, count=3000, n=8):
    """Return DAGs whose parent sets differ in how often they were drawn, many of them rare."""
    upper = np.triu(rng.random((1, count, n, n)) < np.linspace(0.05, 0.6, n), 1)
    return drawn_sets(graphs.pack(upper.astype(int)))


def counts_of(sets):
    return np.bincount(sets.places.ravel())


def predictions(sets, rough, accurate, known):
    """Return the predicted values of the rare sets, and their errors."""
    records = [ScoreRecord(value, 0.01, np.nan, "ok") for value in accurate[known]]
    everything = with_predictions(sets, rough, known, records)
    assert [r for r, is_known in zip(everything, known, strict=True) if is_known] == records
    predicted = [r for r, is_known in zip(everything, known, strict=True) if not is_known]
    assert {r.status for r in predicted} == {"predicted"}
    return np.array([r.value for r in predicted]), np.array([r.error for r in predicted])


def test_of_many_sets_the_rarest_are_predicted():
    sets = many_sets(np.random.default_rng(1))
    often, counts = often_drawn(sets), counts_of(sets)
    nodes = np.array([node for node, _ in sets.keys])
    assert len(sets.keys) > 200 and not often.all()
    for node in range(8):
        own = nodes == node
        assert counts[own & ~often].sum() <= 0.05 * 3000
        # As many as can be: the next one would exceed the share.
        assert (counts[own & ~often].sum() + counts[own & often].min()) > 0.05 * 3000
        assert counts[own & often].min() >= counts[own & ~often].max(initial=0)


def test_few_sets_are_all_scored():
    sets = many_sets(np.random.default_rng(1), count=40, n=4)
    assert often_drawn(sets).all()
    records = [ScoreRecord(-1.0, 0.01, np.nan, "ok")] * len(sets.keys)
    assert with_predictions(sets, np.zeros(len(records)), often_drawn(sets), records) == records


@pytest.mark.parametrize("seed", range(3))
def test_predictions_are_as_uncertain_as_they_say(seed):
    rng = np.random.default_rng(seed)
    sets = many_sets(rng)
    often = often_drawn(sets)
    effects = rng.normal(0.2, 0.3, size=(8, 8))
    rough = rng.normal(size=len(sets.keys))
    means = np.array([effects[node, list(parents)].sum() for node, parents in sets.keys])
    accurate = rough + means - 0.05 * np.log(counts_of(sets)) + 0.2 * rng.normal(size=len(rough))
    values, errors = predictions(sets, rough, accurate, often)
    z = (values - accurate[~often]) / errors
    assert abs(z.mean()) < 0.4 and 0.7 < z.std() < 1.3
    # Without the effects of single parents they would be off by far more.
    pooled = rough[~often] + (accurate - rough)[often].mean()
    assert np.std(values - accurate[~often]) < 0.8 * np.std(pooled - accurate[~often])


def test_a_node_with_one_known_set_takes_its_gap():
    sets = many_sets(np.random.default_rng(1), n=8)
    nodes = np.array([node for node, _ in sets.keys])
    known = np.array([k == np.flatnonzero(nodes == nodes[k])[0] for k in range(len(nodes))])
    gaps = np.arange(8.0)
    rough = np.zeros(len(nodes))
    values, errors = predictions(sets, rough, gaps[nodes], known)
    assert np.allclose(values, gaps[nodes][~known])
    assert np.allclose(errors, gaps.std())

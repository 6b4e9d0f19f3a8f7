"""Chains of all samplers: one shape, and states from which they go on as if nothing had happened."""

import numpy as np
import pytest

from gpn_bayes import samplers
from tests.outside_worlds import World

WORLD = World([[1], [0], [0, 1], [2]])
REQUIRED = np.zeros((4, 4), dtype=bool)
FORMATS = {
    ("exact", 1): set(),
    ("order", 1): {"ints", "score", "guests"},
    ("partition", 1): {"ints", "score", "guests"},
    ("partition", 3): {"ints", "scores", "betas", "exchanges", "progress", "guests"},
}


def chains_of(sampler, temperatures, count):
    # The exact sampler takes no parents from outside the candidates.
    world = World([[1, 2], [0, 2], [0, 1]]) if sampler == "exact" else WORLD
    kind = samplers.Partition(temperatures=temperatures) if temperatures > 1 else samplers.by_name(sampler)
    return kind.chains(world.tables(), REQUIRED[: world.n, : world.n], count)


@pytest.mark.parametrize(("sampler", "temperatures"), FORMATS)
def test_a_chain_goes_on_from_its_state(sampler, temperatures):
    first, second = chains_of(sampler, temperatures, 2)
    rng = np.random.default_rng(1)
    first.init(rng)
    first.step(rng, 7, 3, tuning=True)
    state = {name: values.copy() for name, values in first.state().items()}
    # Files of runs under way hold these arrays by these names.
    assert state.keys() == FORMATS[sampler, temperatures]
    at = rng.bit_generator.state
    block = first.step(rng, 20, 3, tuning=False)
    assert block.parents.shape == (20, len(first.required), 1) and np.isfinite(block.log_scores).all()

    def goes_on(chain):
        again = np.random.default_rng()
        again.bit_generator.state = at
        return chain.step(again, 20, 3, tuning=False)

    second.restore(state)
    for ours, theirs in zip(goes_on(second), block, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    # Negative control: what the first chain has moved on to is another state, unless draws are independent.
    if sampler != "exact":
        assert (goes_on(first).targets != block.targets).any()


@pytest.mark.parametrize(("sampler", "temperatures"), FORMATS)
def test_a_chain_counts_its_moves_and_exchanges(sampler, temperatures):
    chain = chains_of(sampler, temperatures, 1)[0]
    rng = np.random.default_rng(2)
    chain.init(rng)
    chain.step(rng, 50, 10, tuning=True)
    info = chain.info()
    assert info.counters.shape == (len(samplers.by_name(sampler).move_names), 2)
    assert (info.counters[:, 0] > 0).all() and (info.counters[:, 1] <= info.counters[:, 0]).all()
    assert info.exchanges.shape == (temperatures - 1, 2) and (info.exchanges[:, 0] > 0).all()
    assert info.betas.shape == (temperatures,) and info.betas[0] == 1.0


@pytest.mark.parametrize(("sampler", "temperatures"), FORMATS)
def test_the_score_of_a_state_is_that_of_what_it_stands_for(sampler, temperatures):
    """After a walk over DAGs too, which may leave a node with another outside candidate under the same mask."""
    first, second = chains_of(sampler, temperatures, 2)
    rng = np.random.default_rng(3)
    first.init(rng)
    for _ in range(50):
        first.step(rng, 1, 5, tuning=True)
        second.restore(first.state())  # which sums the score anew, and keeps the given one only if both agree
        for name, array in first.state().items():
            np.testing.assert_array_equal(second.state()[name], array, err_msg=name)

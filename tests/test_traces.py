"""Errors and R-hat of many traces at once are those that ArviZ finds one by one."""

import numpy as np
import pytest
from arviz_stats.base import array_stats

from gpn_bayes.posterior.estimate import binary_r_hats, mean_errors

SHAPES = [(4, 4), (4, 5), (3, 7), (4, 50), (1, 60), (3, 501)]


def binary_traces(shape: tuple[int, int], count: int = 60) -> np.ndarray:
    """Return traces of zeros and ones, rare and common, that stay where they are for a while or not."""
    rng = np.random.default_rng(7)
    traces = (rng.random((count, *shape)) < rng.choice([0.02, 0.2, 0.5, 0.95], (count, 1, 1))).astype(float)
    stay = rng.choice([0.0, 0.5, 0.97], count)
    for t in range(1, shape[1]):
        same = rng.random((count, shape[0])) < stay[:, None]
        traces[:, :, t] = np.where(same, traces[:, :, t - 1], traces[:, :, t])
    return traces[np.ptp(traces, axis=2).max(axis=1) > 0]


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weighted", [False, True])
def test_errors_are_those_of_arviz(shape, weighted):
    traces = binary_traces(shape)
    if weighted:
        traces = traces * np.random.default_rng(3).lognormal(size=shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = array_stats.mcse(traces)
    np.testing.assert_allclose(mean_errors(traces), expected, rtol=1e-10)


@pytest.mark.parametrize("shape", [shape for shape in SHAPES if shape[0] > 1])
def test_r_hats_are_those_of_arviz(shape):
    traces = binary_traces(shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = array_stats.rhat(traces)
    # Halves of chains that never move leave ArviZ with rounding errors in place of zeros.
    expected = np.where(expected > 1e6, np.inf, expected)
    np.testing.assert_allclose(binary_r_hats(traces), expected, rtol=1e-10)


def test_half_zeros_and_half_ones():
    """Folded at their median they are constant, which ArviZ leaves out of account."""
    traces = np.array([[[0, 1, 1, 0, 1, 0], [1, 0, 0, 1, 1, 0]]])
    with np.errstate(divide="ignore", invalid="ignore"):
        expected = array_stats.rhat(traces)
    np.testing.assert_allclose(binary_r_hats(traces), expected, rtol=1e-12)


def test_chains_that_part_are_noticed():
    apart = np.repeat([[[0.0], [1.0]]], 50, axis=2)
    apart[0, 0, 7] = 1
    assert binary_r_hats(apart)[0] > 5


@pytest.mark.parametrize("shape", [(2, 3, 3), (2, 1, 3)])
def test_too_few_draws_tell_nothing(shape):
    traces = np.random.default_rng(1).integers(2, size=shape)
    assert np.isnan(mean_errors(traces)).all() and np.isnan(binary_r_hats(traces)).all()


def test_one_chain_has_no_r_hat():
    assert np.isnan(binary_r_hats(np.random.default_rng(1).integers(2, size=(2, 1, 40)))).all()

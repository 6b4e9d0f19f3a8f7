"""Errors and R-hat of many traces at once: the numbers of ArviZ, without its loop over traces."""

import numpy as np
from scipy import fft

from gpn_bayes._util.types import Floats

# Below this, within-chain variances and split chains say nothing.
MIN_DRAWS = 4
# Most sums of autocorrelations end within these lags, which take less than a Fourier transform.
_FIRST_LAGS = 8


def mean_errors(traces: np.ndarray) -> np.ndarray:
    """Return the Monte Carlo standard error of the mean of each trace; NaN with fewer than four draws.

    Parameters
    ----------
    traces : ndarray of shape (trace, chain, draw)
        What was drawn.

    Examples
    --------
    >>> traces = np.random.default_rng(1).normal(size=(2, 4, 500))
    >>> np.abs(mean_errors(traces) * np.sqrt(2000) - 1).max() < 0.2
    np.True_
    """
    if traces.shape[2] < MIN_DRAWS:
        return np.full(len(traces), np.nan)
    halves = _split(traces)
    size = halves.shape[1] * halves.shape[2]
    with np.errstate(divide="ignore", invalid="ignore"):
        ess = size / np.maximum(_autocorrelation_times(halves), 1 / np.log10(size))
    ess[np.ptp(halves, axis=(1, 2)) < np.finfo(float).resolution] = size
    errors: Floats = traces.std(axis=(1, 2), ddof=1) / np.sqrt(ess)
    return errors


def binary_r_hats(traces: np.ndarray) -> np.ndarray:
    """Return the rank-normalised split R-hat of traces of zeros and ones; NaN for one chain or below four draws.

    Ranks of zeros and ones, folded or not, are a linear function of them, which leaves R-hat as it is: no ranks are
    needed.

    Parameters
    ----------
    traces : ndarray of shape (trace, chain, draw)
        What was drawn.

    Examples
    --------
    >>> binary_r_hats(np.array([[[0, 1, 0, 1], [1, 0, 0, 1]]])).round(3)
    array([0.707])
    """
    if traces.shape[1] < 2 or traces.shape[2] < MIN_DRAWS:
        return np.full(len(traces), np.nan)
    draws = traces.shape[2] // 2
    means = np.concatenate([traces[:, :, :draws].mean(axis=2), traces[:, :, -draws:].mean(axis=2)], axis=1)
    # The variance of zeros and ones follows from their mean.
    within = (means * (1 - means)).mean(axis=1) * draws / (draws - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        r_hats: Floats = np.sqrt(means.var(axis=1, ddof=1) / within + (draws - 1) / draws)
    return r_hats


def _split(traces: np.ndarray) -> np.ndarray:
    """Return the halves of chains as chains, without the middle draw of an odd number."""
    count, chains, draws = traces.shape
    half = draws // 2
    if 2 * half == draws:
        return traces.reshape(count, 2 * chains, half)
    return np.concatenate([traces[:, :, :half], traces[:, :, -half:]], axis=1)


def _autocorrelation_times(traces: np.ndarray) -> np.ndarray:
    """Return how many draws are worth one, by Geyer's initial monotone sequence (Vehtari et al. 2021)."""
    means = traces.mean(axis=2)
    centred = traces - means[:, :, None]
    between = means.var(axis=1, ddof=1) if traces.shape[1] > 1 else np.zeros(len(traces))
    draws = traces.shape[2]
    first = min(_FIRST_LAGS, draws)
    times, ended = _summed(_first_covariances(centred, first), between, draws)
    if first < draws and not ended.all():
        longer = ~ended
        times[longer], _ = _summed(_all_covariances(centred[longer]), between[longer], draws)
    return times


def _summed(covariances: np.ndarray, between: np.ndarray, draws: int) -> tuple[np.ndarray, np.ndarray]:
    """Return autocorrelation times from covariances at the first lags, and whether these lags were enough."""
    within = covariances[:, 0] * draws / (draws - 1)
    total = covariances[:, 0] + between
    rho = 1 - (within[:, None] - covariances) / total[:, None]
    rho[:, 0] = 1.0
    pairs = max(1, min(rho.shape[1] // 2, (draws - 1) // 2))
    sums = rho[:, 0 : 2 * pairs : 2] + rho[:, 1 : 2 * pairs : 2]
    # The first pair of lags whose correlations don't add up to something positive ends the sum.
    ends = sums <= 0
    ended = ends.any(axis=1)
    last = np.where(ended, ends.argmax(axis=1), pairs - 1)
    counted = np.arange(pairs) < last[:, None]
    monotone = np.where(counted, np.minimum.accumulate(sums, axis=1), 0.0).sum(axis=1)
    row = np.arange(len(rho))
    beyond = rho[row, 2 * last]
    beyond = np.where((beyond > 0) | (sums[row, last] >= 0), beyond, 0.0)
    return -1 + 2 * monotone + beyond, ended


def _first_covariances(centred: np.ndarray, lags: int) -> np.ndarray:
    """Return the autocovariances of each trace at a few lags, averaged over its chains."""
    _, chains, draws = centred.shape
    sums = [np.einsum("tcd,tcd->t", centred[..., lag:], centred[..., : draws - lag]) for lag in range(lags)]
    covariances: Floats = np.stack(sums, axis=1) / (chains * draws)
    return covariances


def _all_covariances(centred: np.ndarray) -> np.ndarray:
    """Return the autocovariances of each trace at all lags, averaged over its chains."""
    draws = centred.shape[2]
    size = fft.next_fast_len(2 * draws)
    spectrum = fft.rfft(centred, size, axis=2)
    power = (spectrum.real**2 + spectrum.imag**2).mean(axis=1)
    covariances: Floats = fft.irfft(power, size, axis=1)[:, :draws] / draws
    return covariances

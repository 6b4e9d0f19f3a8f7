"""Weighted means over draws, their errors, and R-hat: many traces at once, with the numbers of ArviZ."""

from html import escape
from typing import NamedTuple

import numpy as np
from scipy import fft

from gpn_bayes._util import cells
from gpn_bayes._util.arviz_stats import array_stats
from gpn_bayes._util.types import Floats

# Numbers of the largest table of traces that is made at a time: what a processor has at hand.
_CHUNK = 250_000
# Errors allow for this many draws more of an influential kind, as Agresti and Coull (1998) give a share two more
# successes. Chosen on 200 small networks whose posterior is known, and checked on 200 others.
_FURTHER_DRAWS = 3
# Below this, within-chain variances and split chains say nothing.
MIN_DRAWS = 4
# Most sums of autocorrelations end within these lags, which take less than a Fourier transform.
_FIRST_LAGS = 8


class Estimate(NamedTuple):
    """A posterior probability or mean with its standard error.

    Attributes
    ----------
    value : float
        The estimate.
    mcse : float
        Its Monte Carlo standard error, which allows for a few draws more of what is rare or weighs much, joined with
        what the errors of the scores add to it: 0 where the answer is exact, NaN where it can't be estimated, since the
        feature never changed in any of them or no chain ever left its value.
    ess : float
        How many independent draws the draws are worth for it, were the scores exact; of the log score where the feature
        never changed.

    Examples
    --------
    >>> answer = Estimate(value=0.314, mcse=0.012, ess=1496.0)
    >>> print(answer)
    0.314 ± 0.012
    >>> answer.value + 2 * answer.mcse < 0.5
    True
    """

    value: float
    mcse: float
    ess: float

    def __str__(self) -> str:
        """Show the value with its error."""
        return self._number()

    def _number(self) -> str:
        if self.mcse == 0:
            return f"{self.value:.3f} (exact)"
        if np.isnan(self.mcse):
            return f"{self.value:.3f}"
        return f"{self.value:.3f} ± {self.mcse:.3f}"

    @property
    def note(self) -> str:
        """What the answer takes for granted beside the assumptions of all answers; empty where that is nothing.

        Examples
        --------
        >>> Estimate(0.314, 0.012, 1496.0).note
        ''
        """
        return ""

    def with_note(self, note: str) -> "Estimate":
        """Return the same estimate with a note, if there is anything to say.

        Examples
        --------
        >>> print(Estimate(0.0, 0.0, np.inf).with_note("whatever the data say"))
        0.000 (exact), whatever the data say
        """
        if not note:
            return self
        noted = NotedEstimate(*self)
        noted._note = note
        return noted

    @cells.safe_html
    def _repr_html_(self) -> str:
        worth = f"as precise as {self.ess:,.0f} independent draws" if np.isfinite(self.ess) else ""
        if np.isnan(self.mcse):
            worth = "no error known: it never changed in the draws"
        number = f'<strong style="font-size:17px">{escape(self._number())}</strong>'
        return cells.cell(number, *(cells.note(text) for text in (worth, self.note) if text))


class NotedEstimate(Estimate):
    """An estimate with a note beside it; as a tuple it is the same."""

    _note: str = ""

    @property
    def note(self) -> str:
        """What the answer takes for granted beside the assumptions of all answers."""
        return self._note

    def __str__(self) -> str:
        """Show the value with its error and the note."""
        return f"{self._number()}, {self.note}"


class Moments(NamedTuple):
    """Estimates of several features at once, each an array over the features."""

    value: np.ndarray
    mcse: np.ndarray
    ess: np.ndarray
    status: np.ndarray


def exact_moments(value: np.ndarray, noise: np.ndarray | None = None) -> Moments:
    """Return values that carry no Monte Carlo error, but for the noise of the scores."""
    error = np.zeros_like(value) if noise is None else noise
    return Moments(value, error, np.full_like(value, np.inf), np.full(len(value), "exact"))


def weighted_moments(features: np.ndarray, which: np.ndarray, weights: np.ndarray, fallback_ess: float) -> Moments:
    """Return the weighted mean of each feature with its error.

    For a feature f with weights w, z_t = w_t (f_t - f^) / mean(w): the error s of f^ is that of the mean of z, and
    ess = f^ (1 - f^) / s^2 for a feature that is 0 or 1, the variance over s^2 in general.

    What is rare, or rests on few draws of large weight, shows too small an s in the runs in which it was drawn less
    often than it should be. So mcse^2 = s^2 + a^2 + b^2, where a and b are how far three draws more would move f^. For
    a, they are as influential as those drawn: a = 3 |sum z^3| / sum z^2 over the number of independent draws, 0 where
    f^ errs as far up as down. For b, they have the value farthest from f^ and the largest weight of all draws, which
    the k independent draws near that value may have missed: b falls with the root of k + 1.

    Parameters
    ----------
    features : ndarray of shape (dag, feature)
        Values of the features of distinct DAGs.
    which : ndarray of int, shape (chain, draw)
        Which of them each draw is.
    weights : ndarray of shape (chain, draw)
        Weights of the draws, any scale.
    fallback_ess : float
        The effective size to tell for a feature that never changes.

    Returns
    -------
    Moments
        `status` is "sampled", "never" or "always" (0 or 1 in every draw), "constant", or "chains disagree"
        (constant within every chain, but not the same in all).
    """
    step = max(1, _CHUNK // weights.size)
    w = weights / weights.mean()
    # At least one part, which may be empty.
    starts = range(0, max(features.shape[1], 1), step)
    parts = [_some_moments(features[:, start : start + step].T[:, which], w, fallback_ess) for start in starts]
    return Moments(*(np.concatenate(column) for column in zip(*parts, strict=True)))


def _some_moments(features: np.ndarray, w: np.ndarray, fallback_ess: float) -> Moments:
    """Return the moments of a few features (feature, chain, draw), given weights of mean one."""
    f = np.asarray(features, dtype=float)
    value = np.einsum("fcd,cd->f", f, w) / w.size
    lowest, highest = features.min(axis=2), features.max(axis=2)
    varies = (lowest != highest).any(axis=1)
    same = ~varies & (lowest == lowest[:, :1]).all(axis=1)
    value[same] = lowest[same, 0]  # free of rounding
    status = np.where(varies, "sampled", np.where(same, "constant", "chains disagree")).astype(object)
    status[same & (lowest[:, 0] == 0)] = "never"
    status[same & (lowest[:, 0] == 1)] = "always"
    distance = f - value[:, None, None]
    variance = np.einsum("fcd,fcd,cd->f", distance, distance, w) / w.size
    z = w * distance
    s = np.full(len(f), np.nan)
    if varies.any():
        s[varies] = mean_errors(z[varies])
    ess = np.full(len(f), np.nan)
    ess[same] = fallback_ess
    known = s > 0
    ess[known] = variance[known] / s[known] ** 2
    range_ = lowest.min(axis=1) * 1.0, highest.max(axis=1) * 1.0
    with np.errstate(divide="ignore", invalid="ignore"):
        allowance = _further_draws(z, s, w.max(), np.einsum("fcd->f", f) / w.size, value, range_)
    mcse = np.where(known, np.hypot(s, allowance), s)
    return Moments(value, mcse, ess, status)


def _further_draws(
    z: Floats, s: Floats, largest: float, mean: Floats, value: Floats, range_: tuple[Floats, Floats]
) -> Floats:
    """Return how far a few draws more of an influential kind would move weighted means.

    Parameters
    ----------
    z : ndarray of shape (feature, chain, draw)
        Weighted distances of the draws from the mean.
    s : ndarray of shape (feature,)
        Errors of the means of z.
    largest : float
        The largest weight.
    mean, value : ndarray of shape (feature,)
        Plain and weighted means.
    range_ : pair of ndarray of shape (feature,)
        The lowest and the highest value drawn.
    """
    size = z.shape[1] * z.shape[2]
    squares = np.einsum("fcd,fcd->f", z, z) / size
    # Draws that hang together come, and stay away, together.
    independent = np.minimum(squares / s**2, size)
    skew = np.einsum("fcd,fcd,fcd->f", z, z, z) / size / squares / independent
    low, high = range_
    nearer = np.minimum(mean - low, high - mean) / (high - low)
    unseen = np.maximum(high - value, value - low) * largest / independent / np.sqrt(nearer * independent + 1)
    moves: Floats = _FURTHER_DRAWS * np.hypot(skew, unseen)
    return moves


def with_spread_between(
    moments: Moments, features: np.ndarray, which: np.ndarray, weights: np.ndarray, tables: int
) -> Moments:
    """Return moments whose errors include how far they differ between completed tables.

    Each table has as many chains, one after the other. Of T tables, the error of the mean of their answers is the
    standard deviation of these over the root of T; it includes that of the draws, but as T is small, the error is the
    larger of the two.

    Parameters
    ----------
    moments : Moments
        What `weighted_moments` returned.
    features, which, weights : ndarray
        As given to it.
    tables : int
        How many tables there are, 2 or more.
    """
    answers = []
    for own, weight in zip(np.split(which, tables), np.split(weights, tables), strict=True):
        share = np.bincount(own.ravel(), weight.ravel(), len(features))
        answers.append(share @ features / share.sum())
    spread = np.std(answers, axis=0, ddof=1) / np.sqrt(tables)
    varies = spread > 0
    mcse = np.where(varies, np.fmax(moments.mcse, spread), moments.mcse)
    # Of a feature that is 0 or 1; where tables disagree altogether, each is worth one draw.
    variance = np.where(moments.mcse > 0, moments.ess * moments.mcse**2, moments.value * (1 - moments.value))
    ess = np.where(varies, variance / np.where(varies, mcse, 1.0) ** 2, moments.ess)
    status = np.where(varies & (moments.status == "chains disagree"), "sampled", moments.status)
    return Moments(moments.value, mcse, ess, status)


def ess_of(trace: np.ndarray) -> float:
    """Return the bulk effective size of a (chain, draw) trace; NaN where it can't be computed."""
    if trace.shape[1] < MIN_DRAWS or np.ptp(trace) == 0:
        return float("nan")
    return float(array_stats().ess(trace))


def r_hat_of(traces: np.ndarray) -> np.ndarray:
    """Return R-hat of traces (..., chain, draw); NaN where it can't be computed or the trace never moves."""
    shape = traces.shape[:-2]
    flat = np.asarray(traces, dtype=float).reshape(-1, *traces.shape[-2:])
    result = np.full(len(flat), np.nan)
    moves = np.ptp(flat, axis=-1).max(axis=-1) > 0
    if moves.any() and flat.shape[1] > 1 and flat.shape[2] >= MIN_DRAWS:
        # Half zeros and half ones lie all as far from their median, which leaves ArviZ's tail R-hat at 0 / 0;
        # it takes the bulk R-hat then.
        with np.errstate(divide="ignore", invalid="ignore"):
            result[moves] = array_stats().rhat(flat[moves])
    return result.reshape(shape)


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

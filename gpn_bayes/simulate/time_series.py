"""Time series drawn from a structural vector autoregression: instantaneous and lagged effects."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gpn_bayes._util.checks import check_positive, shown
from gpn_bayes._util.seeds import generator
from gpn_bayes._util.types import Floats
from gpn_bayes.simulate.random_dags import read_dag
from gpn_bayes.simulate.relations import signed_uniform

# Every mode of the process decays at least to this share from one time to the next.
_SLOWEST_DECAY = 0.95
# Weights are drawn at most this many times; if the process grows with all of them, the slowest growing are shrunk.
_MOST_DRAWS = 100
# Times that pass before a realisation begins; by then nothing is left of where it started.
_WARM_UP = 200


def svar(
    dag: Any,
    lagged: Any,
    lengths: int | Sequence[int],
    weight_range: tuple[float, float] = (0.5, 2.0),
    lagged_range: tuple[float, float] = (0.3, 0.5),
    noise_scale: float = 1.0,
    random_seed: int | np.random.SeedSequence | np.random.Generator | None = None,
) -> list[pd.DataFrame]:
    """Return realisations of X_t = X_t W + X_{t-1} A_1 + X_{t-2} A_2 + … + normal noise.

    Parameters
    ----------
    dag : networkx.DiGraph, DataFrame or array
        The DAG of effects within a time; the nodes of an array are named v1, v2, ….
    lagged : array of shape (lags, d, d)
        The effects of one time before, of two times before, …: entry (k, i, j) is 1 where i acts on j after k + 1
        times, else 0. Cycles and effects of a variable on itself are allowed.
    lengths : int or sequence of int
        How many times each realisation has.
    weight_range, lagged_range : pair of float
        Weights have magnitudes uniform in these ranges, and random signs. They are drawn again where the process would
        grow without bounds; if it does so 100 times, lagged weights are made smaller than the range: those of lag k by
        the same factor to the power of k.
    noise_scale : float
        Standard deviation of the noise.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.

    Returns
    -------
    list of DataFrame
        One per realisation, times as rows. Its ``attrs["weights"]`` holds the true W as nested lists, and
        ``attrs["lagged_weights"]`` the A of every lag: ``[i][j]`` is that of i -> j, 0 for none.

    Examples
    --------
    >>> import networkx as nx
    >>> series = svar(nx.DiGraph([("rain", "flow")]), [[[1, 0], [0, 1]]], lengths=[50, 80], random_seed=1)
    >>> [one.shape for one in series], series[0].columns.tolist()
    ([(50, 2), (80, 2)], ['rain', 'flow'])
    """
    sizes = _read_lengths(lengths)
    check_positive("noise_scale", noise_scale)
    matrix, names = read_dag(dag)
    present = _read_lagged(lagged, len(names))
    rng = generator("random_seed", random_seed)
    weights, lagged_weights = _stable_weights(rng, (matrix, weight_range), (present, lagged_range))
    # Solved for X_t, the effects within a time are part of the noise and of the lagged effects.
    total = np.linalg.inv(np.eye(len(names)) - weights)
    series = []
    for size in sizes:
        errors = noise_scale * rng.standard_normal((_WARM_UP + size, len(names)))
        frame = pd.DataFrame(_unroll(errors @ total, lagged_weights @ total)[_WARM_UP:], columns=pd.Index(names))
        frame.attrs.update(weights=weights.tolist(), lagged_weights=lagged_weights.tolist())
        series.append(frame)
    return series


def _read_lengths(lengths: int | Sequence[int]) -> list[int]:
    sizes = [lengths] if isinstance(lengths, int | np.integer) else list(lengths)
    if not sizes:
        raise ValueError("at least one realisation needs a length; received none")
    for size in sizes:
        if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 1:
            raise ValueError(f"every length must be a whole number, at least 1; received {shown(size)}")
    return [int(size) for size in sizes]


def _read_lagged(lagged: Any, d: int) -> NDArray[Any]:
    present = np.asarray(lagged)
    if present.ndim != 3 or present.shape[1:] != (d, d) or len(present) == 0:
        raise ValueError(f"lagged must have the shape (lags, {d}, {d}); received {present.shape}")
    if not np.isin(present, (0, 1)).all():
        raise ValueError("lagged must hold 0 and 1 only; received other numbers")
    return present


def _stable_weights(
    rng: np.random.Generator,
    within: tuple[NDArray[Any], tuple[float, float]],
    later: tuple[NDArray[Any], tuple[float, float]],
) -> tuple[Floats, Floats]:
    """Return weights with which the process doesn't grow, given where they are and their ranges."""
    best, chosen = 0.0, None
    for _ in range(_MOST_DRAWS):
        weights = np.where(within[0], signed_uniform(rng, within[0].shape, within[1]), 0.0)
        lagged_weights = np.where(later[0], signed_uniform(rng, later[0].shape, later[1], "lagged_range"), 0.0)
        factor = _stabilising_factor(lagged_weights @ np.linalg.inv(np.eye(len(weights)) - weights))
        if factor > best:
            powers = factor ** np.arange(1, len(lagged_weights) + 1)
            best, chosen = factor, (weights, lagged_weights * powers[:, None, None])
        if best == 1:
            break
    assert chosen is not None
    return chosen


def _stabilising_factor(effects: Floats) -> float:
    """Return c, at most 1, such that effects of lag k times c^k decay: c multiplies every mode of the process."""
    lags, d, _ = effects.shape
    # The state is X_t, X_{t-1}, … as one row; times this matrix, it is that of the next time.
    following = np.eye(lags * d, k=d)
    following[:, :d] = effects.reshape(lags * d, d)
    slowest = np.abs(np.linalg.eigvals(following)).max()
    return min(1.0, _SLOWEST_DECAY / slowest) if slowest > 0 else 1.0


def _unroll(errors: Floats, effects: Floats) -> Floats:
    """Return the values that the errors and the effects of earlier values add up to, from zeros on."""
    values = errors.copy()
    for t in range(len(values)):
        for k in range(min(len(effects), t)):
            values[t] += values[t - k - 1] @ effects[k]
    return values

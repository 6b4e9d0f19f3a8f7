"""Sums of one client's rows with noise for differential privacy, and the statistics that come of all clients' sums.

Every row is clipped and scaled to whole numbers of 2^-20 between -1 and 1, so that all sums are whole numbers of 2^-40.
Arithmetic on them is exact: what a row adds to the sums doesn't depend on other rows, and the noise, which is on the
same grid, covers every digit.
"""

import math
from collections.abc import Sequence

import numpy as np

from gpn_bayes._util.types import Floats
from gpn_bayes.data import PrivacyNoise, SufficientStatistics
from gpn_bayes.federated.moments import FRACTION_BITS, from_digits, to_digits
from gpn_bayes.federated.privacy import GRID_BITS, Privacy, noise_variance
from gpn_bayes.secure.discrete_gaussian import discrete_gaussian

_VALUE_BITS = GRID_BITS // 2
# Products of this many rows add up exactly in floats.
_BLOCK = 1 << (53 - GRID_BITS)


def noisy_digits(values: Floats, names: Sequence[str], privacy: Privacy, clients: int) -> Floats:
    """Return the digits of one client's n, sum z and sum zz' (upper triangle) of its scaled rows z, plus its noise.

    Parameters
    ----------
    values : ndarray of shape (rows, variables)
        Finite numbers.
    names : sequence of str
        The variables.
    privacy : Privacy
        How private the sum over all clients must be.
    clients : int
        How many of them there are.

    Returns
    -------
    ndarray
        As `gpn_bayes.federated.moments.moment_digits`.
    """
    scaled = scaled_rows(values, names, privacy)
    augmented = np.column_stack([np.full(len(scaled), 2.0**_VALUE_BITS), scaled])
    upper = np.triu_indices(augmented.shape[1])
    sums = discrete_gaussian(noise_variance(privacy, clients), len(upper[0]))
    for start in range(0, len(augmented), _BLOCK):
        block = augmented[start : start + _BLOCK]
        products = (block.T @ block)[upper].tolist()
        sums = [total + int(product) for total, product in zip(sums, products, strict=True)]
    return to_digits([total << (FRACTION_BITS - GRID_BITS) for total in sums])


def scaled_rows(values: Floats, names: Sequence[str], privacy: Privacy) -> Floats:
    """Return rows clipped to the bounds, scaled to [-1, 1] and shortened, as whole numbers of 2^-20.

    Examples
    --------
    >>> privacy = Privacy(1.0, 1e-6, {"x": (0, 10), "y": (-3, 3)}, radius=1.0)
    >>> (scaled_rows(np.array([[7.5, 0.0], [1e9, -1e9]]), ["x", "y"], privacy) / 2**20).round(3).tolist()
    [[0.5, 0.0], [0.707, -0.707]]
    """
    lowest, highest = _ends(names, privacy)
    centre, half = _centre_and_half(names, privacy)
    # Clipped first, as differences may overflow, and once more for their rounding.
    scaled = np.clip((np.clip(values, lowest, highest) - centre) / half, -1.0, 1.0)
    if privacy.radius is not None:
        lengths = np.sqrt((scaled**2).sum(axis=1, keepdims=True))
        scaled *= privacy.radius / np.maximum(lengths, privacy.radius)
    whole: Floats = np.trunc(np.ldexp(scaled, _VALUE_BITS))
    return whole


def noisy_statistics(digits: Floats, names: Sequence[str], privacy: Privacy, clients: int) -> SufficientStatistics:
    """Return statistics in the data's units from the sums of all clients' digits.

    Eigenvalues of the sums of squares and products below the size of the noise are raised to it, so that the covariance
    is positive definite.

    Raises
    ------
    ValueError
        If there are fewer than two rows, with noise.
    """
    d = len(names)
    matrix = np.empty((d + 1, d + 1))
    rows, columns = np.triu_indices(d + 1)
    matrix[rows, columns] = matrix[columns, rows] = [total / (1 << FRACTION_BITS) for total in from_digits(digits)]
    n = round(float(matrix[0, 0]))
    if n < 2:
        raise ValueError(
            f"the number of rows, with noise, must be at least 2; it is {n}: use more rows or a larger epsilon"
        )
    noise = privacy.noise_scale() * math.sqrt(clients / max(clients - 1, 1))
    mean = np.clip(matrix[0, 1:] / n, -1.0, 1.0)
    values, vectors = np.linalg.eigh(matrix[1:, 1:] - n * np.outer(mean, mean))
    raised = (vectors * np.maximum(values, noise * math.sqrt(d))) @ vectors.T
    cov = (raised + raised.T) / (2 * (n - 1))
    # The delta method: derivatives by the product, by the sums of both variables, which may be one, and by n.
    by_sums = np.add.outer(mean**2, mean**2) + np.diag(2 * mean**2)
    sd = noise / (n - 1) * np.sqrt(1 + by_sums + (np.outer(mean, mean) - cov) ** 2)
    centre, half = _centre_and_half(names, privacy)
    units = np.outer(half, half)
    guarantee = PrivacyNoise(privacy.epsilon, privacy.delta, sd * units)
    return SufficientStatistics(n, centre + half * mean, cov * units, tuple(names), guarantee)


def _ends(names: Sequence[str], privacy: Privacy) -> tuple[Floats, Floats]:
    lowest, highest = np.array([privacy.bounds[name] for name in names]).T
    return lowest, highest


def _centre_and_half(names: Sequence[str], privacy: Privacy) -> tuple[Floats, Floats]:
    """Return the middle of every variable's bounds, and half the distance between them."""
    lowest, highest = _ends(names, privacy)
    return (lowest + highest) / 2, (highest - lowest) / 2

"""Differential privacy of pooled statistics: what is asked for, and how much noise that takes."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from reprlib import repr as shortened
from typing import Any

from gpn_bayes.federated.plan import Plan
from gpn_bayes.secure.gaussian_mechanism import (
    LARGEST_DELTA,
    LARGEST_EPSILON,
    LEAST_DELTA,
    LEAST_EPSILON,
    noise_multiplier,
)

# Sums of scaled values, and noise, are whole numbers in units of 2^-40.
GRID_BITS = 40
_LEAST_GRID_POINTS = 2.0**30  # in the standard deviation of a client's noise
_LEAST_RADIUS = 1e-3
_SMALLEST, _LARGEST = 1e-100, 1e100  # of bounds, so that products of ranges are floats
_UPWARDS = 1 + 1e-9  # more than the rounding of floats may add to the length of a row


@dataclass(frozen=True)
class Privacy:
    """The differential privacy that statistics must have, and what is known of the data without looking at them.

    Two tables are neighbours if one of them has one row more, whichever client's. With statistics of either, the
    probability of any outcome differs by a factor of at most exp(epsilon), but for a probability of delta.

    Parameters
    ----------
    epsilon : float
        The privacy loss, up to 100; below 1 is strong, above 10 weak.
    delta : float
        The probability with which the loss may be larger; well below one over the number of rows, such as 1e-6.
    bounds : dict of str to pair of float
        Lowest and highest value of every variable. Values beyond them are clipped. They are public, and must come from
        general knowledge (a scale's ends, the range of an instrument), not from the data. The narrower, the less the
        noise matters.
    radius : float, optional
        Largest length (Euclidean norm) of a row after every variable is scaled to -1 at its lowest and 1 at its highest
        value; longer rows are shortened. It is public too. By default no row is shortened: at the square root of the
        number of variables. Most rows are much shorter than that: if bounds are four standard deviations from the mean,
        the average squared length is 1/16 per variable. ``sqrt(variables / 8)`` then shortens few
        rows, and takes four times less noise with eleven variables.

    Examples
    --------
    >>> privacy = Privacy(epsilon=1.0, delta=1e-6, bounds={"x": (0, 10), "y": (-3, 3)})
    >>> round(privacy.noise_scale(), 2)
    10.35
    >>> Privacy(epsilon=1.0, delta=1e-6, bounds={"x": (10, 0)})
    Traceback (most recent call last):
    ValueError: bounds must be pairs of finite numbers, the lowest value first; those of 'x' are (10, 0)
    """

    epsilon: float
    delta: float
    bounds: Mapping[str, tuple[float, float]]
    radius: float | None = None

    def __post_init__(self) -> None:
        """Check everything: it may come from a coordinator that means no good."""
        for name, least, most in (
            ("epsilon", LEAST_EPSILON, LARGEST_EPSILON),
            ("delta", LEAST_DELTA, LARGEST_DELTA),
        ):
            number = _number(getattr(self, name))
            if number is None or not least <= number <= most:
                raise ValueError(
                    f"{name} must lie between {least:g} and {most:g}; received {shortened(getattr(self, name))}"
                )
            object.__setattr__(self, name, number)
        if not isinstance(self.bounds, Mapping) or not self.bounds:
            raise ValueError(f"bounds must give a pair of numbers for each variable; received {shortened(self.bounds)}")
        object.__setattr__(self, "bounds", {str(name): _pair(name, pair) for name, pair in self.bounds.items()})
        if self.radius is not None:
            radius = _number(self.radius)
            if radius is None or radius < _LEAST_RADIUS:
                raise ValueError(f"radius must be a number, {_LEAST_RADIUS} or more; received {shortened(self.radius)}")
            object.__setattr__(self, "radius", radius)

    def sensitivity(self) -> float:
        """Return the largest length of what one row adds to the sums: 1, its scaled values, and their products.

        Examples
        --------
        >>> bounds = {name: (0, 1) for name in "abc"}
        >>> round(Privacy(1.0, 1e-6, bounds).sensitivity() ** 2, 6), 1 + 3 + 6
        (10.0, 10)
        >>> round(Privacy(1.0, 1e-6, bounds, radius=0.5).sensitivity() ** 2, 6)
        1.3125
        """
        d = len(self.bounds)
        square = d if self.radius is None else min(self.radius, math.sqrt(d)) ** 2
        # Squares of products i <= j add up to (|z|^4 + sum of z_i^4) / 2, and |z_i| is at most 1 and at most |z|.
        return math.sqrt(1 + square + (square**2 + min(square, square**2)) / 2) * _UPWARDS

    def noise_scale(self) -> float:
        """Return the standard deviation of the noise that the guarantee needs in each sum of scaled values.

        It is that of the analytic Gaussian mechanism: `sensitivity` times
        `gpn_bayes.secure.gaussian_mechanism.noise_multiplier`.

        The noise is on a grid and not continuous. That costs at most ``(m + 1 / s^2) / (8 g^2)`` of delta, for m sums
        and noise of s times the sensitivity and g times the grid: continuous noise that is rounded to the grid gives
        the same guarantee as continuous noise, and its probabilities are those of discrete Gaussian noise times a
        factor between ``exp(-m / (24 g^2))`` and ``exp(|x|^2 / (24 g^2))`` at x standard deviations. The cost is below
        1e-16 and subtracted from delta. That the sum of several clients' discrete Gaussian noise isn't quite discrete
        Gaussian costs less than exp(-10^18) (Kairouz, Liu & Steinke 2021).
        """
        d = len(self.bounds)
        multiplier = noise_multiplier(self.epsilon, self.delta)
        grid_points = multiplier * self.sensitivity() * 2.0**GRID_BITS
        lost = ((d + 1) * (d + 2) / 2 + multiplier**-2) / (8 * grid_points**2)
        return noise_multiplier(self.epsilon, self.delta - lost) * self.sensitivity()


def planned_privacy(plan: Plan) -> Privacy | None:
    """Return what a plan of program "statistics" asks for; None if it asks for none.

    Raises
    ------
    ValueError
        As `read_privacy`, and for plain sums, which reveal each client's answer with a part of the noise.
    """
    privacy = read_privacy(plan.options, plan.variables)
    if privacy is not None:
        check_secure(plan.secure)
        noise_variance(privacy, len(plan.clients))
    return privacy


def read_privacy(settings: Mapping[str, Any], names: Sequence[str]) -> Privacy | None:
    """Return what the settings of a run ask for; None where there are none.

    Raises
    ------
    ValueError
        For settings that are unknown, missing or out of range, and bounds of other variables.
    """
    if not settings:
        return None
    known = ("epsilon", "delta", "bounds", "radius")
    for name in settings:
        if name not in known:
            raise ValueError(f"settings of statistics are {', '.join(known)}; received {shortened(name)}")
    for name in known[:3]:
        if name not in settings:
            raise ValueError(f"settings of statistics must include {name} if there are any; they don't")
    privacy = Privacy(**settings)
    check_variables(privacy, names)
    return privacy


def check_variables(privacy: Privacy, names: Sequence[str]) -> None:
    """Refuse bounds that aren't those of the variables, one pair for each."""
    odd = sorted(set(names) ^ set(privacy.bounds))
    if odd:
        what = "has none" if odd[0] in names else "is no variable"
        raise ValueError(f"bounds must be given for every variable and nothing else; {shortened(odd[0])} {what}")


def check_secure(secure: bool) -> None:
    """Refuse noise without masks."""
    if not secure:
        raise ValueError(
            "privacy needs secure sums: plain ones show each client's answer, with only a part of the noise"
        )


def noise_variance(privacy: Privacy, clients: int) -> int:
    """Return the variance of one client's noise, in squares of the grid.

    All clients but one add up to what the guarantee needs, so it holds towards each of them, who knows its own.
    """
    variance = privacy.noise_scale() ** 2 / max(clients - 1, 1)
    if variance < (_LEAST_GRID_POINTS / 2.0**GRID_BITS) ** 2:
        raise ValueError(f"noise can't be split among {clients} clients; use fewer of them, or a smaller epsilon")
    return math.ceil(math.ldexp(variance, 2 * GRID_BITS))


def _number(value: Any) -> float | None:
    """Return a finite number as a float; None for anything else."""
    if isinstance(value, bool) or not isinstance(value, Real):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


def _pair(name: Any, pair: Any) -> tuple[float, float]:
    numbers = [_number(end) for end in pair] if isinstance(pair, Sequence) and len(pair) == 2 else []
    lowest, highest = numbers if len(numbers) == 2 else (None, None)
    if lowest is None or highest is None or not lowest < highest:
        raise ValueError(
            "bounds must be pairs of finite numbers, the lowest value first; those of "
            f"{shortened(name)} are {shortened(pair)}"
        )
    if max(abs(lowest), abs(highest)) > _LARGEST or highest - lowest < _SMALLEST:
        raise ValueError(
            f"bounds must be at most {_LARGEST:g} in size and at least {_SMALLEST:g} apart; those of "
            f"{shortened(name)} are {shortened(pair)}"
        )
    return lowest, highest

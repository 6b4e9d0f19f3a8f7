"""The one source of randomness of every move, which a test can replay.

A move never calls the generator itself: it draws through `choose` and `choose_weighted`, from a `Chance`. In
normal use, ``Chance(rng)``, the generator decides. With a script, ``Chance(rng, new_script([1, 0], 64))``, the
outcomes are prescribed and each draw notes how many outcomes it had and how probable the prescribed one was, so
that a test can walk through every path of a move and build its exact transition matrix.
"""

from typing import NamedTuple

import numpy as np

from gpn_bayes.kernels.arrays import Floats
from gpn_bayes.kernels.compiled import compiled, inner

# Rows of a script: the prescribed outcomes, the number of outcomes met, their probabilities, the cursor.
OUTCOME, OPTIONS, PROBABILITY, CURSOR = 0, 1, 2, 3
_NO_SCRIPT: Floats = np.zeros((4, 0))


class Chance(NamedTuple):
    """What decides every outcome of a move.

    Attributes
    ----------
    rng : Generator
        Decides where there is no script.
    script : ndarray of float64, shape (4, draws)
        The prescribed outcomes, and what is noted of each draw; empty if nothing is prescribed.
    """

    rng: np.random.Generator
    script: Floats = _NO_SCRIPT


def new_script(outcomes: list[int], length: int) -> Floats:
    """Return a script that prescribes some first outcomes, and 0 for the rest."""
    script = np.zeros((4, length))
    script[OUTCOME, : len(outcomes)] = outcomes
    return script


@inner
def is_scripted(chance: Chance) -> bool:
    """Tell whether outcomes are prescribed."""
    scripted: bool = chance.script.shape[1] > 0
    return scripted


@inner
def prescribed(chance: Chance) -> int:
    """Return the next prescribed outcome."""
    cursor = int(chance.script[CURSOR, 0])
    chance.script[CURSOR, 0] += 1
    return int(chance.script[OUTCOME, cursor])


@compiled
def note(chance: Chance, options: int, probability: float) -> None:
    """Note how many outcomes the last draw had, and the probability of the prescribed one."""
    cursor = int(chance.script[CURSOR, 0]) - 1
    chance.script[OPTIONS, cursor] = options
    chance.script[PROBABILITY, cursor] = probability


@compiled
def choose(chance: Chance, k: int) -> int:
    """Draw one of 0, …, k - 1 uniformly."""
    if is_scripted(chance):
        outcome = prescribed(chance)
        note(chance, k, 1.0 / k)
        return outcome
    return int(chance.rng.random() * k)


@inner
def choose_weighted(chance: Chance, log_weights: Floats) -> int:
    """Draw an index with probability proportional to exp(log_weights); at least one must be finite."""
    k = len(log_weights)
    top = log_weights.max()
    weights = np.exp(log_weights - top)
    total = weights.sum()
    if is_scripted(chance):
        # Outcomes are counted among those that can happen: a test must not walk into the others.
        wanted = prescribed(chance)
        possible = np.flatnonzero(weights)
        note(chance, len(possible), weights[possible[wanted]] / total)
        return int(possible[wanted])
    target = chance.rng.random() * total
    reached = 0.0
    chosen = 0
    for index in range(k):
        if weights[index] > 0.0:
            chosen = index
            reached += weights[index]
            if target < reached:
                break
    return chosen

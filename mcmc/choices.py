"""The one source of randomness of every move, which a test can replay.

A move never calls the generator itself: it draws through `choose` and `choose_weighted`. In normal use
the script is empty and the generator decides. With a script (see `new_script`) the outcomes are
prescribed and each draw notes how many outcomes it had and how probable the prescribed one was, so that
a test can walk through every path of a move and build its exact transition matrix.
"""

import numpy as np

from gpn_bayes.kernels.arrays import Floats
from gpn_bayes.kernels.compiled import compiled, inner

# Rows of a script: the prescribed outcomes, the number of outcomes met, their probabilities, the cursor.
OUTCOME, OPTIONS, PROBABILITY, CURSOR = 0, 1, 2, 3


def no_script() -> Floats:
    """Return the empty script: the generator decides."""
    return np.zeros((4, 0))


def new_script(outcomes: list[int], length: int) -> Floats:
    """Return a script that prescribes some first outcomes, and 0 for the rest."""
    script = np.zeros((4, length))
    script[OUTCOME, : len(outcomes)] = outcomes
    return script


@inner
def is_scripted(script: Floats) -> bool:
    """Tell whether outcomes are prescribed."""
    scripted: bool = script.shape[1] > 0
    return scripted


@inner
def prescribed(script: Floats) -> int:
    """Return the next prescribed outcome."""
    cursor = int(script[CURSOR, 0])
    script[CURSOR, 0] += 1
    return int(script[OUTCOME, cursor])


@compiled
def note(script: Floats, options: int, probability: float) -> None:
    """Note how many outcomes the last draw had, and the probability of the prescribed one."""
    cursor = int(script[CURSOR, 0]) - 1
    script[OPTIONS, cursor] = options
    script[PROBABILITY, cursor] = probability


@compiled
def choose(rng: np.random.Generator, script: Floats, k: int) -> int:
    """Draw one of 0, …, k - 1 uniformly."""
    if is_scripted(script):
        outcome = prescribed(script)
        note(script, k, 1.0 / k)
        return outcome
    return int(rng.random() * k)


@inner
def choose_weighted(rng: np.random.Generator, script: Floats, log_weights: Floats) -> int:
    """Draw an index with probability proportional to exp(log_weights); at least one must be finite."""
    k = len(log_weights)
    top = log_weights.max()
    weights = np.exp(log_weights - top)
    total = weights.sum()
    if is_scripted(script):
        # Outcomes are counted among those that can happen: a test must not walk into the others.
        wanted = prescribed(script)
        possible = np.flatnonzero(weights)
        note(script, len(possible), weights[possible[wanted]] / total)
        return int(possible[wanted])
    target = rng.random() * total
    reached = 0.0
    chosen = 0
    for index in range(k):
        if weights[index] > 0.0:
            chosen = index
            reached += weights[index]
            if target < reached:
                break
    return chosen

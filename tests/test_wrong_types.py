"""Numbers and seeds of all public scores, samplers and learners: a value of another type is refused in one line."""

import inspect
import math
import re

import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes.estimators.base import GraphEstimator

ROOMS = (gpn, gpn.scores, gpn.samplers, gpn.estimators, gpn.federated)
KINDS = (gpn.Space, gpn.samplers.Sampler, gpn.scores.Score, GraphEstimator)
SEEDS = ("seed", "random_state", "random_seed")
TABLE = pd.DataFrame(np.random.default_rng(1).normal(size=(40, 2)), columns=["a", "b"])
TABLE["c"] = TABLE["a"] - TABLE["b"] ** 2


def constructors():
    """Return the public classes of what has settings, and needs none."""
    found = [getattr(room, name) for room in ROOMS for name in room.__all__]
    kinds = {kind for kind in found if inspect.isclass(kind) and issubclass(kind, KINDS)}
    chosen = [kind for kind in kinds if not inspect.isabstract(kind) and not required(kind)]
    return sorted(chosen, key=lambda kind: (kind.__module__, kind.__name__))


def required(kind):
    return [own for own in parameters(kind) if own.default is own.empty]


def parameters(kind):
    return list(inspect.signature(kind).parameters.values())


def wrong_values(parameter):
    """Return what a number or a seed can't be, by its annotation; nothing for other parameters."""
    written = inspect.formatannotation(parameter.annotation)
    number = re.search(r"\b(int|float)\b", written) and not re.search(r"\[", written)
    if not number and parameter.name not in SEEDS:
        return []
    wrong = ["zz", {}, object(), math.nan]
    wrong += [] if "bool" in written else [True]
    return wrong + ([] if "None" in written or parameter.name in SEEDS and not number else [None])


def use(kind, setting):
    """Make one, and have a learner read its settings, as scikit-learn has it: when it is fitted."""
    made = kind(**setting)
    if isinstance(made, GraphEstimator):
        table = TABLE > 0 if made.get_params().get("score") == "k2" else TABLE
        made.fit([table, table] if kind.__module__.startswith("gpn_bayes.federated") else table)


CASES = [(kind, own) for kind in constructors() for own in parameters(kind) if wrong_values(own)]


def test_the_walk_finds_them():
    names = {(kind.__name__, own.name) for kind, own in CASES}
    assert {("BGe", "alpha_mu"), ("GP", "seed"), ("Partition", "temperatures"), ("Space", "max_parents")} <= names
    assert {("HillClimbing", "random_state"), ("Exact", "gap"), ("FederatedNOTEARS", "threshold")} <= names
    assert len(names) > 60


@pytest.mark.parametrize(("kind", "parameter"), CASES, ids=[f"{kind.__name__}-{own.name}" for kind, own in CASES])
def test_a_value_of_another_type_is_refused_in_one_line(kind, parameter):
    for value in wrong_values(parameter):
        with pytest.raises(ValueError) as refused:
            use(kind, {parameter.name: value})
        message = str(refused.value)
        assert parameter.name in message and "; received " in message and "\n" not in message, (value, message)

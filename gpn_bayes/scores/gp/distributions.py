"""PyMC distributions as priors of hyperparameters: which are allowed, what defines them, and their densities.

PyMC is loaded with this file, so it is only imported where a prior is stated as a PyMC distribution.
"""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from numpy.typing import NDArray
from pymc.distributions.distribution import SymbolicRandomVariable
from pymc.distributions.mixture import MixtureRV, MixtureTransformWarning
from pymc.distributions.transforms import _default_transform
from pymc.logprob.utils import ParameterValueError
from pytensor.compile.maker import function
from pytensor.graph.basic import Constant
from pytensor.graph.replace import clone_replace
from pytensor.graph.traversal import ancestors
from pytensor.tensor.random.op import RandomVariable
from pytensor.tensor.random.type import RandomType
from pytensor.tensor.type_other import NoneTypeT

from gpn_bayes._util.types import Floats

# Numbers that PyTensor computes with in single precision.
_SINGLE = ("int8", "uint8", "int16", "uint16", "float16", "float32")
_RULE = "must have a continuous prior of one positive number with constant parameters, unnamed and in no model"


def simplified(name: str, distribution: Any) -> Any:
    """Return a PyMC distribution in double precision, or (shape, scale) if it is inverse gamma; refuse what can't be.

    Parameters
    ----------
    name : str
        What it is the prior of, for the message.
    distribution : TensorVariable
        As ``pm.LogNormal.dist(0, 1)`` makes it.
    """
    if unfit := _unfit(distribution):
        raise ValueError(f"{name} {_RULE}; received {unfit}")
    doubled = _in_double(distribution)
    # PyMC transforms what is continuous and bounded, to the positive numbers or further, wherever it knows the bounds.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", MixtureTransformWarning)
        transform = _default_transform(doubled.owner.op, doubled)
    try:
        negative = np.isfinite(_compiled(doubled)(-np.logspace(-4, 4, 161))).any()
    except ParameterValueError as error:
        rule = str(error).partition("\n")[0]
        raise ValueError(f"{name} must have a prior with {rule}; received {describe(doubled)}") from None
    if transform is None or negative:
        raise ValueError(f"{name} {_RULE}; received {name_of(doubled)}")
    if name_of(doubled) == "InverseGamma":
        shape, scale = describe(doubled)["parameters"]
        return shape, scale
    return doubled


def normal_parameters(distribution: Any) -> tuple[float, float] | None:
    """Return mean and standard deviation of a ``pm.Normal.dist``, None for anything else."""
    if _unfit(distribution) or name_of(distribution) != "Normal":
        return None
    mean, sd = describe(_in_double(distribution))["parameters"]
    return mean, sd


def describe(distribution: Any) -> dict[str, Any]:
    """Return what defines a distribution, JSON-able: its name and its parameters, which may be distributions again.

    Parameters are those PyTensor draws with, such as a scale where PyMC takes a rate.
    """
    given = [x for x in distribution.owner.inputs if not isinstance(x.type, RandomType | NoneTypeT)]
    # Some distributions take their size, empty here, as a parameter.
    values = [describe(x) if _is_random(x) else _plain(_constant(x)) for x in given]
    return {"distribution": name_of(distribution), "parameters": [value for value in values if value != []]}


def log_density(distribution: Any) -> Callable[[Floats], Floats]:
    """Return the log density of log x as a function of it; NaN and infinities are minus infinity."""
    compiled = _compiled(distribution)

    def of_log(log_x: Floats) -> Floats:
        values = compiled(np.exp(log_x)) + log_x
        return np.where(np.isfinite(values), values, -np.inf)

    return of_log


def _compiled(distribution: Any) -> Callable[[Floats], Floats]:
    x = pt.dvector("x")
    # Compiled code would only pay for many more points.
    log_density: Callable[[Floats], Floats] = function([x], pm.logp(distribution, x), mode="FAST_COMPILE")
    return log_density


def _is_random(variable: Any) -> bool:
    return variable.owner is not None and isinstance(variable.owner.op, RandomVariable | SymbolicRandomVariable)


def name_of(distribution: Any) -> str:
    """Return a distribution's name in PyMC."""
    name: str = distribution.owner.op._print_name[0]
    return name


def _unfit(distribution: Any) -> str:
    """Return what is wrong with a variable as a prior, as far as its graph tells; empty if nothing is."""
    if not _is_random(distribution):
        return "an expression of PyTensor"
    name = name_of(distribution)
    if distribution.name is not None:
        return f"the variable {distribution.name!r}"
    if distribution.ndim > 0:
        return f"{name} with {distribution.ndim} dimension{'s' if distribution.ndim > 1 else ''}"
    # What a custom distribution computes doesn't follow from its name and parameters; a censored one has point masses.
    if name in ("CustomDist", "Censored") or not distribution.dtype.startswith("float"):
        return name
    return "" if _is_constant(distribution) else f"{name} with a parameter that may vary"


def _is_constant(distribution: Any) -> bool:
    """Tell whether all parameters are constants; the components of a mixture are distributions of which this holds."""
    given = [x for x in distribution.owner.inputs if not isinstance(x.type, RandomType | NoneTypeT)]
    if isinstance(distribution.owner.op, MixtureRV):
        weights, *components = given
        if not all(_is_random(x) and _is_constant(x) for x in components):
            return False
        given = [weights]
    return all(isinstance(x, Constant) or x.owner is not None and not _is_random(x) for x in ancestors(given))


def _in_double(distribution: Any) -> Any:
    """Return the same distribution with parameters in double precision, where PyMC keeps them open to that.

    PyTensor takes 2 or 0.5 for numbers in single precision, and computes their logarithms and reciprocals as such.
    """
    if not isinstance(distribution.owner.op, RandomVariable):
        return distribution
    numbers = [x for x in ancestors([distribution]) if isinstance(x, Constant) and getattr(x, "dtype", "") in _SINGLE]
    doubles: dict[Any, Any] = {x: pt.constant(x.data.astype(np.float64)) for x in numbers}
    return clone_replace(distribution, doubles, rebuild_strict=False)


def _constant(variable: Any) -> NDArray[Any]:
    value: NDArray[Any] = variable.data if isinstance(variable, Constant) else variable.eval(mode="FAST_COMPILE")
    return value


def _plain(value: NDArray[Any]) -> Any:
    """Return numbers as JSON has them; it has no infinity."""
    if np.ndim(value):
        return [_plain(part) for part in value]
    return float(value) if np.isfinite(value) else str(float(value))

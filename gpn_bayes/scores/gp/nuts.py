"""Draws of a Gaussian process' hyperparameters by PyMC's NUTS, with nutpie as its back end.

The model that PyMC is given has one vector, phi = (log sigma, log theta_1, …), and one term: the log density that the
package's own compiled code computes, gradient included. It is compiled once for every length of phi; which posterior it
calls is a number among its data.
"""

import dataclasses
import functools
import itertools
import threading
from typing import Any

import numba
import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pytensor.gradient import disconnected_type
from pytensor.graph.basic import Apply
from pytensor.graph.op import Op
from pytensor.link.numba.dispatch.basic import get_numba_type, numba_funcify, numba_njit

from gpn_bayes._util.extras import installed_by
from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.scores.gp.modes import HyperPosterior, Modes

with installed_by("nuts"):
    import nutpie

# Chains start near the best modes; at least two, so that they can be compared.
_FEWEST_CHAINS, _MOST_CHAINS = 2, 4
# A mode this many nats below the best has negligible mass, and a chain there might never leave.
_NEGLIGIBLE = 10.0
# Chains start a standard deviation from a mode, or one e-fold where the posterior is flatter than this or its Hessian
# isn't known; half of that, as often as it takes to find a density, up to a limit.
_LEAST_CURVATURE, _TRIES = 0.25, 20

# The posteriors that are being drawn from, by number.
_posteriors: dict[int, HyperPosterior] = {}
_numbers = itertools.count(1)
_compiling = threading.Lock()


class _LogDensity(Op):
    """The log density of a posterior, given by its number, and the gradient, at phi."""

    __props__ = ()

    def make_node(self, *inputs: Any) -> Apply[Any]:
        number, phi = inputs
        return Apply(self, [number, phi], [pt.dscalar(), phi.type()])

    def perform(self, node: Apply[Any], inputs: Any, outputs: Any) -> None:
        number, phi = inputs
        value, gradient = _posteriors[int(number)].log_density_and_gradient(np.ascontiguousarray(phi))
        outputs[0][0], outputs[1][0] = np.asarray(value), gradient

    def connection_pattern(self, node: Apply[Any]) -> list[list[bool]]:
        return [[False, False], [True, True]]

    def pullback(self, inputs: Any, outputs: Any, cotangents: Any) -> list[Any]:
        return [disconnected_type(), cotangents[0] * outputs[1]]


@numba_funcify.register(_LogDensity)
def _call_python(op: _LogDensity, node: Apply[Any], **_: Any) -> Any:
    """Tell numba to call Python, which PyTensor would do by itself, but warn of."""
    result_type = numba.types.Tuple([get_numba_type(output.type) for output in node.outputs])

    def perform(number: Ints, phi: Floats) -> tuple[Floats, Floats]:
        outputs: list[list[Any]] = [[None], [None]]
        op.perform(node, (number, phi), outputs)
        return outputs[0][0], outputs[1][0]

    @numba_njit
    def log_density(number: Any, phi: Any) -> Any:
        with numba.objmode(result=result_type):
            result = perform(number, phi)
        return result

    return log_density


@functools.cache
def _compile(size: int) -> Any:
    with pm.Model() as model:
        number = pm.Data("number", 0)
        phi = pm.Flat("phi", shape=size, initval=np.zeros(size))
        pm.Potential("log_density", _LogDensity().make_node(number, phi).outputs[0])
    return nutpie.compile_pymc_model(model)


def _compiled_model(size: int) -> Any:
    with _compiling:
        return _compile(size)


def _starts(posterior: HyperPosterior, modes: Modes, rng: np.random.Generator) -> Floats:
    """Return the points at which chains start, one per row: near the modes that matter, twice near some if few.

    Not at them: a gradient tells nutpie the scale of a posterior, and at a mode it tells nothing.
    """
    kept = np.flatnonzero(modes.heights > modes.heights[0] - _NEGLIGIBLE)[:_MOST_CHAINS]
    chosen = np.resize(kept, max(len(kept), _FEWEST_CHAINS))
    return np.array([_start_near(posterior, modes.points[k], modes.hessians[k], rng) for k in chosen])


def _start_near(posterior: HyperPosterior, mode: Floats, hessian: Floats, rng: np.random.Generator) -> Floats:
    curvatures = np.diag(hessian)
    step = rng.standard_normal(len(mode)) / np.sqrt(np.where(curvatures > _LEAST_CURVATURE, curvatures, 1.0))
    for _ in range(_TRIES):
        value, gradient = posterior.log_density_and_gradient(mode + step)
        if np.isfinite(value) and np.isfinite(gradient).all():
            break
        step *= 0.5
    return mode + step


def nuts_draws(
    posterior: HyperPosterior, modes: Modes, draws: int, rng: np.random.Generator, tune: int = 300
) -> Floats:
    """Draw hyperparameters from their posterior with NUTS, in chains that start near its modes.

    Up to four modes have a chain each, a single mode has two. Chains that don't move from one mode to the other
    weigh the modes wrongly: compare them before relying on that.

    Parameters
    ----------
    posterior : HyperPosterior
        The posterior. Only one chain runs at a time, so that it needn't be safe for threads.
    modes : Modes
        Its modes, best first.
    draws : int
        The number of draws wanted in all; rounded up to a multiple of the number of chains.
    rng : numpy.random.Generator
        The source of all randomness.
    tune : int, default 300
        Steps of each chain before its draws are kept.

    Returns
    -------
    ndarray of shape (chains, draws per chain, size)
        Values of phi.

    Examples
    --------
    >>> from gpn_bayes.scores.gp.basis import Basis
    >>> from gpn_bayes.scores.gp.low_rank import LowRankPosterior
    >>> from gpn_bayes.scores.gp.priors import HyperPriors
    >>> moments = Basis(np.random.default_rng(1).normal(size=(50, 2))).moments(0, (1,))
    >>> posterior = LowRankPosterior(moments, HyperPriors().for_parents(1))
    >>> nuts_draws(posterior, posterior.find_modes(), 100, np.random.default_rng(2), tune=100).shape
    (2, 50, 2)
    """
    if len(modes.points) == 0:
        raise ValueError("NUTS needs a mode to start from; received none")
    if draws < 1 or tune < 1:
        raise ValueError(f"draws and tune must be 1 or more; received {draws} and {tune}")
    starts = _starts(posterior, modes, rng)
    turns = itertools.cycle(starts)
    number = next(_numbers)
    _posteriors[number] = posterior
    try:
        model = _compiled_model(starts.shape[1]).with_data(number=number)
        # Chains are made one after the other, each asking for a start.
        model = dataclasses.replace(model, initial_point_func=lambda seed: next(turns).copy())
        sampler = nutpie.sample(
            model,
            draws=-(-draws // len(starts)),
            tune=tune,
            chains=len(starts),
            cores=1,
            seed=int(rng.integers(2**63)),
            save_warmup=False,
            progress_bar=False,
            blocking=False,
        )
        try:
            trace = sampler.wait()
        except BaseException:
            sampler.cancel()
            raise
    finally:
        del _posteriors[number]
    phi: Floats = trace["posterior"]["phi"].to_numpy()
    return phi

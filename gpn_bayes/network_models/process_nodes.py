"""A node as a Gaussian process of its parents, in PyMC: with its functions integrated out, or drawn.

A drawn function has weights w, a priori standard normal: f(x) = k(x, z) L'^-1 w with z points over the range of the
parent and L L' the kernel's matrix there. So f is the process itself at z, and its expectation given these elsewhere.

Given the hyperparameters, the weights of a node have a normal posterior, N(m, (R R')^-1). A sampler finds it hard to
move through them as they are, and easy as v = R'(w - m), which are standard normal whatever the hyperparameters: the
sampler's own coordinates of w are v. This changes neither prior nor posterior, however well m and R fit the rows.
"""

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.logprob.transforms import Transform
from pytensor.tensor.linalg import block_diag, cholesky, solve_triangular

from gpn_bayes._util.types import Floats
from gpn_bayes.network_models.columns import ROW, Column
from gpn_bayes.scores.gp.priors import HyperPriors
from gpn_bayes.scores.gp.pymc_model import function_covariance, hyperparameter

# How far apart points are at most, in the score's units, and how many there may be; a kernel whose length scale is no
# shorter than their distance loses less than a hundredth of its variance between them.
SPACING, _FEWEST, _MOST = 1 / 3, 6, 60
# Keeps a kernel's matrix positive definite.
_JITTER = 1e-9


class _Whitening(Transform):  # type: ignore[misc]  # PyMC has no types
    """The coordinates R'(w - m) of weights w, given m and R as the last parameters of their distribution."""

    name = "whitened"
    ndim_supp = 1

    def forward(self, value: Any, *inputs: Any) -> Any:
        centre, root = inputs[-2:]
        return root.T @ (value - centre)

    def backward(self, value: Any, *inputs: Any) -> Any:
        centre, root = inputs[-2:]
        return centre + solve_triangular(root.T, value, lower=False)

    def log_jac_det(self, value: Any, *inputs: Any) -> Any:
        return -pt.log(pt.diag(inputs[-1])).sum()


class _Points(NamedTuple):
    """The points of a parent at which its function is drawn, and the weights that carry values there to the rows."""

    places: Floats
    to_rows: Floats


def add_marginal_node(node: Column, parents: Sequence[Column], priors: HyperPriors, kernel: str) -> None:
    """Add a node to the model being built, its mean and its function of the parents integrated out.

    Parameters
    ----------
    node : Column
        The node.
    parents : sequence of Column
        Its parents, which are in the model.
    priors : HyperPriors
        The priors of the hyperparameters.
    kernel : {"additive", "interaction"}
        The kernel.
    """
    data = node.data()
    rows = data.shape[0]
    mean, sd = np.array(priors.mu)
    covariance = sd**2 * pt.ones((rows, rows))
    if parents:
        x = pt.stack([parent.variable for parent in parents], axis=-1)
        covariance += function_covariance(x, len(parents), priors, kernel, node.label(""))
    sigma = hyperparameter(node.label("sigma"), priors.stated("sigma"))
    covariance += sigma**2 * pt.eye(rows)
    centre = pt.full((rows,), node.centre + node.scale * mean)
    pm.MvNormal(node.name, mu=centre, cov=node.scale**2 * covariance, observed=data, dims=ROW)


def add_drawn_node(node: Column, parents: Sequence[Column], priors: HyperPriors) -> None:
    """Add a node to the model being built, with its mean and its functions, one a parent, as variables.

    Parameters
    ----------
    node : Column
        The node.
    parents : sequence of Column
        Its parents, which are in the model.
    priors : HyperPriors
        The priors of the hyperparameters and of the mean.
    """
    mean, sd = np.array(priors.mu)
    if not parents:
        sigma = hyperparameter(node.label("sigma"), priors.stated("sigma"))
        node.observe(pm.Normal(node.label("mean"), mu=mean, sigma=sd), sigma)
        return
    points = [_points_of(parent.standardised) for parent in parents]
    theta = hyperparameter(node.label("theta"), priors.stated("theta"), dims=node.label("parent"))
    sigma = hyperparameter(node.label("sigma"), priors.stated("sigma"))
    roots = [_root(own.places, theta[k]) for k, own in enumerate(points)]
    weights = _weights(node, points, roots, sigma, (float(mean), float(sd)))
    ends = np.cumsum([len(own.places) for own in points])
    expected = pm.Deterministic(node.label("mean"), mean + sd * weights[-1])
    for k, (parent, own, root, end) in enumerate(zip(parents, points, roots, ends, strict=True)):
        at_points = solve_triangular(root.T, weights[end - len(own.places) : end], lower=False)
        expected = expected + _kernel(parent.variable, own.places, theta[k]) @ at_points
    node.observe(expected, sigma)


def _points_of(x: Floats) -> _Points:
    lowest, highest = float(x.min()), float(x.max())
    count = min(max(math.ceil((highest - lowest) / SPACING) + 1, _FEWEST), _MOST)
    places = np.linspace(lowest, highest, count)
    # A kernel that is smooth over a few points interpolates between them.
    theta = 2 * (places[1] - places[0])
    among = np.exp(-0.5 * ((places[:, None] - places) / theta) ** 2) + _JITTER * np.eye(count)
    to_rows = np.linalg.solve(among, np.exp(-0.5 * ((places[:, None] - x) / theta) ** 2)).T
    return _Points(places, to_rows)


def _kernel(a: Any, b: Floats, theta: Any) -> Any:
    return pt.exp(-0.5 * ((a[:, None] - b[None, :]) / theta) ** 2)


def _root(places: Floats, theta: Any) -> Any:
    """Return L, with L L' the kernel's matrix among the points."""
    return cholesky(_kernel(pt.constant(places), places, theta) + _JITTER * np.eye(len(places)))


def _weights(node: Column, points: Sequence[_Points], roots: Any, sigma: Any, mu: tuple[float, float]) -> Any:
    """Add the weights of all functions and of the mean, which comes last, to the model."""
    mean, sd = mu
    to_rows = np.column_stack([*(own.to_rows for own in points), np.ones(len(node.values))])
    gram, with_y = to_rows.T @ to_rows, to_rows.T @ (node.standardised - mean)
    size = len(gram)
    # The rows' expectation is to_rows @ factor @ w, nearly.
    factor = block_diag(*roots, pt.constant([[sd]]))
    root = cholesky(pt.eye(size) + factor.T @ pt.constant(gram) @ factor / sigma**2)
    right = factor.T @ pt.constant(with_y) / sigma**2
    centre = solve_triangular(root.T, solve_triangular(root, right, lower=True), lower=False)
    name, dim = node.label("weights"), node.label("weight")
    pm.modelcontext(None).add_coord(dim, np.arange(size))
    return pm.CustomDist(
        name,
        centre,
        root,
        logp=_standard_normal,
        random=_draw_standard_normal,
        support_point=_centre,
        signature="(m),(m,m)->(m)",
        transform=_Whitening(),
        dims=dim,
    )


def _standard_normal(value: Any, *_: Any) -> Any:
    return pt.sum(-0.5 * value**2 - 0.5 * math.log(2 * math.pi))


def _draw_standard_normal(centre: Floats, root: Floats, rng: np.random.Generator, size: Any = None) -> Floats:
    return rng.standard_normal(centre.shape)


def _centre(variable: Any, size: Any, centre: Any, root: Any) -> Any:
    """Return where chains start."""
    return centre

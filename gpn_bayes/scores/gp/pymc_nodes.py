"""A node as a Gaussian process of its parents, in PyMC: with its functions integrated out, or drawn.

A drawn function has weights w, a priori standard normal: its values at points z over the range of the parent are L w,
with L L' the kernel's matrix there, and elsewhere f(x) = c(x)' L w, with c(x) coefficients that carry the values at z
to x. These don't depend on the length scale; beyond the points, f stays as it is at the last of them.

Given the hyperparameters, the weights of a node have a normal posterior, N(m, (R R')^-1). A sampler finds it hard to
move through them as they are, and easy as v = R'(w - m), which are standard normal whatever the hyperparameters: the
sampler's own coordinates of w are v. This changes neither prior nor posterior, also where other rows are observed than
those that m and R are of.
"""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.logprob.transforms import Transform
from pytensor.tensor.linalg import block_diag, cholesky, solve_triangular

from gpn_bayes._util.types import Floats
from gpn_bayes.scores.gp.priors import HyperPriors
from gpn_bayes.scores.gp.pymc_model import function_covariance, hyperparameter
from gpn_bayes.scores.pymc_columns import ROW, Column

# How far apart points are at most, in the score's units, and how many there may be.
_SPACING, _FEWEST, _MOST = 0.25, 6, 60
# The kernel that carries values from points to anywhere has this length scale, relative to the distance between points.
_SMOOTHNESS = 2.25
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


class _Points:
    """The points at which the function of a parent is drawn, evenly over its range.

    Parameters
    ----------
    parent : Column
        The parent.
    """

    def __init__(self, parent: Column) -> None:
        x = parent.standardised
        self._ends = float(x.min()), float(x.max())
        count = min(max(math.ceil((self._ends[1] - self._ends[0]) / _SPACING) + 1, _FEWEST), _MOST)
        self.places = np.linspace(*self._ends, count)
        self._theta = _SMOOTHNESS * float(self.places[1] - self.places[0])
        among = np.exp(-0.5 * ((self.places[:, None] - self.places) / self._theta) ** 2)
        self._inverse = np.linalg.inv(among + _JITTER * np.eye(count))
        # The coefficients that carry values at the points to the rows.
        self.to_rows: Floats = np.exp(-0.5 * ((x[:, None] - self.places) / self._theta) ** 2) @ self._inverse

    def __len__(self) -> int:
        """Return their number."""
        return len(self.places)

    def root(self, theta: Any) -> Any:
        """Return L, with L L' the kernel's matrix among the points."""
        return cholesky(_kernel(pt.constant(self.places), self.places, theta) + _JITTER * np.eye(len(self)))

    def carry(self, values: Any, x: Any) -> Any:
        """Return a function's values at x, given those at the points."""
        return _kernel(pt.clip(x, *self._ends), self.places, self._theta) @ (self._inverse @ values)


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
    points = [_Points(parent) for parent in parents]
    theta = hyperparameter(node.label("theta"), priors.stated("theta"), dims=node.label("parent"))
    sigma = hyperparameter(node.label("sigma"), priors.stated("sigma"))
    roots = [own.root(theta[k]) for k, own in enumerate(points)]
    weights = _weights(node, points, roots, sigma, (float(mean), float(sd)))
    ends = np.cumsum([len(own) for own in points])
    expected = pm.Deterministic(node.label("mean"), mean + sd * weights[-1])
    for parent, own, root, end in zip(parents, points, roots, ends, strict=True):
        expected = expected + own.carry(root @ weights[end - len(own) : end], parent.variable)
    node.observe(expected, sigma)


def _kernel(a: Any, b: Floats, theta: Any) -> Any:
    return pt.exp(-0.5 * ((a[:, None] - b[None, :]) / theta) ** 2)


def _weights(node: Column, points: Sequence[_Points], roots: Any, sigma: Any, mu: tuple[float, float]) -> Any:
    """Add the weights of all functions and of the mean, which comes last, to the model."""
    mean, sd = mu
    to_rows = np.column_stack([*(own.to_rows for own in points), np.ones(len(node.values))])
    gram, with_y = to_rows.T @ to_rows, to_rows.T @ (node.standardised - mean)
    size = len(gram)
    # The rows' expectation is to_rows @ factor @ w.
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

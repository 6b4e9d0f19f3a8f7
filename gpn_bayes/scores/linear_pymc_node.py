"""A node as a linear regression on its parents, in PyMC, with the priors that BGe implies."""

from collections.abc import Sequence

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from gpn_bayes.scores.equations import LinearEquation
from gpn_bayes.scores.pymc_columns import Column


def add_linear_node(node: Column, parents: Sequence[Column], prior: LinearEquation) -> None:
    """Add a node and its regression to the model being built.

    Parameters
    ----------
    node : Column
        The node.
    parents : sequence of Column
        Its parents, which are in the model.
    prior : LinearEquation
        What is known of the regression beforehand: around zero, coefficients independent given the noise.
    """
    sigma2 = pm.InverseGamma(node.label("sigma2"), alpha=0.5 * prior.df, beta=0.5 * prior.residual)
    sigma = pt.sqrt(sigma2)
    mean = pm.Normal(node.label("intercept"), mu=0.0, sigma=sigma / np.sqrt(prior.rows))
    if parents:
        spread = np.sqrt(np.diag(prior.spread))
        dims = node.label("parent")
        coefficient = pm.Normal(node.label("coefficient"), mu=0.0, sigma=sigma * spread, dims=dims)
        units = np.array([node.scale / parent.scale for parent in parents])
        pm.Deterministic(node.label("slope"), coefficient * units, dims=dims)
        for place, parent in enumerate(parents):
            mean = mean + coefficient[place] * parent.variable
    node.observe(mean, sigma)

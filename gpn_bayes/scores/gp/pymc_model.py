"""The Gaussian-process score's model written out in PyMC: every matrix dense, every prior by its name.

The score itself is computed by `gpn_bayes.kernels`. This is the same model as a textbook states it, for looking at, for
sampling the hyperparameters with NUTS, and for checking the fast statement against.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pymc as pm
import pytensor.tensor as pt
from pymc.distributions.shape_utils import change_dist_size

from gpn_bayes import graphs
from gpn_bayes._util.checks import check_choice
from gpn_bayes._util.types import Floats
from gpn_bayes.scores.base import Node
from gpn_bayes.scores.gp.priors import KERNELS, HyperPriors


def pymc_model(
    values: Floats,
    names: Sequence[str],
    node: Node,
    parents: Sequence[Node] = (),
    priors: HyperPriors | None = None,
    kernel: str = "additive",
) -> pm.Model:
    """Return the model whose evidence is the Gaussian-process score of a node given its parents.

    With y the node's column and x_i those of its parents, both standardised,

    - theta_i ~ InverseGamma(2, 2), the length scale of parent i,
    - sigma ~ InverseGamma(1, 1), the standard deviation of the noise,
    - y ~ MvNormal(0, sum_i K_i + 1 1' + sigma^2 I), K_i having the entries exp(-(x_i - x_i')^2 / (2 theta_i^2)).

    The term 1 1' is what the mean mu, a priori N(0, 1), leaves behind when it is integrated out. With the interaction
    kernel, tau1 sum_i K_i + tau2 sum_{i<j} K_i K_j, entry by entry, stands in the place of sum_i K_i, where tau1 and
    tau2 ~ InverseGamma(1, 1).

    Parameters
    ----------
    values : ndarray of shape (rows, variables)
        The standardised table (mean 0, standard deviation 1 with ``ddof=1``).
    names : sequence of str
        The names of its columns.
    node : str or int
        The variable, by name or index.
    parents : sequence of str or int
        Its parents; the coordinate ``parent`` has them in this order.
    priors : HyperPriors, optional
        The priors, where they aren't as above.
    kernel : {"additive", "interaction"}
        The kernel.

    Returns
    -------
    pymc.Model
        With free variables ``sigma`` and ``theta`` (dimension ``parent``), for the interaction kernel from two parents
        on ``tau1`` and ``tau2``, observed variable ``y`` and the data containers ``y_data`` (dimension ``row``) and
        ``x_data`` (dimensions ``row``, ``parent``), which `pymc.set_data` replaces, in this order where the number of
        rows changes. Without parents there are only ``sigma``, ``y`` and ``y_data``.

    Examples
    --------
    >>> import numpy as np
    >>> values = np.random.default_rng(1).normal(size=(20, 3))
    >>> values = (values - values.mean(0)) / values.std(0, ddof=1)
    >>> model = pymc_model(values, ["raf", "mek", "erk"], "erk", ["raf", "mek"])
    >>> model.coords["parent"]
    ('raf', 'mek')
    >>> [variable.name for variable in model.value_vars]
    ['theta_log__', 'sigma_log__']

    ``pymc.sample(model=model)`` draws the hyperparameters.
    """
    check_choice("kernel", kernel, KERNELS)
    target, given = _check_columns(values, names, node, parents)
    priors = HyperPriors() if priors is None else priors
    # As arrays, because PyTensor takes a plain 2.0 for single precision.
    mean, sd = np.array(priors.mu)
    with pm.Model(coords={"parent": [names[p] for p in given]} if given else {}) as model:
        y_data = pm.Data("y_data", values[:, target], dims="row")
        covariance = sd**2 * pt.ones((y_data.shape[0], y_data.shape[0]))
        if given:
            x = pm.Data("x_data", values[:, given], dims=("row", "parent"))
            covariance += function_covariance(x, len(given), priors, kernel)
        sigma = hyperparameter("sigma", priors.stated("sigma"))
        covariance += sigma**2 * pt.eye(y_data.shape[0])
        pm.MvNormal("y", mu=mean, cov=covariance, observed=y_data, dims="row")
    return model


def function_covariance(x: Any, parents: int, priors: HyperPriors, kernel: str, prefix: str = "") -> Any:
    """Add the length scales (and weights) of a kernel to the model, and return the covariance of the function's values.

    Parameters
    ----------
    x : TensorVariable of shape (rows, parents)
        The parents' columns, standardised.
    parents : int
        Their number.
    priors : HyperPriors
        The priors.
    kernel : {"additive", "interaction"}
        sum_i K_i, or tau1 sum_i K_i + tau2 sum_{i<j} K_i K_j.
    prefix : str
        What names begin with: of the variables theta, tau1 and tau2, and of the dimension parent.
    """
    theta = hyperparameter(f"{prefix}theta", priors.stated("theta"), dims=f"{prefix}parent")
    gaps = x[:, None, :] - x[None, :, :]
    kernels = pt.exp(-(gaps**2) / (2.0 * theta**2))
    if kernel == "additive" or parents < 2:
        return kernels.sum(axis=-1)
    pairs = [kernels[..., i] * kernels[..., j] for j in range(parents) for i in range(j)]
    tau1, tau2 = (hyperparameter(f"{prefix}{name}", priors.stated("tau")) for name in ("tau1", "tau2"))
    return tau1 * kernels.sum(axis=-1) + tau2 * sum(pairs[1:], start=pairs[0])


def hyperparameter(name: str, prior: Any, dims: str | None = None) -> Any:
    """Add a variable to the model: one number, or one for every coordinate of a dimension."""
    if isinstance(prior, tuple):
        shape, scale = np.array(prior)
        return pm.InverseGamma(name, alpha=shape, beta=scale, dims=dims)
    model = pm.modelcontext(None)
    # A copy of its own: a variable belongs to one model, under one name.
    copied = change_dist_size(prior, (model.dim_lengths[dims],) if dims else ())
    return model.register_rv(copied, name, dims=(dims,) if dims else None)


def _check_columns(values: Floats, names: Sequence[str], node: Node, parents: Sequence[Node]) -> tuple[int, list[int]]:
    """Return the column of the node and those of its parents."""
    if np.ndim(values) != 2 or np.shape(values)[1] != len(names):
        raise ValueError(
            f"values must have one column per name; received shape {np.shape(values)} for {len(names)} names"
        )
    target = graphs.node_index(node, names)
    given = [graphs.node_index(parent, names) for parent in parents]
    if target in given or len(set(given)) < len(given):
        listed = [names[p] for p in given]
        raise ValueError(f"parents must be distinct and differ from the node {names[target]!r}; received {listed}")
    return target, given

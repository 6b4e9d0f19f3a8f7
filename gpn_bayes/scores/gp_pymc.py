"""The Gaussian-process score's model written out in PyMC: every matrix dense, every prior by its name.

The score itself is computed by `gpn_bayes.kernels`. This is the same model as a textbook states it, for looking at, for
sampling the hyperparameters with NUTS, and for checking the fast statement against.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import pymc as pm
import pytensor.tensor as pt

from gpn_bayes import graphs
from gpn_bayes.scores.base import Node

# Shape and scale of the inverse gamma priors.
DEFAULT_PRIORS: Mapping[str, tuple[float, float]] = {"sigma": (1.0, 1.0), "theta": (2.0, 2.0)}


def pymc_model(
    values: np.ndarray,
    names: Sequence[str],
    node: Node,
    parents: Sequence[Node] = (),
    priors: Mapping[str, tuple[float, float]] | None = None,
) -> pm.Model:
    """Return the model whose evidence is the Gaussian-process score of a node given its parents.

    With y the node's column and x_i those of its parents, both standardised,

    - theta_i ~ InverseGamma(2, 2), the length scale of parent i,
    - sigma ~ InverseGamma(1, 1), the standard deviation of the noise,
    - y ~ MvNormal(0, sum_i K_i + 1 1' + sigma^2 I), K_i having the entries exp(-(x_i - x_i')^2 / (2 theta_i^2)).

    The term 1 1' is what the mean, a priori N(0, 1), leaves behind when it is integrated out.

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
    priors : mapping, optional
        Shape and scale of the inverse gamma priors of ``"sigma"`` and ``"theta"``, where they aren't as above.

    Returns
    -------
    pymc.Model
        With free variables ``sigma`` and ``theta`` (dimension ``parent``), observed variable ``y`` and the data
        containers ``y_data`` (dimension ``row``) and ``x_data`` (dimensions ``row``, ``parent``), which `pymc.set_data`
        replaces, in this order where the number of rows changes. Without parents there is neither ``theta`` nor
        ``x_data``.

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
    target, given = _check_columns(values, names, node, parents)
    shapes_and_scales = _check_priors(priors)
    with pm.Model(coords={"parent": [names[p] for p in given]} if given else {}) as model:
        y_data = pm.Data("y_data", values[:, target], dims="row")
        covariance = pt.ones((y_data.shape[0], y_data.shape[0]))
        if given:
            x = pm.Data("x_data", values[:, given], dims=("row", "parent"))
            shape, scale = shapes_and_scales["theta"]
            theta = pm.InverseGamma("theta", alpha=shape, beta=scale, dims="parent")
            gaps = x[:, None, :] - x[None, :, :]
            covariance += pt.exp(-(gaps**2) / (2.0 * theta**2)).sum(axis=-1)
        shape, scale = shapes_and_scales["sigma"]
        sigma = pm.InverseGamma("sigma", alpha=shape, beta=scale)
        covariance += sigma**2 * pt.eye(y_data.shape[0])
        pm.MvNormal("y", mu=0.0, cov=covariance, observed=y_data, dims="row")
    return model


def _check_columns(
    values: np.ndarray, names: Sequence[str], node: Node, parents: Sequence[Node]
) -> tuple[int, list[int]]:
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


def _check_priors(priors: Mapping[str, tuple[float, float]] | None) -> dict[str, np.ndarray]:
    """Return both priors' shape and scale, the defaults where none are given."""
    chosen = {**DEFAULT_PRIORS, **(priors or {})}
    for name, numbers in chosen.items():
        if name not in DEFAULT_PRIORS:
            raise ValueError(f"priors must be of {' or '.join(map(repr, DEFAULT_PRIORS))}; received {name!r}")
        if len(numbers) != 2 or not all(0.0 < number < np.inf for number in numbers):
            raise ValueError(f"a prior must be a shape and a scale, both positive; {name!r} has {numbers!r}")
    # As arrays, because PyTensor takes a plain 2.0 for single precision, and then its logarithm is wrong by 2e-9.
    return {name: np.array(numbers, dtype=np.float64) for name, numbers in chosen.items()}

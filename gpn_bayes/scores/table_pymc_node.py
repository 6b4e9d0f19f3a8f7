"""A node as categories whose probabilities depend on its parents' categories, in PyMC, with Dirichlet priors."""

from collections.abc import Sequence

import numpy as np
import pymc as pm

from gpn_bayes._util.types import Ints
from gpn_bayes.scores.pymc_columns import BETWEEN, ROW


def add_table_node(name: str, codes: Ints, parents: Sequence[str], imagined: float) -> None:
    """Add a node and its table of conditional probabilities to the model being built.

    Parameters
    ----------
    name : str
        The node, whose levels are the dimension "name::level".
    codes : ndarray of int
        Its level in every row.
    parents : sequence of str
        Its parents, which are in the model.
    imagined : float
        The rows that the prior imagines in each cell of the table.
    """
    model = pm.modelcontext(None)
    dims = [f"{variable}{BETWEEN}level" for variable in (*parents, name)]
    shape = tuple(len(model.coords[dim]) for dim in dims)
    table = pm.Dirichlet(f"{name}{BETWEEN}probability", a=np.full(shape, imagined), dims=dims)
    data = pm.Data(f"{name}{BETWEEN}data", codes, dims=ROW)
    own = table[tuple(model[parent] for parent in parents)] if parents else table
    pm.Categorical(name, p=own, observed=data, dims=ROW)

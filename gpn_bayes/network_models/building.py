"""The entry point: a table and a DAG in, a PyMC model of the whole network out."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from gpn_bayes import graphs, scores
from gpn_bayes._util.checks import check_choice
from gpn_bayes.data import TableKeywords, described, read_complete, refuse_interventions, refuse_weights
from gpn_bayes.scores.base import Scorer, lacking

if TYPE_CHECKING:
    import pymc as pm

FUNCTIONS = ("drawn", "marginal")
# What ArviZ and PyMC have other uses for: names of dimensions, signs between the parts of names, and what the names of
# transformed variables end in.
_TAKEN_NAMES, _TAKEN_SIGNS, _TAKEN_END = ("row", "chain", "draw"), ("::", "/"), "__"


def pymc_network(
    data: Any, graph: Any, score: Any = "gp", *, functions: str = "drawn", **table: Unpack[TableKeywords]
) -> "pm.Model":
    """Return one PyMC model of a whole network: every node given its parents, with the priors of a score.

    Every column is an observed variable under its own name and in the units of the table, and depends on its parents'
    variables. So ``pm.sample(nuts_sampler="nutpie")`` draws the parameters, ``pm.do`` sets columns, in units of the
    table, and ``pm.sample_posterior_predictive`` on what it returns draws all that follows from them.

    Parameters of a node's equation are named "node::parameter", in units of standardised columns, which is where
    the score has its priors, but for ``slope`` and ``noise``.

    BGe: a linear regression. ``sigma2`` is inverse gamma with shape (alpha_w - n + l + 1) / 2 and scale t0 / 2, for l
    parents among n variables; given it, the ``intercept`` is normal with variance sigma2 / alpha_mu, and each
    ``coefficient`` with variance sigma2 / t0. ``slope`` is the change of the node for one unit of a parent, and
    ``noise`` the standard deviation of the noise, both in units of the table.

    GP: ``sigma``, ``theta`` (and ``tau1``, ``tau2``) are as in `gpn_bayes.scores.GP.pymc_model`. With
    ``functions="drawn"``, ``mean`` and the functions of the parents are variables too: ``weights``, a priori standard
    normal, of values at points a quarter of a standard deviation apart, between which a function is smooth. So
    length scales much shorter than 0.4 aren't followed, and beyond the range of the rows a function stays as it is at
    the end. With ``functions="marginal"``, functions are integrated out and the covariance matrix is written out: the
    log density is that of the score, to rounding. But then a node's function isn't known to ``pm.do``, under which
    ``pm.sample_posterior_predictive`` draws a new one from the prior: use "drawn" for effects.

    BDeu, K2: a table of ``probability``, one Dirichlet distribution for each configuration of the parents. Variables
    are codes of levels, which the dimensions "node::level" name.

    The log density of all rows is that of the score, less log(standard deviation) of every column for every row: the
    score's is of standardised columns.

    Parameters
    ----------
    data : DataFrame, ndarray, path, Table or Dataset
        The table. All rows must have been only observed.
    graph : networkx.DiGraph, DataFrame, array, edges, or fitted learner
        The DAG over its columns, such as ``post.map()``; of a learner, ``graph_``.
    score : Score or str, default "gp"
        "gp", "bge", "bdeu", "k2", one of these with its settings, or a score of one's own that has `Scorer.pymc_node`.
        BIC and the lasso have no priors to write down.
    functions : {"drawn", "marginal"}
        Under Gaussian processes, whether functions are variables of the model or integrated out. The interaction kernel
        needs "marginal".
    **table
        What describes rows and columns, as of `gpn_bayes.Table`: ``kinds=``, ``missing="drop"``, ….

    Returns
    -------
    pymc.Model
        Dimensions: ``row``, and for every node that has parents "node::parent". Data containers: "node::data", which
        `pymc.set_data` replaces, all at once with ``coords={"row": …}`` where the number of rows changes.

    Raises
    ------
    ValueError
        For a graph with a cycle or unknown nodes, a score without priors, rows from experiments, or columns whose names
        ArviZ and PyMC have other uses for.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk"]]
    >>> model = pymc_network(data, [("raf", "mek"), ("mek", "erk")], score="bge")
    >>> [variable.name for variable in model.observed_RVs], model.coords["erk::parent"]
    (['raf', 'mek', 'erk'], ('mek',))
    >>> [variable.name for variable in model.free_RVs if variable.name.startswith("erk")]
    ['erk::sigma2', 'erk::intercept', 'erk::coefficient']

    ``pm.do(model, {"mek": np.full(len(data), 5.0)})`` is the network in which mek is set to 5.
    """
    check_choice("functions", functions, FUNCTIONS)
    rows = read_complete(described(data, table)).with_rows("a PyMC network needs the rows")
    refuse_interventions(rows, "a PyMC network")
    refuse_weights(rows, "a PyMC network")
    _check_names(rows.names)
    adjacency = graphs.as_adjacency(getattr(graph, "graph_", graph), rows.names)
    scorer = scores.by_name(score).bind(rows)
    if type(scorer).pymc_node is Scorer.pymc_node:
        raise lacking("a PyMC network", "pymc_node", scorer.score.name)
    import pymc as pm  # takes seconds, and mistakes are reported without it

    parents = {int(i): np.flatnonzero(adjacency[:, i]).tolist() for i in graphs.topological_order(adjacency)}
    coords: dict[str, Any] = {"row": np.arange(rows.n_rows)}
    if scorer.discrete:
        coords |= {f"{name}::level": list(levels) for name, levels in zip(rows.names, scorer.levels, strict=True)}
    else:
        coords |= {f"{rows.names[i]}::parent": [rows.names[p] for p in own] for i, own in parents.items() if own}
    with pm.Model(coords=coords) as model:
        for node, own in parents.items():
            scorer.pymc_node(node, tuple(own), rows, functions)
    return model


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if name in _TAKEN_NAMES or name.endswith(_TAKEN_END) or any(sign in name for sign in _TAKEN_SIGNS):
            raise ValueError(
                f"columns of a PyMC network can't be named {', '.join(map(repr, _TAKEN_NAMES))}, hold "
                f"{' or '.join(map(repr, _TAKEN_SIGNS))} or end in {_TAKEN_END!r}; rename {name!r}"
            )

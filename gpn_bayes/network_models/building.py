"""The entry point: a table and a DAG in, a PyMC model of the whole network out."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np

from gpn_bayes import graphs, scores
from gpn_bayes._util.checks import check_choice
from gpn_bayes.data import Dataset, TableKeywords, read_complete, refuse_interventions, refuse_weights
from gpn_bayes.scores.base import Scorer
from gpn_bayes.scores.bge import BGeScorer
from gpn_bayes.scores.densities import rows_of
from gpn_bayes.scores.discrete import BDeuScorer, K2Scorer
from gpn_bayes.scores.gp.score import GPScorer

if TYPE_CHECKING:
    import pymc as pm

FUNCTIONS = ("drawn", "marginal")
# What ArviZ and PyMC have other uses for: names of dimensions, signs between the parts of names, and what the names of
# transformed variables end in.
_TAKEN_NAMES, _TAKEN_SIGNS, _TAKEN_END = ("row", "chain", "draw"), ("::", "/"), "__"

# Adds a node, given by its place and those of its parents, to the model being built.
_Adder = Callable[[int, Sequence[int]], None]


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
        "gp", "bge", "bdeu", "k2", or one of these with its settings. BIC and the lasso have no priors to write down.
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
    rows = read_complete(data, **table).with_rows("a PyMC network needs the rows")
    refuse_interventions(rows, "a PyMC network")
    refuse_weights(rows, "a PyMC network")
    _check_names(rows.names)
    adjacency = graphs.as_adjacency(getattr(graph, "graph_", graph), rows.names)
    scorer = scores.by_name(score).bind(rows)
    import pymc as pm  # takes seconds, and mistakes are reported without it

    parents = {int(i): np.flatnonzero(adjacency[:, i]).tolist() for i in graphs.topological_order(adjacency)}
    coords: dict[str, Any] = {"row": np.arange(rows.n_rows)}
    if scorer.discrete:
        coords |= {f"{name}::level": list(levels) for name, levels in zip(rows.names, scorer.levels, strict=True)}
    else:
        coords |= {f"{rows.names[i]}::parent": [rows.names[p] for p in own] for i, own in parents.items() if own}
    add = _adder(scorer, rows, functions)
    with pm.Model(coords=coords) as model:
        for node, own in parents.items():
            add(node, own)
    return model


def _check_names(names: Sequence[str]) -> None:
    for name in names:
        if name in _TAKEN_NAMES or name.endswith(_TAKEN_END) or any(sign in name for sign in _TAKEN_SIGNS):
            raise ValueError(
                f"columns of a PyMC network can't be named {', '.join(map(repr, _TAKEN_NAMES))}, hold "
                f"{' or '.join(map(repr, _TAKEN_SIGNS))} or end in {_TAKEN_END!r}; rename {name!r}"
            )


def _adder(scorer: Scorer, table: Dataset, functions: str) -> _Adder:
    """Return what adds nodes to a model, as the score has them."""
    if isinstance(scorer, BDeuScorer | K2Scorer):
        return _tables(scorer, table)
    if scorer.categories.any() and not scorer.discrete:
        raise ValueError("PyMC networks need numbers or categories alone; received a table that mixes them")
    if not isinstance(scorer, BGeScorer | GPScorer):
        raise ValueError(
            "a PyMC network needs a score with priors, one of gp, bge, bdeu, k2; "
            f"received {scorer.score.name!r}, which has none"
        )
    if isinstance(scorer, GPScorer) and scorer.score.noise == "student":
        raise ValueError("PyMC networks need noise='normal'; received GP(noise='student')")
    if isinstance(scorer, GPScorer) and scorer.score.equations != "curved":
        raise ValueError(f"PyMC networks need equations='curved'; received GP(equations={scorer.score.equations!r})")
    if isinstance(scorer, GPScorer) and functions == "drawn" and scorer.score.kernel != "additive":
        raise ValueError('the interaction kernel needs functions="marginal"; received functions="drawn"')
    from gpn_bayes.network_models.columns import Column
    from gpn_bayes.network_models.linear_nodes import add_linear_node
    from gpn_bayes.network_models.process_nodes import add_drawn_node, add_marginal_node

    centre, scale = scorer.units(table)
    columns = [
        Column(name, table.values[:, i].astype(float), float(centre[i]), float(scale[i]))
        for i, name in enumerate(table.names)
    ]

    def add(node: int, own: Sequence[int]) -> None:
        column, given = columns[node], [columns[p] for p in own]
        if isinstance(scorer, BGeScorer):
            add_linear_node(column, given, scorer.prior_equation(len(given)))
        elif functions == "drawn":
            add_drawn_node(column, given, scorer.score.priors)
        else:
            add_marginal_node(column, given, scorer.score.priors, scorer.score.kernel)

    return add


def _tables(scorer: BDeuScorer | K2Scorer, table: Dataset) -> _Adder:
    from gpn_bayes.network_models.table_nodes import add_table_node

    codes = rows_of(table, scorer)

    def add(node: int, own: Sequence[int]) -> None:
        cells = int(np.prod(scorer.cardinalities[[*own, node]]))
        given = [table.names[p] for p in own]
        add_table_node(table.names[node], codes[:, node], given, scorer.imagined(cells))

    return add

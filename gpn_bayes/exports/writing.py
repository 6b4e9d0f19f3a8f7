"""What every learned graph can be written as: the same functions for posteriors, bootstraps and learners."""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import networkx as nx

from gpn_bayes._util.checks import check_choice
from gpn_bayes._util.files import new_file, write_whole
from gpn_bayes._util.types import DiGraph
from gpn_bayes.exports import formats

if TYPE_CHECKING:
    import pandas as pd

    from gpn_bayes.scores.base import Scorer
    from gpn_bayes.simulate.discrete_networks import DiscreteNetwork

FORMATS = (*formats.WRITERS, "bif")
# Further endings of file names.
_ENDINGS = {".gv": "dot"}


class Exportable(Protocol):
    """A learned graph: which graph is written, and which score its tables come from."""

    def _graph_to_export(self, which: str | None, threshold: float | None) -> DiGraph:
        """Return the graph with the attributes of its edges, those without a direction marked on both ways."""

    def _dag_to_export(self, which: str | None, threshold: float | None) -> DiGraph:
        """Return the graph as a DAG, or refuse."""

    def _table_scorer(self) -> "Scorer":
        """Return the score of the tables, bound to the data."""

    def _instead_of_cycles(self) -> str:
        """Return what to use where the graph has a cycle, to end a message with."""


def export(
    learned: Exportable,
    path: str | PathLike[str],
    *,
    which: str | None = None,
    threshold: float | None = None,
    overwrite: bool = False,
) -> Path:
    """Write the graph to a file for another program, by the ending of its name.

    | ending | what it is | who reads it |
    |---|---|---|
    | ``.graphml`` | GraphML, with probabilities or weights | networkx, igraph, Cytoscape, Gephi |
    | ``.dot``, ``.gv`` | DOT, likewise | Graphviz |
    | ``.bif`` | a DAG of categories with its tables | bnlearn, pgmpy, pyAgrum, `gpn_bayes.simulate.read_bif` |
    | ``.bnlearn`` | a model string, ``[a][b|a]`` | R: ``bnlearn::model2network`` |
    | ``.dagitty`` | code, ``dag { a -> b }`` | dagitty.net, R: ``dagitty::dagitty`` |
    | ``.csv`` | the adjacency matrix, rows parents | spreadsheets |

    Tables are the posterior means of their probabilities. Model strings, tables and dagitty need a DAG. Undirected
    edges, such as those of PC, are written as such where the format has them; the DAG is then that of `log_score`.

    Parameters
    ----------
    path : path
        Where to write, such as ``"network.graphml"``.
    which : str, optional
        Of a posterior: "median" (the default), the edges whose probability exceeds `threshold`, which may close a
        cycle; or "map", the drawn DAG of the highest score. Of a bootstrap: "median" or "mode", the DAG found most
        often. A learner has one graph.
    threshold : float, optional
        For "median": between 0 and 1; 0.5 by default.
    overwrite : bool, default False
        Whether an existing file may be replaced.

    Returns
    -------
    Path
        Where the graph is.

    Raises
    ------
    ValueError
        For an ending, a name or a graph that the format can't have, and for a file that exists.

    Examples
    --------
    >>> import tempfile
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = post.export(f"{folder}/network.graphml", threshold=0.4)
    ...     graph = nx.read_graphml(path)
    >>> round(graph.edges["raf", "mek"]["probability"], 2)
    0.5
    """
    target = new_file(path, overwrite)
    ending = target.suffix.lower()
    known = {f".{name}": name for name in FORMATS} | _ENDINGS
    if ending not in known:
        raise ValueError(f"the file must end with one of {', '.join(known)}; received {target.name!r}")
    write_whole(target, to_text(learned, known[ending], which=which, threshold=threshold))
    return target


def to_text(learned: Exportable, form: str, *, which: str | None = None, threshold: float | None = None) -> str:
    """Return the graph as text in one of the formats of `export`.

    Parameters
    ----------
    form : {"graphml", "dot", "dagitty", "bnlearn", "csv", "bif"}
        The format.
    which, threshold : optional
        Which graph; see `export`.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> table = pd.DataFrame({"rain": ["no", "yes"] * 20, "wet": ["no", "yes", "yes", "yes"] * 10})
    >>> print(gpn.estimators.K2(order=["rain", "wet"]).fit(table).to_text("bnlearn"))
    [rain][wet|rain]
    """
    check_choice("form", form, FORMATS)
    try:
        text = _written(learned, form, which, threshold)
        text.encode()
    except UnicodeEncodeError as error:
        wrong = str(error.object)[error.start]
        raise ValueError(f"names must be text that UTF-8 can hold; received one with {wrong!r}") from None
    return text


def to_networkx(learned: Exportable, *, which: str | None = None, threshold: float | None = None) -> DiGraph:
    """Return the graph with all nodes, its edges with their attributes.

    Edges of a posterior have a ``probability``, those of a bootstrap a ``frequency``, and those of learners that
    have weights a ``weight``. Edges that a learner can't direct are there both ways, ``undirected``.

    Parameters
    ----------
    which, threshold : optional
        Which graph; see `export`.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> for parent, child, attributes in post.to_networkx(threshold=0.4).edges(data=True):
    ...     print(parent, child, round(attributes["probability"], 2))
    raf mek 0.5
    mek raf 0.5
    erk akt 0.5
    akt erk 0.5
    """
    return learned._graph_to_export(which, threshold)


def to_pandas(learned: Exportable, *, which: str | None = None, threshold: float | None = None) -> "pd.DataFrame":
    """Return the edges of the graph as a tidy table: `parent`, `child`, and the attributes of `to_networkx`.

    Parameters
    ----------
    which, threshold : optional
        Which graph; see `export`.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> post.to_pandas(threshold=0.4).round(2).head(2)
      parent child  probability
    0    raf   mek          0.5
    1    mek   raf          0.5
    """
    import pandas as pd

    graph = to_networkx(learned, which=which, threshold=threshold)
    rows = [{"parent": parent, "child": child} | known for parent, child, known in graph.edges(data=True)]
    table = pd.DataFrame(rows, columns=None if rows else ["parent", "child"])
    if formats.UNDIRECTED in table:
        table[formats.UNDIRECTED] = table[formats.UNDIRECTED].notna()
    return table


def to_pgmpy(learned: Exportable, *, which: str | None = None, threshold: float | None = None) -> Any:
    """Return a DAG of categories with its tables as a ``DiscreteBayesianNetwork`` of pgmpy; levels are texts.

    Needs ``pip install "gpn_bayes[export]"``.

    Parameters
    ----------
    which, threshold : optional
        Which graph; see `export`.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> table = pd.DataFrame({"rain": ["no", "yes"] * 20, "wet": ["no", "yes", "yes", "yes"] * 10})
    >>> est = gpn.estimators.K2(order=["rain", "wet"]).fit(table)
    >>> est.to_pgmpy().get_cpds("wet").get_values().round(2).tolist()
    [[0.5, 0.05], [0.5, 0.95]]
    """
    from gpn_bayes.exports.tables import to_pgmpy

    return to_pgmpy(_fitted(learned, which, threshold))


def to_pyagrum(learned: Exportable, *, which: str | None = None, threshold: float | None = None) -> Any:
    """Return a DAG of categories with its tables as a ``BayesNet`` of pyAgrum; levels are texts.

    Needs ``pip install "gpn_bayes[export]"``.

    Parameters
    ----------
    which, threshold : optional
        Which graph; see `export`.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> table = pd.DataFrame({"rain": ["no", "yes"] * 20, "wet": ["no", "yes", "yes", "yes"] * 10})
    >>> est = gpn.estimators.K2(order=["rain", "wet"]).fit(table)
    >>> network = est.to_pyagrum()  # tables are only there as long as their network is
    >>> round(network.cpt("wet")[{"rain": "yes", "wet": "yes"}], 2)
    0.95
    """
    from gpn_bayes.exports.tables import to_pyagrum

    return to_pyagrum(_fitted(learned, which, threshold))


def _written(learned: Exportable, form: str, which: str | None, threshold: float | None) -> str:
    if form == "bif":
        from gpn_bayes.simulate.bif import bif_text

        return bif_text(_fitted(learned, which, threshold))
    if form == "bnlearn":
        return formats.to_bnlearn(_checked_dag(learned, which, threshold))
    graph = to_networkx(learned, which=which, threshold=threshold)
    if form == "dagitty":
        # Undirected edges make no cycle.
        edges = [(a, b) for a, b, known in graph.edges(data=True) if formats.UNDIRECTED not in known]
        _check_acyclic(learned, nx.DiGraph(edges))
    return formats.WRITERS[form](graph)


def _fitted(learned: Exportable, which: str | None, threshold: float | None) -> "DiscreteNetwork":
    from gpn_bayes.exports.tables import fitted_network

    return fitted_network(learned._table_scorer(), _checked_dag(learned, which, threshold))


def _checked_dag(learned: Exportable, which: str | None, threshold: float | None) -> DiGraph:
    graph = learned._dag_to_export(which, threshold)
    _check_acyclic(learned, graph)
    return graph


def _check_acyclic(learned: Exportable, graph: DiGraph) -> None:
    if not nx.is_directed_acyclic_graph(graph):
        cycle = nx.find_cycle(graph)
        shown = " -> ".join([cycle[0][0], *(edge[1] for edge in cycle)])
        raise ValueError(f"this format needs a DAG; the graph has the cycle {shown}{learned._instead_of_cycles()}")

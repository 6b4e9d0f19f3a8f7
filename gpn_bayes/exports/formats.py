"""Graphs as text in the formats of other programs. Edges carry attributes; names may hold anything a format can."""

import io
import re
from collections.abc import Callable, Iterable

import networkx as nx
import pandas as pd

from gpn_bayes._util.printable import no_formulas
from gpn_bayes._util.types import DiGraph

# Set on both directions of an edge whose direction isn't known.
UNDIRECTED = "undirected"
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
# What no XML document can hold, not even escaped.
_NOT_IN_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_PLAIN = re.compile("[A-Za-z_][A-Za-z0-9_.]*")


def to_graphml(graph: DiGraph) -> str:
    """Return a graph in GraphML; attributes of edges keep their types.

    Examples
    --------
    >>> text = to_graphml(nx.DiGraph([("<5", "erk")]))
    >>> '<node id="&lt;5" />' in text, list(nx.parse_graphml(text).edges)
    (True, [('<5', 'erk')])
    """
    _refuse(graph, _NOT_IN_XML, "GraphML can hold no control characters")
    content = io.BytesIO()
    nx.write_graphml_xml(graph, content)
    return content.getvalue().decode()


def to_dot(graph: DiGraph) -> str:
    r"""Return a graph in DOT, the language of Graphviz; undirected edges have ``dir=none``.

    In names, backslashes are doubled and line breaks are ``\n``, as Graphviz shows labels.

    Examples
    --------
    >>> print(to_dot(nx.DiGraph([('5" pipe', "flow", {"probability": 0.75})])))
    digraph {
      "5\" pipe";
      "flow";
      "5\" pipe" -> "flow" [probability=0.75];
    }
    <BLANKLINE>
    """
    _refuse(graph, re.compile("\x00"), "DOT can hold no null character")
    lines = [f"  {_dot_name(name)};" for name in graph]
    for parent, child, attributes in _listed(graph):
        given = {name: value for name, value in attributes.items() if name != UNDIRECTED}
        if UNDIRECTED in attributes:
            given["dir"] = "none"
        shown = ", ".join(f"{name}={value!r}" if name != "dir" else "dir=none" for name, value in given.items())
        lines.append(f"  {_dot_name(parent)} -> {_dot_name(child)}{f' [{shown}]' if shown else ''};")
    return "\n".join(["digraph {", *lines, "}", ""])


def to_dagitty(graph: DiGraph) -> str:
    r"""Return a graph as code for dagitty: a ``dag``, or a ``pdag`` where some edges are undirected.

    Examples
    --------
    >>> print(to_dagitty(nx.DiGraph([("blood sugar", "erk")])))
    dag {
    "blood sugar"
    erk
    "blood sugar" -> erk
    }
    <BLANKLINE>
    """
    _refuse(graph, re.compile(rf"{_CONTROL.pattern}|\\\Z"), "dagitty takes no control characters, nor \\ at the end")
    edges = [
        f"{_dagitty_name(parent)} {'--' if UNDIRECTED in attributes else '->'} {_dagitty_name(child)}"
        for parent, child, attributes in _listed(graph)
    ]
    kind = "pdag" if any(UNDIRECTED in attributes for _, _, attributes in graph.edges(data=True)) else "dag"
    return "\n".join([f"{kind} {{", *map(_dagitty_name, graph), *edges, "}", ""])


def to_bnlearn(graph: DiGraph) -> str:
    """Return a DAG as a model string of bnlearn, each variable followed by its parents.

    Examples
    --------
    >>> print(to_bnlearn(nx.DiGraph([("raf", "erk"), ("pka", "erk")])))
    [raf][erk|raf:pka][pka]
    <BLANKLINE>
    """
    _refuse(
        graph,
        re.compile(rf"[|:\[\]]|{_CONTROL.pattern}"),
        "model strings can hold none of | : [ ] in a name, nor control characters",
    )
    parents = {name: ":".join(graph.predecessors(name)) for name in graph}
    return "".join(f"[{name}|{own}]" if own else f"[{name}]" for name, own in parents.items()) + "\n"


def to_csv(graph: DiGraph) -> str:
    """Return the adjacency matrix as CSV, rows parents; names that look like formulas come after an apostrophe.

    Examples
    --------
    >>> print(to_csv(nx.DiGraph([("raf", "mek")])))
    parent,raf,mek
    raf,0,1
    mek,0,0
    <BLANKLINE>
    """
    names = list(graph)
    matrix = pd.DataFrame(
        [[int(graph.has_edge(parent, child)) for child in names] for parent in names],
        index=pd.Index(no_formulas(names), name="parent"),
        columns=no_formulas(names),
    )
    text: str = matrix.to_csv(lineterminator="\n")
    return text


# By name.
WRITERS: dict[str, Callable[[DiGraph], str]] = {
    "graphml": to_graphml,
    "dot": to_dot,
    "dagitty": to_dagitty,
    "bnlearn": to_bnlearn,
    "csv": to_csv,
}


def _refuse(graph: DiGraph, wrong: re.Pattern[str], rule: str) -> None:
    for name in graph:
        if wrong.search(name):
            raise ValueError(f"{rule}; received {name!r}")


def _listed(graph: DiGraph) -> Iterable[tuple[str, str, dict[str, object]]]:
    """Yield the edges with their attributes, undirected ones once."""
    seen = set()
    for parent, child, attributes in graph.edges(data=True):
        if UNDIRECTED not in attributes or (child, parent) not in seen:
            seen.add((parent, child))
            yield parent, child, attributes


def _dot_name(name: str) -> str:
    escaped = name.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _dagitty_name(name: str) -> str:
    """Return a name in quotes, unless it is a plain word; only quotation marks are escaped there."""
    if _PLAIN.fullmatch(name):
        return name
    escaped = name.replace('"', '\\"')
    return f'"{escaped}"'

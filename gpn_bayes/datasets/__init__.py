"""Bundled data: protein signalling in human T cells, and its consensus network."""

from importlib.resources import files

import networkx as nx
import numpy as np
import pandas as pd

from gpn_bayes._util.checks import shown
from gpn_bayes._util.types import DiGraph

_ROWS = {"observational": "sachs_observational.csv", "all": "sachs_all.csv.gz"}
_EDGES = (17, 20)


def sachs(rows: str = "observational", transform: str | None = None) -> pd.DataFrame:
    """Return the abundances of 11 phosphorylated proteins and lipids in single human T cells.

    The cells were measured by flow cytometry by K. Sachs, O. Perez, D. Pe'er, D. A. Lauffenburger and
    G. P. Nolan, "Causal protein-signaling networks derived from multiparameter single-cell data",
    Science 308:523 (2005).

    Parameters
    ----------
    rows : {"observational", "all"}
        The 853 cells under general stimulation only, or all 7,466 cells, most of which had a protein
        activated or inhibited.
    transform : {None, "log2"}
        "log2" returns log2(x + 0.5), which tames the long right tails.

    Returns
    -------
    DataFrame of shape (853, 11) or (7466, 11)

    Examples
    --------
    >>> sachs().shape, sachs(rows="all").shape
    ((853, 11), (7466, 11))
    """
    if rows not in _ROWS:
        raise ValueError(f"rows must be 'observational' or 'all'; received {shown(rows)}")
    return _abundances(_ROWS[rows], transform)


def _abundances(file: str, transform: str | None) -> pd.DataFrame:
    """Return the cells of a file, transformed."""
    if transform not in (None, "log2"):
        raise ValueError(f"transform must be None or 'log2'; received {shown(transform)}")
    frame = _read(file)
    return frame if transform is None else frame.add(0.5).apply(np.log2)


def sachs_interventional(transform: str | None = None) -> pd.DataFrame:
    """Return all 7,466 cells of `sachs`, with what was done to them.

    Parameters
    ----------
    transform : {None, "log2"}
        "log2" returns log2(x + 0.5) of the abundances.

    Returns
    -------
    DataFrame of shape (7466, 13)
        The 11 variables, `condition`, which names the nine experiments in the order of their cells, and `target`: the
        variable that was inhibited (akt, pkc, pip2, mek, pip3) or activated (pkc by PMA, pka by b2cAMP), empty where
        cells were stimulated in general only.

    Examples
    --------
    >>> cells = sachs_interventional(transform="log2")
    >>> cells.shape, int(cells["target"].eq("mek").sum())
    ((7466, 13), 799)
    """
    frame = _abundances(_ROWS["all"], transform)
    experiments = _read("sachs_experiments.csv").fillna("")
    for column in ("condition", "target"):
        frame[column] = np.repeat(experiments[column].to_numpy(dtype=object), experiments["cells"])
    return frame


def sachs_consensus(edges: int = 17) -> DiGraph:
    """Return the network that biologists agreed on for the variables of `sachs`.

    Parameters
    ----------
    edges : {17, 20}
        Two versions are in use, both from Sachs et al. (2005, Science 308:523): the 17 edges of their
        validated network, and the conventionally accepted network, which adds pip2 -> pkc, pip3 -> akt and
        plcg -> pkc and turns plcg -> pip3 round.

    Returns
    -------
    networkx.DiGraph
        Its nodes have the order of the data's columns.

    Examples
    --------
    >>> sachs_consensus(17).has_edge("raf", "mek")
    True
    """
    if edges not in _EDGES:
        raise ValueError(f"the consensus network has 17 or 20 edges; received {shown(edges)}")
    graph: DiGraph = nx.DiGraph()
    graph.add_nodes_from(_read(_ROWS["observational"]).columns)
    graph.add_edges_from(_read(f"sachs_consensus_{edges}.csv").itertuples(index=False, name=None))
    return graph


def _read(name: str) -> pd.DataFrame:
    with files(__name__).joinpath(name).open("rb") as file:
        return pd.read_csv(file, compression="gzip" if name.endswith(".gz") else None)

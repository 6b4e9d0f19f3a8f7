"""The edges of a fitted learner as a table, as files, reports and notebooks show them."""

from typing import Any

import numpy as np
import pandas as pd

from gpn_bayes._util.types import DiGraph


def edge_table(learner: Any) -> pd.DataFrame:
    """Return the edges of a fitted learner, strongest first where it has weights, then by name.

    Parameters
    ----------
    learner : GraphEstimator
        Fitted; of a time series, the edges from earlier times are among them.

    Returns
    -------
    DataFrame
        Columns `parent`, `child`, `type` and, where the learner has them, `weight`. The type is "directed" or
        "undirected"; an undirected edge is one row, whose ends are in the order of their names.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> edge_table(gpn.estimators.PC(alpha=0.01).fit(data))
      parent child        type
    0    akt   erk  undirected
    1    mek   raf  undirected
    """
    if hasattr(learner, "lagged_graph_"):
        return _lagged_table(learner.lagged_graph_)
    names = learner.feature_names_in_
    both_ways = (learner.adjacency_ != 0) & (learner.adjacency_.T != 0)
    parents, children = np.nonzero((learner.adjacency_ != 0) & ~(both_ways & (names[:, None] > names[None, :])))
    table = pd.DataFrame({"parent": names[parents], "child": names[children]}, dtype=object)
    table["type"] = np.where(both_ways[parents, children], "undirected", "directed")
    table = table.sort_values(["parent", "child"])
    if hasattr(learner, "weights_"):
        # Rounded as written: what differs by less than that must not change the order.
        table["weight"] = learner.weights_[parents, children].round(6)[table.index]
        # A coefficient is strong whatever its sign; an edge that the score would do better without is weak.
        strength = None if hasattr(learner, "log_score_") else abs
        table = table.sort_values("weight", ascending=False, kind="stable", key=strength)
    return table.reset_index(drop=True)


def _lagged_table(graph: DiGraph) -> pd.DataFrame:
    """Return the edges of a time series: those within a time, then those of one time before, and so on."""
    table = pd.DataFrame(graph.edges(data="weight"), columns=["parent", "child", "weight"])
    table["weight"] = table["weight"].astype(float).round(6)
    # The time of a cause stands in the last brackets of its name, "[t]" or "[t-1]".
    table["lag"] = table["parent"].str.extract(r"-(\d+)\]$", expand=False).fillna("0").astype(int)
    table["strength"] = -table["weight"].abs()
    table = table.sort_values(["lag", "strength", "parent", "child"])
    return table.assign(type="directed")[["parent", "child", "type", "weight"]].reset_index(drop=True)

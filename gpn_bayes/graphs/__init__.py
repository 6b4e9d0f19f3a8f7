"""Graphs as adjacency matrices, bitmasks or networkx, and what can be asked of them.

Examples
--------
>>> from gpn_bayes import graphs
>>> chain = graphs.as_adjacency([("raf", "mek"), ("mek", "erk")], ["raf", "mek", "erk"])
>>> graphs.topological_order(chain).tolist()
[0, 1, 2]
"""

from gpn_bayes.graphs.adjacency import as_adjacency, as_stack, graph_names, node_index, node_pair, to_networkx
from gpn_bayes.graphs.adjustment import is_back_door_set, minimal_back_door_sets
from gpn_bayes.graphs.counting import (
    count_linear_extensions,
    enumerate_dags,
    log_linear_extensions,
)
from gpn_bayes.graphs.equivalence import directed_by_experiments, interventional_cpdag, mpdag
from gpn_bayes.graphs.packing import edge_shares, pack, parents_of, unpack, unpack_in_parts
from gpn_bayes.graphs.structure import (
    ancestors,
    cpdag,
    d_separated,
    is_acyclic,
    markov_blankets,
    topological_order,
)

__all__ = [
    "ancestors",
    "as_adjacency",
    "as_stack",
    "count_linear_extensions",
    "cpdag",
    "d_separated",
    "directed_by_experiments",
    "edge_shares",
    "enumerate_dags",
    "graph_names",
    "interventional_cpdag",
    "is_acyclic",
    "is_back_door_set",
    "log_linear_extensions",
    "markov_blankets",
    "minimal_back_door_sets",
    "mpdag",
    "node_index",
    "node_pair",
    "pack",
    "parents_of",
    "to_networkx",
    "topological_order",
    "unpack",
    "unpack_in_parts",
]

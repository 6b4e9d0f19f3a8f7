"""Names for types that many rooms use: arrays by what they hold, and networkx's graphs."""

from typing import TYPE_CHECKING, Any

from gpn_bayes.kernels.arrays import Adjacency, Bools, Floats, Ints, Words

if TYPE_CHECKING:
    import networkx as nx

__all__ = ["Adjacency", "Bools", "DiGraph", "Floats", "Ints", "Words"]

# The stubs ask for the type of the nodes, which can be any names; the class itself takes none.
type DiGraph = nx.DiGraph[Any]

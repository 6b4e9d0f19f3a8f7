"""The methods by which learners write their graphs; see `gpn_bayes.exports.writing`."""

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING

from gpn_bayes._util.types import DiGraph
from gpn_bayes.exports import writing

if TYPE_CHECKING:
    from gpn_bayes.scores.base import Scorer


class Exports(ABC):
    """Writes a learned graph for other programs. A subclass says which graph, and which score tables come from."""

    @abstractmethod
    def _graph_to_export(self, which: str | None, threshold: float | None) -> DiGraph:
        """Return the graph with the attributes of its edges, those without a direction marked on both ways."""

    @abstractmethod
    def _table_scorer(self) -> "Scorer":
        """Return the score of the tables, bound to the data."""

    def _dag_to_export(self, which: str | None, threshold: float | None) -> DiGraph:
        """Return the graph as a DAG, or refuse."""
        return self._graph_to_export(which, threshold)

    def _instead_of_cycles(self) -> str:
        """Return what to use where the graph has a cycle, to end a message with."""
        return ""

    export = writing.export
    to_text = writing.to_text
    to_networkx = writing.to_networkx
    to_pandas = writing.to_pandas
    to_pgmpy = writing.to_pgmpy
    to_pyagrum = writing.to_pyagrum

"""The pictures of a posterior as its methods: each only asks `gpn_bayes.plots`, which is loaded then."""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes


class EdgePictures:
    """Pictures that need no more than the probability of every edge.

    Attributes
    ----------
    quantity : str
        What pictures call the share of DAGs that have an edge.
    """

    quantity: ClassVar[str] = "probability"

    def plot_network(self, threshold: float = 0.1, ax: "Axes | None" = None) -> "Axes":
        """Draw the network, lines as wide as they are probable; see `gpn_bayes.plots.plot_network`."""
        from gpn_bayes.plots import plot_network

        return plot_network(self, threshold, ax)  # type: ignore[arg-type]

    def plot_edges(self, truth: Any = None, ax: "Axes | None" = None) -> "Axes":
        """Draw all edge probabilities as a heat map; see `gpn_bayes.plots.plot_edges`."""
        from gpn_bayes.plots import plot_edges

        return plot_edges(self, truth, ax)  # type: ignore[arg-type]

    def plot_runs(self, other: Any, ax: "Axes | None" = None) -> "Axes":
        """Draw edge probabilities against those of another run; see `gpn_bayes.plots.plot_runs`."""
        from gpn_bayes.plots import plot_runs

        return plot_runs(self, other, ax)  # type: ignore[arg-type]

    def plot_comparison(
        self,
        other: Any,
        labels: Sequence[str] | None = None,
        truth: Any = None,
        edges: int = 25,
        ax: "Axes | None" = None,
    ) -> "Axes":
        """Compare with another posterior, edge by edge; see `gpn_bayes.plots.plot_comparison`."""
        from gpn_bayes.plots import plot_comparison

        return plot_comparison(self, other, labels, truth, edges, ax)  # type: ignore[arg-type]


class DrawPictures:
    """Pictures of chains, parent sets and fitted functions."""

    def plot_trace(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the log score of every draw, by chain; see `gpn_bayes.plots.plot_trace`."""
        from gpn_bayes.plots import plot_trace

        return plot_trace(self, ax)  # type: ignore[arg-type]

    def plot_rank(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the ranks of the log score, by chain; see `gpn_bayes.plots.plot_rank`."""
        from gpn_bayes.plots import plot_rank

        return plot_rank(self, ax)  # type: ignore[arg-type]

    def plot_running(
        self, edges: Sequence[tuple[Hashable, Hashable]] | None = None, ax: "Axes | None" = None
    ) -> "Axes":
        """Draw edge probabilities as they settle, by chain; see `gpn_bayes.plots.plot_running`."""
        from gpn_bayes.plots import plot_running

        return plot_running(self, edges, ax)  # type: ignore[arg-type]

    def plot_parent_counts(self, ax: "Axes | None" = None) -> "Axes":
        """Draw how many parents each variable has; see `gpn_bayes.plots.plot_parent_counts`."""
        from gpn_bayes.plots import plot_parent_counts

        return plot_parent_counts(self, ax)  # type: ignore[arg-type]

    def curves(self, node: Hashable, data: Any = None, score: Any = None, **settings: Any) -> "pd.DataFrame":
        """Return how a variable depends on each of its parents; see `gpn_bayes.curves.fitted_curves`.

        Parameters
        ----------
        node : str or int
            The variable.
        data : DataFrame, ndarray, path or Dataset, optional
            The table that the posterior is of; only a posterior that was loaded from a file needs it.
        score : GP, optional
            The Gaussian processes to fit; by default those that the posterior was drawn under.
        **settings
            `parents`, `threshold`, `probability`, `points` and `centred` of `gpn_bayes.curves.fitted_curves`.

        Returns
        -------
        DataFrame
            Columns `node`, `parent`, `edge_probability`, `x`, `mean`, `sd`, `lower` and `upper`, in the data's units.
        """
        from gpn_bayes.curves import fitted_curves

        return fitted_curves(self, node, data, score, **settings).lines  # type: ignore[arg-type]

    def plot_curves(
        self,
        node: Hashable,
        data: Any = None,
        score: Any = None,
        dots: str = "adjusted",
        ax: "Axes | Sequence[Axes] | None" = None,
        **settings: Any,
    ) -> "np.ndarray":
        """Draw how a variable depends on each of its parents; see `gpn_bayes.plots.plot_curves`."""
        from gpn_bayes.plots import plot_curves

        return plot_curves(self, node, data, score, dots, ax, **settings)  # type: ignore[arg-type]

"""The pictures of a posterior as its methods: each only asks `gpn_bayes.plots`, which is loaded then."""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from gpn_bayes.posterior.protocols import DrawnEffect, DrawnPosterior, GraphCollection, PredictiveComparison

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd
    from matplotlib.axes import Axes


class EdgePictures(GraphCollection):
    """Pictures that need no more than the probability of every edge.

    Attributes
    ----------
    quantity : str
        What pictures call the share of DAGs that have an edge.
    """

    quantity: ClassVar[str] = "probability"

    def plot_network(self, threshold: float = 0.1, ax: "Axes | None" = None) -> "Axes":
        """Draw the network, lines as wide as they are probable; see `gpn_bayes.plots.plot_network`.

        Parameters
        ----------
        threshold : float, default 0.1
            Pairs that are joined with less than this probability, either way, are left out.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure. Names shrink until all of the network fits.

        Examples
        --------
        >>> import tempfile
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
        >>> ax = post.plot_network(threshold=0.2)
        >>> [text.get_text() for text in ax.texts]
        ['raf', 'mek', 'erk', 'akt']
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     ax.figure.savefig(f"{folder}/network.png")
        """
        from gpn_bayes.plots import plot_network

        return plot_network(self, threshold, ax)

    def plot_edges(self, truth: Any = None, ax: "Axes | None" = None) -> "Axes":
        """Draw all edge probabilities as a heat map; see `gpn_bayes.plots.plot_edges`.

        Parameters
        ----------
        truth : networkx.DiGraph, array or edge list, optional
            A known network, whose edges are framed.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure. Give your own ``layout="constrained"``: that makes room for legends.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
        >>> ax = post.plot_edges()
        >>> [label.get_text() for label in ax.get_yticklabels()]
        ['raf', 'mek', 'erk', 'akt']
        """
        from gpn_bayes.plots import plot_edges

        return plot_edges(self, truth, ax)

    def plot_runs(self, other: Any, ax: "Axes | None" = None) -> "Axes":
        """Draw edge probabilities against those of another run; see `gpn_bayes.plots.plot_runs`.

        Parameters
        ----------
        other : GraphPosterior or BootstrapResult
            Another run on the same variables.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure. Give your own ``layout="constrained"``: that makes room for legends.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
        >>> other = gpn.sample(data, score="bic", draws=100, random_seed=2, progressbar=False)
        >>> post.plot_runs(other).get_xlabel()
        'edge probability, first run'
        """
        from gpn_bayes.plots import plot_runs

        return plot_runs(self, other, ax)

    def plot_comparison(
        self,
        other: Any,
        labels: Sequence[str] | None = None,
        truth: Any = None,
        edges: int = 25,
        ax: "Axes | None" = None,
    ) -> "Axes":
        """Compare with another posterior, edge by edge; see `gpn_bayes.plots.plot_comparison`.

        Parameters
        ----------
        other : GraphPosterior or BootstrapResult
            What to compare with, on the same variables.
        labels : pair of str, optional
            What to call the two; by default their scores.
        truth : networkx.DiGraph, array or edge list, optional
            A known network, whose edges are marked.
        edges : int, default 25
            How many edges to show: those on which the two differ most.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure. Give your own ``layout="constrained"``: that makes room for legends.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
        >>> other = gpn.sample(data, score="bic", draws=100, random_seed=1, progressbar=False)
        >>> ax = post.plot_comparison(other, labels=["BGe", "BIC"], edges=2)
        >>> sorted(label.get_text() for label in ax.get_yticklabels())
        ['erk → mek', 'mek → erk']
        """
        from gpn_bayes.plots import plot_comparison

        return plot_comparison(self, other, labels, truth, edges, ax)


class DrawPictures(DrawnPosterior):
    """Pictures of chains, parent sets and fitted functions."""

    def plot_missing(self, ax: "Axes | None" = None) -> "Axes":
        """Draw what is missing where in the table; see `gpn_bayes.plots.plot_missing`.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.simulate.linear([[0, 1, 0], [0, 0, 1], [0, 0, 0]], 60, random_seed=1)
        >>> data.iloc[:7, 1] = float("nan")
        >>> post = gpn.sample(data, missing="impute", draws=20, tune=10, random_seed=1, progressbar=False)
        >>> post.plot_missing().get_title()
        '7 of 180 values are missing (coloured)'
        """
        from gpn_bayes.plots import plot_missing

        return plot_missing(self, ax)

    def plot_trace(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the log score of every draw, by chain; see `gpn_bayes.plots.plot_trace`.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure. Give your own ``layout="constrained"``: that makes room for legends.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
        >>> ax = post.plot_trace()
        >>> len(ax.lines), ax.get_ylabel()
        (4, 'log score')
        """
        from gpn_bayes.plots import plot_trace

        return plot_trace(self, ax)

    def plot_rank(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the ranks of the log score, by chain; see `gpn_bayes.plots.plot_rank`.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure. Give your own ``layout="constrained"``: that makes room for legends.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
        >>> post.plot_rank().get_xlabel()
        'rank among all draws, as a share'
        """
        from gpn_bayes.plots import plot_rank

        return plot_rank(self, ax)

    def plot_running(
        self, edges: Sequence[tuple[Hashable, Hashable]] | None = None, ax: "Axes | None" = None
    ) -> "Axes":
        """Draw edge probabilities as they settle, by chain; see `gpn_bayes.plots.plot_running`.

        Parameters
        ----------
        edges : sequence of (parent, child), optional
            The edges; by default the five on which the chains differ most at the end, or those nearest to 1/2.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure. Give your own ``layout="constrained"``: that makes room for legends.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
        >>> ax = post.plot_running(edges=[("raf", "mek")])
        >>> len(ax.lines), ax.get_ylabel()
        (4, 'edge probability so far')
        """
        from gpn_bayes.plots import plot_running

        return plot_running(self, edges, ax)

    def plot_parent_counts(self, ax: "Axes | None" = None) -> "Axes":
        """Draw how many parents each variable has; see `gpn_bayes.plots.plot_parent_counts`.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure. Give your own ``layout="constrained"``: that makes room for legends.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
        >>> ax = post.plot_parent_counts()
        >>> [label.get_text() for label in ax.get_xticklabels()]
        ['0', '1', '2', '3']
        """
        from gpn_bayes.plots import plot_parent_counts

        return plot_parent_counts(self, ax)

    def curves(self, node: Hashable, data: Any = None, score: Any = None, **settings: Any) -> "pd.DataFrame":
        """Return how a variable depends on each of its parents; see `gpn_bayes.posterior.curves.fitted_curves`.

        Parameters
        ----------
        node : str or int
            The variable.
        data : DataFrame, ndarray, path or Dataset, optional
            The table that the posterior is of; only a posterior that was loaded from a file needs it.
        score : GP, optional
            The Gaussian processes to fit; by default those that the posterior was drawn under.
        **settings
            `parents`, `threshold`, `probability`, `points` and `centred` of `gpn_bayes.posterior.curves.fitted_curves`.

        Returns
        -------
        DataFrame
            Columns `node`, `parent`, `edge_probability`, `x`, `mean`, `sd`, `lower` and `upper`, in the data's units.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> import gpn_bayes as gpn
        >>> x = np.random.default_rng(1).uniform(-3, 3, 60)
        >>> y = np.sin(x) + 0.2 * np.random.default_rng(2).normal(size=60)
        >>> score = gpn.scores.GP(estimator="laplace")
        >>> post = gpn.sample(pd.DataFrame({"x": x, "y": y}), score=score, draws=50, random_seed=1, progressbar=False)
        >>> post.curves("y", points=5)[["parent", "x", "mean"]].round(1)
          parent    x  mean
        0      x -2.8  -0.4
        1      x -1.4  -1.0
        2      x  0.0   0.1
        3      x  1.5   1.1
        4      x  2.9   0.1
        """
        from gpn_bayes.posterior.curves import fitted_curves

        return fitted_curves(self, node, data, score, **settings).lines

    def plot_effect(self, cause: Hashable, outcome: Hashable, ax: "Axes | None" = None, **settings: Any) -> "Axes":
        """Draw the effect of setting one variable on another; see `gpn_bayes.plots.plot_effect`.

        Parameters
        ----------
        cause, outcome : str or int
            The variable that is set, and the one that is looked at.
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        **settings
            Those of `GraphPosterior.effect`.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=500, random_seed=1, progressbar=False)
        >>> post.plot_effect("erk", "akt", to=6.0, versus=4.0).get_xlabel()
        'effect of erk on akt, from 4 to 6'
        """
        from gpn_bayes.plots import plot_effect

        return plot_effect(self.effect(cause, outcome, **settings), ax)

    def plot_effects(self, ax: "Axes | None" = None, **settings: Any) -> "Axes":
        """Draw the mean effects of all variables on all others as a matrix; see `gpn_bayes.plots.plot_effects`.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.
        **settings
            `draws`, `random_seed` and `progressbar` of `GraphPosterior.effects`.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=500, random_seed=1, progressbar=False)
        >>> post.plot_effects().get_xlabel()
        'outcome'
        """
        from gpn_bayes.plots import plot_effects

        return plot_effects(self, ax, **settings)

    def plot_ppc(self, variables: Sequence[Hashable] | None = None, **settings: Any) -> "np.ndarray":
        """Draw the data beside what the posterior predicts; see `gpn_bayes.plots.plot_ppc`.

        Parameters
        ----------
        variables : sequence of str or int, optional
            Which variables; by default all, or the twelve whose ranks are the least uniform.
        **settings
            `draws`, `tables`, `random_seed` and `progressbar` of
            `gpn_bayes.posterior.predictive_checks.predictive_checks`.

        Returns
        -------
        ndarray of matplotlib Axes, shape (variable, panel)
            From left to right: distributions, real rows, simulated rows, residuals (of numbers only) and ranks.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
        >>> post.plot_ppc(["akt"]).shape
        (1, 5)
        """
        from gpn_bayes.plots import plot_ppc
        from gpn_bayes.posterior.predictive_checks import predictive_checks

        return plot_ppc(predictive_checks(self, variables, **settings))

    def plot_curves(
        self,
        node: Hashable,
        data: Any = None,
        score: Any = None,
        dots: str = "adjusted",
        ax: "Axes | Sequence[Axes] | None" = None,
        **settings: Any,
    ) -> "np.ndarray":
        """Draw how a variable depends on each of its parents; see `gpn_bayes.plots.plot_curves`.

        Parameters
        ----------
        node : str or int
            The variable.
        data : DataFrame, ndarray, path or Dataset, optional
            The table that the posterior is of; only a posterior that was loaded from a file needs it.
        score : GP, optional
            The Gaussian processes to fit; by default those that the posterior was drawn under.
        dots : {"adjusted", "data", "none"}
            The rows with what other parents add to the node taken off, as they are, or not at all.
        ax : matplotlib Axes or several, optional
            Where to draw, one for every panel; by default a new figure. Give your own ``layout="constrained"``.
        **settings
            `parents`, `threshold`, `probability`, `points` and `centred` of `gpn_bayes.posterior.curves.fitted_curves`.

        Returns
        -------
        ndarray of matplotlib Axes
            One for every parent, the most probable first.

        Examples
        --------
        >>> import numpy as np, pandas as pd
        >>> import gpn_bayes as gpn
        >>> x = np.random.default_rng(1).uniform(-3, 3, 60)
        >>> y = np.sin(x) + 0.2 * np.random.default_rng(2).normal(size=60)
        >>> score = gpn.scores.GP(estimator="laplace")
        >>> post = gpn.sample(pd.DataFrame({"x": x, "y": y}), score=score, draws=50, random_seed=1, progressbar=False)
        >>> panels = post.plot_curves("y")
        >>> [(panel.get_xlabel(), panel.get_ylabel()) for panel in panels]
        [('x', 'y')]
        """
        from gpn_bayes.plots import plot_curves

        return plot_curves(self, node, data, score, dots, ax, **settings)


class EffectPicture(DrawnEffect):
    """The picture of an effect."""

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the effect; see `gpn_bayes.plots.plot_effect`.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=500, random_seed=1, progressbar=False)
        >>> post.effect("erk", "akt").plot().get_ylabel()
        'probability'
        """
        from gpn_bayes.plots import plot_effect

        return plot_effect(self, ax)


class ComparisonPicture(PredictiveComparison):
    """The picture of a comparison."""

    def plot(self, ax: "Axes | None" = None) -> "Axes":
        """Draw the differences variable by variable; see `gpn_bayes.plots.plot_elpd`.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; by default a new figure.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek"]]
        >>> posts = {s: gpn.sample(data, score=s, draws=50, random_seed=1, progressbar=False) for s in ("bge", "bic")}
        >>> gpn.compare(posts).plot().get_xlabel()
        'difference of log predictive densities, rows left out (nats)'
        """
        from gpn_bayes.plots import plot_elpd

        return plot_elpd(self, ax)

"""GraphPosterior: weighted draws of DAGs, and the questions they answer."""

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gpn_bayes import graphs
from gpn_bayes._util.cells import safe_html
from gpn_bayes._util.types import Adjacency, Bools, DiGraph, Floats, Ints, Words
from gpn_bayes.data import UnknownTargets
from gpn_bayes.posterior.causal import CausalQueries
from gpn_bayes.posterior.diagnostics import Diagnostics, completed_tables, diagnose, edge_r_hats, weight_ess
from gpn_bayes.posterior.directions import known_directions
from gpn_bayes.posterior.equations import scorer_of
from gpn_bayes.posterior.estimate import (
    Estimate,
    Moments,
    ess_of,
    exact_moments,
    weighted_moments,
    with_spread_between,
)
from gpn_bayes.posterior.exact import ExactAnswers
from gpn_bayes.posterior.impossible_pairs import note_on_effect, note_on_pair
from gpn_bayes.posterior.imputed_tables import chosen_tables
from gpn_bayes.posterior.pictures import DrawPictures
from gpn_bayes.posterior.predictions import Predictions
from gpn_bayes.posterior.protocols import PredictiveComparison
from gpn_bayes.posterior.queries import GraphQueries
from gpn_bayes.posterior.score_noise import ScoreNoise
from gpn_bayes.posterior.score_setting import kinds_of, score_text
from gpn_bayes.posterior.target_answers import TargetAnswers
from gpn_bayes.scores.base import Scorer

if TYPE_CHECKING:
    import xarray as xr

    from gpn_bayes.report import Explorer


@dataclass(eq=False)
class GraphPosterior(GraphQueries, CausalQueries, Predictions, DrawPictures):
    """Draws of DAGs from a posterior, and everything one can ask of them.

    Made by `gpn_bayes.sample` and `gpn_bayes.load`.

    Attributes
    ----------
    names : tuple of str
        The variables.
    parents : ndarray of uint64, shape (chain, draw, node, words)
        The DAGs as parent bits; see `gpn_bayes.graphs.pack`.
    log_score : ndarray of shape (chain, draw)
        Log score of each DAG, prior included.
    log_weights : ndarray of shape (chain, draw), optional
        Log importance weights; None where all draws weigh the same.
    score_errors : ndarray of shape (chain, draw, node), optional
        Standard error of the score of each node given its parents; NaN where unknown, None where all are exact.
    stats : dict of ndarray, each of shape (chain, draw)
        What the sampler reports of each draw.
    settings : dict
        How the draws were made, JSON-able.
    exact : ExactAnswers, optional
        Exact probabilities, from the exact sampler; None where its draws were weighted to another score.
    scorer : callable, optional
        Takes an adjacency matrix and returns the log score of that DAG, prior included; None where a file doesn't say
        which score it was.
    data : Dataset or SufficientStatistics, optional
        What the posterior is given; None where it was saved without.
    completed : ndarray of shape (tables, missing entries), optional
        What was drawn for missing entries, row by row, at some of the draws; see `imputed`.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> print(post.edge_probability("raf", "akt"))
    0.023 (exact)
    >>> best = post.map()
    >>> best.number_of_edges(), round(best.graph["log_score"], 1)
    (2, -4117.2)
    >>> post.log_weights is None, float(post.weights.mean())
    (True, 1.0)
    """

    names: tuple[str, ...]
    parents: Words
    log_score: Floats
    log_weights: Floats | None = None
    stats: dict[str, NDArray[Any]] = field(default_factory=dict)
    settings: dict[str, Any] = field(default_factory=dict)
    exact: ExactAnswers | None = None
    scorer: Callable[[Adjacency], float] | None = None
    score_errors: Floats | None = None
    data: Any = field(default=None, repr=False)
    completed: Floats | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        """Say in one line what was drawn, and what the columns of a mixed table were taken for."""
        chains, draws = self.log_score.shape
        sampler = self.settings.get("sampler", "unknown")
        kinds = "".join(f"; {text}" for text in kinds_of(self.settings))
        return (
            f"<GraphPosterior: {len(self.names)} variables, {chains} x {draws} DAGs, {sampler} sampler, "
            f"score {score_text(self.settings)}{kinds}>"
        )

    # The draws and their weights

    @property
    def _target_sets(self) -> list[list[int]]:
        known = self.settings.get("interventions")
        if known is None:
            return []
        if known["kind"] == UnknownTargets.kind:
            return [np.flatnonzero(row > 0.5).tolist() for row in self.target_probabilities().to_numpy()]
        return [[self._index(name) for name in one["targets"]] for one in known["experiments"]]

    @cached_property
    def _known_directions(self) -> dict[str, Bools]:
        # Which targets are probable, where they aren't known, would take scores of all the parent sets drawn.
        unknown = (self.settings.get("interventions") or {}).get("kind") == UnknownTargets.kind
        return known_directions(self.settings, len(self.names), [] if unknown else self._target_sets)

    @cached_property
    def weights(self) -> Floats:
        """The weight of each draw, of mean one; all alike where `log_weights` is None."""
        if self.log_weights is None:
            return np.ones_like(self.log_score)
        weights: Floats = np.exp(self.log_weights - self.log_weights.max())
        return weights / weights.mean()

    @cached_property
    def _listed(self) -> tuple[np.ndarray, np.ndarray] | None:
        """All DAGs and their probabilities, where they can be listed."""
        return None if self.exact is None else self.exact.all_dags()

    @cached_property
    def _ess_of_log_score(self) -> float:
        size = float(sum(map(ess_of, np.split(self.log_score, completed_tables(self.settings)))))
        return min(size if np.isfinite(size) else self.log_score.size, weight_ess(self.weights))

    @cached_property
    def _noise(self) -> ScoreNoise | None:
        """What the errors of the scores do to the answers; None where there are none."""
        if self.score_errors is None:
            return None
        parents, first, inverse = self._distinct
        errors = self.score_errors.reshape(-1, len(self.names))[first]
        return ScoreNoise(parents, np.bincount(inverse, self.weights.ravel()), errors)

    def _moments(self, features_of: Callable[[np.ndarray], np.ndarray]) -> Moments:
        """Return the posterior means of features of a stack of DAGs, as arrays over the features."""
        if self._listed is not None:
            dags, probabilities = self._listed
            features = np.asarray(features_of(dags), dtype=float).reshape(len(dags), -1)
            # Probabilities add up to one but for rounding, which would show where nothing varies.
            means = np.where(np.ptp(features, axis=0) == 0, features[0], probabilities @ features)
            return self._exactly(means, features_of)
        features = self._features(features_of)
        which = self._distinct[2].reshape(self.log_score.shape)
        moments = weighted_moments(features, which, self.weights, self._ess_of_log_score)
        if (tables := completed_tables(self.settings)) > 1:
            moments = with_spread_between(moments, features, which, self.weights, tables)
        if self._noise is None:
            return moments
        return moments._replace(mcse=np.hypot(moments.mcse, self._noise.errors_of(features)))

    def _drawn_moments(self, values: Floats, places: Ints, weights: Floats) -> Moments:
        """Return the posterior means of numbers that were drawn with some of the DAGs: (draw, feature).

        Parameters
        ----------
        values : ndarray of shape (draws, features)
            The numbers.
        places : ndarray of int
            Which draws they are of, counted through all chains.
        weights : ndarray of shape (chain, draw)
            The weights of these draws.
        """
        which = np.arange(len(values)).reshape(weights.shape)
        moments = weighted_moments(values, which, weights, self._ess_of_log_score)
        if self._noise is None:
            return moments
        # DAGs that are not among these count as the average.
        distinct, _, inverse = self._distinct
        own = np.bincount(inverse[places], weights.ravel(), len(distinct))
        sums = [np.bincount(inverse[places], weights.ravel() * column, len(distinct)) for column in values.T]
        features = np.where(own > 0, np.array(sums) / np.where(own > 0, own, 1.0), moments.value[:, None]).T
        return moments._replace(mcse=np.hypot(moments.mcse, self._noise.errors_of(features)))

    def _exactly(self, value: np.ndarray, features_of: Callable[[np.ndarray], np.ndarray]) -> Moments:
        """Return exact means with the error that the scores leave in them, as the draws tell it."""
        if self._noise is None:
            return exact_moments(value)
        features = self._features(features_of)
        same = (features == features[0]).all(axis=0)
        noise = np.where(same, self._noise.bound(value - features[0]), self._noise.errors_of(features))
        return exact_moments(value, noise)

    # Questions

    @cached_property
    def _edge_moments(self) -> Moments:
        if self.exact is not None:
            return self._exactly(self.exact.edges.ravel(), lambda dags: dags)
        return self._drawn_edge_moments()

    def _joined_moments(self, i: Sequence[int] | np.ndarray, j: Sequence[int] | np.ndarray) -> Moments:
        if self.exact is None:
            return super()._joined_moments(i, j)
        # No DAG holds both directions.
        value = np.minimum(self.exact.edges[i, j] + self.exact.edges[j, i], 1.0)
        return self._exactly(value, lambda dags: dags[:, i, j] | dags[:, j, i])

    def _note_on_pair(self, i: int, j: int) -> str:
        return note_on_pair(self.settings, i, j)

    def _note_on_effect(self, i: int, j: int) -> str:
        return note_on_effect(self.settings, self.names, i, j)

    def parent_set_probabilities(self, node: Hashable) -> pd.DataFrame:
        """Return the parent sets of a variable by decreasing probability; exact from the exact sampler.

        Parameters
        ----------
        node : str or int
            The variable.

        Returns
        -------
        DataFrame
            Columns `parents`, a tuple of names, and `probability`.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
        >>> post.parent_set_probabilities("erk").round(2).head(3).to_numpy().tolist()
        [[(), 0.49], [('akt',), 0.45], [('mek', 'akt'), 0.04]]
        """
        i = self._index(node)
        if self.exact is not None:
            chosen, probability = self.exact.candidates[i], self.exact.parent_sets[i]
            masks = np.flatnonzero(probability > 0)
            sets = [tuple(self.names[c] for b, c in enumerate(chosen) if mask >> b & 1) for mask in masks]
            table = pd.DataFrame({"parents": sets, "probability": probability[masks]})
        else:
            columns = graphs.parents_of(self.parents, i).reshape(-1, len(self.names))
            distinct, inverse = np.unique(columns, axis=0, return_inverse=True)
            weight = np.bincount(inverse.reshape(-1), self.weights.ravel())
            sets = [tuple(self.names[j] for j in np.flatnonzero(row)) for row in distinct]
            table = pd.DataFrame({"parents": sets, "probability": weight / weight.sum()})
        return table.sort_values("probability", ascending=False, kind="stable", ignore_index=True)

    @cached_property
    def _target_answers(self) -> TargetAnswers:
        return TargetAnswers(self.scorer)

    @cached_property
    def _target_moments(self) -> Moments:
        if self.exact is not None:
            return self._exactly(self._target_answers.averaged(self.exact), self._target_answers.of_dags)
        return self._moments(self._target_answers.of_dags)

    def target_probabilities(self, errors: bool = False) -> pd.DataFrame:
        """Return the probability that each experiment changed how each variable depends on its parents.

        Of experiments whose targets are unknown, ``contexts=`` of `gpn_bayes.sample`.

        Parameters
        ----------
        errors : bool, default False
            Whether to return the Monte Carlo standard errors instead.

        Returns
        -------
        DataFrame
            Rows are contexts, but for the reference, and columns variables.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> cells = gpn.datasets.sachs_interventional(transform="log2")
        >>> few = cells[cells["target"].isin(["", "mek"])][["raf", "mek", "erk", "condition"]]
        >>> post = gpn.sample(few, score="bge", contexts="condition", draws=100, random_seed=1, progressbar=False)
        >>> post.target_probabilities().round(2)
        variable       raf  mek  erk
        context
        cd3cd28icam2   0.0  1.0  1.0
        cd3cd28_u0126  1.0  1.0  1.0
        """
        moments = self._target_moments
        values = moments.mcse if errors else moments.value
        return pd.DataFrame(
            values.reshape(-1, len(self.names)),
            index=pd.Index(self._target_answers.contexts, name="context"),
            columns=pd.Index(self.names, name="variable"),
        )

    def target_probability(self, context: Hashable, variable: Hashable) -> Estimate:
        """Return the probability that an experiment changed how a variable depends on its parents, with its error.

        Parameters
        ----------
        context : str
            The experiment.
        variable : str or int
            The variable.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> cells = gpn.datasets.sachs_interventional(transform="log2")
        >>> few = cells[cells["target"].isin(["", "mek"])][["raf", "mek", "erk", "condition"]]
        >>> post = gpn.sample(few, score="bge", contexts="condition", draws=100, random_seed=1, progressbar=False)
        >>> print(post.target_probability("cd3cd28_u0126", "erk"))
        1.000 (exact)
        """
        contexts = self._target_answers.contexts
        if str(context) not in contexts:
            raise ValueError(f"a context must be one of {', '.join(map(repr, contexts))}; received {context!r}")
        place = contexts.index(str(context)) * len(self.names) + self._index(variable)
        value, mcse, ess, _ = (column[place] for column in self._target_moments)
        return Estimate(float(value), float(mcse), float(ess))

    def imputed(self, m: int = 5) -> list[pd.DataFrame]:
        """Return completed tables, in which missing values are as they were drawn with some of the DAGs.

        Of a run with ``missing="impute"``. Each is one draw from the posterior of all missing values: an analysis of
        several of them, pooled by Rubin's rules, takes into account that they aren't known.

        Parameters
        ----------
        m : int, default 5
            How many, spread evenly over those that were kept: 5 of each chain.

        Returns
        -------
        list of DataFrame
            In the units and levels of the table; observed values are untouched.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk"]]
        >>> data.loc[3, "mek"] = float("nan")
        >>> post = gpn.sample(data, score="bge", missing="impute", draws=50, tune=20, random_seed=1, progressbar=False)
        >>> tables = post.imputed(m=2)
        >>> len(tables), tables[0].shape, bool(tables[0].loc[3, "mek"] != tables[1].loc[3, "mek"])
        (2, (853, 3), True)
        """
        return chosen_tables(self.completed, self.data, m)

    # Graphs

    def map(self) -> DiGraph:
        """Return the drawn DAG of the highest score; its log score is in ``graph.graph["log_score"]``.

        Where missing values were imputed, scores are of different completed tables: then it is the DAG drawn most
        often, with its average score.
        """
        if "imputed" in self.settings.get("missing", {}):
            return self._most_frequent()
        best = np.unravel_index(int(self.log_score.argmax()), self.log_score.shape)
        graph = graphs.to_networkx(graphs.unpack(self.parents[best], len(self.names)), self.names)
        graph.graph["log_score"] = float(self.log_score[best])
        return graph

    def _most_frequent(self) -> DiGraph:
        parents, _, inverse = self._distinct
        weight = np.bincount(inverse, self.weights.ravel())
        best = int(weight.argmax())
        graph = graphs.to_networkx(graphs.unpack(parents[best], len(self.names)), self.names)
        own = np.bincount(inverse, self.weights.ravel() * self.log_score.ravel())
        graph.graph["log_score"] = float(own[best] / weight[best])
        return graph

    def _best_dag(self) -> DiGraph:
        return self.map()

    def _table_scorer(self) -> Scorer:
        return scorer_of(self, "tables")

    def graphs(self, distinct: bool = False) -> Iterator[DiGraph]:
        """Yield the drawn DAGs, with ``log_score`` and ``weight`` (of mean one) in ``graph.graph``.

        Parameters
        ----------
        distinct : bool, default False
            Yield each DAG once, by falling posterior ``probability``, instead of every draw.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
        >>> sum(graph.has_edge("raf", "mek") for graph in post.graphs()), post.log_score.size
        (199, 400)
        >>> likeliest = next(post.graphs(distinct=True))
        >>> sorted(likeliest.edges), likeliest.graph["probability"]
        ([('erk', 'akt'), ('mek', 'raf')], 0.215)
        """
        if not distinct:
            flat = self.parents.reshape(-1, *self.parents.shape[2:])
            for dag, score, weight in zip(flat, self.log_score.flat, self.weights.flat, strict=True):
                graph = graphs.to_networkx(graphs.unpack(dag, len(self.names)), self.names)
                graph.graph.update(log_score=float(score), weight=float(weight))
                yield graph
            return
        dags, first, inverse = self._distinct
        probability = np.bincount(inverse, self.weights.ravel()) / self.weights.sum()
        for k in np.argsort(-probability, kind="stable"):
            graph = graphs.to_networkx(graphs.unpack(dags[k], len(self.names)), self.names)
            graph.graph.update(log_score=float(self.log_score.flat[first[k]]), probability=float(probability[k]))
            yield graph

    def log_score_gap(self, graph: Any) -> float:
        """Return how far the log score of a DAG lies below that of the best drawn DAG.

        Parameters
        ----------
        graph : networkx.DiGraph, array or edge list
            The DAG, over the posterior's variables.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> truth = gpn.datasets.sachs_consensus(17).subgraph(data.columns)
        >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
        >>> round(post.log_score_gap(truth), 1)
        4.3
        """
        if self.scorer is None:
            raise ValueError("this posterior has no score to compare a DAG by; sample again")
        return float(self.log_score.max() - self.scorer(graphs.as_adjacency(graph, self.names)))

    # Trust, and the way out

    def summary(self) -> pd.DataFrame:
        """Return a tidy table of all edges by decreasing probability.

        Returns
        -------
        DataFrame
            Columns `edge`, `parent`, `child`, `probability`, `mcse`, `ess`, `r_hat` and `status`: "sampled",
            "exact", "never" or "always" (constant over all chains) or "chains disagree" (constant within
            each chain but not the same in all).

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
        >>> post.summary()[["edge", "probability", "status"]].round(2).head(3)
                 edge  probability status
        0  akt -> erk          0.5  exact
        1  mek -> raf          0.5  exact
        2  raf -> mek          0.5  exact
        """
        n = len(self.names)
        parent, child = np.nonzero(~np.eye(n, dtype=bool))
        places = parent * n + child
        value, mcse, ess, status = (column[places] for column in self._edge_moments)
        varies = np.flatnonzero(self._edge_moments.status == "sampled")
        table = pd.DataFrame(
            {
                "edge": [f"{self.names[i]} -> {self.names[j]}" for i, j in zip(parent, child, strict=True)],
                "parent": [self.names[i] for i in parent],
                "child": [self.names[j] for j in child],
                "probability": value,
                "mcse": mcse,
                "ess": ess,
                "r_hat": edge_r_hats(self, varies)[places],
                "status": status,
            }
        )
        return table.sort_values("probability", ascending=False, kind="stable", ignore_index=True)

    def diagnostics(self) -> Diagnostics:
        """Return whether sampling has converged, what the answers assume, and what is odd in the data; print it.

        Returns
        -------
        Diagnostics
            `Diagnostics.ok` is True where nothing speaks against the sampling. That says nothing of the assumptions
            and the data, which `Diagnostics.assumptions` and `Diagnostics.data_flags` are about.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
        >>> diagnostics = post.diagnostics()
        >>> diagnostics.ok, diagnostics.heading, diagnostics.assumptions[3]
        (True, 'Computed exactly, without sampling error.',
         'Every variable is a linear function of its parents plus normal noise.')
        >>> diagnostics.data_heading, [(flag.kind, flag.columns) for flag in diagnostics.data_flags]
        ('Checks of the data raised 2 flags.', [('outliers', ('akt',)), ('heavy tails', ('raf', 'mek', 'erk'))])
        """
        return diagnose(self)

    def to_arviz(
        self,
        varying_only: bool = False,
        resample: bool = True,
        random_seed: int = 0,
        *,
        log_likelihood: bool = False,
        posterior_predictive: bool = False,
        variable: Hashable | None = None,
        progressbar: bool = True,
    ) -> "xr.DataTree":
        """Return the draws as an ArviZ DataTree: ``edge`` in ``posterior``, ``lp`` in ``sample_stats``.

        ``edge`` is int8 over (chain, draw, parent, child). ArviZ knows no weights, so weighted draws are resampled to
        draws of equal weight, each chain by itself (systematic resampling); a draw of large weight then appears
        several times in a row. The attributes of the group ``posterior`` keep the effective size of the weights,
        ``weight_ess``, and the number of ``distinct_draws``. Errors that ArviZ reports are those of the draws alone:
        `summary` also counts the errors of the scores, which are in the group ``score_errors``.

        Parameters
        ----------
        varying_only : bool, default False
            Export only edges that change within some chain, along one dimension named like "a -> b". ArviZ divides by
            zero on the others, self-loops among them, when it computes R-hat for its summaries and plots.
        resample : bool, default True
            With False, weighted draws are exported as they were drawn, with their weights in a group ``log_weights``.
            ArviZ ignores that group: means over such draws are not posterior means.
        random_seed : int, default 0
            For the resampling, and for the tables of `posterior_predictive`.
        log_likelihood : bool, default False
            Add a group ``log_likelihood``: ``rows``, over (chain, draw, row), is log p(row | all other rows, DAG),
            parameters integrated out and variables standardised as they were with the row, in units of the table. With
            these, ``arviz.loo`` estimates how well the posterior, averaged over DAGs, predicts a row from all others.
            Parameters being integrated out, weights are bounded and come in ties, one for each class of DAGs: where
            ArviZ finds no tail to fit, its Pareto k is NaN, and where a tail is made of few ties, k can be large
            though nothing is wrong.
        posterior_predictive : bool, default False
            Add a group ``posterior_predictive``: each variable, over (chain, draw, row), in a new table from every DAG
            with one draw of its parameters; categories as codes of their levels. ``observed_data`` has the old table.
        variable : str or int, optional
            Let these groups be about one variable given its parents in the same row, under its own name: then
            ``arviz.loo`` says how well it is predicted from its parents, and ``arviz.loo_pit`` and ``plot_loo_pit``
            whether these predictions are calibrated.
        progressbar : bool, default True
            Whether to show progress where these take long, under Gaussian processes.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
        >>> tree = post.to_arviz()
        >>> float(tree["posterior"]["edge"].sel(parent="raf", child="mek").mean())
        0.4975

        How well are rows predicted from all others, per row on average?

        >>> import arviz as az
        >>> few = gpn.sample(data[["raf", "mek"]], score="bge", draws=100, random_seed=1, progressbar=False)
        >>> float(round(az.loo(few.to_arviz(log_likelihood=True)).elpd / len(data), 2))
        -2.27
        """
        from gpn_bayes.posterior.export import to_arviz
        from gpn_bayes.posterior.leave_one_out import Wanted

        wanted = None
        if log_likelihood or posterior_predictive:
            node = None if variable is None else graphs.node_index(variable, self.names)
            wanted = Wanted(log_likelihood, posterior_predictive, node, random_seed, progressbar)
        return to_arviz(self, varying_only, resample, random_seed, wanted)

    def save(self, path: str | PathLike[str], overwrite: bool = False, data: bool = True) -> None:
        """Write the posterior to a netCDF file, to be read by `gpn_bayes.load`.

        Parameters
        ----------
        path : path
            Where to write, such as ``"posterior.nc"``.
        overwrite : bool, default False
            Whether an existing file may be replaced.
        data : bool, default True
            Whether the file holds the table too, so that curves, reports and scores need nothing else after loading.
            Use False where rows must not leave your hands.

        Examples
        --------
        >>> import tempfile
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     post.save(f"{folder}/posterior.nc")
        ...     gpn.load(f"{folder}/posterior.nc")
        <GraphPosterior: 4 variables, 4 x 100 DAGs, exact sampler, score BGe(alpha_mu=1.0, alpha_w=None, t0=None)>
        """
        from gpn_bayes.posterior.export import save

        save(self, path, overwrite, data)

    def report(
        self,
        path: str | PathLike[str],
        data: Any = None,
        curves: int = 24,
        overwrite: bool = False,
        comparison: PredictiveComparison | None = None,
    ) -> Path:
        """Write an HTML report, one file that works offline; see `gpn_bayes.report.write_report`.

        Parameters
        ----------
        path : path
            Where to write, such as ``"report.html"``.
        data : DataFrame, ndarray, path or Dataset, optional
            The table that the posterior is of; only the curves and effects of one that was saved without need it.
        curves : int, default 24
            Of how many variables to draw fitted curves, under the Gaussian-process score, and of how many pairs to
            compute effects that are curves or tables; 0 for none.
        overwrite : bool, default False
            Whether an existing file may be replaced.
        comparison : Comparison, optional
            What `gpn_bayes.compare` found of this posterior and others, to be shown variable by variable.

        Returns
        -------
        Path
            Where the report is.

        Examples
        --------
        >>> import tempfile
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     post.report(f"{folder}/report.html").name
        'report.html'
        """
        from gpn_bayes.report import write_report

        return write_report(self, path, data, curves, overwrite, comparison=comparison)

    def explore(self, height: int = 760, data: Any = None, curves: int = 24) -> "Explorer":
        """Show the report inside a notebook: the same page, which answers questions, without a file.

        Parameters
        ----------
        height : int, default 760
            Of the frame, in pixels.
        data, curves : optional
            As in `report`.

        Returns
        -------
        Explorer
            What the notebook shows, if it is the last line of a cell or given to ``display``.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
        >>> post.explore(height=600)
        <Explorer: a page for notebooks; elsewhere write post.report('report.html') and open that>
        """
        from gpn_bayes.report import explore

        return explore(self, height, data, curves)

    @safe_html
    def _repr_html_(self) -> str:
        from gpn_bayes.report.summaries import posterior_cell

        return posterior_cell(self)

"""bootstrap(): how often a learner finds each edge in resampled rows. Not a posterior, but with the same interface."""

import os
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Unpack

import numpy as np
import pandas as pd
from sklearn.base import clone

from gpn_bayes import graphs
from gpn_bayes._util.blas_threads import one_blas_thread
from gpn_bayes._util.cells import safe_html
from gpn_bayes._util.checks import check_count, shown
from gpn_bayes._util.progress import progress_bar
from gpn_bayes._util.seeds import generator
from gpn_bayes._util.types import DiGraph
from gpn_bayes.data import Dataset, TableKeywords, described, read_complete, refuse_interventions, refuse_weights
from gpn_bayes.estimators.base import GraphEstimator
from gpn_bayes.estimators.pc import NO_DAG
from gpn_bayes.graphs import equivalence
from gpn_bayes.posterior.directions import known_to_learner
from gpn_bayes.posterior.draws import ResampledGraphs
from gpn_bayes.posterior.graph_posterior import GraphQuestions
from gpn_bayes.scores import Scorer

# Resamples that leave a column constant are drawn again, at most this many times.
MAX_REDRAWS = 100


class BootstrapResult(ResampledGraphs, GraphQuestions):
    """Bootstrap frequencies: the graphs that a learner found in resampled rows, and the questions they answer.

    It has the interface of a `GraphPosterior`, but its numbers say how often the learner found something, not how
    probable it is. Errors (`mcse`) are those of a finite number of resamples. Made by `gpn_bayes.bootstrap`.

    Attributes
    ----------
    names : tuple of str
        The variables.
    parents : ndarray of uint64, shape (1, resamples, node, words)
        The DAGs as parent bits; see `gpn_bayes.graphs.pack`.
    learner : str
        What learnt them.
    inconsistent : int
        How many resamples gave a graph that no DAG agrees with, and count as a DAG near to it.
    data : Dataset, optional
        The rows that were resampled.
    known : mapping, optional
        The pairs that the learner could join in one direction only, by what it was given, such as "tiers".

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.simulate.linear(nx.DiGraph([("raf", "mek"), ("mek", "erk")]), 200, random_seed=1)
    >>> gpn.bootstrap(gpn.estimators.PC(alpha=0.01), data, n=20, random_seed=1, progressbar=False)
    <bootstrap frequencies of PC(alpha=0.01), 20 resamples>
    """

    _best: ClassVar[str] = "mode"

    def __repr__(self) -> str:
        """Return a one-line description."""
        return f"<{self._told()}>"

    def _told(self) -> str:
        return f"bootstrap frequencies of {self.learner}, {self.resamples} resamples"

    @safe_html
    def _repr_html_(self) -> str:
        from gpn_bayes.report.summaries import bootstrap_cell

        return bootstrap_cell(self)

    def _best_dag(self) -> DiGraph:
        return next(self.graphs(distinct=True))

    def _table_scorer(self) -> Scorer:
        raise ValueError("tables are fitted to the data; a bootstrap keeps none: export a fitted learner")

    def graphs(self, distinct: bool = False) -> Iterator[DiGraph]:
        """Yield the DAGs of the resamples.

        Parameters
        ----------
        distinct : bool, default False
            Yield each DAG once, by descending ``frequency`` in ``graph.graph``, instead of one for every resample.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> boot = gpn.bootstrap(gpn.estimators.PC(alpha=0.01), data, n=20, random_seed=1, progressbar=False)
        >>> graph = next(boot.graphs(distinct=True))
        >>> graph.number_of_edges(), graph.graph["frequency"]
        (2, 0.55)
        """
        if not distinct:
            for dag in self.adjacency[0]:
                yield graphs.to_networkx(dag, self.names)
            return
        dags, _, inverse = self._distinct
        shares = np.bincount(inverse) / len(inverse)
        for k in np.argsort(-shares, kind="stable"):
            graph = graphs.to_networkx(graphs.unpack(dags[k], len(self.names)), self.names)
            graph.graph["frequency"] = float(shares[k])
            yield graph

    def summary(self) -> pd.DataFrame:
        """Return a tidy table of all edges by descending frequency.

        Returns
        -------
        DataFrame
            Columns `edge`, `parent`, `child`, `frequency`, `mcse` and `status`: "sampled", "never" or "always".
            ``attrs["title"]`` says what it is of.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> boot = gpn.bootstrap(gpn.estimators.PC(alpha=0.01), data, n=20, random_seed=1, progressbar=False)
        >>> boot.summary()[["edge", "frequency", "status"]].head(3)
                 edge  frequency   status
        0  erk -> akt       0.75  sampled
        1  mek -> raf       0.60  sampled
        2  raf -> mek       0.40  sampled
        """
        n = len(self.names)
        parent, child = np.nonzero(~np.eye(n, dtype=bool))
        places = parent * n + child
        table = pd.DataFrame(
            {
                "edge": [f"{self.names[i]} -> {self.names[j]}" for i, j in zip(parent, child, strict=True)],
                "parent": [self.names[i] for i in parent],
                "child": [self.names[j] for j in child],
                "frequency": self._edge_moments.value[places],
                "mcse": self._edge_moments.mcse[places],
                "status": self._edge_moments.status[places],
            }
        ).sort_values("frequency", ascending=False, kind="stable", ignore_index=True)
        table.attrs["title"] = self._told()
        return table

    def report(self, path: str | PathLike[str], overwrite: bool = False) -> Path:
        """Write an HTML report of the frequencies, one file that works offline.

        Parameters
        ----------
        path : path
            Where to write, such as ``"report.html"``.
        overwrite : bool, default False
            Whether an existing file may be replaced.

        Returns
        -------
        Path
            Where the report is.

        Examples
        --------
        >>> import tempfile
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> boot = gpn.bootstrap(gpn.estimators.PC(alpha=0.01), data, n=20, random_seed=1, progressbar=False)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     boot.report(f"{folder}/report.html").name
        'report.html'
        """
        from gpn_bayes.report import write_bootstrap_report

        return write_bootstrap_report(self, path, overwrite)


def bootstrap(
    estimator: GraphEstimator,
    df: Any,
    n: int = 100,
    random_seed: Any = None,
    cores: int | None = None,
    progressbar: bool = True,
    **table: Unpack[TableKeywords],
) -> BootstrapResult:
    """Fit a learner to resampled rows many times, and count the edges it finds.

    Each resample has as many rows as the data, drawn with replacement. A learner that returns an equivalence class,
    such as PC, counts with one DAG of the class, each with the same probability: a direction that isn't identifiable
    counts one way or the other. `cpdag_edges` describes the classes themselves. Where no DAG agrees with what it found,
    a DAG near to it counts (see `BootstrapResult.inconsistent`).

    Tests at a given level find more edges in a resample than in the data: its copied rows make any two variables look
    more alike than they are.

    Parameters
    ----------
    estimator : GraphEstimator
        Any learner of `gpn_bayes.estimators`. It isn't changed: copies of it are fitted, with a `random_state` that
        follows from `random_seed`.
    df : DataFrame, ndarray, path, Table or Dataset
        The data. Discrete columns keep levels that a resample misses; a resample in which some column is constant is
        drawn again.
    n : int, default 100
        Number of resamples.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness. The result depends on nothing else.
    cores : int, optional
        Number of threads; by default as many as there are cores.
    progressbar : bool
        Whether to show progress.
    **table
        What describes rows and columns, as of `gpn_bayes.Table`. All rows must count alike and be merely observed.

    Returns
    -------
    BootstrapResult
        After Ctrl-C, of the resamples done by then, with a warning.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.simulate.linear(nx.DiGraph([("raf", "erk"), ("pka", "erk")]), 200, random_seed=1)
    >>> boot = gpn.bootstrap(gpn.estimators.PC(alpha=0.01), data, n=20, random_seed=1, progressbar=False)
    >>> boot.edge_probability("raf", "erk").value > 0.8
    True
    """
    if not isinstance(estimator, GraphEstimator):
        raise ValueError(f"the estimator must be a learner of gpn_bayes.estimators; received {shown(estimator)}")
    check_count("n", n, 1)
    if cores is not None:
        check_count("cores", cores, 1)
    data = read_complete(described(df, table)).with_rows("a bootstrap needs the rows")
    refuse_interventions(data, "a bootstrap")
    refuse_weights(data, "a bootstrap")
    rngs = generator("random_seed", random_seed).spawn(n)
    with warnings.catch_warnings(), progress_bar("Bootstrap", n, progressbar) as advance:
        # These are counted.
        warnings.filterwarnings("ignore", NO_DAG, UserWarning)
        fitted = _fit_all(estimator, data, rngs, cores or os.cpu_count() or 1, advance)
    if len(fitted) < n:
        warnings.warn(f"the bootstrap was interrupted: {len(fitted)} of {n} resamples are kept", UserWarning, 2)
    dags = np.stack([one.dag for one in fitted])
    learner = " ".join(repr(estimator).split())
    inconsistent = sum(not one.consistent for one in fitted)
    known = known_to_learner(estimator.get_params(deep=False), data.names)
    return BootstrapResult(data.names, graphs.pack(dags)[None], learner, inconsistent, data, known)


class _Found(NamedTuple):
    """The DAG of a resample, and whether it agrees with all that the learner found."""

    dag: np.ndarray
    consistent: bool


@one_blas_thread
def _fit_all(
    estimator: GraphEstimator,
    data: Dataset,
    rngs: list[np.random.Generator],
    cores: int,
    advance: Callable[[float], None],
) -> list[_Found]:
    """Fit all resamples in threads; after Ctrl-C return what is done, once the fits under way have ended."""
    pool = ThreadPoolExecutor(cores, thread_name_prefix="bootstrap")
    futures: list[Future[_Found]] = [pool.submit(_fit_one, estimator, data, rng) for rng in rngs]
    try:
        for future in as_completed(futures):
            future.result()
            advance(1)
    except KeyboardInterrupt:
        pool.shutdown(cancel_futures=True)
        done = [future.result() for future in futures if not future.cancelled() and future.exception() is None]
        if not done:
            raise
        return done
    finally:
        pool.shutdown(cancel_futures=True)
    return [future.result() for future in futures]


def _fit_one(estimator: GraphEstimator, data: Dataset, rng: np.random.Generator) -> _Found:
    rows = _resample(data, rng)
    settings = {"random_state": int(rng.integers(2**31)), "progressbar": False}
    own = {name: value for name, value in settings.items() if name in estimator.get_params(deep=False)}
    adjacency = clone(estimator).set_params(**own).fit(rows).adjacency_
    if graphs.is_acyclic(adjacency):
        return _Found(adjacency, True)
    dag = equivalence.random_extension(adjacency, rng)
    return _Found(equivalence.nearest_dag(adjacency, rng), False) if dag is None else _Found(dag, True)


def _resample(data: Dataset, rng: np.random.Generator) -> Dataset:
    """Return as many rows drawn with replacement, in which every column varies."""
    for _ in range(MAX_REDRAWS):
        values = data.values[rng.integers(data.n_rows, size=data.n_rows)]
        varies = np.ptp(values, axis=0) > 0
        if varies.all():
            values.setflags(write=False)
            return Dataset(data.names, values, data.kinds, data.levels)
    name = data.names[int(np.argmin(varies))]
    raise ValueError(f"every column must vary in a resample; column {name!r} was constant in {MAX_REDRAWS} of them")

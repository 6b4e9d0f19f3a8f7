"""The score interface: a `Score` says how to score, and bound to data it is a `Scorer`, or one of groups of rows."""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple, Protocol, Unpack

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

from gpn_bayes import graphs
from gpn_bayes._util.checks import shown
from gpn_bayes._util.types import Bools, Floats, Ints
from gpn_bayes.data import Data, Dataset, TableKeywords, described, read_complete
from gpn_bayes.data.interventions import Group, KnownTargets, Term, UnknownTargets
from gpn_bayes.kernels.graphs.subsets import MAX_CANDIDATES, members_of
from gpn_bayes.scores.assumptions import EQUIVALENCE, EQUIVALENCE_OF_EXPERIMENTS, EXPERIMENTS
from gpn_bayes.scores.equations import Equation, LevelsEquation, LinearEquation, LinearEquations
from gpn_bayes.scores.registry import register

Node = str | int

# Scores of ways in which mechanisms may have been changed that are kept at a time.
_CHUNK = 4_000_000
# Up to this many ways, slow scores are computed for all of them; beyond, for those that a search finds.
_MAX_SLOW_TERMS = 16
# Ways whose log probability is lower than the highest by this much lead to no others.
_NEGLIGIBLE = 12.0
# Ways whose probability is below this by a proposal score, all taken together, keep that score.
_LEAST_TO_ESTIMATE = 1e-5
# Groups of rows that count for less don't tell how good a score is.
_COUNTS = 0.001


# Above this Pareto k, weighted draws can't be relied on.
LARGEST_K_HAT = 0.7


class Estimated(Protocol):
    """What there is of a score that was estimated."""

    @property
    def log_evidence(self) -> float:
        """The score."""

    @property
    def error(self) -> float:
        """Its standard error."""

    @property
    def k_hat(self) -> float:
        """The Pareto k of its weights."""


class ScoreBatch(NamedTuple):
    """Scores of several parent sets of one node.

    Attributes
    ----------
    values : ndarray
        The log scores.
    errors : ndarray
        Their standard errors: 0 in closed form, NaN where unknown.
    k_hats : ndarray
        The Pareto k of each estimate; NaN where there is none.
    statuses : list of str
        "exact", "ok", or what went wrong.

    Examples
    --------
    >>> from gpn_bayes import datasets, scores
    >>> scorer = scores.BGe().bind(datasets.sachs(transform="log2"))
    >>> batch = scorer.score_sets(1, [(), (0,)])
    >>> batch.values.round(1).tolist(), batch.errors.tolist(), batch.statuses
    ([-1217.5, -953.2], [0.0, 0.0], ['exact', 'exact'])
    """

    values: Floats
    errors: Floats
    k_hats: Floats
    statuses: list[str]

    @staticmethod
    def checked(found: Any, count: int) -> "ScoreBatch":
        """Return what a scorer returned, if it is a batch of as many scores as there were sets.

        Parameters
        ----------
        found : object
            What ``score_sets`` returned, perhaps that of a user's own.
        count : int
            How many parent sets it was given.

        Examples
        --------
        >>> ScoreBatch.checked(ScoreBatch.exact(np.array([-3.5])), 2)
        Traceback (most recent call last):
        ValueError: score_sets must return a score for each of 2 parent sets; received 1
        >>> ScoreBatch.checked(None, 2)
        Traceback (most recent call last):
        ValueError: score_sets must return a ScoreBatch; received NoneType
        """
        if not isinstance(found, ScoreBatch):
            raise ValueError(f"score_sets must return a ScoreBatch; received {type(found).__name__}")
        if np.shape(found.values) != (count,):
            received = len(found.values) if np.ndim(found.values) == 1 else shown(found.values)
            raise ValueError(f"score_sets must return a score for each of {count} parent sets; received {received}")
        return found

    @classmethod
    def exact(cls, values: Floats) -> "ScoreBatch":
        """Return scores in closed form, which have no error.

        Examples
        --------
        >>> ScoreBatch.exact(np.array([-3.5])).statuses
        ['exact']
        """
        return cls(values, np.zeros(len(values)), np.full(len(values), np.nan), ["exact"] * len(values))

    @classmethod
    def estimated(cls, found: "Iterable[Estimated]") -> "ScoreBatch":
        """Return scores that were estimated, each with its error and the Pareto k of its weights.

        Parameters
        ----------
        found : iterable of gpn_bayes.scores.Parameters
            The posteriors that the scores are the integrals of.

        Examples
        --------
        >>> from gpn_bayes.scores import Parameters
        >>> batch = ScoreBatch.estimated([Parameters.of(lambda draws: -0.5 * (draws**2).sum(axis=1), [0.0])])
        >>> round(float(batch.values[0]), 1), batch.statuses
        (0.9, ['ok'])
        """
        every = list(found)
        values, errors, k_hats = np.array([[o.log_evidence, o.error, o.k_hat] for o in every]).reshape(-1, 3).T
        return cls(values, errors, k_hats, ["ok" if own.k_hat <= LARGEST_K_HAT else "imprecise" for own in every])


def padded_sets(parent_sets: Collection[Sequence[int]]) -> tuple[Ints, Ints]:
    """Return parent sets as rows of indices, then -1, and their sizes.

    Examples
    --------
    >>> padded, sizes = padded_sets([(), (4,), (0, 2)])
    >>> padded.tolist(), sizes.tolist()
    ([[-1, -1], [4, -1], [0, 2]], [0, 1, 2])
    """
    sizes = np.array([len(parents) for parents in parent_sets], dtype=np.int64)
    padded = np.full((len(sizes), sizes.max(initial=0)), -1, dtype=np.int64)
    for row, parents in zip(padded, parent_sets, strict=True):
        row[: len(parents)] = parents
    return padded, sizes


def lacking(purpose: str, part: str, name: str) -> ValueError:
    """Return what is raised where a score has no optional part that a question needs.

    Examples
    --------
    >>> lacking("an effect or a prediction", "equation", "lasso")
    ValueError("an effect or a prediction needs the method `equation`, which lasso doesn't have")
    """
    return ValueError(f"{purpose} needs the method `{part}`, which {name} doesn't have")


class Score(ABC):
    """How to score a node given its parents; `bind` it to data to get numbers.

    A subclass sets `name`, by which it is known from then on, keeps its settings in `parameters` and implements
    `_bind`. It sets `takes_weights` where its scorer counts rows by `Dataset.weights`, and `standardise` where its
    equations are in standardised columns. `complete` is optional: with it, missing values are drawn along.

    Examples
    --------
    >>> from gpn_bayes import scores
    >>> score = scores.BIC(kind="gaussian")
    >>> isinstance(score, Score), score.name, score.parameters
    (True, 'bic', {'cardinalities': None, 'kind': 'gaussian'})
    """

    name: str
    takes_weights = False
    standardise = False
    has_curves = False  # whether its scorer draws functions of single parents: `gpn_bayes.scores.gp.score.GPScorer`
    cardinalities: dict[str, int] | None = None  # numbers of levels by column, where a score is given them

    @property
    @abstractmethod
    def parameters(self) -> dict[str, Any]:
        """The settings that determine the score, JSON-able."""

    @abstractmethod
    def _bind(self, data: Any) -> "Scorer":
        """Return the scorer of a checked `Dataset` or `SufficientStatistics`."""

    def __init_subclass__(cls, **settings: Any) -> None:
        """Register a class that has a name of its own."""
        super().__init_subclass__(**settings)
        if "name" in cls.__dict__:
            register(cls)

    def complete(self, data: Dataset) -> Any:
        """Return how this score completes a table, a `gpn_bayes.scores.completing.Completion`.

        Parameters
        ----------
        data : Dataset
            A table with missing values.

        Raises
        ------
        ValueError
            For a score that can't.

        Examples
        --------
        >>> from gpn_bayes import Dataset
        >>> from gpn_bayes.scores import BGe
        >>> data = Dataset.read(np.array([[1.0, 2.0], [2.0, np.nan], [4.0, 3.0]]), missing="impute")
        >>> BGe().complete(data).missing.sum()
        np.int64(1)
        """
        raise ValueError(
            f"{lacking("missing='impute'", 'complete', self.name)}: use missing='drop', or score='bge', 'cg', 'bdeu', "
            "'k2' or 'gp'"
        )

    def _of_groups(self, data: Data) -> "tuple[Score, Data]":
        """Return the score of a group of rows, and the whole table as this score takes it.

        A score that standardises its data does so once for all groups: over the whole table.

        Parameters
        ----------
        data : Dataset or SufficientStatistics
            The whole table.
        """
        return self, data

    def _bind_group(self, data: Data, group: Group) -> "Scorer":
        """Return the scorer of the rows of some experiments of a table."""
        assert data.interventions is not None
        return self._bind(self._part_of(data, data.interventions.rows_of(group)))

    def _part_of(self, data: Data, rows: Ints) -> Any:
        """Return some rows; a score that standardises does so as over the whole table, so that units are the same."""
        if self.standardise and data.table is not None:
            return data.table.rows(rows).in_units_of(data.table)
        return data.rows(rows)

    def _bind_groups(self, data: Data) -> "GroupedScorer":
        """Return the scorer of a table of which some rows come from experiments."""
        return GroupedScorer(self, data)

    def _proposal(self) -> "Score | None":
        """Return a quicker score to draw DAGs under, whose draws are then weighted; None where none is needed."""
        return None

    def bind(self, data: Any, **table: Unpack[TableKeywords]) -> "Scorer":
        """Check the data and return the scorer that answers for them.

        Parameters
        ----------
        data : DataFrame, ndarray, path, Table, Dataset or SufficientStatistics
            The table to score.
        **table
            What describes it, as of `gpn_bayes.Table`: ``targets=``, ``weights=``, ….

        Examples
        --------
        >>> from gpn_bayes import datasets, scores
        >>> scorer = scores.BGe().bind(datasets.sachs(transform="log2"))
        >>> scorer.names[:3]
        ('raf', 'mek', 'plcg')
        """
        known = read_complete(described(data, table), declared=self.declared)
        if not self.takes_weights and known.weights is not None:
            raise ValueError(
                f"the score {self.name!r} takes rows that all count alike; received weights of rows (a score that "
                "counts rows by Dataset.weights sets takes_weights)"
            )
        return self._bind(known) if known.interventions is None else self._bind_groups(known)

    @property
    def declared(self) -> tuple[str, ...]:
        """The columns whose number of levels the score was given: they may be constant.

        Examples
        --------
        >>> from gpn_bayes import scores
        >>> scores.BDeu(cardinalities={"theft": 2}).declared, scores.BDeu().declared
        (('theft',), ())
        """
        return tuple(self.cardinalities or ())

    @property
    def fingerprint(self) -> str:
        """A string that is equal for equal scores.

        Examples
        --------
        >>> from gpn_bayes import scores
        >>> scores.BGe(alpha_mu=1.0).fingerprint == scores.by_name("bge").fingerprint
        True
        """
        try:
            text = json.dumps(self.parameters, sort_keys=True)
        except (TypeError, ValueError):
            rule = "the parameters of a score must be numbers, texts and lists or mappings of these"
            raise ValueError(f"{rule}; {self.name!r} has {self.parameters!r}") from None
        return f"{self.name}:{text}"

    def __repr__(self) -> str:
        """Show the score as it would be made."""
        settings = ", ".join(f"{key}={value!r}" for key, value in self.parameters.items())
        return f"{type(self).__name__}({settings})"


class Scorer(ABC):
    """A score bound to data: log S(node | parents), natural log, higher is better.

    A subclass implements `score_sets`, and `_table` where it can do better than one set at a time; it sets
    `closed_form` where a whole table takes no time worth storing it for, and `default_max_parents` where the scores of
    large parent sets would take too long to compute them unasked. `seconds_per_set` is roughly the time that a closed
    form takes, by which search spaces are chosen. It sets `discrete` where it takes columns as categories, whose codes
    are no numbers. It says in `assumptions`, in whole sentences, what readers of the answers should know that it takes
    for granted. Where scores are slow, `proposal` returns a quicker scorer, and `cost` tells how much longer large sets
    take. Other processes get it pickled.

    Two more methods are optional. With `equation` there are effects, predictions, leave-one-out densities and checks of
    residuals; with `pymc_node`, PyMC models of whole networks.

    Parameters
    ----------
    score : Score
        What it computes.
    names : sequence of str
        The variables.
    data_fingerprint : str
        A hash of the data; see `gpn_bayes.Dataset`.

    Examples
    --------
    A user-defined score, which only counts parents:

    >>> from gpn_bayes.scores import Score, ScoreBatch, Scorer
    >>> class Sparse(Score):
    ...     name, parameters = "few parents", {}
    ...     def _bind(self, data):
    ...         return SparseScorer(self, data.names, data.fingerprint)
    >>> class SparseScorer(Scorer):
    ...     def score_sets(self, node, parent_sets):
    ...         values = np.array([-1.0 * len(parents) for parents in parent_sets])
    ...         return ScoreBatch.exact(values)
    >>> scorer = Sparse().bind(np.eye(3))
    >>> scorer.local("v3", ["v1", "v2"]), scorer.total([("v1", "v2")])
    (-2.0, -1.0)
    >>> scorer.index("v3"), scorer.cost(size=2), scorer.proposal() is None
    (2, 1.0, True)
    """

    closed_form = False
    discrete = False
    default_max_parents: int | None = None
    levels: tuple[tuple[Any, ...], ...] = ()  # of every variable, by code: none of numbers; empty without categories
    impossible: Bools | None = None  # edges that have no score, rows parents
    assumptions: tuple[str, ...] = ()
    seconds_per_set = 1e-7

    def __init__(self, score: Score, names: Sequence[str], data_fingerprint: str) -> None:
        self.names = tuple(names)
        self.data_fingerprint = data_fingerprint
        self.score = score
        self.score_fingerprint = score.fingerprint
        self.label = repr(score)

    @abstractmethod
    def score_sets(self, node: int, parent_sets: Sequence[tuple[int, ...]]) -> ScoreBatch:
        """Score several parent sets of one node, given by index.

        Parameters
        ----------
        node : int
            The variable's index.
        parent_sets : sequence of tuple of int
            Its parent sets, each ascending.

        Examples
        --------
        >>> from gpn_bayes import datasets, scores
        >>> scorer = scores.BGe().bind(datasets.sachs(transform="log2"))
        >>> scorer.score_sets(1, [(), (0,)]).values.round(1).tolist()
        [-1217.5, -953.2]
        """

    def proposal(self) -> "Scorer | None":
        """Return the proposal scorer, a faster one for the same data to draw DAGs under; None where none is needed."""
        return None

    @property
    def categories(self) -> Bools:
        """Which variables are categories.

        Examples
        --------
        >>> import pandas as pd
        >>> from gpn_bayes import scores
        >>> table = pd.DataFrame({"sex": ["f", "m", "f", "m"], "bmi": [21.5, 30.0, 25.2, 27.1]})
        >>> scores.CG().bind(table).categories.tolist()
        [True, False]
        """
        return np.array([bool(own) for own in self.levels] or [self.discrete] * len(self.names))

    def units(self, data: Data) -> tuple[Floats, Floats]:
        """Return the zero and the unit of every number in this score's equations, in units of the table.

        Categories, which equations take by the codes of their levels, have the zero 0 and the unit 1.

        Parameters
        ----------
        data : Dataset or SufficientStatistics
            What the score is bound to.

        Examples
        --------
        >>> from gpn_bayes import Dataset, scores
        >>> data = Dataset.read(np.array([[1.0, 4.0], [3.0, 8.0], [5.0, 0.0]]))
        >>> [own.tolist() for own in scores.BGe().bind(data).units(data)]
        [[3.0, 4.0], [2.0, 4.0]]
        """
        n = len(self.names)
        if self.discrete or not self.score.standardise:
            return np.zeros(n), np.ones(n)
        centre, scale = (data.means(), data.spreads()) if data.own_units is None else data.own_units
        return np.where(self.categories, 0.0, centre), np.where(self.categories, 1.0, scale)

    def rows(self, data: Dataset) -> NDArray[Any]:
        """Return the rows that the score is bound to, as it takes them: numbers in units of the table, codes of levels.

        Parameters
        ----------
        data : Dataset
            The rows.

        Examples
        --------
        >>> import pandas as pd
        >>> from gpn_bayes import Dataset, scores
        >>> data = Dataset.read(pd.DataFrame({"rain": ["no", "yes", "no"], "dose": [5, 20, 20]}))
        >>> scores.BDeu().bind(data).rows(data).tolist()
        [[0, 0], [1, 1], [0, 1]]
        """
        if not self.levels:
            return data.values
        # Categories are given by codes already, but for whole numbers.
        columns = [
            np.searchsorted(np.array(levels, dtype=float), own) if levels and kind == "integer" else own
            for own, kind, levels in zip(data.values.T, data.kinds, self.levels, strict=True)
        ]
        return np.column_stack(columns).astype(np.int64 if self.discrete else np.float64)

    def level_code(self, node: int, level: Any) -> int:
        """Return the code of a level of a variable of categories.

        Parameters
        ----------
        node : int
            The variable's index.
        level : object
            One of `levels`, or its text.

        Examples
        --------
        >>> import pandas as pd
        >>> from gpn_bayes import scores
        >>> table = pd.DataFrame({"rain": ["no", "yes", "yes", "no"], "wet": [0, 1, 1, 1]})
        >>> scorer = scores.BDeu().bind(table)
        >>> scorer.level_code(0, "yes"), scorer.level_code(1, "0")
        (1, 0)
        """
        known = self.levels[node]
        for code, own in enumerate(known):
            if str(own) == str(level) or own == level:  # 1.0 is 1
                return code
        listed = ", ".join(map(str, known))
        raise ValueError(f"{self.names[node]!r} must be one of its levels, {listed}; received {shown(level)}")

    def equation(self, node: int, parents: tuple[int, ...]) -> Equation | LevelsEquation:
        """Return the posterior of the parameters of a node's equation, given its parents.

        Parameters
        ----------
        node : int
            The variable's index.
        parents : tuple of int
            Those of its parents, ascending.

        Raises
        ------
        ValueError
            For a score that has no such equations.

        Examples
        --------
        >>> from gpn_bayes import datasets, scores
        >>> scorer = scores.BGe().bind(datasets.sachs(transform="log2"))
        >>> scorer.equation(1, (0,)).mean.round(3)
        array([0.683])
        """
        raise lacking("an effect or a prediction", "equation", self.score.name)

    def equations(self, node: int, parent_sets: Ints) -> LinearEquations | None:
        """Return the posteriors of several linear equations of a node at once; None where they aren't linear.

        Parameters
        ----------
        node : int
            The variable's index.
        parent_sets : ndarray of int, shape (sets, parents)
            Its parents in each of them, ascending.

        Examples
        --------
        >>> from gpn_bayes import datasets, scores
        >>> scorer = scores.BGe().bind(datasets.sachs(transform="log2"))
        >>> scorer.equations(1, np.array([[0], [2]])).mean.round(2).tolist()
        [[0.68], [0.0]]
        """
        every = [self.equation(node, tuple(parents.tolist())) for parents in parent_sets]
        lines = [equation for equation in every if isinstance(equation, LinearEquation)]
        return LinearEquations.of(lines) if len(lines) == len(every) else None

    def residuals(self, data: Dataset, node: int, parents: tuple[int, ...]) -> Floats | None:
        """Return what parents leave of a node, as it would be if noise were normal: it is checked whether it looks so.

        Parameters
        ----------
        data : Dataset
            The table that the score is bound to.
        node : int
            The variable's index.
        parents : tuple of int
            Those of its parents.

        Returns
        -------
        ndarray of shape (rows,), or None
            In the units of the column, NaN in rows that the score leaves out; None of categories, and of a score that
            has no equations to check.

        Examples
        --------
        >>> from gpn_bayes import Dataset, scores
        >>> data = Dataset.read(np.array([[0.0, 0.0], [1.0, 3.0], [2.0, 4.0], [3.0, 5.0]]))
        >>> scores.BGe().bind(data).residuals(data, 1, (0,)).round(1).tolist()
        [-0.6, 0.8, 0.2, -0.4]
        """
        if type(self).equation is Scorer.equation or self.categories[node]:
            return None
        equation = self.equation(node, parents)
        if not isinstance(equation, Equation):
            return None
        centre, scale = self.units(data)
        rows = ((self.rows(data) - centre) / scale).T
        residuals: Floats = scale[node] * equation.residuals(rows[node], rows[list(parents)])
        return residuals

    def observed_part(self, node: int, parents: tuple[int, ...]) -> "tuple[Scorer, Ints | slice]":
        """Return the scorer of the rows in which a node wasn't changed, and these rows: here of all.

        Parameters
        ----------
        node : int
            The variable's index.
        parents : tuple of int
            Those of its parents.

        Examples
        --------
        >>> from gpn_bayes.scores import BGe
        >>> scorer = BGe().bind(np.eye(4)[:, :2])
        >>> scorer.observed_part(1, (0,)) == (scorer, slice(None))
        True
        """
        return self, slice(None)

    def pymc_node(self, node: int, parents: tuple[int, ...], table: Dataset, functions: str) -> None:
        """Add a node, given its parents, to the PyMC model being built, which has these already.

        Parameters
        ----------
        node : int
            The variable's index.
        parents : tuple of int
            Those of its parents.
        table : Dataset
            The table that the score is bound to.
        functions : {"drawn", "marginal"}
            As in `gpn_bayes.pymc_network`.

        Raises
        ------
        ValueError
            For a score that has no priors to write down.

        Examples
        --------
        >>> import pymc as pm
        >>> from gpn_bayes import Dataset, scores
        >>> table = Dataset.read(np.array([[0.0, 0.0], [1.0, 3.0], [2.0, 4.0], [3.0, 5.0]]))
        >>> with pm.Model(coords={"row": range(4)}) as model:
        ...     scores.BGe().bind(table).pymc_node(0, (), table, "drawn")
        >>> [variable.name for variable in model.free_RVs]
        ['v1::sigma2', 'v1::intercept']
        """
        raise lacking("a PyMC network", "pymc_node", self.score.name)

    def cost(self, size: int) -> float:
        """Return how long a score of this many parents takes, in any unit; the remaining time is estimated from it.

        Parameters
        ----------
        size : int
            Number of parents.
        """
        return 1.0

    def local(self, node: Node, parents: Iterable[Node] = ()) -> float:
        """Return log S(node | parents).

        Parameters
        ----------
        node : str or int
            The variable, by name or index.
        parents : iterable of str or int
            Its parents; their order doesn't matter.

        Examples
        --------
        >>> from gpn_bayes import datasets, scores
        >>> scorer = scores.BGe().bind(datasets.sachs(transform="log2"))
        >>> round(scorer.local("mek", ["raf"]), 1), round(scorer.local("mek"), 1)
        (-953.2, -1217.5)
        """
        i = self.index(node)
        given = [self.index(parent) for parent in parents]
        if i in given or len(set(given)) < len(given):
            names = [self.names[p] for p in given]
            raise ValueError(f"parents must be distinct and differ from the node {self.names[i]!r}; received {names}")
        return float(ScoreBatch.checked(self.score_sets(i, [tuple(sorted(given))]), 1).values[0])

    def total(self, graph: Any) -> float:
        """Return the log score of a whole DAG: the sum over its nodes.

        Parameters
        ----------
        graph : networkx.DiGraph, array or edge list
            The DAG, over this scorer's variables.

        Examples
        --------
        >>> from gpn_bayes import datasets, scores
        >>> scorer = scores.BGe().bind(datasets.sachs(transform="log2"))
        >>> round(scorer.total(datasets.sachs_consensus(17)), 1), round(scorer.total([]), 1)
        (-12355.4, -13393.0)
        """
        adjacency = graphs.as_adjacency(graph, self.names)
        return sum(self.local(i, np.flatnonzero(adjacency[:, i])) for i in range(len(self.names)))

    def table(self, node: Node, candidates: Sequence[Node], max_parents: int | None = None) -> Floats:
        """Return the scores of all subsets of the candidates, in bitmask order.

        Parameters
        ----------
        node : str or int
            The variable.
        candidates : sequence of str or int
            Its candidate parents; bit b of an entry's index tells whether ``candidates[b]`` is a parent.
        max_parents : int, optional
            Larger sets get minus infinity.

        Returns
        -------
        ndarray of length 2 ** len(candidates)

        Examples
        --------
        >>> from gpn_bayes import datasets, scores
        >>> scorer = scores.BGe().bind(datasets.sachs(transform="log2"))
        >>> scorer.table("mek", ["raf", "pka"]).round(1).tolist()
        [-1217.5, -953.2, -1222.1, -957.5]
        """
        i = self.index(node)
        chosen = np.array([self.index(candidate) for candidate in candidates], dtype=np.int64)
        if len(chosen) > MAX_CANDIDATES:
            raise ValueError(
                f"at most {MAX_CANDIDATES} candidate parents per node are supported; {self.names[i]!r} has "
                f"{len(chosen)}"
            )
        if i in chosen or len(set(chosen.tolist())) < len(chosen):
            raise ValueError(f"candidates must be distinct and differ from the node {self.names[i]!r}")
        if max_parents is not None and max_parents < 0:
            raise ValueError(f"max_parents must be 0 or more; received {max_parents}")
        limit = len(chosen) if max_parents is None else min(max_parents, len(chosen))
        return self._table(i, chosen, limit)

    def table_with(self, node: int, candidates: Sequence[int], other: int, max_parents: int) -> Floats:
        """Return the scores of all subsets of the candidates together with one further parent, in bitmask order.

        Parameters
        ----------
        node : int
            The variable's index.
        candidates : sequence of int
            Its candidate parents.
        other : int
            The parent that all sets have besides.
        max_parents : int
            Larger sets, that parent counted, get minus infinity.

        Examples
        --------
        >>> from gpn_bayes import datasets, scores
        >>> scorer = scores.BGe().bind(datasets.sachs(transform="log2"))
        >>> scorer.table_with(1, [0], 7, max_parents=2).round(1).tolist()
        [-1222.1, -957.5]
        """
        return self.table(node, [*candidates, other], max_parents)[1 << len(candidates) :]

    def _table(self, node: int, candidates: Ints, max_parents: int) -> Floats:
        masks = [mask for mask in range(1 << len(candidates)) if mask.bit_count() <= max_parents]
        sets = [tuple(sorted(candidates[list(members_of(mask))].tolist())) for mask in masks]
        table = np.full(1 << len(candidates), -np.inf)
        table[masks] = ScoreBatch.checked(self.score_sets(node, sets), len(sets)).values
        return table

    def scores_up_to(self, node: int, candidates: Sequence[int], max_parents: int) -> tuple[NDArray[np.int16], Floats]:
        """Return all sets of at most `max_parents` candidates, which may be too many for a table, and their scores.

        Parameters
        ----------
        node : int
            The variable's index.
        candidates : sequence of int
            Indices of other variables, distinct.
        max_parents : int
            Largest number of parents.

        Returns
        -------
        sets : ndarray of int16, shape (sets, largest size)
            The members of each, ascending, then -1; in any order.
        scores : ndarray of float

        Examples
        --------
        >>> from gpn_bayes import datasets, scores
        >>> scorer = scores.BGe().bind(datasets.sachs(transform="log2"))
        >>> sets, values = scorer.scores_up_to(1, [0, 7], max_parents=1)
        >>> sets.tolist(), values.round(1).tolist()
        ([[-1], [0], [7]], [-1217.5, -953.2, -1222.1])
        """
        limit = min(max_parents, len(candidates))
        sets = [chosen for size in range(limit + 1) for chosen in combinations(sorted(candidates), size)]
        padded, _ = padded_sets(sets)
        return padded.astype(np.int16), ScoreBatch.checked(self.score_sets(node, sets), len(sets)).values

    def index(self, node: Node) -> int:
        """Return the index of a variable given by name or index.

        Parameters
        ----------
        node : str or int
            The variable.

        Raises
        ------
        ValueError
            For a variable that isn't there.
        """
        return graphs.node_index(node, self.names)


class GroupedScorer(Scorer):
    """The score of a node whose mechanism was changed in some rows, which differ from node to node.

    It is the sum of the log scores of groups of rows. Rows in which a node was set from outside belong to no group of
    its own (Cooper & Yoo 1999); those in which its mechanism was changed form a group (Eaton & Murphy 2007). The
    structure is the same in all of them. Where it isn't known what was changed, likelihoods are summed over all sets of
    contexts that may have changed the node.

    Parameters
    ----------
    score : Score
        What is computed.
    data : Dataset or SufficientStatistics
        The whole table; standardised over all its rows where the score does that.

    Examples
    --------
    >>> from gpn_bayes.scores import BGe
    >>> table = np.random.default_rng(1).normal(size=(40, 2)).cumsum(axis=1)
    >>> scorer = BGe().bind(table, targets=[""] * 30 + ["v2"] * 10)
    >>> scorer.local("v2", ["v1"]) == scorer.part((0,)).local("v2", ["v1"])
    True
    """

    def __init__(self, score: Score, data: Data) -> None:
        super().__init__(score, data.names, data.fingerprint)
        assert data.interventions is not None
        self.interventions = data.interventions
        self._data = data
        self._of_rows, self._taken = score._of_groups(data)
        self._parts: dict[Group, Scorer] = {}
        self._quicker = self.proposal() if isinstance(self.interventions, UnknownTargets) else None
        whole = self.part(tuple(range(int(self.interventions.experiment.max()) + 1)))
        self.closed_form = whole.closed_form
        self.discrete, self.levels = whole.discrete, whole.levels
        self.default_max_parents = whole.default_max_parents
        stated = [text for text in whole.assumptions if text not in EQUIVALENCE]
        if len(stated) < len(whole.assumptions):
            stated += EQUIVALENCE_OF_EXPERIMENTS
        self.assumptions = (*stated, EXPERIMENTS[self.interventions.kind])
        groups = [
            len({g for term in self.interventions.terms(node) for g in term.groups}) for node in range(len(data.names))
        ]
        self.seconds_per_set = whole.seconds_per_set * float(np.mean(groups))

    def part(self, group: Group) -> Scorer:
        """Return the scorer of the rows of some experiments."""
        if group not in self._parts:
            self._parts[group] = self._of_rows._bind_group(self._taken, group)
        return self._parts[group]

    def observed_part(self, node: int, parents: tuple[int, ...]) -> tuple[Scorer, Ints]:
        """Return the scorer of the rows in which a node wasn't changed, and these rows.

        Where it isn't known what was changed, those of the most probable way, given its parents.
        """
        terms, batches = self._terms_that_count(node, [parents])
        best = max(terms, key=lambda term: float(_value(term, batches)[0]))
        return self.part(best.groups[0]), self.interventions.rows_of(best.groups[0])

    def equation(self, node: int, parents: tuple[int, ...]) -> Equation | LevelsEquation:
        """Return the posterior of the parameters where the mechanism wasn't changed; see `observed_part`."""
        return self.observed_part(node, parents)[0].equation(node, parents)

    def equations(self, node: int, parent_sets: Ints) -> LinearEquations | None:
        """Return the posteriors of several linear equations at once, of the rows that weren't changed."""
        if isinstance(self.interventions, UnknownTargets):  # which may be others for other sets
            return super().equations(node, parent_sets)
        return self.part(self.interventions.terms(node)[0].groups[0]).equations(node, parent_sets)

    def change_probabilities(self, node: int, parent_sets: Sequence[tuple[int, ...]]) -> Floats:
        """Return the probability that each context changed a node, given each parent set.

        Returns
        -------
        ndarray of shape (parent sets, experiments)
            Zero for the reference.
        """
        found = np.zeros((len(parent_sets), int(self.interventions.experiment.max()) + 1))
        for some, terms, batches in self._in_parts(node, parent_sets):
            weights = _weights(terms, batches)
            for term, weight in zip(terms, weights, strict=True):
                for group in term.groups[1:]:
                    found[np.ix_(some, group)] += weight[:, None]
        return found

    def target_sets(self, adjacency: NDArray[Any]) -> list[list[int]]:
        """Return the variables that each experiment changed, or probably did, given a DAG, where it isn't known."""
        if isinstance(self.interventions, KnownTargets):
            return self.interventions.target_sets()
        changed = np.array(
            [
                self.change_probabilities(i, [tuple(np.flatnonzero(column).tolist())])[0]
                for i, column in enumerate(adjacency.T)
            ]
        )
        return [np.flatnonzero(own > 0.5).tolist() for own in changed.T[1:]]

    def score_sets(self, node: int, parent_sets: Sequence[tuple[int, ...]]) -> ScoreBatch:
        """Score several parent sets of one node, given by index."""
        found = [_combined(terms, batches) for _, terms, batches in self._in_parts(node, parent_sets)]
        values, errors, k_hats, statuses = zip(*found, strict=True) if found else ([()], [()], [()], [()])
        return ScoreBatch(
            np.concatenate(values),
            np.concatenate(errors),
            np.concatenate(k_hats),
            [text for own in statuses for text in own],
        )

    def _in_parts(
        self, node: int, parent_sets: Sequence[tuple[int, ...]]
    ) -> Iterator[tuple[list[int], list[Term], dict[Group, ScoreBatch]]]:
        """Yield the places of some parent sets, the ways that count for them, and the scores of their groups."""
        size = max(1, _CHUNK // len(self.interventions.terms(node)))
        if self._searches(node) or self._quicker is not None:
            size = 1  # other ways may count for other sets
        for start in range(0, len(parent_sets), size):
            chosen = parent_sets[start : start + size]
            yield [*range(start, start + len(chosen))], *self._terms_that_count(node, chosen)

    def _searches(self, node: int) -> bool:
        """Tell whether the ways are too many to score them all."""
        return not self.closed_form and len(self.interventions.terms(node)) > _MAX_SLOW_TERMS

    def _terms_that_count(
        self, node: int, parent_sets: Sequence[tuple[int, ...]]
    ) -> tuple[list[Term], dict[Group, ScoreBatch]]:
        """Return the ways in which a node may have been changed, and the scores of their groups.

        Where there are many and scores are slow, a search adds and takes away single contexts, for a single parent set:
        it scores all neighbours of every way that isn't negligible, from that without changes on. Groups of ways that
        hardly count keep the score of the proposal, where there is one.
        """
        if self._quicker is not None:
            terms, batches = self._quicker._terms_that_count(node, parent_sets)
            return terms, batches | self._scored(node, parent_sets, _groups_that_count(terms, batches))
        batches = {}

        def value_of(term: Term) -> float:
            batches.update(self._scored(node, parent_sets, set(term.groups) - set(batches)))
            return float(_value(term, batches)[0])

        if not self._searches(node):
            terms = self.interventions.terms(node)
            for term in terms:
                value_of(term)
            return terms, batches
        assert isinstance(self.interventions, UnknownTargets)
        unchanged = frozenset[int]()
        known = {unchanged: self.interventions.term(unchanged)}
        values = {unchanged: value_of(known[unchanged])}
        open_ways = {unchanged}
        while open_ways:
            # The best first: it may make others negligible.
            centre = max(open_ways, key=values.__getitem__)
            open_ways.discard(centre)
            if values[centre] < max(values.values()) - _NEGLIGIBLE:
                break
            for context in range(1, len(self.interventions.contexts)):
                neighbour = centre ^ {context}
                if neighbour not in known:
                    known[neighbour] = self.interventions.term(neighbour)
                    values[neighbour] = value_of(known[neighbour])
                    open_ways.add(neighbour)
        return list(known.values()), batches

    def _scored(
        self, node: int, parent_sets: Sequence[tuple[int, ...]], groups: Collection[Group]
    ) -> dict[Group, ScoreBatch]:
        return {
            group: ScoreBatch.checked(self.part(group).score_sets(node, parent_sets), len(parent_sets))
            for group in groups
        }

    def proposal(self) -> "GroupedScorer | None":
        """Return the scorer whose groups are scored by their proposals."""
        quicker = self.score._proposal()
        return None if quicker is None else quicker._bind_groups(self._data)

    def residuals(self, data: Dataset, node: int, parents: tuple[int, ...]) -> Floats | None:
        """Return the residuals in the rows in which the node wasn't a target, and NaN in the others."""
        part, rows = self.observed_part(node, parents)
        known = part.residuals(part.score._part_of(data, rows), node, parents)
        if known is None:
            return None
        residuals = np.full(data.n_rows, np.nan)
        residuals[rows] = known
        return residuals

    def cost(self, size: int) -> float:
        """Return roughly how long a score of this many parents takes."""
        return self.part(self.interventions.terms(0)[0].groups[0]).cost(size)

    def table_with(self, node: int, candidates: Sequence[int], other: int, max_parents: int) -> Floats:
        """Return the scores of all subsets of the candidates with one further parent; see `Scorer.table_with`."""
        if not self.closed_form:
            return super().table_with(node, candidates, other, max_parents)
        return self._total(node, lambda part: part.table_with(node, candidates, other, max_parents))

    def _table(self, node: int, candidates: Ints, max_parents: int) -> Floats:
        if not self.closed_form:
            return super()._table(node, candidates, max_parents)
        return self._total(node, lambda part: part._table(node, candidates, max_parents))

    def scores_up_to(self, node: int, candidates: Sequence[int], max_parents: int) -> tuple[NDArray[np.int16], Floats]:
        """Return all sets of at most `max_parents` candidates, and their scores; see `Scorer.scores_up_to`."""
        if not self.closed_form:
            return super().scores_up_to(node, candidates, max_parents)
        first = self.part(self.interventions.terms(node)[0].groups[0])
        sets = first.scores_up_to(node, candidates, max_parents)[0]
        # All groups are of one kind of scorer, which goes through the sets in one order.
        return sets, self._total(node, lambda part: part.scores_up_to(node, candidates, max_parents)[1])

    def _total(self, node: int, values_of: Callable[[Scorer], Floats]) -> Floats:
        """Return the logarithms of the sums over all ways, of which only the groups of single contexts recur."""
        own: dict[Group, Floats] = {}
        total: Floats | None = None
        for log_weight, (unchanged, *changed) in self.interventions.terms(node):
            value = log_weight + values_of(self.part(unchanged))
            for group in changed:
                if group not in own:
                    own[group] = values_of(self.part(group))
                value += own[group]
            total = value if total is None else np.logaddexp(total, value)
        assert total is not None
        return total

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the scorers of groups, which hold the same rows many times."""
        return self.__dict__ | {"_parts": {}}


def _value(term: Term, batches: Mapping[Group, ScoreBatch]) -> Floats:
    """Return the log weight of one way and its groups' scores, for each parent set."""
    total: Floats = term.log_weight + np.sum([batches[group].values for group in term.groups], axis=0)
    return total


def _weights(terms: Sequence[Term], batches: Mapping[Group, ScoreBatch]) -> Floats:
    """Return the probability of each way, given each parent set."""
    values = np.array([_value(term, batches) for term in terms])
    weights: Floats = np.exp(values - logsumexp(values, axis=0))
    return weights


def _groups_that_count(terms: Sequence[Term], batches: Mapping[Group, ScoreBatch]) -> list[Group]:
    """Return the groups of the ways that hold all but a negligible part of the probability, the best way first."""
    shares = _weights(terms, batches).max(axis=1)
    order = np.argsort(-shares, kind="stable")
    left = np.cumsum(shares[order][::-1])[::-1]
    counting = [terms[place] for place in order[left > _LEAST_TO_ESTIMATE]]
    return list(dict.fromkeys(group for term in counting for group in term.groups))


def _combined(terms: Sequence[Term], batches: Mapping[Group, ScoreBatch]) -> ScoreBatch:
    """Return the scores of parent sets from those of groups of rows.

    An error of a group's score counts as much as the ways that it takes part in.
    """
    if len(batches) == 1:
        return next(iter(batches.values()))
    totals = logsumexp([_value(term, batches) for term in terms], axis=0)
    weights = _weights(terms, batches)
    squares, k_hats = np.zeros(len(totals)), np.full(len(totals), np.nan)
    statuses = ["exact"] * len(totals)
    for group, batch in batches.items():
        share = np.sum([own for term, own in zip(terms, weights, strict=True) if group in term.groups], axis=0)
        counts = share > _COUNTS
        squares += np.where(counts, share * batch.errors, 0.0) ** 2
        k_hats = np.where(counts, np.fmax(k_hats, batch.k_hats), k_hats)
        for place in np.flatnonzero(counts):
            if statuses[place] in ("exact", "ok") and batch.statuses[place] != "exact":
                statuses[place] = batch.statuses[place]
    return ScoreBatch(totals, np.sqrt(squares), k_hats, statuses)

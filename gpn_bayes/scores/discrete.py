"""Scores of discrete variables: BDeu, K2, and the discrete form of BIC."""

from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from copy import copy
from functools import lru_cache
from itertools import chain
from math import comb, prod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, xlogy

from gpn_bayes._util.checks import check_positive, shown
from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.data import Dataset, SufficientStatistics, refuse_weights
from gpn_bayes.kernels.discrete.counts import CountTerms, count_scores, masks_of, subsets_up_to
from gpn_bayes.kernels.discrete.row_groups import Counted
from gpn_bayes.kernels.discrete.weighted_counts import WeightTerms, weighted_count_scores
from gpn_bayes.kernels.graphs.subsets import MAX_CANDIDATES
from gpn_bayes.scores.assumptions import CATEGORIES, EQUIVALENCE
from gpn_bayes.scores.base import Score, ScoreBatch, Scorer, lacking, padded_sets
from gpn_bayes.scores.categories import NEEDS_ROWS, check_cardinalities, levels_of, read_categories
from gpn_bayes.scores.equations import TableEquation

# Values of a Dirichlet prior are kept for counts below this, and computed one by one from there on: there are few.
_KEPT_COUNTS = 33
_NO_PRIOR = np.zeros(4)
# Rows that can be no more than this are counted by all that they could be.
_FEW_CELLS = 1 << 14
# What a set of parents takes for each distinct row, in seconds.
_SECONDS_PER_ROW = 6e-9
# Unasked, scores go through at most this number of rows.
_MAX_ROW_VISITS = 2e10


class DiscreteScorer(Scorer):
    """Scores of one discrete data set; a subclass says what counts add.

    Attributes
    ----------
    counted : Counted
        The codes, with equal rows put together, and the number of levels of every variable.
    n_rows : int
        Number of rows, or of those that they stand for by their weights.
    """

    closed_form = True
    discrete = True
    assumptions: tuple[str, ...] = (*CATEGORIES, *EQUIVALENCE)

    def __init__(
        self, score: Score, data: Dataset | SufficientStatistics, cardinalities: Mapping[str, int] | None
    ) -> None:
        super().__init__(score, data.names, data.fingerprint)
        data = data.with_rows(NEEDS_ROWS)
        self.counted: Counted = read_categories(data, cardinalities)
        self.levels = levels_of(data, cardinalities)
        self.n_rows = data.size
        self._weighted = data.weights is not None
        self.default_max_parents = affordable_parents(len(data.names), len(self.counted.weights))
        self.seconds_per_set = _SECONDS_PER_ROW * len(self.counted.weights)
        self._known_terms: dict[int, CountTerms] = {}

    def with_codes(self, codes: NDArray[Any]) -> Self:
        """Return the scorer of other rows with the same levels, given by their codes: (variables, rows)."""
        made = copy(self)
        distinct, weights = distinct_rows(codes, self.cardinalities)
        made.counted = Counted(distinct.astype(np.uint16), weights.astype(np.uint32), self.cardinalities)
        return made

    def with_rows(self, values: Floats) -> Self:
        """Return the scorer of other rows with the same levels, given by their codes: (rows, variables)."""
        return self.with_codes(values.T)

    @property
    def cardinalities(self) -> Ints:
        """Number of levels of every variable, observed or not."""
        return self.counted.cardinalities

    @abstractmethod
    def _terms_of(self, levels: int) -> CountTerms:
        """Return what counts add to the score of a node with this many levels."""

    @abstractmethod
    def _weight_terms_of(self, levels: int) -> WeightTerms:
        """Return what weights that aren't whole numbers add."""

    def imagined(self, cells: int) -> float:
        """Return the rows that the prior imagines in each cell of a table of conditional probabilities."""
        return 1.0

    def equation(self, node: int, parents: tuple[int, ...]) -> TableEquation:
        """Return the Dirichlet posteriors of a node's conditional probabilities; BIC, without a prior, takes K2's."""
        cells = int(np.prod(self.cardinalities[[*parents, node]]))
        return TableEquation.of_counts(*self.counted, node, parents, self.imagined(cells))

    def _add_table(self, node: int, parents: tuple[int, ...], table: Dataset) -> None:
        """Add a node's probabilities, with Dirichlet priors, to the PyMC model being built."""
        from gpn_bayes.scores.table_pymc_node import add_table_node

        cells = int(np.prod(self.cardinalities[[*parents, node]]))
        given = [self.names[p] for p in parents]
        add_table_node(self.names[node], self.rows(table)[:, node], given, self.imagined(cells))

    def _terms(self, node: int) -> CountTerms:
        levels = int(self.cardinalities[node])
        if levels not in self._known_terms:
            self._known_terms[levels] = self._terms_of(levels)
        return self._known_terms[levels]

    def score_sets(self, node: int, parent_sets: Sequence[tuple[int, ...]]) -> ScoreBatch:
        """Score several parent sets of one node, given by index."""
        # Members that most sets have come first, and sets that begin alike follow each other: the kernel then
        # divides the rows by what they share only once.
        often = Counter(chain.from_iterable(parent_sets))
        rank = {member: place for place, (member, _) in enumerate(often.most_common())}
        ordered = [sorted(parents, key=rank.__getitem__) for parents in parent_sets]
        order = sorted(range(len(ordered)), key=lambda row: [rank[member] for member in ordered[row]])
        padded, _ = padded_sets([ordered[row] for row in order])
        values = np.empty(len(ordered))
        values[order] = self.score_padded(node, padded.astype(np.int16))
        return ScoreBatch.exact(values)

    def score_padded(self, node: int, sets: NDArray[np.int16]) -> Floats:
        """Score parent sets given as members, then -1; quickest where sets that begin alike follow each other."""
        if self._weighted:
            return weighted_count_scores(self.counted, node, sets, self._weight_terms_of(int(self.cardinalities[node])))
        return count_scores(self.counted, node, sets, self._terms(node))

    def _table(self, node: int, candidates: Ints, max_parents: int) -> Floats:
        places, values = self._walk(node, candidates, max_parents)
        table = np.full(1 << len(candidates), -np.inf)
        table[masks_of(places)] = values
        return table

    def table_with(self, node: int, candidates: Sequence[int], other: int, max_parents: int) -> Floats:
        """Return the scores of all subsets of the candidates with one further parent; see `Scorer.table_with`."""
        table = np.full(1 << len(candidates), -np.inf)
        limit = min(max_parents - 1, len(candidates))
        if limit >= 0:
            places = _subsets(len(candidates), limit)
            members = _members(places, np.array(candidates, dtype=np.int64))
            # All sets begin with the same parent, by which the rows are divided once.
            table[masks_of(places)] = self.score_padded(node, np.insert(members, 0, other, axis=1))
        return table

    def scores_up_to(self, node: int, candidates: Sequence[int], max_parents: int) -> tuple[NDArray[np.int16], Floats]:
        """Return all sets of at most `max_parents` candidates, and their scores; see `Scorer.scores_up_to`."""
        chosen = np.array(sorted(candidates), dtype=np.int64)
        places, values = self._walk(node, chosen, min(max_parents, len(chosen)))
        return _members(places, chosen), values

    def _walk(self, node: int, candidates: Ints, max_parents: int) -> tuple[NDArray[np.int16], Floats]:
        """Return all sets, as places in the candidates, and their scores."""
        places = _subsets(len(candidates), max_parents)
        return places, self.score_padded(node, _members(places, candidates))


def distinct_rows(codes: NDArray[Any], cardinalities: Ints) -> tuple[Ints, Ints]:
    """Return the distinct rows of a table of codes, in lexicographic order, and how often each occurs.

    Parameters
    ----------
    codes : ndarray of shape (variables, rows)
        The table, a variable in each row.
    cardinalities : ndarray of int64, shape (variables,)
        Numbers of levels.

    Examples
    --------
    >>> distinct, counts = distinct_rows(np.array([[1, 0, 1, 1], [2, 0, 2, 0]]), np.array([2, 3]))
    >>> distinct.T.tolist(), counts.tolist()
    ([[0, 0], [1, 0], [1, 2]], [1, 1, 2])
    """
    cells = prod(cardinalities.tolist())
    if cells >= 2**62:
        distinct, counts = np.unique(codes.astype(np.int64), axis=1, return_counts=True)
        return np.ascontiguousarray(distinct), counts
    # As whole numbers, rows are sorted quickly, or needn't be where there are few that they could be.
    steps = np.append(np.cumprod(cardinalities[:0:-1])[::-1], 1).astype(np.int64)
    keys = steps @ codes.astype(np.int64)
    if cells <= _FEW_CELLS:
        every = np.bincount(keys, minlength=cells)
        (present,) = np.nonzero(every)
        counts = every[present]
    else:
        present, counts = np.unique(keys, return_counts=True)
    return present // steps[:, None] % cardinalities[:, None], counts


def _subsets(candidates: int, largest: int) -> NDArray[np.int16]:
    """Return all sets of limited size of the candidates, as positions, then -1."""
    count = sum(comb(candidates, size) for size in range(largest + 1))
    return (
        _few_subsets(candidates, largest, count) if count <= _FEW_CELLS else subsets_up_to(candidates, largest, count)
    )


@lru_cache(maxsize=32)
def _few_subsets(candidates: int, largest: int, count: int) -> NDArray[np.int16]:
    """Remember the last ones: the same are asked for again and again, of one completed table after the other."""
    # Not marked as read-only, for which kernels would be compiled anew; nobody writes to it.
    return subsets_up_to(candidates, largest, count)


def affordable_parents(n: int, distinct_rows: int) -> int | None:
    """Return the most parents whose scores a sampler can tabulate in minutes, at least 3; None for any number."""
    # Beyond a table's width, samplers have tables of about 12 candidates, plus one parent from outside.
    candidates, tables = (n - 1, n) if n - 1 <= MAX_CANDIDATES else (12, n * n)
    visits = 0
    for size in range(candidates + 1):
        visits += tables * distinct_rows * comb(candidates, size)
        if visits > _MAX_ROW_VISITS and size > 3:
            return size - 1
    return None


def _members(places: NDArray[np.int16], candidates: Ints) -> NDArray[np.int16]:
    return np.append(candidates, -1).astype(np.int16)[places]


class DiscreteBICScorer(DiscreteScorer):
    """Discrete BIC scores of one data set; see `gpn_bayes.scores.BIC`."""

    def _terms_of(self, levels: int) -> CountTerms:
        counts = np.arange(self.n_rows + 1.0)
        cell = xlogy(counts, counts)
        return CountTerms(cell, -cell, self._per_configuration(levels), 0.0, _NO_PRIOR)

    def _weight_terms_of(self, levels: int) -> WeightTerms:
        return WeightTerms(0.0, 0.0, self._per_configuration(levels))

    def _per_configuration(self, levels: int) -> float:
        return float(-0.5 * np.log(self.n_rows) * (levels - 1))


class BDeu(Score):
    """The Bayesian Dirichlet score, with equal weight for Markov-equivalent DAGs.

    The marginal likelihood of a discrete network whose conditional probabilities have Dirichlet priors, with
    ``ess / (q r)`` imagined rows for each of the r levels of a node under each of the q configurations of its parents,
    observed or not (Heckerman, Geiger & Chickering 1995).

    Parameters
    ----------
    ess : float, default 1
        Equivalent sample size: the number of imagined rows. More of them favour more edges.
    cardinalities : mapping of str to int, optional
        Number of levels of columns, where not all were observed. Whole numbers must then be codes 0, 1, ….

    Examples
    --------
    >>> import pandas as pd
    >>> rain = ["no", "no", "no", "yes", "yes", "no", "yes", "no"] * 5
    >>> scorer = BDeu().bind(pd.DataFrame({"rain": rain, "wet": rain[:-3] + ["yes"] * 3}))
    >>> scorer.local("wet", ["rain"]) > scorer.local("wet")
    True
    >>> from gpn_bayes import Dataset
    >>> table = pd.DataFrame({"rain": ["no", "yes", None, "no"], "wet": ["no", "yes", "yes", "no"]})
    >>> BDeu().complete(Dataset.read(table, missing="impute")).variables.table
    1.0
    """

    name = "bdeu"
    takes_weights = True

    def __init__(self, ess: float = 1.0, cardinalities: Mapping[str, int] | None = None) -> None:
        check_positive("ess", ess)
        self.ess = float(ess)
        self.cardinalities = check_cardinalities(cardinalities)

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings that determine the score.

        Examples
        --------
        >>> BDeu(ess=10).parameters
        {'ess': 10.0, 'cardinalities': None}
        """
        return {"ess": self.ess, "cardinalities": self.cardinalities}

    def _bind(self, data: Dataset | SufficientStatistics) -> "BDeuScorer":
        return BDeuScorer(self, data)

    def complete(self, data: Dataset) -> Any:
        """Return how missing levels are drawn: given tables of probabilities, with the prior's imagined rows."""
        return _completed(self, data, self.ess)


class BDeuScorer(DiscreteScorer):
    """BDeu scores of one data set; see `BDeu`."""

    def __init__(self, score: BDeu, data: Dataset | SufficientStatistics) -> None:
        super().__init__(score, data, score.cardinalities)
        self.ess = score.ess

    def imagined(self, cells: int) -> float:
        """Return the rows that the prior imagines in each cell: the equivalent sample size, divided evenly."""
        return self.ess / cells

    def pymc_node(self, node: int, parents: tuple[int, ...], table: Dataset, functions: str) -> None:
        """Add a table of probabilities to the PyMC model being built."""
        self._add_table(node, parents, table)

    def _terms_of(self, levels: int) -> CountTerms:
        return CountTerms(np.zeros(_KEPT_COUNTS), np.zeros(_KEPT_COUNTS), 0.0, self.ess, _NO_PRIOR)

    def _weight_terms_of(self, levels: int) -> WeightTerms:
        return WeightTerms(self.ess, 0.0, 0.0)


def stirling(x: Floats) -> Floats:
    """Return Stirling's approximation of ln x!, which is ln(2 pi) / 2 + (x + 1/2) ln x - x; and 0 for x = 0.

    Examples
    --------
    >>> stirling(np.array([0.0, 1.0, 5.0])).round(3).tolist()
    [0.0, -0.081, 4.771]
    """
    return np.where(x > 0, 0.5 * np.log(2 * np.pi) + xlogy(x + 0.5, np.maximum(x, 1)) - x, 0.0)


class K2(Score):
    r"""The Bayesian Dirichlet score with one imagined row for each level of a node under each configuration.

    The marginal likelihood under uniform priors of all conditional probabilities (Cooper & Herskovits 1992),

    .. math:: \sum_j \Big[\ln (r_i - 1)! - \ln (N_{ij} + r_i - 1)! + \sum_k \ln N_{ijk}!\Big],

    with r_i the levels of the node, N_ij the rows under configuration j of its parents, and N_ijk those of them in
    which the node has level k.

    Parameters
    ----------
    cardinalities : mapping of str to int, optional
        Number of levels of columns, where not all were observed. Whole numbers must then be codes 0, 1, ….
    form : {"exact", "stirling"}
        "stirling" is the approximation from which Wright & Yang (2004) derive the score of their protocol: ``ln x!`` of
        counts, that is in the second and third term, is ``ln(2 pi) / 2 + (x + 1/2) ln x - x`` for x >= 1, and 0 for
        x = 0. The first term stays as it is, and configurations that weren't observed add nothing, as they
        do in the exact form.

    Examples
    --------
    >>> import pandas as pd
    >>> rain = ["no", "no", "no", "yes", "yes", "no", "yes", "no"] * 5
    >>> table = pd.DataFrame({"rain": rain, "wet": rain[:-3] + ["yes"] * 3})
    >>> exact, approximate = (K2(form=form).bind(table).local("wet", ["rain"]) for form in ("exact", "stirling"))
    >>> print(f"{exact:.2f} {approximate:.2f}")
    -11.73 -11.78
    >>> from gpn_bayes import Dataset
    >>> table = pd.DataFrame({"rain": ["no", "yes", None, "no"], "wet": ["no", "yes", "yes", "no"]})
    >>> K2().complete(Dataset.read(table, missing="impute")).variables.table
    -1.0
    """

    name = "k2"
    takes_weights = True

    def __init__(self, cardinalities: Mapping[str, int] | None = None, form: str = "exact") -> None:
        if form not in ("exact", "stirling"):
            raise ValueError(f"form must be 'exact' or 'stirling'; received {shown(form)}")
        self.cardinalities = check_cardinalities(cardinalities)
        self.form = form

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings that determine the score.

        Examples
        --------
        >>> K2(form="stirling").parameters
        {'cardinalities': None, 'form': 'stirling'}
        """
        return {"cardinalities": self.cardinalities, "form": self.form}

    def _bind(self, data: Dataset | SufficientStatistics) -> "K2Scorer":
        return K2Scorer(self, data)

    def complete(self, data: Dataset) -> Any:
        """Return how missing levels are drawn: given tables of probabilities, with one imagined row a cell."""
        if self.form != "exact":
            raise lacking("missing='impute'", "complete", f"{self.name} with form={self.form!r}")
        return _completed(self, data, -1.0)


class K2Scorer(DiscreteScorer):
    """K2 scores of one data set; see `K2`."""

    # Equivalent networks don't score alike.
    assumptions = CATEGORIES

    def __init__(self, score: K2, data: Dataset | SufficientStatistics) -> None:
        if score.form == "stirling":
            refuse_weights(data, "K2 by Stirling's formula")
        super().__init__(score, data, score.cardinalities)
        self.form = score.form

    def pymc_node(self, node: int, parents: tuple[int, ...], table: Dataset, functions: str) -> None:
        """Add a table of probabilities to the PyMC model being built."""
        self._add_table(node, parents, table)

    def _terms_of(self, levels: int) -> CountTerms:
        counts = np.arange(self.n_rows + 1.0)
        log_factorial = stirling if self.form == "stirling" else _log_factorial
        margin = gammaln(levels) - log_factorial(counts + levels - 1)
        # Nothing for a configuration that wasn't observed, in either form.
        margin[0] = 0.0
        return CountTerms(log_factorial(counts), margin, 0.0, 0.0, _NO_PRIOR)

    def _weight_terms_of(self, levels: int) -> WeightTerms:
        return WeightTerms(0.0, 1.0, 0.0)


def _log_factorial(x: Floats) -> Floats:
    return gammaln(x + 1)


def _completed(score: BDeu | K2, data: Dataset, imagined: float) -> Any:
    """Return how a score completes a table, given the imagined rows of a table of probabilities, or minus a cell's."""
    from gpn_bayes.scores.completing import completion, filled

    template, among = score._bind(filled(data)), np.ones(len(data.names), dtype=bool)
    return completion(data, among, template, table=imagined, cardinalities=score.cardinalities)

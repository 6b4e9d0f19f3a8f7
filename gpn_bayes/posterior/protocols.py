"""What pictures, reports, curves, diagnostics and files need of a posterior, so that they needn't import its class.

`gpn_bayes.posterior.pictures` adds methods to these protocols, and posteriors inherit from it: so mypy checks that they
have every member, of the right type.
"""

from abc import abstractmethod
from collections.abc import Callable, Hashable, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
import pandas as pd

from gpn_bayes.posterior.directions import DirectionShares
from gpn_bayes.posterior.estimate import Moments
from gpn_bayes.posterior.exact import ExactAnswers


class GraphCollection(Protocol):
    """DAGs over the same variables, drawn from a posterior or fitted to resampled rows.

    Attributes
    ----------
    names : tuple of str
        The variables.
    quantity : str
        What to call the share of the DAGs that have an edge, such as "probability".
    """

    names: tuple[str, ...]
    quantity: ClassVar[str]

    @property
    @abstractmethod
    def _distinct(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The distinct DAGs as parent bits, the first draw of each, and which one each draw is."""

    @property
    @abstractmethod
    def _direction_shares(self) -> DirectionShares:
        """How often edges are there, and how often their direction is the same in the whole equivalence class."""

    @property
    @abstractmethod
    def _known_directions(self) -> dict[str, np.ndarray]:
        """The pairs that can only be joined in one direction, by what says so."""

    @abstractmethod
    def edge_probabilities(self) -> pd.DataFrame:
        """Return the probability of every edge; rows are parents, columns children."""


class ResampledGraphs(GraphCollection, Protocol):
    """DAGs that a learner found in resampled rows; the members are those of `gpn_bayes.estimators.BootstrapResult`."""

    parents: np.ndarray
    learner: str
    inconsistent: int
    data: Any

    @property
    @abstractmethod
    def resamples(self) -> int:
        """How many resamples there are."""

    @property
    @abstractmethod
    def _edge_moments(self) -> Moments:
        """The frequencies of all edges, flat."""

    @abstractmethod
    def _moments(self, features_of: Callable[[np.ndarray], np.ndarray]) -> Moments:
        """Return the frequencies of features of a stack of DAGs, as arrays over the features."""

    @abstractmethod
    def _joined_moments(self, i: Sequence[int] | np.ndarray, j: Sequence[int] | np.ndarray) -> Moments:
        """Return how often nodes i and j are joined, either way."""


class DrawnPosterior(GraphCollection, Protocol):
    """Weighted draws of DAGs from a posterior, with their scores and how they were made.

    The members are those of `gpn_bayes.GraphPosterior`, where they are explained.
    """

    parents: np.ndarray
    log_score: np.ndarray
    log_weights: np.ndarray | None
    score_errors: np.ndarray | None
    stats: dict[str, np.ndarray]
    settings: dict[str, Any]
    exact: ExactAnswers | None
    scorer: Callable[[np.ndarray], float] | None
    data: Any
    completed: np.ndarray | None

    @property
    @abstractmethod
    def adjacency(self) -> np.ndarray:
        """The drawn DAGs, of shape (chain, draw, parent, child)."""

    @property
    @abstractmethod
    def weights(self) -> np.ndarray:
        """The weight of each draw, of mean one."""

    @abstractmethod
    def _moments(self, features_of: Callable[[np.ndarray], np.ndarray]) -> Moments:
        """Return the posterior means of features of a stack of DAGs, as arrays over the features."""

    @abstractmethod
    def _drawn_moments(self, values: np.ndarray, places: np.ndarray, weights: np.ndarray) -> Moments:
        """Return the posterior means of numbers that were drawn with some of the DAGs."""

    @abstractmethod
    def _joined_moments(self, i: Sequence[int] | np.ndarray, j: Sequence[int] | np.ndarray) -> Moments:
        """Return the estimates that nodes i and j are joined, either way."""

    @abstractmethod
    def parent_set_probabilities(self, node: Hashable) -> pd.DataFrame:
        """Return the parent sets of a variable by decreasing probability."""

    @abstractmethod
    def target_probabilities(self) -> pd.DataFrame:
        """Return the probability that each context changed each variable."""

    def summary(self) -> pd.DataFrame:
        """Return a tidy table of all edges by decreasing probability."""

    @abstractmethod
    def effect(self, *variables: Any, **settings: Any) -> "DrawnEffect":
        """Return the effect of setting one variable on another."""

    @abstractmethod
    def effects(self, *none: Any, **settings: Any) -> pd.DataFrame:
        """Return the effects of all variables on all others."""


class DrawnEffect(Protocol):
    """Weighted draws of an effect; the members are those of `gpn_bayes.posterior.Effect`, where they are explained."""

    cause: str
    outcome: str
    quantity: str
    draws: Any
    weights: np.ndarray
    probability: float
    units: str
    mcse: Any
    slope: Any
    given_path: Any

    @property
    @abstractmethod
    def mean(self) -> Any:
        """The posterior mean."""

    @property
    @abstractmethod
    def sd(self) -> Any:
        """The posterior standard deviation."""

    @property
    @abstractmethod
    def what(self) -> str:
        """What the mean is, in words."""

    @abstractmethod
    def interval(self, probability: float = 0.9) -> Any:
        """Return the central interval that holds the effect with a probability."""

    @abstractmethod
    def outcome_interval(self, probability: float = 0.9) -> Any:
        """Return the central interval that holds a single outcome."""


class PredictiveComparison(Protocol):
    """Posteriors compared by prediction; the members are those of `gpn_bayes.posterior.Comparison`."""

    table: pd.DataFrame
    by_variable: pd.DataFrame

    @property
    @abstractmethod
    def best(self) -> str:
        """The posterior that predicts best."""

"""The modular graph prior: what each parent set costs, and which edges must or must not be there."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import dataclass
from numbers import Real
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd
from scipy.special import gammaln

from gpn_bayes import graphs
from gpn_bayes._util.checks import check_count, did_you_mean, shown
from gpn_bayes._util.types import Bools, Floats

KINDS = ("uniform", "fair")
_RULE = f"prior must be one of {', '.join(KINDS)}, or a table of edge probabilities"


@dataclass(frozen=True, eq=False)
class GraphPrior:
    """A prior over DAGs that factorises over the nodes' parent sets.

    Parameters
    ----------
    names : sequence of str
        The variables.
    kind : {"uniform", "fair"}
        "uniform" over DAGs; "fair" divides by C(n - 1, k), so that each number k of parents weighs the same.
    edge_penalty : float
        Subtracted from the log prior for every edge.
    edge_probabilities : array or DataFrame, optional
        Prior probability of each edge, rows parents; 1 requires an edge, 0 forbids it.
    required, forbidden : iterable of (parent, child)
        Required and forbidden edges.
    tiers : sequence of groups of names, or mapping of names to tier numbers, optional
        No edge leads from a later tier to an earlier one; within a tier all may.

    Attributes
    ----------
    required, forbidden : ndarray of bool, shape (n, n)
        After construction: the edges as matrices, rows parents.

    Examples
    --------
    >>> prior = GraphPrior(["age", "dose", "weight"], tiers=[["age"], ["dose", "weight"]])
    >>> bool(prior.forbidden[1, 0]), bool(prior.forbidden[0, 1])
    (True, False)
    >>> prior.parameters["forbidden"]
    [[0, 0], [1, 0], [1, 1], [2, 0], [2, 2]]
    """

    names: Sequence[str]
    kind: str = "uniform"
    edge_penalty: float = 0.0
    edge_probabilities: Any = None
    required: Any = ()
    forbidden: Any = ()
    tiers: Any = None

    def __post_init__(self) -> None:
        """Check the edges and turn them into matrices."""
        if self.kind not in KINDS:
            suggestion = did_you_mean(self.kind, KINDS)
            raise ValueError(f"{_RULE}; received {shown(self.kind)}{suggestion}")
        if not np.isfinite(self.edge_penalty):
            raise ValueError(f"edge_penalty must be finite; received {self.edge_penalty}")
        names = tuple(self.names)
        log_odds, always, never = _read_probabilities(self.edge_probabilities, names)
        required = _edge_matrix(self.required, names, "required") | always
        forbidden = _edge_matrix(self.forbidden, names, "forbidden") | never
        _check_required(required, forbidden, names, "forbidden")
        tier_of = _tier_numbers(self.tiers, names)
        by_tiers = tier_of[:, None] > tier_of[None, :]
        _check_required(required, by_tiers, names, "against the tiers")
        for field, value in (
            ("names", names),
            ("required", required),
            ("forbidden", forbidden | by_tiers | np.eye(len(names), dtype=bool)),
            ("_log_odds", log_odds),
            ("_tier_of", None if self.tiers is None else tier_of.tolist()),
        ):
            object.__setattr__(self, field, value)

    @classmethod
    def read(cls, prior: Any, names: Sequence[str], required: Any, forbidden: Any, tiers: Any) -> "GraphPrior":
        """Return the prior a user described: a name, a table of edge probabilities, or a `GraphPrior`.

        Parameters
        ----------
        prior : {"uniform", "fair"}, array, DataFrame or GraphPrior
            As `kind`, or as `edge_probabilities`; a `GraphPrior` is returned as it is.
        names : sequence of str
            The variables.
        required, forbidden, tiers
            As of the class; they must be empty where `prior` is a `GraphPrior`.

        Examples
        --------
        >>> GraphPrior.read("fair", ["a", "b"], required=[("a", "b")], forbidden=[], tiers=None).kind
        'fair'
        """
        if isinstance(prior, GraphPrior):
            if tuple(prior.names) != tuple(names):
                raise ValueError(f"the prior must be over the data's variables; it is over {list(prior.names)}")
            if any(len(list(edges)) for edges in (required, forbidden)) or tiers is not None:
                raise ValueError("required, forbidden and tiers go into the GraphPrior when one is given")
            return prior
        if isinstance(prior, str):
            return cls(names, prior, required=required, forbidden=forbidden, tiers=tiers)
        return cls(names, edge_probabilities=prior, required=required, forbidden=forbidden, tiers=tiers)

    def without(self, impossible: Bools | None) -> "GraphPrior":
        """Return this prior with the edges forbidden that a score can't represent.

        Parameters
        ----------
        impossible : ndarray of bool, shape (n, n), optional
            The edges, rows parents.

        Raises
        ------
        ValueError
            If one of them is required.

        Examples
        --------
        >>> prior = GraphPrior(["a", "b"], "fair").without(np.array([[False, True], [False, False]]))
        >>> prior.kind, bool(prior.forbidden[0, 1])
        ('fair', True)
        """
        if impossible is None or not impossible.any():
            return self
        _check_required(self.required, impossible, tuple(self.names), "impossible under the score")
        other = copy(self)
        object.__setattr__(other, "forbidden", self.forbidden | impossible)
        return other

    @classmethod
    def from_parameters(cls, names: Sequence[str], parameters: Mapping[str, Any]) -> "GraphPrior":
        """Return the prior that has these `parameters`, as files keep them.

        Examples
        --------
        >>> prior = GraphPrior(["a", "b"], "fair", required=[("a", "b")])
        >>> GraphPrior.from_parameters(["a", "b"], prior.parameters).parameters == prior.parameters
        True
        """
        n = len(names)
        edges = {}
        for role in ("required", "forbidden"):
            edges[role] = np.zeros((n, n), dtype=np.int8)
            for parent, child in parameters[role]:
                edges[role][parent, child] = parent != child
        numbers = parameters.get("tiers")
        tiers = None if numbers is None else dict(zip(names, numbers, strict=True))
        prior = cls(names, parameters["kind"], float(parameters["edge_penalty"]), **edges, tiers=tiers)
        if parameters["log_odds"] is not None:
            object.__setattr__(prior, "_log_odds", np.array(parameters["log_odds"], dtype=float).reshape(n, n))
        return prior

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings that determine the prior, JSON-able."""
        return {
            "kind": self.kind,
            "edge_penalty": self.edge_penalty,
            "log_odds": self._log_odds.tolist() if self._log_odds.any() else None,  # type: ignore[attr-defined]  # see __post_init__
            "required": np.argwhere(self.required).tolist(),
            "forbidden": np.argwhere(self.forbidden).tolist(),
            "tiers": self._tier_of,  # type: ignore[attr-defined]  # see __post_init__
        }

    def check_max_parents(self, max_parents: Any) -> None:
        """Refuse a maximum number of parents that is not a number, or leaves no room for the required edges.

        Parameters
        ----------
        max_parents : int
            Maximum number of parents per node.

        Examples
        --------
        >>> prior = GraphPrior(["a", "b", "c"], required=[("a", "c"), ("b", "c")])
        >>> prior.check_max_parents(2)
        >>> prior.check_max_parents(1)
        Traceback (most recent call last):
        ValueError: max_parents must leave room for the required edges; received 1, but 'c' has 2 required parents
        """
        check_count("max_parents", max_parents)
        for name, needed in zip(self.names, self.required.sum(axis=0).tolist(), strict=True):
            if needed > max_parents:
                raise ValueError(
                    f"max_parents must leave room for the required edges; received {max_parents}, but {name!r} has "
                    f"{needed} required parent{'s' * (needed != 1)}"
                )

    def log_table(self, node: int, candidates: Sequence[int]) -> Floats:
        """Return the log prior of every subset of a node's candidates, in bitmask order.

        Terms that are the same for all subsets of the candidates are left out. Sets that lack a required
        parent, or hold a forbidden one, get minus infinity.

        Parameters
        ----------
        node : int
            The variable's index.
        candidates : sequence of int
            Indices of its candidate parents; bit b of an entry's index tells whether ``candidates[b]`` is a parent.

        Examples
        --------
        >>> np.exp(GraphPrior(["a", "b", "c"], "fair").log_table(2, [0, 1])).round(3).tolist()
        [1.0, 0.5, 0.5, 1.0]
        """
        n = len(self.names)
        table = np.zeros(1)
        sizes = np.zeros(1, dtype=np.int64)
        for parent in candidates:
            gain = self._log_odds[parent, node] - self.edge_penalty  # type: ignore[attr-defined]  # see __post_init__
            without = np.full_like(table, -np.inf) if self.required[parent, node] else table
            holding = np.full_like(table, -np.inf) if self.forbidden[parent, node] else table + gain
            table = np.concatenate([without, holding])
            sizes = np.concatenate([sizes, sizes + 1])
        if self.kind == "fair":
            table = table - (gammaln(n) - gammaln(sizes + 1) - gammaln(n - sizes))
        return table


def _edge_matrix(edges: Any, names: tuple[str, ...], role: str) -> Bools:
    if isinstance(edges, str):
        raise ValueError(f"{role} edges must be pairs (parent, child); received {shown(edges)}")
    try:
        # A set of forbidden edges may well hold cycles; required ones are checked later, with their names.
        return graphs.as_adjacency(edges, names, acyclic=False).astype(bool)
    except ValueError as error:
        raise ValueError(f"{role} edges: {error}") from None


def _check_required(required: Bools, forbidden: Bools, names: tuple[str, ...], why: str) -> None:
    clash = np.argwhere(required & forbidden)
    if len(clash):
        parent, child = clash[0]
        raise ValueError(f"an edge can't be required and {why}; {names[parent]} -> {names[child]} is both")
    try:
        cycle = nx.find_cycle(graphs.to_networkx(required.astype(np.int8), names))
    except nx.NetworkXNoCycle:
        return
    path = " -> ".join([cycle[0][0], *(edge[1] for edge in cycle)])
    raise ValueError(f"required edges must not form a cycle; received {path}")


def _tier_numbers(tiers: Any, names: tuple[str, ...]) -> Floats:
    """Return the number of each variable's tier; without tiers, the same for all."""
    n = len(names)
    if tiers is None:
        return np.zeros(n)
    numbers: dict[int, Any] = {}
    for name, tier in _tier_pairs(tiers):
        place = graphs.node_index(name, names)
        if place in numbers:
            raise ValueError(f"every variable belongs to one tier; {name!r} is in two")
        numbers[place] = tier
    missing = [name for i, name in enumerate(names) if i not in numbers]
    if missing:
        raise ValueError(f"every variable belongs to one tier; {missing[0]!r} is in none")
    return np.array([numbers[i] for i in range(n)], dtype=float)


def _tier_pairs(tiers: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each named variable with the number of its tier."""
    rule = "tiers must be groups of names or a mapping of names to numbers"
    if isinstance(tiers, Mapping):
        for name, tier in tiers.items():
            if not isinstance(tier, Real):
                raise ValueError(f"{rule}; received {shown(tier)} for {name!r}")
            yield name, tier
        return
    if isinstance(tiers, str) or not isinstance(tiers, Iterable):
        raise ValueError(f"{rule}; received {shown(tiers)}")
    for tier, group in enumerate(tiers, start=1):
        if not isinstance(group, Iterable):
            raise ValueError(f"{rule}; received the group {shown(group)}")
        for name in [group] if isinstance(group, str) else group:
            yield name, tier


def _read_probabilities(table: Any, names: tuple[str, ...]) -> tuple[Floats, Bools, Bools]:
    """Return the log odds of each edge, and the edges of probability one and zero."""
    n = len(names)
    if table is None:
        nothing = np.zeros((n, n), dtype=bool)
        return np.zeros((n, n)), nothing, nothing
    if isinstance(table, pd.DataFrame):
        odd = (set(names) ^ set(table.index)) | (set(names) ^ set(table.columns))
        if odd:
            name = min(odd, key=str)
            why = "is missing" if name in names else f"is not one{did_you_mean(name, names)}"
            raise ValueError(f"edge probabilities need the variables as rows and columns; {name!r} {why}")
        table = table.loc[list(names), list(names)]
    try:
        values = np.array(table, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{_RULE}; received {type(table).__name__}") from None
    if values.shape != (n, n):
        raise ValueError(f"edge probabilities must have shape ({n}, {n}); received {values.shape}")
    off = ~np.eye(n, dtype=bool)
    outside = np.argwhere(off & ~((values >= 0) & (values <= 1)))
    if len(outside):
        i, j = outside[0]
        raise ValueError(
            f"edge probabilities must lie between 0 and 1; that of {names[i]} -> {names[j]} is {values[i, j]:g}"
        )
    always, never = (values == 1) & off, (values == 0) & off
    inner = off & ~always & ~never
    log_odds = np.zeros((n, n))
    log_odds[inner] = np.log(values[inner]) - np.log1p(-values[inner])
    return log_odds, always, never

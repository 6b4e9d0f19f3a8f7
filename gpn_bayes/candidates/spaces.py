"""The search space: which parents each node may have."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from gpn_bayes import graphs
from gpn_bayes._util.checks import did_you_mean, shown
from gpn_bayes._util.types import DiGraph, Floats
from gpn_bayes.candidates.costs import filled_up_to, keeps_all, most_candidates
from gpn_bayes.candidates.methods import (
    METHODS,
    Lists,
    SpaceContext,
    Wanted,
    check_methods,
    default_methods,
    ranked_candidates,
)
from gpn_bayes.candidates.screening import strongest
from gpn_bayes.data import Data
from gpn_bayes.kernels.graphs.subsets import MAX_CANDIDATES
from gpn_bayes.scores.base import Scorer
from gpn_bayes.scores.prior import GraphPrior

# Candidates that a method leaves a node at most, unless asked for more: a table of 4,096 scores.
DEFAULT_CANDIDATES = 12
ALL_OTHERS = "all others"


@dataclass(frozen=True)
class NotNamed:
    """Variables that candidates were given without.

    Attributes
    ----------
    count : int
        How many there are.
    of : int
        Of how many variables.
    method : str
        Where their candidates come from: "all others", "none", or the names of the methods.

    Examples
    --------
    >>> print(NotNamed(5, 8, "all others"))
    5 of 8 variables aren't named; their candidates: all others
    """

    count: int
    of: int
    method: str

    def __str__(self) -> str:
        """Return it in words."""
        return f"{self.count} of {self.of} variables aren't named; their candidates: {self.method}"


@dataclass(frozen=True)
class SpaceReport:
    """How the candidates came about, in a few numbers.

    Attributes
    ----------
    method : str
        "all others", "given", "estimate by …", or the names of the methods.
    sizes : tuple of int
        Number of candidates of each node.
    cut : dict
        How many candidates were left out, for the nodes that had more than the limit.
    not_named : NotNamed, optional
        Where candidates were given, the variables without any.

    Examples
    --------
    >>> print(SpaceReport("pc", (2, 3, 12), {"raf": 4}))
    candidate parents by pc: 5.7 a node, at most 12; 4 were left out at 1 node
    """

    method: str
    sizes: tuple[int, ...]
    cut: dict[str, int]
    not_named: NotNamed | None = None

    @property
    def parameters(self) -> dict[str, Any]:
        """The report, JSON-able."""
        report = {"method": self.method, "sizes": list(self.sizes), "cut": self.cut}
        if self.not_named is None:
            return report
        return report | {"not_named": self.not_named.count, "not_named_method": self.not_named.method}

    def __str__(self) -> str:
        """Return it in one line."""
        origin = "as given" if self.method == "given" else f"by {self.method}"
        text = f"candidate parents {origin}: {np.mean(self.sizes):.1f} a node, at most {max(self.sizes)}"
        if self.cut:
            nodes = f"{len(self.cut)} node{'s' if len(self.cut) > 1 else ''}"
            text += f"; {sum(self.cut.values())} were left out at {nodes}"
        return text if self.not_named is None else f"{text}; {self.not_named}"


@dataclass(frozen=True, eq=False)
class SearchSpace:
    """A search space that was asked for and checked; `find_candidates` fills it where it depends on the data.

    Attributes
    ----------
    prior : GraphPrior
        Required edges are always in the space, forbidden ones never.
    source : str
        As the method of a `SpaceReport`.
    known : list
        The candidates of every node, or None where they are to be found.
    methods : tuple of str
        How to find them.
    limit : int
        How many a node keeps at most.
    at_least : int
        How many forward selection finds, even where the score favours fewer.
    max_parents : int, optional
        How many it finds at most under scores that are slow, all the more of many parents.
    cut : dict
        How many were left out, where they are known.
    named : frozenset of int
        The nodes for which the user named candidates.
    not_named : NotNamed, optional
        The others, where there are any.
    """

    prior: GraphPrior
    source: str
    known: Sequence[list[int] | None]
    methods: tuple[str, ...] = ()
    limit: int = MAX_CANDIDATES
    at_least: int = 0
    max_parents: int | None = None
    cut: dict[str, int] = field(default_factory=dict)
    named: frozenset[int] = frozenset()
    not_named: NotNamed | None = None

    @property
    def estimated(self) -> bool:
        """Whether data decide on candidates, so that some may have been missed."""
        return None in self.known or self.source not in (ALL_OTHERS, "given")

    @property
    def parameters(self) -> Any:
        """What determines the candidates of given data under a given score, JSON-able."""
        if None not in self.known:
            return list(self.known)
        asked = {"methods": list(self.methods), "limit": self.limit, "at_least": self.at_least}
        return asked | ({"known": list(self.known)} if any(own is not None for own in self.known) else {})


@dataclass(frozen=True, eq=False)
class FoundCandidates:
    """The candidate parents of every node, by index, in the variables' order; and how they came about."""

    lists: Lists
    report: SpaceReport


def candidate_lists(
    candidates: Any,
    prior: GraphPrior,
    max_parents: int | None = None,
    context: SpaceContext | None = None,
) -> Lists:
    """Return the candidate parents of every node, by index, in the variables' order.

    Parameters
    ----------
    candidates : None, int, str, list of str, dict, networkx.DiGraph or estimator
        See `read_space`.
    prior : GraphPrior
        Required edges are always in the space, forbidden ones never.
    max_parents : int, optional
        Checked against the number of required parents.
    context : SpaceContext, optional
        The data and the score, for methods that look at them.

    Examples
    --------
    >>> candidate_lists({"erk": ["mek"], "raf": []}, GraphPrior(["raf", "mek", "erk"]))  # mek isn't named: all others
    [[], [0, 2], [1]]
    """
    known = (None, None) if context is None else (context.data, context.store.scorer)
    return find_candidates(read_space(candidates, prior, max_parents, *known), context).lists


def read_space(
    candidates: Any,
    prior: GraphPrior,
    max_parents: int | None = None,
    data: Data | None = None,
    scorer: Scorer | None = None,
    exact: bool = False,
    steps: int | None = None,
) -> SearchSpace:
    """Check what a user wants as candidates, before anything is computed.

    Parameters
    ----------
    candidates : None, int, str, list of str, dict, networkx.DiGraph or estimator
        For each variable the list of its candidates: those not named have what None gives them, and an empty list
        stands for none. Or a graph whose edges lead from candidates, and which names them all: a variable without an
        edge, or that isn't in the graph, has none. Or a fitted estimator, each of whose edges makes its ends candidates
        of each other. Or the name of a method, several names, or names joined by "+", for the union of what they find,
        up to 12 per variable: "pc", "dual-pc", "greedy" (forward selection under the score), "correlation",
        "distance-correlation". Or the largest number of candidates per variable, found by the default method. None
        stands for all others while these are few (see `candidates.costs.keeps_all`), then for the default method:
        "pc+greedy", or "greedy" for scores without a closed form and those of categories. Closed forms fill the lists
        up with the best of the rest (see `candidates.costs.filled_up_to`).
    prior : GraphPrior
        The graph prior.
    max_parents : int, optional
        Checked against the number of required parents.
    data : Dataset or SufficientStatistics, optional
        What methods will look at.
    scorer : Scorer, optional
        The score that DAGs will be drawn under.
    exact : bool
        Whether by the exact sampler, for which None stands for all others.
    steps : int, optional
        Steps that all chains take together: a short run isn't worth large tables.

    Raises
    ------
    ValueError
        For anything that would keep `find_candidates` from its end.
    """
    if max_parents is not None:
        prior.check_max_parents(max_parents)
    _check_required(prior)
    n = len(prior.names)
    if isinstance(candidates, int | np.integer):  # booleans too, which aren't numbers here
        if isinstance(candidates, bool) or not 1 <= candidates <= MAX_CANDIDATES:
            raise ValueError(
                f"the number of candidates must be a whole number from 1 to {MAX_CANDIDATES}; received {candidates}"
            )
        if n - 1 <= candidates:
            return SearchSpace(prior, ALL_OTHERS, _listed(~prior.forbidden))
        return _space_to_find(candidates, (), int(candidates), prior, max_parents, data, scorer)
    if isinstance(candidates, str | list | tuple):
        return _space_to_find(candidates, _read_methods(candidates), _method_limit(n), prior, max_parents, data, scorer)
    if _is_estimator(candidates):
        return _estimated_space(candidates, prior)
    if isinstance(candidates, nx.DiGraph):
        return _graph_space(candidates, prior)
    return _named_space(candidates, prior, max_parents, data, scorer, exact, steps)


def find_candidates(space: SearchSpace, context: SpaceContext | None = None) -> FoundCandidates:
    """Return the candidates of every node, found in the data where need be.

    Parameters
    ----------
    space : SearchSpace
        What was asked for.
    context : SpaceContext, optional
        The data and the score; not needed where the candidates are known.
    """
    lists, cut = [own for own in space.known if own is not None], space.cut
    if len(lists) < len(space.known):
        if context is None:
            raise ValueError(f"the methods {'+'.join(space.methods)} need data; received none")
        wanted = np.array([own is None for own in space.known])
        ranked = ranked_candidates(
            space.methods,
            context,
            Wanted(
                ~space.prior.forbidden & wanted, space.prior.required, space.limit, space.at_least, space.max_parents
            ),
        )
        found, cut = _cut(ranked, space.prior, space.limit)
        lists = [new if own is None else own for own, new in zip(space.known, found, strict=True)]
    return FoundCandidates(lists, SpaceReport(space.source, tuple(map(len, lists)), cut, space.not_named))


def _method_limit(n: int) -> int:
    return min(DEFAULT_CANDIDATES, most_candidates(n))


def _space_to_find(
    candidates: Any,
    methods: tuple[str, ...],
    limit: int,
    prior: GraphPrior,
    max_parents: int | None,
    data: Data | None,
    scorer: Scorer | None,
) -> SearchSpace:
    """Return the space that methods will find, by default the usual ones."""
    if data is None or scorer is None:
        raise ValueError(f"candidates must be named where there are no data; received {shown(candidates)}")
    methods = methods or default_methods(scorer, data)
    check_methods(methods, scorer, data)
    return SearchSpace(prior, "+".join(methods), [None] * len(prior.names), methods, limit, max_parents=max_parents)


def _read_methods(names: Any) -> tuple[str, ...]:
    rule = f"methods to find candidates are {', '.join(METHODS)}"
    methods = [part.strip() for part in names.split("+")] if isinstance(names, str) else list(names)
    if not methods:
        raise ValueError(f"{rule}; received none")
    for method in methods:
        if method not in METHODS:
            raise ValueError(f"{rule}; received {shown(method)}{did_you_mean(method, METHODS)}")
    return tuple(dict.fromkeys(methods))


def _estimated_space(estimator: Any, prior: GraphPrior) -> SearchSpace:
    """Return the space of the edges of an estimate, either way."""
    names = list(prior.names)
    weights = _estimated_weights(estimator, names)
    either = (weights != 0) | (weights.T != 0)
    lists, cut = _cut(strongest(_ranks(weights), either, len(names)), prior, _method_limit(len(names)))
    _check_lists(lists, names)
    return SearchSpace(prior, f"estimate by {type(estimator).__name__}", lists, cut=cut)


def _graph_space(graph: DiGraph, prior: GraphPrior) -> SearchSpace:
    """Return the space of the edges of a graph."""
    names = list(prior.names)
    edges = graphs.as_adjacency(graph, names, acyclic=False).astype(bool)
    lists = _listed(edges & ~prior.forbidden | prior.required)
    _check_lists(lists, names)
    missing = len(names) - len(graph)
    not_named = NotNamed(missing, len(names), "none") if missing else None
    return SearchSpace(prior, "given", lists, named=frozenset(range(len(names))), not_named=not_named)


def _named_space(
    candidates: Any,
    prior: GraphPrior,
    max_parents: int | None,
    data: Data | None,
    scorer: Scorer | None,
    exact: bool,
    steps: int | None,
) -> SearchSpace:
    """Return the space of candidates by name; who isn't named has all others, or what the default method will find."""
    names, n = list(prior.names), len(prior.names)
    named = {} if candidates is None else _read_named(candidates, names)
    known: list[list[int] | None] = []
    for i, everyone in enumerate(_listed(~prior.forbidden)):
        if i in named:
            required = np.flatnonzero(prior.required[:, i]).tolist()
            known.append(sorted({*required, *named[i].intersection(everyone)}))
        else:
            keep = exact or data is None or scorer is None or keeps_all(len(everyone))
            known.append(everyone if keep else None)
    _check_lists(known, names, empty=candidates is None)
    methods: tuple[str, ...] = ()
    limit = at_least = 0
    if None in known:
        assert data is not None and scorer is not None  # else everyone was kept
        methods, at_least = default_methods(scorer, data), filled_up_to(n, scorer, steps)
        check_methods(methods, scorer, data)
        limit = max(_method_limit(n), at_least)
    by_default = "+".join(methods) or ALL_OTHERS
    if not named:
        return SearchSpace(prior, by_default, known, methods, limit, at_least, max_parents)
    not_named = NotNamed(n - len(named), n, by_default) if len(named) < n else None
    return SearchSpace(
        prior, "given", known, methods, limit, at_least, max_parents, named=frozenset(named), not_named=not_named
    )


def _listed(allowed: np.ndarray) -> Lists:
    """Return the rows that are allowed of each column."""
    return [np.flatnonzero(column).tolist() for column in allowed.T]


def _check_lists(lists: Sequence[list[int] | None], names: list[str], empty: bool = False) -> None:
    """Refuse lists that are too long, and unless `empty` says so those that are empty throughout."""
    for name, chosen in zip(names, lists, strict=True):
        if chosen is not None and len(chosen) > MAX_CANDIDATES:
            raise ValueError(
                f"at most {MAX_CANDIDATES} candidate parents per node are supported; {name!r} has "
                f"{len(chosen)}: name fewer with space=gpn.Space(candidates={{child: [parents]}})"
            )
    if not empty and None not in lists and not any(lists):
        raise ValueError("candidates must leave at least one edge possible; these leave none")


def _cut(ranked: Lists, prior: GraphPrior, limit: int) -> tuple[Lists, dict[str, int]]:
    """Return the required and the first of the allowed candidates, by index; and how many were left out."""
    lists, cut = [], {}
    for i, (name, order) in enumerate(zip(prior.names, ranked, strict=True)):
        required = np.flatnonzero(prior.required[:, i]).tolist()
        others = [j for j in order if not (prior.forbidden[j, i] or prior.required[j, i])]
        kept = others[: max(limit - len(required), 0)]
        if len(kept) < len(others):
            cut[name] = len(others) - len(kept)
        lists.append(sorted([*required, *kept]))
    return lists, cut


def _read_named(candidates: Any, names: list[str]) -> dict[int, set[int]]:
    """Return the candidates of the nodes that a mapping names, by index."""
    if not isinstance(candidates, Mapping):
        raise ValueError(
            "candidates must be a number, methods, a mapping of each variable to its candidate parents, a DiGraph or a "
            f"fitted estimator; received {type(candidates).__name__}"
        )
    named: dict[int, set[int]] = {}
    for child, parents in candidates.items():
        i = graphs.node_index(child, names)
        if not isinstance(parents, Iterable):
            raise ValueError(
                "candidates must map each variable to its candidate parents, or be a DiGraph; "
                f"received {shown(parents)} for {child!r}"
            )
        own = named.setdefault(i, set())
        for parent in [parents] if isinstance(parents, str) else parents:
            j = graphs.node_index(parent, names)
            if i == j:
                raise ValueError(f"no variable can be its own candidate parent; {names[i]!r} is")
            own.add(j)
    return named


def _is_estimator(candidates: Any) -> bool:
    return any(hasattr(candidates, attribute) for attribute in ("graph_", "adjacency_", "fit"))


def _estimated_weights(estimator: Any, names: list[str]) -> np.ndarray:
    """Return the weights of an estimator's edges, rows parents, zero where there is none."""
    label = type(estimator).__name__
    graph = getattr(estimator, "graph_", None)
    if graph is None:
        graph = getattr(estimator, "adjacency_", None)
    if graph is None:
        raise ValueError(f"an estimator must be fitted to give candidates; {label} isn't: call fit first")
    for known in [graph.index, graph.columns] if isinstance(graph, pd.DataFrame) else [graphs.graph_names(graph)]:
        odd = set() if known is None else set(known) ^ set(names)
        if odd:
            mismatch = f"{min(map(repr, odd))} is in only one of the two"
            raise ValueError(f"an estimator must be over the data's variables; for {label}, {mismatch}")
    if isinstance(graph, nx.Graph):
        weights = nx.to_numpy_array(graph, nodelist=names)
    else:
        weights = np.array(graph.loc[names, names] if isinstance(graph, pd.DataFrame) else graph, dtype=float)
    if weights.shape != (len(names), len(names)):
        raise ValueError(
            f"an estimator must be over the data's variables; {label} has a matrix of shape {weights.shape} for "
            f"{len(names)} of them"
        )
    if not np.isfinite(weights).all():
        raise ValueError(f"an estimator's weights must be finite; {label} has NaN or infinity")
    loops = np.flatnonzero(weights.diagonal())
    if len(loops):
        raise ValueError(f"no variable can be its own candidate parent; {names[loops[0]]!r} is")
    return weights


def _ranks(weights: Floats) -> Floats:
    """Rank an estimate's own parents of a node before its children, and larger weights before smaller ones."""
    sizes = np.abs(weights) / max(np.abs(weights).max(), np.finfo(float).tiny)
    ranks: Floats = np.where(weights != 0, 1 + sizes, sizes.T)
    return ranks


def _check_required(prior: GraphPrior) -> None:
    for name, needed in zip(prior.names, prior.required.sum(axis=0), strict=True):
        if needed > MAX_CANDIDATES:
            raise ValueError(
                f"at most {MAX_CANDIDATES} candidate parents per node are supported; "
                f"{name!r} has {needed} required ones"
            )

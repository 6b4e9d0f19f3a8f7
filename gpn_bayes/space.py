"""The search space: which parents each node may have."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import networkx as nx
import numpy as np
import pandas as pd

from gpn_bayes import graphs
from gpn_bayes.checking import did_you_mean
from gpn_bayes.kernels.subsets import MAX_CANDIDATES
from gpn_bayes.scores.base import Scorer
from gpn_bayes.scores.prior import GraphPrior
from gpn_bayes.screening import strongest
from gpn_bayes.space_methods import (
    METHODS,
    Data,
    Lists,
    SpaceContext,
    check_methods,
    default_methods,
    ranked_candidates,
)
from gpn_bayes.tabulating import most_candidates

# Candidates that a method leaves a node at most: a table of 4,096 scores.
DEFAULT_CANDIDATES = 12


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

    Examples
    --------
    >>> print(SpaceReport("pc", (2, 3, 12), {"raf": 4}))
    candidate parents by pc: 5.7 a node, at most 12; 4 were left out at 1 node
    """

    method: str
    sizes: tuple[int, ...]
    cut: dict[str, int]

    @property
    def parameters(self) -> dict[str, Any]:
        """The report, JSON-able."""
        return {"method": self.method, "sizes": list(self.sizes), "cut": self.cut}

    def __str__(self) -> str:
        """Tell it in one line."""
        text = f"candidate parents by {self.method}: {np.mean(self.sizes):.1f} a node, at most {max(self.sizes)}"
        if not self.cut:
            return text
        nodes = f"{len(self.cut)} node{'s' if len(self.cut) > 1 else ''}"
        return f"{text}; {sum(self.cut.values())} were left out at {nodes}"


@dataclass(frozen=True, eq=False)
class SearchSpace:
    """A search space that was asked for and checked; `find_candidates` fills it where it depends on the data.

    Attributes
    ----------
    prior : GraphPrior
        Required edges are always in the space, forbidden ones never.
    source : str
        As the method of a `SpaceReport`.
    lists : list of list of int, optional
        The candidates of every node, where they are known from the beginning.
    methods : tuple of str
        How to find them otherwise.
    limit : int
        How many a node keeps at most.
    cut : dict
        How many were left out, where they are known.
    """

    prior: GraphPrior
    source: str
    lists: Lists | None = None
    methods: tuple[str, ...] = ()
    limit: int = MAX_CANDIDATES
    cut: dict[str, int] = field(default_factory=dict)

    @property
    def parameters(self) -> Any:
        """What determines the candidates of given data under a given score, JSON-able."""
        return {"methods": list(self.methods), "limit": self.limit} if self.lists is None else self.lists


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
    >>> candidate_lists({"erk": ["mek"], "mek": ["raf"]}, GraphPrior(["raf", "mek", "erk"]))
    [[], [0], [1]]
    """
    known = (None, None) if context is None else (context.data, context.store.scorer)
    return find_candidates(read_space(candidates, prior, max_parents, *known), context).lists


def read_space(
    candidates: Any,
    prior: GraphPrior,
    max_parents: int | None = None,
    data: Data | None = None,
    scorer: Scorer | None = None,
) -> SearchSpace:
    """Check what a user wants as candidates, before anything is computed.

    Parameters
    ----------
    candidates : None, int, str, list of str, dict, networkx.DiGraph or estimator
        For each variable the list of its candidates (those not named have none); or a graph whose edges lead from
        candidates; or a fitted estimator, each of whose edges makes its ends candidates of each other. Or the name of a
        method, several names, or names joined by "+", for the union of what they find, up to 12 a variable: "pc",
        "dual-pc", "greedy" (forward selection under the score), "correlation", "distance-correlation". Or the largest
        number of candidates a variable, to be found by the default method. None stands for all others while these are
        at most 20, then for the default method: "pc+greedy", or "greedy" for scores without a closed form and those
        of categories.
    prior : GraphPrior
        The graph prior.
    max_parents : int, optional
        Checked against the number of required parents.
    data : Dataset or SufficientStatistics, optional
        What methods will look at.
    scorer : Scorer, optional
        The score that DAGs will be drawn under.

    Raises
    ------
    ValueError
        For anything that would keep `find_candidates` from its end.
    """
    if max_parents is not None:
        prior.check_max_parents(max_parents)
    _check_required(prior)
    methods, limit = _wanted_methods(candidates, len(prior.names))
    if methods is None:
        return _known_space(candidates, prior)
    if data is None or scorer is None:
        if candidates is None:
            return _known_space(None, prior)  # which refuses so many
        raise ValueError(f"candidates must be named where there are no data; received {candidates!r}")
    methods = methods or default_methods(scorer, data)
    check_methods(methods, scorer, data)
    return SearchSpace(prior, "+".join(methods), methods=methods, limit=limit)


def find_candidates(space: SearchSpace, context: SpaceContext | None = None) -> FoundCandidates:
    """Return the candidates of every node, found in the data where need be.

    Parameters
    ----------
    space : SearchSpace
        What was asked for.
    context : SpaceContext, optional
        The data and the score; not needed where the candidates are known.
    """
    lists, cut = space.lists, space.cut
    if lists is None:
        if context is None:
            raise ValueError(f"the methods {space.source} need data; received none")
        ranked = ranked_candidates(space.methods, context, space.prior, space.limit)
        lists, cut = _cut(ranked, space.prior, space.limit)
    return FoundCandidates(lists, SpaceReport(space.source, tuple(map(len, lists)), cut))


def _wanted_methods(candidates: Any, n: int) -> tuple[tuple[str, ...] | None, int]:
    """Return the methods, none for the default ones, and the limit; None where candidates are known without any."""
    limit = min(DEFAULT_CANDIDATES, most_candidates(n))
    if isinstance(candidates, int | np.integer):  # booleans too, which aren't numbers here
        if isinstance(candidates, bool) or not 1 <= candidates <= MAX_CANDIDATES:
            raise ValueError(
                f"the number of candidates must be a whole number from 1 to {MAX_CANDIDATES}; received {candidates}"
            )
        return None if n - 1 <= candidates else (), int(candidates)
    if isinstance(candidates, str | list | tuple):
        return _read_methods(candidates), limit
    return () if candidates is None and n - 1 > MAX_CANDIDATES else None, limit


def _read_methods(names: Any) -> tuple[str, ...]:
    rule = f"methods to find candidates are {', '.join(METHODS)}"
    methods = [part.strip() for part in names.split("+")] if isinstance(names, str) else list(names)
    if not methods:
        raise ValueError(f"{rule}; received none")
    for method in methods:
        if method not in METHODS:
            raise ValueError(f"{rule}; received {method!r}{did_you_mean(method, METHODS)}")
    return tuple(dict.fromkeys(methods))


def _known_space(candidates: Any, prior: GraphPrior) -> SearchSpace:
    """Return the space of candidates that don't depend on the data."""
    names = list(prior.names)
    cut: dict[str, int] = {}
    everyone = candidates is None or isinstance(candidates, int | np.integer)
    if _is_estimator(candidates):
        source = f"estimate by {type(candidates).__name__}"
        weights = _estimated_weights(candidates, names)
        either = (weights != 0) | (weights.T != 0)
        limit = min(DEFAULT_CANDIDATES, most_candidates(len(names)))
        lists, cut = _cut(strongest(_ranks(weights), either, len(names)), prior, limit)
    else:
        source = "all others" if everyone else "given"
        allowed = _named_edges(None if everyone else candidates, names) & ~prior.forbidden | prior.required
        lists = [np.flatnonzero(allowed[:, i]).tolist() for i in range(len(names))]
    _check_sizes(lists, names)
    if not everyone and not any(lists):
        raise ValueError("candidates must leave at least one edge possible; these leave none")
    return SearchSpace(prior, source, lists=lists, cut=cut)


def _check_sizes(lists: Lists, names: list[str]) -> None:
    for name, chosen in zip(names, lists, strict=True):
        if len(chosen) > MAX_CANDIDATES:
            raise ValueError(
                f"at most {MAX_CANDIDATES} candidate parents a node are supported; {name!r} has "
                f"{len(chosen)}: name fewer with candidates={{child: [parents]}}"
            )


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


def _named_edges(candidates: Any, names: list[str]) -> np.ndarray:
    n = len(names)
    if candidates is None:
        return np.ones((n, n), dtype=bool)
    if isinstance(candidates, nx.DiGraph):
        return graphs.as_adjacency(candidates, names, acyclic=False).astype(bool)
    if not isinstance(candidates, Mapping):
        raise ValueError(
            "candidates must be a number, methods, a mapping of each variable to its candidate parents, a DiGraph or a "
            f"fitted estimator; received {type(candidates).__name__}"
        )
    allowed = np.zeros((n, n), dtype=bool)
    for child, parents in candidates.items():
        i = graphs.node_index(child, names)
        if not isinstance(parents, Iterable):
            raise ValueError(
                "candidates must map each variable to its candidate parents, or be a DiGraph; "
                f"received {parents!r} for {child!r}"
            )
        for parent in [parents] if isinstance(parents, str) else parents:
            j = graphs.node_index(parent, names)
            if i == j:
                raise ValueError(f"no variable can be its own candidate parent; {names[i]!r} is")
            allowed[j, i] = True
    return allowed


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
            told = f"{min(map(repr, odd))} is in only one of the two"
            raise ValueError(f"an estimator must be over the data's variables; for {label}, {told}")
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


def _ranks(weights: np.ndarray) -> np.ndarray:
    """Rank an estimate's own parents of a node before its children, and larger weights before smaller ones."""
    sizes = np.abs(weights) / max(np.abs(weights).max(), np.finfo(float).tiny)
    return np.where(weights != 0, 1 + sizes, sizes.T)


def _check_required(prior: GraphPrior) -> None:
    for name, needed in zip(prior.names, prior.required.sum(axis=0), strict=True):
        if needed > MAX_CANDIDATES:
            raise ValueError(
                f"at most {MAX_CANDIDATES} candidate parents a node are supported; {name!r} has {needed} required ones"
            )

"""What decides the direction of edges: conditional independences, the shape of relations, or what was fixed besides.

A pair counts whose direction is clear. Conditional independences decide it where it would be clear if coins were tossed
for all directions that differ within the Markov equivalence class of a drawn DAG. What was given (tiers, required and
forbidden edges, edges without a score, experiments) fixes it where it rules out the reverse, or where the direction
would be clear if coins were tossed for what the maximally oriented graphs leave open. What remains rests on a score
that tells DAGs of a class apart. The sentences stand here and nowhere else; reports, diagnostics and figures take them.
"""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from gpn_bayes import graphs
from gpn_bayes._util.types import Bools, Floats, Words
from gpn_bayes.posterior.run_record import PriorRecord, RunRecord
from gpn_bayes.scores.assumptions import CATEGORIES, EQUIVALENCE, EQUIVALENCE_OF_EXPERIMENTS, LEAST_SQUARES
from gpn_bayes.scores.mixed import EQUIVALENT, MIXED
from gpn_bayes.scores.prior import GraphPrior

# The share of a pair's probability that one direction needs to count as clear, and the probability from which a pair is
# called joined.
CLEAR, JOINED = 0.9, 0.9
INDEPENDENCES, SHAPE, FIXED = "independences", "shape", "fixed"
# What may fix directions before or beside the data, in the order in which it is named, and whether it is one thing.
_GIVEN = {
    "the score": True,
    "the order": True,
    "tiers": False,
    "required edges": False,
    "forbidden edges": False,
    "the candidates given": False,
    "experiments": False,
    "the prior": True,
    "limits on parent sets": False,
    "the bias of order MCMC": True,
}
# A score that is the same for equivalent DAGs leaves nothing but chance between the two ways to count.
_CHANCE = 0.05
# Draws that are looked at: as many as have this number of entries in their adjacency matrices, but not fewer than that.
_ENTRIES, _FEWEST = 3_000_000, 500
_LISTED = 8

type Pair = tuple[int, int]


class DirectionShares(NamedTuple):
    """The shares of DAGs in which each edge is there, and in which its direction is compelled; rows are parents.

    Attributes
    ----------
    edges : ndarray of shape (n, n)
        How often each edge is there.
    compelled : ndarray of shape (n, n)
        How often with the same direction in the whole Markov equivalence class.
    oriented : ndarray of shape (n, n)
        How often with the same direction in those members of the class that agree with what is known.
    """

    edges: Floats
    compelled: Floats
    oriented: Floats


class Directed(Protocol):
    """What is asked of a collection of DAGs here."""

    names: tuple[str, ...]

    @property
    def _direction_shares(self) -> DirectionShares: ...

    @property
    def _known_directions(self) -> dict[str, Bools]: ...


class Ground(NamedTuple):
    """What decides the direction of some pairs.

    Attributes
    ----------
    kind : {"independences", "shape", "fixed"}
        What it is.
    pairs : list of (int, int)
        Parent and child of each.
    template : str
        The sentence, without its full stop; the braces stand for the directions.
    short : str
        The same for the direction of one pair, without a verb.
    """

    kind: str
    pairs: list[Pair]
    template: str
    short: str

    def sentence(self, directions: str) -> str:
        """Return the sentence about some directions, such as "its direction".

        Examples
        --------
        >>> Ground("fixed", [(0, 1)], "tiers fix {}", "fixed by tiers").sentence("its direction")
        'Tiers fix its direction'
        """
        text = self.template.format(directions)
        return text[0].upper() + text[1:]


def grounds(post: Directed, pairs: Iterable[Pair]) -> list[Ground]:
    """Return what decides directions that are clear.

    Parameters
    ----------
    post : GraphPosterior or BootstrapResult
        The draws.
    pairs : iterable of (int, int)
        Parent and child of each pair in question.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.simulate.linear([[0, 1], [0, 0]], 50, random_seed=1)
    >>> post = gpn.sample(data, score="bge", tiers=[["v1"], ["v2"]], draws=20, random_seed=1, progressbar=False)
    >>> [(ground.kind, ground.short) for ground in grounds(post, [(0, 1)])]
    [('fixed', 'fixed by tiers')]
    """
    asked = list(pairs)
    if not asked:
        return []
    deciding = _Deciding(post)
    kinds = [deciding.kind(*pair) for pair in asked]
    found = []
    for kind in (INDEPENDENCES, SHAPE, FIXED):
        own = [pair for pair, its in zip(asked, kinds, strict=True) if its == kind]
        if own:
            found.append(Ground(kind, own, *deciding.words(kind, own)))
    return found


def short_grounds(post: Directed, pairs: Iterable[Pair]) -> dict[Pair, str]:
    """Return in a few words, for each pair by itself, what decides its direction.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.simulate.linear([[0, 1], [0, 0]], 50, random_seed=1)
    >>> post = gpn.sample(data, score="bge", tiers=[["v1"], ["v2"]], draws=20, random_seed=1, progressbar=False)
    >>> short_grounds(post, [(0, 1)])
    {(0, 1): 'fixed by tiers'}
    """
    asked = list(pairs)
    if not asked:
        return {}
    deciding = _Deciding(post)
    return {pair: deciding.words(deciding.kind(*pair), [pair])[1] for pair in asked}


def clear_pairs(edges: Floats) -> list[Pair]:
    """Return parent and child of the joined pairs whose direction is clear, the most probable first.

    Examples
    --------
    >>> clear_pairs(np.array([[0.0, 0.95, 0.5], [0.01, 0.0, 1.0], [0.5, 0.0, 0.0]]))
    [(1, 2), (0, 1)]
    """
    joined = edges + edges.T
    chosen = np.argwhere((joined >= JOINED) & (edges >= CLEAR * joined))
    return sorted(((int(i), int(j)) for i, j in chosen), key=lambda pair: -float(joined[pair]))


def direction_sentences(post: Directed) -> tuple[str, ...]:
    """Return what decides the clear directions of joined pairs, in whole sentences that name these.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.simulate.linear([[0, 1], [0, 0]], 50, random_seed=1)
    >>> post = gpn.sample(data, score="bge", tiers=[["v1"], ["v2"]], draws=20, random_seed=1, progressbar=False)
    >>> direction_sentences(post)
    ('Tiers fix the direction of 1 pair: v1 -> v2.',)
    """
    exact = getattr(post, "exact", None)
    edges = post._direction_shares.edges if exact is None else exact.edges
    return tuple(
        f"{ground.sentence(number_of_directions(len(ground.pairs)))}: {_listed(ground.pairs, post.names)}."
        for ground in grounds(post, clear_pairs(edges))
    )


def counted_sentences(found: Sequence[Ground]) -> list[str]:
    """Return what decides directions in sentences that say of how many pairs.

    Examples
    --------
    >>> counted_sentences([Ground("fixed", [(0, 1), (1, 2)], "tiers fix {}", "fixed by tiers")])
    ['Tiers fix the direction of 2 pairs.']
    """
    return [f"{ground.sentence(number_of_directions(len(ground.pairs)))}." for ground in found]


def number_of_directions(count: int) -> str:
    """Return in words the directions of this many pairs.

    Examples
    --------
    >>> number_of_directions(2)
    'the direction of 2 pairs'
    """
    return f"the direction of {count} pair{'s' * (count != 1)}"


def _listed(pairs: Sequence[Pair], names: Sequence[str]) -> str:
    shown = ", ".join(f"{names[i]} -> {names[j]}" for i, j in pairs[:_LISTED])
    return f"{shown} and {len(pairs) - _LISTED} more" if len(pairs) > _LISTED else shown


# What is known


def known_directions(record: RunRecord, n: int, targets: Sequence[Sequence[int]] = ()) -> dict[str, Bools]:
    """Return by its source which pairs can only be joined in one direction, whatever the data say.

    Parameters
    ----------
    record : RunRecord
        Of a posterior.
    n : int
        How many variables there are.
    targets : sequence of sequences of int
        The variables that each experiment changed.

    Returns
    -------
    dict
        Symmetric matrices by "tiers", "the score" and so on, of those that concern any pair.
    """
    known = {
        "the score": _pairs(record.excluded.score, n),
        **known_from_prior(record.prior, n),
        "the candidates given": _pairs(record.excluded.candidates, n),
        "experiments": graphs.directed_by_experiments(targets, n),
    }
    return {source: pairs for source, pairs in known.items() if pairs.any()}


def known_from_prior(prior: PriorRecord, n: int) -> dict[str, Bools]:
    """Return the same of tiers, required and forbidden edges.

    Examples
    --------
    >>> known = known_from_prior(PriorRecord(required=((0, 1),), forbidden=((2, 1),), tiers=(1.0, 1.0, 2.0)), 3)
    >>> {source: np.argwhere(np.triu(pairs)).tolist() for source, pairs in known.items()}
    {'tiers': [[0, 2], [1, 2]], 'required edges': [[0, 1]]}
    """
    tiers = prior.tiers
    level = np.array(tiers, dtype=float) if tiers is not None and len(tiers) == n else np.zeros(n)
    by_tiers = level[:, None] != level[None, :]
    known = {
        "tiers": by_tiers,
        "required edges": _pairs(prior.required, n),
        "forbidden edges": _pairs(prior.forbidden, n) & ~by_tiers,
    }
    return {source: pairs for source, pairs in known.items() if pairs.any()}


def known_to_learner(parameters: Mapping[str, Any], names: Sequence[str]) -> dict[str, Bools]:
    """Return the same of what a learner was given, by its parameters.

    Examples
    --------
    >>> list(known_to_learner({"alpha": 0.05, "tiers": [["a"], ["b"]], "forbidden": []}, ["a", "b"]))
    ['tiers']
    """
    given = {name: parameters[name] for name in ("required", "forbidden", "tiers") if name in parameters}
    prior = RunRecord.read({"prior": GraphPrior(names, **given).parameters}).prior
    known = known_from_prior(prior, len(names))
    if parameters.get("order") is not None:
        known["the order"] = ~np.eye(len(names), dtype=bool)
    return known


def any_known(known: Mapping[str, Bools], n: int) -> Bools:
    """Return the pairs whose direction is known from anything."""
    together = np.zeros((n, n), dtype=bool)
    for pairs in known.values():
        together |= pairs
    return together


def _pairs(edges: Iterable[Pair], n: int) -> Bools:
    """Return edges as a symmetric matrix without its diagonal; those of no two variables are none."""
    pairs = np.zeros((n, n), dtype=bool)
    for edge in edges:
        if all(0 <= k < n for k in edge):
            pairs[edge] = True
    pairs |= pairs.T
    np.fill_diagonal(pairs, False)
    return pairs


def direction_shares(parents: Words, weights: Floats, known: Bools) -> DirectionShares:
    """Return how often edges are there, and compelled; of a part of the draws, evenly spread, where they are many.

    Parameters
    ----------
    parents : ndarray of uint64, shape (draws, n, words)
        DAGs, by parent bits.
    weights : ndarray of shape (draws,)
        The weight of each.
    known : ndarray of bool, shape (n, n)
        The pairs whose direction is known.
    """
    n = len(known)
    most = max(_ENTRIES // n**2, _FEWEST)
    if len(parents) > most:
        chosen = np.linspace(0, len(parents) - 1, most).astype(np.int64)
        parents, weights = parents[chosen], weights[chosen]
    totals, done = np.zeros((3, n, n)), 0
    for dags in graphs.unpack_in_parts(parents, n):
        own = weights[done : done + len(dags)]
        done += len(dags)
        whole_class = graphs.cpdag(dags)
        agreeing = graphs.mpdag(dags, known) if known.any() else whole_class
        for total, graph in zip(totals, (dags, whole_class, agreeing), strict=True):
            # With a graph's undirected edges, that of the reverse is there too.
            total += np.tensordot(own, graph & (1 - graph.swapaxes(-1, -2)), 1)
    return DirectionShares(*(totals / weights.sum()))


# What decides


class _Deciding:
    """What decides the directions of one collection of DAGs."""

    def __init__(self, post: Directed) -> None:
        self.shares, self.known = post._direction_shares, post._known_directions
        # A bootstrap has none: its graphs are a learner's.
        self.record: RunRecord | None = getattr(post, "record", None)
        self.equivalent = self.record is not None and _is_equivalent(self.record)
        self.otherwise = [] if self.record is None else _otherwise(self.record)
        self.follows: set[Pair] = set()
        self.left: set[Pair] = set()

    def kind(self, i: int, j: int) -> str:
        """Return what decides that a pair has the direction i -> j."""
        if any(pairs[i, j] for source, pairs in self.known.items() if source != "experiments"):
            return FIXED
        by_class, by_known = self._clear(self.shares.compelled, i, j), self._clear(self.shares.oriented, i, j)
        for least in (CLEAR, CLEAR - _CHANCE) if self.equivalent else (CLEAR,):
            if by_class >= least:
                return INDEPENDENCES
            if by_known >= least:
                if not any(pairs[i, j] for pairs in self.known.values()):
                    self.follows.add((i, j))
                return FIXED
        if not self.equivalent:
            return SHAPE
        if self.otherwise:
            self.left.add((i, j))
            return FIXED
        return INDEPENDENCES

    def _clear(self, directed: Floats, i: int, j: int) -> float:
        """Return the share that i -> j would have if coins were tossed for what is not directed."""
        joined = float(self.shares.edges[i, j] + self.shares.edges[j, i])
        if joined == 0:
            return 0.0
        forth, back = float(directed[i, j]), float(directed[j, i])
        return (forth + (joined - forth - back) / 2) / joined

    def words(self, kind: str, pairs: Sequence[Pair]) -> tuple[str, str]:
        """Return the sentence about these pairs, and its short form."""
        if kind == INDEPENDENCES:
            where = "the resamples" if self.record is None else "the data"
            return f"conditional independences in {where} determine {{}}", "by conditional independences"
        if kind == FIXED:
            return self._fixed(pairs)
        if self.record is None:
            return "the resamples agree on {}, which conditional independences leave open", "by the learner's choice"
        what = _beyond_independences(self.record)
        beside = [source for source in self.otherwise if source == "the prior"]
        if _in_contexts(self.record):
            beside.append("experiments")
        also = f", and on {' and on '.join(beside)}" if beside else ""
        return f"{{}} rests on {what}{also}", "by the shape of relations" if what == _SHAPE else "by the score"

    def _fixed(self, pairs: Sequence[Pair]) -> tuple[str, str]:
        sources = set()
        for pair in pairs:
            if pair in self.left:
                sources |= set(self.otherwise)
            else:
                direct = {source for source, own in self.known.items() if own[pair]}
                sources |= direct or set(self.known)
        named = [source for source in _GIVEN if source in sources]
        one = len(named) == 1 and _GIVEN[named[0]]
        who = " and ".join([", ".join(named[:-1]), named[-1]] if len(named) > 1 else named)
        follows = f", or what follows from {'it' if one else 'them'}," if self.follows.intersection(pairs) else ""
        return f"{who}{follows} {'fixes' if one else 'fix'} {{}}", f"fixed by {who}"


_SHAPE = "the shape of relations, and on the equations being of the kind that the score assumes"


def _beyond_independences(record: RunRecord) -> str:
    """Return by what a score tells DAGs of the same class apart."""
    assumed = set(record.assumptions or ())
    if set(LEAST_SQUARES) <= assumed:
        return "the noise of all variables having the same variance in the units of the table"
    if set(CATEGORIES) <= assumed and MIXED[0] not in assumed:
        return "the score, which favours some DAGs over others with the same conditional independences"
    return _SHAPE


def is_equivalent(assumptions: Iterable[str]) -> bool:
    """Return whether a score that assumes this is the same for all DAGs of an equivalence class.

    Examples
    --------
    >>> is_equivalent(["Rows are independent.", *EQUIVALENCE]), is_equivalent([])
    (True, False)
    """
    return not {*EQUIVALENCE, *EQUIVALENCE_OF_EXPERIMENTS, EQUIVALENT}.isdisjoint(assumptions)


def _is_equivalent(record: RunRecord) -> bool:
    return is_equivalent(record.assumptions or ())


def _in_contexts(record: RunRecord) -> bool:
    """Tell whether experiments of unknown targets say something of directions."""
    return record.interventions is not None and record.interventions.unknown


def _otherwise(record: RunRecord) -> list[str]:
    """Return what may favour some DAGs of an equivalence class beside the score and what is known for certain."""
    sources = []
    if record.prior.log_odds is not None or record.prior.kind == "fair":
        sources.append("the prior")
    if record.max_parents is not None or record.candidates.method != "all others":
        sources.append("limits on parent sets")
    if record.has_order_bias:
        sources.append("the bias of order MCMC")
    if _in_contexts(record):
        sources.append("experiments")
    return sources

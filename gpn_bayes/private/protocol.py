"""Private K2 (Wright & Yang 2004) as one party goes through it, over a link to the other.

The order of the variables and the limit of parents are public. In every step, each node that hasn't stopped compares
its score with those it would have with one parent more, and both parties learn which is best: a parent to add, or to
stop. That is what the paper's protocol opens, node by node; here all nodes take their first step together, then their
second, and so on, which opens the same places in another order and takes fewer rounds.
"""

import hashlib
import os
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass

import numpy as np

from gpn_bayes._util.types import Adjacency
from gpn_bayes.private.alignment import align_rows
from gpn_bayes.private.argmax import best_candidates
from gpn_bayes.private.costs import Cost, Meter
from gpn_bayes.private.counts import SharedCounts, should_hold_key
from gpn_bayes.private.lookup import table_length
from gpn_bayes.private.scalar_product import Helper, KeyHolder, ScalarProducts
from gpn_bayes.private.schedule import encryptions_ahead, expectations, sets_ahead
from gpn_bayes.private.scoring import PRECISIONS
from gpn_bayes.private.set_scores import SetScores
from gpn_bayes.private.settings import Agreement, Settings, agree
from gpn_bayes.private.tables import PartyTable
from gpn_bayes.secure.link import Link, ProtocolError
from gpn_bayes.secure.paillier import generate_keys
from gpn_bayes.secure.randomisers import RandomiserPool
from gpn_bayes.secure.session import Session

_RESULT = "network digest"
_DIGEST_BYTES = 32


@dataclass(frozen=True)
class Learned:
    """What both parties know in the end.

    Attributes
    ----------
    variables : tuple of str
        The columns of the joined table: the first party's, then the second's.
    adjacency : ndarray of int8
        Entry (i, j) is 1 where i -> j.
    rows : int
        Rows of the joined table.
    costs : dict of str to Cost
        Of each sub-protocol, as this party saw it.
    """

    variables: tuple[str, ...]
    adjacency: Adjacency
    rows: int
    costs: dict[str, Cost]


def make_pool(table: PartyTable, settings: Settings, *, first: bool) -> RandomiserPool | None:
    """Return a fresh key with a stock that begins to fill, or None if the other party is to hold the key.

    Whoever has fewer columns holds it, which a party knows before it meets the other.
    """
    settings.check()
    mine, theirs = len(table.columns), len(settings.order) - len(table.columns)
    if theirs < 1 or not should_hold_key(mine, theirs, first):
        return None
    pool = RandomiserPool(generate_keys(settings.key_bits), workers=max(1, (os.cpu_count() or 1) - 1))
    pool.reserve(encryptions_ahead(settings, mine, theirs, table.rows))
    return pool


def learn(
    link: Link,
    table: PartyTable,
    settings: Settings,
    pool: RandomiserPool | None,
    *,
    first: bool,
    advance: Callable[[float], None] = lambda share: None,
) -> Learned:
    """Learn a network together with the other party; both get the same.

    Parameters
    ----------
    link : Link
        To the other party, who calls this too.
    table : PartyTable
        This party's columns.
    settings : Settings
        What must be the same for both.
    pool : RandomiserPool or None
        From `make_pool`, for this run only; the caller closes it.
    first : bool
        Whether this party's columns come first; the other's don't.
    advance : callable
        Called with the share of the expected time by which the run has advanced.

    Raises
    ------
    ValueError
        If the parties don't agree on the settings, the rows or the variables.
    ProtocolError
        If the other party sends what it must not send.
    """
    settings.check()
    meter = Meter(link, advance=advance)
    with meter.stage("agreement"):
        agreement = agree(meter, settings, list(table.columns), table.rows, first=first)
    with meter.stage("alignment"):
        chosen = align_rows(meter, table.keys, first=first, intersection=settings.align == "intersection")
    run = _Run(meter, table, chosen, settings, agreement, first)
    meter.expect(expectations(settings, *run.sizes, len(chosen)))
    with meter.stage("transfers"):
        session = Session(meter, leads=first)
    with meter.stage("counts"):
        products = run.scalar_products(pool)
    with closing(products):
        parents = run.gather_parents(session, products)
    adjacency = np.zeros((run.n, run.n), dtype=np.int8)
    for child, own_parents in enumerate(parents):
        adjacency[own_parents, child] = 1
    with meter.stage("agreement"):
        _compare_results(meter, adjacency)
    return Learned(agreement.variables, adjacency, len(chosen), meter.costs)


class _Run:
    """One party's side of the steps, once both have agreed."""

    def __init__(
        self,
        meter: Meter,
        table: PartyTable,
        chosen: np.ndarray,
        settings: Settings,
        agreement: Agreement,
        first: bool,
    ) -> None:
        self._meter = meter
        self._settings = settings
        self._rows = len(chosen)
        self._modulus = table_length(self._rows)
        self.n = len(agreement.variables)
        self._order = [agreement.variables.index(name) for name in settings.order]
        self._columns = {agreement.variables.index(name): bits[chosen] for name, bits in table.columns.items()}
        self._holds_key = should_hold_key(len(self._columns), self.n - len(self._columns), first)

    @property
    def sizes(self) -> tuple[int, int]:
        """How many columns the key holder and the helper have."""
        mine, theirs = len(self._columns), self.n - len(self._columns)
        return (mine, theirs) if self._holds_key else (theirs, mine)

    def scalar_products(self, pool: RandomiserPool | None) -> ScalarProducts:
        """Return this party's side of the scalar products; one party sends its key."""
        if not self._holds_key:
            return Helper(self._meter, self._rows, self._modulus, self._settings.key_bits)
        assert pool is not None  # made by the same rule
        return KeyHolder(self._meter, pool, self._rows, self._modulus)

    def gather_parents(self, session: Session, products: ScalarProducts) -> list[list[int]]:
        """Return the parents of each variable, in the order in which they were added."""
        counts = SharedCounts(products, self._columns, self.n)
        scores = SetScores(session, counts, self._columns, self._rows, self._settings.score)
        with self._meter.stage("counts"):
            counts.prepare(sets_ahead(self.n, self._settings.max_parents))
        parents: list[list[int]] = [[] for _ in range(self.n)]
        growing = self._order
        for _ in range(self._settings.max_parents):
            candidates = {node: self._candidates(node, parents[node]) for node in growing}
            growing = [node for node in growing if candidates[node]]
            if not growing:
                break
            places = self._step(session, counts, scores, [(node, parents[node], candidates[node]) for node in growing])
            for node, place in zip(growing, places, strict=True):
                parents[node] += candidates[node][place - 1 : place] if place else []
            growing = [node for node, place in zip(growing, places, strict=True) if place]
        for stage in ("counts", "scores"):
            self._meter.finish(stage)
        return parents

    def _candidates(self, node: int, parents: Sequence[int]) -> list[int]:
        """Return what may be added, in the order of the columns: of equal candidates the first wins."""
        earlier = self._order[: self._order.index(node)]
        return sorted(set(earlier).difference(parents))

    def _step(
        self,
        session: Session,
        counts: SharedCounts,
        scores: SetScores,
        nodes: Sequence[tuple[int, list[int], list[int]]],
    ) -> list[int]:
        """Open, for each node with its parents and candidates, which candidate is best, from 1 on; 0 is to stop."""
        families = [
            [(node, parents), *((node, [*parents, other]) for other in candidates)]
            for node, parents, candidates in nodes
        ]
        with self._meter.stage("counts"):
            counts.prepare([child, *own_parents] for family in families for child, own_parents in family)
        with self._meter.stage("scores"):
            scores.prepare(family for column in families for family in column)
            shares = _padded([[scores.share(*family) for family in column] for column in families])
        with self._meter.stage("comparison"):
            best: list[int] = best_candidates(session, shares, PRECISIONS[self._settings.score].bits).tolist()
            return best


def _padded(columns: Sequence[Sequence[np.ndarray]]) -> np.ndarray:
    """Return columns of different heights as one array; shorter ones repeat their first row, which never wins."""
    height = max(map(len, columns))
    return np.array([[*column, *[column[0]] * (height - len(column))] for column in columns]).T


def _compare_results(link: Link, adjacency: np.ndarray) -> None:
    """Make sure that both parties have come to the end, with the same network."""
    digest = hashlib.sha256(adjacency.tobytes()).digest()
    link.send(_RESULT, digest)
    if link.receive(_RESULT, _DIGEST_BYTES) != digest:
        raise ProtocolError("both parties must find the same network; they found different ones")

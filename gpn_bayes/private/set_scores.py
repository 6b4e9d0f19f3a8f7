"""Shares of K2 scores, put together from one shared number for each set of variables.

The cells of a family are the configurations of a child and its parents together, and its margins are those of the
parents alone: whichever of them is the child, a set has one sum of cells and one sum of margins. Each is computed once.
Sets of one party's variables need no message: the party knows the sum, and the other's share of it is 0.
"""

from collections.abc import Collection, Iterable, Mapping

import numpy as np

from gpn_bayes.private.counts import SharedCounts, VariableSet
from gpn_bayes.private.scoring import PRECISIONS, plain_terms, share_terms
from gpn_bayes.secure.blocks import WORD
from gpn_bayes.secure.session import Session
from gpn_bayes.secure.words import reduced


class SetScores:
    """One party's shares of the scores of families.

    Parameters
    ----------
    session : Session
        What the parties have set up.
    counts : SharedCounts
        This party's shares of counts.
    columns : mapping of int to array
        This party's columns of zeros and ones, by the number of the variable.
    n_rows : int
        Rows of the joined table.
    score : {"exact", "paper"}
        Which score; see `gpn_bayes.private.scoring`.

    Attributes
    ----------
    look_ups : int
        How many counts went through `share_terms` so far.
    """

    def __init__(
        self, session: Session, counts: SharedCounts, columns: Mapping[int, np.ndarray], n_rows: int, score: str
    ) -> None:
        self._session = session
        self._counts = counts
        self._columns = {variable: np.asarray(column, dtype=np.int64) for variable, column in columns.items()}
        self._n_rows = n_rows
        self._score = score
        self._bits = PRECISIONS[score].bits
        self._plain = plain_terms(n_rows, score)
        self._cells: dict[VariableSet, np.ndarray] = {}
        self._margins: dict[VariableSet, np.ndarray] = {(): self._margin_of_nothing()}
        self.look_ups = 0

    def prepare(self, families: Iterable[tuple[int, Collection[int]]]) -> None:
        """Compute what the scores of some families, given as child and parents, need; in one exchange."""
        families = list(families)
        cells = self._prepare_own([(child, *parents) for child, parents in families], self._cells, self._plain.cells)
        margins = self._prepare_own([parents for _, parents in families], self._margins, self._plain.margins)
        self._prepare_shared(cells, margins)

    def share(self, child: int, parents: Collection[int]) -> np.ndarray:
        """Return this party's share of a score, modulo ``2**PRECISIONS[score].bits``, as an array without axes."""
        self.prepare([(child, parents)])
        total = self._cells[_sorted((child, *parents))] + self._margins[_sorted(parents)]
        return reduced(total, self._bits).reshape(())

    def _prepare_own(
        self, sets: Iterable[Collection[int]], known: dict[VariableSet, np.ndarray], terms: np.ndarray
    ) -> list[VariableSet]:
        """Note the sums that one party knows, and return the sets that take both."""
        new = [part for part in dict.fromkeys(map(_sorted, sets)) if part not in known]
        known.update((part, self._own_sum(part, terms)) for part in new if not self._is_shared(part))
        return [part for part in new if self._is_shared(part)]

    def _prepare_shared(self, cells: list[VariableSet], margins: list[VariableSet]) -> None:
        counts = self._count_shares(cells), self._count_shares(margins)
        self.look_ups += sum(shares.size for shares in counts)
        terms = share_terms(self._session, *counts, self._n_rows, self._score)
        for known, parts, values in ((self._cells, cells, terms.cells), (self._margins, margins, terms.margins)):
            ends = np.cumsum([2 ** len(part) for part in parts])[:-1]
            sums = [values.sum(keepdims=True, dtype=WORD) for values in np.split(values, ends)] if parts else []
            known.update(zip(parts, sums, strict=True))

    def _count_shares(self, parts: list[VariableSet]) -> np.ndarray:
        counts = [self._counts.configurations(part[-1], part[:-1]).ravel().astype(WORD) for part in parts]
        return np.concatenate([np.empty(0, dtype=WORD), *counts])

    def _own_sum(self, part: VariableSet, terms: np.ndarray) -> np.ndarray:
        """Return the share of a sum that one party knows: all of it, or nothing."""
        if part[0] not in self._columns:
            return np.zeros(1, dtype=WORD)
        places = sum(self._columns[variable] << place for place, variable in enumerate(part))
        counts = np.bincount(np.asarray(places), minlength=2 ** len(part))
        return reduced(terms[counts].sum(keepdims=True), self._bits)

    def _margin_of_nothing(self) -> np.ndarray:
        """Return the share of the one margin without parents, the number of rows, which both know."""
        return reduced(self._plain.margins[[self._n_rows]] * int(self._session.leads), self._bits)

    def _is_shared(self, part: VariableSet) -> bool:
        return len({variable in self._columns for variable in part}) == 2


def _sorted(variables: Collection[int]) -> VariableSet:
    return tuple(sorted(variables))

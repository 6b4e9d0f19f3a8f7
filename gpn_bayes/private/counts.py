"""Shares of how many rows show each configuration of a variable and its parents (Wright & Yang 2004, section 3.1).

Counted are the rows in which all of some variables are 1. Where the variables belong to one party, it counts alone;
otherwise the count is a scalar product of the two parties' all-ones vectors. All configurations follow by inclusion and
exclusion, so that a set of variables is counted once, whichever of them is the child.
"""

from collections.abc import Collection, Iterable, Mapping
from itertools import combinations

import numpy as np

from gpn_bayes._util.checks import check_count
from gpn_bayes._util.types import Bools
from gpn_bayes.private.product_plan import Label, Pair
from gpn_bayes.private.scalar_product import ScalarProducts

type VariableSet = tuple[int, ...]


def should_hold_key(mine: int, theirs: int, first: bool) -> bool:
    """Whether a party should hold the key: the one with fewer columns, whose vectors are fewer; of equals, the first.

    Examples
    --------
    >>> should_hold_key(1, 7, first=False), should_hold_key(4, 4, first=False)
    (True, False)
    """
    return mine < theirs or (mine == theirs and first)


class SharedCounts:
    """One party's shares of the counts of binary variables that two parties hold.

    A share of a count by one party alone is that count, and 0 is the other's; the number of rows, known to both, is
    the key holder's share. All others are uniformly random to each party.

    Parameters
    ----------
    products : ScalarProducts
        This party's side of the scalar products.
    columns : mapping of int to array
        This party's columns of zeros and ones, by the number of the variable.
    n_variables : int
        How many variables there are; those that aren't in `columns` are the other party's.

    Attributes
    ----------
    scalar_products : int
        How many counts took both parties so far.

    Examples
    --------
    >>> from threading import Thread
    >>> from gpn_bayes.private.scalar_product import Helper, KeyHolder
    >>> from gpn_bayes.secure.link import memory_links
    >>> from gpn_bayes.secure.paillier import generate_keys
    >>> from gpn_bayes.secure.randomisers import RandomiserPool
    >>> alices_end, bobs_end = memory_links()
    >>> bobs = []
    >>> def bob():
    ...     side = SharedCounts(Helper(bobs_end, rows=4, modulus=8, key_bits=2048), {1: [0, 1, 1, 1]}, 2)
    ...     bobs.append(side.configurations(1, [0]))
    >>> thread = Thread(target=bob)
    >>> thread.start()
    >>> key = generate_keys(2048)
    >>> alice = SharedCounts(KeyHolder(alices_end, RandomiserPool(key), rows=4, modulus=8), {0: [0, 0, 1, 1]}, 2)
    >>> alices = alice.configurations(1, [0])
    >>> thread.join()
    >>> ((alices + bobs[0]) % 8).tolist()
    [[1, 1], [0, 2]]
    """

    def __init__(self, products: ScalarProducts, columns: Mapping[int, np.ndarray], n_variables: int) -> None:
        check_count("n_variables", n_variables, 1)
        self._products = products
        self._columns = {variable: _read_column(column, products.rows) for variable, column in columns.items()}
        self._n_variables = n_variables
        self._shares: dict[VariableSet, int] = {}
        self.scalar_products = 0
        for variable in self._columns:
            self._check_variable(variable)

    def prepare(self, families: Iterable[Collection[int]]) -> None:
        """Count all that the configurations of some sets of variables need, in one exchange.

        Parameters
        ----------
        families : iterable of collections of int
            Sets of a child and its parents; both parties name the same.
        """
        sets = {part for family in families for part in _subsets(self._read_family(family))}
        unknown = sorted(sets.difference(self._shares), key=lambda part: (len(part), part))
        shared = [part for part in unknown if self._is_shared(part)]
        self.scalar_products += len(shared)
        values = self._products.shares([self._pair(part) for part in shared], self._all_ones)
        self._shares.update(zip(shared, values, strict=True))
        self._shares.update((part, self._own_count(part)) for part in unknown if not self._is_shared(part))

    def configurations(self, child: int, parents: Collection[int]) -> np.ndarray:
        """Return this party's shares of the counts of all configurations.

        Parameters
        ----------
        child : int
            A variable.
        parents : collection of int
            Others.

        Returns
        -------
        ndarray of shape (2, ..., 2)
            Entry [x, y, ..., z] is the share, from 0 to modulus - 1, of the number of rows in which the first parent is
            x, the second is y, ..., and the child is z.
        """
        family = [*parents, child]
        self.prepare([family])
        counts = np.empty((2,) * len(family), dtype=np.int64)
        for index in np.ndindex(counts.shape):
            counts[index] = self._shares[tuple(sorted(v for v, one in zip(family, index, strict=True) if one))]
        # Along each axis, 0 stood for "whatever the value" and now stands for "the value 0".
        for axis in range(len(family)):
            anything, one = (counts.take(value, axis) for value in (0, 1))
            counts = np.stack([(anything - one) % self._products.modulus, one], axis)
        return counts

    def _read_family(self, family: Collection[int]) -> VariableSet:
        for variable in family:
            self._check_variable(variable)
        if len(set(family)) < len(family):
            raise ValueError(f"a child and its parents must be different; received {list(family)}")
        return tuple(sorted(family))

    def _check_variable(self, variable: int) -> None:
        if not 0 <= variable < self._n_variables:
            raise ValueError(f"variables are numbered from 0 to {self._n_variables - 1}; received {variable}")

    def _is_shared(self, part: VariableSet) -> bool:
        mine = sum(variable in self._columns for variable in part)
        return 0 < mine < len(part)

    def _pair(self, part: VariableSet) -> Pair:
        mine = tuple(variable for variable in part if variable in self._columns)
        theirs = tuple(variable for variable in part if variable not in self._columns)
        return (mine, theirs) if self._products.holds_key else (theirs, mine)

    def _own_count(self, part: VariableSet) -> int:
        if not part:
            return self._products.rows if self._products.holds_key else 0
        return int(self._all_ones(part).sum()) if part[0] in self._columns else 0

    def _all_ones(self, part: Label) -> Bools:
        assert isinstance(part, tuple)
        rows: Bools = np.logical_and.reduce([self._columns[variable] for variable in part])
        return rows


def _subsets(family: VariableSet) -> Iterable[VariableSet]:
    return (part for size in range(len(family) + 1) for part in combinations(family, size))


def _read_column(column: np.ndarray, rows: int) -> np.ndarray:
    values = np.asarray(column)
    if values.shape != (rows,):
        raise ValueError(f"every column must have {rows} rows; received one of shape {values.shape}")
    if not np.isin(values, (0, 1)).all():
        raise ValueError("every column must hold zeros and ones only; received other values")
    return values.astype(bool)

"""Counts of configurations on shares, against plain counting; what they cost."""

import time
from itertools import combinations

import numpy as np
import pytest

from gpn_bayes.private.counts import SharedCounts, should_hold_key
from gpn_bayes.private.scalar_product import Helper, KeyHolder
from gpn_bayes.secure.paillier import generate_keys
from gpn_bayes.secure.randomisers import RandomiserPool
from tests.learners import discrete
from tests.parties import Noted, run_pair, weak_key

KEY = weak_key()


def plain_counts(table, child, parents):
    counts = np.zeros((2,) * (len(parents) + 1), dtype=int)
    for row in table[:, [*parents, child]]:
        counts[tuple(row)] += 1
    return counts


def share_counts(table, alices, use, key=KEY, modulus=None, **wraps):
    """Run both parties on a table; `use` is what each does with its counts."""
    rows, n = table.shape
    modulus = modulus or 1 << (rows + 1).bit_length()

    def alice(end):
        with RandomiserPool(key) as pool:
            side = SharedCounts(KeyHolder(end, pool, rows, modulus), {i: table[:, i] for i in alices}, n)
            return use(side), side

    def bob(end):
        products = Helper(end, rows, modulus, key.bits)
        side = SharedCounts(products, {i: table[:, i] for i in range(n) if i not in alices}, n)
        try:
            return use(side), side
        finally:
            products.close()

    return run_pair(alice, bob, **wraps)


def check_families(table, alices, families, prepare=(), key=KEY):
    def use(side):
        side.prepare(prepare)
        return [side.configurations(child, parents) for child, parents in families]

    (mine, side), (theirs, other) = share_counts(table, alices, use, key)
    modulus = side._products.modulus
    for (child, parents), a, b in zip(families, mine, theirs, strict=True):
        np.testing.assert_array_equal((a + b) % modulus, plain_counts(table, child, parents))
        assert ((0 <= a) & (a < modulus)).all()
        assert ((0 <= b) & (b < modulus)).all()
    assert side.scalar_products == other.scalar_products
    return side


@pytest.mark.parametrize("seed", range(12))
def test_configurations_are_those_of_plain_counting(seed):
    rng = np.random.default_rng(seed)
    n, rows = int(rng.integers(2, 7)), int(rng.integers(1, 80))
    table = (rng.random((rows, n)) < rng.random(n)).astype(int)
    alices = rng.permutation(n)[: rng.integers(0, n + 1)].tolist()
    families = []
    for _ in range(6):
        child, *parents = rng.permutation(n)[: rng.integers(1, min(n, 4) + 1)].tolist()
        families.append((child, parents))
    check_families(table, alices, families)


@pytest.mark.parametrize("alices", [[0, 2, 4, 6], [3]], ids=["4/4", "1/7"])
def test_asia(alices):
    table = discrete("asia")[0].to_numpy()[:200]
    families = [(7, [4, 5]), (5, [1, 3]), (0, []), (6, [5]), (2, [0, 1, 3]), (1, [4, 6, 7])]
    check_families(table, alices, families, list(combinations(range(8), 3)), weak_key(1024))


def test_caching_needs_132_scalar_products_where_counting_each_configuration_takes_536():
    """K2 on 8 variables with 3 parents: s parents so far, one of the other predecessors added, all configurations."""
    naive = sum(
        2 ** (s + 1) * (position - s + 1 if s else 1) for position in range(8) for s in range(min(position, 3) + 1)
    )
    assert naive == 536
    families = list(combinations(range(8), 4))
    table = np.random.default_rng(1).integers(0, 2, (10, 8))
    (_, side), _ = share_counts(table, [0, 2, 5, 7], lambda side: side.prepare(families))
    assert side.scalar_products == 132


def test_a_set_is_counted_once_whoever_is_the_child():
    table = np.random.default_rng(2).integers(0, 2, (10, 4))

    def use(side):
        numbers = []
        for child, parents in ((0, [1, 2, 3]), (3, [2, 1, 0]), (1, [0]), (2, [3, 1])):
            side.configurations(child, parents)
            numbers.append(side.scalar_products)
        return numbers

    (mine, _), (theirs, _) = share_counts(table, [0, 1], use)
    assert mine == theirs == [9, 9, 9, 9]


def test_one_party_counts_its_own_variables_alone():
    table = np.random.default_rng(3).integers(0, 2, (20, 4))
    (mine, _), (theirs, _) = share_counts(table, [0, 1], lambda side: side.configurations(0, [1]))
    np.testing.assert_array_equal(mine, plain_counts(table, 0, [1]))
    assert not theirs.any()
    (mine, _), (theirs, _) = share_counts(table, [0, 1], lambda side: side.configurations(3, [2]))
    np.testing.assert_array_equal((mine + theirs) % 32, plain_counts(table, 3, [2]))
    # The key holder's share holds the number of rows and nothing else.
    np.testing.assert_array_equal(mine, [[20, 0], [0, 0]])


def test_messages_have_the_same_form_whatever_the_table_is():
    forms = []
    for table in (np.zeros((30, 4), int), np.ones((30, 4), int), np.random.default_rng(4).integers(0, 2, (30, 4))):
        ends = []

        def note(end, ends=ends):
            ends.append(Noted(end))
            return ends[-1]

        share_counts(table, [1], lambda side: side.prepare([range(4)]), wrap_alice=note, wrap_bob=note)
        forms.append(sorted(end.shape() for end in ends))
    assert forms[0] == forms[1] == forms[2]


def test_the_party_with_fewer_columns_holds_the_key():
    for mine, theirs in ((1, 7), (7, 1), (4, 4)):
        assert should_hold_key(mine, theirs, True) != should_hold_key(theirs, mine, False)
    assert should_hold_key(1, 7, False)
    assert should_hold_key(4, 4, True)


def test_fewer_columns_are_fewer_encryptions():
    table = np.random.default_rng(5).integers(0, 2, (100, 8))
    cost = {}
    for alices in ([0], list(range(1, 8))):
        (_, side), _ = share_counts(table, alices, lambda side: side.prepare(combinations(range(8), 4)), weak_key(2048))
        cost[len(alices)] = side._products.encryptions
    assert cost[1] < cost[7] / 3


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({0: [0, 1]}, r"every column must have 3 rows; received one of shape \(2,\)"),
        ({0: [0, 1, 2]}, "every column must hold zeros and ones only; received other values"),
        ({0: [0, 1, np.nan]}, "every column must hold zeros and ones only; received other values"),
        ({5: [0, 1, 1]}, "variables are numbered from 0 to 3; received 5"),
    ],
)
def test_columns_that_cannot_be_counted_are_refused(columns, message):
    with RandomiserPool(KEY) as pool:
        products = KeyHolder(Silent(), pool, 3, 4)
        with pytest.raises(ValueError, match=f"^{message}$"):
            SharedCounts(products, columns, 4)


class Silent:
    def send(self, kind, payload):
        """Nobody listens."""

    def receive(self, kind, length=None):
        raise AssertionError("nothing should be awaited")


def test_families_that_cannot_be_counted_are_refused():
    with RandomiserPool(KEY) as pool:
        side = SharedCounts(KeyHolder(Silent(), pool, 3, 4), {0: [1, 0, 1]}, 4)
        with pytest.raises(ValueError, match=r"^a child and its parents must be different; received \[0, 0\]$"):
            side.configurations(0, [0])
        with pytest.raises(ValueError, match="^variables are numbered from 0 to 3; received 4$"):
            side.configurations(4, [0])
        with pytest.raises(ValueError, match="^variables are numbered from 0 to 3; received -1$"):
            side.prepare([[-1, 0]])


@pytest.mark.slow
@pytest.mark.parametrize("alices", [[0, 2, 4, 6], [3]], ids=["4/4", "1/7"])
def test_all_counts_of_eight_variables_take_seconds(alices):
    """At 1,000 rows, 3 parents and 2048 bits, the key generation included, in two threads."""
    table = discrete("asia")[0].to_numpy()
    ends = []

    def note(end):
        ends.append(Noted(end))
        return ends[-1]

    start = time.perf_counter()
    (_, side), _ = share_counts(
        table, alices, lambda side: side.prepare(combinations(range(8), 4)), generate_keys(2048), None,
        wrap_alice=note, wrap_bob=note,
    )  # fmt: skip
    took = time.perf_counter() - start
    sent = [sum(length for _, length in end.shape()) for end in ends]
    print(f"\n{took:.1f} s, {side._products.encryptions} encryptions, {side._products.answers} answers, {sent} bytes")
    assert took < 30
    assert sum(sent) < 1_000_000
    assert side._products.encryptions <= 1000

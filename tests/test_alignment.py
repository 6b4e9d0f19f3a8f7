"""Private set intersection and the alignment of rows by keys."""

import nacl.bindings
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpn_bayes.private.alignment import align_rows
from gpn_bayes.secure import link as links
from gpn_bayes.secure.set_intersection import hash_to_point, intersect
from tests.parties import Noted, Spoiled, run_pair

pytestmark = pytest.mark.more("repeats whole protocols for every fault of a party")

ORDER = 2**252 + 27742317777372353535851937790883648493
IDENTITY = (1).to_bytes(32, "little")


def intersect_pair(first, second, **wraps):
    return run_pair(
        lambda end: intersect(end, first, True, 1000), lambda end: intersect(end, second, False, 1000), **wraps
    )


@settings(max_examples=25, deadline=None)
@given(st.sets(st.binary(max_size=2), max_size=20), st.sets(st.binary(max_size=2), max_size=20))
def test_both_learn_what_is_common(first, second):
    assert intersect_pair(first, second) == (first & second, first & second)


def test_many_items():
    first = {str(i).encode() for i in range(300)}
    second = {str(i).encode() for i in range(200, 450)}
    assert intersect_pair(first, second) == (first & second,) * 2


def test_items_hash_to_points_of_prime_order():
    points = {hash_to_point(str(i).encode()) for i in range(50)}
    assert len(points) == 50
    for point in points:
        assert nacl.bindings.crypto_core_ed25519_is_valid_point(point)
        # (order - 1) times a point of prime order is its negative, which differs in the sign bit only.
        scalar = (ORDER - 1).to_bytes(32, "little")
        negative = nacl.bindings.crypto_scalarmult_ed25519_noclamp(scalar, point)
        assert negative[:31] == point[:31]
        assert negative[31] ^ point[31] == 0x80


def test_messages_depend_on_the_sizes_only_and_points_are_fresh():
    runs = []
    for first, second in (({b"1", b"2", b"3"}, {b"1", b"2"}), ({b"4", b"5", b"longer than that"}, {b"1", b"2"})):
        ends = []

        def note(end, ends=ends):
            ends.append(Noted(end))
            return ends[-1]

        intersect_pair(first, second, wrap_alice=note, wrap_bob=note)
        runs.append(ends)
    assert [end.shape() for end in runs[0]] == [end.shape() for end in runs[1]]
    # The second party's set is the same in both runs, and its points aren't.
    assert dict(runs[0][1].messages)["blinded points"] != dict(runs[1][1].messages)["blinded points"]


def replace_first_point(point):
    return lambda kind, payload: (kind, point + payload[32:])


def repeat_first_point(kind, payload):
    return kind, payload[:32] + payload[:32] + payload[64:]


OFF_CURVE = next(
    point
    for point in (bytes([i]) + bytes(31) for i in range(2, 50))
    if not nacl.bindings.crypto_core_ed25519_is_valid_point(point)
)
# A point of order 8, from the list of all such points of the curve.
SMALL_ORDER = bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (replace_first_point(IDENTITY), "^a point must be on the curve and of prime order; received one that isn't$"),
        (
            replace_first_point(SMALL_ORDER),
            "^a point must be on the curve and of prime order; received one that isn't$",
        ),
        (replace_first_point(OFF_CURVE), "^a point must be on the curve and of prime order; received one that isn't$"),
        (
            replace_first_point(b"\xff" * 32),
            "^a point must be on the curve and of prime order; received one that isn't$",
        ),
        (repeat_first_point, "^the points of a set must be different; received some twice$"),
        (lambda kind, payload: (kind, payload[:-1]), "^a message of kind '.*' must have 96 bytes; received 95$"),
        (
            lambda kind, payload: ("garbage", payload),
            "^a message of kind '.*' was expected; received one of kind 'garbage'$",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["blinded points", "returned points"])
def test_spoiled_points_are_refused(kind, change, message):
    items = {b"1", b"2", b"3"}
    alices, bobs = intersect_pair(items, items, wrap_alice=lambda end: Spoiled(end, kind, change))
    with pytest.raises(links.ProtocolError, match=message):
        raise bobs
    alices, bobs = intersect_pair(items, items, wrap_bob=lambda end: Spoiled(end, kind, change))
    with pytest.raises(links.ProtocolError, match=message):
        raise alices


def test_a_set_larger_than_a_table_may_be_is_refused():
    """Before a point of it is read."""
    spoiled = {
        "wrap_alice": lambda end: Spoiled(end, "set size", lambda kind, payload: (kind, (100_001).to_bytes(8, "big")))
    }
    _, bobs = align_pair([1], [1], intersection=True, **spoiled)
    with pytest.raises(links.ProtocolError, match="^a set must have 100000 items at most; received one of more$"):
        raise bobs


def test_items_must_differ():
    with pytest.raises(ValueError, match="^the items of a set must be different; received some twice$"):
        intersect(links.memory_links()[0], [b"1", b"1"], True, 1000)


def align_pair(first, second, intersection=False, **wraps):
    return run_pair(
        lambda end: align_rows(end, first, first=True, intersection=intersection),
        lambda end: align_rows(end, second, first=False, intersection=intersection),
        **wraps,
    )


def test_equal_keys_are_brought_into_one_order():
    rng = np.random.default_rng(1)
    keys = [f"patient {i}" for i in range(100)]
    first, second = rng.permutation(keys), rng.permutation(keys)
    mine, theirs = align_pair(first, second)
    assert first[mine].tolist() == second[theirs].tolist() == sorted(keys)


def test_numbers_and_their_texts_are_the_same_key():
    mine, theirs = align_pair(np.array([3, 1, 2]), ["1", "2", "3"])
    assert (mine.tolist(), theirs.tolist()) == ([1, 2, 0], [0, 1, 2])


def test_common_rows_are_brought_into_one_order():
    first, second = np.arange(0, 60, 2)[::-1], np.arange(0, 60, 3)
    mine, theirs = align_pair(first, second, intersection=True)
    assert first[mine].tolist() == second[theirs].tolist()
    assert set(first[mine]) == set(range(0, 60, 6))


@pytest.mark.parametrize(
    "other", [["a", "b", "d"], ["a", "b"], ["a", "bc"], ["a", "b", "c", "d"], ["ab", "c", ""]], ids=str
)
def test_different_keys_are_refused_by_both(other):
    for result in align_pair(["a", "b", "c"], other):
        with pytest.raises(ValueError, match="^both tables must have the same keys; the digests of the keys differ$"):
            raise result


def test_a_digest_sent_back_is_refused():
    """Who doesn't know the keys can't repeat what it received."""
    alices_end, bobs_end = links.memory_links()

    class Echo:
        def send(self, kind, payload):
            alices_end.send(kind, payload)

        def receive(self, kind, length=None):
            return bobs_end.receive(kind, length)

    with pytest.raises(ValueError, match="^both tables must have the same keys; the digests of the keys differ$"):
        align_rows(Echo(), ["a", "b"], first=True)


def test_digests_are_never_the_same():
    sent = []

    def note(end):
        sent.append(Noted(end))
        return sent[-1]

    for _ in range(2):
        align_pair(["a"], ["a"], wrap_alice=note, wrap_bob=note)
    assert len({dict(end.messages)["key digest"] for end in sent}) == 4
    assert sent[0].shape() == [("key nonce", 32), ("key digest", 32), ("the end", 0)]


def test_nothing_in_common_is_refused_by_both():
    for result in align_pair([1, 2], [3, 4], intersection=True):
        with pytest.raises(ValueError, match="^the two tables must have keys in common; they have none$"):
            raise result


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ([1, 2, 1], "every row must have its own key; received some keys twice"),
        ([1, "1"], "every row must have its own key; received some keys twice"),
        ([], "a table must have rows; received none"),
        ([1.0, 2.0], "keys must be texts or whole numbers; received one of type float"),
        ([None], "keys must be texts or whole numbers; received one of type NoneType"),
        ([True], "keys must be texts or whole numbers; received one of type bool"),
    ],
)
def test_keys_that_cannot_serve_are_refused(keys, message):
    for intersection in (False, True):
        with pytest.raises(ValueError, match=f"^{message}$"):
            align_rows(links.memory_links()[0], keys, first=True, intersection=intersection)

"""Scalar products on shares: they open right, the shares are random, the messages tell nothing, faults are refused."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gpn_bayes.private.product_plan import Bundle, Sizes, plaintexts, plan_answers, plan_bundles, work_of
from gpn_bayes.private.scalar_product import Helper, KeyHolder
from gpn_bayes.secure import link as links
from gpn_bayes.secure.paillier import PublicKey
from gpn_bayes.secure.randomisers import RandomiserPool
from tests.parties import Noted, Spoiled, run_pair, weak_key

KEY = weak_key()


def holder(rows, modulus, requests, vectors, key=KEY):
    """Return the key holder as a function of its end: shares of every request, and the side itself."""

    def run(end):
        with RandomiserPool(key) as pool:
            side = KeyHolder(end, pool, rows, modulus)
            return [side.shares(pairs, vectors.__getitem__) for pairs in requests], side

    return run


def helper(rows, modulus, requests, vectors, bits=512):
    def run(end):
        side = Helper(end, rows, modulus, bits)
        try:
            return [side.shares(pairs, vectors.__getitem__) for pairs in requests], side
        finally:
            side.close()

    return run


def random_bits(rng, count, rows):
    """Return vectors from almost empty to almost full ones."""
    return [(rng.random(rows) < density).astype(int) for density in rng.random(count)]


def test_a_thousand_products_open_to_the_right_value():
    rng = np.random.default_rng(1)
    opened = 0
    for trial in range(25):
        rows = int(rng.integers(1, 60))
        bits = int(rng.integers(rows.bit_length(), rows.bit_length() + 41))
        xs, ys = random_bits(rng, 1 + trial % 8, rows), random_bits(rng, 40, rows)
        pairs = [(int(rng.integers(len(xs))), int(rng.integers(len(ys)))) for _ in range(40)]
        requests = [pairs[:10], pairs[10:]]
        (mine, _), (theirs, _) = run_pair(holder(rows, 2**bits, requests, xs), helper(rows, 2**bits, requests, ys))
        for pairs_, a, b in zip(requests, mine, theirs, strict=True):
            for (x, y), share, other in zip(pairs_, a, b, strict=True):
                assert 0 <= share < 2**bits
                assert 0 <= other < 2**bits
                assert (share + other) % 2**bits == xs[x] @ ys[y]
                opened += 1
    assert opened == 1000


@pytest.mark.parametrize(("x", "y"), list(product([0, 1], repeat=2)))
@pytest.mark.parametrize("rows", [1, 2, 15, 16, 100])
def test_all_zeros_and_all_ones(rows, x, y):
    """The largest product fills its slot, and that of its neighbours, as far as it ever can."""
    modulus = 1 << rows.bit_length()
    xs, ys = [np.full(rows, x)] * 3, [np.full(rows, y)] * 3
    pairs = [list(product(range(3), range(3)))]
    (mine, _), (theirs, _) = run_pair(holder(rows, modulus, pairs, xs), helper(rows, modulus, pairs, ys))
    assert all((a + b) % modulus == rows * x * y for a, b in zip(mine[0], theirs[0], strict=True))


def test_real_keys_pack_many_rows_and_vectors():
    rng = np.random.default_rng(2)
    key = weak_key(2048)
    xs, ys = random_bits(rng, 3, 120), random_bits(rng, 4, 120)
    pairs = [list(product(range(3), range(4)))]
    (mine, side), (theirs, _) = run_pair(holder(120, 128, pairs, xs, key), helper(120, 128, pairs, ys, 2048))
    assert [(a + b) % 128 for a, b in zip(mine[0], theirs[0], strict=True)] == [xs[x] @ ys[y] for x, y in pairs[0]]
    assert side.encryptions < 120
    assert side.answers < 12


def same_product_shares(modulus):
    """Return both parties' shares of 1,000 products of the same two vectors."""
    x, y = [1, 1, 0, 1, 0, 1, 1], [1, 0, 1, 1, 1, 1, 0]
    pairs = [[("x", number) for number in range(1000)]]
    (mine, _), (theirs, _) = run_pair(
        holder(7, modulus, pairs, {"x": x}), helper(7, modulus, pairs, dict.fromkeys(range(1000), y))
    )
    return mine[0], theirs[0]


def test_shares_are_uniform_whatever_they_share():
    for shares in same_product_shares(16):
        assert stats.chisquare(np.bincount(shares, minlength=16)).pvalue > 1e-6


def test_what_the_key_holder_decrypts_is_masked_in_every_slot():
    """All slots, those nobody needs too, hold a number of 43 bits whose upper 40 are uniform."""
    x, y = np.ones(7, dtype=int), np.ones(7, dtype=int)
    pairs = [[("x", number) for number in range(200)]]
    noted = []

    def note(end):
        noted.append(Noted(end))
        return noted[0]

    (_, side), _ = run_pair(
        holder(7, 8, pairs, {"x": x}), helper(7, 8, pairs, dict.fromkeys(range(200), y)), wrap_bob=note
    )
    slot_bits = Sizes(7, 512).slot_bits
    assert slot_bits == 3 + 40 + 1
    # As many slots as are in use in the answers that are full.
    slots = 512 // slot_bits // side._bundles[0].slots * side._bundles[0].slots
    values = []
    answers = [payload for kind, payload in noted[0].messages if kind == "masked products"]
    for payload in answers[:-1]:
        number = KEY.decrypt(*KEY.from_bytes(payload))
        values += [number >> slot_bits * i & (1 << slot_bits) - 1 for i in range(slots)]
        assert number < 1 << slot_bits * slots
    assert len(values) > 150
    assert stats.kstest([value / 2**43 for value in values], "uniform").pvalue > 1e-6
    # Negative control: masks that are a bit shorter wouldn't pass.
    assert stats.kstest([value / 2**44 for value in values], "uniform").pvalue < 1e-6


def test_an_answer_has_a_randomiser_of_its_own():
    """Otherwise the key holder, who knows her own, could tell which ciphertexts were multiplied."""
    mine, theirs = [], []

    def note(sink):
        def wrap(end):
            sink.append(Noted(end))
            return sink[0]

        return wrap

    pairs = [[("x", "y")]]
    run_pair(
        holder(1, 2, pairs, {"x": [1]}), helper(1, 2, pairs, {"y": [1]}), wrap_alice=note(mine), wrap_bob=note(theirs)
    )
    (sent,) = KEY.from_bytes(dict(mine[0].messages)["encrypted bits"])
    (answer,) = KEY.from_bytes(dict(theirs[0].messages)["masked products"])
    # Modulo n only the randomiser is left of a ciphertext.
    assert answer % KEY.n != sent % KEY.n
    assert KEY.add(sent, 1 + 5 * KEY.n) % KEY.n == sent % KEY.n


def test_an_encrypted_vector_serves_all_its_products():
    rng = np.random.default_rng(3)
    xs, ys = random_bits(rng, 2, 30), random_bits(rng, 5, 30)
    requests = [[(0, 0)], [(0, 1), (0, 2)], [(0, 0), (0, 2)], [(1, 3), (0, 3)]]
    counts = []

    def run(end):
        with RandomiserPool(KEY) as pool:
            side = KeyHolder(end, pool, 30, 32)
            for pairs in requests:
                side.shares(pairs, xs.__getitem__)
                counts.append((side.encryptions, side.answers))

    _, (_, other) = run_pair(run, helper(30, 32, requests, ys))
    encryptions, answers = zip(*counts, strict=True)
    assert encryptions[0] == encryptions[1] == encryptions[2] < encryptions[3]
    assert answers[0] < answers[1] == answers[2] < answers[3]
    assert (other.encryptions, other.answers) == counts[-1]


def test_messages_have_the_same_form_whatever_the_bits_are():
    forms = []
    for x, y in ((0, 0), (1, 1), (0, 1)):
        sent = []

        def note(end, sent=sent):
            sent.append(Noted(end))
            return sent[-1]

        requests = [[(i, j) for i in range(3) for j in range(3)], [(3, 0)]]
        xs, ys = [np.full(50, x)] * 4, [np.full(50, y)] * 3
        run_pair(holder(50, 64, requests, xs), helper(50, 64, requests, ys), note, note)
        forms.append(sorted(noted.shape() for noted in sent))
    assert forms[0] == forms[1] == forms[2]
    assert {kind for form in forms[0] for kind, _ in form} == {
        "paillier key",
        "encrypted bits",
        "masked products",
        "the end",
    }


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=1, max_size=60, unique=True),
    st.integers(1, 5000),
    st.sampled_from([512, 2048, 3072]),
)
def test_plans_hold_all_products_and_fit(pairs, rows, bits):
    sizes = Sizes(rows, bits)
    bundles = plan_bundles(pairs, sizes)
    labels = [label for bundle in bundles for label in bundle.labels]
    assert sorted(labels) == sorted({mine for mine, _ in pairs})
    answers = plan_answers(bundles, pairs, sizes)
    covered = {(mine, block.label) for blocks in answers for block in blocks for mine in block.bundle.labels}
    assert covered >= set(pairs)
    assert all(sum(block.bundle.slots for block in blocks) * sizes.slot_bits < bits for blocks in answers)
    # No worse than one row a ciphertext, and than one vector at a time.
    for other in ([Bundle((label,), 1) for label in labels], [Bundle((label,), 2) for label in labels]):
        assert work_of(bundles, pairs, sizes) <= work_of(other, pairs, sizes)


def test_plaintexts_times_shifted_bits_hold_the_products():
    """The arithmetic of slots, in the open."""
    rng = np.random.default_rng(4)
    for rows_each in (1, 2, 5):
        xs, y = random_bits(rng, 3, 23), random_bits(rng, 1, 23)[0]
        numbers = plaintexts(xs, rows_each, 8)
        total = sum(
            int(y[row]) * numbers[row // rows_each] << 8 * 3 * (rows_each - 1 - row % rows_each) for row in range(23)
        )
        first = Bundle((0, 1, 2), rows_each).first_wanted
        assert [total >> 8 * (first + j) & 255 for j in range(3)] == [x @ y for x in xs]


def flip_all(kind, payload):
    return kind, b"\xff" * len(payload)


def cut(kind, payload):
    return kind, payload[:-1]


def rename(kind, payload):
    return "nonsense", payload


def empty(kind, payload):
    return kind, bytes(len(payload))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (flip_all, "^a ciphertext must be below the square of the modulus; received a larger number$"),
        (empty, "^a ciphertext must be coprime to the modulus; received one that isn't$"),
        (cut, r"^a message of kind '.*' must have \d+ bytes; received \d+$"),
        (rename, "^a message of kind '.*' was expected; received one of kind 'nonsense'$"),
    ],
)
@pytest.mark.parametrize("kind", ["encrypted bits", "masked products"])
def test_spoiled_messages_are_refused(kind, change, message):
    wrap = {"wrap_alice" if kind == "encrypted bits" else "wrap_bob": lambda end: Spoiled(end, kind, change)}
    pairs = [[("x", "y")]]
    alices, bobs = run_pair(holder(3, 4, pairs, {"x": [1, 0, 1]}), helper(3, 4, pairs, {"y": [1, 1, 1]}), **wrap)
    victim = bobs if kind == "encrypted bits" else alices
    assert isinstance(victim, links.ProtocolError)
    with pytest.raises(links.ProtocolError, match=message):
        raise victim


@pytest.mark.parametrize("change", [cut, rename, empty])
def test_a_spoiled_key_is_refused(change):
    pairs = [[("x", "y")]]
    alices, bobs = run_pair(
        holder(3, 4, pairs, {"x": [1, 0, 1]}),
        helper(3, 4, pairs, {"y": [1, 1, 1]}),
        wrap_alice=lambda end: Spoiled(end, "paillier key", change),
    )
    assert isinstance(alices, links.ProtocolError)
    assert isinstance(bobs, links.ProtocolError)


def test_a_key_of_another_length_is_refused():
    alices_end, bobs_end = links.memory_links()
    with RandomiserPool(KEY) as pool:
        KeyHolder(alices_end, pool, 3, 4)
    with pytest.raises(
        links.ProtocolError, match="^a message of kind 'paillier key' must have 256 bytes; received 64$"
    ):
        Helper(bobs_end, 3, 4, 2048)


def test_weak_keys_are_refused():
    with pytest.raises(ValueError, match=r"^key_bits must be 2048 .*; received 512$"):
        Helper(links.memory_links()[0], 3, 4, 512)


def test_the_key_holder_needs_a_private_key():
    with (
        RandomiserPool(PublicKey(KEY.n)) as pool,
        pytest.raises(
            ValueError, match="^the key holder's pool must be of a private key; received one of a public key$"
        ),
    ):
        KeyHolder(links.memory_links()[0], pool, 3, 4)


@pytest.mark.parametrize(
    ("rows", "modulus", "message"),
    [
        (0, 4, "rows must be a whole number, 1 or more; received 0"),
        (3, 1.5, "modulus must be a whole number, 2 or more; received 1.5"),
        (4, 4, r"the modulus of shares must be a power of two from 8 to 2\^43 for 4 rows; received 4"),
        (3, 6, r"the modulus of shares must be a power of two from 4 to 2\^42 for 3 rows; received 6"),
        (3, 2**43, r"the modulus of shares must be a power of two from 4 to 2\^42 for 3 rows; received \d+"),
    ],
)
def test_sizes_that_cannot_serve_are_refused(rows, modulus, message):
    with RandomiserPool(KEY) as pool, pytest.raises(ValueError, match=f"^{message}$"):
        KeyHolder(links.memory_links()[0], pool, rows, modulus)
    with pytest.raises(ValueError, match=f"^{message}$"):
        Helper(links.memory_links()[0], rows, modulus)


@pytest.mark.parametrize("vector", [[1, 0], [1, 0, 2], [0.5, 0, 1], [[1, 0, 1]]])
def test_vectors_that_are_not_bits_are_refused(vector):
    with RandomiserPool(KEY) as pool:
        side = KeyHolder(links.memory_links()[0], pool, 3, 4)
        with pytest.raises(ValueError, match="^a vector must be 3 zeros and ones; received something else$"):
            side.shares([("x", "y")], {"x": vector}.__getitem__)

"""Oblivious transfers: who learns what, against plain statements; and what must be refused."""

import hashlib

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from nacl import bindings

from gpn_bayes._util.extras import installed_by
from gpn_bayes.secure import oblivious_transfer
from gpn_bayes.secure.base_transfer import receive_base, send_base
from gpn_bayes.secure.blocks import TweakableHash, colours, random_blocks, where_set
from gpn_bayes.secure.link import ProtocolError, memory_links
from gpn_bayes.secure.oblivious_transfer import TransferReceiver, TransferSender
from tests.parties import LEAST_P, Noted, both, p_uniform

pytestmark = pytest.mark.more("repeats whole protocols for every fault of a party")


def transfers():
    links = memory_links()
    sender, receiver = both(lambda: TransferSender(links[0]), lambda: TransferReceiver(links[1]))
    return sender, receiver


@pytest.fixture(scope="module")
def pair():
    return transfers()


def random_bits(n, seed=0):
    return np.random.default_rng(seed).integers(0, 2, n, dtype=np.uint8)


# The hash


def test_the_hash_is_what_its_definition_says():
    key, blocks = bytes(range(16)), random_blocks(5)
    found = TweakableHash(key)(blocks, np.array([0, 1, 2**63, 7, 7], dtype=np.uint64))

    def permuted(block):
        return Cipher(algorithms.AES(key), modes.ECB()).encryptor().update(block)

    for block, tweak, value in zip(blocks, [0, 1, 2**63, 7, 7], found, strict=True):
        once = int.from_bytes(permuted(block.tobytes()), "little")
        twice = int.from_bytes(permuted((once ^ tweak).to_bytes(16, "little")), "little")
        assert int.from_bytes(value.tobytes(), "little") == once ^ twice


def test_no_tweak_comes_twice():
    hash = TweakableHash(bytes(16))
    drawn = np.concatenate([hash.tweaks(*shape).ravel() for shape in [(3,), (2, 5), (1, 1, 4), (0,), (7,)]])
    assert len(set(drawn.tolist())) == len(drawn) == 24


# Base transfers


def test_base_transfers_give_the_chosen_key_and_no_other():
    alice, bob = memory_links()
    choices = random_bits(40)
    (pairs, said), (keys, heard) = both(lambda: send_base(alice, 40), lambda: receive_base(bob, choices))
    np.testing.assert_array_equal(keys, pairs[np.arange(40), choices])
    assert (keys != pairs[np.arange(40), 1 - choices]).any(axis=1).all()
    assert said == heard
    assert len(np.unique(pairs.reshape(80, 2), axis=0)) == 80


def test_base_keys_are_hashes_of_the_shared_points():
    """The receiver's way to a key, spelled out, leads to the sender's first key for R = bG."""
    alice, bob = memory_links()
    scalar = bytes([77]) + bytes(31)
    reply = bindings.crypto_scalarmult_ed25519_base_noclamp(scalar)
    bob.send("base transfer reply", reply)
    pairs, _ = send_base(alice, 1)
    offer = bob.receive("base transfer offer")
    shared = bindings.crypto_scalarmult_ed25519_noclamp(scalar, offer)
    assert pairs[0, 0].tobytes() == hashlib.sha256(bytes(4) + offer + reply + shared).digest()[:16]
    assert pairs[0, 1].tobytes() != pairs[0, 0].tobytes()


# Points of order 1, 2 and 8; one that isn't on the curve; one that isn't written in the one way; one with a part of
# small order.
_TORSION = bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05")
INVALID = {
    "neutral": bytes([1]) + bytes(31),
    "order 2": bytes.fromhex("ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
    "order 8": _TORSION,
    "off the curve": bytes([2]) + bytes(31),
    "not reduced": bytes.fromhex("eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f"),
    "mixed order": bindings.crypto_core_ed25519_add(
        bindings.crypto_scalarmult_ed25519_base_noclamp(bytes([5]) + bytes(31)), _TORSION
    ),
}
REFUSED = "^points must be on the curve and of its prime order; received one that isn't$"


@pytest.mark.parametrize("point", INVALID.values(), ids=INVALID)
def test_invalid_points_are_refused(point):
    alice, bob = memory_links()
    bob.send("base transfer reply", bindings.crypto_scalarmult_ed25519_base_noclamp(bytes([9]) + bytes(31)) + point)
    with pytest.raises(ProtocolError, match=REFUSED):
        send_base(alice, 2)
    alice, bob = memory_links()
    alice.send("base transfer offer", point)
    with pytest.raises(ProtocolError, match=REFUSED):
        receive_base(bob, np.array([0, 1]))


def test_an_offer_sent_back_is_refused(monkeypatch):
    alice, bob = memory_links()
    scalar = bytes([9]) + bytes(31)
    monkeypatch.setattr("gpn_bayes.secure.base_transfer._random_scalar", lambda: scalar)
    bob.send("base transfer reply", bindings.crypto_scalarmult_ed25519_base_noclamp(scalar))
    with pytest.raises(ProtocolError, match="^a reply to an offer of keys must not repeat the offer$"):
        send_base(alice, 1)


def test_truncated_base_messages_are_refused():
    alice, bob = memory_links()
    bob.send("base transfer reply", bytes(63))
    with pytest.raises(
        ProtocolError, match="^a message of kind 'base transfer reply' must have 64 bytes; received 63$"
    ):
        send_base(alice, 2)
    alice, bob = memory_links()
    alice.send("base transfer offer", bytes(33))
    with pytest.raises(
        ProtocolError, match="^a message of kind 'base transfer offer' must have 32 bytes; received 33$"
    ):
        receive_base(bob, np.array([0]))


# The extension


@pytest.mark.parametrize("count", [1, 7, 8, 9, 1000, 8193])
def test_blocks_differ_by_the_offset_where_the_choice_is_one(pair, count):
    sender, receiver = pair
    choices = random_bits(count)
    zeros, chosen = both(lambda: sender.correlated(count), lambda: receiver.correlated(choices))
    np.testing.assert_array_equal(chosen ^ zeros, where_set(choices, np.broadcast_to(sender.offset, (count, 2))))
    assert len(np.unique(zeros, axis=0)) == count
    assert colours(sender.offset) == 1


def test_extension_against_its_plain_statement(monkeypatch):
    """Column by column and bit by bit, from base keys that a dealer hands out."""
    keys, asked = random_blocks(128, 2), []

    def deal(link, choices):
        asked.extend(choices.tolist())
        return keys[np.arange(128), choices], bytes(32)

    monkeypatch.setattr(oblivious_transfer, "receive_base", deal)
    monkeypatch.setattr(oblivious_transfer, "send_base", lambda link, count: (keys, bytes(32)))
    sender, receiver = transfers()
    choices = random_bits(100, seed=3)
    zeros, chosen = both(lambda: sender.correlated(100), lambda: receiver.correlated(choices))

    def column(key):
        stream = Cipher(algorithms.AES(key.tobytes()), modes.CTR(bytes(16))).encryptor().update(bytes(13))
        return [stream[row // 8] >> row % 8 & 1 for row in range(100)]

    columns = [column(keys[place, 0]) for place in range(128)]
    for row in range(100):
        mine = sum(columns[place][row] << place for place in range(128))
        offset = sum(bit << place for place, bit in enumerate(asked))
        assert int.from_bytes(chosen[row].tobytes(), "little") == mine
        assert int.from_bytes(zeros[row].tobytes(), "little") == mine ^ (offset * int(choices[row]))


def test_extension_does_what_base_transfers_do(pair):
    """For the same choices, both give the receiver one key of each pair, and keys that look alike: random."""
    choices = random_bits(128, seed=5)
    alice, bob = memory_links()
    (base_pairs, _), (base_keys, _) = both(lambda: send_base(alice, 128), lambda: receive_base(bob, choices))
    (zeros, ones), keys = both(lambda: pair[0].keys(128), lambda: pair[1].keys(choices))
    for pairs, got in [(base_pairs, base_keys), (np.stack([zeros, ones], axis=1), keys)]:
        np.testing.assert_array_equal(got, pairs[np.arange(128), choices])
        assert (got != pairs[np.arange(128), 1 - choices]).any(axis=1).all()
        assert p_uniform(pairs, 64) > LEAST_P


@pytest.mark.parametrize("size", [2, 4, 64, 1024])
@pytest.mark.parametrize("bits", [8, 40, 64])
def test_one_of_many(pair, size, bits):
    rng = np.random.default_rng(size + bits)
    messages = rng.integers(0, 2**bits, (31, size), dtype=np.uint64)
    choices = rng.integers(0, size, 31)
    _, got = both(lambda: pair[0].one_of_many(messages, bits), lambda: pair[1].one_of_many(choices, size, bits))
    np.testing.assert_array_equal(got, messages[np.arange(31), choices])


def test_one_of_many_in_parts(pair, monkeypatch):
    monkeypatch.setattr(oblivious_transfer, "_AT_ONCE", 40)
    messages = np.arange(160, dtype=np.uint64).reshape(10, 16)
    choices = np.arange(10) + 5
    _, got = both(lambda: pair[0].one_of_many(messages, 8), lambda: pair[1].one_of_many(choices, 16, 8))
    assert got.tolist() == [16 * row + row + 5 for row in range(10)]


def test_messages_that_were_not_chosen_stay_hidden():
    """All messages are 0: what is sent is their pads, which must be random, each and between rows."""
    links = [Noted(link) for link in memory_links()]
    sender, receiver = both(lambda: TransferSender(links[0]), lambda: TransferReceiver(links[1]))
    nothing = np.zeros((200, 64), dtype=np.uint64)
    both(lambda: sender.one_of_many(nothing, 64), lambda: receiver.one_of_many(np.zeros(200, dtype=int), 64, 64))
    pads = np.frombuffer(links[0].messages[-1][1], dtype=np.uint64)
    assert p_uniform(pads, 64) > LEAST_P
    assert len(np.unique(pads)) == 200 * 64


def test_additive(pair):
    rng = np.random.default_rng(1)
    differences, choices = rng.integers(0, 2**48, 500, dtype=np.uint64), random_bits(500)
    mine, yours = both(lambda: pair[0].additive(differences, 48), lambda: pair[1].additive(choices, 48))
    np.testing.assert_array_equal((mine + yours) % np.uint64(2**48), differences * choices)
    assert p_uniform(mine, 48) > LEAST_P
    assert p_uniform(yours, 48) > LEAST_P


@pytest.mark.parametrize("size", [0, 1, 3, 12])
def test_sizes_that_are_no_power_of_two_are_refused(pair, size):
    rule = f"^the number of messages must be a power of two, 2 or more; received {size}$"
    with pytest.raises(ValueError, match=rule):
        pair[0].one_of_many(np.zeros((1, size), dtype=np.uint64), 8)
    with pytest.raises(ValueError, match=rule):
        pair[1].one_of_many(np.array([0]), size, 8)


def test_lengths_tell_nothing_of_choices_and_messages():
    records = []
    for seed in (0, 1):
        links = [Noted(link) for link in memory_links()]
        rng = np.random.default_rng(seed)
        messages, choices = rng.integers(0, 2**40, (50, 16), dtype=np.uint64), rng.integers(0, 16, 50)
        sender, receiver = both(
            lambda links=links: TransferSender(links[0]), lambda links=links: TransferReceiver(links[1])
        )
        both(
            lambda sender=sender, messages=messages: sender.one_of_many(messages, 40),
            lambda receiver=receiver, choices=choices: receiver.one_of_many(choices, 16, 40),
        )
        records.append([link.record for link in links])
    assert records[0] == records[1]


TRUNCATED = {
    "columns": ("transfer columns", 128 * 2, lambda sender, receiver: sender.correlated(9)),
    "messages": ("transfer messages", 3 * 4 * 6, lambda sender, receiver: receiver.one_of_many(np.arange(3), 4, 48)),
    "corrections": (
        "transfer corrections",
        3 * 6,
        lambda sender, receiver: receiver.additive(np.ones(3, dtype=np.uint8), 48),
    ),
}


@pytest.mark.parametrize(("kind", "length", "action"), TRUNCATED.values(), ids=TRUNCATED)
def test_truncated_messages_are_refused(kind, length, action):
    links = memory_links()
    sender, receiver = both(lambda: TransferSender(links[0]), lambda: TransferReceiver(links[1]))
    links[kind == "transfer columns"].send(kind, bytes(length - 1))
    rule = f"^a message of kind '{kind}' must have {length} bytes; received {length - 1}$"
    with pytest.raises(ProtocolError, match=rule):
        action(sender, receiver)


def test_a_missing_package_is_named():
    with pytest.raises(ImportError, match=r'^nacl must be installed; use pip install "gpn_bayes\[private\]"$'):
        with installed_by("private"):
            raise ModuleNotFoundError("No module named 'nacl.bindings'", name="nacl.bindings")

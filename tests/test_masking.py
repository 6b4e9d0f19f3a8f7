"""Masks: they cancel in the sum, and leave nothing to be seen in a single message."""

import numpy as np
import pytest
from scipy.stats import chisquare, kstest

from gpn_bayes.secure import fixed_point
from gpn_bayes.secure.key_exchange import public_key, shared_secret
from gpn_bayes.secure.masking import extend, mask

CLIENTS = ("a", "b", "c", "d")
KEYS = {name: bytes([number + 1]) * 32 for number, name in enumerate(CLIENTS)}
N = 4000


def secrets(client):
    return {name: shared_secret(KEYS[client], public_key(KEYS[name])) for name in CLIENTS if name != client}


def masked(client, values, plan=b"plan", requests=(b"asked",)):
    transcript = plan
    for request in requests:
        transcript = extend(transcript, request)
    return mask(fixed_point.encode(values, len(CLIENTS)), client, secrets(client), transcript)


def byte_p_value(words):
    counts = np.bincount(np.frombuffer(words.astype("<u8").tobytes(), np.uint8), minlength=256)
    return chisquare(counts).pvalue


def smallest_p_value(words):
    """Return the smallest p-value of several tests of uniformity: bytes, bits, whole words, neighbours."""
    bits = np.unpackbits(np.frombuffer(words.astype("<u8").tobytes(), np.uint8))
    ones = bits.reshape(-1, 128).sum(axis=0)
    bit_p = chisquare(np.stack([ones, len(words) - ones]).ravel()).pvalue
    shares = words.astype(float) / 2.0**64
    pair_counts = np.histogram2d(shares[:, 0], shares[:, 1], bins=8, range=[[0, 1], [0, 1]])[0]
    return min(
        byte_p_value(words), bit_p, chisquare(pair_counts.ravel()).pvalue,
        *(kstest(shares[:, word], "uniform").pvalue for word in (0, 1)),
    )  # fmt: skip


VALUES = {
    "zeros": np.zeros(N),
    "small": np.random.default_rng(1).normal(size=N),
    "large": np.full(N, -1e15),
}


@pytest.mark.parametrize("client", CLIENTS)
@pytest.mark.parametrize("kind", VALUES)
def test_a_single_message_looks_uniform(client, kind):
    assert smallest_p_value(masked(client, VALUES[kind])) > 1e-4


@pytest.mark.parametrize("kind", VALUES)
def test_the_tests_notice_what_is_not_masked(kind):
    """Negative control."""
    assert smallest_p_value(fixed_point.encode(VALUES[kind], 4)) < 1e-20


@pytest.mark.parametrize(
    "change",
    [
        {"plan": b"another"},
        {"requests": (b"asked", b"asked")},
        {"requests": (b"another",)},
        {"requests": (b"another", b"asked")},
    ],
    ids=["plan", "round", "request", "history"],
)
def test_masks_of_another_run_round_request_or_history_are_independent(change):
    first, second = masked("a", np.zeros(N)), masked("a", np.zeros(N), **change)
    difference = fixed_point.total(np.stack([first, fixed_point.negate(second)]))
    assert smallest_p_value(difference) > 1e-4


def test_masks_cancel_in_the_sum_over_all():
    rng = np.random.default_rng(2)
    values = {client: rng.normal(size=50) * 10.0 ** rng.uniform(-6, 12, size=50) for client in CLIENTS}
    words = np.stack([masked(client, values[client]) for client in CLIENTS])
    exact = np.stack([fixed_point.encode(values[client], 4) for client in CLIENTS])
    np.testing.assert_array_equal(fixed_point.total(words), fixed_point.total(exact))


def test_sums_over_fewer_clients_look_uniform():
    words = np.stack([masked(client, np.zeros(N)) for client in CLIENTS[:3]])
    assert smallest_p_value(fixed_point.total(words)) > 1e-4


def test_clients_that_were_asked_different_things_give_noise():
    words = [masked(client, np.zeros(N), requests=(b"one",) if client == "a" else (b"two",)) for client in CLIENTS]
    assert smallest_p_value(fixed_point.total(np.stack(words))) > 1e-4


def test_equal_inputs_give_equal_bytes():
    np.testing.assert_array_equal(masked("b", VALUES["small"]), masked("b", VALUES["small"]))


def test_a_secret_that_two_pairs_share_gives_no_masks_that_cancel():
    """A client that copied another's key would have both its masks in every other client's message, with both signs."""
    same = bytes(range(32))
    words = fixed_point.encode(np.zeros(N), 3)
    between = mask(words, "b", {"a": same, "z": same}, b"asked")
    assert smallest_p_value(between) > 1e-4

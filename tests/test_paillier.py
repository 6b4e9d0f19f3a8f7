"""Paillier's encryption against another implementation and its own laws, and the stock of randomisers."""

import gc
import threading
import time

import gmpy2
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from gpn_bayes.secure.link import ProtocolError
from gpn_bayes.secure.paillier import SECURITY_BITS, PrivateKey, PublicKey, generate_keys, read_public_key
from gpn_bayes.secure.randomisers import RandomiserPool
from tests.parties import weak_key

KEY = weak_key()
PUBLIC = PublicKey(KEY.n)
PLAINTEXTS = st.integers(0, int(KEY.n) - 1)


@pytest.fixture(scope="module")
def real_key():
    return generate_keys(2048)


@pytest.mark.parametrize("bits", [512, 2048])
def test_agrees_with_another_implementation(bits, real_key):
    phe = pytest.importorskip("phe")
    key = KEY if bits == 512 else real_key
    p, q = int(key._p), int(key._q)
    other_public = phe.PaillierPublicKey(p * q)
    other_private = phe.PaillierPrivateKey(other_public, p, q)
    rng = np.random.default_rng(1)
    for bits_of_plaintext in (1, 10, bits // 2, bits - 1):
        plaintext = int.from_bytes(rng.bytes(bits // 8), "big") >> (bits - bits_of_plaintext)
        r = int.from_bytes(rng.bytes(bits // 8), "big") % int(key.n)
        randomiser = gmpy2.powmod(r, key.n, key.n_squared)
        assert other_public.raw_encrypt(plaintext, r_value=r) == key.encrypt(plaintext, randomiser)
        assert key.decrypt(gmpy2.mpz(other_public.raw_encrypt(plaintext))) == plaintext
        assert other_private.raw_decrypt(int(key.encrypt(plaintext))) == plaintext
        assert other_private.raw_decrypt(int(PublicKey(key.n).encrypt(plaintext))) == plaintext


@settings(max_examples=50, deadline=None)
@given(PLAINTEXTS, PLAINTEXTS, st.integers(0, 200), st.sampled_from([KEY, PUBLIC]))
def test_computing_with_ciphertexts_is_computing_with_plaintexts(a, b, bits, key):
    first, second = key.encrypt(a), key.encrypt(b)
    assert KEY.decrypt(first) == a
    assert KEY.decrypt(key.add(first, second)) == (a + b) % key.n
    assert KEY.decrypt(key.shift(first, bits)) == a * 2**bits % key.n
    assert KEY.from_bytes(key.to_bytes(first) + key.to_bytes(second)) == [first, second]
    assert len(key.to_bytes(first)) == key.ciphertext_bytes == 128


def test_a_ciphertext_is_never_the_same_twice():
    assert len({KEY.encrypt(1) for _ in range(100)}) == 100
    assert len({PUBLIC.encrypt(1) for _ in range(100)}) == 100


@pytest.mark.parametrize("key", [KEY, PUBLIC], ids=["private", "public"])
def test_randomisers_are_encryptions_of_zero(key):
    made = key.randomisers(20)
    assert len(set(made)) == 20
    for randomiser in made:
        assert 0 < randomiser < key.n_squared
        assert KEY.decrypt(randomiser) == 0


@pytest.mark.parametrize("private", [False, True])
def test_randomisers_are_uniform_among_nth_powers(private):
    """With p = 11 and q = 13 there are 120 of them modulo 143^2."""
    p, q = 11, 13
    key = PrivateKey(p, q) if private else PublicKey(p * q)
    powers = sorted({pow(r, p * q, (p * q) ** 2) for r in range(1, p * q) if r % p and r % q})
    assert len(powers) == (p - 1) * (q - 1)
    # A tiny modulus often yields an r that isn't coprime to it; no large one does.
    drawn = [int(x) for x in key.randomisers(12_000) if x % p and x % q]
    observed = [drawn.count(power) for power in powers]
    assert sum(observed) == len(drawn)
    assert stats.chisquare(observed).pvalue > 1e-6


def test_decrypts_the_ends_of_the_range():
    for plaintext in (0, 1, int(KEY.n) - 1):
        assert KEY.decrypt(KEY.encrypt(plaintext)) == plaintext
    for plaintext in (-1, int(KEY.n)):
        with pytest.raises(ValueError, match=r"^a plaintext must be from 0 to n - 1, with n of 512 bits; received one"):
            KEY.encrypt(plaintext)


def test_keys_have_the_length_asked_for(real_key):
    assert real_key.bits == 2048
    assert real_key.capacity == 2047
    assert generate_keys().bits == 3072
    assert SECURITY_BITS == {2048: 112, 3072: 128}


@pytest.mark.parametrize("bits", [512, 1024, 2047, True, "2048", None])
def test_other_lengths_are_refused(bits):
    with pytest.raises(ValueError, match=r"^key_bits must be 2048 \(112-bit security\) or 3072 .*; received "):
        generate_keys(bits)


def test_numbers_that_make_no_key_are_refused():
    p = int(KEY._p)
    for numbers in ((p, p), (p, 7), (p, p + 2)):
        with pytest.raises(
            ValueError, match="^a key needs two different primes of equal length; received other numbers"
        ):
            PrivateKey(*numbers)


def test_a_key_shows_nothing_of_itself():
    assert repr(KEY) == str(KEY) == "PrivateKey(512 bits)"


@pytest.mark.parametrize(
    ("number", "message"),
    [
        (0, "a ciphertext must be coprime to the modulus"),
        (int(KEY._p) * 5, "a ciphertext must be coprime to the modulus"),
        (int(KEY.n), "a ciphertext must be coprime to the modulus"),
        (int(KEY.n_squared), "a ciphertext must be below the square of the modulus"),
        (2**1024 - 1, "a ciphertext must be below the square of the modulus"),
    ],
)
def test_numbers_that_are_no_ciphertexts_are_refused(number, message):
    good = PUBLIC.to_bytes(PUBLIC.encrypt(3))
    with pytest.raises(ProtocolError, match=f"^{message}; received") as raised:
        PUBLIC.from_bytes(good + number.to_bytes(128, "big") + good)
    assert not any(digit.isdigit() for digit in str(raised.value))


def test_cut_ciphertexts_are_refused():
    with pytest.raises(ProtocolError, match="^ciphertexts must have 128 bytes each; received 127 bytes$"):
        PUBLIC.from_bytes(bytes(127))


def test_public_keys_are_read():
    assert read_public_key(int(KEY.n).to_bytes(64, "big"), 512).n == KEY.n


@pytest.mark.parametrize("n", [0, int(KEY.n) >> 1, int(KEY.n) ^ 1, int(gmpy2.next_prime(3 << 510))])
def test_numbers_that_are_no_public_key_are_refused(n):
    with pytest.raises(
        ProtocolError, match="^a public key must be an odd composite number of 512 bits; received another$"
    ):
        read_public_key(n.to_bytes(64, "big"), 512)


def workers():
    return [thread for thread in threading.enumerate() if thread.name.startswith("randomisers")]


def test_a_pool_gives_each_randomiser_once():
    with RandomiserPool(KEY, workers=2) as pool:
        pool.reserve(50)
        assert 50 <= pool.stock < 58
        taken = [pool.take() for _ in range(80)]
        assert len(set(taken)) == 80
        assert all(KEY.decrypt(randomiser) == 0 for randomiser in taken)
        assert KEY.decrypt(pool.encrypt(42)) == 42


def test_a_pool_fills_in_the_background():
    with RandomiserPool(KEY) as pool:
        pool.reserve(16)
        deadline = time.monotonic() + 20
        while not all(made.done() for made in pool._pending) and time.monotonic() < deadline:
            time.sleep(0.01)
        before, pool.key = pool.key, None
        assert len({before.encrypt(1, pool.take()) for _ in range(16)}) == 16


def test_a_closed_pool_works_no_more():
    pool = RandomiserPool(weak_key(1024))
    pool.reserve(100_000)
    pool.close()
    assert pool.stock == 0
    wait_for_no_workers()


def test_a_dropped_pool_works_no_more():
    pool = RandomiserPool(weak_key(1024))
    pool.reserve(100_000)
    assert workers()
    del pool
    gc.collect()
    wait_for_no_workers()


def wait_for_no_workers():
    deadline = time.monotonic() + 20
    while workers() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert not workers()


def test_a_pool_needs_a_worker():
    with pytest.raises(ValueError, match="^workers must be a whole number, 1 or more; received 0$"):
        RandomiserPool(KEY, workers=0)


def test_a_pool_and_the_private_key_save_time(real_key):
    """At 2048 bits the private key takes a quarter, and the pool a thousandth, of what the public key takes."""
    public = PublicKey(real_key.n)
    pool = RandomiserPool(real_key)
    pool._ready = real_key.randomisers(200)
    plain = seconds(lambda: public.encrypt(1), 5)
    assert seconds(lambda: real_key.encrypt(1), 10) < plain / 2
    assert seconds(lambda: pool.encrypt(1), 200) < plain / 50
    pool.close()


def seconds(action, times):
    start = time.thread_time()
    for _ in range(times):
        action()
    return (time.thread_time() - start) / times

"""Numbers in the ring: encoding, sums with carries, range."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpn_bayes.secure import fixed_point

RING = 1 << 128


def as_integers(words):
    return [int(low) | int(high) << 64 for low, high in words.reshape(-1, 2)]


def expected(value):
    """Return the word of a number by Python's exact integers."""
    return rounded(value) % RING


def rounded(value):
    return round(Fraction(value) * 2**64)


@given(st.lists(st.floats(-(2.0**60), 2.0**60), min_size=1, max_size=5))
def test_words_are_exact_integers(values):
    assert as_integers(fixed_point.encode(values, 2)) == [expected(value) for value in values]


@given(st.lists(st.integers(0, RING - 1), min_size=1, max_size=40))
def test_sums_in_the_ring_are_those_of_integers(numbers):
    words = np.array([[[n & (2**64 - 1), n >> 64]] for n in numbers], dtype=np.uint64)
    assert as_integers(fixed_point.total(words)) == [sum(numbers) % RING]
    assert as_integers(fixed_point.negate(words[0])) == [-numbers[0] % RING]


@given(st.lists(st.floats(-1e17, 1e17), min_size=1, max_size=9))
def test_sums_are_those_of_exact_fractions(values):
    words = np.stack([fixed_point.encode(value, len(values)) for value in values])
    exact = sum(rounded(value) for value in values)
    assert fixed_point.decode(fixed_point.total(words)) == pytest.approx(exact / 2**64, rel=1e-15, abs=0)


def test_shapes_are_kept():
    for shape in ((), (3,), (2, 3), (0, 4)):
        values = np.arange(np.prod(shape)).reshape(shape) - 1.5
        words = fixed_point.encode(values, 3)
        assert words.shape == (*shape, 2) and words.dtype == np.uint64
        np.testing.assert_array_equal(fixed_point.decode(words), values)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 2.0**61, -(2.0**61)])
def test_what_could_wrap_around_is_refused_without_telling_it(value):
    with pytest.raises(
        ValueError, match=r"^every number of a sum over 2 clients must be below 2.31e\+18 in size; "
    ) as error:
        fixed_point.encode([1.0, value], 2)
    assert "received a larger one, or NaN" in str(error.value)


def test_the_largest_numbers_do_not_wrap_around():
    for clients in (2, 3, 64):
        value = np.nextafter(fixed_point.largest(clients), 0)
        for sign in (1, -1):
            words = np.stack([fixed_point.encode([sign * value], clients)] * clients)
            np.testing.assert_allclose(fixed_point.decode(fixed_point.total(words)), sign * value * clients, rtol=1e-15)

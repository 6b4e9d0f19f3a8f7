"""Look-ups, logarithms and K2 scores of shared counts, and the best of shared scores, against the same in the clear."""

from itertools import product

import numpy as np
import pytest
from scipy.special import gammaln

from gpn_bayes import estimators, scores
from gpn_bayes.private import lookup
from gpn_bayes.private.argmax import argmax_circuit, best_candidates
from gpn_bayes.private.logarithm import (
    degree_for,
    multiply_by_bits,
    normalising_circuit,
    plain_logarithms,
    share_logarithms,
    taylor_polynomial,
)
from gpn_bayes.private.lookup import Precision, log_factorials, look_up, table_length
from gpn_bayes.private.scoring import PRECISIONS, error_bound, plain_terms, share_terms
from gpn_bayes.secure.garbling import compute
from gpn_bayes.secure.link import ProtocolError, memory_links
from gpn_bayes.secure.session import Session
from gpn_bayes.secure.words import bits_of, reduced, signed, summed
from tests.learners import discrete
from tests.parties import LEAST_P, Pair, both, p_uniform, split

PRECISION = Precision(48, 28)


@pytest.fixture(scope="module")
def pair():
    return Pair()


def opened(shares, bits):
    return signed(shares[0] + shares[1], bits)


# Look-ups


@pytest.mark.parametrize("rows", [1, 2, 99, 1000, 1022, 1023, 10_000])
def test_tables_are_just_long_enough(rows):
    length = table_length(rows)
    assert rows + 2 <= length < 2 * (rows + 2)
    assert length & (length - 1) == 0


def test_a_thousand_look_ups(pair):
    rng = np.random.default_rng(1)
    table, counts = log_factorials(1024, PRECISION), rng.integers(0, 1024, 1000)
    shares = pair.run(lambda session, own: look_up(session, table, own, 48), split(counts, 10, rng))
    np.testing.assert_array_equal(opened(shares, 48), table[counts])
    for own in shares:
        assert p_uniform(own, 48) > LEAST_P


def test_shares_of_one_place_are_uniform(pair):
    """The same place, with the same shares, 2,000 times."""
    places = [np.full(2000, value, dtype=np.uint64) for value in (3, 4)]
    table = log_factorials(16, PRECISION)
    for own in pair.run(lambda session, place: look_up(session, table, place, 48), places):
        assert p_uniform(own, 48) > LEAST_P


@pytest.mark.parametrize("bits", [8, 40, 64])
@pytest.mark.parametrize("mode", ["sum", "xor"])
def test_every_pair_of_shares(pair, mode, bits):
    first, second = np.array(list(product(range(8), repeat=2)), dtype=np.uint64).T
    table = np.array([0, 1, -1, 5, -128, 127, 64, 3])
    shares = pair.run(lambda session, own: look_up(session, table, own, bits, split=mode), (first, second))
    places = (first + second) % 8 if mode == "sum" else first ^ second
    np.testing.assert_array_equal(opened(shares, bits), table[places])


def test_shares_of_places_are_reduced(pair):
    """Counts may be shared modulo more than the length of the table."""
    rng = np.random.default_rng(2)
    counts = rng.integers(0, 62, 50)
    table = log_factorials(64, PRECISION)
    shares = pair.run(lambda session, own: look_up(session, table, own, 48), split(counts, 40, rng))
    np.testing.assert_array_equal(opened(shares, 48), table[counts])


def test_look_ups_in_parts(pair, monkeypatch):
    monkeypatch.setattr(lookup, "_AT_ONCE", 100)
    table = np.arange(32) ** 2
    places = (np.arange(20, dtype=np.uint64), np.full(20, 30, dtype=np.uint64))
    shares = pair.run(lambda session, own: look_up(session, table, own, 16), places)
    assert opened(shares, 16).tolist() == [((place + 30) % 32) ** 2 for place in range(20)]


def test_log_factorials_against_products():
    table = np.ldexp(log_factorials(21, PRECISION).astype(float), -28)
    exact = np.log(np.cumprod([1.0, *range(1, 21)]))
    assert np.abs(table - exact).max() <= 2.0**-29


# Logarithms


def test_normalising_finds_the_next_power_of_two():
    circuit, numbers = normalising_circuit(7), np.arange(128, dtype=np.uint64)
    found = circuit.evaluate(bits_of(numbers, 7), bits_of(np.zeros_like(numbers), 7)).astype(int)
    number, deviation, exponent = (part.T @ 2 ** np.arange(len(part)) for part in np.split(found, [7, 14]))
    np.testing.assert_array_equal(number, numbers)
    deviation = np.where(deviation < 64, deviation, deviation - 128) / 128
    assert deviation[0] == exponent[0] == 0
    np.testing.assert_array_equal((2.0**exponent * (1 + deviation))[1:], numbers[1:])
    assert deviation.min() >= -0.25
    assert deviation.max() < 0.5


@pytest.mark.parametrize("fraction", [16, 28, 40])
@pytest.mark.parametrize("length", [4, 128, 16384])
def test_plain_logarithms_are_logarithms(length, fraction):
    found = np.ldexp(plain_logarithms(length, Precision(64, fraction)).astype(float), -fraction)
    assert found[0] == 0
    # Two roundings and what the polynomial leaves out.
    assert np.abs(found[1:] - np.log(np.arange(1, length))).max() <= 1.5 * 2.0**-fraction


def test_degrees_are_as_low_as_may_be():
    ends = np.array([-0.25, 0.5])
    for fraction in (10, 28, 40):
        degree = degree_for(fraction)
        errors = [np.abs(taylor_polynomial(ends, d) - np.log1p(ends)).max() for d in (degree, degree - 2)]
        assert errors[0] < 2.0 ** -(fraction + 1) < errors[1]


@pytest.mark.parametrize("precision", [PRECISION, PRECISIONS["paper"]], ids=str)
def test_a_thousand_logarithms(pair, precision):
    rng = np.random.default_rng(3)
    numbers = np.concatenate([[0, 1, 2, 3, 1023], rng.integers(0, 1024, 995)])
    first, second = pair.run(
        lambda session, own: share_logarithms(session, own, 1024, precision), split(numbers, 10, rng)
    )
    plain = plain_logarithms(1024, precision)
    np.testing.assert_array_equal(opened((first.logarithms, second.logarithms), precision.bits), plain[numbers])
    np.testing.assert_array_equal(opened((first.products, second.products), precision.bits), numbers * plain[numbers])
    for party in (first, second):
        assert p_uniform(party.logarithms, precision.bits) > LEAST_P
        assert p_uniform(party.products, precision.bits) > LEAST_P


def test_products_of_bits_and_values(pair):
    rng = np.random.default_rng(4)
    bits, values = rng.integers(0, 2, (3, 200), dtype=np.uint8), rng.integers(-(2**30), 2**30, (3, 200))
    mask = rng.integers(0, 2, (3, 200), dtype=np.uint8)
    shares = pair.run(
        lambda session, bit, value: multiply_by_bits(session, bit, value, 40),
        (mask, mask ^ bits),
        split(values, 40, rng),
    )
    np.testing.assert_array_equal(opened(shares, 40), bits * values)


# Scores


@pytest.mark.parametrize("score", PRECISIONS)
def test_terms_open_to_the_plain_ones(pair, score):
    rng = np.random.default_rng(5)
    cells = np.concatenate([rng.integers(0, 4, (40, 2)), rng.integers(0, 501, (40, 2))])
    margins = cells.sum(axis=1)
    shares = pair.run(
        lambda session, *counts: share_terms(session, *counts, 1000, score),
        split(cells, 10, rng),
        split(margins, 10, rng),
    )
    plain, bits = plain_terms(1000, score), PRECISIONS[score].bits
    np.testing.assert_array_equal(opened([part.cells for part in shares], bits), plain.cells[cells])
    np.testing.assert_array_equal(opened([part.margins for part in shares], bits), plain.margins[margins])


def family_counts(table, node, parents):
    """Return the rows of each level of a node, under each configuration of the parents."""
    places = table[[*parents, node]].to_numpy() @ (2 ** np.arange(len(parents) + 1)[::-1])
    return np.bincount(places, minlength=2 ** (len(parents) + 1)).reshape(-1, 2)


@pytest.mark.parametrize("parents", [[], ["either"], ["asia", "tub", "lung"]])
def test_plain_terms_make_the_scores_of_the_package(parents):
    table, known = discrete("asia")
    terms, counts = plain_terms(len(table)), family_counts(table, "xray", parents)
    total = terms.cells[counts].sum() + terms.margins[counts.sum(axis=1)].sum()
    expected = scores.K2(known["card"]).bind(table).local("xray", parents)
    difference = abs(np.ldexp(float(total), -PRECISIONS["exact"].fraction) - expected)
    assert difference <= error_bound(len(table), "exact", len(counts)) + 1e-11 * abs(expected)


def test_the_papers_terms_are_its_formula():
    """The function g of Wright & Yang (2004), with 0 for logarithms of 0."""

    def g(counts):
        total = 0.0
        for a0, a1 in counts:
            t = a0 + a1 + 1
            log = {x: np.log(max(x, 1)) for x in (a0, a1, t)}
            total += 0.5 * (log[a0] + log[a1] - log[t]) + a0 * log[a0] + a1 * log[a1] - t * log[t]
        return total

    terms, rng = plain_terms(200, "paper"), np.random.default_rng(6)
    for _ in range(50):
        counts = rng.multinomial(200, rng.dirichlet(np.full(16, 0.2))).reshape(8, 2)
        found = terms.cells[counts].sum() + terms.margins[counts.sum(axis=1)].sum()
        assert abs(np.ldexp(float(found), -40) - g(counts)) <= error_bound(200, "paper", 8) + 1e-11


def test_bounds_are_hardly_larger_than_the_largest_errors():
    """Of all pairs of counts, some have three rounding errors of almost half a unit, of one sign."""
    a0, a1 = np.array([(a0, a1) for a0 in range(61) for a1 in range(61)]).T
    terms = plain_terms(120)
    found = terms.cells[a0] + terms.cells[a1] + terms.margins[a0 + a1]
    exact = gammaln(a0 + 1.0) + gammaln(a1 + 1.0) - gammaln(a0 + a1 + 2.0)
    largest = np.abs(np.ldexp(found.astype(float), -PRECISIONS["exact"].fraction) - exact).max()
    assert 0.8 * error_bound(120, "exact", 1) < largest <= error_bound(120, "exact", 1)


def test_bounds_hold_at_ten_thousand_rows():
    for score in PRECISIONS:
        assert error_bound(10_000, score, 8) < 1e-6
        assert np.abs(plain_terms(10_000, score).margins).max() < 2.0 ** (PRECISIONS[score].bits - 1)


def test_an_unknown_score_is_refused(pair):
    with pytest.raises(ValueError, match="^score must be one of exact, paper; received 'bic'$"):
        share_terms(pair.sessions[0], np.zeros(1), np.zeros(1), 10, "bic")
    with pytest.raises(ValueError, match="^score must be one of exact, paper; received 'bic'$"):
        plain_terms(10, "bic")


# The best candidate


def test_a_thousand_comparisons(pair):
    rng = np.random.default_rng(7)
    values = rng.integers(-(2**47), 2**47, (2, 1000))
    values[1, :300] = values[0, :300] + rng.integers(-1, 2, 300)
    values[:, -2:] = [[-(2**47), 2**47 - 1], [2**47 - 1, -(2**47)]]
    for found in pair.run(lambda session, own: best_candidates(session, own, 48), split(values, 48, rng)):
        np.testing.assert_array_equal(found, values[1] > values[0])


@pytest.mark.parametrize(("candidates", "count"), [(3, 334), (7, 333), (8, 333)])
def test_a_thousand_argmaxes(pair, candidates, count):
    """Few distinct values, so that there are many ties: the first wins."""
    rng = np.random.default_rng(candidates)
    values = rng.integers(-3, 4, (candidates, count)) * 2**20
    for found in pair.run(lambda session, own: best_candidates(session, own, 48), split(values, 48, rng)):
        np.testing.assert_array_equal(found, values.argmax(axis=0))


def test_a_column_may_repeat_its_first_row(pair):
    values = np.array([[5, -5], [5, -4], [5, -5]])
    found, _ = pair.run(
        lambda session, own: best_candidates(session, own, 8), split(values, 8, np.random.default_rng(1))
    )
    assert found.tolist() == [0, 1]


def test_one_candidate_needs_no_message(pair):
    record = pair.recorded(lambda session, own: best_candidates(session, own, 48), (np.zeros((1, 4)),) * 2)
    assert record == [[], []]


def test_a_place_that_is_none_is_refused():
    """Three candidates, and the other party sends a share that makes place 3 of the opened bits."""
    links = memory_links()
    leader, follower = both(lambda: Session(links[0], True), lambda: Session(links[1], False))
    values = np.array([[1], [7], [2]], dtype=np.uint64)

    def cheat():
        own = bits_of(np.zeros_like(values), 8).transpose(1, 0, 2).reshape(24, 1)
        follower.open_bits(compute(follower, argmax_circuit(3, 8), own) ^ np.array([[0], [1]], dtype=np.uint8))

    rule = "^the opened index must be that of a candidate; it is out of range$"
    with pytest.raises(ProtocolError, match=rule):
        both(lambda: best_candidates(leader, values, 8), cheat)


# All together


def greedy(counts_of, order, most, choose):
    """Return the parents that K2 finds, with a rule that chooses among the counts of several families."""
    found = {}
    for place, node in enumerate(order):
        parents = []
        while len(parents) < most:
            others = sorted(set(order[:place]) - set(parents))
            winner = choose([counts_of(node, parents), *(counts_of(node, [*parents, other]) for other in others)])
            if winner == 0:
                break
            parents.append(others[winner - 1])
        found[node] = sorted(parents)
    return found


def shared_choice(pair, n_rows, score, rng):
    """Return a rule for `greedy` that works on shares of the counts."""

    def party(session, *families):
        every = np.concatenate([cells.ravel() for cells in families])
        margins = np.concatenate([cells.sum(axis=1) for cells in families])
        terms = share_terms(session, every, margins, n_rows, score)
        ends, margin_ends = (
            np.cumsum(sizes)[:-1] for sizes in ([f.size for f in families], [len(f) for f in families])
        )
        sums = [np.split(terms.cells, ends), np.split(terms.margins, margin_ends)]
        bits = PRECISIONS[score].bits
        totals = np.array([[summed(parts, bits)] for parts in zip(*sums, strict=True)])
        return best_candidates(session, totals, bits)

    def choose(families):
        winners = pair.run(party, *(split(counts, 10, rng) for counts in families))
        assert winners[0] == winners[1]
        return int(winners[0][0])

    return choose


def plain_choice(n_rows, score):
    terms = plain_terms(n_rows, score)
    return lambda families: int(
        np.argmax([terms.cells[counts].sum() + terms.margins[counts.sum(axis=1)].sum() for counts in families])
    )


@pytest.mark.parametrize("score", PRECISIONS)
def test_k2_on_shares_finds_the_network_of_k2(pair, score):
    codes, known = discrete("asia")
    order = [list(codes.columns).index(name) for name in known["order"]]
    table = codes.set_axis(range(8), axis=1)
    choices = (shared_choice(pair, 1000, score, np.random.default_rng(1)), plain_choice(1000, score))
    shared, plain = (greedy(lambda *family: family_counts(table, *family), order, 3, choose) for choose in choices)
    assert shared == plain
    assert any(shared.values())
    if score == "exact":
        learner = estimators.K2(scores.K2(known["card"]), order=order, max_parents=3).fit(codes)
        assert shared == {node: np.flatnonzero(learner.adjacency_[:, node]).tolist() for node in range(8)}


def test_ties_are_broken_as_by_k2(pair):
    """One column is the opposite of another: both learners take the first of them."""
    rng = np.random.default_rng(11)
    column, other = rng.integers(0, 2, (2, 80))
    codes = discrete("asia")[0].iloc[:80, :4].set_axis(range(4), axis=1)
    for place, values in enumerate([other, column, 1 - column, np.where(rng.random(80) < 0.9, column, 1 - column)]):
        codes[place] = values
    order = [2, 1, 0, 3]
    shared = greedy(lambda *family: family_counts(codes, *family), order, 2, shared_choice(pair, 80, "exact", rng))
    learner = estimators.K2(scores.K2(dict.fromkeys(map(str, range(4)), 2)), order=order, max_parents=2)
    learner.fit(codes.rename(columns=str))
    assert shared == {node: np.flatnonzero(learner.adjacency_[:, node]).tolist() for node in range(4)}
    assert shared[3] == [1]


# What messages tell


def test_lengths_and_order_of_messages_tell_nothing_of_the_inputs(pair):
    rng = np.random.default_rng(12)
    for score in PRECISIONS:
        bits = PRECISIONS[score].bits

        def party(session, cells, margins, score=score, bits=bits):
            terms = share_terms(session, cells, margins, 100, score)
            # Whatever the scores are, place 0 is opened: the inputs that open the same must look the same.
            first = np.full(3, reduced(np.array(2 ** (bits - 2)), bits) * np.uint64(session.leads))
            return best_candidates(session, np.stack([first, terms.margins, terms.margins]), bits)

        records = []
        for cells in (np.zeros((3, 2), dtype=int), rng.integers(1, 50, (3, 2))):
            counts = (split(cells, 7, rng), split(cells.sum(axis=1), 7, rng))
            records.append(pair.recorded(party, *counts))
        assert records[0] == records[1]
        assert len(records[0][0]) > 4


def test_comparison_circuits_are_small():
    """Per candidate one addition; per pair one comparison and, but for the last, one selection."""
    bits, candidates = 48, 8
    expected = candidates * (bits - 1) + (candidates - 1) * bits + (candidates - 2) * bits
    assert expected <= argmax_circuit(candidates, bits).n_conjunctions <= expected + 2 * candidates


@pytest.mark.parametrize("score", PRECISIONS)
def test_margins_may_be_known_already(pair, score):
    """Counts of margins that were looked up for another node needn't be looked up again."""
    none, cells = np.empty(0, dtype=np.uint64), np.array([4, 9])
    counts = split(cells, 4, np.random.default_rng(13))
    shares = pair.run(lambda session, own: share_terms(session, own, none, 14, score), counts)
    bits = PRECISIONS[score].bits
    np.testing.assert_array_equal(opened([part.cells for part in shares], bits), plain_terms(14, score).cells[cells])
    assert shares[0].margins.shape == (0,)


@pytest.mark.parametrize("score", PRECISIONS)
def test_no_counts_at_all(pair, score):
    none = np.empty((0, 2), dtype=np.uint64)
    for part in pair.run(lambda session: share_terms(session, none, none, 14, score)):
        assert part.cells.shape == part.margins.shape == (0, 2)

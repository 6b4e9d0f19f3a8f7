"""Private K2 as a whole, in two threads: the network of plain K2, what messages tell, and parties that don't agree."""

import numpy as np
import pandas as pd
import pytest
from nacl import bindings

from gpn_bayes import estimators, scores
from gpn_bayes.private import schedule
from gpn_bayes.private.costs import cost_table
from gpn_bayes.private.schedule import encryptions_ahead, expectations, most_look_ups, sets_ahead
from gpn_bayes.private.tables import read_table
from gpn_bayes.secure.link import ProtocolError
from tests.learners import discrete
from tests.parties import Noted, Spoiled, run_pair
from tests.private_runs import (
    KEY,
    check_against_plain,
    check_pair,
    learn_pair,
    parents_of,
    party,
    plain_k2,
    random_table,
    settings,
    whole_number_score,
)

SCORES = ("exact", "paper")


# The same network as plain K2


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("cut", [4, 1])
def test_asia(cut, score):
    codes, known = discrete("asia")
    found = check_pair(codes.iloc[:, :cut], codes.iloc[:, cut:], settings(known["order"], score=score))
    assert parents_of(found) == plain_k2(codes, known["order"], 3, whole_number_score(1000, score))[0]
    if score == "exact":
        expected = known["ref_K2alg_K2score_trueorder_u3"]["parents"]
        assert parents_of(found) == {child: sorted(parents) for child, parents in expected.items()}


@pytest.mark.more("repeats whole protocols for every score")
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("seed", range(3))
def test_random_networks(seed, score):
    codes, order = random_table(seed, rows=100 + 100 * seed)
    check_against_plain(codes, order, cut=(4, 1, 6)[seed], score=score)


def test_the_learner_of_the_package_finds_the_same():
    codes, order = random_table(11, n=5, rows=300)
    found = check_pair(codes.iloc[:, :2], codes.iloc[:, 2:], settings(order, max_parents=2))
    learner = estimators.K2(scores.K2(dict.fromkeys(codes, 2)), order=order, max_parents=2).fit(codes)
    np.testing.assert_array_equal(found.adjacency, learner.adjacency_)


def twins(rows=80):
    """Return a table in which two columns, of different parties, are as good parents of a third."""
    rng = np.random.default_rng(11)
    column, other = rng.integers(0, 2, (2, rows))
    child = np.where(rng.random(rows) < 0.9, column, 1 - column)
    return pd.DataFrame({"other": other, "twin": column, "opposite": 1 - column, "child": child})


@pytest.mark.more("repeats whole protocols for every score")
@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("names", [["twin", "other", "opposite", "child"], ["opposite", "other", "twin", "child"]])
def test_of_equal_candidates_the_first_column_wins(names, score):
    codes = twins()[names]
    order = ["opposite", "twin", "other", "child"]
    found = check_pair(codes.iloc[:, :2], codes.iloc[:, 2:], settings(order, score=score, max_parents=1))
    assert parents_of(found)["child"] == [names[0]]
    learner = estimators.K2(scores.K2(dict.fromkeys(codes, 2)), order=order, max_parents=1).fit(codes)
    np.testing.assert_array_equal(found.adjacency, learner.adjacency_)


@pytest.mark.parametrize("most", [0, 1, 5])
def test_limits_of_parents(most):
    codes, order = random_table(12, n=4, rows=60)
    found = check_pair(codes.iloc[:, :3], codes.iloc[:, 3:], settings(order, max_parents=most))
    assert parents_of(found) == plain_k2(codes, order, most, whole_number_score(60, "exact"))[0]
    assert found.adjacency.sum(axis=0).max() <= most


def test_families_that_are_counted_when_they_are_needed(monkeypatch):
    """With many variables, only small sets are counted ahead."""
    monkeypatch.setattr(schedule, "_MAX_AHEAD", 10)
    assert len(sets_ahead(6, 3)[0]) == 2
    codes, order = random_table(13, n=6, rows=150)
    check_against_plain(codes, order, cut=3, score="exact")


def test_rows_in_any_order_and_levels_of_any_name():
    codes, order = random_table(14, n=4, rows=90)
    codes.index = [f"k{i}" for i in range(90)]
    plain = check_pair(codes.iloc[:, :2], codes.iloc[:, 2:], settings(order))
    second = codes.iloc[:, 2:].sample(frac=1, random_state=1).replace({0: "no", 1: "yes"})
    keyed = [table.rename_axis("id").reset_index() for table in (codes.iloc[:, :2].astype(bool).iloc[::-1], second)]
    found = check_pair(*keyed, settings(order), key="id")
    np.testing.assert_array_equal(found.adjacency, plain.adjacency)


@pytest.mark.more("repeats whole protocols for every score")
@pytest.mark.parametrize("score", SCORES)
def test_a_single_common_row(score):
    """Columns vary in either table, and don't in what both have."""
    first = pd.DataFrame({"a": [0, 1], "b": [1, 0]}, index=["x", "y"])
    second = pd.DataFrame({"c": [0, 1]}, index=["y", "z"])
    found = check_pair(first, second, settings("abc", align="intersection", score=score))
    assert found.rows == 1
    assert found.adjacency.sum() == 0


def test_intersection_of_keys():
    codes, order = random_table(15, n=4, rows=120)
    first, second = codes.iloc[:100, :2], codes.iloc[20:, 2:].sample(frac=1, random_state=2)
    found = check_pair(first, second, settings(order, align="intersection"))
    assert found.rows == 80
    expected = plain_k2(codes.iloc[20:100], order, 3, whole_number_score(80, "exact"))[0]
    assert parents_of(found) == expected


# What messages tell


@pytest.mark.more("repeats whole protocols for every score")
@pytest.mark.parametrize("score", SCORES)
def test_inputs_that_open_the_same_look_the_same(score):
    """Two tables with one network: kinds, lengths and order of all messages are equal, and their contents aren't."""
    codes, order = random_table(16, n=5, rows=200)
    records, payloads, networks = [], [], []
    # The levels of columns swapped: other bits and other counts, the same network.
    for table in (codes, codes.assign(**{name: 1 - codes[name] for name in codes.columns[::2]})):
        ends = {}

        def note(end, side, ends=ends):
            ends[side] = Noted(end)
            return ends[side]

        found, _ = learn_pair(
            table.iloc[:, :2],
            table.iloc[:, 2:],
            settings(order, score=score),
            wrap_alice=lambda end, note=note: note(end, 0),
            wrap_bob=lambda end, note=note: note(end, 1),
        )
        networks.append(found.adjacency.tolist())
        records.append([ends[side].record for side in (0, 1)])
        payloads.append({content for side in (0, 1) for content in ends[side].messages if len(content[1]) > 31})
    assert networks[0] == networks[1]
    assert np.sum(networks[0]) > 1
    assert records[0] == records[1]
    # The key would be fresh too, if it weren't the test's.
    assert {kind for kind, _ in payloads[0] & payloads[1]} == {"settings", "paillier key", "network digest"}


def test_only_places_are_opened():
    codes, order = random_table(17, n=4, rows=100)
    ends = []

    def note(end):
        ends.append(Noted(end))
        return ends[-1]

    found, _ = learn_pair(codes.iloc[:, :2], codes.iloc[:, 2:], settings(order), wrap_alice=note)
    opened = [length for kind, length in ends[0].shape() if kind == "opened shares"]
    steps = [set(parents_of(found)[node]) for node in order]
    assert len(opened) <= 3
    # Places among up to four candidates have two bits, a byte each, for every node that hasn't stopped.
    assert opened[0] == 2 * 3
    assert all(length <= 2 * sum(len(parents) >= step for parents in steps[1:]) for step, length in enumerate(opened))


# What it costs


def test_costs_and_progress():
    codes, order = random_table(18, n=4, rows=100)
    tables = [read_table(codes.iloc[:, :2]), read_table(codes.iloc[:, 2:])]
    known, shares = settings(order), []
    mine, theirs = run_pair(party(tables[0], known, True, advance=shares.append), party(tables[1], known, False))
    table = cost_table(mine.costs)
    assert list(table.index) == ["agreement", "alignment", "transfers", "counts", "scores", "comparison"]
    assert table["share"].sum() == pytest.approx(1)
    others = cost_table(theirs.costs)
    np.testing.assert_array_equal(table["bytes_sent"], others["bytes_received"])
    np.testing.assert_array_equal(table["messages"], others["messages"])
    assert sum(shares) == pytest.approx(1)
    assert len(shares) > 3
    assert min(shares) >= 0


def test_expectations_are_upper_bounds_of_bytes():
    codes, order = random_table(19, rows=120)
    known = settings(order)
    found = check_pair(codes.iloc[:, :4], codes.iloc[:, 4:], known)
    expected = expectations(known, 4, 4, 120)
    for stage in ("counts", "scores"):
        spent = found.costs[stage].bytes_sent + found.costs[stage].bytes_received
        # The public key comes on top of the ciphertexts.
        assert 0 < spent <= expected[stage].bytes + KEY.bits // 8
    sent = found.costs["counts"].bytes_sent - KEY.bits // 8
    assert sent == encryptions_ahead(known, 4, 4, 120) * KEY.ciphertext_bytes


def test_most_look_ups_by_enumeration():
    total = 0
    for predecessors in range(7):
        for parents in range(3):
            total += max(0, predecessors - parents) * (2 ** (parents + 2) + 2 ** (parents + 1))
    assert most_look_ups(7, 3) == total


# Parties that don't agree


@pytest.mark.parametrize(
    ("others", "message"),
    [
        ({"max_parents": 2}, "both parties must have the same max_parents; 3 here, 2 there"),
        ({"score": "paper"}, "both parties must have the same score; 'exact' here, 'paper' there"),
        ({"key_bits": 1024}, "both parties must have the same key_bits; 512 here, 1024 there"),
        ({"align": "intersection"}, "both parties must have the same align; 'digest' here, 'intersection' there"),
        ({"order": ("a", "c", "b")}, "both parties must have the same order; at position 2, 'b' here, 'c' there"),
        ({"order": ("a", "b")}, "both parties must have the same order; 3 variables here, 2 there"),
    ],
)
def test_other_settings(others, message):
    table = pd.DataFrame({"a": [0, 1], "b": [1, 0], "c": [0, 1]})
    known = settings("abc")
    mine, theirs = learn_pair(table[["a"]], table[["b", "c"]], known, settings(**{"order": known.order, **others}))
    assert (type(mine), str(mine)) == (ValueError, message)
    assert type(theirs) is ValueError
    rule, _, _ = message.partition(";")
    assert str(theirs).startswith(rule + ";")


@pytest.mark.parametrize(
    ("first", "second", "order", "message"),
    [
        ("ab", "bc", "abc", "every variable of the order must belong to one party; 'b' belongs to both"),
        ("a", "b", "abc", "every variable of the order must belong to one party; 'c' belongs to none"),
        ("ab", "cd", "abc", "an order must list every variable once; 'd' is missing"),
    ],
)
def test_variables_that_belong_to_both_or_none(first, second, order, message):
    table = pd.DataFrame({name: [0, 1] for name in "abcd"})
    for found in learn_pair(table[list(first)], table[list(second)], settings(order)):
        assert (type(found), str(found)) == (ValueError, message)


def test_other_rows():
    first, second = pd.DataFrame({"a": [0, 1, 1]}), pd.DataFrame({"b": [0, 1]})
    mine, theirs = learn_pair(first, second, settings("ab"))
    assert str(mine) == "both tables must have the same number of rows; 3 here, 2 there"
    assert str(theirs) == "both tables must have the same number of rows; 2 here, 3 there"


@pytest.mark.parametrize(
    ("align", "message"),
    [
        ("digest", "both tables must have the same keys; the digests of the keys differ"),
        ("intersection", "the two tables must have keys in common; they have none"),
    ],
)
def test_other_keys(align, message):
    first = pd.DataFrame({"a": [0, 1]}, index=["x", "y"])
    second = pd.DataFrame({"b": [0, 1]}, index=["v", "w"])
    for found in learn_pair(first, second, settings("ab", align=align)):
        assert (type(found), str(found)) == (ValueError, message)


def test_two_first_parties():
    table = read_table(pd.DataFrame({"a": [0, 1]}))
    for found in run_pair(*[party(table, settings("ab"), True)] * 2):
        assert str(found) == "one party must be the first and the other the second; both are the same"


VERSION_RULE = "both parties must use the same version of the protocol; 1 here, another there"
SETTINGS_RULE = "settings must be those of a private run; received something else"


@pytest.mark.parametrize(
    ("payload", "error", "message"),
    [
        (b"\xff\x00", ProtocolError, SETTINGS_RULE),
        (b"[]", ProtocolError, SETTINGS_RULE),
        (b"[" * 100_000, ProtocolError, SETTINGS_RULE),
        (b'{"version": 1}', ProtocolError, SETTINGS_RULE),
        (
            b'{"version": 2}',
            ValueError,
            "both parties must use the same version of the protocol; 1 here, another there",
        ),
    ],
)
def test_settings_that_are_none(payload, error, message):
    table = pd.DataFrame({"a": [0, 1], "b": [1, 0]})
    _, theirs = learn_pair(
        table[["a"]],
        table[["b"]],
        settings("ab"),
        wrap_alice=lambda end: Spoiled(end, "settings", lambda kind, content: (kind, payload)),
    )
    assert (type(theirs), str(theirs)) == (error, message)


# Parties that don't keep to the protocol


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        (
            "base transfer offer",
            lambda kind, content: (kind, bytes([2] + 31 * [0])),
            "points must be on the curve and of its prime order; received one that isn't",
        ),
        (
            "base transfer offer",
            lambda kind, content: (kind, bytes(32)),
            "points must be on the curve and of its prime order; received one that isn't",
        ),
        (
            "paillier key",
            lambda kind, content: (kind, content[:-1] + bytes([content[-1] & 254])),
            "a public key must be an odd composite number of 512 bits; received another",
        ),
        (
            "encrypted bits",
            lambda kind, content: (kind, bytes(len(content))),
            "a ciphertext must be coprime to the modulus; received one that isn't",
        ),
        (
            "garbled circuit",
            lambda kind, content: (kind, content[:-16]),
            "a message of kind 'garbled circuit' must have",
        ),
        (
            "opened shares",
            lambda kind, content: ("chatter", content),
            "a message of kind 'opened shares' was expected; received one of kind 'chatter'",
        ),
        (
            "network digest",
            lambda kind, content: (kind, content[::-1]),
            "both parties must find the same network; they found different ones",
        ),
    ],
    ids=["curve", "small order", "key", "ciphertext", "length", "kind", "result"],
)
def test_a_party_that_sends_nonsense(kind, change, message):
    codes, order = random_table(20, n=3, rows=40)
    codes.index = [f"patient-{i}" for i in range(40)]
    mine, theirs = learn_pair(
        codes.iloc[:, :1], codes.iloc[:, 1:], settings(order), wrap_alice=lambda end: Spoiled(end, kind, change)
    )
    assert type(theirs) is ProtocolError
    assert message in str(theirs)
    # The other meets a mere end, or what it takes for an error too; it has no result, unless all was done.
    assert isinstance(mine, ProtocolError) or kind == "network digest"
    assert "patient" not in f"{mine!r} {theirs!r} {theirs.__cause__!r}"


def test_the_point_of_the_test_is_no_point():
    assert not bindings.crypto_core_ed25519_is_valid_point(bytes([2] + 31 * [0]))


# Tables and settings that can't be


@pytest.mark.parametrize(
    ("frame", "key", "message"),
    [
        ({"a": [0, 1, 2]}, None, "every column must have two different values; column 'a' has 3"),
        ({"a": [1, 1, 1]}, None, "every column must vary; column 'a' is constant"),
        ({"a": [0, None, 1]}, None, "every value must be present; column 'a' has 1 missing"),
        ({"a": [0, 1]}, "id", "the key must be a column of the table; 'id' is not one"),
        ({"id": [1, 2]}, "id", "a party's table must have a variable of the order besides the key; received none"),
        ({"id": [5, 5], "a": [0, 1]}, "id", "every row must have its own key; received some keys twice"),
        ({"id": [0.5, 1], "a": [0, 1]}, "id", "keys must be texts or whole numbers; received one of type float"),
        ({"id": ["x", None], "a": [0, 1]}, "id", "every row must have a key; some are missing"),
        ({"a": []}, None, "a party's table must have 1 to 100000 rows; received 0"),
    ],
)
def test_tables_that_are_refused(frame, key, message):
    with pytest.raises(ValueError) as refusal_text:
        read_table(pd.DataFrame(frame), key)
    assert str(refusal_text.value) == message


def test_what_is_no_table():
    with pytest.raises(ValueError, match="^a party's table must be a DataFrame; received ndarray$"):
        read_table(np.zeros((2, 2)))
    with pytest.raises(ValueError, match="^column names must differ; 'a' appears more than once$"):
        read_table(pd.DataFrame([[0, 1], [1, 0]], columns=["a", "a"]))


def test_printing_a_table_shows_no_value():
    assert repr(read_table(pd.DataFrame({"a": [0, 1]}, index=["secret", "other"]))) == "PartyTable(1 columns, 2 rows)"


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"order": ("a",)}, "an order must list two variables or more by their names; received something else"),
        ({"order": ("a", "b", "a")}, "an order must list every variable once; 'a' appears more than once"),
        ({"max_parents": -1}, "max_parents must be a whole number, 0 or more; received -1"),
        ({"score": "stirling"}, "score must be one of exact, paper; received 'stirling'"),
        ({"align": "hope"}, "align must be one of digest, intersection; received 'hope'"),
        ({}, "key_bits must be 2048 (112-bit security) or 3072 (128-bit security); received 512"),
    ],
)
def test_settings_that_are_refused(changed, message):
    with pytest.raises(ValueError) as refusal_text:
        settings(**{"order": ("a", "b"), **changed}).check()
    assert str(refusal_text.value) == message

"""Numbers of numpy stand in messages as plain numbers."""

import networkx as nx
import numpy as np
import pytest

import gpn_bayes as gpn
from gpn_bayes import datasets, graphs, simulate
from gpn_bayes.estimators import PC, Exact
from gpn_bayes.estimators.orders import read_order
from gpn_bayes.scores import CG, GP
from gpn_bayes.secure.paillier import check_key_bits
from gpn_bayes.secure.words import check_bits
from gpn_bayes.wire.limits import Limits

DATA = simulate.linear(nx.DiGraph([("a", "b"), ("c", "b")]), 60, random_seed=1)
NUMBER, COUNT, WORD = np.float64(-1.5), np.int64(7), np.str_("q")


@pytest.fixture(scope="module")
def post():
    return gpn.sample(DATA, score="bge", draws=20, random_seed=1, progressbar=False)


REFUSED = {
    "CG": (lambda: CG(ess=NUMBER), "ess must be positive and finite; received -1.5"),
    "CG in words": (lambda: CG(variances=COUNT), "variances must be one of .*; received 7"),
    "GP": (lambda: GP(mu=(np.float64(0), NUMBER)), r"mu must have .*; received \(0\.0, -1\.5\)"),
    "a row's weight": (lambda: gpn.Table(DATA, weights=COUNT), ".* or a sequence; received 7"),
    "a sign": (lambda: gpn.Table(DATA, decimal=COUNT), "decimal must be '.' or ','; received 7"),
    "a penalty": (
        lambda: gpn.Table(DATA, target_penalty=np.float64(0.5)),
        "target_penalty needs contexts; received 0.5 without them",
    ),
    "limits": (
        lambda: Limits(deadline_seconds=NUMBER),
        "limits must be positive numbers; received deadline_seconds = -1.5",
    ),
    "keys": (lambda: check_key_bits(COUNT), "key_bits must be .*; received 7"),
    "words": (lambda: check_bits(COUNT), "bits must be .*; received 7"),
    "Exact": (lambda: Exact(gap=NUMBER).fit(DATA), "gap must be a number, 0 or more; received -1.5"),
    "time": (lambda: Exact(time_limit=NUMBER).fit(DATA), "time_limit must be a positive .*; received -1.5"),
    "an order": (
        lambda: read_order([np.int64(0), COUNT], ["a", "b"]),
        ".* variables of the data; 7 is not one",
    ),
    "a test": (lambda: PC(test=NUMBER).fit(DATA), "test must be .*; received -1.5"),
    "edges": (lambda: datasets.sachs_consensus(COUNT), "the consensus network has 17 or 20 edges; received 7"),
    "a node": (lambda: graphs.node_index(COUNT, ["a", "b"]), "every node must be one of the variables; 7 is not"),
    "magnitudes": (
        lambda: simulate.linear(nx.DiGraph([("a", "b")]), 9, weight_range=(NUMBER, np.float64(1)), random_seed=1),
        r".* must be \(low, high\) .*; received \(-1\.5, 1\.0\)",
    ),
    "tiers": (
        lambda: gpn.sample(DATA, tiers=np.array([0, 1, 1])),
        "tiers must be groups of names or a mapping of names to numbers; received the group 0",
    ),
    "a column of the table": (
        lambda: gpn.Table(DATA, weights=WORD).read(),
        "weights must be a column .*; received 'q', which isn't a column",
    ),
    "a move": (lambda: gpn.samplers.Partition(moves=[(WORD, 0.5)]), "the built-in moves are .*; received 'q'"),
    "candidates": (lambda: gpn.sample(DATA, space=gpn.Space(candidates={"a": COUNT})), ".*; received 7 for 'a'"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_numbers_of_numpy_are_shown_plainly(case):
    asked, message = REFUSED[case]
    with pytest.raises(ValueError, match=f"^{message}$"):
        asked()


def test_questions_show_them_plainly(post):
    first = np.int64(0)
    with pytest.raises(ValueError, match=r"^an order names each variable once; received \[0, 0\]$"):
        post.order_probability(first, first)
    for ask in (post.probability, post.edge_probability):
        with pytest.raises(ValueError, match=r"^a question must read .*; received 'q'$"):
            ask(WORD)
    with pytest.raises(ValueError, match=r"^a question names each variable once; received 'a -> a'$"):
        post.probability(np.str_("a -> a"))
    with pytest.raises(ValueError, match=r"^the path must be a text or a Path; received -1\.5$"):
        post.export(NUMBER)


def test_whole_numbers_of_numpy_are_limits_too():
    assert Limits(message_megabytes=np.int64(1)).message_bytes == 1 << 20

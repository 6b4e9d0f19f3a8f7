"""Networks of discrete variables: what is drawn from them, and how likely they make it."""

from itertools import product
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from gpn_bayes import simulate
from gpn_bayes.data import Dataset
from gpn_bayes.simulate import DiscreteNetwork

pytestmark = pytest.mark.more("repeats whole runs for every score and setting")

ASIA = Path(__file__).parent / "reference" / "discrete" / "asia.bif"
DIAMOND = nx.DiGraph([("d", "b"), ("d", "a"), ("b", "c"), ("a", "c")])
COUGH = {
    "levels": {"smoke": ["yes", "no"], "cough": ["often", "seldom", "never"]},
    "parents": {"cough": ["smoke"]},
    "tables": {"smoke": [0.3, 0.7], "cough": [[0.6, 0.3, 0.1], [0.1, 0.2, 0.7]]},
}


def joint(network: DiscreteNetwork) -> dict[tuple[str, ...], float]:
    """Return the probability of every assignment, by multiplying entries of the tables one at a time."""
    found = {}
    for row in product(*(network.levels[name] for name in network.names)):
        value = dict(zip(network.names, row, strict=True))
        probability = 1.0
        for name in network.names:
            place = tuple(network.levels[v].index(value[v]) for v in (*network.parents[name], name))
            probability *= network.tables[name][place]
        found[row] = probability
    return found


def check_frequencies(frame: pd.DataFrame, expected: dict[tuple[str, ...], float]) -> None:
    """Check that every assignment comes as often as it should, within 4 standard errors, and no impossible one."""
    rows = len(frame)
    counts = frame.astype(str).value_counts()
    for row, p in expected.items():
        found = counts.get(row, 0) / rows
        assert abs(found - p) <= 4 * np.sqrt(p * (1 - p) / rows) + 4 / rows * (p > 0), row


@pytest.mark.parametrize(
    "network",
    [
        simulate.read_bif(ASIA),
        DiscreteNetwork(**COUGH),
        simulate.random_network(DIAMOND, levels={"a": 3, "c": 4}, random_seed=1),
    ],
    ids=["asia", "cough", "diamond"],
)
def test_rows_have_the_probabilities_of_the_network(network):
    expected = joint(network)
    assert sum(expected.values()) == pytest.approx(1)
    frame = network.sample(40_000, random_seed=5)
    check_frequencies(frame, expected)
    for name in network.names:
        for level in network.levels[name]:
            p = sum(q for row, q in expected.items() if row[network.names.index(name)] == level)
            assert abs((frame[name] == level).mean() - p) <= 4 * np.sqrt(p * (1 - p) / 40_000) + 1e-12


def test_a_wrong_network_is_noticed():
    """Negative control: the check does tell a table from its neighbour."""
    wrong = DiscreteNetwork(**COUGH | {"tables": {"smoke": [0.32, 0.68], "cough": COUGH["tables"]["cough"]}})
    with pytest.raises(AssertionError):
        check_frequencies(wrong.sample(40_000, random_seed=5), joint(DiscreteNetwork(**COUGH)))


def test_the_textbook_marginals_of_asia():
    expected = {"tub": 0.0104, "lung": 0.055, "bronc": 0.45, "either": 0.064828, "xray": 0.11029004, "dysp": 0.4359706}
    network = simulate.read_bif(ASIA)
    for name, p in expected.items():
        place = network.names.index(name)
        assert sum(q for row, q in joint(network).items() if row[place] == "yes") == pytest.approx(p, abs=1e-9)


def test_log_likelihood_is_the_sum_over_rows():
    network = simulate.random_network(DIAMOND, levels=3, random_seed=2)
    frame = network.sample(300, random_seed=3)
    expected = joint(network)
    brute = sum(np.log(expected[row]) for row in frame.astype(str).itertuples(index=False, name=None))
    assert network.log_likelihood(frame) == pytest.approx(brute, abs=1e-9)
    # Neither the order of columns, nor columns of others, nor text instead of categories change it.
    turned = frame[list("cabd")].astype(str).assign(other=1)
    assert network.log_likelihood(turned) == pytest.approx(brute, abs=1e-9)


def test_impossible_rows_have_no_likelihood():
    network = simulate.read_bif(ASIA)
    frame = network.sample(5, random_seed=1).astype(str)
    assert np.isfinite(network.log_likelihood(frame))
    frame.loc[2, ["tub", "either"]] = ["yes", "no"]
    assert network.log_likelihood(frame) == -np.inf


def test_impossible_levels_are_never_drawn():
    thirds = [1 / 3, 1 / 3, 1 / 3, 0.0]
    network = DiscreteNetwork({"x": list("abcd"), "y": list("abc")}, {}, {"x": thirds, "y": [0.0, 1.0, 0.0]})
    frame = network.sample(100_000, random_seed=1)
    assert set(frame["x"]) == set("abc") and set(frame["y"]) == {"b"}
    assert frame["x"].cat.categories.tolist() == list("abcd")  # a level that never came is kept


def test_truth_values_are_levels_however_they_are_spelled():
    network = DiscreteNetwork({"x": ["TRUE", "FALSE"], "k": [0, 1]}, {}, {"x": [0.2, 0.8], "k": [0.5, 0.5]})
    frame = pd.DataFrame({"x": [True, False], "k": [1, 0]})
    assert network.log_likelihood(frame) == pytest.approx(np.log(0.2 * 0.8 * 0.25))


def test_rounded_tables_are_filled_up_and_given_arrays_kept():
    table = np.array([0.333, 0.333, 0.333])
    network = DiscreteNetwork({"x": list("abc")}, {}, {"x": table})
    assert network.tables["x"].tolist() == pytest.approx([1 / 3] * 3)
    assert table.tolist() == [0.333] * 3
    exact = [0.1, 0.2, 0.7]  # sums to 0.9999999999999999
    assert DiscreteNetwork({"x": list("abc")}, {}, {"x": exact}).tables["x"].tolist() == exact


def test_a_network_knows_its_graph():
    network = simulate.random_network(DIAMOND, random_seed=1)
    assert set(network.graph.edges) == set(DIAMOND.edges) and list(network.graph) == list(DIAMOND)
    assert repr(network) == "DiscreteNetwork(4 variables, 4 edges)"


def test_random_tables_follow_their_dirichlet():
    dag = np.zeros((2000, 2000))
    for concentration in (0.2, 1.0, 20.0):
        network = simulate.random_network(dag, levels=3, concentration=concentration, random_seed=1)
        p = np.array([network.tables[name] for name in network.names])
        variance = (1 / 3) * (2 / 3) / (3 * concentration + 1)
        assert (np.abs(p.mean(axis=0) - 1 / 3) < 4 * np.sqrt(variance / 2000)).all()
        assert p.var() == pytest.approx(variance, rel=0.1)


def test_discrete_is_a_sample_of_a_random_network():
    frame = simulate.discrete(DIAMOND, 50, levels={"b": 5}, random_seed=4)
    rng = np.random.default_rng(4)
    again = simulate.random_network(DIAMOND, {"b": 5}, random_seed=rng).sample(50, rng)
    pd.testing.assert_frame_equal(frame, again)
    assert [len(frame[name].cat.categories) for name in "dbac"] == [2, 5, 2, 2]
    pd.testing.assert_frame_equal(frame, simulate.discrete(DIAMOND, 50, levels={"b": 5}, random_seed=4))
    assert not frame.equals(simulate.discrete(DIAMOND, 50, levels={"b": 5}, random_seed=5))
    assert set(Dataset.read(frame).kinds) == {"categorical"}


def test_arrays_have_numbered_variables():
    frame = simulate.discrete(np.array([[0, 1], [0, 0]]), 20, random_seed=1)
    assert list(frame) == ["v1", "v2"] and set(frame["v1"]) <= {"s1", "s2"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"levels": {"smoke": ["yes", "no"], "cough": []}}, "^every variable must have a level; 'cough' has none$"),
        (
            {"levels": {"smoke": ["a", "a"], "cough": "abc"}},
            "^the levels of a variable must differ; 'smoke' has 'a' twice$",
        ),
        ({"parents": {"sneeze": ["smoke"]}}, "^parents must be those of variables with levels; 'sneeze' has none$"),
        ({"parents": {"cough": ["dust"]}}, "^every node must be one of the variables; 'dust' is not$"),
        (
            {"parents": {"cough": ["smoke", "smoke"]}},
            "^the parents of a variable must differ; 'cough' has 'smoke' twice$",
        ),
        ({"parents": {"cough": ["smoke"], "smoke": ["cough"]}}, "^the graph must be acyclic; it contains"),
        ({"tables": {"smoke": [0.3, 0.7]}}, "^every variable must have a table; 'cough' has none$"),
        (
            {"tables": {**COUGH["tables"], "dust": [1]}},
            "^tables must be those of variables with levels; 'dust' has none$",
        ),
        ({"parents": {}}, r"^the table of 'cough' must have shape \(3,\); received \(2, 3\)$"),
        (
            {"tables": {**COUGH["tables"], "smoke": [1.2, -0.2]}},
            "^probabilities must be 0 or more; the table of 'smoke' .* -0.2$",
        ),
        (
            {"tables": {**COUGH["tables"], "smoke": [np.nan, 1]}},
            "^probabilities must be 0 or more; the table of 'smoke' .* nan$",
        ),
        (
            {"tables": {**COUGH["tables"], "smoke": [0.5, 0.6]}},
            "^probabilities must sum to 1; in the table of 'smoke' some sum to 1.1$",
        ),
    ],
)
def test_bad_networks_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        DiscreteNetwork(**{**COUGH, **changes})


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate.discrete(DIAMOND, 0), "^n_rows must be a whole number, 1 or more; received 0$"),
        (
            lambda: simulate.discrete(DIAMOND, 5, levels=1),
            "^the number of levels of 'd' must be .* 2 or more; received 1$",
        ),
        (
            lambda: simulate.discrete(DIAMOND, 5, levels={"a": 2.5}),
            "^the number of levels of 'a' must be .* received 2.5$",
        ),
        (
            lambda: simulate.discrete(DIAMOND, 5, levels={"z": 2}),
            "^levels must be given for variables; 'z' is not one$",
        ),
        (
            lambda: simulate.discrete(DIAMOND, 5, concentration=0),
            "^concentration must be positive and finite; received 0$",
        ),
        (lambda: simulate.discrete(DIAMOND, 5, concentration=np.inf), "^concentration must be positive and finite"),
        (lambda: simulate.discrete(nx.DiGraph([("a", "b"), ("b", "a")]), 5), "^the graph must be acyclic"),
        (
            lambda: simulate.discrete(np.triu(np.ones((60, 60)), 1), 5),
            "^a table may hold 10,000,000 probabilities; that of",
        ),
    ],
)
def test_bad_simulations_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        ({"smoke": ["yes"]}, "^the data must have a column for each variable; 'cough' has none$"),
        (
            {"smoke": ["yes"], "cough": ["daily"]},
            "^every value must be a level of its variable; 'cough' has no level 'daily'$",
        ),
        (
            {"smoke": [None, "yes"], "cough": ["often", "often"]},
            "^every value must be a level .*; 'smoke' has no level",
        ),
    ],
)
def test_data_of_others_are_refused(frame, message):
    with pytest.raises(ValueError, match=message):
        DiscreteNetwork(**COUGH).log_likelihood(pd.DataFrame(frame))

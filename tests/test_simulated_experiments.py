"""Simulated experiments: targets are changed as asked, everything else keeps its mechanism."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.stats import ks_1samp, ks_2samp, norm

import gpn_bayes as gpn
from gpn_bayes import simulate
from gpn_bayes.data import Dataset
from gpn_bayes.simulate import DiscreteNetwork
from tests.test_discrete_networks import COUGH, check_frequencies, joint
from tests.test_simulate import DIAMOND, EDGE, regress

pytestmark = pytest.mark.more("repeats whole searches for every learner and setting")

ROWS = 4000
SIMULATORS = {
    "linear": simulate.linear,
    "fourier": lambda dag, n_rows, **given: simulate.fourier(dag, n_rows, lam=1.0, **given),
    "mlp": lambda dag, n_rows, **given: simulate.mlp(dag, n_rows, hidden=7, **given),
    "discrete": lambda dag, n_rows, **given: simulate.discrete(dag, n_rows, levels=3, **given),
}
NUMBERS = ("linear", "fourier", "mlp")


def rows_of(table, target):
    return table[table["target"] == target].drop(columns="target")


def weights_of(table):
    names = table.columns[:4]
    return pd.DataFrame(table.attrs["weights"], index=names, columns=names)


def check_mechanism(rows, weights, child, intercept=0.0):
    """Check that least squares finds the weights of a variable's parents, within 4 standard errors."""
    found, covariance, _ = regress(rows, DIAMOND, child)
    expected = [intercept, *weights.loc[list(DIAMOND.predecessors(child)), child]]
    assert (np.abs(found - expected) < 4 * np.sqrt(np.diag(covariance))).all(), child


# Layout


@pytest.mark.parametrize("name", SIMULATORS)
def test_experiments_follow_the_observed_rows_and_leave_them_as_they_were(name):
    done = {"b": "s2" if name == "discrete" else 2.0, "a;c": "noise", "d": lambda values, rng: values}
    given = {"n_rows": {"": 20, "b": 5, "a;c": 7, "d": 20}, "interventions": done}
    table = SIMULATORS[name](DIAMOND, random_seed=3, **given)
    assert table.columns.tolist() == ["d", "b", "a", "c", "target"]
    assert table["target"].tolist() == [""] * 20 + ["b"] * 5 + ["a;c"] * 7 + ["d"] * 20
    assert table.index.equals(pd.RangeIndex(52))
    alone = SIMULATORS[name](DIAMOND, 20, random_seed=3)
    pd.testing.assert_frame_equal(rows_of(table, ""), alone, check_exact=True)
    assert table.attrs == alone.attrs
    pd.testing.assert_frame_equal(table, SIMULATORS[name](DIAMOND, random_seed=3, **given), check_exact=True)
    other = SIMULATORS[name](DIAMOND, random_seed=4, **given)
    assert not other[20:].equals(table[20:])
    changed = Dataset.read(table, targets="target").interventions
    assert changed.target_sets() == [[0], [1], [2, 3]]


def test_one_number_of_rows_holds_for_all_experiments():
    table = simulate.linear(EDGE, 10, random_seed=1, interventions={"x": 1, "y": 2})
    assert table["target"].tolist() == [""] * 10 + ["x"] * 10 + ["y"] * 10


@pytest.mark.parametrize(
    ("draw", "expected", "following"),
    [
        (
            lambda rng: simulate.linear(DIAMOND, 3, random_seed=rng),
            [2.0791866655166458, -1.7888780327195515, -0.9994257171958186],
            0.7417566800693304,
        ),
        (
            lambda rng: simulate.linear(DIAMOND, 3, noise="gumbel", noise_scale=2, random_seed=rng),
            [2.6264535704568335, -3.7631153140955558, 5.430979782643875],
            0.29816309065742475,
        ),
        (
            lambda rng: simulate.fourier(DIAMOND, 3, lam=1.0, random_seed=rng),
            [-0.09175418553033965, -0.943151077236127, -0.8489769902371064],
            0.7853318179464187,
        ),
        (
            lambda rng: simulate.mlp(DIAMOND, 3, hidden=7, random_seed=rng),
            [0.4218068119957873, 1.2267932580425602, 0.9882658027554894],
            0.21368721943054814,
        ),
        (
            lambda rng: simulate.discrete(DIAMOND, 12, levels={"a": 3}, random_seed=rng).apply(lambda c: c.cat.codes),
            [0, 1, 1, 1, 1, 0, 1, 0, 1, 1, 1, 1],
            0.787032713788771,
        ),
    ],
    ids=["linear", "gumbel", "fourier", "mlp", "discrete"],
)
def test_tables_without_experiments_are_those_of_earlier_versions(draw, expected, following):
    """Computed before experiments could be simulated; up to the order in which a machine adds."""
    rng = np.random.default_rng(3)
    table = draw(rng)
    assert table.columns.tolist() == ["d", "b", "a", "c"]
    np.testing.assert_allclose(table["c"], expected, rtol=1e-12)
    assert rng.random() == following


def test_names_that_are_no_texts():
    table = simulate.linear(nx.DiGraph([(1, 2)]), 5, random_seed=1, interventions={2: 4.0, "1;2": 0.0})
    assert table["target"].tolist() == [""] * 5 + ["2"] * 5 + ["1;2"] * 5
    assert (table[2][5:10] == 4).all() and (table[[1, 2]][10:] == 0).all(axis=None)


# Numbers


@pytest.fixture(scope="module")
def diamond():
    done = {"b": 2.0, "a": "shift", "d": "noise", "c": "noise", "b;a": "noise"}
    return simulate.linear(DIAMOND, ROWS, random_seed=5, interventions=done)


def test_a_set_variable_is_constant_and_its_effects_follow(diamond):
    rows = rows_of(diamond, "b")
    assert (rows["b"] == 2.0).all()
    weights = weights_of(diamond)
    left = rows["c"] - 2.0 * weights.loc["b", "c"] - rows["a"] * weights.loc["a", "c"]
    assert abs(left.mean()) < 4 / np.sqrt(ROWS)
    assert abs(left.var() - 1) < 4 * np.sqrt(2 / ROWS)
    assert abs(np.corrcoef(left, rows["a"])[0, 1]) < 4 / np.sqrt(ROWS)


def test_variables_keep_the_mechanisms_that_experiments_do_not_change(diamond):
    weights = weights_of(diamond)
    unchanged = {"": "dbac", "a": "dbc", "d": "bac", "c": "dba", "b;a": "dc"}
    for target, children in unchanged.items():
        for child in children:
            check_mechanism(rows_of(diamond, target), weights, child)
    # Negative control: the mechanism of a target has changed.
    for target in ("a", "c"):
        with pytest.raises(AssertionError):
            check_mechanism(rows_of(diamond, target), weights, target)


def test_a_shift_adds_one_standard_deviation_of_the_observed_rows(diamond):
    step = rows_of(diamond, "")["a"].std()
    assert step > 1.1  # more than the noise alone
    check_mechanism(rows_of(diamond, "a"), weights_of(diamond), "a", intercept=step)
    with pytest.raises(AssertionError):
        check_mechanism(rows_of(diamond, "a"), weights_of(diamond), "a", intercept=1.2 * step)


def test_noise_is_normal_and_independent_of_parents(diamond):
    observed = rows_of(diamond, "")
    for target, noisy in (("c", "c"), ("b;a", "b"), ("b;a", "a"), ("d", "d")):
        rows = rows_of(diamond, target)
        assert ks_1samp(rows[noisy], norm(observed[noisy].mean(), observed[noisy].std()).cdf).pvalue > 1e-4
        for parent in DIAMOND.predecessors(noisy):
            assert abs(np.corrcoef(rows[noisy], rows[parent])[0, 1]) < 4 / np.sqrt(ROWS)
            # Negative control: the observed rows fail the same check.
            assert abs(np.corrcoef(observed[noisy], observed[parent])[0, 1]) > 4 / np.sqrt(ROWS)
    both = rows_of(diamond, "b;a")
    assert abs(np.corrcoef(both["a"], both["b"])[0, 1]) < 4 / np.sqrt(ROWS)


@pytest.mark.parametrize("name", NUMBERS)
def test_only_descendants_of_a_target_change_their_distribution(name):
    table = SIMULATORS[name](DIAMOND, ROWS, random_seed=6, interventions={"b": 4.0})
    observed, rows = rows_of(table, ""), rows_of(table, "b")
    for variable in "da":
        assert ks_2samp(observed[variable], rows[variable]).pvalue > 1e-4
        assert not np.isin(rows[variable], observed[variable]).any()  # drawn anew
    assert ks_2samp(observed["c"], rows["c"]).pvalue < 1e-4


def gaps(first, second):
    """Return the differences of the mean of y between two tables, in intervals of x, in standard errors."""
    edges = np.arange(-0.5, 1.5, 0.1)
    means = []
    for rows in (first, second):
        grouped = rows["y"].groupby(pd.cut(rows["x"], edges), observed=False)
        means.append((grouped.mean(), grouped.var() / grouped.size()))
    (one, error), (other, its_error) = means
    return (np.abs(one - other) / np.sqrt(error + its_error)).to_numpy()


@pytest.mark.parametrize("name", NUMBERS)
def test_children_are_the_same_function_in_experiments(name):
    """Intervals of a tenth are narrow enough for the mean not to depend on how x is distributed within."""
    table = SIMULATORS[name](EDGE, 10 * ROWS, random_seed=7, interventions={"x": "shift"})
    observed = rows_of(table, "")
    assert gaps(observed, rows_of(table, "x")).max() < 4
    # Negative control: the function of another network.
    assert gaps(observed, SIMULATORS[name](EDGE, 10 * ROWS, random_seed=8)).max() > 6


@pytest.mark.parametrize("name", NUMBERS)
def test_a_function_takes_what_the_variable_would_have_been(name):
    seen = []

    def clipped(values, rng):
        assert isinstance(rng, np.random.Generator)
        seen.append(values)  # an array of its own, which the simulator doesn't overwrite
        return np.clip(values, -0.5, 0.5)

    table = SIMULATORS[name](EDGE, ROWS, random_seed=9, interventions={"y": clipped})
    rows, observed = rows_of(table, "y"), rows_of(table, "")
    np.testing.assert_array_equal(rows["y"], np.clip(seen[0], -0.5, 0.5))
    assert len(seen) == 1
    # The mechanism was applied to the parents in these rows.
    assert ks_2samp(seen[0], observed["y"]).pvalue > 1e-4
    shift = np.abs(np.corrcoef(seen[0], rows["x"])[0, 1] - np.corrcoef(observed["y"], observed["x"])[0, 1])
    assert shift < 4 * np.sqrt(2 / ROWS)


# Levels


def with_table(network, name, probabilities):
    """Return a network in which a variable has these probabilities, whatever its parents."""
    parents = {other: known for other, known in network.parents.items() if other != name}
    return DiscreteNetwork(network.levels, parents, network.tables | {name: probabilities})


def test_rows_have_the_probabilities_of_the_network_that_was_cut():
    network = simulate.random_network(DIAMOND, levels={"a": 3, "c": 4}, random_seed=1)
    done = {"a": "s2", "b": "noise", "d": lambda values, rng: np.where(values == "s1", "s2", "s1")}
    table = network.sample(30_000, random_seed=5, interventions=done)
    check_frequencies(rows_of(table, ""), joint(network))
    check_frequencies(rows_of(table, "a"), joint(with_table(network, "a", [0, 1, 0])))
    check_frequencies(rows_of(table, "b"), joint(with_table(network, "b", [0.5, 0.5])))
    check_frequencies(rows_of(table, "d"), joint(with_table(network, "d", network.tables["d"][::-1])))
    for target in "abd":
        with pytest.raises(AssertionError):
            check_frequencies(rows_of(table, target), joint(network))


def test_all_levels_are_kept_and_given_as_text_or_as_they_were():
    network = DiscreteNetwork({"k": [0, 1, 2], "noise": ["noise", "no"]}, {}, {"k": [0.5, 0.5, 0], "noise": [0.5, 0.5]})
    table = network.sample(50, random_seed=1, interventions={"k": 2, "noise": "noise"})
    assert (rows_of(table, "k")["k"] == "2").all()
    assert table["k"].cat.categories.tolist() == ["0", "1", "2"]
    assert (rows_of(table, "noise")["noise"] == "noise").all()  # the level, not the word


# What is refused


def linear_with(done, dag=EDGE, n_rows=5):
    return lambda: simulate.linear(dag, n_rows, random_seed=1, interventions=done)


def discrete_with(done, n_rows=5):
    return lambda: DiscreteNetwork(**COUGH).sample(n_rows, random_seed=1, interventions=done)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (linear_with({"z": 1}), r"interventions must be on variables; received 'z', not one of 'x', 'y'"),
        (linear_with({"x;z": 1}), r"interventions must be on variables; received 'z', not one of 'x', 'y'"),
        (linear_with({"": 1}), r"interventions must be on variables; received '', which names none"),
        (linear_with({"x;x": 1}), r"the targets of an experiment must differ; received 'x;x'"),
        (linear_with({}), r"interventions must map one variable or more to what is done to it; received \{\}"),
        (linear_with("x"), r"interventions must map one variable or more to what is done to it; received 'x'"),
        (linear_with(None, n_rows={"": 5}), r"n_rows must be a number where there are no interventions; received \{"),
        (
            linear_with({"x": 1}, n_rows={"x": 5}),
            r"n_rows must hold the number of observed rows, under ''; received \{'x': 5\}",
        ),
        *(
            (
                linear_with({"x": 1}, n_rows=rows),
                r"n_rows must be of '' and of all interventions, 'x'; received \{'': 9",
            )
            for rows in ({"": 9}, {"": 9, "y": 5}, {"": 9, "x": 3, "y": 5})
        ),
        (
            linear_with({"x": 1}, n_rows={"": 9, "x": 0}),
            r"n_rows of 'x' must be a whole number, 1 or more; received 0",
        ),
        (linear_with({"x": 1}, n_rows={"": 2.5, "x": 3}), r"n_rows must be a whole number, 1 or more; received 2\.5"),
        *(
            (
                linear_with({"x": done}),
                "an intervention must be a finite number, 'shift', 'noise' or a function; "
                rf"received {received} for 'x'",
            )
            for done, received in [
                (np.nan, "nan"),
                (-np.inf, "-inf"),
                (True, "True"),
                (None, "None"),
                ([1], r"\[1\]"),
                ("shfit", "'shfit'"),
            ]
        ),
        (linear_with({"x": "shfit"}), r"for 'x': did you mean 'shift'\?"),
        *(
            (
                linear_with({"x": word}, n_rows=1),
                rf"'{word}' takes the standard deviation from two observed rows or more; received n_rows = 1",
            )
            for word in ("shift", "noise")
        ),
        (
            linear_with({"x": 1}, nx.DiGraph([("x", "target")])),
            r"interventions add a column 'target', so no variable may have this name; received one that does",
        ),
        (
            linear_with({"x;y": 1}, nx.DiGraph([("x;y", "z")])),
            r"the name of a target must have no ';' and no spaces around it; received 'x;y'",
        ),
        *(
            (
                linear_with({"y": lambda values, rng, returned=returned: returned}),
                rf"^the function in interventions must return a finite number for each of the 5 rows; "
                rf"that of 'y' returned {received}$",
            )
            for returned, received in [
                ([1.0] * 4, r"shape \(4,\)"),
                (1.0, r"shape \(\)"),
                ([[1.0]] * 5, r"shape \(5, 1\)"),
                ([1, 2, np.inf, 4, 5], "inf"),
                (["low"] * 5, "something else"),
                (None, r"shape \(\)"),
            ]
        ),
        *(
            (
                discrete_with({"smoke": done}),
                r"an intervention must be a level \('yes', 'no'\), 'noise' or a function; " + received,
            )
            for done, received in [
                ("maybe", "received 'maybe' for 'smoke'$"),
                ("YES", r"received 'YES' for 'smoke': did you mean 'yes'\?$"),
                ("shift", "received 'shift' for 'smoke': a level can't be shifted$"),
                (1.0, "received 1.0 for 'smoke'$"),
            ]
        ),
        *(
            (
                discrete_with({"smoke": lambda values, rng, returned=returned: returned}),
                r"^the function in interventions must return a level \('yes', 'no'\) for each of the 5 rows; "
                rf"that of 'smoke' returned {received}$",
            )
            for returned, received in [
                (["yes"] * 4, r"shape \(4,\)"),
                ("yes", r"shape \(\)"),
                (["yes"] * 4 + ["maybe"], "'maybe'"),
            ]
        ),
        (discrete_with({"cold": "yes"}), r"interventions must be on variables; received 'cold', not one of 'smoke'"),
        (discrete_with(None, n_rows={}), r"n_rows must be a number where there are no interventions; received \{\}"),
    ],
)
def test_bad_experiments_are_refused(call, message):
    with pytest.raises(ValueError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


# Directions


@pytest.mark.parametrize(
    ("name", "done", "score", "reading"),
    [
        ("linear", "noise", "bge", {}),
        ("linear", "shift", "bge", {"intervention": "soft"}),
        ("discrete", "noise", "bdeu", {}),
    ],
)
def test_experiments_identify_directions_that_observed_rows_cannot(name, done, score, reading):
    """In a chain, where observed rows leave three of the four ways to direct its edges."""
    chain = nx.DiGraph([("a", "b"), ("b", "c")])
    table = SIMULATORS[name](chain, 500, random_seed=1, interventions={"b": done})
    settings = {"draws": 500, "random_seed": 1, "progressbar": False}
    with_experiments = gpn.sample(table, score, targets="target", **reading, **settings).edge_probabilities()
    observed = gpn.sample(rows_of(table, ""), score, **settings).edge_probabilities()
    for cause, effect in chain.edges:
        assert with_experiments.loc[cause, effect] > 0.95
        # The three DAGs of the class are equally probable, so each direction has about a third or two thirds.
        assert 0.2 < observed.loc[cause, effect] < 0.8
        assert 0.2 < observed.loc[effect, cause] < 0.8

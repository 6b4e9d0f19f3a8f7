"""The graph prior against enumeration, the edges it demands and refuses, and the search space."""

import json
from fractions import Fraction
from math import comb

import networkx as nx
import numpy as np
import pandas as pd
import pytest

from gpn_bayes import graphs
from gpn_bayes.candidates.spaces import candidate_lists
from gpn_bayes.kernels.graphs.subsets import MAX_CANDIDATES
from gpn_bayes.mcmc.exact_posterior import exact_probabilities
from gpn_bayes.mcmc.tables import build_tables
from gpn_bayes.scores import GraphPrior

NAMES = ["a", "b", "c"]
TABLE = np.array([[0.0, 0.9, 0.3], [0.2, 0.0, 0.5], [0.05, 0.6, 0.0]])


def edges_of(matrix):
    return {(int(i), int(j)) for i, j in np.argwhere(matrix)}


def off_diagonal(matrix):
    return edges_of(matrix & ~np.eye(len(matrix), dtype=bool))


def prior_of_dags(prior):
    """Return every DAG and its normalised prior, by the tables the samplers are given."""
    dags = graphs.enumerate_dags(len(prior.names))
    log_prior = np.zeros(len(dags))
    for k, dag in enumerate(dags):
        for node in range(len(dag)):
            others = [i for i in range(len(dag)) if i != node]
            mask = sum(1 << bit for bit, i in enumerate(others) if dag[i, node])
            log_prior[k] += prior.log_table(node, others)[mask]
    weight = np.exp(log_prior)
    return dags, weight / weight.sum()


def plain_weights(weight_of):
    dags = graphs.enumerate_dags(3)
    weight = np.array([weight_of(dag) for dag in dags], dtype=float)
    return weight / weight.sum()


def bernoulli(dag, table):
    return np.prod([table[i, j] if dag[i, j] else 1 - table[i, j] for i in range(3) for j in range(3) if i != j])


CASES = {
    "uniform": (GraphPrior(NAMES), lambda dag: 1.0),
    "fair": (GraphPrior(NAMES, "fair"), lambda dag: np.prod([1 / comb(2, k) for k in dag.sum(axis=0)])),
    "penalty": (GraphPrior(NAMES, edge_penalty=0.7), lambda dag: np.exp(-0.7 * dag.sum())),
    "probabilities": (GraphPrior(NAMES, edge_probabilities=TABLE), lambda dag: bernoulli(dag, TABLE)),
    "all": (
        GraphPrior(NAMES, "fair", 0.4, TABLE, required=[("b", "c")], forbidden=[("a", "b")]),
        lambda dag: (
            np.prod([1 / comb(2, k) for k in dag.sum(axis=0)])
            * np.exp(-0.4 * dag.sum())
            * bernoulli(dag, TABLE)
            * (dag[1, 2] == 1)
            * (dag[0, 1] == 0)
        ),
    ),
    "tiers": (
        GraphPrior(NAMES, tiers=[["c"], ["a", "b"]]),
        lambda dag: float(dag[0, 2] == 0 and dag[1, 2] == 0),
    ),
}


@pytest.mark.parametrize(("prior", "weight_of"), CASES.values(), ids=CASES)
def test_prior_is_the_product_that_it_states(prior, weight_of):
    expected = plain_weights(weight_of)
    dags, found = prior_of_dags(prior)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
    # With flat scores the posterior is the prior.
    lists = candidate_lists(None, prior)
    tables = build_tables(lists, [prior.log_table(i, chosen) for i, chosen in enumerate(lists)])
    edges = exact_probabilities(tables).edge_probabilities
    np.testing.assert_allclose(edges, np.einsum("d,dij->ij", expected, dags), rtol=1e-10, atol=1e-14)


def test_fair_prior_gives_each_number_of_parents_the_same_weight():
    table = np.exp(GraphPrior([f"x{i}" for i in range(6)], "fair").log_table(2, [0, 1, 3, 4, 5]))
    sizes = np.array([mask.bit_count() for mask in range(32)])
    np.testing.assert_allclose(np.bincount(sizes, table), 1.0)
    # The divisor is that of the whole network, whatever the candidates.
    few = np.exp(GraphPrior([f"x{i}" for i in range(6)], "fair").log_table(2, [4, 0]))
    np.testing.assert_allclose(few, [1, 1 / 5, 1 / 5, 1 / 10])


def test_table_is_in_bitmask_order_over_the_candidates():
    odds = np.log(TABLE[[2, 0], 1]) - np.log1p(-TABLE[[2, 0], 1])
    table = GraphPrior(NAMES, edge_probabilities=TABLE).log_table(1, [2, 0])
    np.testing.assert_allclose(table, [0, odds[0], odds[1], odds.sum()])
    table = GraphPrior(NAMES, required=[("c", "b")], forbidden=[("a", "b")]).log_table(1, [2, 0])
    np.testing.assert_array_equal(table, [-np.inf, 0, -np.inf, -np.inf])


def test_probabilities_of_zero_and_one_are_demands():
    certain = TABLE.copy()
    certain[0, 1], certain[2, 0] = 1.0, 0.0
    prior = GraphPrior(NAMES, edge_probabilities=certain)
    assert edges_of(prior.required) == {(0, 1)}
    assert off_diagonal(prior.forbidden) == {(2, 0)}


def test_probabilities_are_matched_by_name_and_the_diagonal_is_ignored():
    shuffled = pd.DataFrame(TABLE, NAMES, NAMES).loc[["c", "a", "b"], ["b", "c", "a"]]
    direct = GraphPrior(NAMES, edge_probabilities=TABLE)
    assert GraphPrior(NAMES, edge_probabilities=shuffled).parameters == direct.parameters
    with_nan = TABLE.copy()
    np.fill_diagonal(with_nan, np.nan)
    assert GraphPrior(NAMES, edge_probabilities=with_nan).parameters == direct.parameters


@pytest.mark.parametrize(
    "edges",
    [
        [("a", "b"), ("c", "b")],
        [(0, 1), (2, 1)],
        nx.DiGraph([("a", "b"), ("c", "b")]),
        np.array([[0, 1, 0], [0, 0, 0], [0, 1, 0]]),
        (pair for pair in [("a", "b"), ("c", "b")]),
    ],
    ids=["names", "positions", "graph", "matrix", "generator"],
)
def test_required_edges_in_any_form(edges):
    assert edges_of(GraphPrior(NAMES, required=edges).required) == {(0, 1), (2, 1)}


def test_forbidden_edges_may_form_cycles_and_hold_the_diagonal():
    prior = GraphPrior(NAMES, forbidden=[("a", "b"), ("b", "a")])
    assert off_diagonal(prior.forbidden) == {(0, 1), (1, 0)}
    assert prior.forbidden.diagonal().all()


@pytest.mark.parametrize(
    "tiers",
    [["c", ["a", "b"]], [["c"], [], ["a", "b"]], {"a": 2, "b": 2, "c": Fraction(1, 2)}, [{2}, (0, 1)]],
    ids=["groups", "empty group", "numbers", "positions"],
)
def test_tiers_forbid_the_way_back_and_are_recorded(tiers):
    prior = GraphPrior(NAMES, tiers=tiers)
    assert off_diagonal(prior.forbidden) == {(0, 2), (1, 2)}
    recorded = json.loads(json.dumps(prior.parameters))["tiers"]
    assert recorded[0] == recorded[1] > recorded[2]


def test_groups_are_numbered_from_one():
    assert GraphPrior(NAMES, tiers=[["c"], ["a", "b"]]).parameters["tiers"] == [2, 2, 1]
    assert GraphPrior(NAMES).parameters["tiers"] is None


def test_parameters_tell_priors_apart():
    priors = [
        GraphPrior(NAMES), GraphPrior(NAMES, "fair"), GraphPrior(NAMES, edge_penalty=1.0),
        GraphPrior(NAMES, edge_probabilities=TABLE), GraphPrior(NAMES, required=[("a", "b")]),
        GraphPrior(NAMES, forbidden=[("a", "b")]), GraphPrior(NAMES, tiers=[["a"], ["b", "c"]]),
    ]  # fmt: skip
    assert len({str(prior.parameters) for prior in priors}) == len(priors)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"kind": "flat"}, "prior must be one of uniform, fair, or a table of edge probabilities; received 'flat'"),
        ({"edge_penalty": np.inf}, "edge_penalty must be finite; received inf"),
        (
            {"edge_probabilities": TABLE[:2]},
            "edge probabilities must have shape (3, 3); received (2, 3)",
        ),
        (
            {"edge_probabilities": 2 * TABLE},
            "edge probabilities must lie between 0 and 1; that of a -> b is 1.8",
        ),
        (
            {"edge_probabilities": np.full((3, 3), np.nan)},
            "edge probabilities must lie between 0 and 1; that of a -> b is nan",
        ),
        (
            {"edge_probabilities": pd.DataFrame(TABLE, NAMES, ["a", "b", "d"])},
            "edge probabilities need the variables as rows and columns; 'c' is missing",
        ),
        (
            {"edge_probabilities": {"a": 1}},
            "prior must be one of uniform, fair, or a table of edge probabilities; received dict",
        ),
        ({"required": "ab"}, "required edges must be pairs (parent, child); received 'ab'"),
        ({"forbidden": "ab"}, "forbidden edges must be pairs (parent, child); received 'ab'"),
        (
            {"required": [("a", "z")]},
            "required edges: every node must be one of the variables; 'z' is not",
        ),
        (
            {"forbidden": ["ab"]},
            "forbidden edges: every edge must be a pair (parent, child); received 'ab'",
        ),
        ({"required": [("a", "a")]}, "required edges: no node may be its own parent; 'a' is"),
        (
            {"required": [("a", "b")], "forbidden": [("a", "b")]},
            "an edge can't be required and forbidden; a -> b is both",
        ),
        (
            {"required": [("a", "b")], "tiers": [["b"], ["a", "c"]]},
            "an edge can't be required and against the tiers; a -> b is both",
        ),
        (
            {"required": [("a", "b"), ("b", "c"), ("c", "a")]},
            "required edges must not form a cycle; received a -> b -> c -> a",
        ),
        ({"tiers": [["a"], ["b"]]}, "every variable belongs to one tier; 'c' is in none"),
        ({"tiers": [["a", "b"], ["b", "c"]]}, "every variable belongs to one tier; 'b' is in two"),
        ({"tiers": {"a": 1, 0: 2, "b": 2}}, "every variable belongs to one tier; 0 is in two"),
        ({"tiers": {"a": 1, "b": 2}}, "every variable belongs to one tier; 'c' is in none"),
        ({"tiers": [["a", "z"]]}, "every node must be one of the variables; 'z' is not"),
        (
            {"tiers": "abc"},
            "tiers must be groups of names or a mapping of names to numbers; received 'abc'",
        ),
        (
            {"tiers": [1, 1, 2]},
            "tiers must be groups of names or a mapping of names to numbers; received the group 1",
        ),
        (
            {"tiers": {"a": "first", "b": 2, "c": 2}},
            "tiers must be groups of names or a mapping of names to numbers; received 'first' for 'a'",
        ),
        ({"tiers": 3}, "tiers must be groups of names or a mapping of names to numbers; received 3"),
    ],
)
def test_bad_priors_are_refused_in_one_line(settings, message):
    with pytest.raises(ValueError) as error:
        GraphPrior(NAMES, **settings)
    assert str(error.value) == message


def read(prior, names=NAMES, required=(), forbidden=(), tiers=None):
    return GraphPrior.read(prior, names, required, forbidden, tiers)


def test_a_prior_as_a_user_describes_it():
    assert read("fair", required=[("a", "b")]).parameters == GraphPrior(NAMES, "fair", required=[("a", "b")]).parameters
    assert read(TABLE).parameters == GraphPrior(NAMES, edge_probabilities=TABLE).parameters
    given = GraphPrior(NAMES, edge_penalty=2.0)
    assert read(given) is given
    with pytest.raises(
        ValueError, match=r"^the prior must be over the data's variables; it is over \['a', 'b', 'c'\]$"
    ):
        read(given, ["a", "c", "b"])
    for extra in ({"required": [("a", "b")]}, {"forbidden": [("a", "b")]}, {"tiers": [NAMES]}):
        with pytest.raises(
            ValueError, match="^required, forbidden and tiers go into the GraphPrior when one is given$"
        ):
            read(given, **extra)
    with pytest.raises(ValueError, match="^prior must be one of uniform, fair, or a table .*; received 'flat'$"):
        read("flat")
    with pytest.raises(ValueError, match=r"^edge probabilities must have shape \(3, 3\); received \(\)$"):
        read(5)


# The search space


def test_candidates_are_all_others_unless_named():
    assert candidate_lists(None, GraphPrior(NAMES)) == [[1, 2], [0, 2], [0, 1]]
    assert candidate_lists({"a": ["c"], "c": "b"}, GraphPrior(NAMES)) == [[2], [0, 2], [1]]
    assert candidate_lists({0: [2]}, GraphPrior(NAMES)) == [[2], [0, 2], [0, 1]]
    assert candidate_lists({}, GraphPrior(NAMES)) == candidate_lists(None, GraphPrior(NAMES))


def test_an_empty_list_names_no_candidates():
    assert candidate_lists({"a": [], "c": ()}, GraphPrior(NAMES)) == [[], [0, 2], []]


def test_a_graph_names_the_candidates_of_all():
    cyclic = nx.DiGraph([("a", "b"), ("b", "a")])
    assert candidate_lists(cyclic, GraphPrior(NAMES)) == [[1], [0], []]
    cyclic.add_node("c")
    assert candidate_lists(cyclic, GraphPrior(NAMES)) == [[1], [0], []]


def test_required_edges_join_the_space_and_forbidden_ones_leave_it():
    prior = GraphPrior(NAMES, required=[("a", "c")], forbidden=[("b", "a")])
    assert candidate_lists({"a": ["b"], "b": ["a"], "c": []}, prior) == [[], [0], [0]]
    assert candidate_lists({"b": ["a"]}, prior) == [[2], [0], [0, 1]]
    assert candidate_lists(None, prior, max_parents=1) == [[2], [0, 2], [0, 1]]
    assert candidate_lists(None, GraphPrior(NAMES), max_parents=0) == [[1, 2], [0, 2], [0, 1]]


@pytest.mark.parametrize(
    ("candidates", "prior", "max_parents", "message"),
    [
        ({"z": ["a"]}, {}, None, "every node must be one of the variables; 'z' is not"),
        ({"a": ["z"]}, {}, None, "every node must be one of the variables; 'z' is not"),
        ({"a": ["a"]}, {}, None, "no variable can be its own candidate parent; 'a' is"),
        (
            ["a"],
            {},
            None,
            "methods to find candidates are pc, dual-pc, greedy, correlation, distance-correlation; received 'a'",
        ),
        (
            {"a": 1},
            {},
            None,
            "candidates must map each variable to its candidate parents, or be a DiGraph; received 1 for 'a'",
        ),
        (None, {}, -1, "max_parents must be a whole number, 0 or more; received -1"),
        (None, {}, 1.5, "max_parents must be a whole number, 0 or more; received 1.5"),
        (None, {}, True, "max_parents must be a whole number, 0 or more; received True"),
        (
            None,
            {"required": [("a", "c"), ("b", "c")]},
            1,
            "max_parents must leave room for the required edges; received 1, but 'c' has 2 required parents",
        ),
    ],
)
def test_bad_spaces_are_refused_in_one_line(candidates, prior, max_parents, message):
    with pytest.raises(ValueError) as error:
        candidate_lists(candidates, GraphPrior(NAMES, **prior), max_parents)
    assert str(error.value) == message


def test_too_many_candidates_are_refused():
    names = [f"x{i}" for i in range(MAX_CANDIDATES + 2)]
    with pytest.raises(ValueError) as error:
        candidate_lists(None, GraphPrior(names))
    assert str(error.value) == (
        f"at most {MAX_CANDIDATES} candidate parents per node are supported; 'x0' has {MAX_CANDIDATES + 1}: "
        "name fewer with space=gpn.Space(candidates={child: [parents]})"
    )
    assert len(candidate_lists(None, GraphPrior(names[:-1]))[0]) == MAX_CANDIDATES

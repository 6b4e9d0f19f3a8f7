"""The main road from data to posterior: references, reproducibility, constraints, refusals."""

from math import comb

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import gpn_bayes as gpn
from gpn_bayes import graphs
from gpn_bayes.scores import GraphPrior
from tests.draws import LINEAR, NULL, REFERENCE, assert_edges_agree, assert_same_draws, quick, reference, table

SAMPLERS = ("exact", "partition", "order")
UNBIASED = {"order": gpn.samplers.Order(bias="correct")}
MCMC = ("partition", "order")


# Against references


@pytest.mark.parametrize("name", [NULL, LINEAR])
def test_exact_posterior_is_the_references(name):
    post, known = quick(table(name)), reference(name)
    assert post.settings["sampler"] == "exact"
    expected = np.array(known["edge_posterior_uniform_dag_prior"])
    np.testing.assert_allclose(post.edge_probabilities(), expected, rtol=0, atol=1e-9)
    empty = post.probability(lambda g: g.number_of_edges() == 0)
    assert empty.value == pytest.approx(known["p_empty_dag"], rel=1e-6, abs=1e-9)
    assert empty.mcse == 0
    assert post.exact.log_z == pytest.approx(known["log_marginal_sum_over_dags"], abs=1e-8)
    dags, probabilities = post.exact.all_dags()
    for best in known["top10"]:
        place = (dags == best["adj"]).all(axis=(1, 2)).argmax()
        assert probabilities[place] == pytest.approx(best["prob"], abs=1e-9)


@pytest.mark.parametrize("name", [NULL, LINEAR])
@pytest.mark.parametrize("sampler", ["partition", gpn.samplers.Order(bias="correct")])
def test_samplers_agree_with_the_exact_posterior(name, sampler):
    post = quick(table(name), draws=3000, tune=300, chains=4, sampler=sampler)
    assert_edges_agree(post, np.array(reference(name)["edge_posterior_uniform_dag_prior"]))


def test_order_sampler_keeps_its_bias_unless_told():
    post, known = quick(table(NULL), sampler="order", draws=3000, chains=4), reference(NULL)
    assert post.settings["order_bias"] == "keep"
    assert_edges_agree(post, np.array(known["edge_posterior_order_modular"]))
    # Negative control: the comparison does tell the two targets apart.
    with pytest.raises(AssertionError):
        assert_edges_agree(post, np.array(known["edge_posterior_uniform_dag_prior"]))


def test_all_samplers_agree_on_a_simulated_network():
    truth = nx.DiGraph([("a", "c"), ("b", "c"), ("c", "d"), ("d", "e"), ("a", "f")])
    data = gpn.simulate.linear(truth, 35, random_seed=4)
    exact = quick(data, sampler="exact").edge_probabilities().to_numpy()
    assert exact.max() > 0.5
    for sampler in ("partition", gpn.samplers.Order(bias="correct")):
        assert_edges_agree(quick(data, draws=2500, tune=500, chains=4, sampler=sampler), exact)


# Scores of the draws


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_log_scores_are_those_of_the_drawn_dags(sampler):
    data = table(LINEAR)
    probabilities = np.full((5, 5), 0.3)
    probabilities[0, 1], probabilities[3, 2] = 1.0, 0.0
    prior = GraphPrior(tuple(data.columns), "fair", 0.5, probabilities)
    post = quick(data, sampler=sampler, prior=prior)
    scorer = gpn.scores.BGe().bind(data)
    for graph in post.graphs():
        adjacency = graphs.as_adjacency(graph, post.names)
        assert adjacency[0, 1] == 1
        assert adjacency[3, 2] == 0
        # The required edge has no odds of its own, and costs the penalty.
        free = adjacency.sum() - 1
        expected = scorer.total(graph) - sum(np.log(comb(4, k)) for k in adjacency.sum(axis=0))
        expected += free * np.log(0.3 / 0.7) - 0.5 * adjacency.sum()
        assert graph.graph["log_score"] == pytest.approx(expected, abs=1e-7)
        assert post.log_score_gap(graph) == pytest.approx(post.log_score.max() - graph.graph["log_score"], abs=1e-7)


def test_a_dag_without_a_required_edge_is_infinitely_far():
    post = quick(table(NULL), required=[("v1", "v2")])
    assert post.log_score_gap(nx.DiGraph([("v3", "v4")])) == np.inf
    assert np.isfinite(post.log_score_gap(nx.DiGraph([("v1", "v2"), ("v3", "v4")])))


def test_fair_prior_is_that_of_enumeration():
    data = table(NULL)
    scorer = gpn.scores.BGe().bind(data)
    dags = graphs.enumerate_dags(4)
    weight = np.array([scorer.total(dag) - sum(np.log(comb(3, k)) for k in dag.sum(axis=0)) for dag in dags])
    expected = np.einsum("d,dij->ij", np.exp(weight - logsumexp(weight)), dags)
    exact = quick(data, prior="fair")
    np.testing.assert_allclose(exact.edge_probabilities(), expected, rtol=0, atol=1e-9)
    assert np.abs(expected - reference(NULL)["edge_posterior_uniform_dag_prior"]).max() > 0.01
    assert_edges_agree(quick(data, prior="fair", sampler="partition", draws=3000, chains=4), expected)


# Same seed, same draws


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_same_seed_same_draws_whatever_the_cores(sampler):
    data = table(LINEAR)
    one = quick(data, sampler=sampler, cores=1, chains=3)
    two = quick(data, sampler=sampler, cores=2, chains=3)
    assert_same_draws(one, two)
    assert_same_draws(one, quick(data.copy(), sampler=sampler, chains=3))
    other = quick(data, sampler=sampler, chains=3, random_seed=4)
    assert (other.parents != one.parents).any()
    # Chains differ from one another, and don't depend on how many there are.
    assert (one.parents[0] != one.parents[1]).any()
    np.testing.assert_array_equal(quick(data, sampler=sampler, chains=1).parents[0], one.parents[0])


@pytest.mark.parametrize("sampler", MCMC)
def test_more_draws_go_on_where_fewer_ended(sampler):
    data = table(LINEAR)
    few, many = quick(data, sampler=sampler, draws=40), quick(data, sampler=sampler, draws=90)
    np.testing.assert_array_equal(few.parents, many.parents[:, :40])
    # Tuning draws are draws that are dropped.
    untuned = quick(data, sampler=sampler, draws=60, tune=0)
    np.testing.assert_array_equal(untuned.parents[:, 20:], few.parents)


def test_without_a_seed_runs_differ():
    data = table(LINEAR)
    one, two = (quick(data, sampler="partition", random_seed=None) for _ in range(2))
    assert one.settings["random_seed"] is None
    assert (one.parents != two.parents).any()


def test_input_is_not_modified():
    data = table(LINEAR)
    before = data.copy(deep=True)
    quick(data, sampler="partition")
    pd.testing.assert_frame_equal(data, before)


# Constraints


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_constraints_hold_in_every_draw(sampler):
    data = table(LINEAR)
    required, forbidden = [("v1", "v2"), ("v4", "v5")], [("v3", "v1"), ("v2", "v3")]
    post = quick(
        data, sampler=sampler, required=required, forbidden=forbidden, space=gpn.Space(max_parents=2),
        tiers=[["v4"], ["v1", "v3"], ["v2", "v5"]],
    )  # fmt: skip
    drawn = post.adjacency
    assert all(drawn[..., post.names.index(p), post.names.index(c)].all() for p, c in required)
    assert not any(drawn[..., post.names.index(p), post.names.index(c)].any() for p, c in forbidden)
    tier = {"v4": 0, "v1": 1, "v3": 1, "v2": 2, "v5": 2}
    assert all(tier[p] <= tier[c] for graph in post.graphs() for p, c in graph.edges)
    assert drawn.sum(axis=-2).max() == 2
    assert graphs.is_acyclic(drawn).all()
    # Without the constraints, none of this holds.
    free = quick(data, sampler=sampler).adjacency
    assert free.sum(axis=-2).max() > 2
    assert free[..., 2, 0].any()


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_candidates_are_the_only_parents(sampler):
    candidates = {"v1": ["v2", "v3"], "v2": ["v1"], "v3": [], "v4": [], "v5": ["v1", "v4"]}
    post = quick(table(LINEAR), sampler=sampler, space=gpn.Space(candidates=candidates), required=[("v4", "v3")])
    for graph in post.graphs():
        allowed = {(p, c) for c, parents in candidates.items() for p in parents} | {("v4", "v3")}
        assert set(graph.edges) <= allowed
        assert graph.has_edge("v4", "v3")
    if sampler == "exact":
        table_of_edges = post.edge_probabilities()
        assert table_of_edges.loc["v4", "v3"] == pytest.approx(1)
        assert table_of_edges.loc["v5", "v4"] == 0


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_no_parents_at_all(sampler):
    assert not quick(table(NULL), sampler=sampler, space=gpn.Space(max_parents=0)).adjacency.any()


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_constrained_posteriors_agree_with_enumeration(sampler):
    data = table(NULL)
    scorer = gpn.scores.BGe().bind(data)
    dags = graphs.enumerate_dags(4)
    allowed = (dags[:, 0, 1] == 1) & (dags[:, 2, 3] == 0) & (dags.sum(axis=1).max(axis=-1) <= 2)
    weight = np.array([scorer.total(dag) for dag in dags[allowed]])
    expected = np.einsum("d,dij->ij", np.exp(weight - logsumexp(weight)), dags[allowed])
    post = quick(
        data, sampler=UNBIASED.get(sampler, sampler), required=[("v1", "v2")], forbidden=[("v3", "v4")],
        space=gpn.Space(max_parents=2), draws=3000, chains=4,
    )  # fmt: skip
    if sampler == "exact":
        np.testing.assert_allclose(post.edge_probabilities(), expected, rtol=0, atol=1e-9)
        return
    assert_edges_agree(post, expected)


# Kinds of data and sizes of networks


def test_statistics_as_data():
    data = table(LINEAR)
    statistics = gpn.SufficientStatistics(len(data), data.mean(), data.cov(), tuple(data.columns))
    np.testing.assert_allclose(
        quick(statistics).edge_probabilities(), quick(data).edge_probabilities(), rtol=0, atol=1e-9
    )


def test_arrays_and_files_as_data():
    expected = quick(table(LINEAR))
    assert_same_draws(quick(REFERENCE / f"{LINEAR}.csv"), expected)
    assert_same_draws(quick(table(LINEAR).to_numpy()), expected)


@pytest.mark.parametrize("sampler", SAMPLERS)
def test_two_variables(sampler):
    data = np.random.default_rng(1).normal(size=(30, 2))
    post = quick(data, sampler=UNBIASED.get(sampler, sampler), draws=2000)
    scorer = gpn.scores.BGe().bind(data)
    weight = np.exp([scorer.total(dag) - scorer.total([]) for dag in ([], [(0, 1)], [(1, 0)])])
    assert post.edge_probabilities().loc["v1", "v2"] == pytest.approx(weight[1] / weight.sum(), abs=0.05)


@pytest.mark.parametrize("sampler", MCMC)
def test_seventy_variables_with_few_candidates(sampler):
    """More variables than the bits of one word."""
    n = 70
    data = np.random.default_rng(2).normal(size=(30, n)).cumsum(axis=1)
    # Among the last variables the candidates go both ways; the others reach from one word to the next.
    candidates = {i: [j for j in ((i + 1) % n, (i + 2) % n, (i - 1) % n, (i + 64) % n) if j != i] for i in range(n)}
    post = quick(data, sampler=sampler, space=gpn.Space(candidates=candidates), draws=15, tune=10)
    assert post.parents.shape == (2, 15, n, 2)
    assert graphs.is_acyclic(post.adjacency).all()
    assert post.adjacency[..., 64:, :].any()
    scorer = gpn.scores.BGe().bind(data)
    for graph in list(post.graphs())[::7]:
        assert all(post.names.index(p) in candidates[post.names.index(c)] for p, c in graph.edges)
        assert graph.graph["log_score"] == pytest.approx(scorer.total(graph), abs=1e-6)
    assert len(post.summary()) == n * (n - 1)


def test_auto_takes_the_exact_sampler_for_small_networks_only():
    data = np.random.default_rng(3).normal(size=(40, 17))
    post = quick(data, space=gpn.Space(candidates={i: [(i + 1) % 17] for i in range(17)}), draws=5)
    assert post.settings["sampler"] == "partition"
    assert post.exact is None


# Warnings


def test_costly_order_correction_is_told():
    data = np.random.default_rng(5).normal(size=(30, 10))
    with pytest.warns(UserWarning, match=r"^correcting the order bias leaves \d\.\d% of the draws effective; "):
        post = quick(
            data, sampler=gpn.samplers.Order(bias="correct"), space=gpn.Space(max_parents=3), draws=300, tune=100
        )
    assert post.diagnostics().weight_share < 0.1
    assert "sampler='partition'" in str(post.diagnostics())
    # Each weight is one over the number of orders of the DAG.
    counts = [graphs.count_linear_extensions(dag) for dag in post.adjacency[0, :20]]
    np.testing.assert_allclose(post.log_weights[0, :20], -np.log(counts), rtol=1e-12)
    # With data that leave few edges the weights are alike, and nothing is told.
    data = np.random.default_rng(5).normal(size=(400, 10))
    post = quick(data, sampler=gpn.samplers.Order(bias="correct"), space=gpn.Space(max_parents=2), draws=300, tune=100)
    assert post.diagnostics().weight_share > 0.1


# Progress


def test_progress_is_shown_on_stderr_only_when_asked(capfd, progress_at_once):
    quick(table(NULL), sampler="partition")
    assert capfd.readouterr() == ("", "")
    quick(table(NULL), sampler="partition", progressbar=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "Sampling" in err


# Refusals

BAD_ARGUMENTS = {
    "score": ({"score": "best"}, "score must be a Score or one of bge, gp, bic, bdeu, k2, cg; received 'best'"),
    "score with a typo": (
        {"score": "gpp"},
        "score must be a Score or one of bge, gp, bic, bdeu, k2, cg; received 'gpp': did you mean 'gp'?",
    ),
    "sampler with a typo": (
        {"sampler": "Partition"},
        "sampler must be a Sampler or one of auto, exact, partition, order; received 'Partition': did you mean 'pa",
    ),
    "prior with a typo": (
        {"prior": "uniforn"},
        "prior must be one of uniform, fair, or a table of edge probabilities; received 'uniforn': did you mean 'unif",
    ),
    "executor": (
        {"executor": 4},
        "executor must be a concurrent.futures.Executor, such as ThreadPoolExecutor(4), or None; received 4",
    ),
    "cache": ({"cache": 4}, "a run's file must be given by its path; received 4"),
    "sampler": (
        {"sampler": "gibbs"},
        "sampler must be a Sampler or one of auto, exact, partition, order; received 'gibbs'",
    ),
    "draws": ({"draws": 0}, "draws must be a whole number, 1 or more; received 0"),
    "half a draw": ({"draws": 1.5}, "draws must be a whole number, 1 or more; received 1.5"),
    "truth": ({"chains": True}, "chains must be a whole number, 1 or more; received True"),
    "tune": ({"tune": -1}, "tune must be a whole number, 0 or more; received -1"),
    "cores": ({"cores": 0}, "cores must be a whole number, 1 or more; received 0"),
    "thin": ({"sampler": {"thin": "often"}}, "thin must be a whole number, 1 or more; received 'often'"),
    "seed": ({"random_seed": -1}, "random_seed must be a whole number, 0 or more; received -1"),
    "text seed": ({"random_seed": "one"}, "random_seed must be a whole number, 0 or more; received 'one'"),
    "order_bias": ({"sampler": {"bias": "drop"}}, "bias must be 'keep' or 'correct'; received 'drop'"),
    "reweight": ({"sampler": {"reweight": "always"}}, "reweight must be 'auto' or None; received 'always'"),
    "prior": (
        {"prior": "flat"},
        "prior must be one of uniform, fair, or a table of edge probabilities; received 'flat'",
    ),
    "required": (
        {"required": [("v1", "x")]},
        "required edges: every node must be one of the variables; 'x' is not",
    ),
    "both": (
        {"required": [("v1", "v2")], "forbidden": [("v1", "v2")]},
        "an edge can't be required and forbidden; v1 -> v2 is both",
    ),
    "tiers": ({"tiers": [["v1"]]}, "every variable belongs to one tier; 'v2' is in none"),
    "max_parents": ({"space": {"max_parents": -1}}, "max_parents must be a whole number, 0 or more; received -1"),
    "candidates": ({"space": {"candidates": {"v1": ["x"]}}}, "every node must be one of the variables; 'x' is not"),
}


@pytest.mark.parametrize(("settings", "message"), BAD_ARGUMENTS.values(), ids=BAD_ARGUMENTS)
def test_bad_arguments_are_refused_in_one_line(settings, message):
    kinds = {"sampler": gpn.samplers.Order, "space": gpn.Space}
    with pytest.raises(ValueError) as error:
        made = {name: kinds[name](**own) for name, own in settings.items() if name in kinds and isinstance(own, dict)}
        quick(table(NULL), **settings | made)
    assert str(error.value).startswith(message)
    assert "\n" not in str(error.value)


def test_a_cache_that_cannot_be_written_is_refused_in_one_line(tmp_path):
    (tmp_path / "run.sqlite.lock").mkdir()
    with pytest.raises(ValueError, match=r"^a file must be writable; '.*run.sqlite' isn't: .+$"):
        quick(table(NULL), cache=tmp_path / "run.sqlite")
    (tmp_path / "file").write_text("", encoding="utf-8")
    with pytest.raises(ValueError, match="^the folder of a run's file must exist; '.*file' doesn't$"):
        quick(table(NULL), cache=tmp_path / "file" / "run.sqlite")


def test_networks_too_large_are_refused():
    data = np.random.default_rng(1).normal(size=(40, 22))
    with pytest.raises(
        ValueError, match="^at most 20 candidate parents per node are supported; 'v1' has 21: name fewer"
    ):
        quick(data, space=gpn.Space(candidates={0: range(1, 22)}))
    few = {i: [(i + 1) % 22] for i in range(22)}
    with pytest.raises(
        ValueError, match="^the exact sampler takes at most 17 variables; received 22: use 'partition'$"
    ):
        quick(data, sampler="exact", space=gpn.Space(candidates=few))
    with pytest.raises(ValueError, match="^bias='correct' takes at most 20 variables; received 22: use 'part"):
        quick(data, sampler=gpn.samplers.Order(bias="correct"), space=gpn.Space(candidates=few))


def test_whole_numbers_of_numpy_are_whole_numbers(tmp_path):
    data = table(NULL)
    plain = quick(data, sampler=gpn.samplers.Partition(thin=7), space=gpn.Space(max_parents=2))
    post = quick(
        data,
        sampler=gpn.samplers.Partition(thin=np.int64(7)),
        draws=np.int64(60),
        tune=np.int32(20),
        chains=np.int64(2),
        random_seed=np.uint32(3),
        space=gpn.Space(max_parents=np.int64(2)),
    )
    assert_same_draws(post, plain)
    post.save(tmp_path / "run.nc")
    assert gpn.load(tmp_path / "run.nc").settings == plain.settings

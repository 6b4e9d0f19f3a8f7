"""Slow scores: the sets that count are scored, and the audit says what the others hold."""

from itertools import combinations

import networkx as nx
import numpy as np
import pytest

import gpn_bayes as gpn
from gpn_bayes import graphs
from gpn_bayes.candidates.parent_space import ParentSpace
from gpn_bayes.mcmc.exact_posterior import exact_probabilities
from gpn_bayes.sampling import tables
from gpn_bayes.sampling.options import RunOptions
from gpn_bayes.sampling.preparing import prepare
from gpn_bayes.sampling.rounds import grow
from gpn_bayes.sampling.slow_scores.neglected_mass import _Sampler, audit
from gpn_bayes.sampling.slow_scores.scored_sets import ScoredSets, drawn_contexts
from gpn_bayes.sampling.tables import Tabulator
from gpn_bayes.scores import BGe, GraphPrior
from gpn_bayes.scores.cache import ScoreCache
from tests.draws import asked, assert_same_draws
from tests.rough_scores import Noisy

# BGe with noise on it, by a scorer that has no closed form and keeps count.
SLOW = Noisy(noise=0.5, rough=0)
OF_CHAINS = pytest.mark.more("statistics that take long")


@pytest.fixture
def few_are_many(monkeypatch):
    """Score no table in full, however small."""
    monkeypatch.setattr(tables, "MAX_ALL_SLOW", 0)


def simulated(n, seed=1, parents=2.0, rows=300):
    dag = gpn.simulate.random_dag(n, edges_per_node=parents, random_seed=seed)
    return gpn.simulate.linear(dag, n_rows=rows, random_seed=seed)


def grown(data, **settings):
    """Return a run, its grown sets and what growing led to."""
    run = prepare(data, RunOptions(SLOW, random_seed=1, draws=300, prior="fair", **asked(**settings)))
    tabulator = Tabulator(ScoreCache(run.scorer), run.prior, progressbar=False)
    lists = [[j for j in range(len(run.scorer.names)) if j != i] for i in range(len(run.scorer.names))]
    return run, tabulator, grow(run, lists, tabulator, progressbar=False)


def log_z(tabulator, space):
    return exact_probabilities(tabulator.tables(space)).log_z


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_what_is_left_out_is_little_and_as_much_as_the_audit_says(seed, monkeypatch):
    """Nine variables: the sum over all DAGs of the scored sets against that of all sets."""
    data = simulated(9, seed)
    monkeypatch.setattr(tables, "MAX_ALL_SLOW", 0)
    run, tabulator, growth = grown(data, max_parents=4)
    kept = log_z(tabulator, growth.space)
    monkeypatch.setattr(tables, "MAX_ALL_SLOW", 10**6)
    left_out = 1 - np.exp(kept - log_z(Tabulator(tabulator.store, run.prior, progressbar=False), growth.space))
    assert growth.audit.conceivable == 9 * 163
    assert growth.audit.scored == sum(tabulator.scored.counts) < growth.audit.conceivable
    assert left_out < 0.02
    # Of a DAG; the audit's is that of a node.
    assert left_out < 9 * (growth.audit.neglected_mass + 4 * growth.audit.error) + 0.01


def test_the_audit_notices_sets_that_should_have_been_scored(few_are_many):
    """Negative control: the empty set and single parents alone."""
    data = simulated(7)
    run, tabulator, growth = grown(data)
    few = ScoredSets(tabulator.store, run.prior, progressbar=False)
    few.add((i, parents) for i in range(7) for parents in [(), *((j,) for j in range(7) if j != i)])
    full = gpn.sample(data, score=SLOW, prior="fair", sampler="exact", draws=50, random_seed=1, progressbar=False)
    contexts = drawn_contexts(full.parents)
    found = audit(few, contexts, None, np.random.default_rng(1))
    again = audit(tabulator.scored, contexts, None, np.random.default_rng(1))
    assert found.neglected_mass > 0.1 > 0.01 > again.neglected_mass


@OF_CHAINS
def test_the_audit_is_unbiased(few_are_many):
    """Its mean over many samples against the sum over all sets without a score."""
    run = prepare(simulated(6), RunOptions(SLOW, prior="fair"))
    store = ScoreCache(run.scorer)
    sets = {i: [s for size in range(4) for s in combinations([j for j in range(6) if j != i], size)] for i in range(6)}
    rng = np.random.default_rng(1)
    chosen = {i: [(), *(own[k] for k in rng.permutation(np.arange(1, len(own)))[:8])] for i, own in sets.items()}
    dags = np.array(
        [nx.to_numpy_array(gpn.simulate.random_dag(6, edges_per_node=1.0, random_seed=s)) for s in range(20)]
    ).astype(np.int8)
    contexts = drawn_contexts(graphs.pack(dags))

    def fresh():
        scored = ScoredSets(store, run.prior, progressbar=False)
        scored.add((i, parents) for i, own in chosen.items() for parents in own)
        return scored

    expected = 0.0
    for i, own in sets.items():
        scores = {s: store.get(i, s) + run.prior.log_table(i, s)[-1] for s in own}
        for context, weight in zip(*contexts[i], strict=True):
            allowed = {s for s in own if context[list(s)].all()}
            z = sum(np.exp(scores[s]) for s in allowed & set(chosen[i]))
            expected += weight * sum(np.exp(scores[s]) for s in allowed - set(chosen[i])) / z / 6
    audits = [audit(fresh(), contexts, 3, np.random.default_rng(seed)) for seed in range(300)]
    masses = np.array([found.neglected_mass for found in audits])
    assert abs(masses.mean() - expected) < 4 * masses.std() / np.sqrt(len(masses))
    # The errors it reports are those it has.
    assert np.sqrt(np.mean([found.error**2 for found in audits])) == pytest.approx(masses.std(), rel=0.25)
    assert all(found.conceivable == 6 * 26 and found.scored == 6 * 9 + found.audited for found in audits)


def test_probabilities_of_sampled_sets_sum_to_one(few_are_many):
    run = prepare(simulated(6), RunOptions(SLOW))
    scored = ScoredSets(ScoreCache(run.scorer), run.prior, progressbar=False)
    scored.add((0, parents) for parents in [(), (1,), (3,), (1, 3), (2, 3, 4)])
    sampler = _Sampler(scored.nodes[0], np.array([0.1, 0.5, 0.0, 0.3, 0.1]), np.arange(1, 6), limit=4)
    every = [s for size in range(1, 5) for s in combinations(range(1, 6), size)]
    probabilities = np.array([sampler._probability(s) for s in every])
    assert probabilities.sum() == pytest.approx(1.0) and (probabilities > 0).all()
    rng = np.random.default_rng(1)
    drawn = [sampler.draw(rng) for _ in range(4000)]
    counts = np.array([sum(s == one for one, _ in drawn) for s in every])
    assert all(probability == sampler._probability(s) for s, probability in drawn[:20])
    chi2 = ((counts - 4000 * probabilities) ** 2 / (4000 * probabilities)).sum()
    assert chi2 < len(every) + 4 * np.sqrt(2 * len(every))


def test_contexts_are_what_is_no_descendant():
    dags = [gpn.simulate.random_dag(7, edges_per_node=1.0, random_seed=s) for s in range(5)]
    adjacency = np.array([nx.to_numpy_array(dag) for dag in dags]).astype(np.int8)
    for node, own in enumerate(drawn_contexts(graphs.pack(adjacency))):
        names = list(dags[0])
        expected = [
            tuple(j != node and names[j] not in nx.descendants(dag, names[node]) for j in range(7)) for dag in dags
        ]
        assert {tuple(row) for row in own.nodes.tolist()} == set(expected)
        for row, weight in zip(own.nodes.tolist(), own.weights, strict=True):
            assert weight == pytest.approx(expected.count(tuple(row)) / 5)


@pytest.mark.parametrize(
    ("sampler", "reweight"),
    [
        ("exact", "auto"),
        ("partition", None),
        *(pytest.param(*both, marks=OF_CHAINS) for both in (("exact", None), ("order", None))),
        *(pytest.param(sampler, "auto", marks=OF_CHAINS) for sampler in ("partition", "order")),
    ],
)
def test_all_samplers_give_the_posterior_over_all_sets(sampler, reweight, monkeypatch):
    """Seven variables, with knowledge about edges; drawn under the score itself, and by way of a rougher one."""
    data = simulated(7)
    names = list(data.columns)
    settings = {
        "score": Noisy(noise=0.5, rough=0.3), "prior": "fair", "required": [(names[0], names[3])],
        "forbidden": [(names[1], names[2]), (names[6], names[5])], "random_seed": 3, "progressbar": False,
        "space": gpn.Space(max_parents=4),
    }  # fmt: skip
    full = gpn.sample(data, sampler=gpn.samplers.Exact(reweight=None), draws=100, **settings)
    monkeypatch.setattr(tables, "MAX_ALL_SLOW", 0)
    bias = {"bias": "correct"} if sampler == "order" else {}
    post = gpn.sample(data, draws=1500, **settings, **asked(sampler=sampler, reweight=reweight, **bias))
    found = post.diagnostics()
    # Of six others up to 4: 57 sets. Nodes with a forbidden parent have 31, the one with a required parent 26.
    assert found.conceivable_sets == 4 * 57 + 2 * 31 + 26
    assert 0 < found.scored_sets < found.conceivable_sets and found.neglected_mass < 0.05
    assert f"{found.scored_sets:,} of {found.conceivable_sets:,} parent sets were scored" in found.summary
    assert post.edge_probability(names[0], names[3]).value == pytest.approx(1.0)
    assert post.edge_probability(names[1], names[2]).value == 0.0
    difference = np.abs(post.edge_probabilities() - full.edge_probabilities()).to_numpy()
    errors = [[0.0 if i == j else post.edge_probability(i, j).mcse for j in names] for i in names]
    assert (difference <= 4 * np.nan_to_num(np.array(errors)) + 0.005).all()


@OF_CHAINS
def test_a_space_with_parents_from_outside_grows_with_its_sets(few_are_many):
    data = simulated(8)
    settings = {"score": SLOW, "prior": "fair", "random_seed": 1, "progressbar": False}
    post = gpn.sample(data, space=gpn.Space(candidates="greedy"), sampler="partition", draws=6000, **settings)
    assert post.settings["candidates"]["plus_one"]
    assert post.diagnostics().scored_sets < post.diagnostics().conceivable_sets == 8 * 2**7
    run, tabulator, growth = grown(data)
    np.testing.assert_allclose(
        post.edge_probabilities(), exact_probabilities(tabulator.tables(growth.space)).edge_probabilities, atol=0.05
    )


@OF_CHAINS
def test_scores_that_are_there_already_change_nothing(few_are_many, tmp_path):
    """A run that goes on from its file, or finds more scores there than it would compute, draws the same DAGs."""
    data = simulated(8)
    settings = {"score": SLOW, "prior": "fair", "draws": 200, "progressbar": False, "sampler": "partition"}
    first = gpn.sample(data, random_seed=1, **settings)
    file = tmp_path / "run.sqlite"
    gpn.sample(data, random_seed=2, cache=file, **settings)
    assert_same_draws(gpn.sample(data, random_seed=1, cache=file, **settings), first)


def test_contexts_weigh_as_much_as_the_dags_that_have_them():
    dags = np.zeros((4, 2, 2), dtype=np.int8)
    dags[:3, 0, 1] = 1
    first, second = drawn_contexts(graphs.pack(dags))
    assert first.nodes.tolist() == [[False, False], [False, True]] and first.weights.tolist() == [0.75, 0.25]
    assert second.nodes.tolist() == [[True, False]] and second.weights.tolist() == [1.0]


def test_powers_are_of_all_scores_those_with_a_parent_from_outside_too(monkeypatch):
    data, made = simulated(4, parents=1.0), []
    monkeypatch.setattr(tables, "build_tables", lambda *parts: made.append(parts))
    space = ParentSpace([[1], [0], [0, 1], [2]], [[2, 3], [2, 3], [3], [0, 1]], max_parents=None)
    tabulator = Tabulator(ScoreCache(BGe().bind(data)), GraphPrior(list(data.columns), "fair"), progressbar=False)
    for power in (1.0, 0.25):
        tabulator.tables(space, power)
    (_, plain, _, plain_beside), (_, flat, _, flat_beside) = made
    for node in range(4):
        assert np.isfinite(plain[node]).all() and np.isfinite(plain_beside[node]).all()
        np.testing.assert_allclose(flat[node], 0.25 * plain[node])
        np.testing.assert_allclose(flat_beside[node], 0.25 * plain_beside[node])


def test_only_sets_of_the_space_are_scored(few_are_many):
    data = simulated(6)
    prior = GraphPrior(list(data.columns), tiers=[list(data.columns[:3]), list(data.columns[3:])])
    scored = ScoredSets(ScoreCache(SLOW.bind(data)), prior, progressbar=False)
    space = ParentSpace([[1], [0], [0, 1], [0, 4], [1, 2], []], [[2], [], [], [5], [], [0, 1, 2, 3, 4]], max_parents=2)
    scored.begin(space)
    scored.extend(space, drawn_contexts(graphs.pack(np.zeros((1, 6, 6), dtype=np.int8))))
    assert sum(scored.counts) > 12
    for i, node in enumerate(scored.nodes):
        assert all(
            space.holds(i, set(parents)) and not prior.forbidden[list(parents), i].any() for parents in node.places
        )


@OF_CHAINS
def test_a_space_that_grows_beyond_what_is_scored_in_full(monkeypatch):
    """The first round scores all sets, later ones those that count; none is left with the sets it begins with."""
    data = simulated(8)
    settings = {"score": SLOW, "prior": "fair", "random_seed": 1, "progressbar": False, "sampler": "partition"}
    monkeypatch.setattr(tables, "MAX_ALL_SLOW", 80)  # eight nodes with eight sets each, and one with 14
    few = dict.fromkeys(data.columns, []) | {data.columns[0]: [data.columns[1]]}
    post = gpn.sample(data, space=gpn.Space(candidates=few, plus_one=True), draws=1500, **settings)
    assert len(post.settings["candidates"]["rounds"]) > 2
    assert 0 < post.diagnostics().scored_sets < post.diagnostics().conceivable_sets
    run, tabulator, growth = grown(data)
    expected = exact_probabilities(tabulator.tables(growth.space)).edge_probabilities
    np.testing.assert_allclose(post.edge_probabilities(), expected, atol=0.08)  # two parents from outside are left out

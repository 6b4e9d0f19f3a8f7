"""Search spaces with a parent from outside, rounds that let them grow, coupled chains, runs until convergence."""

import warnings
from itertools import combinations
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import gpn_bayes as gpn
from gpn_bayes import graphs
from gpn_bayes.candidates.costs import most_candidates
from gpn_bayes.candidates.parent_space import ParentSpace, with_parents_from_outside
from gpn_bayes.sampling.checkpoint import CheckpointStore
from gpn_bayes.sampling.options import RunOptions
from gpn_bayes.sampling.preparing import prepare
from gpn_bayes.sampling.tables import Tabulator
from gpn_bayes.sampling.warned import run_warnings
from gpn_bayes.scores import GraphPrior
from gpn_bayes.scores.cache import ScoreCache
from tests.draws import asked, assert_same_draws

pytestmark = pytest.mark.more("samples large networks")

REFERENCE = Path(__file__).parent / "reference" / "bge"
FIVE = pd.read_csv(REFERENCE / "lin_n5_N200.csv")
NAMES = list(FIVE.columns)
CORE = {
    NAMES[0]: [NAMES[1]], NAMES[1]: [NAMES[0], NAMES[2]], NAMES[2]: [], NAMES[3]: [NAMES[0]],
    NAMES[4]: [NAMES[3], NAMES[2]],
}  # fmt: skip
NO_ONE = dict.fromkeys(NAMES, ())


def quick(data=FIVE, **settings):
    return gpn.sample(data, **asked(**{"random_seed": 1, "progressbar": False, "sampler": "partition"} | settings))


def enumerated(core: dict[str, list[str]], plus_one: bool) -> np.ndarray:
    """Return edge probabilities over all DAGs with at most one parent a node from outside its candidates."""
    scorer = gpn.scores.BGe().bind(FIVE)
    dags = graphs.enumerate_dags(len(NAMES))
    log_scores = np.zeros(len(dags))
    for i, name in enumerate(NAMES):
        outside = [other not in core.get(name, []) for other in NAMES]
        masks = dags[:, :, i] @ (1 << np.arange(len(NAMES)))
        table = np.full(1 << len(NAMES), -np.inf)
        for mask in np.unique(masks):
            own = [other for bit, other in enumerate(NAMES) if mask >> bit & 1]
            if sum(out for bit, out in enumerate(outside) if mask >> bit & 1) <= plus_one:
                table[mask] = scorer.local(name, own)
        log_scores += table[masks]
    weights = np.exp(log_scores - logsumexp(log_scores))
    return np.clip(np.tensordot(weights, dags.astype(float), axes=1), 0.0, 1.0)


def assert_edges_match(post: gpn.GraphPosterior, expected: np.ndarray) -> None:
    found = post.edge_probabilities().to_numpy()
    effective = post.diagnostics().ess / 2
    assert effective > 500
    bound = 4 * np.sqrt(expected * (1 - expected) / effective) + 4 / effective
    assert (np.abs(found - expected) <= bound).all()


@pytest.mark.parametrize("temperatures", [1, 3])
def test_one_parent_from_outside_gives_exactly_the_posterior_over_that_space(temperatures):
    expected = enumerated(CORE, plus_one=True)
    post = quick(
        space=gpn.Space(candidates=CORE, plus_one=True, expand=False),
        draws=2000,
        sampler=gpn.samplers.Partition(thin=200, temperatures=temperatures),
    )
    assert_edges_match(post, expected)
    # The space matters: neither the one without outside nodes nor the whole one would pass.
    for other in (enumerated(CORE, plus_one=False), enumerated(dict.fromkeys(NAMES, NAMES), plus_one=True)):
        with pytest.raises(AssertionError):
            assert_edges_match(post, other)


def test_with_all_candidates_the_result_is_that_of_the_exact_sampler():
    everyone = {name: [other for other in NAMES if other != name] for name in NAMES}
    exact = gpn.sample(FIVE, sampler="exact", random_seed=1, progressbar=False)
    assert_edges_match(quick(space=gpn.Space(candidates=everyone), draws=3000), exact.edge_probabilities().to_numpy())
    assert_edges_match(
        quick(space=gpn.Space(candidates=everyone, plus_one=True), draws=3000), exact.edge_probabilities().to_numpy()
    )


def test_a_slow_score_looks_up_what_a_closed_form_computes(tmp_path):
    # With a cache the closed form goes through single scores, as a slow one does.
    settings = {"candidates": CORE, "plus_one": True, "max_parents": 2, "draws": 200, "tune": 50}
    assert_same_draws(quick(**settings), quick(cache=tmp_path / "run.sqlite", **settings))


@pytest.mark.parametrize("stored", [False, True])
def test_sets_with_a_parent_from_outside_have_their_own_prior(stored, tmp_path):
    """From whole tables and from single scores: the prior is that of the set with its parent from outside."""
    scorer, odds = gpn.scores.BGe().bind(FIVE), np.random.default_rng(1).uniform(0.1, 0.9, (5, 5))
    prior = GraphPrior(NAMES, edge_probabilities=odds, edge_penalty=0.5)
    lists = [[1], [0, 2], [], [0], [3, 2]]
    space = with_parents_from_outside(lists, prior, 2, True)
    with ScoreCache(scorer, tmp_path / "run.sqlite" if stored else None) as store:
        parts = Tabulator(store, prior, progressbar=False)._full_tables(space)
    for i, (own, beside) in enumerate(parts):
        everyone = [j for j in range(5) if j != i]
        priors = prior.log_table(i, everyone)
        for mask in range(1 << len(lists[i])):
            inside = [j for bit, j in enumerate(lists[i]) if mask >> bit & 1]
            for found, parents in [(own[mask], inside)] + [
                (row[mask], [*inside, j]) for row, j in zip(beside, space.outside[i], strict=True)
            ]:
                place = sum(1 << everyone.index(j) for j in parents)
                expected = scorer.local(i, sorted(parents)) + priors[place] if len(parents) <= 2 else -np.inf
                assert found == pytest.approx(expected)


def test_parents_of_high_probability_are_taken_into_the_space():
    few = NO_ONE | {NAMES[0]: [NAMES[1]]}
    post = quick(space=gpn.Space(candidates=few, plus_one=True), draws=300, tune=200)
    candidates_report = post.settings["candidates"]
    assert candidates_report["rounds"][0]["added"] > 0 and candidates_report["rounds"][-1]["added"] == 0
    assert sum(candidates_report["sizes"]) == 1 + sum(
        done["added"] - done["dropped"] for done in candidates_report["rounds"]
    )
    rigid = quick(space=gpn.Space(candidates=few, plus_one=True, expand=False), draws=300, tune=200)
    assert rigid.settings["candidates"]["rounds"] == []
    assert post.log_score.max() > rigid.log_score.max() + 5
    assert (
        gpn.sample(FIVE, sampler="exact", random_seed=1, progressbar=False).log_score.max() - 1e-9
        <= post.log_score.max()
    )


def test_forbidden_parents_stay_outside_and_required_ones_inside():
    edges = {"required": [(NAMES[4], NAMES[0])], "forbidden": [(NAMES[0], NAMES[1]), (NAMES[2], NAMES[1])]}
    post = quick(
        space=gpn.Space(candidates=NO_ONE | {NAMES[2]: [NAMES[0]]}, plus_one=True), draws=200, tune=100, **edges
    )
    found = post.edge_probabilities()
    assert found.loc[NAMES[4], NAMES[0]] == 1.0
    assert found.loc[NAMES[0], NAMES[1]] == found.loc[NAMES[2], NAMES[1]] == 0.0


@pytest.mark.parametrize("settings", [{}, {"temperatures": 3}, {"sampler": "order"}, {"until": "converged"}])
def test_runs_with_outside_and_ladders_resume_to_the_same_result(settings, tmp_path, monkeypatch):
    settings = {"candidates": CORE, "plus_one": True, "draws": 600, "tune": 100, "chains": 2, "thin": 200} | settings
    # From a cache as well: single scores and whole tables differ in the last digit.
    whole = quick(cache=tmp_path / "whole.sqlite", **settings)
    saved, stopped_at = CheckpointStore.save_block, []

    def save_block(self, *arguments):
        saved(self, *arguments)
        stopped_at.append(arguments[0])
        if len(stopped_at) in (3, 9):
            raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointStore, "save_block", save_block)
        for _ in range(2):
            with pytest.raises(RuntimeError, match="killed"):
                quick(cache=tmp_path / "run.sqlite", **settings)
    assert ":Round 1" in stopped_at[0]
    resumed = quick(cache=tmp_path / "run.sqlite", **settings)
    assert_same_draws(resumed, whole)
    assert resumed.settings == whole.settings


def test_a_run_until_it_has_converged_stops_early():
    post = quick(until="converged", draws=8000, sampler=gpn.samplers.Partition(thin=200))
    assert post.settings["converged"] is True
    assert post.log_score.shape[1] in (2000, 4000, 6000)
    assert_same_draws(post, quick(until="converged", draws=8000, sampler=gpn.samplers.Partition(thin=200), cores=1))


def test_a_run_that_has_not_converged_goes_on_at_a_larger_thinning(monkeypatch):
    checks = []

    def judge(parents, log_scores, planned):
        assert planned == 100
        checks.append(log_scores.shape)
        return len(checks) == 7

    monkeypatch.setattr("gpn_bayes.sampling.chains.have_converged", judge)
    post = quick(until="converged", draws=100, tune=10, sampler=gpn.samplers.Partition(thin=3), chains=2)
    # Four looks on the way, then one at the end of each of three extensions.
    assert [shape[1] for shape in checks] == [25, 50, 75, 100, 100, 100, 100]
    assert post.settings["thin"] == 3 * 2**3 and post.settings["converged"] is True


def test_a_run_that_never_converges_says_so(monkeypatch):
    monkeypatch.setattr("gpn_bayes.sampling.chains.have_converged", lambda parents, log_scores, planned: False)
    with pytest.warns(UserWarning, match="not converged: 2 chains"):
        post = quick(until="converged", draws=20, tune=0, sampler=gpn.samplers.Partition(thin=1), chains=2)
    assert post.settings["converged"] is False and post.settings["thin"] == 32


def test_what_counts_as_converged():
    from gpn_bayes.posterior.diagnostics import have_converged

    rng = np.random.default_rng(1)
    parents = np.zeros((2, 2000, 3, 1), np.uint64)
    parents[..., 1, 0] = rng.random((2, 2000)) < 0.5
    scores = rng.normal(size=(2, 2000))
    assert have_converged(parents, scores)
    assert not have_converged(parents, scores + np.array([[0.0], [1.0]]))
    assert not have_converged(parents[:, :100], scores[:, :100])
    apart = parents.copy()
    apart[0, :200, 2, 0] = 1
    assert not have_converged(apart, scores)
    assert have_converged(parents, np.zeros((2, 2000)))


def test_exchange_rates_are_told_and_tuned_towards_their_aim():
    data = gpn.simulate.linear(gpn.simulate.random_dag(18, p=0.3, random_seed=1), 300, random_seed=2)
    post = quick(
        data,
        space=gpn.Space(candidates="correlation", plus_one=False),
        sampler=gpn.samplers.Partition(temperatures=4),
        draws=100,
        tune=300,
        chains=2,
    )
    betas, rates = post.settings["betas"], post.settings["exchange_rates"]
    assert betas[0] == 1.0 and sorted(betas, reverse=True) == betas and len(betas) == 4
    assert len(rates) == 3 and all(0.1 < rate < 0.6 for rate in rates)


def test_a_small_network_with_outside_nodes_is_not_drawn_exactly():
    """An estimate seeds the space, and what it left out may come back: no sampler need be named for that."""
    rng = np.random.default_rng(1)
    values = rng.normal(size=(100, 4))
    values[:, 3] += values[:, 0]
    data = pd.DataFrame(values, columns=list("abcd"))
    estimate = gpn.estimators.HillClimbing("bic").fit(data)
    post = gpn.sample(
        data, "bge", space=gpn.Space(candidates=estimate), draws=200, chains=2, random_seed=1, progressbar=False
    )
    assert post.settings["sampler"] == "partition"
    either = post.edge_probabilities() + post.edge_probabilities().T
    assert either.loc["a", "d"] > 0.95 and either.loc["b", "c"] > 0


@pytest.mark.parametrize("n", [65, 256, 600])
def test_networks_of_several_words(n):
    rng = np.random.default_rng(3)
    values = rng.normal(size=(60, n))
    values[:, -1] += 2 * values[:, 0]
    values[:, 1] += 2 * values[:, -2]
    data = pd.DataFrame(values).add_prefix("x")
    names = list(data.columns)
    lists = {name: [names[(i + 1) % n], names[(i + n // 2) % n]] for i, name in enumerate(names)}
    post = quick(
        data,
        space=gpn.Space(candidates=lists, plus_one=True, expand=False, max_parents=2),
        draws=50,
        tune=50,
        chains=2,
        sampler=gpn.samplers.Partition(thin=200),
    )
    either = post.edge_probabilities() + post.edge_probabilities().T
    assert either.loc["x0", names[-1]] > 0.99 and either.loc["x1", names[-2]] > 0.99
    scorer = gpn.scores.BGe().bind(data)
    assert post.log_score[0, -1] == pytest.approx(scorer.total(graphs.unpack(post.parents[0, -1], n)), abs=1e-6)


REFUSED = [
    ({"until": "bored"}, "until must be 'converged' or None; received 'bored'"),
    ({"temperatures": 0}, "temperatures must be a whole number, 1 or more; received 0"),
    ({"plus_one": "maybe"}, "plus_one must be True, False or 'auto'; received 'maybe'"),
    ({"plus_one": True, "sampler": "exact"}, "the exact sampler takes no parents from outside the candidates"),
    ({"expand": True, "plus_one": False}, "candidates can only grow by parents from outside"),
    ({"expand": 1.5, "plus_one": True}, "expand must be True, False, 'auto' or a probability; received 1.5"),
    ({"expand": "often", "plus_one": True}, "expand must be True, False, 'auto' or a probability; received 'often'"),
]


@pytest.mark.parametrize(("settings", "message"), REFUSED)
def test_what_cannot_be_is_refused(settings, message):
    with pytest.raises(ValueError) as refusal:
        quick(**settings)
    assert message in str(refusal.value) and "\n" not in str(refusal.value)


def test_too_many_sets_with_an_outside_node_are_refused():
    prior = GraphPrior([f"x{i}" for i in range(200)])
    wide = [[j for j in range(13) if j != i] for i in range(200)]
    with pytest.raises(ValueError, match="parents from outside the candidates take at most 42000000 scores"):
        with_parents_from_outside(wide, prior, None, True)
    assert with_parents_from_outside(wide, prior, None, False) == ParentSpace(wide, [[]] * 200)
    assert [most_candidates(n) for n in (20, 100, 200, 1024)] == [14, 12, 10, 5]


def test_a_space_knows_its_sets():
    space = ParentSpace([[1, 2], [0], [], [0, 1, 2]], [[3], [], [0, 1, 3], []], max_parents=2)
    total = 0
    for node in range(4):
        others = [j for j in range(4) if j != node]
        sets = {frozenset(members) for size in range(4) for members in combinations(others, size)}
        own, outside = set(space.lists[node]), set(space.outside[node])
        expected = {s for s in sets if len(s) <= 2 and s <= own | outside and len(s - own) <= 1}
        assert {s for s in sets if space.holds(node, set(s))} == expected
        total += len(expected)
    assert space.size == total


def test_tables_of_nodes_that_did_not_change_are_kept(monkeypatch):
    run = prepare(FIVE, RunOptions(space=gpn.Space(candidates=CORE, plus_one=True), sampler="partition"))
    tabulator = Tabulator(ScoreCache(run.scorer), run.prior, progressbar=False)
    lists = [[1], [0, 2], [], [0], [3, 2]]
    space = with_parents_from_outside(lists, run.prior, None, True)
    first = tabulator.tables(space)
    asked = []
    table = run.scorer.table
    monkeypatch.setattr(run.scorer, "table", lambda node, *rest: asked.append(node) or table(node, *rest))
    grown = with_parents_from_outside([[1], [0, 2, 3], [], [0], [3, 2]], run.prior, None, True)
    second = tabulator.tables(grown)
    assert set(asked) == {1}
    fresh = Tabulator(ScoreCache(run.scorer), run.prior, progressbar=False).tables(grown)
    np.testing.assert_array_equal(second.values, fresh.values)
    assert len(first.values) < len(second.values)


def test_gp_scores_take_a_search_space_and_its_outside_nodes(tmp_path):
    dag = nx.DiGraph([("x0", "x1"), ("x2", "x1")])
    dag.add_nodes_from([f"x{i}" for i in range(6)])
    data = gpn.simulate.fourier(dag, 80, lam=1.0, random_seed=5)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        post = quick(
            data,
            score=gpn.scores.GP(target_error=0.1),
            space=gpn.Space(candidates=2, plus_one=True, max_parents=2),
            draws=100,
            tune=50,
            chains=2,
        )
    assert post.settings["candidates"]["plus_one"] is True
    assert post.settings["reweight"] == "auto"
    either = post.edge_probabilities() + post.edge_probabilities().T
    assert max(either.loc["x0", "x1"], either.loc["x2", "x1"]) > 0.5
    assert run_warnings(post, 100) is not None


def test_progress_says_how_many_rounds_there_are_at_most(capsys, progress_at_once):
    quick(
        space=gpn.Space(candidates=CORE, plus_one=True),
        draws=20,
        tune=20,
        chains=1,
        sampler=gpn.samplers.Partition(thin=10),
        progressbar=True,
    )
    shown = capsys.readouterr().err
    assert "Round 1 of at most 10 100%" in shown and "Summing 100%" in shown

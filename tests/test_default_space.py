"""The space that MCMC has by default: what it keeps of the posterior, and that draws from it agree with exact ones."""

import numpy as np
import pytest

import gpn_bayes as gpn
from gpn_bayes.candidates import costs
from gpn_bayes.candidates.growth import GrowthRule
from gpn_bayes.candidates.parent_space import ParentSpace
from gpn_bayes.candidates.spaces import SpaceContext, find_candidates
from gpn_bayes.mcmc.exact_posterior import ExactPosterior, exact_probabilities
from gpn_bayes.mcmc.tables import build_tables
from gpn_bayes.sampling.options import RunOptions
from gpn_bayes.sampling.preparing import prepare
from gpn_bayes.sampling.rounds import grow
from gpn_bayes.sampling.tables import Tabulator
from gpn_bayes.scores.cache import ScoreCache
from tests.draws import asked, assert_edges_agree

pytestmark = pytest.mark.more("samples large networks")


def simulated(n, score="bge", parents=1.5, seed=1, rows=500):
    dag = gpn.simulate.random_dag(n, edges_per_node=parents, random_seed=seed)
    simulate = gpn.simulate.linear if score == "bge" else gpn.simulate.discrete
    return simulate(dag, n_rows=rows, random_seed=seed)


@pytest.fixture
def narrow(monkeypatch):
    """Make all others too many where they are more than 9, as 14 are in earnest."""
    monkeypatch.setattr(costs, "MAX_TABULATED", 9)


def space_of(data, score, **settings) -> ParentSpace:
    """Return the space that chains would draw from, after it has grown."""
    run = prepare(
        data, RunOptions(score=score, sampler="partition", draws=300, tune=100, random_seed=1, **asked(**settings))
    )
    store = ScoreCache(run.scorer)
    candidates = find_candidates(run.space, SpaceContext(run.data, store, progressbar=False))
    return grow(run, candidates.lists, Tabulator(store, run.prior, progressbar=False), progressbar=False)[0]


def exact_over(scorer, space: ParentSpace | None = None) -> ExactPosterior:
    """Sum over all DAGs, or over those of a space."""
    n = len(scorer.names)
    others = [[j for j in range(n) if j != i] for i in range(n)]
    masks = np.arange(1 << (n - 1))
    scores = [scorer.table(i, own) for i, own in enumerate(others)]
    if space is not None:
        for i, own in enumerate(others):
            outside = sum((masks >> bit & 1) * (j not in space.lists[i]) for bit, j in enumerate(own))
            scores[i][outside > bool(space.outside[i])] = -np.inf
    return exact_probabilities(build_tables(others, scores))


@pytest.mark.parametrize("score", ["bge", "bdeu"])
@pytest.mark.parametrize("parents", [1, 2])
def test_the_default_space_keeps_nearly_all_of_the_posterior(score, parents, narrow):
    """Twelve variables: each has at least nine candidates, and at most one parent of the two others."""
    data = simulated(12, score, parents)
    scorer = gpn.scores.by_name(score).bind(data)
    everything = exact_over(scorer)
    kept = exact_over(scorer, space_of(data, score))
    assert kept.log_z - everything.log_z > np.log(0.99)
    np.testing.assert_allclose(kept.edge_probabilities, everything.edge_probabilities, rtol=0, atol=0.005)
    # Negative control: lists that only grow, and aren't filled up by the score, leave more out.
    unfilled = exact_over(scorer, space_of(data, score, candidates="greedy"))
    assert everything.log_z - unfilled.log_z > 1.5 * (everything.log_z - kept.log_z)


def test_only_nodes_that_leave_much_out_have_more_candidates_than_usual():
    """Two parents from outside of probability 0.3 leave about 9 % out, two of 0.03 hardly anything.

    Neither finds a candidate to replace.
    """
    lists, outside = [[1, 2], [0, 2]], [[3, 4], [3, 4]]
    space = ParentSpace(lists, outside, max_parents=None)
    probabilities = np.full((5, 5), 0.2)
    probabilities[3:, 0], probabilities[3:, 1] = 0.3, 0.03
    grown, done = GrowthRule(threshold=0.02, limit=2, most=3).next_lists(space, probabilities)
    assert list(map(len, grown[:2])) == [3, 2]
    assert (done.added, done.dropped, done.no_room) == (1, 0, 3)


def test_draws_from_the_default_space_agree_with_the_exact_posterior(narrow):
    data = simulated(12)
    exact = gpn.sample(data, sampler="exact", draws=1, random_seed=1, progressbar=False)
    expected = exact.edge_probabilities().to_numpy()
    settings = {"sampler": "partition", "draws": 1000, "tune": 300, "random_seed": 1, "progressbar": False}
    post = gpn.sample(data, **settings)
    assert post.settings["candidates"]["method"] == "pc+greedy"
    assert_edges_agree(post, expected)
    with pytest.raises(AssertionError):
        assert_edges_agree(
            gpn.sample(data, space=gpn.Space(candidates="pc+greedy", plus_one=False), **settings), expected
        )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("parents", [1, 2])
@pytest.mark.parametrize("n", [14, 15, 16, 17])
def test_default_chains_agree_with_the_exact_sampler(n, parents, seed):
    data = simulated(n, parents=parents, seed=seed)
    exact = gpn.sample(data, sampler="exact", draws=1, random_seed=1, progressbar=False)
    post = gpn.sample(data, sampler="partition", random_seed=1, progressbar=False)
    assert post.settings["candidates"]["method"] == ("all others" if n <= 15 else "pc+greedy")
    assert_edges_agree(post, exact.edge_probabilities().to_numpy())

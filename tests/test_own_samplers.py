"""Moves and samplers of a user's own meet the exact posterior, are counted, checked, and go on where they stopped."""

import re
from dataclasses import dataclass
from math import comb
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

import gpn_bayes as gpn
from gpn_bayes import graphs
from gpn_bayes.mcmc.tables import build_tables, candidate, log_score_of, n_candidates
from gpn_bayes.posterior.diagnostics import weight_warnings
from gpn_bayes.report.trust import trust_of
from gpn_bayes.sampling.checkpoint import CheckpointStore
from gpn_bayes.sampling.options import RunOptions
from gpn_bayes.sampling.preparing import prepare
from tests.draws import NULL, assert_edges_agree, assert_same_draws, quick, table

DATA = table(NULL)
BUILT_IN = gpn.samplers.Partition().move_names


@pytest.fixture(scope="module")
def exact():
    return quick(DATA, sampler="exact").edge_probabilities().to_numpy()


class MergeOrSplitOff:
    """Merge the first two blocks, or make a node of the first a block before it; `wrong` favours the latter."""

    def __init__(self, wrong=False):
        self.wrong = wrong

    def propose(self, rng, partition):
        first, *rest = partition
        if rng.random() < 0.5:
            if not rest or len(first) > 1:
                return partition, 0.0
            merged = (first | rest[0], *rest[1:])
            # There: certain, given the choice; back: one of the nodes of the merged block.
            return merged, -np.log(len(merged[0]))
        if len(first) == 1:
            return partition, 0.0
        node = sorted(first)[rng.integers(len(first))]
        return (frozenset({node}), first - {node}, *rest), np.log(len(first)) + 3.0 * self.wrong


class Anywhere:
    """Propose a partition that doesn't depend on where the chain is: every node in one of as many blocks."""

    name = "anywhere"

    def propose(self, rng, partition):
        n = sum(map(len, partition))
        places = rng.integers(n, size=n)
        blocks = [frozenset(np.flatnonzero(places == b).tolist()) for b in np.unique(places)]
        # A partition of m blocks comes from as many assignments as there are ways to choose m of n places in order.
        ways = [np.log(comb(n, len(own))) for own in (partition, blocks)]
        return tuple(blocks), ways[0] - ways[1]


def by_moves(*moves, **settings):
    return quick(DATA, sampler=gpn.samplers.Partition(thin=4, moves=list(moves)), **settings)


@pytest.mark.parametrize("moves", [[(MergeOrSplitOff(), 0.3)], [(Anywhere(), 0.2), (MergeOrSplitOff(), 0.6)]])
def test_a_move_beside_the_built_in_ones_meets_the_exact_posterior(moves, exact):
    post = by_moves(*moves, draws=4000, tune=100)
    assert_edges_agree(post, exact)
    names = [getattr(move, "name", type(move).__name__) for move, _ in moves]
    assert list(post.settings["moves"]) == [*BUILT_IN, *names]
    assert all(0 < post.settings["moves"][name] < 1 for name in names)
    assert post.settings["shares_of_moves"] == {name: share for name, (_, share) in zip(names, moves, strict=True)}


def test_a_wrong_ratio_is_found(exact):
    """The negative control: the same move with another ratio leads elsewhere."""
    post = by_moves((MergeOrSplitOff(wrong=True), 0.9), draws=3000, tune=100)
    with pytest.raises(AssertionError):
        assert_edges_agree(post, exact)


def test_a_move_has_its_share_of_the_steps():
    sampler = gpn.samplers.Partition(thin=20, moves=[(MergeOrSplitOff(), 0.3), ("any swap", 0.2)])
    scorer = gpn.scores.BGe().bind(DATA)
    lists = [[j for j in range(4) if j != i] for i in range(4)]
    tables = build_tables(lists, [scorer.table(i, own) for i, own in enumerate(lists)])
    chain, rng = sampler.chains(tables, np.zeros((4, 4), bool), 1)[0], np.random.default_rng(1)
    chain.init(rng)
    chain.step(rng, 200, 20, tuning=False)
    shares = dict(zip(sampler.move_names, chain.info().counters[:, 0] / (200 * 20), strict=True))
    assert shares["MergeOrSplitOff"] == pytest.approx(0.3, abs=0.03)
    assert shares["any swap"] == pytest.approx(0.2, abs=0.03)
    assert sum(shares.values()) == pytest.approx(1.0)
    assert shares["relocation"] == pytest.approx(0.02 * 0.5 / 0.94, abs=0.005)


def test_runs_with_a_move_go_on_where_they_stopped(tmp_path, monkeypatch):
    settings = {"draws": 400, "tune": 50, "random_seed": 1}
    # From a cache as well: single scores and whole tables differ in the last digit.
    whole = by_moves((Anywhere(), 0.3), cache=tmp_path / "whole.sqlite", **settings)
    saved, blocks = CheckpointStore.save_block, []

    def save_block(self, *arguments):
        saved(self, *arguments)
        blocks.append(1)
        if len(blocks) == 5:
            raise RuntimeError("killed")

    with monkeypatch.context() as patch:
        patch.setattr(CheckpointStore, "save_block", save_block)
        with pytest.raises(RuntimeError, match="killed"):
            by_moves((Anywhere(), 0.3), cache=tmp_path / "run.sqlite", **settings)
    assert_same_draws(by_moves((Anywhere(), 0.3), cache=tmp_path / "run.sqlite", **settings), whole)
    # Another share is another run.
    other = by_moves((Anywhere(), 0.4), cache=tmp_path / "run.sqlite", **settings)
    assert (other.parents != whole.parents).any()


class Proposes:
    """Propose what it is given."""

    def __init__(self, answer):
        self.answer = answer

    def propose(self, rng, partition):
        return self.answer


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            ([{0, 1}, {2}], 0.0),
            "a move must propose a partition of the nodes 0, …, 3 into blocks that aren't empty; Prop",
        ),
        (([{0, 1}, {1, 2, 3}], 0.0), "a move must propose a partition of the nodes 0, …, 3 into blocks"),
        (([{0, 1, 2, 3}, set()], 0.0), "a move must propose a partition of the nodes 0, …, 3 into blocks"),
        ((7, 0.0), "a move must propose a partition of the nodes 0, …, 3 into blocks"),
        (
            ([{0, 1, 2, 3}], np.nan),
            "a move must return a partition and log q(backward) - log q(forward), a number; Proposes",
        ),
        (None, "a move must return a partition and log q(backward) - log q(forward), a number; Proposes returned None"),
    ],
)
def test_what_no_move_can_propose_is_refused_in_one_line(answer, message):
    with pytest.raises(ValueError) as refused:
        by_moves((Proposes(answer), 0.5), draws=10, tune=0)
    assert str(refused.value).startswith(message) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("moves", "message"),
    [
        (7, "moves must be pairs of a move and its share, [(MyMove(), 0.3), …]; received 7"),
        ([(MergeOrSplitOff, 0.3)], "a move must have a method propose(rng, partition); received <class"),
        ([MergeOrSplitOff], "moves must be pairs of a move and its share, [(MyMove(), 0.3), …]; received <class"),
        ([(object(), 0.3)], "a move must have a method propose(rng, partition); received <object"),
        ([("relocatoin", 0.3)], "the built-in moves are split or join, adjacent swap, any swap, relocation,"),
        ([(Anywhere(), 1.0)], "the share of a move must lie between 0 and 1, without the ends; 'anywhere' has 1.0"),
        ([(Anywhere(), 0.6), ("any swap", 0.4)], "shares of moves must add up to less than 1, so that the other"),
        ([(Anywhere(), 0.2), (Anywhere(), 0.2)], "moves must have different names; received 'anywhere' twice"),
    ],
)  # fmt: skip
def test_moves_are_checked_at_once(moves, message):
    with pytest.raises(ValueError) as refused:
        gpn.samplers.Partition(moves=moves)
    assert str(refused.value).startswith(message)


def test_moves_of_ones_own_are_not_coupled():
    with pytest.raises(ValueError, match="^your own moves need temperatures=1; received temperatures=2$"):
        gpn.samplers.Partition(temperatures=2, moves=[(Anywhere(), 0.3)])
    assert gpn.samplers.Partition(moves=[(Anywhere(), 0.3)]).coupled(4) is None
    assert gpn.samplers.Partition(moves=[("any swap", 0.3)]).coupled(4).temperatures == 4


def test_moves_that_hold_something_else_are_another_run():
    def key(*moves):
        options = RunOptions(sampler=gpn.samplers.Partition(moves=[(move, 0.3) for move in moves]), random_seed=1)
        return prepare(DATA, options).key

    one, other = MergeOrSplitOff(), MergeOrSplitOff(wrong=True)
    assert key(one) == key(MergeOrSplitOff()) and key(one) != key(other)
    assert key(one, Anywhere()) != key(Anywhere(), one)


# Samplers


class Toggles(gpn.samplers.MarkovChain):
    """A walk over DAGs that adds or removes one edge at a time, in Python."""

    moves = ("toggle",)

    def init(self, rng):
        self.parents = np.zeros(len(self.required), np.int64)

    def _fill(self, block, rng, thin, tuning):
        n = len(self.parents)
        for place in range(len(block.log_scores)):
            for _ in range(thin):
                node = rng.integers(n)
                new = self.parents.copy()
                new[node] ^= 1 << rng.integers(n_candidates(self.tables, node))
                ratio = log_score_of(self.tables, new) - log_score_of(self.tables, self.parents)
                accepted = graphs.is_acyclic(self.adjacency(new)) and rng.random() < np.exp(min(ratio, 0.0))
                self.counters[0] += (1, accepted)
                if accepted:
                    self.parents = new
            block.parents[place] = graphs.pack(self.adjacency(self.parents)[None])[0]
            block.log_scores[place] = block.targets[place] = log_score_of(self.tables, self.parents)

    def adjacency(self, parents):
        found = np.zeros((len(parents),) * 2, np.int8)
        for node, mask in enumerate(parents.tolist()):
            for bit in range(n_candidates(self.tables, node)):
                found[candidate(self.tables, node, bit), node] = mask >> bit & 1
        return found

    def state(self):
        return {"parents": self.parents}

    def restore(self, state):
        self.parents = state["parents"].copy()


@dataclass(frozen=True)
class Toggling(gpn.samplers.Sampler):
    """A sampler of one's own: a name, and chains."""

    name: ClassVar[str] = "toggling"
    move_names = Toggles.moves
    outside: ClassVar[bool] = False
    thin = 5

    def chains(self, tables, required, count, progressbar=False):
        return [Toggles(tables, required) for _ in range(count)]


def test_a_sampler_of_ones_own_meets_the_exact_posterior(exact, tmp_path):
    post = quick(DATA, sampler=Toggling(), draws=1500, tune=50, chains=2)
    assert_edges_agree(post, exact)
    assert post.settings["sampler"] == post.diagnostics().sampler == "toggling"
    assert 0 < post.settings["moves"]["toggle"] < 1 and post.settings["thin"] == 5
    assert_same_draws(quick(DATA, sampler=Toggling(), draws=1500, tune=50, chains=2, cores=1), post)
    page = post.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "toggling" in page and "gpn.sample(" not in page


class Drawn(gpn.samplers.MarkovChain):
    """Independent draws: numbers of DAGs by their probabilities."""

    def init(self, rng):
        n = len(self.required)
        dags = graphs.enumerate_dags(n)
        places = [[candidate(self.tables, node, bit) for bit in range(n - 1)] for node in range(n)]
        bits = np.array(
            [[sum(int(dag[j, i]) << b for b, j in enumerate(own)) for i, own in enumerate(places)] for dag in dags]
        )
        self.dags, self.scores = graphs.pack(dags), np.array([log_score_of(self.tables, own) for own in bits])
        self.shares = np.exp(self.scores - np.logaddexp.reduce(self.scores))

    def _fill(self, block, rng, thin, tuning):
        chosen = rng.choice(len(self.dags), len(block.log_scores), p=self.shares)
        block.parents[:] = self.dags[chosen]
        block.log_scores[:] = block.targets[:] = self.scores[chosen]

    def state(self):
        return {}

    def restore(self, state):
        self.init(None)


class Listing(gpn.samplers.Sampler):
    """A sampler of one's own whose draws are independent; `Forgetful` is the same but doesn't say so."""

    name = "listing"
    independent = True
    outside = False

    def chains(self, tables, required, count, progressbar=False):
        return [Drawn(tables, required) for _ in range(count)]


class Forgetful(Listing):
    name = "forgetful"
    independent = False


def test_independent_draws_of_ones_own_are_diagnosed_as_such(exact, tmp_path):
    post = quick(DATA, sampler=Listing(), draws=1000)
    assert_edges_agree(post, exact)
    post.save(tmp_path / "run.nc")
    for own in (post, gpn.load(tmp_path / "run.nc")):
        found, known = own.diagnostics(), trust_of(own)
        assert own.record.independent and found.ok and "R-hat" not in str(found)
        assert found.summary == "2000 independent draws." and found.heading == "Sampling has converged."
        assert known["trace"] is None and [row["name"] for row in known["figures"]] == ["Networks drawn"]
    # The negative control: chains are compared.
    other = quick(DATA, sampler=Forgetful(), draws=1000, tune=0)
    assert not other.record.independent and other.settings.get("independent") is None
    assert "R-hat" in other.diagnostics().summary and trust_of(other)["trace"] is not None


class LikeABuiltIn(Toggling):
    name = "exact"


class Nameless(gpn.samplers.Sampler):
    def chains(self, tables, required, count, progressbar=False):
        return []


class TooFew(Toggling):
    name = "too few"

    def chains(self, tables, required, count, progressbar=False):
        return super().chains(tables, required, 1)


class WithoutScores(Toggles):
    """A walk that never scores what it draws."""

    def _fill(self, block, rng, thin, tuning):
        super()._fill(block, rng, thin, tuning)
        block.log_scores[-1] = block.targets[-1] = -np.inf


class Scoreless(Toggling):
    name = "scoreless"

    def chains(self, tables, required, count, progressbar=False):
        return [WithoutScores(tables, required) for _ in range(count)]


class Unchained(Toggling):
    name = "unchained"

    def chains(self, tables, required, count, progressbar=False):
        return [Toggles(tables, required), *["chain"] * (count - 1)]


@pytest.mark.parametrize(
    ("sampler", "message"),
    [
        (LikeABuiltIn(), "your own sampler must not be named like a built-in one; LikeABuiltIn is 'exact'"),
        (Nameless(), "a sampler must have a name; Nameless has none"),
        (TooFew(), "a sampler must return 2 chains; 'too few' returned 1"),
        (Scoreless(), "a chain must draw DAGs of finite log score; received -inf"),
        (Unchained(), "a sampler must return chains that are MarkovChain; 'unchained' returned str"),
    ],
)
def test_samplers_are_refused_in_one_line(sampler, message):
    with pytest.raises(ValueError) as refused:
        quick(DATA, sampler=sampler, draws=10, tune=0, chains=2)
    assert str(refused.value) == message


def test_the_sampler_of_the_guide_takes_several_required_edges():
    """It starts from the required edges: from the empty graph, which lacks both, nothing is ever accepted."""
    page = (Path(__file__).resolve().parents[1] / "docs" / "guide" / "your_own.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    space = {"np": np}
    exec(next(block for block in blocks if "class Pairs" in block), space)
    a, b, c = DATA.columns[:3]
    knowledge = {"required": [(a, b), (b, c)]}
    post = quick(DATA, sampler=space["Pairs"](), draws=300, tune=30, chains=2, **knowledge)
    edges = post.edge_probabilities()
    assert edges.loc[a, b] == edges.loc[b, c] == 1
    assert_edges_agree(post, quick(DATA, sampler="exact", **knowledge).edge_probabilities().to_numpy())


def test_a_sampler_that_names_no_moves_keeps_its_run():
    class Silent(Toggling):
        name = "silent"
        move_names = ()

    assert list(quick(DATA, sampler=Silent(), draws=20, tune=0).settings["moves"]) == ["move 1"]


def test_what_a_sampler_of_ones_own_lacks_is_refused_by_its_name():
    with pytest.raises(ValueError, match="^the toggling sampler takes no parents from outside the candidates; use 'pa"):
        quick(DATA, sampler=Toggling(), space=gpn.Space(plus_one=True))
    gaps = DATA.copy()
    gaps.iloc[0, 0] = np.nan
    with pytest.raises(
        ValueError, match="^with missing='impute', sampler must be 'partition' or 'order'; received 'to"
    ):
        quick(gaps, sampler=Toggling(), missing="impute")


def test_advice_names_every_sampler_of_the_package_and_no_other():
    for name, kind in gpn.samplers.BUILT_IN.items():
        (text,) = weight_warnings(0.9, 10, 1000, name)
        assert f"Use sampler=gpn.samplers.{kind.__name__}(reweight=None) to" in text
    assert "Use your sampler with reweight=None to" in weight_warnings(0.9, 10, 1000, Toggling.name)[0]

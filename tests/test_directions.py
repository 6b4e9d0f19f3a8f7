"""What decides a direction: conditional independences, the shape of relations, or what was fixed besides."""

import json
import re
from dataclasses import replace

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes import graphs, simulate
from gpn_bayes.cli import main
from gpn_bayes.estimators import K2, HillClimbing
from gpn_bayes.posterior.directions import clear_pairs, grounds, known_directions
from gpn_bayes.posterior.run_record import RunRecord
from gpn_bayes.report.content import content_of
from gpn_bayes.report.resamples import bootstrap_content
from gpn_bayes.report.summaries import posterior_cell
from gpn_bayes.scores import CG, GP, GraphPrior, Lasso
from tests.draws import DAGS, NAMES, make, quick

pytestmark = pytest.mark.more("repeats whole runs for every score and setting")

# c -> d follows from the collider; e - f is open.
COLLIDER = nx.DiGraph([("a", "c"), ("b", "c"), ("c", "d"), ("e", "f")])
TIERS = [["a", "b", "e"], ["c", "d", "f"]]
BY_INDEPENDENCES = "Conditional independences in the data determine the direction of {}"
BY_SHAPE = (
    "The direction of {} rests on the shape of relations, and on the equations being of the kind that the score assumes"
)


def linear() -> pd.DataFrame:
    return simulate.linear(COLLIDER, 400, random_seed=1)[list("abcdef")]


def curved() -> pd.DataFrame:
    """Two variables on a curve, which no function from y to x fits."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-3, 3, 120)
    return pd.DataFrame({"x": x, "y": 2 * np.sin(x) + x + 0.3 * rng.normal(size=120)})


def mixed() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    treat = rng.choice(["no", "yes"], 500)
    x = rng.normal(size=500) + 1.5 * (treat == "yes")
    return pd.DataFrame({"treat": treat, "x": x, "y": x + rng.normal(size=500)})


def answers(post) -> dict[str, list[str]]:
    """Return the sentences of a report with the pairs they list, without their probabilities."""
    return {own["text"]: [link.rsplit(" ", 1)[0] for link in own["links"]] for own in content_of(post)["answers"]}


# Shares


@pytest.mark.parametrize("seed", range(3))
def test_cpdag_edges_are_those_of_the_members_of_a_class_that_agree_with_what_is_known(seed):
    """By enumeration: draws over four variables, some of whose edges are forbidden, in tiers, or without a score."""
    rng = np.random.default_rng(seed)
    tiers = {name: float(tier) for name, tier in zip(NAMES, rng.integers(1, 3, 4), strict=True)}
    forbidden = rng.permutation([(i, j) for i in range(4) for j in range(4) if i != j])[:2].tolist()
    without_score = [[3, 0]]
    prior = GraphPrior(NAMES, forbidden=[(NAMES[i], NAMES[j]) for i, j in forbidden], tiers=tiers)
    banned = prior.forbidden.copy()
    banned[3, 0] = True
    allowed = DAGS[~(DAGS.astype(bool) & banned).any(axis=(1, 2))]
    picks = rng.integers(len(allowed), size=(2, 40))
    settings = {"prior": prior.parameters, "excluded": {"score": without_score}}
    post = make(picks, rng.normal(size=picks.shape), dags=allowed, **settings)
    keys = [graph.tobytes() for graph in graphs.cpdag(allowed)]
    directed, undirected = np.zeros((4, 4)), np.zeros((4, 4))
    for pick, weight in zip(picks.ravel(), post.weights.ravel() / post.weights.sum(), strict=True):
        union = allowed[[key == keys[pick] for key in keys]].max(axis=0)
        directed += weight * (union & ~union.T & 1)
        undirected += weight * (union & union.T)
    table = post.cpdag_edges().set_index(["parent", "child"])
    for (parent, child), row in table.iterrows():
        place = NAMES.index(parent), NAMES.index(child)
        assert row["directed"] == pytest.approx(directed[place], abs=1e-12)
        assert row["undirected"] == pytest.approx(undirected[place], abs=1e-12)
    # What decides directions starts from the same shares.
    np.testing.assert_allclose(post._direction_shares.oriented, directed, atol=1e-12)
    np.testing.assert_allclose(post._direction_shares.edges, post.edge_probabilities(), atol=1e-12)


def test_directions_known_from_nothing_are_those_of_the_cpdag():
    post = make(np.arange(60).reshape(2, 30), prior=GraphPrior(NAMES).parameters)
    assert post._known_directions == {}
    shares = post._direction_shares
    np.testing.assert_array_equal(shares.oriented, shares.compelled)


def test_of_many_draws_some_are_looked_at_evenly():
    """200 variables, 2,000 draws: the 500 looked at are spread over all of them."""
    dags = np.zeros((2, 200, 200), dtype=np.int8)
    dags[1, 0, 1] = 1
    post = make(np.repeat([[0, 1]], 1000, axis=1), dags=dags, names=tuple(f"v{i}" for i in range(200)))
    assert post._direction_shares.edges[0, 1] == pytest.approx(0.5, abs=0.01)


def test_settings_that_somebody_changed_say_nothing_or_are_refused():
    for outside in ([[0, 9]], [[-1, 0]]):
        record = RunRecord.read({"excluded": {"score": outside}, "prior": {"required": outside, "tiers": [1.0]}})
        assert known_directions(record, 3) == {}
    assert known_directions(RunRecord.read({"excluded": None, "prior": None}), 3) == {}
    for broken in ([[0]], [["a", "b"]], "ab", 3, [[0, 1, 2]], [[0.5, 1]]):
        for settings in ({"excluded": {"score": broken}}, {"prior": {"required": broken}}):
            with pytest.raises(ValueError, match="^the setting (excluded score|prior required) must be a "):
                RunRecord.read(settings)


# Sentences


def test_directions_by_conditional_independences_and_by_tiers():
    post = quick(linear(), tiers=TIERS)
    found = answers(post)
    assert found[BY_INDEPENDENCES.format("1 of these") + ":"] == ["c → d"]
    assert sorted(found["Tiers fix the direction of 3 of these:"]) == ["a → c", "b → c", "e → f"]
    assert not any(text.startswith(("The data determine", "The data don't")) for text in found)


def test_a_direction_that_follows_from_what_is_given():
    """In a chain, a -> b is required; then b -> c, or c would make a collider."""
    data = simulate.linear(nx.DiGraph([("a", "b"), ("b", "c")]), 400, random_seed=2)
    assert answers(quick(data, required=[("a", "b")]))[
        "Required edges, or what follows from them, fix the direction of all 2:"
    ]
    assert "The data don't determine the direction of all 2:" in answers(quick(data))


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        ({"forbidden": [("f", "e")]}, "Forbidden edges fix the direction of 1 of these:"),
        ({"required": [("e", "f")]}, "Required edges fix the direction of 1 of these:"),
        ({"space": "of e"}, "The candidates given fix the direction of 1 of these:"),
        ({"prior": "e -> f"}, "The prior fixes the direction of 1 of these:"),
    ],
    ids=["forbidden", "required", "candidates", "prior"],
)
def test_what_fixes_a_direction_is_named(settings, sentence):
    data = linear()[["c", "d", "e", "f"]]
    if settings.get("prior"):
        settings = {"prior": np.full((4, 4), 0.3)}
        settings["prior"][3, 2] = 0.001
    if settings.get("space"):
        candidates = {"c": ["d"], "d": ["c"], "e": [], "f": ["e"]}
        settings = {"space": gpn.Space(candidates=candidates, plus_one=False)}
    found = answers(quick(data, **settings))
    assert found[sentence] == ["e → f"]
    assert found["Data and prior knowledge don't determine the direction of 1 of these:"] in (["c – d"], ["d – c"])


def test_directions_by_the_shape_of_relations():
    post = quick(curved(), score=GP(estimator="laplace"))
    assert answers(post) == {
        "1 of 1 pair of variables is joined with a probability of 0.9 or more.": [],
        BY_SHAPE.replace("The direction of {}", "Its direction") + ":": ["x → y"],
    }
    assert post.diagnostics().directions == (BY_SHAPE.format("1 pair") + ": x -> y.",)
    # Where tiers allow that direction alone, they decide.
    tiers = quick(curved(), score=GP(estimator="laplace"), tiers=[["x"], ["y"]])
    assert tiers.diagnostics().directions == ("Tiers fix the direction of 1 pair: x -> y.",)


def test_conditional_independences_suffice_whatever_the_score():
    """A collider is in the class; a Gaussian process needs no shape for it."""
    data = simulate.linear(nx.DiGraph([("a", "c"), ("b", "c")]), 150, random_seed=4)
    found = quick(data, score=GP(estimator="laplace"), draws=400).diagnostics().directions
    assert len(found) == 1 and found[0].startswith(BY_INDEPENDENCES.format("2 pairs"))


def test_what_other_scores_rest_directions_on():
    dags = np.array([[[0, 1], [0, 0]]], dtype=np.int8)
    post = make(np.zeros((2, 5), int), dags=dags, names=("a", "b"))
    lasso = quick(curved(), score=Lasso(), draws=20).settings["assumptions"]
    codes = simulate.discrete(nx.DiGraph([("a", "b")]), 60, random_seed=1)
    k2 = quick(codes, score="k2", draws=20).settings["assumptions"]
    bdeu = quick(codes, score="bdeu", draws=20).settings["assumptions"]
    for assumptions, text in (
        (lasso, "Its direction rests on the noise of all variables having the same variance in the units of the table"),
        (k2, "Its direction rests on the score, which favours some DAGs over others with the same conditional"),
        ([], BY_SHAPE.replace("The direction of {}", "Its direction")),
        # The draws are made up: under this score half of them would have b -> a.
        (bdeu, "Conditional independences in the data determine its direction"),
    ):
        under = replace(post, settings=post.settings | {"assumptions": list(assumptions)})
        assert grounds(under, [(0, 1)])[0].sentence("its direction").startswith(text)


def test_a_score_that_allows_one_direction_fixes_it():
    """Under cg, no number causes a category; then x -> y, since treat acts on y by way of x alone."""
    for variances in ("one or each", "each"):
        post = quick(mixed(), score=CG(variances=variances))
        expected = "The score, or what follows from it, fixes the direction of all 2:"
        assert sorted(answers(post)[expected]) == ["treat → x", "x → y"]
        edges = post.cpdag_edges().set_index(["parent", "child"])
        assert edges.loc[("treat", "x"), "directed"] > 0.99 and edges["undirected"].max() < 0.05


def test_experiments_fix_directions():
    data = simulate.linear(nx.DiGraph([("a", "b"), ("b", "c")]), 400, random_seed=1)
    targets = np.repeat(["", "c"], [300, 100])
    data.loc[300:, "c"] = np.random.default_rng(1).normal(size=100)
    post = quick(data, targets=targets)
    assert answers(post)["Experiments fix the direction of 1 of these:"] == ["b → c"]
    edges = post.cpdag_edges().set_index(["parent", "child"])
    assert edges.loc[("b", "c"), "directed"] > 0.99 and edges.loc[("a", "b"), "undirected"] > 0.9


# Directions that are left open


@pytest.mark.parametrize(
    ("knowledge", "left"),
    [
        ({}, {"a - b", "b - c", "d - e"}),
        ({"tiers": [["a"], ["b", "c", "d", "e"]]}, {"d - e"}),
        ({"forbidden": [("e", "d")]}, {"a - b", "b - c"}),
        ({"required": [("c", "b")]}, {"d - e"}),
        ({"tiers": [["a", "d"], ["b", "c", "e"]]}, set()),
    ],
    ids=["nothing", "tiers", "forbidden", "required", "all"],
)
def test_what_is_left_open_respects_what_is_given(knowledge, left):
    """From c -> b follows b -> a, and from a -> b follows b -> c: else b had two unjoined parents."""
    data = simulate.linear(nx.DiGraph([("a", "b"), ("b", "c"), ("d", "e")]), 400, random_seed=2)
    post = quick(data, **knowledge)
    texts = [text for text in post.diagnostics().assumptions if text.startswith("In the best network drawn")]
    assert set(re.findall(r"\w - \w", " ".join(texts))) == left
    fitted = HillClimbing(score="bge", random_state=1, **knowledge).fit(data)
    of_learner = re.findall(r"leaves open the direction of (\d) of 3 edges", " ".join(fitted_assumptions(fitted)))
    assert of_learner == ([str(len(left))] if left else [])


def fitted_assumptions(learner) -> tuple[str, ...]:
    from gpn_bayes.estimators.describing import describe

    return describe(learner).assumptions


def test_an_order_leaves_no_direction_of_a_learner_open():
    data = simulate.linear(nx.DiGraph([("a", "b"), ("b", "c")]), 400, random_seed=1)
    assert not any("leaves open" in text for text in fitted_assumptions(K2(score="bge", order=list("abc")).fit(data)))
    assert any("leaves open" in text for text in fitted_assumptions(HillClimbing(score="bge").fit(data)))


def test_categories_leave_open_what_the_score_does():
    """Between treat and x only one direction has a score."""
    data = mixed()[["treat", "x"]].assign(u=np.random.default_rng(2).normal(size=500))
    data["v"] = data["u"] + np.random.default_rng(3).normal(size=500)
    texts = quick(data, score=CG(variances="each")).diagnostics().assumptions
    assert "In the best network drawn, this leaves open the direction of u - v." in texts


# Places


def test_the_same_sentences_stand_everywhere(tmp_path, capsys):
    linear().to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "tiers.json").write_text(json.dumps(TIERS))
    post = quick(linear(), tiers=TIERS)
    sentences = (BY_INDEPENDENCES.format("1 pair"), "Tiers fix the direction of 3 pairs")
    found = post.diagnostics()
    assert found.directions[0] == f"{sentences[0]}: c -> d."
    assert found.directions[1].startswith(f"{sentences[1]}: ") and len(found.directions) == 2
    assert "What decides directions:\n- " + found.directions[0] in str(found)
    assert "What decides directions" in found._repr_html_()
    cell, legend = posterior_cell(post), post.plot_network().get_legend().get_title().get_text()
    for sentence in sentences:
        assert f"{sentence}." in cell
        assert f"{sentence}." in " ".join(legend.split())
    links = {(link["parent"], link["child"]): link.get("ground") for link in content_of(post)["network"]["links"]}
    assert links[2, 3] == "by conditional independences"
    assert links[0, 2] == links[1, 2] == links[4, 5] == "fixed by tiers"
    post.save(tmp_path / "posterior.nc", data=False)
    again = gpn.load(tmp_path / "posterior.nc")
    assert again.diagnostics().directions == found.directions and answers(again) == answers(post)
    pd.testing.assert_frame_equal(again.cpdag_edges(), post.cpdag_edges())
    with pytest.raises(SystemExit) as end:
        main(["run", str(tmp_path / "table.csv"), "--out", str(tmp_path / "out"), "--draws", "50", "--quiet"])
    assert not end.value.code
    shown = " ".join(capsys.readouterr().out.split())
    assert "What decides directions: - " + BY_INDEPENDENCES.format("1 pair") + ": c -> d." in shown


def test_categories_keep_their_score_s_exclusions_in_a_file(tmp_path):
    post = quick(mixed(), score="cg")
    post.save(tmp_path / "posterior.nc", data=False)
    again = gpn.load(tmp_path / "posterior.nc")
    assert again.diagnostics().directions == post.diagnostics().directions
    pd.testing.assert_frame_equal(again.cpdag_edges(), post.cpdag_edges())
    assert "excluded" not in dict(content_of(post)["origin"]["settings"])


def test_resamples_agree_on_more_than_conditional_independences_say():
    """A hill climb finds the same DAG of a class every time."""
    boot = gpn.bootstrap(HillClimbing(score="bge", random_state=1), linear(), n=8, random_seed=1, progressbar=False)
    found = {own["text"]: own["links"] for own in bootstrap_content(boot)["answers"]}
    assert len(found["Conditional independences in the resamples determine the direction of 3 of these:"]) == 3
    open_pair = found["The resamples agree on the direction of 1 of these, which conditional independences leave open:"]
    assert open_pair == ["e → f 1.00"]
    told = gpn.bootstrap(HillClimbing(score="bge", tiers=TIERS), linear(), n=8, random_seed=1, progressbar=False)
    texts = [own["text"] for own in bootstrap_content(told)["answers"]]
    assert "Tiers fix the direction of 3 of these:" in texts and not any("leave open" in text for text in texts)
    edges = told.cpdag_edges().set_index(["parent", "child"])
    assert edges.loc[[("a", "c"), ("b", "c"), ("e", "f")], "directed"].min() == 1


def test_clear_pairs_are_joined_and_have_a_likelier_direction():
    edges = np.array([[0, 0.85, 0.8], [0.04, 0, 0.2], [0.1, 0.75, 0]])
    # a -> b: 0.89 joined; a -> c: 0.9 joined, 0.89 of it this way; b, c: no clear direction.
    assert clear_pairs(edges) == []
    edges[0, 2], edges[2, 0] = 0.82, 0.09
    assert clear_pairs(edges) == [(0, 2)]

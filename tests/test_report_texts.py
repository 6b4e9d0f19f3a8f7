"""The report: its words, what it says the numbers rest on, and what reproduces them."""

from dataclasses import replace

import numpy as np
import pytest

import gpn_bayes as gpn
from gpn_bayes.posterior.questions import Question, read_question
from gpn_bayes.report import content, trust, wording
from gpn_bayes.report.origin import origin_of
from gpn_bayes.report.page import page_of
from tests.draws import exact_posterior, quick
from tests.reports import AWKWARD, made_posterior

# Words


def test_answers_tell_directions_and_what_is_open():
    p = np.zeros((4, 4))
    p[0, 1], p[1, 2], p[2, 1], p[2, 3] = 0.98, 0.5, 0.46, 0.4
    answers = wording.answers(p, ["a", "b", "c", "d"])
    assert [own["text"] for own in answers] == [
        "2 of 6 pairs of variables are joined with a probability of 0.9 or more; 1 lies between 0.1 and 0.9; "
        "the other 3 below 0.1.",
        "The direction of 1 of these is clear:",
        "The data don't determine the direction of 1 of these:",
        "Open whether they are joined:",
        "A network drawn from the posterior has 2.3 edges on average.",
    ]
    assert [own["links"] for own in answers][1:4] == [["a → b 0.98"], ["b – c 0.96"], ["c – d 0.40"]]


def test_an_arrow_stands_with_the_probability_of_its_edge():
    """Not with that of the pair."""
    answers = wording.answers(np.array([[0, 0.64], [0.31, 0]]), "ab")
    assert answers[1] == {"text": "One direction is likelier than the other:", "links": ["a → b 0.64"], "more": 0}


@pytest.mark.parametrize(
    ("knowledge", "who"),
    [
        ({}, "The data"),
        ({"prior": "fair"}, "The data"),
        ({"required": [("a", "b")]}, "Data and prior knowledge"),
        ({"tiers": [["a", "b"], ["c", "d"]]}, "Data and prior knowledge"),
        ({"prior": np.full((4, 4), 0.2)}, "Data and prior knowledge"),
        ({"space": gpn.Space(candidates={"b": ["a"]})}, "Data and prior knowledge"),
        ({"space": gpn.Space(candidates=2)}, "The data"),
    ],
    ids=["none", "fair", "required", "tiers", "probabilities", "candidates given", "candidates found"],
)
def test_what_does_not_determine_open_directions(knowledge, who):
    data, _ = exact_posterior()
    record = quick(data, draws=20, **knowledge).record
    assert (
        wording.answers(np.full((4, 4), 0.49) - 0.49 * np.eye(4), "abcd", record)[1]["text"]
        == f"{who} don't determine the direction of all 6:"
    )


def test_answers_where_nothing_is_joined():
    answers = wording.answers(np.array([[0, 0.03, 0], [0.01, 0, 0], [0, 0, 0]]), ["a", "b", "c"])
    assert answers[0]["text"] == (
        "None of 3 pairs of variables are joined with a probability of 0.9 or more; all lie below 0.1."
    )
    assert answers[1] == {"text": "The pair that comes closest:", "links": ["a – b 0.04"], "more": 0}
    alone, last = wording.answers(np.zeros((2, 2)), ["a", "b"])
    assert (
        alone["text"] == "None of 1 pair of variables is joined with a probability of 0.9 or more; it lies below 0.1."
    )
    assert last["text"] == "No edge was ever drawn."


def test_long_lists_are_cut_and_counted():
    p = np.triu(np.full((6, 6), 0.95), 1)
    assert (len(wording.answers(p, "abcdef")[1]["links"]), wording.answers(p, "abcdef")[1]["more"]) == (8, 7)


def test_the_first_questions_can_be_asked():
    for names, p in ((["a", "b"], np.zeros((2, 2))), (["raf", "b", "c"], np.eye(3, k=1)), (AWKWARD, np.eye(6, k=1))):
        for own in wording.questions(p, names):
            assert read_question(own["text"], names) == Question(own["sign"], tuple(names[k] for k in own["pair"]))
            assert own["pair"][0] == 0


# Trust


def test_verdicts():
    good = made_posterior("abc", [(0, 1, 0.5), (1, 2, 0.4)], shape=(4, 500))
    found = trust.trust_of(good)
    assert (found["verdict"], found["warnings"], found["heading"]) == ("good", [], "Sampling has converged.")
    assert [own["fine"] for own in found["figures"]] == [None, True, True, True, True]
    assert found["figures"][-1]["name"] == "Effective draws of the slowest edge"
    assert [len(chain) for chain in found["trace"]] == [167] * 4
    one = trust.trust_of(made_posterior("abc", [(0, 1, 0.5)], shape=(1, 900)))
    assert one["verdict"] == "caution" and one["warnings"][0].startswith("One chain can't")
    assert one["figures"][0]["meaning"] == "in 1 chain"
    apart = made_posterior("abc", [(0, 1, 0.5)], shape=(4, 500))
    apart.log_score[0] += 50
    poor = trust.trust_of(apart)
    assert poor["verdict"] == "poor" and poor["heading"] == "Sampling has not converged."
    assert {own["name"]: own["fine"] for own in poor["figures"]}["R-hat of the log score"] is False


def test_verdicts_of_weights():
    weights = np.zeros((2, 500))
    weights[0, 0] = 20
    heavy = made_posterior(
        "abc", [(0, 1, 0.5)], shape=(2, 500), sampler="exact", independent=True, reweight="auto", pareto_k=1.2
    )
    heavy.log_weights = weights
    found = trust.trust_of(heavy)
    assert found["verdict"] == "poor" and [own["fine"] for own in found["figures"]] == [None, False, False]
    few = made_posterior(
        "abc", [(0, 1, 0.5)], shape=(2, 50), sampler="exact", independent=True, reweight="auto", pareto_k=0.6
    )
    found = trust.trust_of(few)
    assert "should be below 0.50" in found["warnings"][0]
    assert (found["figures"][-1]["wanted"], found["figures"][-1]["fine"]) == ("at most 0.50", False)
    cut = made_posterior(
        "abc", [(0, 1, 0.5)], shape=(2, 500), sampler="exact", independent=True, reweight="interrupted"
    )
    assert cut.diagnostics().verdict == "poor"
    biased = made_posterior("abc", [(0, 1, 0.5)], shape=(4, 500), sampler="order", order_bias="keep")
    assert biased.diagnostics().verdict == "caution"


def test_errors_that_are_unknown_are_counted_in_nowhere():
    post = made_posterior("abc", [(0, 1, 0.5)], shape=(4, 500))
    post.score_errors = np.array([np.nan])
    figure = {own["name"]: own for own in trust.trust_of(post)["figures"]}["Errors of the scores"]
    assert (figure["value"], figure["meaning"]) == ("unknown", "approximations; reported errors don't include this")


def test_a_log_score_that_never_changed():
    post = made_posterior("abc", [(0, 1, 0.5)], shape=(4, 500))
    post.log_score[:] = -10.0
    assert "; R-hat and effective draws of the log score can't be computed." in trust.trust_of(post)["summary"]


# Where it came from


@pytest.mark.parametrize(
    "settings",
    [
        {"sampler": "exact"},
        {"sampler": "partition", "prior": "fair", "required": [("a", "b")], "forbidden": [("c", "a")]},
        {"sampler": gpn.samplers.Order(bias="correct"), "space": gpn.Space(max_parents=2)},
        {"tiers": [["c", "a"], ["b"], ["d"]], "forbidden": [("a", "d")]},
        {"score": gpn.scores.BGe(alpha_mu=0.5), "sampler": gpn.samplers.Partition(thin=3)},
        {"sampler": gpn.samplers.Partition(thin=1), "until": "converged", "draws": 2000, "tune": 0},
    ],
    ids=["exact", "partition", "order", "tiers", "bge", "until converged"],
)
def test_the_call_draws_the_same(settings):
    data, _ = exact_posterior()
    post = quick(data, **settings)
    call = origin_of(post)["call"].replace("    df,\n", "    df, progressbar=False,\n")
    assert ("planned_thin" in post.settings) == ("until" in settings)
    space = {"df": data}
    exec(call, space)
    assert (space["post"].parents == post.parents).all()
    assert space["post"].settings == post.settings


def mixed_table():
    data, _ = exact_posterior()
    steps = np.arange(len(data))
    return data.round(1).assign(b=steps % 3, d=np.where(data.d > 0, "yes", "no"), n=1 + steps % 2, id=steps)


@pytest.mark.parametrize(
    ("described", "printed"),
    [
        (
            lambda df: (gpn.Table(df, drop=["id", "n"], na=-99), {"kinds": {"b": ["0", "2", "1"]}}),
            "    gpn.Table(df, drop=['id', 'n'], na=['-99']),\n",
        ),
        (lambda df: (gpn.Table(df, weights="n"), {"kinds": {"b": "category", "id": "number"}}), "    weights='n',\n"),
        (lambda df: (gpn.Table(df, columns=["a", "c"], discretise=3), {"score": "bdeu"}), "discretise=3"),
        (lambda df: (gpn.Dataset.read(df, drop="id", weights="n"), {}), "    post.data,\n"),
        (lambda df: (gpn.Table(df, weights=df.n.tolist(), drop=["n", "id"]), {}), "    weights=weights,\n"),
    ],
    ids=["kinds", "weights", "discretise", "read before", "values of rows"],
)
def test_the_call_says_what_was_said_of_the_table(described, printed):
    df = mixed_table()
    data, settings = described(df)
    post = quick(data, **{"score": "bic"} | settings)
    call = origin_of(post)["call"]
    assert printed in call
    space = {"df": df, "post": post, "weights": df.n.tolist()}
    exec(call.replace("    score=", "    progressbar=False, score="), space)
    assert space["post"] is not post and (space["post"].parents == post.parents).all()
    assert space["post"].settings == post.settings
    page = page_of(content.content_of(post))
    assert ("with the table as it was read, <code>post.data</code>" in page) == ("post.data" in printed)
    assert "post.data" in origin_of(post, read_before=True)["call"]


def test_a_call_that_cannot_be_told_is_not():
    data, _ = exact_posterior()
    names = list(data.columns)
    assert origin_of(quick(data, space=gpn.Space(candidates={"b": ["a"]})))["call"] is None
    assert origin_of(quick(data, prior=np.full((4, 4), 0.2)))["call"] is None
    assert origin_of(quick(data, prior=gpn.scores.GraphPrior(names, edge_penalty=2.0)))["call"] is None
    cut = quick(data)
    cut = replace(cut, settings=cut.settings | {"interrupted": True})
    assert origin_of(cut)["call"] is None
    assert origin_of(made_posterior("ab", [(0, 1, 0.5)], score={"name": "mine", "parameters": {}}))["call"] is None


def test_settings_in_words():
    data, _ = exact_posterior()
    settings = dict(origin_of(quick(data, required=[("a", "b")], forbidden=[("c", "d")]))["settings"])
    assert settings["prior"] == "uniform; required a → b; forbidden c → d"
    tiers = dict(origin_of(quick(data, tiers={"a": 1, "b": 0, "c": 1, "d": 2}, forbidden=[("a", "c")]))["settings"])
    assert tiers["prior"] == "uniform; tiers b < a, c < d; forbidden a → c"
    assert settings["max parents"] == "none" and settings["random seed"] == "3"
    prior = gpn.scores.GraphPrior(list(data.columns), edge_penalty=2.0, edge_probabilities=np.full((4, 4), 0.2))
    shown_prior = dict(origin_of(quick(data, prior=prior))["settings"])["prior"]
    assert shown_prior == "uniform; with edge probabilities of its own; edge penalty 2"


def test_what_was_drawn_without_a_seed_is_told():
    data, _ = exact_posterior()
    sentence = "<p>Drawn without a seed: another run draws other networks.</p>"
    assert sentence in page_of(content.content_of(quick(data, random_seed=None)))
    assert sentence not in page_of(content.content_of(quick(data)))

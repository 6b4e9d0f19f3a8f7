"""Pairs that score and constraints leave without an edge either way: counted before a run, said beside answers."""

import html
import json
import math
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes.posterior.estimate import Estimate
from gpn_bayes.sampling.options import RunOptions
from gpn_bayes.sampling.preparing import prepare
from gpn_bayes.scores.slower import gp_seconds
from tests.command_line import call

pytestmark = pytest.mark.more("statistics that take long")

TIERS = [["age", "sex", "wage0"], ["treat"], ["wage"]]
QUICK = {"draws": 50, "random_seed": 1, "progressbar": False}


def made(rows: int = 800) -> pd.DataFrame:
    """Return a table in which age, and not the treatment of older people, is what wages depend on."""
    rng = np.random.default_rng(3)
    age, sex = rng.normal(40, 10, rows), rng.choice(["f", "m"], rows)
    treat = (age + 8 * rng.logistic(size=rows) > 40).astype(int)
    wage0 = 5 + 3 * (sex == "m") + rng.normal(size=rows)
    return pd.DataFrame(
        {"age": age, "sex": sex, "wage0": wage0, "treat": treat, "wage": 0.3 * age + wage0 + rng.normal(size=rows)}
    )


@pytest.fixture(scope="module")
def table():
    return made()


@pytest.fixture(scope="module")
def post(table):
    with pytest.warns(UserWarning, match="can't be joined"):
        return gpn.sample(table, "cg", tiers=TIERS, **QUICK)


def pairs(table, **options):
    return prepare(table, RunOptions("cg", **options)).impossible_pairs


# Which pairs


def test_pairs_are_those_that_score_and_constraints_leave_without_an_edge(table):
    assert pairs(table, tiers=TIERS) == [[0, 3], [2, 3]]
    # One of the two alone leaves a direction.
    assert pairs(table) == []
    numbers = prepare(table, RunOptions("gp", tiers=TIERS))
    assert numbers.impossible_pairs == []
    assert pairs(table, forbidden=[("treat", "age")]) == [[0, 3]]
    assert pairs(table, forbidden=[("age", "treat")]) == []
    # What the user forbids both ways was asked for.
    assert pairs(table, forbidden=[("treat", "age"), ("age", "treat")]) == []
    assert pairs(table, tiers=TIERS, forbidden=[("age", "treat")]) == [[2, 3]]
    assert pairs(table, tiers=TIERS, forbidden=[("sex", "age")]) == [[0, 1], [0, 3], [2, 3]]


def test_no_drawn_network_joins_them_and_each_other_pair_can_be_joined(table):
    """By brute force: an edge is allowed exactly where the run has not forbidden it."""
    run = prepare(table, RunOptions("cg", tiers=TIERS))
    n = len(run.scorer.names)
    neither = [
        [i, j] for i in range(n) for j in range(i + 1, n) if run.prior.forbidden[i, j] and run.prior.forbidden[j, i]
    ]
    assert neither == run.impossible_pairs


# Before the run


def test_runs_say_before_they_start_which_pairs_and_what_can_join_them(table):
    with pytest.warns(UserWarning) as caught:
        gpn.sample(table, "cg", tiers=TIERS, **QUICK)
    (text,) = {str(warning.message) for warning in caught if "joined" in str(warning.message)}
    assert text == (
        "2 pairs of variables can't be joined in either direction: age - treat, wage0 - treat: under the score 'cg' no "
        "number causes a category, and tiers rule out the other direction; all answers take for granted that they have "
        "no edge; score='gp' or gpn.Table(data, kinds={'treat': 'number'}) can join them"
    )


def test_what_is_advised_can_join_them(table):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        post = gpn.sample(table, "cg", tiers=TIERS, kinds={"treat": "number"}, **QUICK)
    assert post.edge_probability("age", "treat").value > 0.99
    assert prepare(table, RunOptions("gp", tiers=TIERS)).prior.forbidden[0, 3] == np.False_


@pytest.mark.parametrize(
    ("change", "offered"),
    [
        (lambda table: table, True),
        # A text isn't a number.
        (lambda table: table.assign(treat=table["treat"].map({0: "no", 1: "yes"})), False),
        # As a number, treat could no longer cause a category after it.
        (lambda table: table.assign(wage=np.where(table["wage"] > 17, "high", "low")), False),
    ],
    ids=["whole numbers", "text", "a category after it"],
)
def test_kinds_are_advised_where_they_help(table, change, offered):
    with pytest.warns(UserWarning, match="can't be joined") as caught:
        gpn.sample(change(table), "cg", tiers=TIERS, **QUICK)
    assert ("kinds={'treat': 'number'}" in str(caught[0].message)) == offered


def test_advice_that_would_take_long_says_how_long(table):
    run = prepare(table, RunOptions("cg", tiers=TIERS))
    assert gp_seconds(run.data.n_rows, 3, [2, 2]) < 600
    many = pd.concat([table] * 30, ignore_index=True)
    with pytest.warns(UserWarning, match=r"score='gp' \(about [\d.]+ CPU (minutes|hours)\)"):
        post = gpn.sample(many, "cg", tiers=TIERS, **QUICK)
    # Also beside answers, when the warning is long gone.
    assert re.search(r"score='gp' \(about [\d.]+ CPU (minutes|hours)\)", post.edge_probability("age", "treat").note)
    # Categories take longer than proportionally.
    assert gp_seconds(20_000, 3, [2, 2]) > 20 * gp_seconds(1_000, 3, [2, 2])
    assert gp_seconds(1_000, 3, [2, 5]) > gp_seconds(1_000, 3, [2, 2]) > gp_seconds(1_000, 5, [])


# Beside answers


@pytest.fixture(scope="module", params=["drawn", "loaded"])
def asked(request, post, tmp_path_factory):
    if request.param == "drawn":
        return post
    path = tmp_path_factory.mktemp("runs") / "run.nc"
    post.save(path)
    return gpn.load(path)


def test_probabilities_of_such_pairs_carry_a_note(asked):
    rule = "under the score 'cg' no number causes a category, and tiers rule out the other direction"
    note = f"whatever the data say: {rule}"
    for answer in (asked.edge_probability("age", "treat"), asked.edge_probability("treat", "age")):
        assert tuple(answer) == (0.0, 0.0, np.inf) and isinstance(answer, Estimate)
        assert answer.note == f"{note}; score='gp' or gpn.Table(data, kinds={{'treat': 'number'}}) can join them"
        assert str(answer) == f"0.000 (exact), {answer.note}"
        assert html.escape(answer.note) in answer._repr_html_()
        assert str(pickle.loads(pickle.dumps(answer))) == str(answer)
    assert note in str(asked.probability("age - treat"))
    for question in ("sex -> treat", "treat -> wage", "age - wage"):
        assert asked.probability(question).note == ""


def test_sets_to_adjust_for_are_not_certified_in_silence(asked):
    """Age confounds the effect, but can't be joined to the treatment, and so is in no set."""
    with pytest.warns(UserWarning, match="^sets are found taking for granted that 2 pairs have no edge in either"):
        sets = asked.adjustment_sets("treat", "wage")
    assert not any("age" in members for members in sets["adjustment_set"])
    assert sets["unexamined"].tolist() == [("age", "wage0")] * len(sets)
    answer = asked.is_adjustment_set("treat", "wage", [])
    assert answer.value > 0.5 and "age - treat" in answer.note


def test_effects_carry_a_note_and_no_error_of_nan(asked):
    effect = asked.effect("treat", "wage", to=1, versus=0, progressbar=False)
    assert "taking for granted that 2 pairs have no edge" in str(effect)
    assert html.escape(effect.note) in effect._repr_html_()
    with pytest.warns(UserWarning, match="^2 pairs have no edge in either direction"):
        asked.effects(draws=20, progressbar=False)
    assert "taking for granted" in asked.path_probability("treat", "wage").note


def test_interventions_and_orders_say_what_they_take_for_granted(asked):
    text = "^answers take for granted: 2 pairs have no edge in either direction, whatever the data say: age - treat"
    with pytest.warns(UserWarning, match=text):
        asked.do({"treat": 1}, draws=10, progressbar=False)
    row = {"age": 40.0, "sex": "f", "wage0": 5.0, "treat": 0, "wage": 17.0}
    with pytest.warns(UserWarning, match=text):
        asked.counterfactual(row, {"treat": 1}, draws=10, progressbar=False)
    order = asked.order_probability("age", "treat", "wage")
    assert "taking for granted that 2 pairs have no edge" in order.note
    assert "score='gp' or gpn.Table(data, kinds={'treat': 'number'}) can join them" in order.note


@pytest.mark.parametrize("score", ["cg", "bic"])
def test_learners_say_which_pairs_can_t_be_joined(table, score):
    with pytest.warns(
        UserWarning, match="^2 pairs of variables can't be joined in either direction: age - treat, wage0"
    ):
        found = gpn.estimators.HillClimbing(score=score, tiers=TIERS).fit(table)
    assert not {("age", "treat"), ("treat", "age")} & set(found.graph_.edges)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        gpn.estimators.HillClimbing(score=score).fit(table)


def test_diagnostics_and_reports_count_them(asked, tmp_path):
    found = asked.diagnostics()
    assert found.impossible_pairs == (("age", "treat"), ("wage0", "treat"))
    text = "2 pairs have no edge in either direction, whatever the data say: age - treat, wage0 - treat"
    assert text in str(found) and text in asked._repr_html_()
    asked.report(tmp_path / "report.html", curves=0)
    # Among the answers and among the assumptions.
    assert html.unescape((tmp_path / "report.html").read_text(encoding="utf-8")).count(f"{text} (under") >= 2


def test_nothing_is_said_where_every_pair_can_be_joined(table, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        post = gpn.sample(table, "cg", **QUICK)
        sets = post.adjustment_sets("treat", "wage")
    assert sets.columns.tolist() == ["adjustment_set", "probability", "mcse"]
    assert post.edge_probability("age", "treat").note == "" and post.effect("treat", "wage").note == ""
    assert post.diagnostics().impossible_pairs == () and "impossible_pairs" not in post.settings
    assert "whatever the data say" not in str(post.diagnostics())


def test_an_effect_that_no_draw_has_shows_no_error(table, post):
    """Equal draws don't show how far off they are: nan, which is not for reading."""
    effect = post.effect("treat", "age", to=1, versus=0, progressbar=False)
    assert effect.probability == 0 and math.isnan(effect.mcse)
    assert str(effect).startswith("effect of treat on age, from 0 to 1: 0.000 in all 200 draws; any effect with prob")
    levels = post.effect("treat", "sex", to=1, versus=0, progressbar=False)
    assert "f 0.000 in all draws" in str(levels)
    numbers = gpn.sample(table[["age", "wage0", "wage"]], "bge", tiers=[["age"], ["wage0", "wage"]], **QUICK)
    for own in (effect, levels, numbers.effect("wage", "age")):
        assert "nan" not in str(own) and "nan" not in own._repr_html_().lower()


# On the command line


def test_the_command_line_says_it_before_a_run_and_beside_answers(table, tmp_path, capsys):
    table.to_csv(tmp_path / "table.csv", index=False)
    tiers = tmp_path / "tiers.csv"
    tiers.write_text("name,tier\n" + "".join(f"{name},{place}\n" for place, tier in enumerate(TIERS) for name in tier))
    command = ("run", tmp_path / "table.csv", "--score", "cg", "--tiers", tiers, "--draws", 20)
    code, out, messages = call(capsys, *command, "--out", tmp_path / "out", "--quiet")
    assert code == 0, messages
    (line,) = [text for text in messages.splitlines() if text.startswith("warning: 2 pairs of variables can't be")]
    assert line.endswith("have no edge; --score gp or --kinds treat=number can join them")
    assert "2 pairs have no edge in either direction" in " ".join(out.split())
    code, out, messages = call(capsys, "query", tmp_path / "out", "age -> treat", "sex -> treat")
    assert code == 0 and out.splitlines()[0].endswith("exact")
    assert messages.startswith("note: age -> treat: whatever the data say: under the score 'cg' no number causes")
    code, out, _ = call(capsys, "query", tmp_path / "out", "age -> treat", "sex -> treat", "--json")
    assert ["note" in record for record in json.loads(out)] == [True, False]
    _, out, _ = call(capsys, "effect", tmp_path / "out", "treat -> wage", "--to", 1, "--versus", 0, "--quiet")
    assert "taking for granted that 2 pairs have no edge" in " ".join(out.split()) and "nan" not in out

"""Rows under interventions, and what a row would have been."""

import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from tests.test_effects import NAMES, QUIET, categories, chain, curved, linear_table


@pytest.fixture(scope="module")
def post():
    return gpn.sample(linear_table(rows=200), score="bge", draws=1000, **QUIET)


def test_nothing_done_gives_rows_like_the_data(post):
    rows = post.do({}, draws=4000)
    table = linear_table(rows=200)
    error = table.std() / np.sqrt(len(table)) + table.std() / np.sqrt(len(rows))
    assert ((rows.mean() - table.mean()).abs() < 4 * error).all()
    np.testing.assert_allclose(rows.std(), table.std(), rtol=0.1)
    np.testing.assert_allclose(rows.corr(), table.corr(), atol=0.12)
    assert rows.equals(post.do({"a": None}, draws=4000))


def test_what_is_set_stays_and_outcomes_follow_the_effect(post):
    low, high = (post.do({"a": value}, draws=4000, random_seed=2) for value in (8.0, 12.0))
    assert (low["a"] == 8.0).all()
    effect = post.effect("a", "c", to=12.0, versus=8.0)
    # The same draws and the same noise: what differs is the effect alone.
    assert (high["c"] - low["c"]).mean() == pytest.approx(
        effect.mean, abs=4 * effect.sd / np.sqrt(4000) + 4 * effect.mcse
    )


def test_shifts_keep_what_parents_do(post):
    plain = post.do({}, draws=500)
    shifted = post.do({"b": ("shift", 2.0)}, draws=500)
    np.testing.assert_allclose(shifted["b"] - plain["b"], 2.0)
    doubled = post.do({"b": lambda values: 2 * values}, draws=500)
    np.testing.assert_allclose(doubled["b"], 2 * plain["b"])
    both = post.do({"b": ("shift", 2.0), "a": 10.0}, draws=500)
    assert (both["a"] == 10.0).all()


def test_categories_are_drawn_by_level():
    post = gpn.sample(categories(), score="bdeu", draws=1000, **QUIET)
    rows = post.do({"a": "tall"}, draws=4000)
    assert set(rows["a"]) == {"tall"}
    effect = post.effect("a", "c").mean.sel(cause="tall").to_pandas()
    share = rows["c"].value_counts(normalize=True)
    assert (share - effect).abs().max() < 4 * np.sqrt(0.25 / len(rows)) + 0.01


def test_a_row_that_nothing_is_done_to_stays_what_it_was(post):
    row = linear_table(rows=200).iloc[7]
    np.testing.assert_allclose(
        post.counterfactual(row, {}, draws=50, progressbar=False), np.tile(row, (50, 1)), atol=1e-9
    )
    curve = gpn.sample(curved(), score="gp", draws=50, **chain(["x", "y"]), **QUIET)
    row = curved().iloc[3].to_dict()
    same = curve.counterfactual(row, {"x": row["x"]}, draws=20)
    np.testing.assert_allclose(same, np.tile([row["x"], row["y"]], (20, 1)), atol=1e-9)


def test_a_changed_row_moves_by_the_effect(post):
    """Under linear equations its own noise stays, so everything moves by total effects."""
    row = linear_table(rows=200).iloc[7]
    found = post.counterfactual(row, {"a": row["a"] + 3}, draws=2000)
    effect = post.effect("a", "c")
    moved = found["c"] - row["c"]
    assert moved.mean() == pytest.approx(3 * effect.mean, abs=4 * 3 * effect.sd / np.sqrt(2000) + 12 * effect.mcse)
    assert (moved.abs() < 1e-9).mean() == pytest.approx(1 - effect.probability, abs=0.05)


def test_a_curved_counterfactual_follows_the_curve():
    table = curved()
    post = gpn.sample(table, score="gp", draws=100, **chain(["x", "y"]), **QUIET)
    row = {"x": 5.0, "y": 3.0}
    found = post.counterfactual(row, {"x": 6.0}, draws=200)["y"]
    assert found.mean() == pytest.approx(3.0 + 10 * np.sin(0.75), abs=1.0)
    assert found.std() < 1.0


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda post: post.do({"a": "high"}), "an intervention is a number, .*; received 'high' for 'a'"),
        (lambda post: post.do({"a": ("move", 1)}), r"an intervention is a number, .*; received \('move', 1\) for 'a'"),
        (lambda post: post.do({"a": np.float64("inf")}), "an intervention is a number, .*; received inf for 'a'$"),
        (
            lambda post: post.do([("a", 1.0)]),
            r"interventions must map variables to what is done to them, as in \{'a': 1.0\}; received \[\('a', 1.0\)\]$",
        ),
        (
            lambda post: post.counterfactual([1, 2, 3, 4], ["a"]),
            r"interventions must map variables .* received \['a'\]$",
        ),
        (lambda post: post.do({"z": 1}), "z"),
        (lambda post: post.do({"a": lambda values: "x"}), "could not convert|must return a finite number"),
        (lambda post: post.do({}, draws=0), "draws must"),
        (
            lambda post: post.counterfactual({"a": 1}, {}),
            "a row must have a value for every variable; 'b', 'c', 'd' not",
        ),
        (lambda post: post.counterfactual([1, 2, 3, np.nan], {}), "a row's values must be finite numbers"),
    ],
)
def test_bad_questions_are_refused_in_one_line(call, message, post):
    with pytest.raises(ValueError, match=message) as refusal:
        call(post)
    assert "\n" not in str(refusal.value)


def test_categories_have_no_counterfactuals():
    post = gpn.sample(categories(), score="bdeu", draws=50, **QUIET)
    with pytest.raises(ValueError, match="counterfactuals need numbers, whose noise a row tells; received categories"):
        post.counterfactual({"a": "low", "b": "no", "c": "0"}, {})
    with pytest.raises(ValueError, match="'a' must be one of its levels, low, middle, tall; received 'x'"):
        post.do({"a": "x"})


def test_rows_are_those_of_the_seed(post):
    assert post.do({"a": 9.0}, draws=50, random_seed=5).equals(post.do({"a": 9.0}, draws=50, random_seed=5))
    assert list(post.do({}, draws=5)) == NAMES
    assert isinstance(post.do({}, draws=5), pd.DataFrame)

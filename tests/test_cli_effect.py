"""``gpn-bayes effect``: effects on the command line."""

import json

import pytest

import gpn_bayes as gpn
from tests.command_line import call
from tests.test_effects import QUIET, categories, chain, curved, linear_table

pytestmark = pytest.mark.more("repeats whole runs for every score and setting")


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """Return the files of a linear posterior, one of categories and one of curves."""
    folder = tmp_path_factory.mktemp("results")
    runs = {
        "linear": gpn.sample(linear_table(), score="bge", draws=200, **QUIET),
        "categories": gpn.sample(categories(), score="bdeu", draws=100, **QUIET),
        "curves": gpn.sample(curved(60), score="gp", draws=40, **chain(["x", "y"]), **QUIET),
    }
    for name, post in runs.items():
        post.save(folder / f"{name}.nc")
    return {name: (folder / f"{name}.nc", post) for name, post in runs.items()}


def test_a_linear_effect_is_one_line(results, capsys):
    file, post = results["linear"]
    code, shown, _ = call(capsys, "effect", file, "a -> c")
    assert code == 0
    assert shown == f"{post.effect('a', 'c')}\n"
    code, shown, _ = call(
        capsys, "effect", file, "a->c", "--to", "12", "--versus", "9", "--seed", "3", "--draws", "100"
    )
    assert shown == f"{post.effect('a', 'c', to=12, versus=9, random_seed=3, draws=100)}\n"


def test_curves_and_tables_have_a_row_for_every_value(results, capsys):
    code, shown, messages = call(capsys, "effect", results["curves"][0], "x -> y", "--points", "4", "--quiet")
    assert (code, messages) == (0, "")
    assert shown.startswith("y if x is set: a curve; average slope ")
    assert len(shown.splitlines()) == 1 + 2 + 4
    _, shown, _ = call(capsys, "effect", results["categories"][0], "a -> c")
    assert [line.split()[:2] for line in shown.splitlines()[3:5]] == [["low", "0"], ["low", "1"]]
    _, shown, _ = call(capsys, "effect", results["categories"][0], "a -> c", "--to", "tall", "--versus", "low")
    assert "from low to tall" in shown


def test_json_holds_what_is_shown(results, capsys):
    file, post = results["linear"]
    found = json.loads(call(capsys, "effect", file, "a -> c", "--json")[1])
    effect = post.effect("a", "c")
    assert found["rows"][0]["mean"] == pytest.approx(effect.mean)
    assert found["probability"] == pytest.approx(effect.probability)
    assert found["rows_given_path"][0]["mean"] == pytest.approx(effect.given_path.mean)
    curve = json.loads(call(capsys, "effect", results["curves"][0], "x -> y", "--json", "--quiet")[1])
    assert len(curve["rows"]) == 9
    assert set(curve["slope"]) == {"mean", "sd", "lower", "upper", "mcse"}
    # No effect was drawn, so that no error can be estimated.
    none = json.loads(call(capsys, "effect", results["curves"][0], "y -> x", "--json", "--quiet")[1])
    assert none["slope"]["mcse"] is None


@pytest.mark.parametrize(
    ("question", "options", "message"),
    [
        ("a ~> c", [], "an effect is asked for as 'cause -> outcome'; received 'a ~> c'"),
        ("a -> z", [], "z"),
        ("a -> c", ["--to", "3"], "a contrast needs both values, --to and --versus; received one of them"),
        ("a -> c", ["--points", "1"], "--points must be a whole number, 2 or more; received 1"),
        ("a -> c", ["--to", "x", "--versus", "1"], "a variable of numbers is set to a finite number; received 'x'"),
    ],
)
def test_bad_questions_get_one_line(question, options, message, results, capsys):
    code, shown, messages = call(capsys, "effect", results["linear"][0], question, *options)
    assert (code, shown) == (2, "")
    assert len(messages.splitlines()) == 1
    assert message in messages

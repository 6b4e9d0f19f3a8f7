"""What reports say to do: for readers of Python and of the command line, with options that do exist."""

import inspect
import re
import shlex
import warnings

import numpy as np
import pandas as pd
import pytest
import typer

import gpn_bayes as gpn
import gpn_bayes.cli
from gpn_bayes.cli import inputs
from gpn_bayes.data import data_flags
from gpn_bayes.data.keywords import KEYWORDS
from gpn_bayes.data.problems import argument
from gpn_bayes.posterior import Diagnostics
from gpn_bayes.sampling.flags import in_both, in_options
from gpn_bayes.sampling.options import flags
from gpn_bayes.scores import slower
from tests.command_line import call
from tests.draws import NULL, REFERENCE
from tests.reports import made_posterior, read_numbers

pytestmark = pytest.mark.more("repeats whole runs for every score and setting")

# Draws of which all can be said that has something to do about it.
WORST = (
    Diagnostics(1, 8000, np.nan, 100.0, 0.0, "a -> b", 0.9, 50.0, "order", True, "no", 0.3, 5),
    Diagnostics(4, 8000, 1.2, 100.0, 0.5, "a -> b", 0.9, 50.0, "partition", False, "yes"),
    Diagnostics(4, 8000, 1.2, 100.0, 0.5, "a -> b", 0.9, 50.0, "partition", False, "interrupted"),
)


@pytest.fixture(scope="module")
def options():
    """Return the options of ``gpn-bayes run``."""
    command = typer.main.get_command(gpn_bayes.cli.app).commands["run"]
    return {name for parameter in command.params for name in parameter.opts if name.startswith("--")}


def test_every_option_that_is_advised_exists(options):
    message = [in_both(text) for found in WORST for text in found.warnings()]
    advised = {name for text in message for name in re.findall(r"--[a-z-]+", text)}
    assert advised == {"--sampler", "--order-bias", "--reweight", "--until", "--temperatures"}
    assert advised <= options


@pytest.mark.parametrize("command", ["run", "estimate", "federate client"])
def test_every_setting_of_a_table_is_an_option(command):
    found = typer.main.get_command(gpn_bayes.cli.app)
    for word in command.split():
        found = found.commands[word]
    known = {name for parameter in found.params for name in parameter.opts}

    names = [name for name in KEYWORDS if command == "run" or name != "imputations"]
    advised = {in_options(argument(name, ["x"])).split()[0] for name in names}
    assert advised <= known
    assert len(advised) == len(names)


@pytest.mark.parametrize(
    ("name", "value", "option"),
    [
        ("drop", ["id"], "--drop id"),
        ("drop", ["id", "blood group"], "--drop 'id,blood group'"),
        ("drop", ["akt, total", "x"], "--drop '\"akt, total\",x'"),
        ("drop", ["it's"], "--drop 'it'\"'\"'s'"),
        ("drop", [""], "--drop ''"),
        ("na", ["<0.1", "[n]"], "--na '<0.1,[n]'"),
        ("na", ["-999"], "--na -999"),
        ("discretise", 3, "--discretise 3"),
        ("missing", "drop", "--missing drop"),
        ("sep", ";", "--sep ';'"),
        ("decimal", ",", "--decimal ,"),
    ],
)
def test_settings_of_tables_become_options_that_are_read_back(name, value, option):
    message = f"use {argument(name, value)} here"
    assert in_options(message) == f"use {option} here"
    assert in_both(message) == f"use {argument(name, value)} (command line: {option}) here"
    typed = shlex.split(option)[1]
    read = inputs._settings({name: typed})[name]
    assert read == value


def test_both_forms_are_named_once_each():
    message = WORST[0].warnings()[-1]
    assert in_both(message).endswith(
        "Use sampler='partition' (command line: --sampler partition), or sampler=gpn.samplers.Order(bias='correct') "
        "(command line: --sampler order --order-bias correct) for up to 20 variables."
    )
    assert in_options(message).endswith(
        "Use --sampler partition, or --sampler order --order-bias correct for up to 20 variables."
    )
    assert in_both("draw more (R-hat 1.2): a -> b") == "draw more (R-hat 1.2): a -> b"


def test_reports_of_python_name_both(tmp_path):
    post = made_posterior("abc", [(0, 1, 0.5)], sampler="order", order_bias="keep")
    message = read_numbers(post.report(tmp_path / "report.html"))["trust"]["warnings"]
    assert any("Use sampler='partition' (command line: --sampler partition), or" in text for text in message)
    assert "Use sampler='partition', or" in str(post.diagnostics())


def test_reports_of_the_command_line_name_both(tmp_path, capsys):
    data = REFERENCE / f"{NULL}.csv"
    code, shown, _ = call(
        capsys, "run", data, "--out", tmp_path / "out", "--sampler", "order", "--draws", 100, "--quiet"
    )
    assert code == 0
    assert "Use --sampler partition, or" in " ".join(shown.split())
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert "Use sampler=&#x27;partition&#x27; (command line: --sampler partition), or" in page


def test_descriptions_of_objects_are_no_advice():
    label = repr(gpn_bayes.scores.BGe())
    assert "alpha_w=None" in label
    for text in (f"it holds {label} on 6 variables", "PC(max_parents=None, test='hsic')"):
        assert in_options(text) == text and in_both(text) == text
    assert (
        in_options(f"{label}: use gpn.samplers.Exact(reweight=None)") == f"{label}: use --sampler exact --reweight none"
    )


def test_arguments_without_an_option_stay_as_they_are():
    assert in_options("use test='hsic'") == "use test='hsic'"


def test_every_argument_that_is_rewritten_has_its_option(options):
    arguments = set(inspect.signature(gpn_bayes.sample).parameters) | set(flags())
    arguments -= {"data", "cache", "executor", "progressbar", "space", "table"}
    assert {in_options(f"{name} must be something").split()[0] for name in arguments} <= options


# Advice on the data is followed as it is written


def coded(n=120):
    """Return a table with codes of categories, and with two values that stand for missing ones."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"])
    table["grade"], table["blood group"] = rng.integers(1, 4, n), rng.integers(1, 5, n) ** 2
    table["blood group"] = table["blood group"].map({1: 1, 4: 2, 9: 3, 16: 4})
    table.loc[::20, "a"] = -999
    table.loc[::30, "b"] = 9999999
    return table


def flagged(table, kind):
    (flag,) = [flag for flag in data_flags(gpn_bayes.Dataset.read(table), numbers=True) if flag.kind == kind]
    return flag.message


def reading(message):
    """Return the first call of `gpn.Table` in a message."""
    return re.search(r"gpn\.Table\(data, .*?\)", message)[0]


def test_values_that_mean_missing_can_be_read_as_missing(tmp_path, capsys):
    table = coded()
    message = flagged(table, "sentinel")
    assert "-999 in 6 rows" in message and "9999999 in 4 rows" in message
    data = eval(reading(message), {"gpn": gpn_bayes, "data": table}).read()  # the advice itself
    assert data.missing.sum() == 10 and data_flags(data, numbers=True)[:1] != ()
    table.to_csv(tmp_path / "table.csv", index=False)
    typed = re.search(r"--na \S+ --missing impute", in_options(message))[0]
    how = ["--draws", 20, "--tune", 10, "--max-parents", 1, "--quiet"]
    out = tmp_path / "out"
    code, _, messages = call(capsys, "run", tmp_path / "table.csv", "--out", out, *shlex.split(typed), *how)
    assert code == 0 and "10 values are missing, in 8 rows and 2 columns" in messages
    assert "read it as one" not in messages


def test_a_value_that_means_missing_in_one_column_only_is_not_read_so_in_all():
    rng = np.random.default_rng(1)
    table = coded().assign(a=rng.normal(size=120), b=rng.normal(size=120), answer=rng.integers(1, 6, 120))
    table.loc[::20, "answer"] = 9
    assert "na=[9]" in flagged(table, "sentinel")
    table["count"] = rng.poisson(6, 120)
    message = flagged(table, "sentinel")
    assert "na=" not in message and "empty those cells, and not those of 'count' with the same value" in message
    weighted = gpn_bayes.Dataset.read(coded().assign(w=rng.integers(1, 4, 120)), weights="w")
    (flag,) = [flag for flag in data_flags(weighted, numbers=True) if flag.kind == "sentinel"]
    assert "impute" not in flag.message and "missing='drop') leaves those rows out" in flag.message


def test_codes_can_be_read_as_categories(tmp_path, capsys):
    table = coded().drop(columns=["a", "b"]).assign(x=np.random.default_rng(2).normal(size=120))
    message = flagged(table, "codes")
    data = eval(reading(message), {"gpn": gpn_bayes, "data": table}).read()  # the advice itself
    assert data.kinds == ("categorical", "categorical", "continuous")
    assert [flag.kind for flag in data_flags(data, numbers=True)] == []
    gpn_bayes.sample(data, score="cg", draws=10, random_seed=1, progressbar=False)
    table.to_csv(tmp_path / "table.csv", index=False)
    typed = re.search(r"--kinds ('.*?'|\S+) says so, for (--score cg), which", in_options(message))
    out = tmp_path / "out"
    how = [*shlex.split(f"{typed[1]} {typed[2]}")]
    assert how[0] == "grade=category,blood group=category"
    code, _, messages = call(
        capsys, "run", tmp_path / "table.csv", "--out", out, "--kinds", *how, "--draws", 10, "--quiet"
    )
    assert code == 0 and "read as amounts" not in messages


BESIDE = {
    "weights": {"weights": "n"},
    "targets": {"targets": "who"},
    "kinds": {"kinds": {"visits": "number"}},
}


@pytest.mark.parametrize("given", BESIDE.values(), ids=BESIDE)
def test_advice_is_followed_beside_keywords_of_sample(given):
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(size=(60, 3)), columns=["x", "y", "z"])
    table["visits"] = rng.integers(0, 3, 60)
    column = {"weights": ("n", 1 + np.arange(60) % 3), "targets": ("who", np.where(np.arange(60) % 4, "", "y"))}
    for name in given:
        table = table.assign(**dict([column[name]])) if name in column else table
    table.loc[3, "x"] = np.nan
    table["code"] = [f"P{k}" for k in range(60)]

    data, quiet = table, {"draws": 10, "tune": 5, "chains": 1, "random_seed": 1, "progressbar": False}
    with pytest.raises(ValueError) as refusal:
        gpn_bayes.sample(data, "bge", **given, **quiet)
    for problem in ("leaves it out", "drops the row"):
        advice = re.search(rf"gpn\.Table\(data, [^()]*\)(?= {problem})", str(refusal.value))[0]
        data = eval(advice, {"gpn": gpn_bayes, "data": data})
    post = gpn_bayes.sample(data, "bge", **given, **quiet)
    assert post.names == ("x", "y", "z", "visits")
    keeps = re.search(r"gpn\.Table\(data, kinds=[^()]*\)(?= keeps it)", str(refusal.value))[0]
    kept = gpn_bayes.Table(eval(keeps, {"gpn": gpn_bayes, "data": table}), missing="drop")
    assert gpn_bayes.data.read_data(kept, **given).names == ("x", "y", "z", "visits", "code")


# Rules of arguments


@pytest.mark.parametrize(
    ("rule", "typed"),
    [
        ("reweight must be 'auto' or None; received 'foo'", "--reweight must be auto or none; received 'foo'"),
        ("until must be 'converged' or None; received 'foo'", "--until must be converged or none; received 'foo'"),
        (
            "target_penalty needs contexts; received 2.0 without them",
            "--target-penalty needs --contexts; received 2.0 without them",
        ),
        (
            "imputations needs missing='impute'; received 3 without it",
            "--imputations needs --missing impute; received 3 without it",
        ),
        (
            "with missing='impute', plus_one must be False; received plus_one=True",
            "with --missing impute, --no-plus-one must be given; received --plus-one",
        ),
        (
            "with missing='impute', expand must be False; received expand=3",
            "with --missing impute, --expand 0 must be given; received --expand 3",
        ),
        ("plus_one must be True, False or 'auto'; received 3", "--plus-one must be True, False or 'auto'; received 3"),
    ],
)
def test_rules_of_arguments_are_those_of_options(rule, typed):
    assert in_options(rule) == typed


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--reweight", "foo"], "--reweight must be auto or none; received 'foo'"),
        (["--until", "foo"], "--until must be converged or none; received 'foo'"),
        (["--target-penalty", 2], "--target-penalty needs --contexts; received 2.0 without them"),
        (["--imputations", 3], "--imputations needs --missing impute; received 3 without it"),
        (
            ["--missing", "impute", "--na", "-999", "--plus-one"],
            "with --missing impute, --no-plus-one must be given; received --plus-one",
        ),
    ],
)
def test_commands_refuse_in_words_that_can_be_typed(options, message, tmp_path, capsys):
    coded().to_csv(tmp_path / "table.csv", index=False)
    code, _, messages = call(capsys, "run", tmp_path / "table.csv", "--out", tmp_path / "out", *options, "--quiet")
    assert code == 2 and messages.splitlines()[-1] == f"error: {message}"


# Advice that takes long says so


def advice_of(n, rows, advise):
    columns = [f"v{k}" for k in range(n)]
    values = np.random.default_rng(1).normal(size=(rows, n))
    data = gpn_bayes.Dataset.read(pd.DataFrame(values, columns=columns))
    return advise(data, (0, 1, 2))


@pytest.mark.parametrize("rows", [50, 853, 8000])
@pytest.mark.parametrize("n", [3, 11, 30])
@pytest.mark.parametrize("advise", [slower.interaction_advice, slower.student_advice])
def test_nothing_that_takes_hours_is_advised(advise, n, rows):
    kind = slower.INTERACTION if advise is slower.interaction_advice else slower.STUDENT
    whole = slower.run_seconds(kind, n, rows)
    message = advice_of(n, rows, advise)
    assert ("try score=" in message) == (whole <= slower.LONGEST)
    if kind == slower.INTERACTION and rows > 5000:
        assert "takes at most 5,000 rows" in message
    else:
        assert f"takes {slower.in_words(whole)} on this table" in message
    assert in_options(message) == message  # it says that it is for Python
    made = re.search(r"gpn\.scores\.GP\(.*?\)", message)[0]
    assert isinstance(eval(made, {"gpn": gpn_bayes}), gpn_bayes.scores.GP)
    if part := re.search(r"data\[\[.*?\]\](\.sample\(\d+, random_state=1\))?", message):
        table = pd.DataFrame(np.zeros((rows, n)), columns=[f"v{k}" for k in range(n)])
        chosen = eval(part[0], {"data": table})
        assert slower.run_seconds(kind, chosen.shape[1], len(chosen)) <= slower.LONGEST


def test_the_demo_is_told_what_its_flags_would_take():
    """The interaction kernel takes hours there, and Student t noise too."""
    message = advice_of(11, 853, slower.interaction_advice)
    assert message == (
        "score=gpn.scores.GP(kernel='interaction'), in Python, can, but takes about 11.3 CPU hours on this table; on "
        "data[['v0', 'v1', 'v2']].sample(500, random_state=1) it takes less than a CPU minute. Or add a column of "
        "products."
    )
    assert "takes about 2.1 CPU hours on this table" in advice_of(11, 853, slower.student_advice)


def test_scores_that_do_not_take_a_table_are_not_advised_for_it():
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(size=(60, 3)), columns=list("abc")).assign(sex=rng.choice(["f", "m"], 60))
    mixed = gpn_bayes.Dataset.read(table)
    assert slower.interaction_advice(mixed, (0, 1, 3)) == "add a column of products."
    assert "takes tables of numbers only; on data[['a', 'b', 'c']] it takes" in slower.interaction_advice(
        mixed, (0, 1, 2)
    )
    unknown = gpn_bayes.Dataset.read(table[list("abc")], contexts=["", "x"] * 30)
    assert slower.student_advice(unknown, (0, 1)) == "transform the column."


def test_curves_of_many_variables_are_not_advised_blindly():
    assert advice_of(5, 50, lambda data, _: slower.curves_advice(data)) == "try score='gp'."
    assert "which takes about 3 CPU minutes" in advice_of(20, 50, lambda data, _: slower.curves_advice(data))
    many = advice_of(100, 50, lambda data, _: slower.curves_advice(data))
    assert many.startswith("transform columns; score='gp' follows curves, but takes about 6.7 CPU hours")


def test_rows_that_depend_on_each_other_call_for_no_other_score():
    """Random walks seem to follow each other, which no score of independent rows mends."""
    walks = pd.DataFrame(np.random.default_rng(5).normal(size=(300, 5)).cumsum(axis=0), columns=list("abcde"))
    post = gpn.sample(walks, "bge", draws=100, random_seed=1, progressbar=False)
    kinds = [kind for kind, _ in read_flags(post)]
    assert "dependent rows" in kinds and "leftover dependence" not in kinds
    assert not any("score='gp'" in message or "GP(" in message for _, message in read_flags(post))


def test_a_mixed_table_is_told_what_gaussian_processes_would_take():
    rng = np.random.default_rng(1)
    group = rng.choice(["f", "m"], 400)
    table = pd.DataFrame({"group": group, "cost": rng.lognormal(sigma=1.5, size=400), "age": rng.normal(size=400)})
    for rows, text in (
        (table, "or compare with score='gp', which takes less than a CPU minute on this table."),
        (
            pd.concat([table.assign(also=rng.permutation(group), third=rng.permutation(group))] * 50),
            r"or compare with score='gp' on fewer columns or rows; on this table it takes about \d\.\d CPU hours\.",
        ),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # copies of rows
            post = gpn.sample(rows.reset_index(drop=True), "cg", draws=50, random_seed=1, progressbar=False)
        (message,) = [message for kind, message in read_flags(post) if kind == "heavy tails"]
        assert re.search(text, message), message


def read_flags(post):
    return [(flag.kind, flag.message) for flag in post.diagnostics().data_flags]


def test_numbers_of_few_values_are_not_priced_as_categories():
    """Whole numbers can be levels too, but more than two of them are numbers under these scores."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"treat": rng.integers(0, 2, 400), "wage": rng.lognormal(size=400)})
    ages = [f"age{k}" for k in range(3)]
    whole = table.assign(**{name: rng.integers(18, 58, 400) for name in ages})
    fractions = whole.assign(**{name: whole[name] + 0.5 for name in ages})
    told = [slower.mixed_advice(gpn_bayes.Dataset.read(own)) for own in (whole, fractions)]
    assert told == ["or compare with score='gp', which takes less than a CPU minute on this table."] * 2

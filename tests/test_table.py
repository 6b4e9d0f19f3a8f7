"""`gpn.Table` and its keywords: defined once, taken alike by all that take tables, checked at once."""

import inspect
import warnings
from typing import get_type_hints

import networkx as nx
import numpy as np
import pandas as pd
import pytest
import typer

import gpn_bayes as gpn
import gpn_bayes.cli
from gpn_bayes.cli import inputs
from gpn_bayes.data import described, read_data
from gpn_bayes.data.keywords import KEYWORDS, Keyword, given_names, settings_of
from gpn_bayes.data.table import ReadingKeywords, TableKeywords
from gpn_bayes.estimators.base import GraphEstimator

QUIET = {"progressbar": False, "random_seed": 1, "draws": 20, "tune": 20, "chains": 1}
OF_TABLES, OF_READING = tuple(get_type_hints(TableKeywords)), tuple(get_type_hints(ReadingKeywords))


def made(rows=60):
    """Return numbers, with a category and columns that say something of rows."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"x": rng.normal(size=rows), "z": rng.normal(size=rows)})
    table["y"] = table["x"] + 0.5 * rng.normal(size=rows)
    table["n"] = 1 + np.arange(rows) % 3
    table["who"] = np.where(np.arange(rows) % 4 == 0, "y", "")
    table["visits"] = rng.integers(0, 3, rows)
    return table


NUMBERS = ["x", "z", "y", "visits"]
# One value of every keyword that describes rows and columns, with those that it needs, and columns that go with it.
EXAMPLES = {
    "kinds": ({"kinds": {"visits": "number"}}, NUMBERS),
    "weights": ({"weights": "n"}, [*NUMBERS, "n"]),
    "missing": ({"missing": "drop"}, NUMBERS),
    "imputations": ({"missing": "impute", "imputations": 3}, NUMBERS),
    "targets": ({"targets": "who"}, [*NUMBERS, "who"]),
    "intervention": ({"targets": "who", "intervention": "soft"}, [*NUMBERS, "who"]),
    "contexts": ({"contexts": "who"}, [*NUMBERS, "who"]),
    "target_probability": ({"contexts": "who", "target_probability": 0.2}, [*NUMBERS, "who"]),
    "target_penalty": ({"contexts": "who", "target_penalty": 2.0}, [*NUMBERS, "who"]),
}


def prepared(name):
    """Return a table that a keyword makes a difference to, and the keywords."""
    given, columns = EXAMPLES[name]
    table = made()[columns]
    if name == "missing":
        table.loc[3, "x"] = np.nan
    return table, given


def test_every_keyword_has_an_example_here():
    assert EXAMPLES.keys() == set(OF_TABLES)
    assert KEYWORDS.keys() == {*OF_TABLES, *OF_READING}


# The definitions


@pytest.mark.parametrize("name", KEYWORDS)
def test_a_keyword_has_all_that_belongs_to_it(name):
    own = KEYWORDS[name]
    assert isinstance(own, Keyword)
    assert own.help.endswith(".") and own.words.count("{}") == 1
    assert own.typed in {"text", "number", "count", *inputs._TYPED}
    assert settings_of({})[name] == own.check(name, own.default)
    assert f"    {name} : " in gpn.Table.__doc__ or f"{name} : " in gpn.Table.__doc__ or name in ("columns", "drop")


@pytest.mark.parametrize("command", ["run", "estimate"])
def test_options_of_the_command_line_are_those_of_the_definitions(command):
    parameters = typer.main.get_command(gpn_bayes.cli.app).commands[command].params
    found = {parameter.name: parameter for parameter in parameters if parameter.name in KEYWORDS}
    draws = command == "run"
    assert found.keys() == (KEYWORDS.keys() if draws else KEYWORDS.keys() - {"imputations"})
    assert ("impute" in found["missing"].help) == draws
    for name, parameter in found.items():
        assert parameter.opts == [f"--{name.replace('_', '-')}"] and parameter.default is None
        assert parameter.help == KEYWORDS[name].help + (KEYWORDS[name].drawing or "") * draws


@pytest.mark.parametrize(
    ("name", "wrong", "message"),
    [
        ("kinds", {"x": "numbr"}, "the kind of 'x' must be one of .*; received 'numbr': did you mean 'number'?"),
        ("weights", 3, "weights must be a column of the table, or a sequence; received 3"),
        ("missing", "ignore", "missing must be one of error, drop, impute; received 'ignore'"),
        ("imputations", 1, "imputations must be a whole number, 2 or more; received 1"),
        ("targets", 1.5, "targets must be a column of the table, or a sequence; received 1.5"),
        ("intervention", "hard", "intervention must be one of perfect, soft; received 'hard'"),
        ("contexts", 0, "contexts must be a column of the table, or a sequence; received 0"),
        ("target_probability", 1.5, "target_probability must lie between 0 and 1; received 1.5"),
        ("target_penalty", -1.0, "target_penalty must be a number, 0 or more; received -1.0"),
    ],
)
def test_values_are_checked_at_once(name, wrong, message):
    with pytest.raises(ValueError, match=f"^{message}$".replace("?$", r"\?$")):
        gpn.Table("no such file.csv", **{name: wrong})


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"wieghts": "n"}, "a table has no keyword 'wieghts': did you mean 'weights'?"),
        ({"weights": "m"}, "weights must be a column of the table, or a sequence as long as it; received 'm', "),
        ({"targets": ["", "x"]}, "targets must be as many as there are rows, 60; received 2"),
        ({"kinds": {"age": "number"}}, "kinds must name columns of the table; received 'age', not one of 'x', "),
        ({"sep": ";"}, "sep is a setting of text files and sheets; received DataFrame"),
        ({"targets": "who", "contexts": "who"}, "targets are known, or contexts name experiments whose targets aren't"),
        ({"target_penalty": 1.0}, "target_penalty needs contexts; received 1.0 without them"),
        (
            {"contexts": "who", "target_penalty": 1.0, "target_probability": 0.2},
            "target_probability and target_penalty say the same; received both",
        ),
        ({"imputations": 3}, "imputations needs missing='impute'; received 3 without it"),
        ({"imputations": 5, "missing": "drop"}, "imputations needs missing='impute'; received 5 without it"),
    ],
)
def test_keywords_are_checked_against_tables_in_memory(given, message):
    with pytest.raises(ValueError) as refusal:
        gpn.Table(made(), **given)
    assert str(refusal.value).startswith(message) and "\n" not in str(refusal.value)


# What takes them


def fingerprint(data, **table):
    return read_data(data, **table).fingerprint


@pytest.mark.parametrize("name", OF_TABLES)
def test_readers_take_every_keyword_and_the_table_that_states_it(name):
    table, given = prepared(name)
    before = table.copy(deep=True)
    whole = gpn.Table(table, **given)
    one = gpn.Dataset.read(table, **given)
    assert one.fingerprint == whole.read().fingerprint == fingerprint(whole) == fingerprint(table, **given)
    assert one.imputations == whole.read().imputations == given.get("imputations", 5)
    assert gpn.Dataset.read(whole).fingerprint == one.fingerprint
    assert settings_of(given)[name] is not None and name in given_names(settings_of(given))
    pd.testing.assert_frame_equal(table, before)


@pytest.mark.parametrize("name", OF_TABLES)
def test_sample_takes_every_keyword_and_the_table_that_states_it(name):
    table, given = prepared(name)
    before = table.copy(deep=True)
    first, second = gpn.sample(table, "bge", **given, **QUIET), gpn.sample(gpn.Table(table, **given), "bge", **QUIET)
    assert first.settings == second.settings and np.array_equal(first.parents, second.parents)
    pd.testing.assert_frame_equal(table, before)


@pytest.mark.parametrize("name", OF_TABLES)
def test_scores_and_learners_take_every_keyword_and_the_table_that_states_it(name):
    table, given = prepared(name)
    before = table.copy(deep=True)
    score = gpn.scores.BGe()
    bound = score.bind(table, **given).total([("x", "y")])
    assert bound == score.bind(gpn.Table(table, **given)).total([("x", "y")])
    learner = gpn.estimators.HillClimbing(score="bge", random_state=1)
    assert learner.fit(table, **given).log_score_ == learner.fit(gpn.Table(table, **given)).log_score_
    assert learner.log_score("bge", gpn.Table(table, **given)) == pytest.approx(learner.log_score_)
    pd.testing.assert_frame_equal(table, before)


@pytest.mark.parametrize("name", ["kinds", "missing"])
def test_bootstraps_and_pymc_networks_take_them_too(name):
    table, given = prepared(name)
    learner = gpn.estimators.PC(alpha=0.01)
    boots = [
        gpn.bootstrap(learner, table, n=5, random_seed=1, progressbar=False, **given),
        gpn.bootstrap(learner, gpn.Table(table, **given), n=5, random_seed=1, progressbar=False),
    ]
    assert np.array_equal(boots[0].parents, boots[1].parents)
    models = [
        gpn.pymc_network(table, [("x", "y")], "bge", **given),
        gpn.pymc_network(gpn.Table(table, **given), nx.DiGraph([("x", "y")]), "bge"),
    ]
    assert all(len(model.coords["row"]) == 60 - (name == "missing") for model in models)


LEARNERS = [
    gpn.estimators.NOTEARS(lambda1=0.1),
    gpn.estimators.NOTEARSMLP(hidden=1, starts=1),
    gpn.estimators.DYNOTEARS(),
    gpn.estimators.PC(test="hsic"),
]


@pytest.mark.parametrize("learner", LEARNERS, ids=lambda learner: type(learner).__name__)
@pytest.mark.parametrize("name", ["weights", "targets"])
def test_learners_that_take_all_rows_alike_say_so(learner, name):
    table, given = prepared(name)
    if name == "weights":
        table["n"] = table["n"] / 2
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "weights that aren't whole numbers", UserWarning)
        with pytest.raises(ValueError, match="takes rows that (all count alike|were only observed); received") as own:
            learner.fit(table, **given)
    assert "\n" not in str(own.value)


def test_contexts_are_called_so_where_they_are_refused():
    table, given = prepared("contexts")
    with pytest.raises(ValueError, match="were only observed; received contexts of interventions: use a score"):
        gpn.estimators.PC().fit(table, **given)


TAKERS = {
    "sample": lambda table, **given: gpn.sample(table, "bge", **given, **QUIET),
    "fit": lambda table, **given: gpn.estimators.HillClimbing().fit(table, **given),
    "fit of series": lambda table, **given: gpn.estimators.DYNOTEARS().fit(table, **given),
    "bind": lambda table, **given: gpn.scores.BGe().bind(table, **given),
    "bootstrap": lambda table, **given: gpn.bootstrap(gpn.estimators.PC(), table, n=2, progressbar=False, **given),
    "pymc_network": lambda table, **given: gpn.pymc_network(table, [("x", "y")], "bge", **given),
}


@pytest.mark.parametrize("take", TAKERS.values(), ids=TAKERS)
@pytest.mark.parametrize("name", OF_READING)
def test_how_to_read_a_table_is_said_by_a_table(take, name):
    with pytest.raises(ValueError) as refusal:
        take(made()[NUMBERS], **{name: "z"})
    assert str(refusal.value) == f"{name} says how to read a table: use gpn.Table(data, {name}='z') as data"


def test_every_learner_takes_them():
    named = [getattr(gpn.estimators, name) for name in gpn.estimators.__all__]
    learners = [own for own in named if inspect.isclass(own) and issubclass(own, GraphEstimator)]
    assert len(learners) >= 8
    for own in learners:
        assert inspect.signature(own.fit).parameters["table"].kind is inspect.Parameter.VAR_KEYWORD, own


def test_series_can_not_lose_times():
    table = made()[NUMBERS]
    table.loc[5, "x"] = np.nan
    with pytest.raises(ValueError, match="^every time of a series must be there; missing='drop' drops 1 of them$"):
        gpn.estimators.DYNOTEARS().fit(table, missing="drop")


def test_missing_values_that_are_to_be_imputed_are_refused_where_nothing_imputes_them():
    table, _ = prepared("missing")
    for fit in (gpn.estimators.HillClimbing().fit, gpn.estimators.PC().fit, gpn.estimators.NOTEARS().fit):
        with pytest.raises(ValueError, match="^this takes complete tables; received one with 1 missing values"):
            fit(table, missing="impute")
    post = gpn.sample(gpn.Table(table, missing="impute"), "bge", **QUIET)
    assert post.settings["missing"]["imputed"] == 1


def test_posteriors_take_tables_where_they_take_rows():
    table, given = prepared("missing")
    whole = gpn.Table(table, **given)
    post = gpn.sample(whole, "bge", **QUIET)
    rows = gpn.Table(made()[NUMBERS].iloc[:3])
    assert post.log_predictive(rows).equals(post.log_predictive(rows.data))
    # New rows are read as their table says.
    coded = rows.data.copy()
    coded.iloc[1, 0] = -99.0
    stated = gpn.Table(coded, na=-99, missing="drop")
    assert post.log_predictive(stated).equals(post.log_predictive(rows.data.drop(index=coded.index[1])))
    with pytest.raises(ValueError, match="^new rows take no weights; received weights=3 values$|received weights="):
        post.log_predictive(gpn.Table(rows.data, weights=[1, 2, 1]))


def test_reports_take_tables(tmp_path):
    table, given = prepared("weights")
    post = gpn.sample(table, "bge", **given, **QUIET)
    assert post.report(tmp_path / "report.html", data=gpn.Table(table, **given)).stat().st_size > 1000


# Tables themselves


def test_what_is_stated_is_stated_once():
    table = gpn.Table(made()[[*NUMBERS, "n"]], weights="n")
    with pytest.raises(ValueError, match="^weights must be stated once; the table has weights='n', and received "):
        gpn.sample(table, weights="visits")
    with pytest.raises(ValueError, match="^weights must be stated once; .* received weights=60 values$"):
        gpn.scores.BGe().bind(table, weights=np.ones(60))
    added = gpn.Table(table, kinds={"visits": "number"})
    assert added.keywords == {"weights": "n", "kinds": {"visits": "number"}} and table.keywords == {"weights": "n"}
    assert read_data(table, kinds={"visits": "number"}).fingerprint == added.read().fingerprint


def test_what_names_columns_and_values_adds_up():
    table = gpn.Table(made()[[*NUMBERS, "n"]], kinds={"visits": "category"}, drop="x", na=-1, categories="n")
    more = gpn.Table(table, kinds={"y": "number"}, drop=["z"], na=["-2", -1], categories=["n"])
    assert more.keywords == {
        "kinds": {"visits": "category", "y": "number"},
        "drop": ("x", "z"),
        "na": ("-1", "-2"),
        "categories": ("n",),
    }
    assert more.read().kinds == ("continuous", "categorical", "categorical")
    with pytest.raises(ValueError, match="^kinds must be stated once; the table has kinds=.*, and received kinds="):
        gpn.Table(table, kinds={"y": "number", "visits": "number"})


def test_a_table_says_what_it_was_told_and_how_it_is_read():
    table = gpn.Table(made().drop(columns="who"), weights="n", kinds={"visits": "category"}, missing="drop")
    text = repr(table)
    assert text.splitlines() == [
        "Table of 60 rows and 5 columns",
        "  columns are taken for {'visits': 'category'}",
        "  how many rows each row stands for: column 'n'",
        "  missing values: drop",
        "  read as 120 rows of 4 variables: 3 numbers, 1 category (visits)",
    ]
    page = table._repr_html_()
    assert "visits" in page and "0, 1, 2" in page and "category" in page
    broken = gpn.Table(pd.DataFrame({"x": [1.0, 2.0], "y": [3.0, 3.0]}))
    assert "can't be read yet: every column must vary; column 'y' is constant" in repr(broken)
    assert "can&#x27;t be read yet" in broken._repr_html_()


def test_tables_of_files_and_of_what_was_read(tmp_path):
    path = tmp_path / "cells.csv"
    made()[NUMBERS].to_csv(path, index=False, sep=";")
    table = gpn.Table(path, sep=";", drop="visits")
    assert table.read().names == ("x", "z", "y") and repr(table).startswith(f"Table of the file {path}")
    data = table.read()
    assert gpn.Table(data).read() is data
    with pytest.raises(ValueError, match="^weights is for tables that aren't read yet; received a Dataset$"):
        gpn.Table(data, weights="x")
    with pytest.raises(ValueError, match="^data must be a DataFrame, an array or the path of a table; received list$"):
        gpn.Table([1, 2])


def test_a_table_is_frozen_and_described_makes_one_only_where_something_was_said():
    frame = made()
    table = described(frame, {"missing": "drop"})
    assert isinstance(table, gpn.Table) and described(frame, {}) is frame
    with pytest.raises(AttributeError):
        table.data = None


def test_statistics_have_no_rows_to_describe():
    statistics = gpn.SufficientStatistics.of(made()[NUMBERS])
    with pytest.raises(ValueError, match="^weights is a setting of tables; received SufficientStatistics$"):
        gpn.sample(statistics, weights="n", **QUIET)

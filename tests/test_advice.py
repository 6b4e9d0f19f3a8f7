"""What reports say to do: for readers of Python and of the command line, with options that do exist."""

import inspect
import re
import shlex
from dataclasses import fields

import numpy as np
import pytest
import typer

import gpn_bayes.cli
from gpn_bayes._util.cli_wording import in_both, in_options
from gpn_bayes.cli import inputs
from gpn_bayes.data.problems import argument
from gpn_bayes.data.reading import ReadSettings
from gpn_bayes.posterior import Diagnostics
from tests.command_line import call
from tests.draws import NULL, REFERENCE
from tests.reports import made_posterior, read_numbers

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
    assert advised == {"--sampler", "--order-bias", "--reweight"}
    assert advised <= options


@pytest.mark.parametrize("command", ["run", "estimate", "federate client"])
def test_every_setting_of_a_table_is_an_option(command):
    found = typer.main.get_command(gpn_bayes.cli.app)
    for word in command.split():
        found = found.commands[word]
    known = {name for parameter in found.params for name in parameter.opts}
    # What scores declare isn't up to users.
    names = [field.name for field in fields(ReadSettings) if field.name != "declared"]
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
        "Use sampler='partition' (command line: --sampler partition), or order_bias='correct' (command line: "
        "--order-bias correct) for up to 20 variables."
    )
    assert in_options(message).endswith("Use --sampler partition, or --order-bias correct for up to 20 variables.")
    assert in_both("draw more (R-hat 1.2): a -> b") == "draw more (R-hat 1.2): a -> b"


def test_reports_of_python_name_both(tmp_path):
    post = made_posterior("abc", [(0, 1, 0.5)], sampler="order", order_bias="kept")
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
    assert in_options(f"{label}: use reweight=None") == f"{label}: use --reweight none"


def test_arguments_without_an_option_stay_as_they_are():
    assert in_options("use test='hsic'") == "use test='hsic'"


def test_every_argument_that_is_rewritten_has_its_option(options):
    arguments = set(inspect.signature(gpn_bayes.sample).parameters) - {"data", "score", "cache", "executor"}
    named = {in_options(f"{name} must be something").split()[0] for name in arguments - {"progressbar"}}
    assert {name for name in named if name.startswith("--")} <= options
    assert named - options == {"required", "forbidden", "tiers"}  # whose messages name the option where they are read

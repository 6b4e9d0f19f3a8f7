"""What ``gpn-bayes run`` refuses: each in one line, before anything is written."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.command_line import call, check_refused

GOOD = "a,b,c\n1,2,9\n2,1,4\n3,5,1\n4,4,0\n5,9,2\n"
BAD_DATA = {
    "empty": ("", "is empty"),
    "one column": ("a\n1\n2\n", "at least two variables; received 1"),
    "header only": ("a,b\n", "at least two rows; received 0"),
    "missing value": ("a,b\n1,2\n,3\n4,4\n", "1 is missing, in 1 of 3 rows and 1 of 2 columns ('a' in line 3)"),
    "infinite": ("a,b\n1,2\ninf,3\n4,4\n", "column 'a' holds an infinite value"),
    "text": ("a,b\n1,x\n2,y\n4,x\n", "needs numbers; column 'b' holds text"),
    "constant": ("a,b\n1,2\n1,3\n1,4\n", "column 'a' is constant"),
    "twice the name": ("a,a,b\n1,2,3\n2,3,4\n3,3,5\n", "'a' appears more than once"),
    "nameless": ("a,\n1,2\n2,1\n3,3\n", "every column must have a name"),
}
BAD_OPTIONS = [
    (["--draws", "0"], "error: --draws must be a whole number, 1 or more; received 0"),
    (["--draws", "many"], "--draws"),
    (["--chains", "0"], "chains must be"),
    (["--tune", "-1"], "tune must be"),
    (["--cores", "0"], "cores must be"),
    (["--seed", "-1"], "error: --seed must be"),
    (["--thin", "often"], "thin must be a whole number, 1 or more; received 'often'"),
    (["--thin", "0"], "thin must be"),
    (["--thin", "²"], "thin must be a whole number, 1 or more; received '²'"),
    (["--score", "best"], "error: --score must be one of bge, gp, bic, bdeu, k2, cg; received 'best'\n"),
    (["--score", "gpp"], "received 'gpp': did you mean 'gp'?"),
    (["--sampler", "best"], "error: --sampler must be one of"),
    (["--sampler", "partiton"], "received 'partiton': did you mean 'partition'?"),
    (["--order-bias", "best"], "error: --order-bias must be"),
    (["--max-parents", "-1"], "error: --max-parents must be"),
    (["--required", "a -> z"], "'z' is not"),
    (["--forbidden", "z->a"], "'z' is not"),
    (["--required", "a, b"], "--required takes 'cause -> effect' or the path of a CSV file"),
    (["--required", "a -> b", "--required", "b -> a"], "must not form a cycle"),
    (["--required", "a -> b", "--forbidden", "a -> b"], "can't be required and forbidden; a -> b"),
    (["--required", "a -> a"], "names each variable once"),
    (["--required", "a -> c", "--required", "b -> c", "--max-parents", "1"], "leave room for the required"),
    (["--tiers", "nowhere.csv"], "--tiers: the file must exist"),
    (["--candidates", "nowhere.csv"], "--candidates: the file must exist"),
    (["--prior", "nowhere.csv"], "--prior: the file must exist"),
    (
        ["--prior", "wild"],
        "error: --prior must be one of uniform, fair, or a table of edge probabilities; received 'wild'\n",
    ),
    (["--prior", "fiar"], "received 'fiar': did you mean 'fair'?"),
    (["--candidates", "gredy"], "received 'gredy': did you mean 'greedy'?"),
    (["--out", ""], "'--out': a folder must have a name; received ''"),
    (["--out", " "], "'--out': a folder must have a name; received ''"),
    (["--wrong"], "--wrong"),
]


@pytest.fixture
def table(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "table.csv"
    path.write_text(GOOD, encoding="utf-8")
    return path


@pytest.mark.parametrize("case", BAD_DATA)
def test_bad_data_are_refused_before_anything_is_written(case, tmp_path, capsys):
    text, expected = BAD_DATA[case]
    (tmp_path / "data.csv").write_text(text, encoding="utf-8")
    check_refused(capsys, tmp_path, [tmp_path / "data.csv", "--out", tmp_path / "out"], expected)


def test_missing_data_are_refused(tmp_path, capsys):
    check_refused(capsys, tmp_path, [tmp_path / "no.csv", "--out", tmp_path / "out"], "the data file must exist")


@pytest.mark.parametrize(("options", "expected"), BAD_OPTIONS, ids=lambda value: " ".join(value)[:40])
def test_bad_options_are_refused_before_anything_is_written(options, expected, tmp_path, capsys):
    (tmp_path / "data.csv").write_text(GOOD, encoding="utf-8")
    check_refused(capsys, tmp_path, [tmp_path / "data.csv", "--out", tmp_path / "out", *options], expected)


@pytest.mark.parametrize(
    ("option", "text", "expected"),
    [
        ("--tiers", "name,tier\na,1\nb,2\n", "every variable belongs to one tier; 'c' is in none"),
        ("--tiers", "a,1\nb,2\nc,late\n", "a tier must be a number; received 'late'"),
        ("--tiers", "a,1\nb,2\nb,3\nc,1\n", "'b' is listed twice"),
        ("--tiers", "a,1\nb1,2\nc,1\n", "every name must be one of the variables; 'b1' is not: did you mean 'b'?"),
        ("--required", "cause,effect\na,q\n", "every name must be one of the variables; 'q' is not"),
        ("--required", "x,y,z\na,b,c\n", "needs the columns cause and effect"),
        ("--required", "cause,effect\na,b\nb,a\n", "required edges must not form a cycle"),
        ("--required", "parent,child,type\na,b,undirected\n", "must have a direction; a - b is undirected"),
        ("--forbidden", "cause,effect\na,a\n", "no node may be its own parent; 'a' is"),
        ("--forbidden", "", "is empty"),
        ("--candidates", "parent,child\na,b\na\n", "line 3 has 1, not 2"),
        ("--candidates", "parent,child\na,a\n", "its own candidate parent"),
        ("--candidates", "parent,child\na,\n", "every line must name a child; one has the parent 'a' alone"),
        ("--prior", ",a,b\na,,.5\nb,.5,\n", "need the variables as rows and columns; 'c' is missing"),
        ("--prior", ",a,b,x\na,,.5,.5\nb,.5,,.5\nx,.5,.5,\n", "as rows and columns; 'c' is missing"),
        ("--prior", ",a,b,c\na,,.5,x\nb,.5,,.5\nc,.5,.5,\n", "must be numbers; received 'x'"),
        ("--prior", "parent,child,probability\na,b,1.5\n", "between 0 and 1; that of a -> b is 1.5"),
        ("--prior", "parent,child,probability\na,q,0.5\n", "'q' is not"),
    ],
)
def test_bad_files_are_refused_before_anything_is_written(option, text, expected, tmp_path, capsys):
    (tmp_path / "data.csv").write_text(GOOD, encoding="utf-8")
    (tmp_path / "extra.csv").write_text(text, encoding="utf-8")
    arguments = [tmp_path / "data.csv", "--out", tmp_path / "out", option, tmp_path / "extra.csv"]
    check_refused(capsys, tmp_path, arguments, f"error: {option} {tmp_path / 'extra.csv'}: ", expected)


@pytest.mark.parametrize("name", ["posterior.nc", "edges.csv", "report.html", "run.sqlite", "run.json"])
def test_files_of_others_are_never_overwritten(name, table, tmp_path, capsys):
    (tmp_path / name).write_text("{}", encoding="utf-8")
    check_refused(capsys, tmp_path, [table, "--out", tmp_path], "nothing is overwritten")
    assert (tmp_path / name).read_text(encoding="utf-8") == "{}"


@pytest.mark.parametrize(
    "content", ["[" * 100_000, '{"format": "gpn_bayes run 1"}', "written"], ids=["deep", "bare", "changed"]
)
def test_a_run_s_identity_that_somebody_has_changed_is_refused(content, table, tmp_path, capsys):
    assert call(capsys, "run", table, "--out", tmp_path, "--draws", 5, "-q")[0] == 0
    file = tmp_path / "run.json"
    written = json.loads(file.read_text(encoding="utf-8"))
    assert "prior" in written["settings"]
    changed = json.dumps(written | {"key": "x", "settings": {"prior": 5}}) if content == "written" else content
    file.write_text(changed.replace("gpn_bayes run 1", written["format"]), encoding="utf-8")
    code, _, messages = call(capsys, "run", table, "--out", tmp_path, "--draws", 5, "-q")
    assert code == 2 and messages.startswith("error: nothing is overwritten; ") and messages.count("\n") == 1


def test_unrelated_files_do_no_harm(table, tmp_path, capsys):
    (tmp_path / "notes.txt").write_text("mine", encoding="utf-8")
    assert call(capsys, "run", table, "--out", tmp_path, "--draws", 5, "-q")[0] == 0
    assert (tmp_path / "notes.txt").read_text(encoding="utf-8") == "mine"


def test_out_may_not_be_a_file(table, tmp_path, capsys):
    (tmp_path / "out").write_text("", encoding="utf-8")
    check_refused(capsys, tmp_path, [table, "--out", tmp_path / "out"], "--out must be a folder")
    check_refused(capsys, tmp_path, [table, "--out", tmp_path / "out" / "below"], "Not a directory")


def test_an_empty_out_is_not_the_current_folder(table, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    check_refused(capsys, tmp_path, [table, "--out", ""], "'--out': a folder must have a name; received ''")
    assert call(capsys, "run", table, "--out", ".", "--draws", 5, "-q")[0] == 0
    assert (tmp_path / "edges.csv").exists()


@pytest.mark.more("starts processes")
def test_errors_stay_on_one_line_with_their_brackets(tmp_path):
    """In a real process with a narrow terminal; a name that looks like markup comes through."""
    (tmp_path / "data.csv").write_text("[red]x[/red],b\n1,2\n1,3\n1,4\n", encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-m", "gpn_bayes.cli", "run", "data.csv", "--out", "out"],
        cwd=tmp_path, capture_output=True, text=True, env={**os.environ, "COLUMNS": "20"}, timeout=60,
    )  # fmt: skip
    assert done.returncode == 2 and done.stdout == ""
    assert done.stderr == "error: every column must vary; column '[red]x[/red]' is constant\n"
    assert not (tmp_path / "out").exists()

"""Files that version 0.1.0 wrote: they load, answer as they did, and their runs go on."""

import json
import shutil
from pathlib import Path

import pandas as pd
import pytest

import gpn_bayes as gpn
from tests.command_line import call

pytestmark = pytest.mark.more("reads files that are messy in every way")

FILES = Path(__file__).parent / "reference" / "version_0_1_0"
DATA = pd.read_csv(FILES / "table.csv")


@pytest.mark.parametrize("score", ["gp", "bge"])
def test_posteriors_load_and_answer(score):
    post = gpn.load(FILES / score / "posterior.nc")
    written = pd.read_csv(FILES / score / "edges.csv").set_index(["parent", "child"])["probability"]
    found = post.summary().set_index(["parent", "child"])["probability"]
    pd.testing.assert_series_equal(found.sort_index(), written.sort_index(), atol=1e-6)
    assert post.data is None
    assert repr(post.scorer.score) == post.settings["score"]


def test_curves_of_an_older_posterior_need_only_the_rows():
    post = gpn.load(FILES / "gp" / "posterior.nc")
    assert set(post.curves("b", data=DATA)["parent"]) >= {"a", "c"}
    with pytest.raises(ValueError, match="^curves need the rows, and this posterior was saved without them"):
        post.curves("b")


@pytest.mark.parametrize("score", ["gp", "bge"])
def test_a_finished_run_is_recognised(score, tmp_path, capsys):
    out = tmp_path / score
    shutil.copytree(FILES / score, out)
    (out / "report.html").write_text("as it was")
    before = (out / "posterior.nc").read_bytes()
    options = ["--score", score, "--draws", 40, "--chains", 2, "--seed", 1, "--out", out]
    code, _, errors = call(capsys, "run", FILES / "table.csv", *options)
    assert code == 0 and "finished; nothing was computed again" in errors
    assert (out / "posterior.nc").read_bytes() == before


def test_a_run_goes_on_from_the_scores_of_an_older_cache(tmp_path, capsys):
    """With other scores in the file than its own, the run would draw other networks."""
    out = tmp_path / "gp"
    shutil.copytree(FILES / "gp", out)
    (out / "posterior.nc").unlink()
    assert json.loads((out / "run.json").read_text())["settings"]["version"] == "0.1.0"
    code, _, errors = call(
        capsys, "run", FILES / "table.csv", "--score", "gp", "--draws", 40, "--chains", 2, "--seed", 1, "--out", out
    )
    assert code == 0 and "unfinished; going on" in errors
    pd.testing.assert_frame_equal(pd.read_csv(out / "edges.csv"), pd.read_csv(FILES / "gp" / "edges.csv"), atol=1e-6)

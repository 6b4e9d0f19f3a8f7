"""Run the command line in this process, and check that it refuses cleanly."""

import json
from pathlib import Path

import pandas as pd
import pytest

from gpn_bayes.cli import main


def call(capsys, *arguments: object) -> tuple[int, str, str]:
    """Run the command line here; return its exit code and what it printed."""
    with pytest.raises(SystemExit) as end:
        main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return int(end.value.code or 0), printed.out, printed.err


def check_refused(capsys, folder: Path, arguments: list[object], *expected: str) -> None:
    """Check that a run is refused in one line, and that nothing was written."""
    before = sorted(folder.rglob("*"))
    code, shown, messages = call(capsys, "run", *arguments, "--quiet")
    assert code == 2 and shown == ""
    assert messages.startswith("error: ") and messages.count("\n") == 1
    for text in expected:
        assert text in messages
    assert sorted(folder.rglob("*")) == before


def read_estimate(out: Path) -> tuple[pd.DataFrame, dict]:
    """Return the edges and the settings that ``gpn-bayes estimate`` wrote."""
    return pd.read_csv(out / "edges.csv"), json.loads((out / "estimate.json").read_text(encoding="utf-8"))

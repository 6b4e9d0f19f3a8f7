"""What the type checker sees."""

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]

PROGRAM = """
from gpn_bayes.kernels.compiled import compiled, fused, inner, inner_fused


def square(x: float) -> float:
    return x * x


print(compiled(square)({argument}))
print(fused(square)({argument}))
print(inner(square)({argument}))
print(inner_fused(square)({argument}))
"""
# Only what is checked is followed: numpy and numba would take a minute to read.
SETTINGS = """
[mypy]
strict = true
follow_imports = skip
[mypy-gpn_bayes.kernels.compiled]
follow_imports = normal
[mypy-gpn_bayes.data.keywords]
follow_imports = normal
"""
OF_TABLES = """
from typing import Unpack

from gpn_bayes.data.keywords import TableKeywords


def taken(**table: Unpack[TableKeywords]) -> None:
    print(table)


taken(weights="n", missing="drop")
taken(wieghts="n")
taken(imputations="five")
"""


def check(folder, program):
    """Return what mypy says of a program that calls compiled functions."""
    (folder / "program.py").write_text(program, encoding="utf-8")
    (folder / "settings.ini").write_text(SETTINGS, encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--no-incremental", "--config-file", "settings.ini", "program.py"]
    environment = os.environ | {"MYPYPATH": str(ROOT)}
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False).stdout


@pytest.mark.more("starts mypy")
def test_calls_of_compiled_functions_are_checked(tmp_path):
    said = check(tmp_path, PROGRAM.format(argument='"two"'))
    assert said.count('incompatible type "str"; expected "float"') == 4, said
    assert check(tmp_path, PROGRAM.format(argument="2.0")).startswith("Success")


def test_keywords_of_tables_are_checked(tmp_path):
    said = check(tmp_path, OF_TABLES)
    assert said.count("error:") == 2, said
    assert 'Unexpected keyword argument "wieghts"' in said and 'has incompatible type "str"' in said


def test_only_generated_code_is_excused_from_strict_checking():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    assert settings["strict"] is True
    loosened = [rule["module"] for rule in settings["overrides"] if rule.keys() - {"module", "ignore_missing_imports"}]
    assert loosened == [["gpn_bayes.wire.federation_pb2"]]
    assert not [key for key, value in settings.items() if value is False]

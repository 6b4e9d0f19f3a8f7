"""A process that may have little memory ends in one line, wherever that was too little."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from gpn_bayes._util.processes import interpreter, package_environment

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="limits of address space are those of Linux"),
    pytest.mark.more("starts processes"),
]


@pytest.mark.parametrize("kilobytes", [350_000, 600_000, 1_000_000])
def test_little_address_space_is_one_line(kilobytes, tmp_path):
    rows = np.random.default_rng(1).normal(size=(50, 3))
    pd.DataFrame(rows, columns=["a", "b", "c"]).to_csv(tmp_path / "rows.csv", index=False)
    command = interpreter("-m", "gpn_bayes.cli", "run", str(tmp_path / "rows.csv"), "--out", str(tmp_path / "out"))
    done = subprocess.run(
        ["/bin/sh", "-c", f'ulimit -v {kilobytes}; exec "$@"', "sh", *command],
        env=package_environment(), capture_output=True, text=True, check=False, timeout=120,
    )  # fmt: skip
    assert done.returncode == 1, (done.returncode, done.stderr)
    assert done.stderr == "error: this needs more memory than the process may have (see ulimit -v)\n"

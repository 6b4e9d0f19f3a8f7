"""Packages that only some users need: what works without them, and what names the extra that installs them."""

import subprocess
import sys

import numpy as np
import pandas as pd
import pytest

from gpn_bayes import scores
from gpn_bayes._util.extras import MissingPackage
from gpn_bayes.data import Dataset
from tests.command_line import call
from tests.running import STRICT_PYTHON

pytestmark = pytest.mark.more("starts processes")

# None in sys.modules is a package that can't be found, also to pandas, which looks for pyarrow when it is loaded.
WITHOUT = """
import sys
for name in ("pyarrow", "nutpie"):
    sys.modules[name] = None
import pandas as pd
import gpn_bayes as gpn
pd.DataFrame({"rain": ["no", "yes"] * 20, "wet": ["no", "yes", "no", "no"] * 10}).to_csv("levels.csv", index=False)
post = gpn.sample("levels.csv", score="bdeu", random_seed=1, progressbar=False)
post.save("levels.nc")
post.report("levels.html")
again = gpn.load("levels.nc")
print(list(again.summary()["parent"]), *gpn.estimators.HillClimbing().fit("levels.csv").graph_.nodes)
"""


def test_text_is_read_sampled_saved_and_reported_without_the_extras(tmp_path):
    ran = subprocess.run([*STRICT_PYTHON, "-c", WITHOUT], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.split("]")[1].split() == ["rain", "wet"]
    assert (tmp_path / "levels.html").stat().st_size > 0


@pytest.fixture
def parquet(tmp_path):
    path = tmp_path / "table.parquet"
    pd.DataFrame({"a": [0.0, 1.0, 2.0], "b": [1.0, 0.0, 5.0]}).to_parquet(path)
    return path


def test_parquet_files_name_their_extra(parquet, tmp_path, capsys, monkeypatch):
    assert Dataset.read(parquet).names == ("a", "b")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    message = 'pyarrow must be installed; use pip install "gpn_bayes[parquet]"'
    with pytest.raises(MissingPackage) as refusal_text:
        Dataset.read(parquet)
    assert str(refusal_text.value) == message
    assert call(capsys, "run", parquet, "--out", tmp_path / "out")[::2] == (2, f"error: {message}\n")


def test_nuts_names_its_extra_before_any_score(monkeypatch):
    table = np.random.default_rng(1).normal(size=(20, 2))
    by_nuts = scores.GP(estimator="bridge", posterior="nuts")
    assert by_nuts.bind(table).names == ("v1", "v2")
    monkeypatch.setitem(sys.modules, "nutpie", None)
    with pytest.raises(MissingPackage) as refusal_text:
        by_nuts.bind(table)
    assert str(refusal_text.value) == 'nutpie must be installed; use pip install "gpn_bayes[nuts]"'
    # Nothing else needs it.
    assert np.isfinite(scores.GP(estimator="bridge").bind(table).local("v1", ["v2"]))

"""Cutting numbers into levels."""

import numpy as np
import pandas as pd
import pytest

from gpn_bayes import simulate
from gpn_bayes.data import Dataset


@pytest.fixture
def frame() -> pd.DataFrame:
    rng = np.random.default_rng(1)
    return pd.DataFrame({"x": rng.normal(size=101), "y": rng.exponential(size=101)}, index=range(7, 108))


def test_the_mean_parts_low_from_high(frame):
    before = frame.copy()
    found = simulate.discretise(frame)
    pd.testing.assert_frame_equal(frame, before)
    assert found.index.equals(frame.index) and list(found) == ["x", "y"]
    for name in frame:
        assert found[name].cat.ordered and found[name].cat.categories.tolist() == ["low", "high"]
        assert ((found[name] == "high") == (frame[name] > frame[name].mean())).all()


def test_a_value_at_the_mean_is_low():
    found = simulate.discretise(pd.DataFrame({"x": [1, 2, 3], "y": [0, 0, 3]}))
    assert found["x"].tolist() == ["low", "low", "high"] and found["y"].tolist() == ["low", "low", "high"]


@pytest.mark.parametrize("rows", [7, 10, 11, 50, 101, 1000])
@pytest.mark.parametrize("levels", [2, 3, 4, 5, 7])
def test_quantiles_have_equal_frequencies(rows, levels):
    values = np.random.default_rng(rows).normal(size=(rows, 2))
    found = simulate.discretise(pd.DataFrame(values, columns=["x", "y"]), "quantile", levels)
    for place, name in enumerate(["x", "y"]):
        counts = found[name].value_counts()
        assert len(counts) == levels and counts.max() - counts.min() <= 1
        # Levels rise with the values.
        assert (np.diff(found[name].cat.codes.to_numpy()[np.argsort(values[:, place])]) >= 0).all()


def test_labels_say_the_order():
    values = np.arange(24.0).reshape(12, 2)
    for levels, expected in ((2, ["low", "high"]), (3, ["low", "middle", "high"]), (4, ["q1", "q2", "q3", "q4"])):
        found = simulate.discretise(values, "quantile", levels)
        assert found["v1"].cat.categories.tolist() == expected and found["v1"].cat.ordered


def test_equal_values_have_equal_levels():
    values = np.repeat([1.0, 2.0, 3.0, 4.0], [1, 5, 5, 1])
    found = simulate.discretise(pd.DataFrame({"x": values, "y": 5 + np.arange(12)}), "quantile", 2)
    assert found.groupby(values, observed=True)["x"].nunique().tolist() == [1, 1, 1, 1]
    assert found["x"].tolist() == ["low"] * 6 + ["high"] * 6


@pytest.mark.parametrize("values", [[0, 0, 0, 1], [0, 1, 1, 1]])
def test_ties_at_either_end_are_treated_alike(values):
    found = simulate.discretise(pd.DataFrame({"x": values, "y": range(4)}), "quantile")
    assert found["x"].tolist() == [["low", "high"][value] for value in values]


def test_what_is_discrete_already_is_left():
    kinds = pd.Categorical(["b", "a", "b", "a"], categories=["b", "a", "never"], ordered=True)
    frame = pd.DataFrame({"kind": kinds, "text": list("xxyy"), "flag": [True, False, False, True], "x": [1, 1, 0, 1]})
    found = simulate.discretise(frame, "quantile")
    pd.testing.assert_series_equal(found["kind"], frame["kind"])
    assert found["text"].tolist() == list("xxyy") and found["text"].cat.categories.tolist() == ["x", "y"]
    assert found["flag"].tolist() == frame["flag"].tolist()
    # Whole numbers are numbers.
    assert found["x"].tolist() == ["high", "high", "low", "high"]
    assert Dataset.read(found).kinds == ("ordered", "categorical", "categorical", "ordered")


def test_files_are_read(frame, tmp_path):
    frame.to_csv(tmp_path / "table.csv", index=False)
    found = simulate.discretise(tmp_path / "table.csv", "quantile", 3)
    pd.testing.assert_frame_equal(found, simulate.discretise(frame.reset_index(drop=True), "quantile", 3))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"method": "kmeans"}, "^method must be one of mean, quantile; received 'kmeans'"),
        ({"levels": 3}, "^the mean cuts a column into 2 levels; received levels = 3: use method='quantile'$"),
        ({"levels": 1}, "^levels must be a whole number, 2 or more; received 1$"),
        ({"levels": 2.0}, "^levels must be a whole number, 2 or more; received 2.0$"),
        ({"levels": True}, "^levels must be a whole number"),
    ],
)
def test_bad_settings_are_refused(given, message, frame):
    with pytest.raises(ValueError, match=message):
        simulate.discretise(frame, **given)


@pytest.mark.parametrize(
    ("values", "levels", "message"),
    [
        ([1.0, 1.0, 1.0, 1.0], 2, "^every column must vary; column 'x' is constant$"),
        ([1.0, np.nan, 2.0, 3.0], 2, "^every value must be present; 1 is missing, in 1 of 4 rows .*'x' in row 1"),
        ([1.0, np.inf, 2.0, 3.0], 2, "^every value must be finite; column 'x' holds an infinite value .row 1.: "),
        ([0, 1, 0, 1], 3, "^each of the 3 levels must hold a row; column 'x' has 2 distinct values$"),
        ([0, 0, 0, 1, 2, 0, 0], 3, "^each of the 3 levels must hold a row; column 'x' has too many equal values$"),
    ],
)
def test_columns_that_cannot_be_cut_are_refused(values, levels, message):
    frame = pd.DataFrame({"x": values, "y": np.arange(len(values))})
    with pytest.raises(ValueError, match=message):
        simulate.discretise(frame, "quantile", levels)

"""Flags: what is odd in a table or in residuals is found, and clean tables raise none."""

import re
import time

import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes import graphs, simulate
from gpn_bayes.data import Dataset, data_flags
from gpn_bayes.scores import GP, BGe
from gpn_bayes.scores.leftover import Grouping, leftover_of_two
from gpn_bayes.scores.residuals import residual_flags

NAMES = ["a", "b", "c", "d", "e"]


def clean(rows: int = 300, seed: int = 1) -> pd.DataFrame:
    dag = simulate.random_dag(5, edges_per_node=1.0, names=NAMES, random_seed=seed)
    return simulate.linear(dag, rows, random_seed=seed)


def flags_of(table, numbers: bool = True, **reading):
    return data_flags(Dataset.read(table, **reading), numbers)


def kinds_of(table, numbers: bool = True, **reading) -> list[tuple[str, tuple[str, ...]]]:
    return [(flag.kind, flag.columns) for flag in flags_of(table, numbers, **reading)]


def replaced(column: str, value: float, rows, table: pd.DataFrame | None = None) -> pd.DataFrame:
    table = clean() if table is None else table.copy()
    table.loc[rows, column] = value
    return table


# Clean tables


@pytest.mark.parametrize(
    ("rows", "columns", "tables"), [(20, 5, 40), (50, 5, 40), (50, 50, 4), (500, 20, 4), (5000, 20, 1)]
)
@pytest.mark.parametrize("kind", ["linear", "fourier", "rounded"])
def test_clean_tables_raise_no_flags(kind, rows, columns, tables):
    rng = np.random.default_rng(rows + columns)
    for _ in range(tables):
        dag = simulate.random_dag(columns, edges_per_node=1.0, random_seed=rng)
        if kind == "fourier":
            table = simulate.fourier(dag, rows, lam=1.0, random_seed=rng)
        else:
            table = simulate.linear(dag, rows, random_seed=rng)
        assert flags_of(table.round(2) if kind == "rounded" else table) == ()


@pytest.mark.parametrize("rows", [60, 300, 2000])
def test_ages_counts_and_rounded_measurements_are_neither_codes_nor_identifiers(rows):
    """Low counts may pass for codes now and then, but no more often than the test of their fit allows."""
    rng = np.random.default_rng(rows)
    codes = 0
    for _ in range(20):
        table = pd.DataFrame(
            {
                "age": rng.integers(18, 95, rows),
                "age of child": rng.integers(1, 18, rows),
                "visits": rng.poisson(1.0, rows),
                "drinks": rng.poisson(3.0, rows),
                "pressure": rng.normal(120, 15, rows).round(),
                "temperature": rng.normal(37, 0.6, rows).round(),
                "grade": rng.normal(3, 0.8, rows).round().clip(1, 6),
                "schooling": rng.choice([8, 10, 12, 16, 18], rows),
                "cells": rng.integers(1000, 10**7, rows),
                "amino acid": rng.permutation(100_000)[:rows],
            }
        )
        found = kinds_of(table)
        codes += sum(kind == "codes" for kind, _ in found)
        assert [kind for kind, _ in found if kind != "codes"] == []
    assert codes <= 2


def test_a_table_of_few_rows_is_not_judged():
    assert flags_of(clean(9).assign(id=range(9))) == ()


def test_a_look_at_a_large_table_is_quick():
    values = np.random.default_rng(1).normal(size=(5000, 100)).round(2)
    values[17] = values[4]
    data = Dataset.read(values)
    start = time.process_time()
    assert [flag.kind for flag in data_flags(data, numbers=True)] == ["same rows"]
    assert time.process_time() - start < 1.0


# Values that stand for missing ones


@pytest.mark.parametrize("value", [-999, 999, -99, 99, -9, 9999, -88])
def test_sentinels(value):
    (flag,) = flags_of(replaced("b", value, [7, 40, 99]))
    assert (flag.kind, flag.columns) == ("sentinel", ("b",))
    assert flag.message.startswith(f"b: {value} in 3 rows (the first is row 8); its other values are ")


def test_sentinels_among_nonnegative_numbers_and_codes():
    age = np.random.default_rng(1).integers(20, 65, 300).astype(float)
    for value in (-1, 99):
        table = clean().assign(age=np.where(np.arange(300) % 50 == 3, value, age))
        assert kinds_of(table) == [("sentinel", ("age",))]
    survey = np.random.default_rng(1).integers(1, 6, 300)
    table = clean().assign(answer=np.where(np.arange(300) % 50 == 3, 9, survey))
    assert kinds_of(table) == [("sentinel", ("answer",)), ("codes", ("answer",))]
    assert "1, 2, 3, 4 and 5, read as amounts" in flags_of(table)[1].message
    wide = clean().assign(b=np.random.default_rng(1).normal(0, 40, 300))
    assert kinds_of(wide) == [] and kinds_of(replaced("b", -9, [7, 40, 99], wide)) == [("sentinel", ("b",))]
    both = replaced("b", 999, [5, 6], replaced("b", -999, [7, 8]))
    assert flags_of(both)[0].message.startswith("b: -999 and 999 in 4 rows (the first is row 6)")


def test_values_that_look_like_sentinels_but_are_near_the_others():
    rng = np.random.default_rng(1)
    near = pd.DataFrame(
        {
            "age": np.r_[np.arange(60, 100), 99, 99, rng.integers(60, 99, 58)],
            "change": rng.integers(-3, 4, 100),
            "points": rng.integers(0, 11, 100),
            "above 1000": np.r_[rng.normal(1000, 30, 98), 999, 999],
        }
    )
    assert kinds_of(near) == []


def test_many_columns_share_a_flag():
    table = clean()
    for column in NAMES:
        table.loc[[3, 4], column] = -999
    (flag,) = [flag for flag in flags_of(table) if flag.kind == "sentinel"]
    assert flag.columns == tuple(NAMES) and "; and 2 more columns. If this means" in flag.message


# Identifiers


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("row", np.arange(300)),
        ("row", np.arange(300)[::-1]),
        ("sample", np.random.default_rng(1).permutation(300) + 1001),
        ("sample", np.sort(np.random.default_rng(1).permutation(320)[:300])),
        ("sample", np.r_[1001:1151, 5001:5151]),
        ("patient_id", np.random.default_rng(1).permutation(10**6)[:300]),
        ("patientId", np.random.default_rng(1).permutation(10**6)[:300]),
    ],
    ids=["rising", "falling", "shuffled", "with gaps", "by site", "named", "named, camel case"],
)
def test_identifiers(name, values):
    """Where a user insists on a column that reading refuses, it is still flagged."""
    (flag,) = flags_of(clean().assign(**{name: values}), kinds={name: "number"})
    assert (flag.kind, flag.columns) == ("identifier", (name,))
    assert f"a different whole number in every row ({values.min()} to {values.max()}" in flag.message


def test_sorted_measurements_and_ranks_are_no_identifiers():
    rng = np.random.default_rng(1)
    assert kinds_of(clean().assign(income=np.sort(rng.normal(40_000, 9_000, 300).round()))) == []
    ranks = clean().rank()
    assert kinds_of(ranks) == []


def test_unique_texts_are_identifiers():
    table = pd.DataFrame(
        {"name": [f"patient {k}" for k in range(100)], "x": ["u", "v"] * 50, "y": ["s", "s", "t", "t"] * 25}
    )
    (flag,) = flags_of(table, numbers=False, kinds={"name": "category"})
    assert flag.message == (
        "name: 100 different texts in 100 rows. A row number or an identifier is not a variable: leave the column out."
    )


# Codes


@pytest.mark.parametrize("shares", [[0.55, 0.2, 0.15, 0.1], [0.25] * 4, [0.1, 0.6, 0.1, 0.2], [0.3, 0.4, 0.3]])
def test_codes_of_categories_read_as_numbers(shares):
    table = clean().assign(ethnicity=np.random.default_rng(1).choice(len(shares), 300, p=shares))
    assert kinds_of(table) == [("codes", ("ethnicity",))]
    assert kinds_of(table.astype({"ethnicity": float})) == [("codes", ("ethnicity",))]
    assert kinds_of(table[["ethnicity"]].assign(x=["u", "v"] * 150, y=["s", "s", "t", "t"] * 75), numbers=False) == []


def test_two_values_get_a_milder_word():
    table = clean().assign(sex=[0, 1, 1] * 100, smoker=[False, True] * 150)
    (flag,) = flags_of(table)
    assert flag.mild and flag.columns == ("sex", "smoker")
    assert flag.message.startswith("sex and smoker: only two values. As a cause this is fine")


# Outliers


def test_outliers():
    table = clean()
    far = float(table["c"].median() + 15 * table["c"].std())
    (flag,) = flags_of(replaced("c", far, [41]))
    assert (flag.kind, flag.columns) == ("outliers", ("c",)) and f"c: {far:.4g} in row 42, " in flag.message
    (flag,) = flags_of(clean().assign(skewed=np.random.default_rng(1).lognormal(0, 1.2, 300)))
    assert flag.kind == "outliers" and "logarithms" in flag.message
    two_clusters = np.where(np.arange(300) % 3 == 0, 50.0, 0.0) + np.random.default_rng(1).normal(size=300)
    assert kinds_of(clean().assign(cluster=two_clusters)) == []


@pytest.mark.more("compiles and integrates Gaussian processes of every kind")
def test_slow_scores_of_long_tails_are_announced():
    table = clean(rows=300)[["a", "b"]].assign(skewed=np.random.default_rng(1).lognormal(0, 2, 300))
    settings = {"draws": 20, "progressbar": False, "random_seed": 1}
    with pytest.warns(UserWarning, match="^columns with long tails .*; consider logarithms of skewed$"):
        gpn.sample(table, score=GP(estimator="laplace"), **settings)
    # Nothing is said, and warnings are errors here, of closed forms and of single outliers.
    gpn.sample(table, score="bge", **settings)
    gpn.sample(replaced("c", 12.0, [41])[["a", "b", "c"]], score=GP(estimator="laplace"), **settings)


def test_an_outlier_behind_sentinels_is_told_by_its_own_row():
    table = replaced("c", -999, [0, 1])
    table.loc[100, "c"] = 80.0
    assert [flag.kind for flag in flags_of(table)] == ["sentinel", "outliers"]
    assert "c: 80 in row 101, " in flags_of(table)[1].message


# Copies


def test_copied_rows():
    table = clean()
    table.loc[57] = table.loc[11]
    (flag,) = flags_of(table)
    assert flag.message.startswith("1 row repeats another in every column (row 58 repeats row 12). ")
    # An identifier doesn't hide them.
    assert [kind for kind, _ in kinds_of(table.assign(id=range(300)), kinds={"id": "number"})] == [
        "identifier",
        "same rows",
    ]
    assert "30 rows repeat others" in flags_of(pd.concat([clean(), clean().head(30)]))[0].message


def test_rows_that_few_values_make_equal_are_no_copies():
    rng = np.random.default_rng(1)
    coarse = pd.DataFrame(rng.integers(0, 30, (500, 3)), columns=list("abc")).astype(float)
    assert coarse.duplicated().sum() > 0 and kinds_of(coarse) == []
    rare = pd.DataFrame((rng.random((500, 5)) < 0.01).astype(int), columns=NAMES).astype(str)
    assert rare.duplicated().sum() > 400 and kinds_of(rare, numbers=False) == []
    network = simulate.discrete(simulate.random_dag(8, edges_per_node=1.5, random_seed=1), 400, random_seed=1)
    assert network.duplicated().sum() > 50 and kinds_of(network, numbers=False) == []


def test_copied_rows_of_categories():
    network = simulate.discrete(simulate.random_dag(25, p=0.0, random_seed=1), 200, levels=4, random_seed=1)
    assert kinds_of(network, numbers=False) == []
    doubled = pd.concat([network, network.head(20)], ignore_index=True)
    assert [kind for kind, _ in kinds_of(doubled, numbers=False)] == ["same rows"]


def test_columns_that_say_the_same():
    table = clean()
    table["twice"], table["near"] = -2 * table["a"] + 3, table["b"] + 1e-4 * table["c"]
    assert kinds_of(table) == [("same columns", ("a", "twice")), ("same columns", ("b", "near"))]
    assert "a and twice: a correlation of 1. " in flags_of(table)[0].message
    words = pd.DataFrame({"x": ["u", "v", "w"] * 40, "y": ["1", "3", "2"] * 40, "z": ["s", "t"] * 60})
    assert kinds_of(words, numbers=False)[0] == ("same columns", ("x", "y"))


# Residuals


def residual_kinds(table, dag, score=None):
    data = Dataset.read(table)
    adjacency = graphs.as_adjacency(dag, data.names)
    parents = [tuple(np.flatnonzero(column).tolist()) for column in adjacency.T]
    scorer = (BGe() if score is None else score).bind(data)
    return [(flag.kind, flag.columns) for flag in residual_flags(scorer, data, parents, data_flags(data, True))]


@pytest.mark.parametrize(("rows", "columns", "tables"), [(50, 5, 40), (50, 50, 4), (500, 20, 4), (5000, 20, 1)])
def test_residuals_of_clean_tables_raise_no_flags(rows, columns, tables):
    rng = np.random.default_rng(rows + columns)
    for _ in range(tables):
        dag = simulate.random_dag(columns, edges_per_node=1.0, random_seed=rng)
        assert residual_kinds(simulate.linear(dag, rows, random_seed=rng), dag) == []


@pytest.mark.more("compiles and integrates Gaussian processes of every kind")
def test_residuals_of_curved_relations_are_those_of_the_processes():
    """A straight line doesn't explain them, and its residuals show; those of Gaussian processes are clean."""
    rng = np.random.default_rng(2)
    x = rng.normal(size=400)
    table = pd.DataFrame({"x": x, "y": np.exp(0.6 * x) + 0.2 * rng.normal(size=400)})
    score = GP(estimator="laplace")
    assert residual_kinds(table, [("x", "y")], score) == []
    assert residual_kinds(table, [("x", "y")]) == [("leftover dependence", ("y",))]
    data = Dataset.read(table)
    left = score.bind(data).residuals(data, 1, (0,))
    assert 0.15 < left.std() < 0.25 and np.corrcoef(left, table["y"] - np.exp(0.6 * x))[0, 1] > 0.95
    pairs = GP(kernel="interaction", estimator="laplace").bind(data).residuals(data, 1, (0,))
    assert np.corrcoef(left, pairs)[0, 1] > 0.95


@pytest.mark.parametrize("score", [BGe(), gpn.scores.BIC(), GP(estimator="laplace")], ids=["bge", "bic", "gp"])
def test_heavy_tails(score):
    rng = np.random.default_rng(1)
    x = rng.normal(size=600)
    table = pd.DataFrame({"x": x, "y": x + 0.5 * rng.laplace(size=600)})
    assert residual_kinds(table, [("x", "y")], score) == [("heavy tails", ("y",))]


def test_uneven_noise():
    rng = np.random.default_rng(1)
    x = rng.normal(size=400)
    table = pd.DataFrame({"x": x, "y": 2 * x + np.exp(0.5 * x) * rng.normal(size=400)})
    data = Dataset.read(table)
    (flag,) = residual_flags(BGe().bind(data), data, [(), (0,)])
    assert flag.kind == "uneven noise" and flag.message.startswith("y: residuals ") and "is high. " in flag.message
    data = Dataset.read(table.assign(y=-table["y"]))
    assert "is low. " in residual_flags(BGe().bind(data), data, [(), (0,)])[0].message


def test_heavy_tails_are_not_taken_for_uneven_noise():
    rng = np.random.default_rng(1)
    found = []
    for _ in range(40):
        x = rng.normal(size=300)
        table = pd.DataFrame({"x": x, "y": x + rng.standard_t(3, size=300)})
        found += [kind for kind, _ in residual_kinds(table, [("x", "y")])]
    assert found.count("uneven noise") <= 1 and found.count("heavy tails") > 20


def test_dependence_that_lines_leave_is_told_with_what_to_try():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(300, 2))
    table = pd.DataFrame({"x": x[:, 0], "other": x[:, 1], "y": x[:, 0] ** 2 + rng.normal(size=300)})
    data = Dataset.read(table)
    # No line is steep enough for an edge: what isn't explained depends on x all the same.
    (flag,) = residual_flags(BGe().bind(data), data, [(), (), ()])
    assert flag.kind == "leftover dependence" and flag.columns == ("y",)
    assert re.match(r"y: x explains \d\d% of the variance that its parents leave\. ", flag.message)
    assert flag.message.endswith("try score='gp'.")
    assert residual_flags(GP(estimator="laplace").bind(data), data, [(), (), (0,)]) == ()
    # It may depend on an effect.
    turned = residual_flags(BGe().bind(data), data, [(2,), (), ()])
    assert "leftover dependence" not in [flag.kind for flag in turned]


def test_an_edge_that_is_missing_is_not_taken_for_a_curve():
    data = Dataset.read(simulate.linear([[0, 1], [0, 0]], 300, random_seed=1))
    (flag,) = residual_flags(BGe().bind(data), data, [(), ()])
    assert flag.columns == ("v1", "v2") and "allow more parents, or more candidates" in flag.message
    assert residual_flags(BGe().bind(data), data, [(), (0,)]) == ()


@pytest.mark.more("compiles and integrates Gaussian processes of every kind")
def test_parents_that_act_together_are_told_with_what_to_try():
    rng = np.random.default_rng(4)
    x = rng.normal(size=(400, 2))
    table = pd.DataFrame({"a": x[:, 0], "b": x[:, 1], "y": x[:, 0] * x[:, 1] + 0.3 * rng.normal(size=400)})
    data, parents = Dataset.read(table), [(), (), (0, 1)]
    for score in (BGe(), GP(estimator="laplace")):
        (flag,) = residual_flags(score.bind(data), data, parents)
        assert flag.kind == "leftover dependence" and "a and b together explain " in flag.message
        assert flag.message.endswith(
            "score=gpn.scores.GP(kernel='interaction'), in Python, which takes less than a CPU minute on this table."
        )
    both = GP(kernel="interaction", estimator="laplace").bind(data)
    assert residual_flags(both, data, parents) == ()


def test_of_pairs_of_parents_that_act_together_the_strongest_is_told():
    rng = np.random.default_rng(6)
    a, b, c = rng.normal(size=(3, 500))
    y = 0.6 * a * b + 1.2 * a * c + 0.6 * b * c + 0.3 * rng.normal(size=500)
    grouping = Grouping.of(np.column_stack([a, b, c]))
    pairs = [leftover_of_two(y - y.mean(), grouping, own) for own in [(0, 1), (0, 2), (1, 2)]]
    assert [pair.variables for pair in pairs] == [(0, 1), (0, 2), (1, 2)]
    assert leftover_of_two(y - y.mean(), grouping, (0, 1, 2)) == pairs[1]
    assert pairs[1].share > 2 * max(pairs[0].share, pairs[2].share)


def test_heavy_tails_and_uneven_noise_are_not_taken_for_leftover_dependence():
    rng = np.random.default_rng(5)
    for _ in range(40):
        x = rng.normal(size=(300, 3))
        noise = rng.standard_t(3, 300) * np.exp(0.5 * x[:, 1])
        table = pd.DataFrame(np.column_stack([x, x[:, 0] + noise]), columns=list("abcy"))
        assert "leftover dependence" not in [kind for kind, _ in residual_kinds(table, [("a", "y")])]


def test_columns_with_flags_of_their_own_have_no_residuals_to_judge():
    table = pd.DataFrame(np.random.default_rng(1).normal(size=(300, 5)), columns=NAMES)
    table["d"] += table["c"]
    assert residual_kinds(replaced("c", -999, [3, 4], table), [("c", "d")]) == []


def test_scores_without_noise_have_no_residuals():
    network = simulate.discrete([[0, 1], [0, 0]], 100, random_seed=1)
    data = Dataset.read(network)
    assert residual_flags(gpn.scores.BDeu().bind(data), data, [(), (0,)]) == ()


def test_residuals_that_vanish_where_the_fitted_value_is_high_are_described():
    """Columns on which all rows without an event end at the same time have no residuals there at all."""
    rng = np.random.default_rng(1)
    arrest = (rng.random(400) < 0.3).astype(int)
    weeks = np.where(arrest == 1, rng.integers(1, 52, 400), 52).astype(float)
    data = Dataset.read(pd.DataFrame({"arrest": arrest, "weeks": weeks}))
    for score in (gpn.scores.CG(), BGe()):
        (flag,) = residual_flags(score.bind(data), data, [(), (0,)])
        assert flag.message.startswith("weeks: hardly any residuals but where the fitted value is low. ")


# No check loses a run


def test_a_check_that_fails_becomes_a_flag_and_the_run_is_kept(monkeypatch):
    def fail(*_):
        raise ZeroDivisionError("float division\nby zero")

    monkeypatch.setattr("gpn_bayes.sampling.result.residual_flags", fail)
    monkeypatch.setattr("gpn_bayes.data.flags._outlier_flag", fail)
    post = gpn.sample(replaced("b", -999, [7, 40, 99]), draws=20, progressbar=False, random_seed=1)
    sentinel, *failed = post.diagnostics().data_flags
    assert sentinel.kind == "sentinel" and [flag.kind for flag in failed] == ["failed check"] * 2
    assert [flag.message.split(". ")[0] for flag in failed] == [
        "the check of outliers failed: ZeroDivisionError: float division by zero",
        "the check of residuals failed: ZeroDivisionError: float division by zero",
    ]
    assert post.diagnostics().data_verdict == "flagged"
    # Not even what comes before all checks.
    monkeypatch.setattr("gpn_bayes.data.flags._identifiers", fail)
    post = gpn.sample(clean(), draws=20, progressbar=False, random_seed=1)
    assert [flag.message.split(" failed")[0] for flag in post.diagnostics().data_flags] == [
        "the check of the table",
        "the check of residuals",
    ]


# Rows that depend on each other


def dependence(table, **reading) -> list[tuple[str, tuple[str, ...]]]:
    of_rows = {"dependent rows", "sorted rows", "groups"}
    return [found for found in kinds_of(table, **reading) if found[0] in of_rows]


def measured(rows: int, rng: np.random.Generator) -> pd.DataFrame:
    """Return columns of many shapes and dependences, in independent rows."""
    x = rng.normal(size=(rows, 3))
    return pd.DataFrame(
        {
            "a": x[:, 0],
            "b": x[:, 1],
            "like a": x[:, 0] + 0.2 * x[:, 2],
            "skewed": np.exp(x[:, 0]),
            "rare": (rng.permutation(rows) < 1 + rows // 20).astype(float),
            "often": (x[:, 1] + x[:, 2] > 0).astype(float),
            "counts": rng.poisson(2, rows),
        }
    )


@pytest.mark.parametrize(
    "rows",
    [
        100,
        pytest.param(30, marks=pytest.mark.more("statistics that take long")),
        pytest.param(300, marks=pytest.mark.more("statistics that take long")),
    ],
)
def test_independent_rows_are_not_taken_for_dependent_ones(rows):
    """The threshold lets chance through in about one of 1,000 tables; and rows may be sorted."""
    rng = np.random.default_rng(rows)
    for _ in range(60):
        table = measured(rows, rng)
        assert dependence(table) == []
    for by in (["a"], ["often"], ["often", "a"], ["counts", "a"]):
        for _ in range(10):
            found = dependence(measured(300, rng).sort_values(by))
            assert {kind for kind, _ in found} <= {"sorted rows"}
            assert all(names[0] in (*by, "like a", "skewed") for _, names in found)


@pytest.mark.parametrize("rows", [50, 200])
def test_random_walks_are_dependent_rows(rows):
    rng = np.random.default_rng(rows)
    for _ in range(20):
        table = pd.DataFrame(rng.normal(size=(rows, 5)).cumsum(axis=0), columns=NAMES)
        assert [kind for kind, _ in dependence(table)] == ["dependent rows"]
        assert dependence(with_gaps(table), missing="impute")[0][0] == "dependent rows"
        assert dependence(table.sample(frac=1.0, random_state=1)) == []
        assert dependence(table.diff().dropna()) == []
        # A column that says when they were made changes nothing.
        assert dependence(table.assign(year=1900 + np.arange(rows) // 4))[0][0] == "dependent rows"
    (flag,) = [flag for flag in flags_of(table) if flag.kind == "dependent rows"]
    assert re.match(r"Rows are like the next in 5 columns \(correlations of 0.9\d in ", flag.message)
    assert f"{rows} such rows say as much as about " in flag.message and "df.diff()" in flag.message


def test_dependent_rows_are_worth_as_many_independent_ones_as_correlations_take():
    """A correlation of two columns, each like its next row by r, has the variance of n (1 - r^2) / (1 + r^2) rows."""
    rng = np.random.default_rng(3)
    table = rng.normal(size=(2000, 4))
    for row in range(1, 2000):
        table[row] += 0.7 * table[row - 1]
    (flag,) = [flag for flag in flags_of(pd.DataFrame(table, columns=list("abcd"))) if flag.kind == "dependent rows"]
    worth = int(re.search(r"say as much as about (\d+) independent ones", flag.message)[1])
    assert worth == pytest.approx(2000 * (1 - 0.49) / (1 + 0.49), rel=0.15)


def test_a_sorted_table_is_called_that():
    table = clean().assign(also=lambda t: t["a"] + 0.3 * np.random.default_rng(1).normal(size=300)).sort_values("a")
    (flag,) = flags_of(table)
    assert flag.kind == "sorted rows" and flag.columns == ("a",) and flag.mild
    assert "a: rows are sorted by it, " in flag.message and "does no harm" in flag.message


def test_repeated_identifiers_of_groups():
    rng = np.random.default_rng(1)
    subjects = rng.normal(size=(60, 3))
    table = pd.DataFrame(np.repeat(subjects, 5, axis=0) + rng.normal(size=(300, 3)), columns=list("abc"))
    numbers = np.repeat(rng.permutation(9000)[:60], 5)
    for nr in (numbers, np.sort(numbers)):
        assert dependence(table.assign(nr=nr)) == [("groups", ("nr",))]
    assert dependence(table.assign(nr=np.char.add("s", numbers.astype(str)))) == [("groups", ("nr",))]
    assert dependence(table.assign(nr=np.tile(np.arange(60), 5)).iloc[::-1]) == [("groups", ("nr",))]
    # In any order, and of any size, by their name.
    shuffled = table.assign(**{"patient id": np.sort(rng.integers(0, 80, 300))}).sample(frac=1.0, random_state=1)
    assert dependence(shuffled) == [("groups", ("patient id",))]
    (flag,) = [flag for flag in flags_of(table.assign(nr=numbers)) if flag.kind == "groups"]
    assert flag.message.startswith("nr: 60 whole numbers in blocks of 5 rows. ")
    assert flag.message.endswith("(df.groupby('nr').mean()).")
    # Without it, neighbours are alike all the same.
    assert [kind for kind, _ in dependence(table)] == ["dependent rows"]


def test_ages_and_years_are_no_identifiers_of_groups():
    rng = np.random.default_rng(1)
    table = clean().assign(age=np.sort(rng.integers(20, 60, 300)), year=np.repeat(np.arange(1950, 2010), 5))
    assert dependence(table) == [] and dependence(table.assign(day=np.tile(np.arange(60), 5))) == []


# Columns that follow from others


def test_near_copies_in_measurements():
    """What differs in half a percent of the variance can't be told apart; what differs in two percent can."""
    rng = np.random.default_rng(1)
    x, noise = rng.normal(size=(2, 500))
    near = pd.DataFrame({"x": x, "near": x + 0.055 * noise, "far": x + 0.15 * noise, "z": rng.normal(size=500)})
    assert kinds_of(near[["x", "near", "z"]]) == [("same columns", ("x", "near"))]
    assert "x and near: a correlation of 0.99" in flags_of(near[["x", "near", "z"]])[0].message
    assert kinds_of(near[["x", "far", "z"]]) == []


def test_many_groups_of_near_copies_share_a_flag():
    table = clean()
    (flag,) = flags_of(table.assign(**{f"{name} again": 2 * table[name] for name in NAMES[:4]}))
    assert flag.columns[:2] == ("a", "a again") and "; and 1 more such groups. " in flag.message


def test_sums_of_columns():
    rng = np.random.default_rng(1)
    parts = pd.DataFrame(rng.lognormal(size=(200, 4)).round(3), columns=list("abcd"))
    rest = pd.DataFrame(rng.normal(size=(200, 2)), columns=["y", "z"])

    def sums(table, **reading):
        return [flag for flag in flags_of(table, **reading) if flag.kind == "sums"]

    (flag,) = sums(rest.join(parts).assign(total=parts.sum(axis=1)))
    assert flag.columns == ("a", "b", "c", "d", "total")
    assert flag.message.startswith("total = a + b + c + d. Each of these columns follows from the others")
    (flag,) = sums(pd.DataFrame({"total": parts.sum(axis=1)}).join(parts).join(rest))
    assert flag.message.startswith("d = total - a - b - c. ")
    shares = parts.div(parts.sum(axis=1), axis=0)
    (flag,) = sums(shares.join(rest))
    assert flag.message.startswith("d = 1 - a - b - c. ")
    # Rounded to thousandths, and with gaps.
    assert sums(shares.round(3).join(rest))[0].columns == tuple("abcd")
    assert sums(with_gaps(shares.join(rest)), missing="impute")[0].columns == tuple("abcd")
    weighted = rest.join(parts).assign(index=parts @ [0.5, 2.0, 0.0, 0.0] + 3)
    assert sums(weighted)[0].message.startswith("index is a weighted sum of a and b. ")
    # With noise of 3 % of the standard deviation it is a relation like any other.
    noise = 0.03 * parts.sum(axis=1).std() * rng.normal(size=200)
    assert sums(rest.join(parts).assign(total=parts.sum(axis=1) + noise)) == []
    assert sums(rest.join(parts).assign(total=parts.sum(axis=1)).head(25)) == []


def test_categories_cut_from_a_number():
    rng = np.random.default_rng(1)
    table = clean().assign(bwt=rng.normal(3000, 500, 300).round())
    cut = table.assign(low=(table["bwt"] < 2500).astype(int))
    (flag, mild) = flags_of(cut)
    assert (flag.kind, flag.columns) == ("cut columns", ("low", "bwt")) and mild.kind == "binary"
    assert re.match(r"low: 1 where bwt is \d+ to 24\d\d, and 0 where it is 25\d\d to \d+\. ", flag.message)
    texts = table.assign(
        low=pd.cut(table["bwt"], [0, 2500, 3500, 9999], labels=["small", "usual", "large"]).astype(str)
    )
    assert kinds_of(texts) == [("cut columns", ("low", "bwt"))]
    # But for one row, and where a single row is enough.
    cut.loc[int(cut["bwt"].argmax()), "low"] = 1
    assert "cut columns" not in [kind for kind, _ in kinds_of(cut)]
    assert kinds_of(table.assign(low=(table["bwt"] == table["bwt"].min()).astype(int)))[0][0] == "binary"


# Values that are too frequent, and times to an event


def test_spikes():
    rng = np.random.default_rng(1)
    earned = np.where(rng.random(300) < 0.3, 0.0, rng.lognormal(8, 1, 300))
    (flag,) = flags_of(clean().assign(earned=earned))
    assert flag.kind == "spike" and flag.message.startswith(f"earned: 0 in {(earned == 0).sum()} of its rows. ")
    assert kinds_of(clean().assign(visits=rng.poisson(0.8, 300) * (rng.random(300) < 0.7))) == []
    assert kinds_of(clean().assign(rounded=rng.normal(0, 1, 300).round(1))) == []


def test_times_to_an_event():
    rng = np.random.default_rng(1)
    ends = rng.exponential(60, 300).round()
    table = clean().assign(week=np.minimum(ends, 52) + 1, arrest=(ends < 52).astype(int))
    (flag,) = flags_of(table)
    assert (flag.kind, flag.columns) == ("time to event", ("week", "arrest"))
    assert "(arrest is 0 only where week is 53, its largest value)" in flag.message
    # By names, where rows are followed for different times.
    left = rng.exponential(60, 300)
    followed = np.minimum(ends, left).round() + 1
    for duration, status in (("time", "status"), ("futime", "death"), ("days_to_event", "event"), ("Time", "Status")):
        assert kinds_of(clean().assign(**{duration: followed, status: (ends < left) + 0}))[0] == (
            "time to event", (duration, status),
        )  # fmt: skip
    for duration, status in (("years of school", "marital status"), ("week", "smoker"), ("age", "death")):
        assert "time to event" not in [
            kind for kind, _ in kinds_of(clean().assign(**{duration: followed, status: (ends < left) + 0}))
        ]


# Noise under conditional Gaussian scores


def test_skew_and_tails_under_cg_are_flagged_with_what_it_does():
    rng = np.random.default_rng(1)
    drug = rng.choice(["a", "b"], 400)
    skewed = np.where(drug == "a", 1.0, 0.0) + rng.exponential(size=400)
    tails = rng.standard_t(3, 400)
    table = pd.DataFrame({"drug": drug, "skewed": skewed, "tails": tails, "fine": rng.normal(size=400)})
    data = Dataset.read(table)
    flags = residual_flags(gpn.scores.CG().bind(data), data, [(), (0,), (0,), (0,)], data_flags(data, True))
    (flag,) = [flag for flag in flags if flag.kind == "heavy tails"]
    assert flag.columns == ("skewed", "tails") and "skewed: skewness " in flag.message
    assert "'cg' counts such differences the less" in flag.message and "logarithms" in flag.message
    (flag,) = residual_flags(gpn.scores.BIC().bind(data), data, [(), (0,), (0,), ()], data_flags(data, True))
    assert "or use score='cg', which takes tails into account." in flag.message
    # Values far out are flagged already; what the score does with them is not.
    far = Dataset.read(table.assign(tails=rng.lognormal(0, 1.2, 400)))
    known = data_flags(far, True)
    assert [flag.kind for flag in known] == ["outliers"]
    (flag,) = residual_flags(gpn.scores.CG().bind(far), far, [(), (0,), (0,), ()], known)
    assert flag.columns == ("skewed", "tails") and flag.kind == "heavy tails"


def test_normal_noise_of_unequal_variances_under_cg_raises_no_flags():
    rng = np.random.default_rng(2)
    for _ in range(40):
        drug = rng.choice(["a", "b", "c"], 300)
        y = np.where(drug == "a", 3.0, 1.0) * rng.normal(size=300)
        data = Dataset.read(pd.DataFrame({"drug": drug, "y": y, "z": y + rng.normal(size=300)}))
        assert residual_flags(gpn.scores.CG().bind(data), data, [(), (0,), (1,)], data_flags(data, True)) == ()


# Missing values


def with_gaps(table: pd.DataFrame, share: float = 0.1) -> pd.DataFrame:
    """Return a table with values missing, but for the first rows."""
    gaps = np.random.default_rng(5).random(table.shape) < share
    gaps[:30] = False
    return table.astype(float).mask(gaps)


def test_what_was_observed_is_checked():
    rng = np.random.default_rng(1)
    table = replaced("b", -999, [7, 20, 29]).assign(race=rng.integers(1, 4, 300))
    table["a again"] = 2 * table["a"]
    table.loc[25] = table.loc[12]
    table.loc[9, "c"] = 80.0
    expected = [
        ("sentinel", ("b",)), ("codes", ("race",)), ("outliers", ("c",)), ("same rows", ()),
        ("same columns", ("a", "a again")),
    ]  # fmt: skip
    assert kinds_of(table) == expected
    gaps = with_gaps(table)
    gaps.iloc[:3, :] = np.nan
    gaps.iloc[3, 1:] = np.nan
    assert kinds_of(gaps, missing="impute") == expected
    # Rows are counted in the table, whatever is missing above.
    messages = [flag.message for flag in flags_of(gaps, missing="impute")]
    assert "(the first is row 8)" in messages[0] and "c: 80 in row 10, " in messages[2] and "row 26" in messages[3]
    assert kinds_of(with_gaps(clean()), missing="impute") == []


def test_categories_that_say_the_same_where_both_are_observed():
    words = pd.DataFrame({"x": ["u", "v", "w"] * 40, "y": ["1", "3", "2"] * 40, "z": ["s", "t", "t", "s"] * 30})
    gaps = np.random.default_rng(1).random(words.shape) < 0.2
    found = kinds_of(words.mask(gaps), numbers=False, missing="impute")
    assert ("same columns", ("x", "y")) in found and len(found) == 1


@pytest.mark.parametrize(
    "score",
    [
        "bge",
        pytest.param(
            GP(estimator="laplace"),
            id="gp",
            marks=pytest.mark.more("compiles and integrates Gaussian processes of every kind"),
        ),
    ],
)
def test_runs_that_impute_are_checked_too(score):
    rng = np.random.default_rng(1)
    x = rng.normal(size=300)
    table = with_gaps(pd.DataFrame({"x": x, "y": 2 * x + rng.standard_t(2.5, size=300)}))
    table.loc[[40, 50], "x"] = -999
    settings = {"draws": 20, "tune": 20, "chains": 2, "progressbar": False, "random_seed": 1, "missing": "impute"}
    found = gpn.sample(table, score, imputations=2, **settings).diagnostics()
    assert [flag.kind for flag in found.data_flags][0] == "sentinel" and found.data_verdict == "flagged"
    table.loc[[40, 50], "x"] = 0.0
    found = gpn.sample(table, score, imputations=2, **settings).diagnostics()
    assert ("heavy tails", ("y",)) in [(flag.kind, flag.columns) for flag in found.data_flags]
    assert found.unexamined == ""

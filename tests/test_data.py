"""Tables in, checked data sets out; and what is said of tables that can't be used."""

import zipfile

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from gpn_bayes import Dataset, SufficientStatistics
from gpn_bayes._util.checks import MAX_VARIABLES
from gpn_bayes.data import MAX_INTEGER_LEVELS, read_data
from gpn_bayes.scores import BGe


@pytest.fixture
def frame():
    rng = np.random.default_rng(7)
    return pd.DataFrame(
        {
            "dose": rng.normal(size=12),
            "count": np.arange(12) % 4,
            "treated": np.arange(12) % 2 == 0,
            "grade": pd.Categorical(["low", "high", "low"] * 4, categories=["low", "mid", "high"]),
            "site": ["b", "a", "c", "a"] * 3,
        }
    )


def write(tmp_path, text, name="table.csv", encoding="utf-8"):
    path = tmp_path / name
    path.write_bytes(text.encode(encoding))
    return path


# What is read


def test_kinds_levels_and_codes(frame):
    data = Dataset.read(frame)
    assert data.names == ("dose", "count", "treated", "grade", "site")
    assert data.kinds == ("continuous", "integer", "integer", "categorical", "categorical")
    assert data.levels == (None, (0, 1, 2, 3), (False, True), ("low", "mid", "high"), ("a", "b", "c"))
    assert data.n_rows == 12
    np.testing.assert_array_equal(data.values[:, 0], frame["dose"])
    np.testing.assert_array_equal(data.values[:, 1], frame["count"])
    np.testing.assert_array_equal(data.values[:3, 2], [1, 0, 1])
    np.testing.assert_array_equal(data.values[:3, 3], [0, 2, 0])
    np.testing.assert_array_equal(data.values[:4, 4], [1, 0, 2, 0])


def test_integers_with_many_values_have_no_levels():
    few, many = np.arange(MAX_INTEGER_LEVELS), 10 + np.arange(MAX_INTEGER_LEVELS + 1)
    data = Dataset.read(pd.DataFrame({"few": np.append(few, 0), "many": many}))
    assert data.kinds == ("integer", "integer")
    assert len(data.levels[0]) == MAX_INTEGER_LEVELS
    assert data.levels[1] is None


def test_nullable_and_narrow_types_without_missing_values():
    data = Dataset.read(
        pd.DataFrame(
            {
                "whole": pd.array([1, 2, 1], dtype="Int64"),
                "truth": pd.array([True, False, True], dtype="boolean"),
                "text": pd.array(["x", "y", "x"], dtype="string"),
                "float": np.array([1, 2, 4.5], dtype=np.float32),
                "byte": np.array([1, 4, 2], dtype=np.uint8),
            }
        )
    )
    assert data.kinds == ("integer", "integer", "categorical", "continuous", "integer")
    assert data.values.dtype == np.float64


def test_arrays_are_named_and_statistics_pass_through(frame):
    values = np.random.default_rng(1).normal(size=(5, 3))
    data = Dataset.read(values)
    assert data.names == ("v1", "v2", "v3")
    np.testing.assert_array_equal(data.values, values)
    assert Dataset.read(data) is data
    statistics = SufficientStatistics.of(data)
    assert read_data(statistics) is statistics
    assert read_data(frame).fingerprint == Dataset.read(frame).fingerprint


def test_other_names_than_strings_become_strings():
    assert Dataset.read(pd.DataFrame({1: [1.0, 2.0], ("a", 2): [2.0, 1.0]})).names == ("1", "('a', 2)")


def test_parquet_reads_as_the_frame_and_csv_as_the_values(frame, tmp_path):
    frame.to_parquet(tmp_path / "table.parquet")
    read = Dataset.read(tmp_path / "table.parquet")
    assert read.fingerprint == Dataset.read(frame).fingerprint
    frame.to_csv(tmp_path / "table.csv", index=False)
    read = Dataset.read(str(tmp_path / "table.csv"))
    assert read.names == Dataset.read(frame).names
    assert read.kinds == ("continuous", "integer", "integer", "categorical", "categorical")
    assert read.levels[3] == ("high", "low")  # a CSV doesn't tell the order of levels, nor the unused one
    np.testing.assert_allclose(read.values[:, :3], Dataset.read(frame).values[:, :3], rtol=1e-15)


def test_byte_order_mark_and_spaces_in_a_csv(tmp_path):
    plain = Dataset.read(write(tmp_path, "erk,akt\n1.5,2\n2.5,7\n"))
    odd = Dataset.read(write(tmp_path, " erk , akt\r\n 1.5 , 2\r\n2.5,7\r\n", "odd.csv", "utf-8-sig"))
    assert odd.names == ("erk", "akt")
    assert odd.fingerprint == plain.fingerprint


def test_commas_at_the_end_of_rows_are_no_fields(tmp_path):
    plain = Dataset.read(write(tmp_path, "erk,akt\n1.5,2\n2.5,7\n"))
    assert Dataset.read(write(tmp_path, "erk,akt\n1.5,2,\n2.5,7,\n")).fingerprint == plain.fingerprint


def test_quoted_names_keep_their_commas(tmp_path):
    assert Dataset.read(write(tmp_path, '"akt, total", "pkcα"\n1,2\n2,1\n')).names == ("akt, total", "pkcα")


def test_none_is_a_level_and_other_words_for_missing_are_not(tmp_path):
    data = Dataset.read(write(tmp_path, "pain,dose\nNone,low\nsevere,high\nNone,low\n"))
    assert data.levels == (("None", "severe"), ("high", "low"))
    for missing in ("", "NA", "NaN", "nan", "N/A", "n/a", "null", "NULL", "#N/A", "<NA>"):
        path = write(tmp_path, f"pain,dose\nmild,low\nsevere,high\n{missing},low\n")
        with pytest.raises(ValueError, match="^every value must be present; 1 is missing, .*'pain' in line 4"):
            Dataset.read(path)


def test_input_is_not_modified_and_not_shared(frame):
    before = frame.copy(deep=True)
    data = Dataset.read(frame)
    fingerprint, values = data.fingerprint, data.values.copy()
    pd.testing.assert_frame_equal(frame, before)
    frame.loc[0, "dose"] = 99.0
    np.testing.assert_array_equal(data.values, values)
    assert data.fingerprint == fingerprint
    with pytest.raises(ValueError, match="read-only"):
        data.values[0, 0] = 1.0
    array = np.random.default_rng(2).normal(size=(6, 2))
    kept = array.copy()
    read = Dataset.read(array)
    np.testing.assert_array_equal(array, kept)
    array[0, 0] = 99.0
    np.testing.assert_array_equal(read.values, kept)


def test_standardised_and_numeric():
    values = np.random.default_rng(3).normal(3, 5, size=(20, 2))
    standardised = Dataset.read(values).standardised("a test")
    np.testing.assert_allclose(standardised.mean(axis=0), 0, atol=1e-15)
    np.testing.assert_allclose(standardised.std(axis=0, ddof=1), 1)
    text = Dataset.read(pd.DataFrame({"x": [1.0, 2.0], "site": ["b", "a"]}))
    with pytest.raises(ValueError, match="^a test needs numbers; column 'site' holds text such as 'a'$"):
        text.standardised("a test")


# Fingerprints


def test_fingerprints_stay_what_they_were(frame, tmp_path):
    """Caches, folders of runs and saved posteriors know their tables by these."""
    assert Dataset.read(frame).fingerprint == "2663ae64f9d45d20076fec48ba620657"
    path = write(tmp_path, "a,b,c,d\n1,x,True,0.1\n2,y,False,1e-7\n2,x,True,123.456789012345678\n")
    assert Dataset.read(path).fingerprint == "9197fe75815970154cca6df034c0f079"


def test_equal_tables_have_equal_fingerprints(frame):
    assert Dataset.read(frame).fingerprint == Dataset.read(frame.copy(deep=True)).fingerprint
    # The row labels are no part of the table.
    assert Dataset.read(frame.set_axis(range(5, 17))).fingerprint == Dataset.read(frame).fingerprint


@pytest.mark.parametrize(
    "change",
    [
        lambda f: f.assign(dose=f["dose"] + 1e-12),
        lambda f: f.iloc[::-1],
        lambda f: f.iloc[:-1],
        lambda f: f[["count", "dose", "treated", "grade", "site"]],
        lambda f: f.rename(columns={"dose": "dosage"}),
        lambda f: f.assign(count=f["count"].astype(str)),
        lambda f: f.assign(site=f["site"].replace("a", "aa")),
        lambda f: f.assign(grade=f["grade"].cat.remove_unused_categories()),
        lambda f: f.drop(columns="site"),
    ],
    ids=["value", "row order", "fewer rows", "column order", "name", "kind", "level", "levels", "column"],
)
def test_any_change_changes_the_fingerprint(frame, change):
    assert Dataset.read(change(frame)).fingerprint != Dataset.read(frame).fingerprint


def test_fingerprint_tells_names_from_shapes():
    # The same bytes in the same order, laid out as 2 x 3 and 3 x 2.
    values = np.array([1.0, 5.0, 3.0, 2.0, 4.0, 7.0])
    assert Dataset.read(values.reshape(2, 3)).fingerprint != Dataset.read(values.reshape(3, 2)).fingerprint


def test_fingerprints_of_statistics():
    def statistics(n=9, mean=(0.0, 1.0), covariance=0.5, names=("x", "y")):
        return SufficientStatistics(n, list(mean), [[1.0, covariance], [covariance, 2.0]], names).fingerprint

    assert statistics() == statistics()
    assert statistics(n=np.int64(9)) == statistics()
    others = [
        statistics(n=10),
        statistics(mean=(0.0, 2.0)),
        statistics(covariance=0.4),
        statistics(names=("x", "z")),
    ]
    assert len({statistics(), *others}) == 5


# What is refused


def two(**columns):
    return pd.DataFrame({"x": [1.0, 2.0, 4.0]} | columns)


BAD_TABLES = {
    "type": ([1, 2], "data must be a DataFrame, an array or the path of a table; received list"),
    "vector": (np.arange(3.0), "an array of data must have two dimensions; received 1"),
    "one column": (np.ones((3, 1)), "a network needs at least two variables; received 1"),
    "no column": (pd.DataFrame(), "a network needs at least two variables; received 0"),
    "many": (
        np.zeros((3, MAX_VARIABLES + 1)),
        f"at most {MAX_VARIABLES} variables are supported; received {MAX_VARIABLES + 1}",
    ),
    "one row": (np.ones((1, 2)), "a table needs at least two rows; received 1"),
    "repeated": (
        pd.DataFrame([[1.0, 2.0], [2.0, 1.0]], columns=["Erk", "Erk"]),
        "column names must differ; 'Erk' appears more than once (columns 1 and 2)",
    ),
    "repeated as text": (
        pd.DataFrame([[1.0, 2.0], [2.0, 1.0]], columns=[1, "1"]),
        "column names must differ; '1' appears more than once (columns 1 and 2)",
    ),
    "no name": (
        pd.DataFrame([[1.0, 2.0], [2.0, 1.0]], columns=["", "Erk"]),
        "every column must have a name; column 1 has none: if it is a row index, gpn.Table(data, drop=['']) "
        "leaves it out",
    ),
    "NaN for a name": (
        pd.DataFrame([[1.0, 2.0], [2.0, 1.0]], columns=["Erk", np.nan]),
        "every column must have a name; column 2 has none: if it is a row index, gpn.Table(data, drop=['']) "
        "leaves it out",
    ),
    "None for a name": (
        pd.DataFrame([[1.0, 2.0], [2.0, 1.0]], columns=[None, "Erk"]),
        "every column must have a name; column 1 has none: if it is a row index, gpn.Table(data, drop=['']) "
        "leaves it out",
    ),
    "a name of two lines": (
        pd.DataFrame([[1.0, 2.0], [2.0, 1.0]], columns=["Erk\n1", "Akt"]),
        "the names of columns must be without line breaks, tabs and other control characters; column 1 is called "
        "'Erk\\n1': give it another name",
    ),
    "a name with a tab": (
        pd.DataFrame([[1.0, 2.0], [2.0, 1.0]], columns=["Akt", "Erk\t1"]),
        "the names of columns must be without line breaks, tabs and other control characters; column 2 is called "
        "'Erk\\t1': give it another name",
    ),
    "missing": (
        two(Erk=[1.0, None, None]),
        "every value must be present; 2 are missing, in 2 of 3 rows and 1 of 2 columns ('Erk' in rows 1 and 2): "
        "gpn.Table(data, missing='drop') drops the rows; for sampling, "
        "gpn.Table(data, missing='impute') draws the values along with the networks",
    ),
    "missing text": (
        two(Erk=["a", None, "b"]),
        "every value must be present; 1 is missing, in 1 of 3 rows and 1 of 2 columns ('Erk' in row 1): "
        "gpn.Table(data, missing='drop') drops the row; for sampling, "
        "gpn.Table(data, missing='impute') draws the value along with the networks",
    ),
    "missing category": (
        two(Erk=pd.Categorical(["a", None, "b"])),
        "every value must be present; 1 is missing, in 1 of 3 rows and 1 of 2 columns ('Erk' in row 1): "
        "gpn.Table(data, missing='drop') drops the row; for sampling, "
        "gpn.Table(data, missing='impute') draws the value along with the networks",
    ),
    "infinite": (
        two(Erk=[1.0, np.inf, 2.0]),
        "every value must be finite; column 'Erk' holds an infinite value (row 1): gpn.Table(data, na=['inf', "
        "'-inf']) counts such values as missing",
    ),
    "constant": (two(Erk=[1.0, 1.0, 1.0]), "every column must vary; column 'Erk' is constant"),
    "constant text": (two(Erk=["a", "a", "a"]), "every column must vary; column 'Erk' is constant"),
    "constant truth": (two(Erk=[True, True, True]), "every column must vary; column 'Erk' is constant"),
    "varies below precision": (
        two(Erk=[1e-170, 2e-170, 1e-170]),
        "every column's variance must be a number; column 'Erk' varies by 1e-170 only, too little to be squared: "
        "measure it in another unit",
    ),
    "complex": (two(Erk=[1j, 2, 3]), "values must be real numbers; column 'Erk' is complex"),
    "dates": (
        two(Erk=pd.date_range("2020", periods=3, unit="ns")),
        "columns must hold numbers or categories; column 'Erk' is datetime64[ns]: gpn.Table(data, drop=['Erk']) "
        "leaves it out",
    ),
}


@pytest.mark.parametrize(("table", "message"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_bad_tables_are_refused_in_one_line(table, message):
    with pytest.raises(ValueError) as error:
        Dataset.read(table)
    assert str(error.value) == message


BAD_FILES = {
    "empty": ("", "the data file must hold a table; 'table.csv' is empty"),
    "repeated": (
        "Erk,Erk\n1,2\n3,1\n",
        "column names must differ; 'Erk' appears more than once (columns 1 and 2)",
    ),
    "not an index": (
        ",Erk,Akt\n0.5,1,2\n1.5,3,1\n",
        "every column must have a name; column 1 has none: if it is a row index, gpn.Table(data, drop=['']) "
        "leaves it out",
    ),
    "saved, not an index": (
        "Unnamed: 0,Erk,Akt\n0,1,2\n5,3,1\n",
        "every column must have a name; column 1 is called 'Unnamed: 0': if it is a row index, "
        "gpn.Table(data, drop=['Unnamed: 0']) leaves it out",
    ),
    "header only": ("Erk,Akt\n", "a table needs at least two rows; received 0"),
    "one row": ("Erk,Akt\n1,2\n", "a table needs at least two rows; received 1"),
    "one column": ("Erk\n1\n2\n", "a network needs at least two variables; received 1"),
    "nameless field": (
        "Erk,Akt\n0,1,2\n1,3,1\n",
        "table.csv has more fields in its rows than names in its header: 3, not 2",
    ),
    "two nameless fields": (
        "Erk,Akt\n0,0,1,2\n1,0,3,1\n",
        "table.csv has more fields in its rows than names in its header: 4, not 2 (decimal commas? then separate the "
        "fields by semicolons)",
    ),
    "short row": (
        "Erk,Akt\n1,2\n3\n2,5\n",
        "every value must be present; 1 is missing, in 1 of 3 rows and 1 of 2 columns ('Akt' in line 3): "
        "gpn.Table(data, missing='drop') drops the row; for sampling, "
        "gpn.Table(data, missing='impute') draws the value along with the networks",
    ),
}


@pytest.mark.parametrize(("text", "message"), BAD_FILES.values(), ids=BAD_FILES)
def test_bad_files_are_refused_in_one_line(text, message, tmp_path):
    with pytest.raises(ValueError) as error:
        Dataset.read(write(tmp_path, text))
    assert str(error.value) == message


def test_columns_without_a_name_can_be_left_out_and_small_units_are_read():
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(size=(20, 3)), columns=["Erk", np.nan, "Akt"])
    assert Dataset.read(table, drop=[""]).names == ("Erk", "Akt")
    # Far below any unit, but with squares that are numbers.
    assert Dataset.read(table[["Erk", "Akt"]] * 1e-140).spreads() == pytest.approx(
        1e-140 * Dataset.read(table[["Erk", "Akt"]]).spreads()
    )


def test_ragged_rows_name_the_line(tmp_path):
    with pytest.raises(ValueError) as error:
        Dataset.read(write(tmp_path, "Erk,Akt\n1,2\n3,1\n2,5,7\n"))
    assert str(error.value) == "no row may have more fields than the header; line 4 of 'table.csv' has 3, not 2"


def test_unreadable_files(tmp_path):
    path = write(tmp_path, "Erk,Täk\n1,2\n2,1\n", encoding="latin-1")
    with pytest.raises(ValueError, match="^a text file must be in one encoding; line 1 of 'table.csv' isn't utf-8: "):
        Dataset.read(path, encoding="utf-8")
    with pytest.raises(ValueError, match="^encoding must be one that Python knows, such as 'cp1252'; received 'x'$"):
        Dataset.read(path, encoding="x")
    path.write_bytes(b"Erk,Akt\n" + 5000 * b"1,2\n" + b"2,\x81\n")
    with pytest.raises(ValueError, match="^a text file .*; line 5002 of 'table.csv' isn't Windows-1252: name it, such"):
        Dataset.read(path)
    with pytest.raises(ValueError, match="^table.parquet can't be read as Parquet: [^\n]+$"):
        Dataset.read(write(tmp_path, "no parquet", "table.parquet"))
    with pytest.raises(ValueError, match="^the data file must exist; '[^\n]*absent.csv' is not a file$"):
        Dataset.read(tmp_path / "absent.csv")
    with pytest.raises(ValueError, match="^the data file must exist; '[^\n]*' is not a file$"):
        Dataset.read(tmp_path)


@pytest.mark.parametrize(
    ("cell", "message"),
    [
        ("9" * 400, "^every value must be finite; column 'a' holds an infinite value "),
        ("1e308", "^every column's variance must be a number; column 'a' holds numbers up to 1e.308: measure it in "),
    ],
    ids=["digits", "variance"],
)
def test_numbers_beyond_floats_are_refused(cell, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        Dataset.read(write(tmp_path, f"a,b\n{cell},1.5\n-3,2.5\n7,0.5\n", "table.csv"))


def parquet(path, described, **columns):
    """Write a Parquet file with something else in place of pandas' description of it."""
    frame = pd.DataFrame({"a": [0.5, 1.5, 3.0], "b": [1.0, 0.0, 5.0]})
    table = pa.Table.from_pandas(frame)
    for name, values in columns.items():
        table = table.append_column(name, pa.array(values))
    if described is not None:
        table = table.replace_schema_metadata({"pandas": described})
    pq.write_table(table, path)
    return path


@pytest.mark.parametrize("described", ["{}", "[1]", "3", "[" * 100_000, '{"columns": null, "index_columns": null}'])
def test_parquet_that_pandas_cannot_make_sense_of_is_refused_in_one_line(described, tmp_path):
    assert Dataset.read(parquet(tmp_path / "right.parquet", None)).names == ("a", "b")
    with pytest.raises(ValueError, match="^table.parquet can't be read as Parquet: [^\n]+$") as error:
        Dataset.read(parquet(tmp_path / "table.parquet", described))
    assert type(error.value) is ValueError


def test_parquet_with_bytes_that_are_no_text_names_the_column(tmp_path):
    path = parquet(tmp_path / "table.parquet", None, c=[b"\xff", b"\xfe", b"x"])
    with pytest.raises(
        ValueError, match="^columns must hold numbers or categories; column 'c' holds bytes that aren't"
    ):
        Dataset.read(path)


def test_parquet_of_too_many_cells_is_refused_before_it_is_read(tmp_path, monkeypatch):
    """A column of equal numbers takes a few bytes, whatever its length."""
    monkeypatch.setattr("gpn_bayes.data.files._MAX_CELLS", 5)
    with pytest.raises(ValueError, match="^a table must have 5 cells at most; 'table.parquet' has 6$"):
        Dataset.read(parquet(tmp_path / "table.parquet", None))


def test_identical_columns_are_told():
    x = np.random.default_rng(4).normal(size=9)
    with pytest.warns(UserWarning, match="^columns 'a' and 'c' are identical: the data can't distinguish them$"):
        data = Dataset.read(pd.DataFrame({"a": x, "b": x + 1, "c": x}))
    assert data.names == ("a", "b", "c")


# Statistics


def test_statistics_of_data_are_numpys():
    values = np.random.default_rng(5).normal(2, 3, size=(30, 3))
    statistics = SufficientStatistics.of(Dataset.read(values))
    assert statistics.n == 30
    np.testing.assert_allclose(statistics.mean, values.mean(axis=0))
    np.testing.assert_allclose(statistics.cov, np.cov(values.T))
    np.testing.assert_allclose(statistics.correlation, np.corrcoef(values.T), rtol=1e-12)


def test_statistics_are_had_of_any_table(frame):
    numbers = frame[["dose", "count"]]
    assert SufficientStatistics.of(numbers).fingerprint == SufficientStatistics.of(Dataset.read(numbers)).fingerprint
    with pytest.raises(
        ValueError, match="^a covariance needs numbers; columns 'grade', 'site' hold text such as 'low': "
    ):
        SufficientStatistics.of(frame)


def test_bge_of_statistics_is_bge_of_the_table():
    rng = np.random.default_rng(6)
    values = rng.normal(size=(40, 4)) @ rng.normal(size=(4, 4)) + [1e3, -5, 0, 2]
    frame = pd.DataFrame(values, columns=list("abcd"))
    statistics = SufficientStatistics(40, values.mean(axis=0), np.cov(values.T), tuple("abcd"))
    of_statistics, of_table = BGe().bind(statistics), BGe().bind(frame)
    for node in range(4):
        others = [i for i in range(4) if i != node]
        np.testing.assert_allclose(of_statistics.table(node, others), of_table.table(node, others), rtol=0, atol=1e-9)


def test_statistics_are_copied_and_tolerate_rounding():
    mean, covariance = np.array([0.0, 1.0]), np.array([[1.0, 2e-17], [3e-17, 1.0]])
    statistics = SufficientStatistics(9, mean, covariance, ["x", "y"])
    mean[0], covariance[0, 0] = 5.0, 5.0
    assert statistics.mean[0] == 0.0
    assert statistics.cov[0, 0] == 1.0
    assert statistics.names == ("x", "y")


I2 = [[1.0, 0.0], [0.0, 1.0]]
BAD_STATISTICS = {
    "one name": ((9, [0.0], [[1.0]], ["x"]), "a network needs at least two variables; received 1"),
    "repeated": ((9, [0, 0], I2, ["x", "x"]), "column names must differ; 'x' appears more than once (columns 1 and 2)"),
    "one row": ((1, [0, 0], I2, ["x", "y"]), "statistics need at least two rows; received n = 1"),
    "half a row": ((9.5, [0, 0], I2, ["x", "y"]), "n must be a whole number; received 9.5"),
    "shapes": (
        (9, [0, 0, 0], I2, ["x", "y"]),
        "mean and cov must have shapes (2,) and (2, 2) for 2 names; received (3,) and (2, 2)",
    ),
    "nan": ((9, [0, np.nan], I2, ["x", "y"]), "mean and cov must be finite; received NaN or infinity"),
    "inf": (
        (9, [0, 0], [[np.inf, 0], [0, 1]], ["x", "y"]),
        "mean and cov must be finite; received NaN or infinity",
    ),
    "asymmetric": (
        (9, [0, 0], [[1, 0.1], [0.2, 1]], ["x", "y"]),
        "cov must be symmetric; received an asymmetric matrix",
    ),
    "constant": (
        (9, [0, 0], [[1, 0], [0, 0]], ["x", "y"]),
        "every column must vary; column 'y' has variance 0.0",
    ),
    "indefinite": (
        (9, [0, 0], [[1, 2], [2, 1]], ["x", "y"]),
        "cov must be positive semi-definite; its correlations have the eigenvalue -1",
    ),
}


@pytest.mark.parametrize(("arguments", "message"), BAD_STATISTICS.values(), ids=BAD_STATISTICS)
def test_bad_statistics_are_refused_in_one_line(arguments, message):
    with pytest.raises(ValueError) as error:
        SufficientStatistics(*arguments)
    assert str(error.value) == message


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("n", np.array(2.7)),
        ("n", np.array([20])),
        ("n", np.array("20")),
        ("names", np.array("ab")),
        ("names", np.array([1, 2])),
        ("names", np.array([["a", "b"]])),
        ("mean", np.array(0.0)),
        ("cov", np.array([["1", "0"], ["0", "1"]])),
        ("cov", np.array([[1, 0], [0, 1]], dtype=complex)),
    ],
)
def test_statistics_of_other_kinds_are_refused(part, value, tmp_path):
    right = {"n": np.array(20), "mean": np.zeros(2), "cov": np.eye(2), "names": np.array(["a", "b"])}
    np.savez(tmp_path / "right.npz", **right)
    assert SufficientStatistics.load(tmp_path / "right.npz").n == 20
    np.savez(tmp_path / "wrong.npz", **right | {part: value})
    with pytest.raises(ValueError, match=f"^wrong.npz can't be read as statistics: {part} is "):
        SufficientStatistics.load(tmp_path / "wrong.npz")


def test_statistics_that_hold_too_much_are_refused(tmp_path):
    np.savez_compressed(tmp_path / "bomb.npz", n=20, mean=np.zeros(15_000_000), cov=np.eye(2), names=np.array(["a"]))
    assert (tmp_path / "bomb.npz").stat().st_size < 1_000_000
    with pytest.raises(ValueError, match="^bomb.npz can't be read as statistics: n, mean, cov and names$"):
        SufficientStatistics.load(tmp_path / "bomb.npz")


def test_statistics_of_parts_that_are_no_arrays_are_refused(tmp_path):
    """Numpy returns a part that doesn't begin like an array as bytes."""
    np.savez(tmp_path / "right.npz", n=np.array(20), mean=np.zeros(2), cov=np.eye(2), names=np.array(["a", "b"]))
    with zipfile.ZipFile(tmp_path / "right.npz") as right, zipfile.ZipFile(tmp_path / "wrong.npz", "w") as wrong:
        for name in right.namelist():
            wrong.writestr(name, b"raw bytes" if name == "mean.npy" else right.read(name))
    with pytest.raises(ValueError, match="^wrong.npz can't be read as statistics: mean is "):
        SufficientStatistics.load(tmp_path / "wrong.npz")

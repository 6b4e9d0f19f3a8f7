"""Settings of `Dataset.read`; objects read by what they are; the same through `sample` and the command line."""

import re
from datetime import date
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes import Dataset
from gpn_bayes.data.notation import is_number
from tests.command_line import call
from tests.messy_tables import content


@pytest.fixture
def frame():
    rng = np.random.default_rng(3)
    return pd.DataFrame(
        {
            "dose": rng.normal(size=12),
            "count": np.arange(12) % 4,
            "many": np.arange(12) * 10,
            "treated": np.arange(12) % 2 == 0,
            "site": ["b", "a", "c", "a"] * 3,
        }
    )


def write(folder: Path, text: str, name: str = "table.csv") -> Path:
    (folder / name).write_text(text, encoding="utf-8", newline="")
    return folder / name


def refusal(data, **settings) -> str:
    with pytest.raises(ValueError) as error:
        Dataset.read(data, **settings)
    return str(error.value)


# Objects


def test_a_table_of_objects_is_the_table_they_came_from(frame):
    objects, plain = Dataset.read(frame.astype(object)), Dataset.read(frame)
    assert objects.kinds == plain.kinds == ("continuous", "integer", "integer", "integer", "categorical")
    assert objects.levels == plain.levels
    assert objects.fingerprint == plain.fingerprint


def test_objects_are_drawn_from_and_estimated_as_numbers(frame):
    numbers = frame[["dose", "count", "many"]]
    settings = {"score": "bge", "draws": 20, "random_seed": 1, "progressbar": False}
    one, two = (gpn.sample(data, **settings) for data in (numbers, numbers.astype(object)))
    pd.testing.assert_frame_equal(one.edge_probabilities(), two.edge_probabilities())
    with pytest.raises(ValueError, match="^discrete scores need categories; column 'dose' is continuous: "):
        gpn.scores.BDeu().bind(numbers.astype(object))
    pc = [gpn.estimators.PC().fit(data).adjacency_ for data in (numbers, numbers.astype(object))]
    np.testing.assert_array_equal(*pc)


def test_numbers_of_other_types_are_numbers():
    column = pd.Series([Decimal("1.5"), np.float32(2), 3], dtype=object)
    assert Dataset.read(pd.DataFrame({"x": column, "y": [1, 2, 4]})).kinds == ("continuous", "integer")
    truth = pd.Series([True, False, np.True_], dtype=object)
    assert Dataset.read(pd.DataFrame({"x": truth, "y": [1, 2, 4]})).levels[0] == (False, True)


def test_objects_that_mix_numbers_and_text_are_refused_with_the_cell():
    table = pd.DataFrame({"x": [1.0, 2.0, 4.0], "y": np.array([1.5, "n.d.", 2.5], dtype=object)}, index=[10, 20, 30])
    assert refusal(table) == (
        "a column must hold either numbers or text; column 'y' holds numbers but 'n.d.' in row 20: write a number "
        "there; gpn.Table(data, na=['n.d.']) counts it as missing, gpn.Table(data, categories=['y']) takes the "
        "column as categories"
    )
    table["y"] = pd.Series(["a", 7, "b"], index=table.index, dtype=object)
    assert "column 'y' holds text but 7 in row 20: " in refusal(table)
    assert Dataset.read(table, categories="y").levels[1] == ("7", "a", "b")


def test_texts_with_a_number_among_them_are_refused_as_in_a_file(tmp_path):
    path = write(tmp_path, "x,y\n1,2.172\n2,<0.1\n3,0.5\n")
    of_file, of_frame = refusal(path), refusal(pd.read_csv(path))
    assert of_file.partition(": ")[0].replace("line 3", "row 1") == of_frame.partition(": ")[0]
    assert "'<0.1' in row 1" in of_frame and "gpn.Table(data, na=['<0.1']) counts it as missing" in of_file
    assert Dataset.read(path, na=["<0.1"], missing="drop").values[:, 1].tolist() == [2.172, 0.5]


@pytest.mark.parametrize("cells", [["<0.1", "2.5", "3.5"], ["<0.1", "2", "3"], ["<0.1", "2.5", 3.5, 1.5]])
def test_texts_beside_numbers_as_text_are_made_missing_by_pandas(cells):
    data = pd.DataFrame({"x": np.arange(len(cells)) ** 2, "y": pd.Series(cells, dtype=object)})
    message = refusal(data)
    advice = re.search(r"pandas\.to_numeric\(.*?\)(?= makes it numbers, missing where it can't)", message)[0]
    data["y"] = eval(advice, {"pandas": pd, "data": data})
    assert Dataset.read(data, missing="drop").values[:, 1].tolist() == [float(c) for c in cells[1:]]


def test_numbers_that_pandas_would_not_convert_are_to_be_given_as_numbers():
    message = refusal(pd.DataFrame({"x": [1.0, 2.0, 4.0], "y": ["<0,1", "2,5", "3,5"]}))
    assert message.endswith(
        "'<0,1' in row 0: give numbers instead of texts, gpn.Table(data, categories=['y']) takes the column as "
        "categories"
    )


def test_numbers_as_text_are_refused_unless_they_are_whole():
    table = pd.DataFrame({"x": [1.0, 2.0, 4.0], "y": ["1.5", "2", "3"]})
    assert refusal(table) == (
        "numbers must be given as numbers; column 'y' holds them as text such as '1.5': pandas.to_numeric converts it, "
        "gpn.Table(data, categories=['y']) takes the texts as categories"
    )
    assert Dataset.read(table, categories="y").kinds[1] == "categorical"
    assert Dataset.read(table.assign(y=["0", "1", "0"])).levels[1] == ("0", "1")


def test_dates_are_refused():
    days = pd.Series([date(2021, 3, n) for n in (1, 2, 3)], dtype=object)
    assert "column 'y' holds dates such as '2021-03-01': " in refusal(pd.DataFrame({"x": [1.0, 2, 4], "y": days}))
    assert "dates such as '2021-03-01 10:30'" in refusal(
        pd.DataFrame({"x": [1.0, 2, 4], "y": ["2021-03-01 10:30", "2021-03-02", "2021-03-03"]})
    )


# Numbers in files


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["1,5", "2"], [1.5, 2]),
        (["1.234,5", "2.000"], [1234.5, 2000]),
        (["1,5", "1,234"], [1.5, 1.234]),
        (["1 234,5", "2"], [1234.5, 2]),
        (["1’234.5", "2"], [1234.5, 2]),
        (["1,234.5", "1,234"], [1234.5, 1234]),
        (["1,234,567", "1,234"], [1234567, 1234]),
        (["1.234", "2.345"], [1.234, 2.345]),
        (["−1.5", "2"], [-1.5, 2]),
        (["0,123", "-,5"], [0.123, -0.5]),
        (["1e-3", "+2E5"], [1e-3, 2e5]),
    ],
    ids=lambda value: " ".join(map(str, value)),
)
def test_numbers_are_read_as_they_are_written(texts, numbers, tmp_path):
    path = write(tmp_path, "x;y\n" + "".join(f"{text};{place}\n" for place, text in enumerate(texts)))
    assert Dataset.read(path).values[:, 0].tolist() == numbers


def test_a_comma_that_can_be_either_needs_the_option(tmp_path):
    path = write(tmp_path, "x;y\n1,234;1\n2,345;2\n")
    assert "'1,234' in line 2 of column 'x' can be 1234 or 1.234" in refusal(path)
    assert Dataset.read(path, decimal=",").values[:, 0].tolist() == [1.234, 2.345]
    assert Dataset.read(path, decimal=".").values[:, 0].tolist() == [1234, 2345]
    assert Dataset.read(path, decimal=".").kinds == ("integer", "integer")


@pytest.mark.parametrize("text", ["", "<0.1", "5 mg", "12%", "1,23,4", "1.2.3", "a", "1e", "--1", "12,34.5", "1 2"])
def test_other_texts_are_no_numbers(text):
    assert not is_number(text)


def test_a_separator_that_can_be_either_needs_the_option(tmp_path):
    path = write(tmp_path, "a;b,c\nx;y,z\nu;v,w\nx;v,w\n")
    refusal_text = refusal(path)
    assert refusal_text == (
        "a table's fields must be separated by one character; received commas and semicolons: choose by "
        "gpn.Table(data, sep=',') or gpn.Table(data, sep=';')"
    )
    assert Dataset.read(path, sep=";").names == ("a", "b,c")
    assert Dataset.read(path, sep=",").names == ("a;b", "c")


def test_whole_numbers_stay_whole_where_rows_are_dropped(tmp_path):
    gaps = Dataset.read(write(tmp_path, "x,y,z\n1,True,a\nNA,False,b\n3,,a\n4,False,b\n5,True,a\n"), missing="drop")
    without = Dataset.read(write(tmp_path, "x,y,z\n1,True,a\n4,False,b\n5,True,a\n"))
    assert gaps.fingerprint == without.fingerprint
    assert gaps.kinds == ("integer", "integer", "categorical")
    assert (gaps.rows_dropped, without.rows_dropped) == (2, 0)


def test_sheets_are_chosen_by_name_or_number(tmp_path):
    path = tmp_path / "book.xlsx"
    with pd.ExcelWriter(path) as book:
        pd.DataFrame({"x": [1.5, 2, 3], "y": [1, 2, 2]}).to_excel(book, sheet_name="first", index=False)
        pd.DataFrame({"u": [1.5, 2, 3], "v": [1, 2, 2]}).to_excel(book, sheet_name="second", index=False)
    assert Dataset.read(path).names == ("x", "y")
    assert Dataset.read(path, sheet="second").names == Dataset.read(path, sheet=2).names == ("u", "v")
    assert refusal(path, sheet="third").startswith(
        "sheet must be one of 'first', 'second', or its number; received 'th"
    )
    refusal_text = refusal(write(tmp_path, "PK\x03\x04 and no more", "broken.xlsx"))
    assert refusal_text.startswith("broken.xlsx can't be read as an Excel file: ")
    renamed = path.rename(tmp_path / "book.csv")
    assert Dataset.read(renamed).notes == ("read book.csv: sheet 'first', the first of 2; 3 rows, 2 columns",)


# Settings


def test_columns_are_taken_in_the_order_asked_for_and_left_out(frame):
    assert Dataset.read(frame, columns=["many", "dose"]).names == ("many", "dose")
    assert Dataset.read(frame, drop="site").names == ("dose", "count", "many", "treated")
    assert Dataset.read(frame, columns=["many", "dose", "site"], drop=["site"]).names == ("many", "dose")
    assert (
        Dataset.read(frame, columns=["dose", "many"]).fingerprint == Dataset.read(frame[["dose", "many"]]).fingerprint
    )


def test_codes_of_missing_values(frame):
    frame.loc[[2, 5], "many"] = -99
    assert Dataset.read(frame, na=-99, missing="drop").n_rows == 10
    assert "2 are missing, in 2 of 12 rows and 1 of 5 columns ('many' in rows 2 and 5)" in refusal(frame, na=["-99"])
    assert Dataset.read(frame, na=-98).n_rows == 12


def test_discretising_cuts_measurements_alone(frame):
    frame["many"] = np.arange(12) * 10.5
    data = Dataset.read(frame.assign(age=20 + np.arange(12), code=[1.5, 2.0] * 6), discretise=3)
    assert data.levels[0] == data.levels[2] == ("low", "middle", "high")
    assert np.bincount(data.values[:, 0].astype(int)).tolist() == [4, 4, 4]
    assert data.levels[1] == (0, 1, 2, 3)
    assert data.levels[3:5] == ((False, True), ("a", "b", "c"))
    assert len(data.levels[5]) == 12  # whole numbers with few values are categories as they are
    assert data.levels[6] == ("1.5", "2.0")
    means = Dataset.read(frame, discretise="mean")
    assert means.values[:, 2].tolist() == [0.0] * 6 + [1.0] * 6
    cut = gpn.simulate.discretise(frame[["dose", "many"]], "quantile", 3)
    assert Dataset.read(frame[["dose", "many"]], discretise=3).fingerprint == Dataset.read(cut).fingerprint


def test_ties_that_cannot_be_cut_are_told_of_the_mean(frame):
    frame["dose"] = [0.0] * 9 + [1.5, 2.5, 3.5]
    refusal_text = refusal(frame, discretise=3)
    assert refusal_text.startswith("each of the 3 levels must hold a row; column 'dose' has too many equal values: ")
    assert "gpn.Table(data, discretise='mean') cuts at the mean" in refusal_text
    assert Dataset.read(frame, discretise="mean").values[:, 0].sum() == 3


def test_too_few_rows_without_gaps_are_told_by_column(frame):
    frame.loc[1:, "dose"] = np.nan
    assert refusal(frame, missing="drop") == (
        "at least two rows must have no missing value; 1 of 12 do, and most are missing in 'dose' 11: "
        "gpn.Table(data, drop=['dose']) leaves that column out"
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"missing": "ignore"}, "missing must be one of error, drop, impute; received 'ignore'"),
        ({"drop": "doze"}, "drop must name columns of the table; received 'doze', not one of 'dose', 'count'"),
        ({"columns": ["dose", "x"]}, "columns must name columns of the table; received 'x', not one of"),
        ({"discretise": "median"}, "discretise must be 'mean' or a number of levels; received 'median'"),
        ({"discretise": 1}, "discretise must be a whole number, 2 or more; received 1"),
        ({"decimal": ";"}, "decimal must be '.' or ','; received ';'"),
        ({"sep": ";"}, "sep is a setting of text files and sheets; received DataFrame"),
    ],
)
def test_bad_settings_are_refused(settings, message, frame):
    assert refusal(frame, **settings).startswith(message)


def test_settings_of_other_files_are_refused(tmp_path, frame):
    frame.to_parquet(tmp_path / "table.parquet")
    assert (
        refusal(tmp_path / "table.parquet", sep=";") == "sep is a setting of text files and sheets; received DataFrame"
    )
    path = write(tmp_path, "a,b\n1,2\n2,1\n")
    assert refusal(path, sheet="x") == "sheet is a setting of an Excel file; received 'x' for 'table.csv'"
    assert refusal(path, sep=";;") == "sep must be a single character, such as ';'; received ';;'"
    assert refusal(Dataset.read(path), drop="a") == "drop is for tables that aren't read yet; received a Dataset"
    statistics = gpn.SufficientStatistics.of(path)
    with pytest.raises(ValueError, match="^drop is a setting of tables; received SufficientStatistics$"):
        gpn.data.read_data(statistics, drop="a")


# Missing values on the way to the posterior


def test_sampling_can_drop_rows_and_says_so(frame):
    numbers = frame[["dose", "count", "many"]]
    gaps = numbers.astype({"count": "Int64"})
    gaps.loc[[3, 7], "count"] = pd.NA
    settings = {"draws": 20, "random_seed": 1, "progressbar": False}
    with pytest.raises(
        ValueError,
        match="2 are missing, in 2 of 12 rows and 1 of 3 columns .'count' in rows 3 and 7.: gpn.Table.data, ",
    ):
        gpn.sample(gaps, **settings)
    post = gpn.sample(gaps, missing="drop", **settings)
    assert post.settings["missing"] == {"dropped": 2, "rows": 12}
    complete = gpn.sample(numbers.drop(index=[3, 7]), missing="drop", **settings)
    assert "missing" not in complete.settings
    pd.testing.assert_frame_equal(post.edge_probabilities(), complete.edge_probabilities())


def test_a_run_with_options_goes_on_and_is_told_in_its_report(tmp_path, capsys):
    path = tmp_path / "missing.csv"
    path.write_bytes(content("missing.csv"))
    options = [path, "--out", tmp_path / "out", "--missing", "drop", "--drop", "akt", "--draws", 20, "--quiet"]
    code, shown, messages = call(capsys, "run", *options)
    assert code == 0
    assert messages == "dropped 2 of 12 rows with missing values\n"
    assert "2 variables, 10 rows" in shown
    page = (tmp_path / "out" / "report.html").read_text(encoding="utf-8")
    assert f"gpn-bayes run {path} --out {tmp_path / 'out'} --draws 20 --missing drop --drop akt" in page
    assert "2 of 12 rows dropped" in page
    assert "with the table as it was read, <code>post.data</code>" in page
    assert gpn.load(tmp_path / "out" / "posterior.nc").settings["missing"] == {"dropped": 2, "rows": 12}
    code, _, messages = call(capsys, "run", *options)
    assert code == 0
    assert "holds this run, finished" in messages
    code, _, messages = call(capsys, "run", *options, "--na", "3.44")
    assert code == 0, messages  # no such cell: the same table
    code, _, messages = call(capsys, "run", *options[:-5], "--draws", 20, "--quiet")
    assert code == 2
    assert "holds another run, on other data" in messages


def test_what_is_noted_of_a_table_is_not_copied_with_every_column():
    """Simulated tables come with all their weights: of 200 variables, copies of these took 20 seconds."""
    copies = []

    class Note:
        def __deepcopy__(self, memo):
            copies.append(1)
            return self

    table = pd.DataFrame(np.random.default_rng(1).normal(size=(5, 30)))
    table.attrs["note"] = Note()
    Dataset.read(table)
    assert len(copies) <= 1
    assert "note" in table.attrs

"""What the command line makes of tables as people have them: it reads them and says how, or says what to do."""

import io
import zipfile

import pytest

from gpn_bayes import Dataset
from tests.command_line import call, read_estimate
from tests.messy_tables import FILES, NAMES, ROWS, cells, content, sheet

pytestmark = pytest.mark.more("reads files that are messy in every way")

# What is said of files that are read; nothing of those that are as plain as can be. Then further options.
READ = {
    "plain.csv": ("", []),
    "semicolons.csv": ("semicolons", []),
    "decimal_commas.csv": ("semicolons, decimal comma", []),
    "tabs.tsv": ("tabs", []),
    "bars.txt": ("vertical bars", []),
    "spaces.txt": ("fields separated by ' '", ["--sep", " "]),
    "utf8_mark.csv": ("", []),
    "utf16_of_excel.txt": ("tabs, UTF-16, decimal comma", []),
    "utf16_without_mark.csv": ("UTF-16", []),
    "windows.csv": ("semicolons, Windows-1252, decimal comma", []),
    "old_mac.csv": ("", []),
    "excel.xlsx": ("sheet 'Cells'", []),
    "several_sheets.xlsx": ("sheet 'Cells', the first of 3", []),
    "excel_text_numbers.xlsx": ("sheet 'Cells', decimal comma", []),
    "trailing_commas.csv": ("left out 2 empty rows, 2 empty columns", []),
    "empty_rows.csv": ("left out one empty row", []),
    "quoted_thousands.csv": ("thousands separators", []),
    "thousands_or_decimals.csv": ("decimal comma", ["--decimal", ","]),
    "minus_99.csv": ("", []),
    "index_of_pandas.csv": ("left out the first column, which has no name and labels the rows", []),
    "row_names_of_r.csv": ("left out the first column, which has no name and labels the rows", []),
    "title.csv": ("left out line 1 above the header", []),
    "comments.csv": ("left out lines 1 and 2 above the header, one line of comments", []),
    "yes_no.csv": ("", ["--score", "bdeu"]),
    "percent.csv": ("percent signs", []),
    "stages.csv": ("", ["--score", "bdeu", "--categories", "erk"]),
}
DROP_OR_IMPUTE = (
    "--missing drop drops the rows; for sampling, --missing impute draws the values along with the networks"
)
NOT_NUMBERS = "a column must hold either numbers or text; column "
REFUSED = {
    "spaces.txt": "a network needs at least two variables; received 1: if 'erk akt pka' is several names, --sep ' ' "
    "separates them",
    "excel_error.xlsx": f"{NOT_NUMBERS}'akt' holds numbers but '#DIV/0!' in row 4: write a number there; --na "
    "'#DIV/0!' counts it as missing, --categories akt takes the column as categories",
    "excel_dates.xlsx": "columns must hold numbers or categories; column 'day' holds dates such as '2021-03-01': "
    "--drop day leaves it out",
    "thousands_or_decimals.csv": "it must be clear what commas in numbers mean; '1,200' in line 2 of column 'erk' can "
    "be 1200 or 1.200: --decimal . reads it as 1200, --decimal , as 1.200",
    "both_decimal_signs.csv": "all numbers of a table must have the same decimal sign; '2,20' in line 2 of column "
    "'erk' has a comma, '3.44' in line 2 of column 'akt' a point: use one decimal sign, or leave a column out by "
    "--drop erk or --drop akt",
    "below_detection.csv": f"{NOT_NUMBERS}'akt' holds numbers but '<0.1' in line 7: write a number there; --na '<0.1' "
    "counts it as missing, --categories akt takes the column as categories",
    "not_determined.csv": f"{NOT_NUMBERS}'erk' holds numbers but 'n.d.' in lines 3 and 9 and '?' in line 11: write a "
    "number there; --na 'n.d.,?' counts them as missing, --categories erk takes the column as categories",
    "spreadsheet_error.csv": f"{NOT_NUMBERS}'pka' holds numbers but '#DIV/0!' in line 4: write a number there; --na "
    "'#DIV/0!' counts it as missing, --categories pka takes the column as categories",
    "missing.csv": "every value must be present; 3 are missing, in 2 of 12 rows and 2 of 3 columns ('erk' in lines 4 "
    f"and 9; 'pka' in line 9): {DROP_OR_IMPUTE}",
    "same_name_twice.csv": "column names must differ; 'erk' appears more than once (columns 1 and 4)",
    "no_header.csv": "the header must hold the names of columns; line 1 of 'no_header.csv' holds numbers such as "
    "'2.20': add a line of names",
    "no_name.csv": "every column must have a name; column 4 has none: if it is a row index, --drop '' leaves it out",
    "mixed.csv": "the BGe score needs numbers; column 'sex' holds text such as 'f': --drop sex leaves it out, or "
    "--score cg and --score gp take both",
    "constant.csv": "every column must vary; column 'batch' is constant: --drop batch leaves it out",
    "dates.csv": "columns must hold numbers or categories; column 'day' holds dates such as '01.03.2021': --drop day "
    "leaves it out",
    "units.csv": f"{NOT_NUMBERS}'akt' holds numbers but '2.5 mg' in line 2, '3.5 mg' in line 3 and '4.5 mg' in line 4: "
    "write a number there; --na '2.5 mg,3.5 mg,4.5 mg' counts them as missing, --categories akt takes the column as "
    "categories",
    "ragged.csv": "no row may have more fields than the header; line 7 of 'ragged.csv' has 4, not 3",
    "decimal_commas_between_commas.csv": "decimal_commas_between_commas.csv has more fields in its rows than names in "
    "its header: 6, not 3 (decimal commas? then separate the fields by semicolons)",
    "short_row.csv": "every value must be present; 2 are missing, in 1 of 13 rows and 2 of 3 columns ('akt' in line 7; "
    "'pka' in line 7): --missing drop drops the row; for sampling, --missing impute draws the values along with the "
    "networks",
    "empty_column.csv": "every value must be present; column 'later' has 12 missing, all of them: --drop later "
    "leaves it out",
    "infinite.csv": "every value must be finite; column 'pka' holds an infinite value (line 6): --na inf,-inf counts "
    "such values as missing",
    "quoted_european.csv": "the BGe score needs numbers; column 'grade, \"WHO\"' holds text such as 'high': --drop "
    '\'"grade, ""WHO"""\' leaves it out, or --score cg and --score gp take both',
    "huge_numbers.csv": "a row number or an identifier is no variable; column 'barcode' holds a different whole number "
    "in every row: --drop barcode leaves it out, --kinds barcode=number keeps it",
    "stages.csv": f"{NOT_NUMBERS}'erk' holds numbers but '3a' in lines 4, 8 and 12 and '3b' in lines 5, 9 and 13: "
    "write a number there; --na 3a,3b counts them as missing, --categories erk takes the column as categories",
    "open_quote.csv": "open_quote.csv can't be read as a CSV table: a quotation mark in line 5 is never closed",
    "several_problems.csv": "a table must hold complete columns of numbers or categories that vary; received one with "
    "6 problems:\n"
    f"  2 are missing, in 2 of 12 rows and 1 of 6 columns ('erk' in lines 4 and 9): {DROP_OR_IMPUTE}\n"
    "  column 'akt' holds numbers but '<0.1' in line 7: write a number there; --na '<0.1' counts it as missing, "
    "--categories akt takes the column as categories\n"
    "  column 'pka' holds an infinite value (line 11): --na inf,-inf counts such values as missing\n"
    "  column 'day' holds dates such as '01.03.2021': --drop day leaves it out\n"
    "  column 'batch' is constant: --drop batch leaves it out\n"
    "  column 'id' holds a different text in every row: --drop id leaves it out, --kinds id=category keeps it",
    "empty.csv": "the data file must hold a table; 'empty.csv' is empty",
    "only_commas.csv": "the data file must hold a table; 'only_commas.csv' is empty",
    "document.csv": "the data file must hold a table; 'document.csv' is a PDF document",
    "old_excel.xls": "the data file must hold a table; 'old_excel.xls' is an old Excel file (.xls); save it as .xlsx "
    "or CSV",
    "binary.csv": "the data file must hold a table; 'binary.csv' isn't text",
}


@pytest.fixture
def written(tmp_path):
    """Return a function that writes one of the files and returns its path."""

    def write(name):
        path = tmp_path / name
        path.write_bytes(content(name))
        return path

    return write


def estimate(capsys, tmp_path, path, *options):
    given = ["--score", "bge", *options] if "--score" not in options else options
    return call(capsys, "estimate", path, "--method", "hc", "--out", tmp_path / "out", "--quiet", *given)


def test_every_file_is_tried():
    assert READ.keys() | REFUSED.keys() == FILES.keys()


@pytest.mark.parametrize("name", READ)
def test_what_is_read_and_said(name, written, tmp_path, capsys):
    said, options = READ[name]
    code, _, messages = estimate(capsys, tmp_path, written(name), *options)
    assert code == 0
    columns = len(NAMES) + (name == "percent.csv")
    assert messages == (f"read {name}: {said}; {ROWS} rows, {columns} columns\n" if said else "")
    found = read_estimate(tmp_path / "out")[1]
    assert (found["rows"], len(found["variables"])) == (ROWS, columns)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_and_how(name, written, tmp_path, capsys):
    score = ["--score", "bdeu"] if name == "stages.csv" else []
    code, shown, messages = estimate(capsys, tmp_path, written(name), *score)
    assert (code, shown) == (2, "")
    if name == "quoted_european.csv":
        reading, _, messages = messages.partition("\n")
        assert reading == f"read {name}: semicolons, decimal comma; {ROWS} rows, 4 columns"
    assert messages == f"error: {REFUSED[name]}\n"
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    "name",
    ["semicolons.csv", "decimal_commas.csv", "tabs.tsv", "bars.txt", "utf8_mark.csv", "utf16_of_excel.txt"]
    + ["old_mac.csv", "utf16_without_mark.csv", "excel.xlsx", "several_sheets.xlsx", "trailing_commas.csv"]
    + ["empty_rows.csv", "index_of_pandas.csv", "row_names_of_r.csv", "title.csv", "comments.csv"],
)  # fmt: skip
def test_the_same_table_is_the_same_in_any_file(name, written):
    assert Dataset.read(written(name)).fingerprint == Dataset.read(written("plain.csv")).fingerprint


REPAIRS = {
    "below_detection.csv": (["--na", "<0.1", "--missing", "drop"], (11, 3)),
    "not_determined.csv": (["--na", "n.d.,?", "--missing", "drop"], (9, 3)),
    "missing.csv": (["--missing", "drop"], (10, 3)),
    "minus_99.csv": (["--na", "-99", "--missing", "drop"], (10, 3)),
    "both_decimal_signs.csv": (["--drop", "erk"], (12, 2)),
    "thousands_or_decimals.csv": (["--decimal", "."], (12, 3)),
    "no_name.csv": (["--drop", ""], (12, 3)),
    "mixed.csv": (["--drop", "sex"], (12, 3)),
    "constant.csv": (["--columns", "pka,erk"], (12, 2)),
    "dates.csv": (["--drop", "day"], (12, 3)),
    "percent.csv": (["--columns", "erk, akt"], (12, 2)),
    "empty_column.csv": (["--drop", "later"], (12, 3)),
    "infinite.csv": (["--na", "inf,-inf", "--missing", "drop"], (11, 3)),
    "quoted_european.csv": (["--drop", '"grade, ""WHO"""'], (12, 3)),
    "huge_numbers.csv": (["--drop", "barcode"], (12, 3)),
    "several_problems.csv": (["--drop", "batch,day,id", "--na", "<0.1,inf", "--missing", "drop"], (8, 3)),
}


@pytest.mark.parametrize("name", REPAIRS)
def test_what_is_advised_helps(name, written, tmp_path, capsys):
    options, size = REPAIRS[name]
    code, _, messages = estimate(capsys, tmp_path, written(name), *options)
    assert code == 0, messages
    found = read_estimate(tmp_path / "out")[1]
    assert (found["rows"], len(found["variables"])) == size
    dropped = (ROWS - size[0]) if "--missing" in options else 0
    assert found["rows_dropped"] == dropped
    assert (f"dropped {dropped} of {ROWS} rows with missing values\n" in messages) == bool(dropped)


@pytest.mark.parametrize("score", ["bdeu", "k2"])
def test_mixed_tables_are_told_of_discretising_which_helps(score, written, tmp_path, capsys):
    code, _, messages = estimate(capsys, tmp_path, written("mixed.csv"), "--score", score)
    assert code == 2
    assert "--discretise 3 cuts" in messages
    assert estimate(capsys, tmp_path, written("mixed.csv"), "--score", score, "--discretise", 3)[0] == 0


@pytest.mark.parametrize("score", ["cg", "bic"])
def test_mixed_tables_have_scores_of_their_own(score, written, tmp_path, capsys):
    assert estimate(capsys, tmp_path, written("mixed.csv"), "--score", score)[0] == 0


def changed_sheet(path, change):
    """Write a file of Excel, one part of which is changed."""
    with zipfile.ZipFile(io.BytesIO(sheet(cells()))) as whole, zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name in whole.namelist():
            file.writestr(name, change(whole.read(name)) if name.endswith("sheet1.xml") else whole.read(name))
    return path


def test_a_cell_in_an_impossible_row_is_refused(tmp_path):
    """All rows above it would be made, empty ones."""
    path = changed_sheet(tmp_path / "table.xlsx", lambda text: text.replace(b'<row r="3"', b'<row r="99999999999"'))
    with pytest.raises(ValueError, match="^table.xlsx can't be read as an Excel file: a sheet must have 1,048,576"):
        Dataset.read(path)


def test_a_sheet_that_unpacks_to_too_much_is_refused_before_it_is_read(tmp_path):
    path = changed_sheet(tmp_path / "table.xlsx", lambda text: text + b" " * (110 << 20))
    assert path.stat().st_size < 1 << 20
    with pytest.raises(ValueError, match="^table.xlsx can't be read as an Excel file: its parts must unpack to 100 MB"):
        Dataset.read(path)

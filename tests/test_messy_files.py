"""Files as people have them, each beside the table it came from: read as that table, or refused with what to do.

`gpn.read_table`, `Dataset.read` and the command line see the same.
"""

import io
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import openpyxl
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes import Dataset
from gpn_bayes._util.extras import MissingPackage
from gpn_bayes.data import data_flags
from gpn_bayes.sampling.flags import in_options
from tests.command_line import call

pytestmark = pytest.mark.more("reads files that are messy in every way")

ROWS = 14
NAMES = ["Größe", "β-BMI", "share %", "sex (f/m)"]


def table() -> pd.DataFrame:
    rng = np.random.default_rng(8)
    sizes = rng.normal(1700, 90, ROWS).round(1)
    columns = [sizes, (sizes / 70 + rng.normal(size=ROWS)).round(2), rng.integers(5, 60, ROWS) + 0.5, ["f", "m"] * 7]
    return pd.DataFrame(dict(zip(NAMES, columns, strict=True)))


TRUE = table()
CELLS = [[str(cell) for cell in row] for row in TRUE.to_numpy(dtype=object)]


def text(rows: list[list[str]] = CELLS, names: list[str] = NAMES, sep: str = ",", end: str = "\n") -> str:
    return "".join(sep.join(row) + end for row in [names, *rows])


def changed(column: int, change: Callable[[str], str]) -> list[list[str]]:
    return [[change(cell) if place == column else cell for place, cell in enumerate(row)] for row in CELLS]


def with_commas(rows: list[list[str]] = CELLS) -> list[list[str]]:
    return [[cell.replace(".", ",") for cell in row] for row in rows]


def beside(name: str, cells: Callable[[int], str], first: bool = False) -> str:
    """Return the table with a column more."""
    rows = [[cells(n), *row] if first else [*row, cells(n)] for n, row in enumerate(CELLS)]
    return text(rows, [name, *NAMES] if first else [*NAMES, name])


def sheet(above: list[list[Any]] | None = None) -> bytes:
    book = openpyxl.Workbook()
    book.active.title = "Data"
    for row in [*(above or []), NAMES, *TRUE.to_numpy(dtype=object).tolist()]:
        book.active.append(row)
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def stored(write: str) -> bytes:
    content = io.BytesIO()
    getattr(TRUE, write)(content)
    return content.getvalue()


def grouped(cell: str, mark: str) -> str:
    whole, point, rest = cell.partition(".")
    return f"{whole[:-3]}{mark}{whole[-3:]}{point}{rest}"


class Read(NamedTuple):
    """A file that is read as the table it came from, and what is said of it."""

    content: Callable[[], str | bytes]
    said: str = ""
    settings: dict[str, Any] = {}


READ = {
    "plain.csv": Read(text),
    "semicolons.csv": Read(lambda: text(sep=";"), "semicolons"),
    "decimal_commas.csv": Read(lambda: text(with_commas(), sep=";"), "semicolons, decimal comma"),
    "bom.csv": Read(lambda: text().encode("utf-8-sig")),
    "latin_1.csv": Read(
        lambda: text(names=["Größe", "ß-BMI", *NAMES[2:]], end="\r\n").encode("latin-1"), "Windows-1252"
    ),
    "utf_16.txt": Read(lambda: text(with_commas(), sep="\t").encode("utf-16"), "tabs, UTF-16, decimal comma"),
    "tabs.tsv": Read(lambda: text(sep="\t"), "tabs"),
    "trailing_separators.csv": Read(
        lambda: text([[*row, "", ""] for row in CELLS], [*NAMES, "", ""]), "left out 2 empty columns"
    ),
    "thousands.csv": Read(
        lambda: text(changed(0, lambda cell: f'"{grouped(cell, ",")}"')), "thousands separators"
    ),
    "swiss_thousands.csv": Read(
        lambda: text(changed(0, lambda cell: grouped(cell, "’")), sep=";"), "semicolons, thousands separators"
    ),
    "percent_signs.csv": Read(lambda: text(changed(2, lambda cell: f"{cell} %")), "percent signs"),
    "percent_with_commas.csv": Read(
        lambda: text(with_commas(changed(2, lambda cell: f"{cell}%")), sep=";"),
        "semicolons, decimal comma, percent signs",
    ),
    "units_below_header.csv": Read(
        lambda: text([["mm", "kg/m²", "%", ""], *CELLS]), "left out line 2 of units"
    ),
    "units_in_brackets.csv": Read(
        lambda: text([["[mm]", "", "[%]", "[f/m]"], *CELLS]), "left out line 2 of units"
    ),
    "notes_below.csv": Read(
        lambda: text() + "Source: the clinic's books\n* without emergencies\n",
        "left out lines 16 and 17 below the table",
    ),
    "notes_apart.csv": Read(
        lambda: text([row[::-1] for row in CELLS], NAMES[::-1]) + "\nn = 14\n", "left out line 17 below the table",
        {"columns": NAMES},
    ),
    "title.csv": Read(lambda: "Table 2. Patients\n\n" + text(), "left out line 1 above the header"),
    "comments.csv": Read(
        lambda: "# exported 2021\n" + text() + "# end\n", "left out line 1 above the header, one line of comments"
    ),
    "blank_lines.csv": Read(lambda: text(end="\n\n")),
    "quoted_newlines.csv": Read(lambda: text(names=['"Größe"', '"β-BMI"', '"share\n%"', '"sex\r\n(f/m)"'])),
    "old_mac.csv": Read(lambda: text(end="\r")),
    "index_of_pandas.csv": Read(
        lambda: beside("", str, first=True), "left out the first column, which has no name and labels the rows"
    ),
    "excel.xlsx": Read(sheet, "sheet 'Data'"),
    "excel_with_title.xlsx": Read(
        lambda: sheet([["Patients of the clinic"], []]), "sheet 'Data'; left out row 1 above the header"
    ),
    "table.parquet": Read(lambda: stored("to_parquet")),
    "table.feather": Read(lambda: stored("to_feather")),
}  # fmt: skip


class Refused(NamedTuple):
    """A file that is refused: the message, and the settings that mend it; none where the file must be changed."""

    content: Callable[[], str | bytes]
    message: str
    mended: dict[str, Any] = {}


HEADERS = "the header must be one row of names; lines 1 and 2 of "
REFUSED = {
    "merged_header.csv": Refused(
        lambda: "Body,,Life,\n" + text(),
        HEADERS + "'merged_header.csv' both hold names: join them into one, with a name for each column",
    ),
    "repeated_header.csv": Refused(
        lambda: "Body,Body,Life,Life\n" + text(),
        HEADERS + "'repeated_header.csv' both hold names: join them into one, with a name for each column",
    ),
    "ids_of_text.csv": Refused(
        lambda: beside("code", lambda n: f"P-{n * 7:03}"),
        "a row number or an identifier is no variable; column 'code' holds a different text in every row: "
        "gpn.Table(data, drop=['code']) leaves it out, gpn.Table(data, kinds={'code': 'category'}) keeps it",
        {"drop": ["code"]},
    ),
    "ids_of_numbers.csv": Refused(
        lambda: beside("Patient No.", lambda n: str(40213 + 17 * n % 23), first=True),
        "a row number or an identifier is no variable; column 'Patient No.' holds a different whole number in every "
        "row: gpn.Table(data, drop=['Patient No.']) leaves it out, gpn.Table(data, kinds={'Patient No.': "
        "'number'}) keeps it",
        {"drop": ["Patient No."]},
    ),
    "dates.csv": Refused(
        lambda: beside("day", lambda n: f"{n + 1:02}/03/2021"),
        "columns must hold numbers or categories; column 'day' holds dates such as '01/03/2021': gpn.Table(data, "
        "drop=['day']) leaves it out",
        {"drop": ["day"]},
    ),
    "empty_column.csv": Refused(
        lambda: beside("later", lambda n: ""),
        "every value must be present; column 'later' has 14 missing, all of them: gpn.Table(data, drop=['later']) "
        "leaves it out",
        {"drop": ["later"]},
    ),
    "constant_columns.csv": Refused(
        lambda: text([[*row, "7", "EU"] for row in CELLS], [*NAMES, "batch", "region"]),
        "every column must vary; columns 'batch', 'region' are constant: gpn.Table(data, drop=['batch', 'region']) "
        "leaves them out",
        {"drop": ["batch", "region"]},
    ),
    "same_name_twice.csv": Refused(
        lambda: beside("share %", lambda n: str(n % 5)),
        "column names must differ; 'share %' appears more than once (columns 3 and 5)",
    ),
    "units_in_cells.csv": Refused(
        lambda: text(changed(0, lambda cell: f"{cell} mm")),
        "numbers must be written without units; column 'Größe' holds texts such as '1543.6 mm': write the numbers "
        "alone; gpn.Table(data, kinds={'Größe': 'category'}) takes the texts as categories",
    ),
    "two_decimal_signs.csv": Refused(
        lambda: text([[with_commas([row])[0][0], *row[1:]] for row in CELLS], sep=";"),
        "all numbers of a table must have the same decimal sign; '1543,6' in line 2 of column 'Größe' has a comma, ",
    ),
    "no_header.csv": Refused(
        lambda: "".join(",".join(row) + "\n" for row in CELLS),
        "the header must hold the names of columns; line 1 of 'no_header.csv' holds numbers such as '1543.6': add a "
        "line of names",
    ),
    "mean_below.csv": Refused(
        lambda: text() + "Mean,24.3,31.5,\n",
        "a table must hold complete columns of numbers or categories that vary; received one with 2 problems:",
    ),
    "ragged.csv": Refused(
        lambda: text([*CELLS[:5], [*CELLS[5], "see notes"], *CELLS[6:]]),
        "no row may have more fields than the header; line 7 of 'ragged.csv' has 5, not 4",
    ),
}

SETTINGS = ("sep", "decimal", "encoding", "sheet", "na", "columns", "drop")


@pytest.fixture
def written(tmp_path):
    def write(name, case):
        content = case.content()
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    return write


def expected_of(name) -> pd.DataFrame:
    return TRUE.rename(columns={"β-BMI": "ß-BMI"}) if name == "latin_1.csv" else TRUE


def options_of(settings) -> list[str]:
    return [
        part
        for name, value in settings.items()
        for part in (f"--{name}", ",".join(value) if isinstance(value, list) else str(value))
    ]


def on_command_line(capsys, tmp_path, path, settings):
    return call(
        capsys, "estimate", path, "--method", "hc", "--score", "cg", "--out", tmp_path / "out", "--quiet",
        *options_of(settings),
    )  # fmt: skip


def test_there_are_more_than_twenty():
    assert len(READ) + len(REFUSED) >= 20


@pytest.mark.parametrize("name", READ)
def test_what_is_read_is_the_table_it_came_from(name, written, tmp_path, capsys):
    case = READ[name]
    path = written(name, case)
    line = f"read {name}: {case.said}; {ROWS} rows, {len(NAMES)} columns\n" if case.said else ""
    frame = gpn.read_table(path, **case.settings)
    assert capsys.readouterr() == ("", line)
    pd.testing.assert_frame_equal(frame, expected_of(name))
    fingerprint = Dataset.read(expected_of(name)).fingerprint
    assert Dataset.read(path, **case.settings).fingerprint == Dataset.read(frame).fingerprint == fingerprint
    code, _, messages = on_command_line(capsys, tmp_path, path, case.settings)
    assert (code, messages) == (0, line)


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_what_to_do(name, written, tmp_path, capsys):
    case = REFUSED[name]
    path = written(name, case)
    with pytest.raises(ValueError) as error:
        Dataset.read(path)
    assert str(error.value).startswith(case.message)
    code, shown, messages = on_command_line(capsys, tmp_path, path, {})
    assert (code, shown) == (2, "")
    assert messages.startswith(f"error: {in_options(case.message)}")
    if not case.message.endswith("problems:"):
        assert messages.count("\n") == 1
    if case.mended:
        fingerprint = Dataset.read(TRUE).fingerprint
        assert Dataset.read(path, **case.mended).fingerprint == fingerprint
        pd.testing.assert_frame_equal(gpn.read_table(path, **case.mended), TRUE)
        assert on_command_line(capsys, tmp_path, path, case.mended)[0] == 0


# What stands for a missing value


@pytest.mark.parametrize(("code", "known"), [("n/a", True), ("", True), ("n.d.", False), ("-999", False)])
def test_codes_of_missing_values(code, known, written, capsys, tmp_path):
    rows = [list(row) for row in CELLS]
    rows[3][1], rows[8][1] = code, code
    path = written("codes.csv", Read(lambda: text(rows)))
    settings = {} if known else {"na": code}
    frame = gpn.read_table(path, **settings)
    assert frame["β-BMI"].isna().to_numpy().nonzero()[0].tolist() == [3, 8]
    pd.testing.assert_frame_equal(frame.dropna(), TRUE.drop(index=[3, 8]))
    data = Dataset.read(path, missing="drop", **settings)
    assert data.rows_dropped == 2
    assert data.fingerprint == Dataset.read(TRUE.drop(index=[3, 8])).fingerprint
    assert on_command_line(capsys, tmp_path, path, {**settings, "missing": "drop"})[0] == 0
    if code == "-999":  # a number, which a run takes for one but remarks on
        (flag,) = [flag for flag in data_flags(Dataset.read(path), numbers=True) if flag.kind == "sentinel"]
        assert flag.columns == ("β-BMI",)
    else:
        code_, _, messages = on_command_line(capsys, tmp_path, path, {"out": tmp_path / "other"})
        assert code_ == 2 and messages.count("\n") == 1 and "lines 5 and 10" in messages


def test_missing_values_leave_whole_numbers_and_truth_values_what_they_are(written, capsys):
    visits = ["3", "", *map(str, range(4, ROWS + 2))]
    treated = ["TRUE", "FALSE", "", *["TRUE"] * (ROWS - 3)]
    rows = [[*row, *more] for row, more in zip(CELLS, zip(visits, treated, strict=True), strict=True)]
    frame = gpn.read_table(written("gaps.csv", Read(lambda: text(rows, [*NAMES, "visits", "treated"]))))
    assert frame["visits"].dtype == "Int64" and frame["treated"].dtype == "boolean"
    assert frame["visits"].isna().sum() == frame["treated"].isna().sum() == 1


@pytest.mark.parametrize(("yes", "no"), [("yes", "no"), ("Ja", "Nein"), ("Y", "N"), ("TRUE", "FALSE")])
def test_truth_values_beside_numbers(yes, no, written, capsys, tmp_path):
    path = written("truth.csv", Read(lambda: beside("treated", lambda n: yes if n % 3 else no)))
    kind, levels = ("integer", (False, True)) if yes == "TRUE" else ("categorical", tuple(sorted((yes, no))))
    data = Dataset.read(path)
    assert (data.kinds[-1], data.levels[-1]) == (kind, levels)
    assert on_command_line(capsys, tmp_path, path, {})[0] == 0


# A row without numbers below the header isn't always one of units.


@pytest.mark.parametrize("cell", ["n.d.", "?", "<0.1", "NA"])
def test_a_patient_of_whom_nothing_is_known_is_no_row_of_units(cell, written):
    path = written("unknown.csv", Read(lambda: text([[cell, cell, cell, "f"], *CELLS])))
    assert len(gpn.read_table(path)) == ROWS + 1


def test_a_short_row_among_texts_is_no_note(written):
    path = written("short.csv", Read(lambda: text([row[::-1] for row in CELLS] + [["m"]], NAMES[::-1])))
    assert len(gpn.read_table(path)) == ROWS + 1


# Names


def test_odd_names_work_from_the_file_to_the_question(written, capsys, tmp_path):
    path = written("plain.csv", READ["plain.csv"])
    out = tmp_path / "out"
    code, _, messages = call(
        capsys, "run", path, "--score", "cg", "--out", out, "--quiet", "--draws", 50,
        "--required", '"sex (f/m)" -> "share %"', "--forbidden", "sex (f/m) -> Größe",
    )  # fmt: skip
    assert code == 0, messages
    asked = ["Größe -> β-BMI", '"Größe" -> "β-BMI"', "'share %' - 'β-BMI'", '"sex (f/m)"->"share %"']
    code, shown, messages = call(capsys, "query", out / "posterior.nc", *asked)
    assert code == 0, messages
    answers = [line.split() for line in shown.splitlines() if line.strip()]
    assert answers[0] == answers[1] and answers[3][-2] == "1.0000"
    page = (out / "report.html").read_text(encoding="utf-8")
    assert all(name in page for name in NAMES)


# What isn't installed


def test_excel_names_its_extra(written, monkeypatch, capsys, tmp_path):
    path = written("excel.xlsx", READ["excel.xlsx"])
    monkeypatch.setitem(sys.modules, "openpyxl", None)
    message = 'openpyxl must be installed; use pip install "gpn_bayes[excel]"'
    with pytest.raises(MissingPackage) as refused:
        gpn.read_table(path)
    assert str(refused.value) == message
    assert on_command_line(capsys, tmp_path, path, {})[::2] == (2, f"error: {message}\n")


def test_feather_names_its_extra(written, monkeypatch):
    path = written("table.feather", READ["table.feather"])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingPackage, match=r'^pyarrow must be installed; use pip install "gpn_bayes\[parquet\]"$'):
        gpn.read_table(path)


def test_feather_by_another_name_is_recognised(written):
    path = written("table.csv", READ["table.feather"])
    with pytest.raises(ValueError, match="'table.csv' is a Feather file; give it the ending .feather$"):
        gpn.read_table(path)


def test_a_file_must_exist():
    with pytest.raises(ValueError, match="^the data file must exist; 'nowhere.csv' is not a file$"):
        gpn.read_table("nowhere.csv")

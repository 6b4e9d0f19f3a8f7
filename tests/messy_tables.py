"""Tables as people have them: files of every make, written by code."""

import io
from collections.abc import Callable
from datetime import date

import numpy as np
import openpyxl

NAMES = ["erk", "akt", "pka"]
ROWS = 12


def numbers() -> list[list[str]]:
    """Return a plain table of numbers as it is written in files, row by row."""
    rng = np.random.default_rng(5)
    erk = rng.normal(3, 1, ROWS)
    values = np.column_stack([erk, 2 * erk + rng.normal(size=ROWS), rng.normal(5, 2, ROWS)])
    return [[f"{value:.2f}" for value in row] for row in values]


def written(rows: list[list[str]], names: list[str] = NAMES, sep: str = ",", end: str = "\n") -> str:
    return "".join(sep.join(row) + end for row in [names, *rows])


def with_cells(cells: dict[tuple[int, str], str]) -> str:
    """Return the plain table with other texts in some cells, given by their line and column."""
    rows = numbers()
    for (line, name), text in cells.items():
        rows[line - 2][NAMES.index(name)] = text
    return written(rows)


def with_column(name: str, texts: list[str], first: bool = False) -> str:
    """Return the plain table with one column more."""
    rows = [[text, *row] if first else [*row, text] for text, row in zip(texts, numbers(), strict=True)]
    return written(rows, [name, *NAMES] if first else [*NAMES, name])


def with_comma(rows: list[list[str]]) -> list[list[str]]:
    return [[cell.replace(".", ",") for cell in row] for row in rows]


def several_problems() -> str:
    rows = [
        [f"P{number:03}", *row, "1", day]
        for number, (row, day) in enumerate(zip(numbers(), days(), strict=True), start=1)
    ]
    rows[2][1], rows[7][1], rows[5][2], rows[9][3] = "", "NA", "<0.1", "inf"
    return written(rows, ["id", *NAMES, "batch", "day"])


def days() -> list[str]:
    return [f"{number + 1:02}.03.2021" for number in range(ROWS)]


def sheet(rows: list[list], more: tuple[str, ...] = ()) -> bytes:
    """Return an Excel file with a sheet called Cells, and further sheets that hold nothing of use."""
    book = openpyxl.Workbook()
    book.active.title = "Cells"
    for row in rows:
        book.active.append(row)
    for title in more:
        book.create_sheet(title).append(["notes"])
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def cells() -> list[list]:
    return [list(NAMES), *([float(cell) for cell in row] for row in numbers())]


def sheet_with(cell: str, value: object) -> bytes:
    book = openpyxl.load_workbook(io.BytesIO(sheet(cells())))
    book.active[cell] = value
    content = io.BytesIO()
    book.save(content)
    return content.getvalue()


def in_words(sep: str = ",") -> str:
    rows = [
        [*row, text] for row, text in zip(with_comma(numbers()), ['"low; late"', "high"] * (ROWS // 2), strict=True)
    ]
    return written(rows, [*NAMES, '"grade, ""WHO"""'], sep)


FILES: dict[str, Callable[[], str | bytes]] = {
    "plain.csv": lambda: written(numbers()),
    "semicolons.csv": lambda: written(numbers(), sep=";"),
    "decimal_commas.csv": lambda: written(with_comma(numbers()), sep=";"),
    "tabs.tsv": lambda: written(numbers(), sep="\t"),
    "bars.txt": lambda: written(numbers(), sep="|"),
    "spaces.txt": lambda: written(numbers(), sep=" "),
    "utf8_mark.csv": lambda: written(numbers()).encode("utf-8-sig"),
    "utf16_of_excel.txt": lambda: written(with_comma(numbers()), sep="\t").encode("utf-16"),
    "utf16_without_mark.csv": lambda: written(numbers()).encode("utf-16-le"),
    "windows.csv": lambda: written(with_comma(numbers()), ["Größe", "akt", "pka"], ";", "\r\n").encode("cp1252"),
    "old_mac.csv": lambda: written(numbers(), end="\r"),
    "excel.xlsx": lambda: sheet(cells()),
    "several_sheets.xlsx": lambda: sheet(cells(), ("Notes", "Plan")),
    "excel_text_numbers.xlsx": lambda: sheet_with("B4", "5,25"),
    "excel_error.xlsx": lambda: sheet_with("B4", "#DIV/0!"),
    "excel_dates.xlsx": lambda: sheet(
        [[*row, "day" if n == 0 else date(2021, 3, n)] for n, row in enumerate(cells())]
    ),
    "trailing_commas.csv": lambda: written(
        [*([*row, "", ""] for row in numbers()), [""] * 5, [""] * 5], [*NAMES, "", ""]
    ),
    "empty_rows.csv": lambda: written([[], *numbers()[:4], ["", "", ""], *numbers()[4:], []]),
    "quoted_thousands.csv": lambda: with_cells({(2, "erk"): '"1,234.5"', (5, "akt"): '"12,345"'}),
    "thousands_or_decimals.csv": lambda: written(
        [[f'"{1 + n},{200 + 37 * n}"', str(n % 5), str(n * n)] for n in range(ROWS)]
    ),
    "both_decimal_signs.csv": lambda: written(
        [[with_comma([row])[0][0], *row[1:]] for row in numbers()], sep=";"
    ),
    "below_detection.csv": lambda: with_cells({(7, "akt"): "<0.1"}),
    "not_determined.csv": lambda: with_cells({(3, "erk"): "n.d.", (9, "erk"): "n.d.", (11, "erk"): "?"}),
    "spreadsheet_error.csv": lambda: with_cells({(4, "pka"): "#DIV/0!"}),
    "missing.csv": lambda: with_cells({(4, "erk"): "", (9, "erk"): "NA", (9, "pka"): "N/A"}),
    "minus_99.csv": lambda: with_cells({(4, "erk"): "-99", (9, "pka"): "-99"}),
    "same_name_twice.csv": lambda: written([[*row, row[0]] for row in numbers()], [*NAMES, "erk"]),
    "no_header.csv": lambda: "".join(",".join(row) + "\n" for row in numbers()),
    "index_of_pandas.csv": lambda: with_column("", [str(n) for n in range(ROWS)], first=True),
    "row_names_of_r.csv": lambda: with_column('""', [f'"cell {n}"' for n in range(ROWS)], first=True),
    "no_name.csv": lambda: with_column("", [str(n % 5 + 0.5) for n in range(ROWS)]),
    "mixed.csv": lambda: with_column("sex", ["f", "m", "m"] * (ROWS // 3)),
    "constant.csv": lambda: with_column("batch", ["7"] * ROWS),
    "dates.csv": lambda: with_column("day", days()),
    "percent.csv": lambda: with_column("share", [f"{4 * n % 31}%" for n in range(ROWS)]),
    "units.csv": lambda: with_cells({(line, "akt"): f"{line}.5 mg" for line in (2, 3, 4)}),
    "title.csv": lambda: "Table 1. Cells of donor 7\n\n" + written(numbers()),
    "comments.csv": lambda: "# made by the cytometer\n# at 37 degrees\n" + written(numbers()) + "# end\n",
    "ragged.csv": lambda: written([*numbers()[:5], ["1.5", "2.5", "3.5", "4.5"], *numbers()[5:]]),
    "decimal_commas_between_commas.csv": lambda: written(with_comma(numbers())),
    "short_row.csv": lambda: written([*numbers()[:5], ["1.5"], *numbers()[5:]]),
    "empty_column.csv": lambda: with_column("later", [""] * ROWS),
    "infinite.csv": lambda: with_cells({(6, "pka"): "inf"}),
    "quoted_european.csv": lambda: in_words(";"),
    "huge_numbers.csv": lambda: with_column("barcode", [str(10**20 + n) for n in range(ROWS)]),
    "yes_no.csv": lambda: written(
        [[("yes", "no")[n % 2], ("no", "yes")[n % 3 == 0], "ab"[n % 4 < 2]] for n in range(ROWS)]
    ),
    "stages.csv": lambda: written(
        [[("1", "2", "3a", "3b")[n % 4], "ab"[n % 3 == 0], "cd"[n % 2]] for n in range(ROWS)]
    ),
    "open_quote.csv": lambda: with_cells({(5, "akt"): '"3.5'}),
    "several_problems.csv": several_problems,
    "empty.csv": lambda: "",
    "only_commas.csv": lambda: ",,,\n,,,\n",
    "document.csv": lambda: b"%PDF-1.7\n%\xe2\xe3\xcf\xd3\n1 0 obj\n",
    "old_excel.xls": lambda: b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
    "binary.csv": lambda: bytes(range(256)) * 4,
}  # fmt: skip


def content(name: str) -> bytes:
    """Return what stands in one of the files."""
    made = FILES[name]()
    return made if isinstance(made, bytes) else made.encode("utf-8")

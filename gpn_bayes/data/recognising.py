"""Which encoding a text file has, and what separates its fields."""

import codecs
import csv
import io
import re
from collections import Counter
from itertools import islice
from pathlib import Path

from gpn_bayes.data.notation import is_number
from gpn_bayes.data.problems import argument

SEPARATORS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "vertical bars"}
_MARKS = {
    codecs.BOM_UTF8: ("utf-8-sig", "UTF-8"),
    codecs.BOM_UTF32_LE: ("utf-32", "UTF-32"),  # before UTF-16, whose mark it begins with
    codecs.BOM_UTF32_BE: ("utf-32", "UTF-32"),
    codecs.BOM_UTF16_LE: ("utf-16", "UTF-16"),
    codecs.BOM_UTF16_BE: ("utf-16", "UTF-16"),
}
# Files that begin like this aren't text, whatever their name.
_FORMATS = {
    b"%PDF": "a PDF document",
    b"\xd0\xcf\x11\xe0": "an old Excel file (.xls); save it as .xlsx or CSV",
    b"\x1f\x8b": "compressed (gzip); unpack it first",
    b"PAR1": "a Parquet file; give it the ending .parquet",
    b"ARROW1": "a Feather file; give it the ending .feather",
    b"{\\rtf": "a text document (RTF); save it as plain text",
    b"\x89PNG": "a picture",
}
_CONTROL = re.compile("[\x00-\x08\x0e-\x19\x1b-\x1f]")
_LOOKED_AT = 200  # records that separators are compared on


def decode(path: Path, encoding: str | None) -> tuple[str, str]:
    """Return the text of a file and the name of its encoding.

    By default the encoding is that of the byte order mark, UTF-8 if the file is valid UTF-8, UTF-16 if every second
    byte is zero, and Windows-1252 otherwise.

    Raises
    ------
    ValueError
        If the file isn't text, or isn't in the encoding that was given.
    """
    content = path.read_bytes()
    for start, what in _FORMATS.items():
        if content.startswith(start):
            raise ValueError(f"the data file must hold a table; {path.name!r} is {what}")
    codec, name = (encoding, encoding) if encoding is not None else _encoding_of(content)
    try:
        text = content.decode(codec)
    except LookupError:
        raise ValueError(f"encoding must be one that Python knows, such as 'cp1252'; received {encoding!r}") from None
    except UnicodeDecodeError as error:
        if b"\0" in content and encoding is None:
            raise ValueError(f"the data file must hold a table; {path.name!r} isn't text") from None
        line = content.count(b"\n", 0, error.start) + 1
        raise ValueError(
            f"a text file must be in one encoding; line {line} of {path.name!r} isn't {name}: name it, such as "
            f"{argument('encoding', 'mac-roman')}"
        ) from None
    if _CONTROL.search(text):
        raise ValueError(f"the data file must hold a table; {path.name!r} isn't text")
    return text.removeprefix("\ufeff"), name


def _encoding_of(content: bytes) -> tuple[str, str]:
    for mark, encoding in _MARKS.items():
        if content.startswith(mark):
            return encoding
    try:
        content.decode("utf-8")
    except UnicodeDecodeError:
        pass
    else:
        if b"\0" not in content:
            return "utf-8", "UTF-8"
    start = content[:2000]
    for codec, zeros in (("utf-16-le", start[1::2]), ("utf-16-be", start[::2])):
        if zeros.count(0) * 2 > len(zeros):
            return codec, "UTF-16"
    return "cp1252", "Windows-1252"


def records(text: str, sep: str) -> list[list[str]]:
    """Return the records of a text, blank lines too, so that their numbers are those of a spreadsheet's rows.

    Raises
    ------
    ValueError
        If a quotation mark is opened and never closed.
    """
    if sep == " ":
        text = re.sub(r"^ +| +$", "", re.sub(" +", " ", text), flags=re.MULTILINE)
    try:
        return _records(text, sep, strict=True)
    except csv.Error as error:
        unfinished = "end of data" in str(error)
    try:
        rows = _records(text, sep, strict=False)  # where something stands behind a closing quotation mark
    except csv.Error as error:
        raise ValueError(str(error)) from None
    if unfinished:
        raise ValueError(f"a quotation mark in line {len(rows)} is never closed")
    return rows


def _records(text: str, sep: str, strict: bool) -> list[list[str]]:
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=sep, skipinitialspace=sep != " ", strict=strict)
    return [[field.strip() for field in fields] for fields in lines]


def find_separator(text: str) -> str:
    """Return what separates the fields: a comma, a semicolon, a tab or a vertical bar.

    That is the sign which gives most records the same number of fields, at least two, then the one that leaves most
    numbers; a comma where there is none.

    Raises
    ------
    ValueError
        If two do equally well.
    """
    start = "".join(islice(io.StringIO(text, newline=""), _LOOKED_AT))
    qualities = {}
    for sep in SEPARATORS:
        rows = [row for row in _records(start, sep, strict=False) if any(row)]
        widths = Counter(map(len, rows))
        # Ties go to the wider: a title stands above a header.
        width = max(widths, key=lambda width: (widths[width], width), default=0)
        if width > 1:
            cells = [field for row in rows[1:] for field in row if field]
            qualities[sep] = (widths[width] / len(rows), sum(map(is_number, cells)) / max(len(cells), 1))
    if not qualities:
        return ","
    best = max(qualities.values())
    chosen = [sep for sep in qualities if qualities[sep] == best]
    if len(chosen) > 1:
        both = " and ".join(SEPARATORS[sep] for sep in chosen[:2])
        ways = " or ".join(argument("sep", sep) for sep in chosen[:2])
        raise ValueError(f"a table's fields must be separated by one character; received {both}: choose by {ways}")
    return chosen[0]

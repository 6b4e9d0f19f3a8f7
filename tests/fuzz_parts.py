"""Nearly valid content that several fuzzed readers get."""

import json
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

# Nearly valid parts.

NUMBERS = st.sampled_from(
    [0, 1, 2, -1, 3, 255, 2**31 - 1, 2**31, -(2**63), 2**63 - 1, 2**64, 10**30, 10**400, 0.5, -0.0, 1e308, 1e-320]
    + [float("nan"), float("inf"), -float("inf")]
)  # fmt: skip
TEXTS = st.one_of(
    st.sampled_from(["", "a", "b", "x0", "statistics", "notears", "linear", "\0", "\n", "é", "\ud800", "a" * 3000]),
    st.text(max_size=8),
)
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=4), st.dictionaries(TEXTS, inner, max_size=4)),
    max_leaves=12,
)
DTYPES = st.sampled_from(
    ["<f8", "<f4", "<i8", "<i4", "|i1", "|u1", "<u8", "|b1", "<c16", "<U3", "|S2", "<M8[s]", "|V3"]
)
DIMENSIONS = st.sampled_from([0, 1, 2, 3, 4, 5, 60, 100])
HUGE = st.sampled_from([2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1])


@st.composite
def arrays(draw: Any) -> np.ndarray:
    """Return arrays of any type and small shape, with numbers that no run leaves among them."""
    dtype, shape = np.dtype(draw(DTYPES)), tuple(draw(st.lists(DIMENSIONS, max_size=3)))
    size = int(np.prod(shape)) if np.prod(shape) < 10**5 else 0
    raw = np.random.default_rng(draw(st.integers(0, 2**32))).bytes(size * dtype.itemsize)
    if dtype.kind in "fc" and draw(st.booleans()):
        return np.full(shape if size else (0,), draw(st.sampled_from([0.0, 1.0, np.nan, np.inf, -1e38])), dtype)
    if dtype.kind == "U":
        return np.full(shape if size else (0,), draw(st.sampled_from(["", "a", "bb", "\0x"])), dtype)
    return np.frombuffer(raw, dtype).reshape(shape if size else (0,))


def dumped(value: Any) -> str:
    """Return JSON as the standard library writes it, or deeper than it reads."""
    return json.dumps(value)


def deep(strategy: Any) -> Any:
    """Return JSON of a strategy's values, and some that is nested too deeply or broken."""
    broken = st.sampled_from(["", "[" * 100_000, '{"a":' * 50_000, "{", '{"a": 1,}', "NaN", "1" * 5000, '"\\ud800"'])
    return st.one_of(strategy.map(dumped), strategy.map(dumped), broken)


def in_file(name: str, read: Callable[[Path], Any]) -> Callable[[bytes, Path], Any]:
    """Return a reader of bytes from a reader of files."""

    def run(content: bytes, folder: Path) -> Any:
        path = folder / name
        path.write_bytes(content)
        return read(path)

    return run


def changed_sql(draw: Any, content: bytes, columns: dict[str, list[str]], folder: Path) -> bytes:
    """Return an SQLite file of which one column of one table holds something else."""
    path = folder / "changed.sqlite"
    path.write_bytes(content)
    table = draw(st.sampled_from(sorted(columns)))
    column = draw(st.sampled_from(columns[table]))
    value = draw(
        st.one_of(
            deep(JSON),
            st.binary(max_size=40),
            NUMBERS.filter(lambda number: isinstance(number, float) or -(2**63) <= number < 2**63),
            st.sampled_from([f"replace({column}, '<i8', '<f8')", f"substr({column}, 2)", f"{column} || {column}"]),
            st.sampled_from(["NULL", f"{column} + 1", f"-{column}", "zeroblob(1000)", f"upper({column})"]),
        )
    )
    where = draw(st.sampled_from(["", f" WHERE {column} = (SELECT min({column}) FROM {table})"]))
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        try:
            if isinstance(value, str) and ("(" in value[:9] or column in value or value == "NULL"):
                connection.execute(f"UPDATE OR IGNORE {table} SET {column} = {value}{where}")
            else:
                text = value.encode("utf-8", "replace").decode() if isinstance(value, str) else value
                connection.execute(f"UPDATE OR IGNORE {table} SET {column} = ?{where}", (text,))
            if draw(st.integers(0, 9)) == 0:
                connection.execute(draw(st.sampled_from([f"DROP TABLE {table}", f"DELETE FROM {table}"])))
        except sqlite3.Error:
            pass
    return path.read_bytes()

"""The readers that are fuzzed: what they accept, how they are called, and nearly valid content for each."""

import gzip
import io
import json
import warnings
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from tests.fuzzing import Target

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
DTYPES = st.sampled_from(["<f8", "<f4", "<i8", "<i4", "|i1", "|u1", "<u8", "|b1", "<c16", "<U3", "|S2", "<M8[s]", "|V3"])
DIMENSIONS = st.sampled_from([0, 1, 2, 3, 4, 5, 60, 100])
HUGE = st.sampled_from([2**31 - 1, 2**31, 2**32, 2**40, 2**62, 2**63 - 1])


@st.composite
def arrays(draw: Any) -> np.ndarray:
    """Return arrays of any type and small shape, with numbers that no run leaves among them."""
    dtype, shape = np.dtype(draw(DTYPES)), tuple(draw(st.lists(DIMENSIONS, max_size=3)))
    size = int(np.prod(shape)) if np.prod(shape) < 10**5 else 0
    raw = np.random.default_rng(draw(st.integers(0, 2**32))).bytes(size * dtype.itemsize)
    if dtype.kind in "fc" and draw(st.booleans()):
        return np.full(shape if size else (0,), draw(st.sampled_from([0.0, 1.0, np.nan, np.inf, -1e308])), dtype)
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


# Files of statistics and tables.


def _npy(array: np.ndarray, shape: tuple[int, ...] | None = None, descr: str | None = None) -> bytes:
    """Return an array as the bytes of a .npy file, whose header may lie about it."""
    header = {"descr": descr or array.dtype.str, "fortran_order": False, "shape": array.shape if shape is None else shape}
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + array.tobytes()


def statistics(folder: Path) -> Target:
    """Read statistics from an .npz file."""
    from gpn_bayes.data import SufficientStatistics

    rows = np.random.default_rng(1).normal(size=(30, 4)) @ (np.eye(4) + 0.3)
    whole = SufficientStatistics.of(rows)
    whole.save(folder / "whole.npz")
    parts = {"n": np.array(30), "mean": whole.mean, "cov": whole.cov, "names": np.array(whole.names)}

    @st.composite
    def changed(draw: Any) -> bytes:
        members = {name: _npy(array) for name, array in parts.items()}
        for name in draw(st.lists(st.sampled_from(sorted(parts)), min_size=1, max_size=2)):
            how = draw(st.sampled_from(["array", "shape", "type", "gone", "scaled", "bytes"]))
            if how == "array":
                members[name] = _npy(draw(arrays()))
            elif how == "shape":
                members[name] = _npy(parts[name], tuple(draw(st.lists(st.one_of(DIMENSIONS, HUGE), max_size=4))))
            elif how == "type":
                members[name] = _npy(parts[name], descr=draw(st.sampled_from(["|O", "<U1000000000", "<f2", "|V8", ">f8"])))
            elif how == "gone":
                members.pop(name, None)
            elif how == "bytes":
                members[name] = draw(st.binary(max_size=40))
            elif parts[name].dtype.kind in "if":
                with np.errstate(all="ignore"):
                    scale = draw(st.sampled_from([0, -1, np.nan, np.inf, 1e300, 1e-300]))
                    members[name] = _npy(parts[name] * scale)
        packed = draw(st.sampled_from([zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED]))
        file = io.BytesIO()
        with zipfile.ZipFile(file, "w", packed) as archive:
            for name, content in members.items():
                archive.writestr(f"{name}.npy", content)
        return file.getvalue()

    bomb = io.BytesIO()
    np.savez_compressed(bomb, **parts | {"mean": np.zeros(15 << 20)})
    structured = st.one_of(changed(), changed(), changed(), st.just(bomb.getvalue()))
    valid = [(folder / "whole.npz").read_bytes()]
    return Target(valid, in_file("case.npz", SufficientStatistics.load), structured)


CELLS = st.one_of(
    st.sampled_from(["", "1", "2", "1.5", "1,5", "-3e400", "NA", "nan", "inf", "1_000", '"', "a;b", "#", "１", "1 234,5"]),
    NUMBERS.map(str),
    st.text(max_size=5),
)


@st.composite
def texts_of_tables(draw: Any) -> bytes:
    """Return tables as text, with ragged rows, odd cells and other encodings."""
    sep, end = draw(st.sampled_from([",", ";", "\t", "|", " "])), draw(st.sampled_from(["\n", "\r\n", "\r"]))
    width = draw(st.integers(1, 4))
    header = sep.join(draw(st.lists(TEXTS, min_size=width, max_size=width)))
    rows = draw(st.lists(st.lists(CELLS, min_size=max(width - 1, 1), max_size=width + 1).map(sep.join), max_size=6))
    text = end.join([header, *rows])
    return text.encode(draw(st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "cp1252", "utf-32"])), "replace")


def _table(seed: int = 1) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(rng.normal(size=(12, 3)).round(3), columns=["a", "b", "c"])
    frame["d"] = rng.integers(0, 3, 12)
    return frame


def csv(folder: Path) -> Target:
    """Read a table from a text file."""
    from gpn_bayes.data import Dataset

    frame = _table()
    german = frame.to_csv(index=False, sep=";", decimal=",").encode("cp1252")
    quoted = frame.assign(d=frame["d"].map({0: "low, or none", 1: 'high "h"', 2: "x"})).drop(columns=["a", "b", "c"])
    quoted["e"] = list("abcabcabcabc")
    valid = [frame.to_csv(index=False).encode(), german, quoted.to_csv(index=False).encode("utf-16")]
    return Target(valid, in_file("case.csv", Dataset.read), texts_of_tables())


def parquet(folder: Path) -> Target:
    """Read a table from a Parquet file."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from gpn_bayes.data import Dataset

    def written(table: Any, **how: Any) -> bytes:
        file = io.BytesIO()
        pq.write_table(table, file, **how)
        return file.getvalue()

    frame = _table()
    frame["e"] = pd.Categorical(["low", "high", "x"] * 4)
    valid = [
        written(pa.Table.from_pandas(frame.drop(columns="e"))),
        written(pa.Table.from_pandas(frame[["d", "e"]], preserve_index=True), compression="gzip"),
        written(pa.Table.from_pandas(frame[["a", "b"]].set_index(frame["c"])), use_dictionary=False),
    ]

    @st.composite
    def changed(draw: Any) -> bytes:
        table = pa.Table.from_pandas(frame)
        described = json.loads(table.schema.metadata[b"pandas"])
        key = draw(st.sampled_from(sorted(described)))
        described[key] = draw(JSON)
        if draw(st.booleans()) and isinstance(described.get("columns"), list) and described["columns"]:
            own = described["columns"][0]
            if isinstance(own, dict):
                own[draw(st.sampled_from(["name", "field_name", "pandas_type", "numpy_type", "metadata"]))] = draw(JSON)
        text = draw(st.one_of(st.just(json.dumps(described)), deep(JSON)))
        others = [pa.array([{"x": 1}] * 12), pa.array([[1, 2]] * 12), pa.array([b"\xff"] * 12), pa.nulls(12)]
        others += [pa.array(np.arange(12), pa.timestamp("ns", "Mars/Base")), pa.array([10**30] * 12, pa.decimal128(38))]
        if draw(st.booleans()):
            table = table.append_column(draw(TEXTS).encode("utf-8", "replace"), draw(st.sampled_from(others)))
        return written(table.replace_schema_metadata({b"pandas": text.encode("utf-8", "replace")}))

    return Target(valid, in_file("case.parquet", Dataset.read), changed())


def excel(folder: Path) -> Target:
    """Read a table from a sheet of Excel."""
    from gpn_bayes.data import Dataset

    file = io.BytesIO()
    _table().to_excel(file, index=False)
    whole = file.getvalue()
    with zipfile.ZipFile(io.BytesIO(whole)) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}

    def zipped(members: dict[str, bytes]) -> bytes:
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
            for name, content in members.items():
                archive.writestr(name, content)
        return packed.getvalue()

    @st.composite
    def changed(draw: Any) -> bytes:
        from tests.fuzzing import damaged

        name = draw(st.sampled_from(sorted(parts)))
        cells = parts["xl/worksheets/sheet1.xml"]
        kind = draw(st.integers(0, 3))
        if kind == 0:
            row = draw(st.sampled_from([b"1048577", b"99999999999", b"-1", b"0", b"x"]))
            return zipped(parts | {"xl/worksheets/sheet1.xml": cells.replace(b'r="2"', b'r="' + row + b'"')})
        if kind == 1:
            place = draw(st.sampled_from([b"XFD9", b"ZZZZ1", b"A99999999", b"2A", b""]))
            return zipped(parts | {"xl/worksheets/sheet1.xml": cells.replace(b'"B3"', b'"' + place + b'"')})
        if kind == 2:
            value = draw(st.sampled_from([b"1e999", b"nan", b"99999999999999999999", b"", b"x", b"-1"]))
            return zipped(parts | {"xl/worksheets/sheet1.xml": cells.replace(b"<v>1</v>", b"<v>" + value + b"</v>")})
        return zipped(parts | {name: damaged(parts[name], draw(st.integers(0, 2**62)))})

    return Target([whole], in_file("case.xlsx", Dataset.read), changed())


# Networks.

_WORDS = st.sampled_from(
    ["network", "variable", "probability", "property", "type", "discrete", "table", "default", "{", "}", "(", ")", "["]
    + ["]", "|", ";", ",", '"', "/*", "*/", "//", "\n", "2", "3", "0.5", "1e-400", "nan", "inf", "-1", "x", "y", "yes", "no"]
    + ["99999999999999999999"]
)  # fmt: skip
_BIF = """network coins { property made by "hand" ; }
variable coin { type discrete [ 2 ] { head, tail }; property place = 1 ; }
variable "a report" { type discrete [ 3 ] { head, tail, "no report" }; }
variable z { type discrete [ 2 ] { yes, no }; }
probability ( coin ) { table 0.5, 0.5; }
probability ( "a report" | coin ) { (head) 0.8, 0.1, 0.1; (tail) 0.2, 0.7, 0.1; }
probability ( z | coin, "a report" ) { default 0.5, 0.5; (head, tail) 0.25, 0.75; } // end
"""


def bif(folder: Path) -> Target:
    """Read a network from a BIF file."""
    from gpn_bayes.simulate import read_bif

    words = st.lists(_WORDS, max_size=40).map(" ".join)
    levels = st.integers(2, 200)

    def wide(drawn: tuple[int, int]) -> str:
        known, parents = drawn
        names = [f"v{i}" for i in range(parents + 1)]
        values = ", ".join(f"s{i}" for i in range(known))
        lines = [f"variable {name} {{ type discrete [ {known} ] {{ {values} }}; }}" for name in names]
        return "\n".join([*lines, f"probability ( v0 | {', '.join(names[1:])} ) {{ default 1; }}"])

    structured = st.one_of(
        words.map(lambda text: _BIF + text), words, st.tuples(levels, st.integers(1, 30)).map(wide)
    ).map(str.encode)
    return Target([_BIF.encode()], in_file("case.bif", read_bif), structured)


def bif_gz(folder: Path) -> Target:
    """Read a network from a compressed BIF file."""
    from gpn_bayes.simulate import read_bif

    bomb = gzip.compress(bytes(60 << 20))
    spaces = gzip.compress(b" " * (40 << 20) + _BIF.encode())
    structured = st.one_of(
        st.binary(max_size=200).map(gzip.compress),
        st.binary(max_size=40).map(lambda rest: gzip.compress(_BIF.encode()) + rest),
        st.sampled_from([bomb, spaces, b"", b"\x1f\x8b"]),
    )
    return Target([gzip.compress(_BIF.encode())], in_file("case.bif.gz", read_bif), structured)


TARGETS: dict[str, Callable[[Path], Target]] = {
    "statistics": statistics,
    "csv": csv,
    "parquet": parquet,
    "excel": excel,
    "bif": bif,
    "bif_gz": bif_gz,
}


def make_target(name: str, folder: Path) -> Target:
    """Return a target by its name."""
    return TARGETS[name](folder)

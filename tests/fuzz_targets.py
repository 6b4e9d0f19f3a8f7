"""The readers that are fuzzed: what they accept, how they are called, and nearly valid content for each."""

import gzip
import io
import json
import os
import resource
import signal
import sqlite3
import warnings
import zipfile
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from gpn_bayes.posterior import file_probe
from tests.fuzzing import Target, damaged, fault_of

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


# Files of statistics and tables.


def _npy(array: np.ndarray, shape: tuple[int, ...] | None = None, descr: str | None = None) -> bytes:
    """Return an array as the bytes of a .npy file, whose header may lie about it."""
    header = {
        "descr": descr or array.dtype.str,
        "fortran_order": False,
        "shape": array.shape if shape is None else shape,
    }
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, header)
    return file.getvalue() + array.tobytes()


def statistics(folder: Path) -> Target:
    """Read statistics from an .npz file."""
    from gpn_bayes.data import Dataset, SufficientStatistics

    rows = np.random.default_rng(1).normal(size=(30, 4)) @ (np.eye(4) + 0.3)
    tables = (rows, Dataset.read(rows, targets=["", "v2"] * 15), Dataset.read(rows, contexts=["", "x"] * 15))
    wholes = [SufficientStatistics.of(table) for table in tables]
    wholes[0].save(folder / "whole.npz")

    @st.composite
    def changed(draw: Any) -> bytes:
        parts = draw(st.sampled_from(wholes)).to_arrays()
        members = {name: _npy(array) for name, array in parts.items()}
        for name in draw(st.lists(st.sampled_from(sorted(parts)), min_size=1, max_size=2)):
            how = draw(st.sampled_from(["array", "shape", "type", "gone", "scaled", "bytes"]))
            if how == "array":
                members[name] = _npy(draw(arrays()))
            elif how == "shape":
                members[name] = _npy(parts[name], tuple(draw(st.lists(st.one_of(DIMENSIONS, HUGE), max_size=4))))
            elif how == "type":
                members[name] = _npy(
                    parts[name], descr=draw(st.sampled_from(["|O", "<U1000000000", "<f2", "|V8", ">f8"]))
                )
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
    np.savez_compressed(bomb, **wholes[0].to_arrays() | {"mean": np.zeros(15 << 20)})
    structured = st.one_of(changed(), changed(), changed(), st.just(bomb.getvalue()))
    valid = [(folder / "whole.npz").read_bytes()]
    return Target(valid, in_file("case.npz", SufficientStatistics.load), structured)


CELLS = st.one_of(
    st.sampled_from(
        ["", "1", "2", "1.5", "1,5", "-3e400", "NA", "nan", "inf", "1_000", '"', "a;b", "#", "１", "1 234,5"]
    ),
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
        name = draw(st.sampled_from(sorted(parts)))
        cells = parts["xl/worksheets/sheet1.xml"]
        kind = draw(st.sampled_from(["place", "value", "part", "row", "part"]))
        if kind == "row":
            row = draw(st.sampled_from([b"1048577", b"50000", b"99999999999", b"-1", b"0", b"x"]))
            return zipped(parts | {"xl/worksheets/sheet1.xml": cells.replace(b'r="2"', b'r="' + row + b'"')})
        if kind == "place":
            place = draw(st.sampled_from([b"XFD9", b"ZZZZ1", b"A99999999", b"2A", b""]))
            return zipped(parts | {"xl/worksheets/sheet1.xml": cells.replace(b'"B3"', b'"' + place + b'"')})
        if kind == "value":
            value = draw(st.sampled_from([b"1e999", b"nan", b"99999999999999999999", b"", b"x", b"-1"]))
            return zipped(parts | {"xl/worksheets/sheet1.xml": cells.replace(b"<v>1</v>", b"<v>" + value + b"</v>")})
        return zipped(parts | {name: damaged(parts[name], draw(st.integers(0, 2**62)))})

    return Target([whole], in_file("case.xlsx", Dataset.read), changed())


# Networks.

_WORDS = st.sampled_from(
    ["network", "variable", "probability", "property", "type", "discrete", "table", "default", "{", "}", "(", ")", "["]
    + ["]", "|", ";", ",", '"', "/*", "*/", "//", "\n", "2", "3", "0.5", "1e-400", "nan", "inf", "-1", "x", "y", "yes"]
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


# A run's files.


def posterior(folder: Path) -> Target:
    """Read a posterior from a netCDF file."""
    import h5py

    from gpn_bayes.data import Dataset, SufficientStatistics
    from gpn_bayes.posterior import load
    from tests.draws import drawn_posterior, exact_posterior, quick

    data = np.random.default_rng(1).normal(size=(60, 6)).cumsum(axis=1)
    valid = []
    experiments = {"contexts": ["", "x", "y"] * 20}
    told = quick(data, score="bge", targets=["", "v2", "v3;v4"] * 20)
    of_statistics = quick(SufficientStatistics.of(Dataset.read(data, **experiments)), score="bge")
    for post in (
        drawn_posterior(True)[0],
        exact_posterior()[1],
        quick(data, score="bge", sampler="partition"),
        quick(data, score="bge", **experiments),
        told,
        of_statistics,
    ):
        post.save(folder / "whole.nc", overwrite=True)
        valid.append((folder / "whole.nc").read_bytes())

    @st.composite
    def changed(draw: Any) -> bytes:
        buffer = io.BytesIO(draw(st.sampled_from(valid)))
        with h5py.File(buffer, "r+") as file:
            parts: list[str] = []
            file.visit(parts.append)
            name = draw(st.sampled_from(parts))
            how = draw(st.sampled_from(["array", "attribute", "gone", "huge", "link", "values", "text"]))
            if how == "attribute" or isinstance(file[name], h5py.Group):
                known = sorted(file[name].attrs) or ["new"]
                own = draw(st.one_of(deep(JSON), arrays(), NUMBERS.filter(lambda number: abs(number) < 2**60)))
                if not isinstance(own, np.ndarray) or own.dtype.kind not in "UMV":
                    text = own.replace("\0", "") if isinstance(own, str) else own
                    if not isinstance(text, str) or len(text) < 60_000:
                        file[name].attrs[draw(st.sampled_from(known))] = text
            elif how == "gone":
                del file[name]
            elif how == "link":
                del file[name]
                other = draw(st.sampled_from(["/", "/posterior", f"/{name}", "/absent"]))
                external = draw(st.booleans())
                file[name] = h5py.ExternalLink("/dev/zero", "/x") if external else h5py.SoftLink(other)
                if draw(st.booleans()):
                    del file[name]
                    file[name] = file["/"]
            elif how == "huge":
                shape = tuple(draw(st.lists(st.sampled_from([1, 2, 10**6, 2**31, 2**40]), min_size=1, max_size=3)))
                del file[name]
                if np.prod([float(length) for length in shape]) < 2**60:
                    chunks = tuple(min(length, 100) for length in shape)
                    file.create_dataset(name, shape, "i1", chunks=chunks, compression="gzip")
            else:
                own = (
                    draw(arrays())
                    if how != "text"
                    else np.array(draw(TEXTS).replace("\0", "").encode("utf-8", "ignore"))
                )
                if own.dtype.kind not in "UMV":
                    del file[name]
                    file[name] = own
        return buffer.getvalue()

    def read(content: bytes, folder: Path) -> Any:
        # To start an interpreter takes longer than all else: most files are looked at in a copy of this process.
        check = in_file("case.nc", load)
        if content and content[-1] % 10 == 0:
            return check(content, folder)
        with mock.patch.object(file_probe, "check_file", _probe_in_copy):
            return check(content, folder)

    return Target(valid, read, changed())


def _probe_in_copy(path: Path) -> None:
    """Do what `file_probe.check_file` does in a copy of this process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (2, 2))
        signal.alarm(30)  # a copy of a process with threads may wait for one of them
        reason = None
        try:
            file_probe.probe(path)
        except ValueError as error:
            reason = str(error)
        os.write(writing, json.dumps(reason).encode())
        os._exit(0)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        said = answer.read()
    os.waitpid(child, 0)
    if said != b"null":
        raise ValueError(json.loads(said or '"its parts have no end"'))


def _changed_sql(draw: Any, content: bytes, columns: dict[str, list[str]], folder: Path) -> bytes:
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


def checkpoints(folder: Path) -> Target:
    """Resume a run from its file."""
    import gpn_bayes as gpn
    from gpn_bayes.sampling.checkpoint import CheckpointStore
    from tests.test_damaged_checkpoints import DATA, KINDS, SETTINGS, Stop

    def half_done(path: Path, kind: str) -> None:
        save, saved = CheckpointStore.save_block, []

        def stop(self: CheckpointStore, *given: Any) -> None:
            saved.append(given)
            if len(saved) > 4:
                raise Stop
            save(self, *given)

        with mock.patch.object(CheckpointStore, "save_block", stop):
            try:
                gpn.sample(DATA, "bge", cache=path, **SETTINGS | KINDS[kind])
            except Stop:
                pass

    kinds = ("order", "partition", "tempered")
    valid = []
    for kind in kinds:
        half_done(folder / f"{kind}.sqlite", kind)
        valid.append(kind.encode().ljust(10) + (folder / f"{kind}.sqlite").read_bytes())

    def resume(content: bytes, folder: Path) -> Any:
        kind = content[:10].decode("ascii", "replace").strip()
        for leftover in folder.glob("case.sqlite*"):
            leftover.unlink(missing_ok=True)  # SQLite removes some of them itself
        path = folder / "case.sqlite"
        path.write_bytes(content[10:])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of chains that don't agree
            return gpn.sample(DATA, "bge", cache=path, **SETTINGS | KINDS.get(kind, KINDS["order"]))

    columns = {
        "checkpoints": ["run_key", "chain", "n_blocks", "layout", "state", "rng_state"],
        "blocks": ["chain", "block", "layout", "draws"],
        "scores": ["node", "parents", "value", "error", "k_hat", "status"],
        "meta": ["value"],
    }

    @st.composite
    def changed(draw: Any) -> bytes:
        whole = draw(st.sampled_from(valid))
        return whole[:10] + _changed_sql(draw, whole[10:], columns, folder)

    return Target(valid, resume, changed())


def inputs(folder: Path) -> Target:
    """Read edges, tiers, candidates and priors from CSV files, as the command line takes them."""
    from gpn_bayes.cli import inputs as read

    names = ["a", "b", "c"]
    valid = [b"cause,effect\na,b\nb,c\n", b"name,tier\na,1\nb,2\nc,2\n", b"parent,child,probability\na,b,0.3\n"]
    valid += [b",a,b,c\na,,0.1,0.2\nb,0.3,,0.1\nc,0.2,0.2,\n", b"parent,child,type\na,b,undirected\n"]

    def run(content: bytes, folder: Path) -> Any:
        path = folder / "case.csv"
        path.write_bytes(content)
        refused: ValueError | None = None
        for reader in (
            lambda: read.read_pairs(path, names, "--required"),
            lambda: read.read_tiers(path, names),
            lambda: read.read_candidates(str(path), names),
            lambda: read.read_prior(str(path), names),
            lambda: read.read_order(str(path), names),
        ):
            try:
                reader()
            except ValueError as error:
                if fault_of(error, (ValueError,)):
                    raise
                refused = error
        return refused

    return Target(valid, run, texts_of_tables())


# Settings, plans and messages of federated runs.

CLIENTS = ("ann", "ben", "cem")
_OPTIONS = st.one_of(
    JSON,
    st.dictionaries(
        st.sampled_from(
            ["model", "lambda1", "lambda2", "rho", "threshold", "lagged_threshold", "hidden", "lags", "intercepts"]
            + ["diagonal", "required", "forbidden", "tiers", "tolerance", "max_rounds", "random_state"]
        ),
        st.one_of(
            JSON, st.sampled_from(["mlp", "dynamic", "linear", "shared", "free", "masked"]),
            st.lists(st.lists(st.sampled_from(["x0", "x1", "x2", "y"]), max_size=3), max_size=3),
        ),
        max_size=3,
    ),
)  # fmt: skip


def _rows() -> Any:
    from gpn_bayes.data import read_part
    from tests.federation import tables

    return read_part(tables((20,), 3)[0])


def plans(folder: Path) -> Target:
    """Read a plan from JSON, and its program's settings."""
    from gpn_bayes.federated.notears.bounds import Bounds
    from gpn_bayes.federated.plan import Plan
    from gpn_bayes.federated.programs import find_program

    data = _rows()
    whole = Plan("r1", "notears", '{"model": "mlp", "hidden": 3}', data.names, CLIENTS, True)
    plain = Plan("r2", "statistics", "{}", data.names, CLIENTS, True)
    noise = {"epsilon": 1.0, "delta": 1e-6, "bounds": {name: [-4, 4] for name in data.names}, "radius": 1.0}
    noisy = Plan("r3", "statistics", json.dumps(noise), data.names, CLIENTS, True)

    def run(content: bytes, folder: Path) -> Any:
        plan = Plan.from_json(content.decode("utf-8", "surrogateescape"))
        program = find_program(plan.program)
        return plan.digest, program.bounded(program.participant(data, plan), plan, Bounds())

    def made(drawn: tuple[str, str, str, Any]) -> bytes:
        program, settings, field, value = drawn
        fields = json.loads(whole.to_json()) | {"program": program, "settings": settings}
        return json.dumps(fields | ({field: value} if field else {})).encode()

    fields = st.sampled_from(["", "", "", "run", "program", "settings", "variables", "clients", "secure", "other"])
    programs = st.sampled_from(["notears", "notears", "statistics"])
    structured = st.tuples(programs, deep(_OPTIONS), fields, JSON).map(made)
    return Target([plan.to_json().encode() for plan in (whole, plain, noisy)], run, structured)


def toml(folder: Path) -> Target:
    """Read the configuration files of clients and coordinators."""
    from gpn_bayes.federated.processes.config import read_client, read_coordinator
    from gpn_bayes.federated.processes.setup_files import write_parties

    coordinator, client, *_ = write_parties(folder / "parties", CLIENTS, ["x", "y"])
    limits = b"\n[limits]\nheartbeat_seconds = 2.5\n"
    whole = (client / "client.toml").read_bytes() + limits
    other = (coordinator / "coordinator.toml").read_bytes() + limits + b"[settings]\nmodel = 'mlp'\n"

    def run(content: bytes, folder: Path) -> Any:
        if content.startswith(b"program"):
            (coordinator / "case.toml").write_bytes(content)
            return read_coordinator(coordinator / "case.toml").plan("r1")
        (client / "case.toml").write_bytes(content)
        return read_client(client / "case.toml")

    values = st.sampled_from(
        ["1", "-1", "1e999", "nan", "''", "[]", "{}", "true", "1979-05-27", "'x'", "[1]", "{a=1}", "9" * 5000]
        + ["[" * 2000 + "]" * 2000, "'/dev/zero'", "'..'", "'a\\u0000b'", '"\\u0000"', "['x', 'x']", "[['x']]"]
    )  # fmt: skip
    names = ["coordinator", "coordinator_name", "state", "secure", "programs", "fewest", "program", "listen", "out"]
    names += [
        "variables",
        "authority",
        "certificate",
        "key",
        "ann",
        "ben",
        "heartbeat_seconds",
        "limits",
        "tls",
        "clients",
    ]
    names += ["settings", "posterior", "the_other_client_learns_my_sums"]

    @st.composite
    def changed(draw: Any) -> bytes:
        lines = draw(st.sampled_from([whole, other])).decode().splitlines()
        place = draw(st.integers(0, len(lines) - 1))
        name = draw(st.sampled_from(names))
        old = lines[place].partition("=")[0].strip() if "=" in lines[place] else name
        lines[place] = f"{draw(st.sampled_from([old, old, name]))} = {draw(values)}"
        return "\n".join(lines).encode()

    return Target([whole, other], run, changed())


def certificates(folder: Path) -> Target:
    """Read certificates and keys from PEM files."""
    from gpn_bayes.wire.certificates import common_name, new_authority, new_party, read_certificate, read_identity

    party = new_party(new_authority(), "ann")
    party.write(folder / "certificate.pem", folder / "key.pem")
    whole = [(folder / "certificate.pem").read_bytes(), (folder / "key.pem").read_bytes()]

    def run(content: bytes, folder: Path) -> Any:
        (folder / "case.pem").write_bytes(content)
        if b"PRIVATE" in content:
            return read_identity(folder / "certificate.pem", folder / "case.pem")
        read_identity(folder / "case.pem", folder / "key.pem")
        return common_name(read_certificate(folder / "case.pem"))

    return Target(whole, run)


@st.composite
def array_messages(draw: Any) -> Any:
    """Return arrays as messages, whose shapes and types may not fit their bytes."""
    from gpn_bayes.wire import federation_pb2 as messages

    shape = draw(st.lists(st.sampled_from([0, 1, 2, 3, 2**16, 2**32 - 1]), max_size=9))
    size = int(np.prod([float(length) for length in shape]))
    fits = size <= 100 and draw(st.integers(0, 3)) > 0
    number = draw(st.sampled_from([0.0, 1.0, -1.0, 1e-300, 1e300, 1.7e308, np.nan, np.inf, 0.1]))
    data = np.full(size, number).tobytes() if fits else draw(st.binary(max_size=32))
    name = draw(st.sampled_from(["shared", "rho", "last_rho", "rows", "centre", "digits", "x", "a" * 300]))
    return messages.Array(name=name, type=draw(st.integers(0, 4)), shape=shape, data=data)


def _named(name: str, value: Any) -> Any:
    from gpn_bayes.wire import arrays as wire

    return wire.to_messages({name: np.asarray(value, dtype=float)})[0]


class _Dialler:
    """A coordinator that says what it was given to say, and then that the run is over."""

    def __init__(self, instructions: list[Any]) -> None:
        self.instructions = instructions

    def next(self, poll: Any) -> Any:
        from gpn_bayes.wire import federation_pb2 as messages

        over = messages.Instruction(end=messages.End(run=poll.run, finished=True))
        return self.instructions.pop(0) if self.instructions else over

    def announce(self, announcement: Any) -> None:
        self.announced = announcement

    def submit(self, answer: bytes) -> None:
        self.answer = answer

    def refuse(self, run: str, reason: Any) -> None:
        self.refused = reason


def _framed(parts: list[bytes]) -> bytes:
    return b"".join(len(part).to_bytes(4, "big") + part for part in parts)


def _unframed(content: bytes) -> list[bytes]:
    parts = []
    while len(content) >= 4:
        length = int.from_bytes(content[:4], "big")
        parts.append(content[4 : 4 + length])
        content = content[4 + length :]
    return parts


def instructions(folder: Path) -> Target:
    """Follow a coordinator's instructions, as a client does."""
    from google.protobuf.message import DecodeError

    from gpn_bayes.federated.plan import Plan
    from gpn_bayes.federated.processes import client
    from gpn_bayes.federated.processes.client_store import ClientStore
    from gpn_bayes.federated.processes.config import read_client
    from gpn_bayes.federated.processes.setup_files import write_parties
    from gpn_bayes.federated.processes.translation import plan_to_message
    from gpn_bayes.wire import federation_pb2 as messages

    data = _rows()
    _, home, *_ = write_parties(folder / "parties", CLIENTS, data.names)
    text = (home / "client.toml").read_text().replace("[tls]", "secure = false\n[tls]", 1)
    (home / "client.toml").write_text(text.replace('["statistics"]', '["statistics", "notears"]'))
    config = read_client(home / "client.toml")

    def plan(**changes: Any) -> Any:
        fields = {"run": "r1", "program": "notears", "settings": "{}", "variables": data.names, "clients": CLIENTS}
        return messages.Instruction(plan=plan_to_message(Plan(**fields | {"secure": False} | changes)))

    def task(*values: Any, round: int = 0, name: str = "round") -> Any:
        return messages.Instruction(task=messages.Task(run="r1", round=round, name=name, values=values))

    shared = [_named("rho", 0.1), _named("last_rho", 0.1), _named("rows", 60)]
    asked = [*shared, _named("shared", np.zeros((3, 3)))]
    then = [_named("rho", 0.125), *asked[1:]]
    mlp = plan(settings='{"model": "mlp", "hidden": 2}')
    runs = [
        [plan(settings='{"rho": 0.1}'), task(name="rows"), task(*asked, round=1), task(*then, round=2)],
        [plan(program="statistics"), task(name="moments")],
        [mlp, task(name="rows"), task(*shared, _named("shared", np.zeros(33)), round=1)],
        [
            plan(secure=True),
            messages.Instruction(keys=messages.Keys(run="r1")),
            messages.Instruction(wait=messages.Wait()),
        ],
    ]
    valid = [_framed([one.SerializeToString() for one in run]) for run in runs[:3]]

    def follow(content: bytes, folder: Path) -> Any:
        try:
            received = [messages.Instruction.FromString(part) for part in _unframed(content)[:8]]
        except DecodeError:  # which gRPC reports by itself
            return None
        for leftover in folder.glob("state.sqlite*"):
            leftover.unlink(missing_ok=True)  # SQLite removes some of them itself
        with mock.patch.object(client, "_PAUSE", 0.0), ClientStore(folder / "state.sqlite") as store:
            store._connection.execute("PRAGMA synchronous=OFF")
            client._Client(config, data, False, _Dialler(received), store, lambda text: None).run()

    @st.composite
    def changed(draw: Any) -> bytes:
        run = [type(one).FromString(one.SerializeToString()) for one in draw(st.sampled_from(runs))]
        which = draw(st.integers(0, len(run) - 1))
        kind = run[which].WhichOneof("kind")
        if kind == "plan":
            own = run[which].plan
            how = draw(st.sampled_from(["settings", "variables", "clients", "program", "run"]))
            if how in ("variables", "clients"):
                del getattr(own, how)[:]
                names = st.sampled_from([*data.names, *CLIENTS, "", "é" * 100])
                getattr(own, how).extend(draw(st.lists(names, max_size=6)))
            else:
                given = draw(deep(_OPTIONS) if how == "settings" else TEXTS)
                setattr(own, how, given.encode("utf-8", "replace").decode())
        elif kind == "task":
            own = run[which].task
            own.round = draw(st.sampled_from([own.round, own.round, 0, 5, 2**63, 2**64 - 1]))
            if draw(st.booleans()) and len(own.values):
                place = draw(st.integers(0, len(own.values) - 1))
                shape = list(own.values[place].shape)
                number = draw(st.sampled_from([0.0, -1.0, 1e-300, 1e300, 1.7e308, np.nan, 1e-12, 1e12]))
                own.values[place].CopyFrom(_named(own.values[place].name, np.zeros(shape)))
                own.values[place].data = np.full(shape, number).tobytes()
            else:
                own.values.append(draw(array_messages()))
        elif kind == "keys":
            for _ in range(draw(st.integers(0, 4))):
                run[which].keys.announcements.add(
                    run="r1", client=draw(st.sampled_from([*CLIENTS, "x"])), public_key=draw(st.binary(max_size=33)),
                    signature=draw(st.binary(max_size=8)), certificate=draw(st.binary(max_size=8)),
                )  # fmt: skip
        return _framed([one.SerializeToString() for one in run])

    return Target(valid, follow, changed(), (ValueError, ConnectionError))


def answers(folder: Path) -> Target:
    """Take what clients send, as a coordinator does."""
    from google.protobuf.message import DecodeError

    from gpn_bayes.federated.combining import RoundSum
    from gpn_bayes.federated.plan import Plan
    from gpn_bayes.federated.processes.rendezvous import Rendezvous
    from gpn_bayes.federated.requests import Request
    from gpn_bayes.wire import federation_pb2 as messages
    from gpn_bayes.wire.limits import Limits

    request = Request.of("gradient", {"x": 1.0})
    plan = Plan("r1", "notears", "{}", ("x", "y"), CLIENTS, False)
    whole = messages.Answer(run="r1", round=0, request=request.digest, values=[_named("step", np.ones((2, 2)))])
    joined = messages.Announcement(run="r1", client="ann")
    valid = [_framed([joined.SerializeToString(), whole.SerializeToString()])]

    def take(content: bytes, folder: Path) -> Any:
        announced, *submitted = _unframed(content)[:5] or [b""]
        for secure, shapes in ((False, {"step": (2, 2)}), (False, None), (True, None)):
            own = Plan(plan.run, plan.program, plan.settings, plan.variables, plan.clients, secure)
            meeting = Rendezvous(own, dict.fromkeys(CLIENTS, "0" * 64), Limits(heartbeat_seconds=0.001), {})
            meeting._round = round_sum = RoundSum(own, 0, request, shapes)
            try:
                meeting.next("ann", messages.Poll.FromString(announced))
                meeting.refuse("ann", messages.Refusal.FromString(announced))
                meeting.announce("ann", messages.Announcement.FromString(announced))
            except DecodeError:
                pass
            except ValueError as error:
                if fault_of(error, (ValueError,)):
                    raise
            try:
                for client, part in zip(CLIENTS, submitted * 3, strict=False):
                    meeting.submit(client, messages.Answer.FromString(part))
            except DecodeError:
                continue
            except ValueError as error:
                if fault_of(error, (ValueError,)):
                    raise
            try:
                if not round_sum.missing:
                    round_sum.total()
            except ValueError as error:
                if fault_of(error, (ValueError,)):
                    raise
        return None

    @st.composite
    def changed(draw: Any) -> bytes:
        answer = messages.Answer(run="r1", round=draw(st.sampled_from([0, 0, 0, 1, 2**64 - 1])), request=request.digest)
        answer.values.extend(draw(st.lists(array_messages(), max_size=3)))
        if draw(st.booleans()):
            numbers = draw(st.sampled_from([0, 1, 2**63, 2**64 - 1]))
            words = np.full((2, 2, draw(st.sampled_from([1, 2, 3]))), numbers, dtype=np.uint64)
            answer.values.append(
                messages.Array(name="step", type=messages.UINT64, shape=words.shape, data=words.tobytes())
            )
        key = messages.Announcement(
            run="r1", client="ann", public_key=draw(st.binary(max_size=33)), signature=draw(st.binary(max_size=70)),
            certificate=draw(st.binary(max_size=20)), possession=draw(st.binary(max_size=64)),
        )  # fmt: skip
        return _framed([key.SerializeToString(), answer.SerializeToString()])

    return Target(valid, take, changed())


def stores(folder: Path) -> Target:
    """Resume a federated run from the files of a client and of the coordinator."""
    from gpn_bayes.federated.notears.bounds import Bounds
    from gpn_bayes.federated.plan import Plan
    from gpn_bayes.federated.processes.client_store import ClientStore
    from gpn_bayes.federated.processes.coordinator_store import CoordinatorStore
    from gpn_bayes.federated.processes.rendezvous import Rendezvous
    from gpn_bayes.federated.programs import find_program
    from gpn_bayes.federated.requests import Request
    from gpn_bayes.federated.session import ClientSession
    from gpn_bayes.wire import federation_pb2 as messages
    from gpn_bayes.wire.limits import Limits

    data = _rows()
    plan = Plan("r1", "notears", "{}", data.names, CLIENTS, False)
    request = Request.of("rows", {})

    def participant() -> Any:
        program = find_program(plan.program)
        return program.bounded(program.participant(data, plan), plan, Bounds())

    session = ClientSession(plan, "ann", participant())
    session.answer(0, request)
    with ClientStore(folder / "whole.sqlite") as store:
        store.save(session, data.fingerprint)
    with CoordinatorStore(folder / "sums.sqlite") as sums:
        sums.start(plan)
        announced = {name: messages.Announcement(run="r1", client=name).SerializeToString() for name in CLIENTS}
        sums.save_announcements(announced)
        sums.save_sums(0, request.digest, {"rows": np.array(60.0)})
    valid = [b"c" + (folder / "whole.sqlite").read_bytes(), b"s" + (folder / "sums.sqlite").read_bytes()]

    def resume(content: bytes, folder: Path) -> Any:
        for leftover in folder.glob("case.sqlite*"):
            leftover.unlink(missing_ok=True)  # SQLite removes some of them itself
        path = folder / "case.sqlite"
        path.write_bytes(content[1:])
        if content[:1] == b"c":
            with ClientStore(path) as store:
                store.earlier_run(data.fingerprint, plan.program, "r2")
                resumed = store.load(plan, "ann", data.fingerprint, participant, {})
                if resumed is not None:
                    resumed.answer(0, request)
                    store.save(resumed, data.fingerprint)
                    store.finish("r1")
                return resumed
        with CoordinatorStore(path) as store:
            known = store.plan()
            Rendezvous(plan, dict.fromkeys(CLIENTS, ""), Limits(), store.announcements())
            return known, store.ended() if known else None, store.sums(0, request.digest)

    columns = {
        "c": {"sessions": ["run", "plan", "data_fingerprint", "finished", "private_key", "keys", "round", "request"]
              + ["answer", "state"], "ledger": ["run"], "meta": ["value"]},
        "s": {"plan": ["plan", "ended"], "announcements": ["client", "announcement"],
              "rounds": ["round", "request", "sums"]},
    }  # fmt: skip

    @st.composite
    def changed(draw: Any) -> bytes:
        whole = draw(st.sampled_from(valid))
        return whole[:1] + _changed_sql(draw, whole[1:], columns[whole[:1].decode()], folder)

    from gpn_bayes.secure.link import ProtocolError

    return Target(valid, resume, changed(), (ValueError, ProtocolError))


# Two parties.


class _Stream:
    """A connection on which bytes have arrived, and no more come."""

    def __init__(self, content: bytes) -> None:
        self._content = content

    def settimeout(self, seconds: float) -> None:
        pass

    def recv(self, most: int) -> bytes:
        part, self._content = self._content[:most], self._content[most:]
        return part


def frames(folder: Path) -> Target:
    """Receive messages from a stream of bytes."""
    from gpn_bayes.wire.framing import WireError, header_bytes, receive_content, receive_header

    def sent(kind: str, payload: bytes) -> bytes:
        return header_bytes(kind, len(payload)) + payload

    def receive(content: bytes, folder: Path) -> Any:
        stream, received = _Stream(content), []
        for due, length in (("settings", None), ("key nonce", 32), ("encrypted bits", 2**31), ("settings", None)):
            header = receive_header(stream, due, 1.0)
            known = length if header.kind == due else None
            received.append(receive_content(stream, header, known, 1.0))
            if not stream._content:
                break
        return received

    lengths = st.one_of(st.integers(0, 70), st.sampled_from([2**20, 2**20 + 1, 2**31 - 1, 2**31, 2**32 - 1]))
    kinds = st.sampled_from([b"settings", b"key nonce", b"encrypted bits", b"", b"\xff\xfe", b"a" * 41, b"a\nb"])

    def made(drawn: tuple[bytes, int, int, bytes]) -> bytes:
        kind, extra, length, payload = drawn
        return bytes([min(len(kind) + extra, 255)]) + length.to_bytes(4, "big") + kind + payload

    structured = st.lists(
        st.tuples(kinds, st.sampled_from([0, 0, 0, 1, 200]), lengths, st.binary(max_size=70)).map(made), max_size=3
    ).map(b"".join)
    valid = [sent("settings", b"{}") + sent("key nonce", bytes(32)), sent("settings", b"x" * 500)]
    return Target(valid, receive, structured, (WireError,))


def private(folder: Path) -> Target:
    """Learn a network with a party of which one message is changed."""
    from gpn_bayes.secure.link import ProtocolError
    from tests.private_runs import learn_pair, random_table, settings

    codes, order = random_table(1, n=4, rows=20)
    codes["id"] = range(len(codes))
    first, second = codes[[*order[:2], "id"]], codes[[*order[2:], "id"]]

    class Spoiled:
        """A link that changes the message of a given number."""

        def __init__(self, end: Any, place: int, change: Callable[[str, bytes], tuple[str, bytes]]) -> None:
            self._end, self._left, self._change = end, place, change
            self.sent = 0

        def send(self, kind: str, payload: bytes) -> None:
            self._left -= 1
            self._end.send(*(self._change(kind, payload) if self._left == -1 else (kind, payload)))

        def receive(self, kind: str, length: int | None = None) -> bytes:
            return self._end.receive(kind, length)

    def learn(content: bytes, folder: Path) -> Any:
        given = json.loads(content)
        align = "intersection" if given["intersection"] else "digest"

        def change(kind: str, payload: bytes) -> tuple[str, bytes]:
            how = given["how"]
            if how == "settings" and kind == "settings":
                return kind, given["text"].encode("utf-8", "surrogatepass")
            if how == "kind":
                return given["text"][:40], payload
            if how == "fill":
                return kind, bytes([given["seed"] % 256]) * len(payload)
            if how == "length":
                return kind, damaged(payload, given["seed"])
            changed = damaged(payload, given["seed"])[: len(payload)]
            return kind, changed.ljust(len(payload), b"\0")

        wraps = {"wrap_alice" if given["seed"] % 2 else "wrap_bob": lambda end: Spoiled(end, given["place"], change)}
        known = settings(order, max_parents=1, align=align)
        refused = None
        for found in learn_pair(first, second, known, key="id", **wraps):
            if isinstance(found, Exception):
                if fault_of(found, (ValueError, ProtocolError)):
                    raise found
                refused = found
        if refused is not None:
            raise refused

    model = {"version": 1, "order": order, "max_parents": 1, "score": "exact", "key_bits": 512, "align": "digest"}
    model |= {"rows": 20, "first": True, "columns": order[:2]}
    texts = st.one_of(
        deep(JSON),
        st.tuples(st.sampled_from(sorted(model)), JSON).map(lambda drawn: json.dumps(model | {drawn[0]: drawn[1]})),
    )
    entry = st.fixed_dictionaries(
        {
            "how": st.sampled_from(["bytes", "bytes", "fill", "length", "kind", "settings"]),
            "place": st.integers(0, 14), "seed": st.integers(0, 2**40), "intersection": st.booleans(), "text": texts,
        }
    )  # fmt: skip
    settings_only = st.builds(lambda given: given | {"how": "settings", "place": 0}, entry)
    structured = st.one_of(entry, entry, settings_only).map(lambda given: json.dumps(given).encode())
    unchanged = {"how": "bytes", "place": 99, "seed": 0, "intersection": False, "text": ""}
    return Target([json.dumps(unchanged).encode()], learn, structured, (ValueError, ProtocolError), damage=False)


TARGETS: dict[str, Callable[[Path], Target]] = {
    "statistics": statistics,
    "csv": csv,
    "parquet": parquet,
    "excel": excel,
    "bif": bif,
    "bif_gz": bif_gz,
    "inputs": inputs,
    "posterior": posterior,
    "checkpoints": checkpoints,
    "plans": plans,
    "toml": toml,
    "certificates": certificates,
    "instructions": instructions,
    "answers": answers,
    "stores": stores,
    "frames": frames,
    "private": private,
}


def make_target(name: str, folder: Path) -> Target:
    """Return a target by its name."""
    return TARGETS[name](folder)

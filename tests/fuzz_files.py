"""Readers of files that are fuzzed: what they accept, how they are called, and nearly valid files for each."""

import gzip
import io
import json
import os
import resource
import signal
import warnings
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
from hypothesis import strategies as st

from gpn_bayes.posterior import file_reading
from tests.fuzz_parts import DIMENSIONS, HUGE, JSON, NUMBERS, TEXTS, arrays, changed_sql, deep, in_file
from tests.fuzzing import Target, damaged, fault_of

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
    import pyarrow.parquet as pq

    return _columnar("case.parquet", pq.write_table, {"compression": "gzip"}, {"use_dictionary": False})


def feather(folder: Path) -> Target:
    """Read a table from a Feather file."""
    import pyarrow.feather as pf

    return _columnar("case.feather", pf.write_feather, {"compression": "zstd"}, {"compression": "uncompressed"})


def _columnar(name: str, write: Callable[..., None], packed: dict[str, Any], plain: dict[str, Any]) -> Target:
    import pyarrow as pa

    from gpn_bayes.data import Dataset

    def written(table: Any, **how: Any) -> bytes:
        file = io.BytesIO()
        write(table, file, **how)
        return file.getvalue()

    frame = _table()
    frame["e"] = pd.Categorical(["low", "high", "x"] * 4)
    valid = [
        written(pa.Table.from_pandas(frame.drop(columns="e"))),
        written(pa.Table.from_pandas(frame[["d", "e"]], preserve_index=True), **packed),
        written(pa.Table.from_pandas(frame[["a", "b"]].set_index(frame["c"])), **plain),
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

    return Target(valid, in_file(name, Dataset.read), changed())


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
    known_targets = quick(data, score="bge", targets=["", "v2", "v3;v4"] * 20)
    of_statistics = quick(SufficientStatistics.of(Dataset.read(data, **experiments)), score="bge")
    for post in (
        drawn_posterior(True)[0],
        exact_posterior()[1],
        quick(data, score="bge", sampler="partition"),
        quick(data, score="bge", **experiments),
        known_targets,
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
        with mock.patch.object(file_reading, "read_file", _read_in_copy):
            return check(content, folder)

    return Target(valid, read, changed())


def _read_in_copy(path: Path) -> dict[str, file_reading.StoredGroup]:
    """Do what `file_reading.read_file` does in a copy of this process."""
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (2, 2))
        signal.alarm(30)  # a copy of a process with threads may wait for one of them
        status = 1
        with suppress(Exception), os.fdopen(writing, "wb") as out:
            file_reading.write_content(path, out)
            status = 0
        os._exit(status)
    os.close(writing)
    with os.fdopen(reading, "rb") as answer:
        said = answer.read()
    if os.waitpid(child, 0)[1]:
        raise ValueError("its parts have no end, or end the program that reads them")
    return file_reading.unpack(said)


def checkpoints(folder: Path) -> Target:
    """Resume a run from its file."""
    import gpn_bayes as gpn
    from gpn_bayes.sampling.checkpoint import CheckpointStore
    from tests.draws import asked
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
                gpn.sample(DATA, "bge", cache=path, **asked(**SETTINGS | KINDS[kind]))
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
            return gpn.sample(DATA, "bge", cache=path, **asked(**SETTINGS | KINDS.get(kind, KINDS["order"])))

    columns = {
        "checkpoints": ["run_key", "chain", "n_blocks", "layout", "state", "rng_state"],
        "blocks": ["chain", "block", "layout", "draws"],
        "scores": ["node", "parents", "value", "error", "k_hat", "status"],
        "meta": ["value"],
    }

    @st.composite
    def changed(draw: Any) -> bytes:
        whole = draw(st.sampled_from(valid))
        return whole[:10] + changed_sql(draw, whole[10:], columns, folder)

    return Target(valid, resume, changed())


def inputs(folder: Path) -> Target:
    """Read edges, tiers, kinds, candidates and priors from CSV files, as the command line takes them."""
    from gpn_bayes.cli import inputs as read

    names = ["a", "b", "c"]
    valid = [b"cause,effect\na,b\nb,c\n", b"name,tier\na,1\nb,2\nc,2\n", b"parent,child,probability\na,b,0.3\n"]
    valid += [b"name,kind,levels\na,ordered,low<high\nb,number,\n"]
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
            lambda: read.read_kinds(str(path)),
        ):
            try:
                reader()
            except ValueError as error:
                if fault_of(error, (ValueError,)):
                    raise
                refused = error
        return refused

    return Target(valid, run, texts_of_tables())

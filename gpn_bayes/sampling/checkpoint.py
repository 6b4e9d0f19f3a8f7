"""Remember where every chain stands, so that a killed run goes on instead of starting again."""

import json
import os
import re
import sqlite3
from collections.abc import Mapping
from typing import Any, NamedTuple, Self

import numpy as np

from gpn_bayes._util import sqlite
from gpn_bayes.samplers.stored_chains import Arrays, require

# Types that numpy reads from bytes without following them anywhere: truth values, whole, real and complex numbers.
_NUMBERS = re.compile(r"[<|][biufc]\d{1,2}")

_SCHEMA = (
    """CREATE TABLE IF NOT EXISTS checkpoints (
        run_key TEXT, chain INTEGER, n_blocks INTEGER NOT NULL, layout TEXT NOT NULL, state BLOB NOT NULL,
        rng_state TEXT NOT NULL, PRIMARY KEY (run_key, chain))""",
    """CREATE TABLE IF NOT EXISTS blocks (
        run_key TEXT, chain INTEGER, block INTEGER, layout TEXT NOT NULL, draws BLOB NOT NULL,
        PRIMARY KEY (run_key, chain, block))""",
)


class Checkpoint(NamedTuple):
    """Where a chain stands: its draws so far and what it needs to go on."""

    n_blocks: int
    draws: Arrays
    state: Arrays
    rng_state: dict[str, Any]


class CheckpointStore:
    """The states and draws of running chains, in the SQLite file of a run.

    To be used from one thread. Arrays are stored as raw little-endian bytes with their layout in JSON.

    Parameters
    ----------
    connection_or_path : StoreConnection, str or path
        ``cache.connection`` of a `ScoreCache`, which stays open, or the path of a file to open here.

    Examples
    --------
    >>> import tempfile
    >>> rng = np.random.default_rng(1)
    >>> with tempfile.TemporaryDirectory() as folder, CheckpointStore(f"{folder}/run.sqlite") as store:
    ...     state = {"order": np.array([2, 0, 1])}
    ...     store.save_block("run", 0, 0, {"lp": np.array([-3.5, -3.0])}, state, rng.bit_generator.state)
    ...     store.save_block("run", 0, 1, {"lp": np.array([-2.5])}, state, rng.bit_generator.state)
    ...     checkpoint = store.load("run", 0)
    >>> checkpoint.n_blocks, checkpoint.draws["lp"].tolist(), checkpoint.state["order"].tolist()
    (2, [-3.5, -3.0, -2.5], [2, 0, 1])
    """

    def __init__(self, connection_or_path: sqlite3.Connection | str | os.PathLike[str]) -> None:
        self._owns = not isinstance(connection_or_path, sqlite3.Connection)
        if isinstance(connection_or_path, sqlite3.Connection):
            self.connection = connection_or_path
        else:
            self.connection = sqlite.open_store(connection_or_path)
        sqlite.create_tables(self.connection, _SCHEMA)

    def save_block(
        self,
        run_key: str,
        chain: int,
        block: int,
        draws: Mapping[str, np.ndarray],
        state: Mapping[str, np.ndarray],
        rng_state: Mapping[str, Any],
    ) -> None:
        """Append a block of draws and replace the chain's state, both or neither.

        Parameters
        ----------
        run_key : str
            Names the run: equal keys must mean equal data, settings and seed.
        chain : int
            The chain's number.
        block : int
            The block's number; a chain's blocks are 0, 1, 2, ...
        draws : dict of str to ndarray
            What to keep of this block, one entry a draw along the first axis; empty while tuning.
        state : dict of str to ndarray
            What the chain needs to go on.
        rng_state : dict
            ``rng.bit_generator.state``, after the block.
        """
        draws_layout, draws_bytes = _pack(draws)
        state_layout, state_bytes = _pack(state)
        with sqlite.transaction(self.connection) as connection:
            self._check_follows(run_key, chain, block, draws_layout)
            connection.execute(
                "INSERT INTO blocks VALUES (?, ?, ?, ?, ?)",
                (run_key, chain, block, json.dumps(draws_layout), draws_bytes),
            )
            connection.execute(
                "INSERT OR REPLACE INTO checkpoints VALUES (?, ?, ?, ?, ?, ?)",
                (run_key, chain, block + 1, json.dumps(state_layout), state_bytes, _rng_to_json(rng_state)),
            )

    def load(self, run_key: str, chain: int) -> Checkpoint | None:
        """Return where a chain stands, its blocks' draws joined; None if nothing was saved.

        Raises
        ------
        ValueError
            If what the file holds can't have been saved.
        """
        with sqlite.reading(self.connection):
            row = self.connection.execute(
                "SELECT n_blocks, layout, state, rng_state FROM checkpoints WHERE run_key = ? AND chain = ?",
                (run_key, chain),
            ).fetchone()
            if row is None:
                return None
            n_blocks, layout, state, rng_state = row
            blocks = self.connection.execute(
                "SELECT layout, draws FROM blocks WHERE run_key = ? AND chain = ? ORDER BY block",
                (run_key, chain),
            )
            try:
                unpacked = [_unpack(*block) for block in blocks]
                parts = [draws for draws in unpacked if draws]
                joined = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]} if parts else {}
                found = Checkpoint(n_blocks, joined, _unpack(layout, state), _rng_from_json(rng_state))
            except (ValueError, TypeError, KeyError, IndexError, OverflowError, RecursionError, MemoryError):
                require(False, "arrays that can't be read")
                raise
        require(n_blocks == len(unpacked) and all(part.keys() == joined.keys() for part in parts), "blocks of draws")
        return found

    def forget(self, run_key: str) -> None:
        """Remove a run's states and draws, all chains, and those of its rounds, whose keys go on with a colon."""
        with sqlite.transaction(self.connection) as connection:
            for table in ("blocks", "checkpoints"):
                connection.execute(
                    f"DELETE FROM {table} WHERE run_key = ? OR run_key LIKE ?", (run_key, f"{run_key}:%")
                )

    def close(self) -> None:
        """Close the file, if it was opened here."""
        if self._owns:
            self.connection.close()

    def __enter__(self) -> Self:
        """Return the store itself; leaving the block closes it."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the store, whatever happened."""
        self.close()

    def _check_follows(self, run_key: str, chain: int, block: int, layout: list[list[Any]]) -> None:
        key = (run_key, chain)
        row = self.connection.execute(
            "SELECT n_blocks FROM checkpoints WHERE run_key = ? AND chain = ?", key
        ).fetchone()
        expected = row[0] if row else 0
        if block != expected:
            raise ValueError(f"blocks must be saved in order; chain {chain} expects {expected}, received {block}")
        for name, _, shape in layout:
            if not shape:
                raise ValueError(f"draws must have a first axis over draws; {name!r} has none")
        row = self.connection.execute(
            "SELECT layout FROM blocks WHERE run_key = ? AND chain = ? AND layout <> '[]' LIMIT 1", key
        ).fetchone()
        if row and layout and _draw_layout(layout) != _draw_layout(json.loads(row[0])):
            raise ValueError(
                "all blocks of a chain must have draws of the same names, types and shapes; "
                f"expected {_draw_layout(json.loads(row[0]))}, received {_draw_layout(layout)}"
            )


def _draw_layout(layout: list[list[Any]]) -> dict[str, tuple[str, list[int]]]:
    """Return each array's type and the shape of one draw."""
    return {name: (dtype, shape[1:]) for name, dtype, shape in layout}


def _pack(arrays: Mapping[str, np.ndarray]) -> tuple[list[list[Any]], bytes]:
    """Return the arrays' (name, type, shape) and their bytes one after the other."""
    layout, parts = [], []
    for name, given in arrays.items():
        array = np.asarray(given)
        if array.dtype.kind not in "biufc":
            raise ValueError(f"checkpoint arrays must hold numbers; {name!r} has type {array.dtype}")
        array = array.astype(array.dtype.newbyteorder("<"), copy=False)
        layout.append([name, array.dtype.str, list(array.shape)])
        parts.append(array.tobytes())
    return layout, b"".join(parts)


def _unpack(layout: str, data: bytes) -> Arrays:
    arrays, offset = {}, 0
    for name, dtype, shape in json.loads(layout):
        # Anything but plain numbers, such as pointers to objects, would be taken for what the bytes say.
        if not _NUMBERS.fullmatch(dtype):
            raise ValueError(f"arrays must hold plain numbers; {name!r} has type {dtype!r}")
        view: np.ndarray = np.ndarray(shape, dtype, buffer=data, offset=offset)
        arrays[name] = view.astype(view.dtype.newbyteorder("="))
        offset += view.nbytes
    if offset != len(data):
        raise ValueError(f"arrays of {offset} bytes must have as many; received {len(data)}")
    return arrays


def _rng_to_json(rng_state: Mapping[str, Any]) -> str:
    def encode(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            return {"dtype": value.dtype.str, "values": value.tolist()}
        if isinstance(value, np.integer):
            return int(value)
        raise ValueError(f"a generator's state must be made of integers and arrays; received {type(value).__name__}")

    return json.dumps(dict(rng_state), default=encode)


def _rng_from_json(text: str) -> dict[str, Any]:
    def decode(value: dict[str, Any]) -> Any:
        if value.keys() != {"dtype", "values"}:
            return value
        if not _NUMBERS.fullmatch(value["dtype"]):
            raise ValueError(f"a generator's state must be made of numbers; received {value['dtype']!r}")
        return np.array(value["values"], value["dtype"])

    state: dict[str, Any] = json.loads(text, object_hook=decode)
    return state

"""Whether a posterior's file can be read without harm, found out in a process of its own.

HDF5 can loop forever in a damaged file, which nothing in the same process can interrupt: an object of size 0 in a heap
of texts is enough. So another process opens the file first, under limits of time and memory, and looks at everything
but the numbers: groups, attributes, texts, and where the chunks of arrays are. That takes no longer for large arrays.

This file is run as a script. It imports little, so that it starts fast.
"""

import json
import math
import os
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

# Deflate, at its best, turns 1032 bytes into one.
_MOST_UNPACKED = 1032
_DEFLATE, _SHUFFLE, _FLETCHER = 1, 2, 3
# How netCDF marks an array that only says how long a dimension is; nobody reads it.
_NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"
_OBJECTS = 1000
_DEPTH = 3
# Seconds of processor time, for any file and per byte, and how many times as long by the clock.
_SECONDS, _SECONDS_PER_BYTE, _PATIENCE = 5, 5e-8, 10
# Bytes beyond the file's own that the libraries and texts may take.
_ROOM = 2 << 30


def check_file(path: Path) -> None:
    """Refuse a file that can't be read, that would never end, or that unpacks to more than fits into memory.

    Raises
    ------
    ValueError
        In a few words, why.
    """
    if not sys.executable:  # as in programs that hold an interpreter
        probe(path)
        return
    seconds = _SECONDS + math.ceil(path.stat().st_size * _SECONDS_PER_BYTE)
    command = [sys.executable, "-P", __file__, str(path.absolute()), str(seconds)]
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=_PATIENCE * seconds, stdin=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        done = None
    try:
        reason = json.loads(done.stdout) if done is not None else "its parts have no end"
    except ValueError:
        reason = "its parts have no end, or end the program that reads them"
    if reason is not None:
        raise ValueError(reason)


def probe(path: Path) -> None:
    """Look at all parts of a file but the numbers.

    Raises
    ------
    ValueError
        In a few words, what is wrong with it.
    """
    import h5py

    size = path.stat().st_size
    try:
        with h5py.File(path, "r") as file:
            _Walk(size).look(file, 0)
    except ValueError:
        raise
    except Exception as error:  # a broken file can lead h5py to any
        raise ValueError(str(error) or "it is damaged") from None


class _Walk:
    """What has been seen of a file."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._objects = 0
        self._unpacked = 0
        self._text = 0

    def look(self, group: Any, depth: int) -> None:
        """Look at a group and all that it holds."""
        import h5py

        self._look_at_attributes(group)
        _require(depth < _DEPTH, "its groups are nested too deeply")
        for name in group:
            self._objects += 1
            _require(self._objects <= _OBJECTS, "it has too many parts")
            _require(isinstance(group.get(name, getlink=True), h5py.HardLink), "it refers to other places or files")
            part = group[name]
            if isinstance(part, h5py.Group):
                self.look(part, depth + 1)
            elif isinstance(part, h5py.Dataset):
                self._look_at_array(part)

    def _look_at_attributes(self, part: Any) -> None:
        for value in part.attrs.values():
            self._text += len(value) if isinstance(value, str | bytes) else 0
        self._check_text()

    def _look_at_array(self, array: Any) -> None:
        self._look_at_attributes(array)
        _require(not (array.is_virtual or array.external), "it refers to other places or files")
        for dimension in array.dims:
            len(dimension)
        if array.dtype.kind == "O":
            # Many entries may share one text. Each is read alone, so that their sum is known before it is in memory.
            _require(array.ndim <= 1 and array.size <= self._size, "its texts aren't a list")
            for place in range(array.size):
                self._text += len(array[place] if array.ndim else array[()])
                self._check_text()
            return
        if bytes(array.attrs.get("NAME", b"")).startswith(_NO_VARIABLE):
            return
        self._unpacked += array.nbytes
        _require(self._unpacked <= _memory(), f"its arrays must fit into memory; they take {self._unpacked >> 30} GB")
        if array.chunks is None:
            _require(array.nbytes == array.id.get_storage_size(), "an array isn't complete")
        else:
            self._look_at_chunks(array)

    def _look_at_chunks(self, array: Any) -> None:
        """Refuse filters that nobody wrote, and chunks that are missing or can't hold what they should."""
        settings = array.id.get_create_plist()
        filters = {settings.get_filter(place)[0] for place in range(settings.get_nfilters())}
        _require(filters <= {_DEFLATE, _SHUFFLE, _FLETCHER}, "an array is packed in an unknown way")
        expected = math.prod(-(-length // step) for length, step in zip(array.shape, array.chunks, strict=True))
        stored = array.id.get_storage_size()
        _require(array.id.get_num_chunks() == expected, "an array isn't complete")
        most = stored * (_MOST_UNPACKED if _DEFLATE in filters else 1)
        _require(stored <= self._size and array.nbytes <= most, "an array isn't complete")
        array.id.chunk_iter(lambda chunk: None)

    def _check_text(self) -> None:
        _require(self._text <= self._size, "its texts are longer than the file")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise ValueError(otherwise)


def _memory() -> int:
    """Return the machine's memory in bytes; where that isn't known, more than any has."""
    with suppress(AttributeError, ValueError, OSError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return 1 << 50


def _limit(size: int, seconds: int) -> None:
    """Let the system end this process if it takes too much."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (size + _ROOM, size + _ROOM))


def _main(path: Path, seconds: int) -> None:
    _limit(path.stat().st_size, seconds)
    reason = None
    try:
        probe(path)
    except ValueError as error:
        reason = str(error)
    print(json.dumps(reason), flush=True)
    os._exit(0)  # closing a damaged file might not end


if __name__ == "__main__":
    _main(Path(sys.argv[1]), int(sys.argv[2]))

"""A posterior's file, read in a process of its own.

HDF5 can loop forever in a damaged file, crash, or write where it should not. So another process opens the file, under
limits of time and memory: it looks at groups, attributes, texts, and where the chunks of arrays are, and only then
reads the numbers. It hands everything over as plain bytes; this process never opens the file.

This file is also run as a script. It imports little, so that it starts fast.
"""

import io
import json
import math
import os
import struct
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    import numpy as np

# Deflate, at its best, turns 1032 bytes into one.
_MOST_UNPACKED = 1032
_DEFLATE, _SHUFFLE, _FLETCHER = 1, 2, 3
_NUMBERS = "biuf"
# In front of the description of a file's parts, how long it is.
_LENGTH = struct.Struct("<Q")
# How HDF5 marks arrays that say what the places along a dimension are, and netCDF truth values.
_COORDINATE, _TRUTH = b"DIMENSION_SCALE", "bool"
# How netCDF marks an array that only says how long a dimension is; nobody reads it.
_NO_VARIABLE = b"This is a netCDF dimension but not a netCDF variable"
_OBJECTS = 1000
_DEPTH = 3
# Seconds of processor time, for any file and per byte, and how many times as long by the clock.
_SECONDS, _SECONDS_PER_BYTE, _PATIENCE = 5, 5e-8, 10
# Seconds for a byte of numbers.
_SECONDS_PER_UNPACKED = 1e-8
# Bytes beyond the file's own that the libraries and texts may take.
_ROOM = 2 << 30


class StoredGroup(NamedTuple):
    """A group of a file.

    Attributes
    ----------
    attrs : dict
        Its attributes that are texts or numbers.
    variables : dict of str to ndarray
        Its arrays, of numbers or texts; not to be written to.
    coordinates : dict of str to ndarray
        Those that say what the places along a dimension are.
    """

    attrs: dict[str, Any]
    variables: "dict[str, np.ndarray]"
    coordinates: "dict[str, np.ndarray]"


def read_file(path: Path) -> dict[str, StoredGroup]:
    """Return the groups of a file by name, the outermost first, as ``""``.

    Raises
    ------
    ValueError
        In a few words, for a file that can't be read, that would never end, or that unpacks to more than fits into
        memory.
    """
    if not sys.executable:  # as in programs that hold an interpreter
        packed = io.BytesIO()
        write_content(path, packed)
        return unpack(packed.getvalue())
    seconds = _SECONDS + math.ceil(path.stat().st_size * _SECONDS_PER_BYTE)
    longest = seconds + math.ceil(path.stat().st_size * _MOST_UNPACKED * _SECONDS_PER_UNPACKED)
    command = [sys.executable, "-P", __file__, str(path.absolute()), str(seconds), str(longest)]
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=_PATIENCE * longest, stdin=subprocess.DEVNULL,
            env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise ValueError("its parts have no end") from None
    if done.returncode:
        raise ValueError("its parts have no end, or end the program that reads them")
    return unpack(done.stdout)


def unpack(packed: bytes) -> dict[str, StoredGroup]:
    """Return what `write_content` wrote.

    Raises
    ------
    ValueError
        In a few words, why the file was refused.
    """
    import numpy as np

    begin = _LENGTH.size
    if len(packed) < begin:
        raise ValueError("its parts have no end, or end the program that reads them")
    end = begin + _LENGTH.unpack(packed[:begin])[0]
    header = json.loads(packed[begin:end])
    if isinstance(header, str):
        raise ValueError(header)
    groups = {}
    for path, attrs, arrays in header:
        group = groups[path] = StoredGroup(attrs, {}, {})
        for name, is_coordinate, content, shape in arrays:
            if isinstance(content, list):
                values = np.array(content, dtype=str).reshape(shape)
            else:
                kind = np.dtype(content)
                if kind.kind not in _NUMBERS:
                    raise ValueError("an array holds neither numbers nor texts")
                count = math.prod(shape)
                values = np.frombuffer(packed, kind, count, end).reshape(shape)
                end += count * kind.itemsize
            (group.coordinates if is_coordinate else group.variables)[name] = values
    return groups


def write_content(path: Path, out: IO[bytes], allow: Callable[[int], None] = lambda most: None) -> None:
    """Write the content of a file, or in a few words why it is refused, for `unpack` to read.

    Parameters
    ----------
    path : Path
        The file.
    out : binary file
        Where to write.
    allow : callable
        Called before numbers are read, with the largest number of bytes that is read at once.
    """
    import h5py

    walk = _Walk(path.stat().st_size)
    try:
        file = h5py.File(path, "r")
        walk.look(file, "", 0)
    except Exception as error:  # a broken file can lead h5py to any
        _write_header(str(error) or "it is damaged", out)
        return
    allow(max((array.nbytes // max(len(array), 1) for array in walk.numbers if array.ndim), default=0))
    _write_header(walk.groups, out)
    for array in walk.numbers:
        for place in range(len(array)) if array.ndim else [()]:
            out.write(array[place].tobytes())
    out.flush()


def _write_header(header: Any, out: IO[bytes]) -> None:
    text = json.dumps(header).encode()
    out.write(_LENGTH.pack(len(text)) + text)
    out.flush()


class _Walk:
    """What has been seen of a file.

    Attributes
    ----------
    groups : list of (path, attributes, arrays)
        Its groups; arrays as (name, whether they are coordinates, texts or a type of number, shape).
    numbers : list of h5py.Dataset
        The arrays of numbers, in the same order, yet to be read.
    """

    def __init__(self, size: int) -> None:
        self.groups: list[tuple[str, dict[str, Any], list[tuple[str, bool, Any, list[int]]]]] = []
        self.numbers: list[Any] = []
        self._size = size
        self._objects = 0
        self._unpacked = 0
        self._text = 0

    def look(self, group: Any, path: str, depth: int) -> None:
        """Look at a group and all that it holds."""
        import h5py

        arrays: list[tuple[str, bool, Any, list[int]]] = []
        self.groups.append((path, self._attributes(group), arrays))
        _require(depth < _DEPTH, "its groups are nested too deeply")
        for name in group:
            self._objects += 1
            _require(self._objects <= _OBJECTS, "it has too many parts")
            _require(isinstance(group.get(name, getlink=True), h5py.HardLink), "it refers to other places or files")
            part = group[name]
            if isinstance(part, h5py.Group):
                self.look(part, f"{path}/{name}" if path else name, depth + 1)
            elif isinstance(part, h5py.Dataset):
                self._look_at_array(part, name, arrays)

    def _attributes(self, part: Any) -> dict[str, Any]:
        """Return the attributes that are texts or numbers, and count all texts."""
        kept = {}
        for name, value in part.attrs.items():
            value = value.item() if getattr(value, "shape", None) in ((), (1,)) else value  # netCDF has no scalars
            self._text += len(value) if isinstance(value, str | bytes) else 0
            if isinstance(value, str | int | float):
                kept[name] = value
        self._check_text()
        return kept

    def _look_at_array(self, array: Any, name: str, arrays: list[tuple[str, bool, Any, list[int]]]) -> None:
        attributes = self._attributes(array)
        _require(not (array.is_virtual or array.external), "it refers to other places or files")
        is_coordinate = bytes(array.attrs.get("CLASS", b"")) == _COORDINATE
        if array.dtype.kind == "O":
            arrays.append((name, is_coordinate, self._texts(array), list(array.shape)))
            return
        if bytes(array.attrs.get("NAME", b"")).startswith(_NO_VARIABLE):
            return
        _require(array.dtype.kind in _NUMBERS, "an array holds neither numbers nor texts")
        self._unpacked += array.nbytes
        _require(self._unpacked <= _memory(), f"its arrays must fit into memory; they take {self._unpacked >> 30} GB")
        if array.chunks is None:
            _require(array.nbytes == array.id.get_storage_size(), "an array isn't complete")
        else:
            self._look_at_chunks(array)
        truth = attributes.get("dtype") == _TRUTH and array.dtype.itemsize == 1
        arrays.append((name, is_coordinate, _TRUTH if truth else array.dtype.str, list(array.shape)))
        self.numbers.append(array)

    def _texts(self, array: Any) -> list[str]:
        """Return an array of texts; many entries may share one, so each is read alone, and their lengths are summed."""
        _require(array.ndim <= 1 and array.size <= self._size, "its texts aren't a list")
        texts = []
        for place in range(array.size):
            text = array[place] if array.ndim else array[()]
            _require(isinstance(text, str | bytes), "its texts aren't a list")
            self._text += len(text)
            self._check_text()
            texts.append(text if isinstance(text, str) else text.decode())
        return texts

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


def _limit(kind: str, soft: int, hard: int | None = None) -> None:
    """Let the system end this process if it takes more than this of a resource."""
    with suppress(ImportError, ValueError, OSError):
        import resource

        number = getattr(resource, kind)
        resource.setrlimit(number, (soft, resource.getrlimit(number)[1] if hard is None else hard))


def _main(path: Path, seconds: int, longest: int) -> None:
    room = path.stat().st_size + _ROOM
    _limit("RLIMIT_CPU", seconds, longest)
    _limit("RLIMIT_AS", room)

    def allow(most: int) -> None:
        _limit("RLIMIT_CPU", longest)
        _limit("RLIMIT_AS", room + 2 * most)

    status = 1
    with suppress(Exception):
        write_content(path, sys.stdout.buffer, allow)
        status = 0
    os._exit(status)  # closing a damaged file might not end


if __name__ == "__main__":
    _main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))

"""Named arrays as messages and back: three types of elements, shapes checked, no NaN."""

import math
from collections.abc import Iterable, Mapping

import numpy as np

from gpn_bayes.wire import federation_pb2 as messages

MAX_DIMENSIONS = 8
MAX_NAME = 200
_TYPES = {messages.FLOAT64: "<f8", messages.INT64: "<i8", messages.UINT64: "<u8"}
_CODES = {np.dtype(text): code for code, text in _TYPES.items()}


def to_messages(arrays: Mapping[str, np.ndarray]) -> list[messages.Array]:
    """Return arrays as messages, in the order of their names.

    Examples
    --------
    >>> from_messages(to_messages({"x": np.array([[1.5, 2.0]])}))
    {'x': array([[1.5, 2. ]])}
    """
    return [_to_message(name, arrays[name]) for name in sorted(arrays)]


def _to_message(name: str, array: np.ndarray) -> messages.Array:
    code = _CODES.get(array.dtype.newbyteorder("<"))
    if code is None:
        raise ValueError(f"arrays must hold float64, int64 or uint64; {name!r} holds {array.dtype}")
    _check_numbers(name, array)
    data = np.ascontiguousarray(array, dtype=_TYPES[code]).tobytes()
    return messages.Array(name=name, type=code, shape=array.shape, data=data)


def from_messages(received: Iterable[messages.Array]) -> dict[str, np.ndarray]:
    """Return the arrays of messages, by name.

    Raises
    ------
    ValueError
        For a repeated or overlong name, an unknown type, a shape that doesn't fit the bytes, or NaN or infinity.
    """
    arrays: dict[str, np.ndarray] = {}
    for message in received:
        if message.name in arrays or len(message.name) > MAX_NAME:
            raise ValueError(f"names of arrays must differ and have {MAX_NAME} characters at most")
        arrays[message.name] = _from_message(message)
    return arrays


def _from_message(message: messages.Array) -> np.ndarray:
    dtype = _TYPES.get(message.type)
    if dtype is None:
        raise ValueError(f"arrays must hold float64, int64 or uint64; received type {message.type}")
    shape = tuple(message.shape)
    if len(shape) > MAX_DIMENSIONS or 8 * math.prod(shape) != len(message.data):
        raise ValueError(
            f"an array's shape must fit its bytes; received {shape[:MAX_DIMENSIONS]}, {len(message.data)} bytes"
        )
    array = np.frombuffer(message.data, dtype=dtype).reshape(shape).astype(np.dtype(dtype).newbyteorder("="))
    _check_numbers(message.name, array)
    return array


def _check_numbers(name: str, array: np.ndarray) -> None:
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise ValueError(f"every number must be finite; array {name!r} holds NaN or infinity")

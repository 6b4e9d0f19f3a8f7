"""What the coordinator asks all clients in one round: a task, and values that are no secret."""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike


@dataclass(frozen=True, eq=False)
class Request:
    """A task and its values, as float64 or int64 arrays."""

    task: str
    values: dict[str, np.ndarray]

    @classmethod
    def of(cls, task: str, values: Mapping[str, ArrayLike]) -> "Request":
        """Return a request of anything that numpy takes for numbers.

        Raises
        ------
        ValueError
            For values that aren't real, finite numbers.
        """
        return cls(task, {name: _as_numbers(name, value) for name, value in values.items()})

    @property
    def digest(self) -> bytes:
        """A hash of the task and all values: equal requests, and only those, have equal digests.

        Examples
        --------
        >>> Request.of("step", {"x": 1.0}).digest == Request.of("step", {"x": 1.5}).digest
        False
        """
        digest = hashlib.sha256(_framed(self.task))
        for name in sorted(self.values):
            array = self.values[name]
            digest.update(_framed(name) + _framed(f"{array.dtype.kind}{array.shape}"))
            digest.update(np.ascontiguousarray(array, dtype=array.dtype.newbyteorder("<")).tobytes())
        return digest.digest()


def _framed(text: str) -> bytes:
    """Return a text's bytes after their number, so that no two sequences of texts run into the same bytes."""
    data = text.encode()
    return len(data).to_bytes(8, "little") + data


def _as_numbers(name: str, value: ArrayLike) -> np.ndarray:
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"values of a task must be real numbers; {name!r} holds {array.dtype}")
    array = array.astype(np.float64 if array.dtype.kind == "f" else np.int64)
    if not np.isfinite(array).all():
        raise ValueError(f"values of a task must be finite; {name!r} holds NaN or infinity")
    return array

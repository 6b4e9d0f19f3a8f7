"""Arrays as the bytes of an ``.npz`` file and back, for checkpoints; nothing is ever unpickled."""

import io
import zipfile
from collections.abc import Mapping

import numpy as np


def pack(arrays: Mapping[str, np.ndarray]) -> bytes:
    """Return arrays as bytes.

    Examples
    --------
    >>> unpack(pack({"x": np.array([1.0, 2.0])}))
    {'x': array([1., 2.])}
    """
    file = io.BytesIO()
    # np.savez takes names as keywords, and so not all of them.
    with zipfile.ZipFile(file, "w") as archive:
        for name, array in arrays.items():
            if np.asarray(array).dtype.hasobject:
                raise ValueError(f"arrays of a checkpoint must hold plain values; {name!r} holds Python objects")
            with archive.open(f"{name}.npy", "w") as member:
                np.lib.format.write_array(member, np.asarray(array), allow_pickle=False)
    return file.getvalue()


def unpack(data: bytes) -> dict[str, np.ndarray]:
    """Return the arrays that `pack` made bytes of."""
    with np.load(io.BytesIO(data), allow_pickle=False) as content:
        return {name: content[name] for name in content.files}

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
    """Return the arrays that `pack` made bytes of.

    Raises
    ------
    ValueError
        If they can't have been made by `pack`.
    """
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            # What isn't compressed takes no more memory than the bytes do.
            plain = all(part.compress_type == zipfile.ZIP_STORED for part in archive.infolist())
        with np.load(io.BytesIO(data), allow_pickle=False) as content:
            arrays = {name: content[name] for name in content.files} if plain else None
    except Exception:  # damaged bytes can lead zipfile and numpy to any
        arrays = None
    if arrays is None or not all(isinstance(array, np.ndarray) for array in arrays.values()):
        raise ValueError("the arrays of a checkpoint must be as they were written; received something else")
    return arrays

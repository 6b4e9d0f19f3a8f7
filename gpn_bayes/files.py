"""Writing files: never over another unless asked to, and whole or not at all."""

import os
from pathlib import Path


def new_file(path: str | os.PathLike[str], overwrite: bool = False) -> Path:
    """Return the path of a file to write; refuse one that exists, or whose folder doesn't.

    Parameters
    ----------
    path : path
        Where to write.
    overwrite : bool, default False
        Whether an existing file may be replaced.

    Examples
    --------
    >>> new_file("nowhere/report.html")
    Traceback (most recent call last):
    ValueError: the folder must exist; 'nowhere' doesn't
    """
    target = Path(path)
    if target.exists() and not overwrite:
        raise ValueError(f"an existing file is only replaced with overwrite=True; {str(target)!r} exists")
    if target.is_dir():
        raise ValueError(f"the path must be that of a file; {str(target)!r} is a folder")
    if not target.parent.is_dir():
        raise ValueError(f"the folder must exist; {str(target.parent)!r} doesn't")
    return target


def write_whole(path: Path, text: str) -> None:
    """Write a text file so that under its name it is always complete."""
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("w", encoding="utf-8", newline="") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)

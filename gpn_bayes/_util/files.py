"""Writing files: atomically, and never over another unless asked to."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


class UnwritableError(ValueError):
    """Says in one line which file can't be written, and why: no permission, no space, or no such folder."""


def unwritable(path: str | os.PathLike[str], reason: str) -> UnwritableError:
    """Return the error about a file that can't be written."""
    return UnwritableError(f"a file must be writable; {str(path)!r} isn't: {reason}")


@contextmanager
def writing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn errors of the system, raised while a file is written, into an `UnwritableError` that names it.

    Examples
    --------
    >>> with writing("report.html"):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
    gpn_bayes._util.files.UnwritableError: a file must be writable; 'report.html' isn't: No space left on device
    """
    try:
        yield
    except OSError as error:
        # Libraries that write files put more into the text than a reader needs.
        raise unwritable(path, os.strerror(error.errno) if error.errno else str(error)) from error


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
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"the path must be a text or a Path; received {path!r}")
    target = Path(path)
    if target.exists() and not overwrite:
        raise ValueError(f"an existing file is only replaced with overwrite=True; {str(target)!r} exists")
    if target.is_dir():
        raise ValueError(f"the path must be that of a file; {str(target)!r} is a folder")
    if not target.parent.is_dir():
        raise ValueError(f"the folder must exist; {str(target.parent)!r} doesn't")
    return target


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file atomically, so that it is always complete; text as UTF-8.

    Raises
    ------
    UnwritableError
        Where it can't be written: the disk is full, or the folder is write-protected.
    """
    part = path.with_name(f".{path.name}.part")
    with writing(path):
        try:
            with part.open("wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

"""Writing files: never over another unless asked to, and whole or not at all."""

import os
from contextlib import suppress
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


def write_whole(path: Path, content: str | bytes | memoryview) -> None:
    """Write a file so that under its name it is always complete; text as UTF-8.

    Raises
    ------
    ValueError
        Where it can't be written: the disk is full, or the folder is write-protected.
    """
    part = path.with_name(f".{path.name}.part")
    try:
        with part.open("wb") as file:
            file.write(content.encode() if isinstance(content, str) else content)
            file.flush()
            os.fsync(file.fileno())
        part.replace(path)
    except OSError as error:
        raise ValueError(f"the file must be writable; {str(path)!r} isn't: {error.strerror or error}") from None
    finally:
        with suppress(OSError):
            part.unlink(missing_ok=True)

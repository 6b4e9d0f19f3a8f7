"""Writing files: atomically, and never over another unless asked to."""

import os
import stat
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from gpn_bayes._util.checks import shown

# Windows has no such flag; there, links take the rights of an administrator.
NO_LINK: int = getattr(os, "O_NOFOLLOW", 0)


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


def new_file(path: str | os.PathLike[str], overwrite: bool = False, endings: Sequence[str] = ()) -> Path:
    """Return the path of a file to write; refuse one that exists, whose folder doesn't, or whose name misleads.

    Parameters
    ----------
    path : path
        Where to write.
    overwrite : bool, default False
        Whether an existing file may be replaced.
    endings : sequence of str
        How the names of such files may end; any name will do if there are none, and so does one without an ending.

    Examples
    --------
    >>> new_file("nowhere/report.html")
    Traceback (most recent call last):
    ValueError: the folder must exist; 'nowhere' doesn't
    >>> new_file("report.pdf", endings=[".html", ".htm"])
    Traceback (most recent call last):
    ValueError: the file's name must end with .html or .htm; received 'report.pdf'
    """
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"the path must be a text or a Path; received {shown(path)}")
    target = Path(path)
    if endings and target.suffix and target.suffix.lower() not in endings:
        raise ValueError(f"the file's name must end with {' or '.join(endings)}; received {target.name!r}")
    if target.exists() and not overwrite:
        raise ValueError(f"an existing file is only replaced with overwrite=True; {str(target)!r} exists")
    if target.is_dir():
        raise ValueError(f"the path must be that of a file; {str(target)!r} is a folder")
    if not target.parent.is_dir():
        raise ValueError(f"the folder must exist; {str(target.parent)!r} doesn't")
    return target


def new_private_file(path: Path) -> int:
    """Return the descriptor of a new file that only its owner may read, in place of what an earlier process left there.

    Where somebody has put a link in its place, nothing is written to what that leads to.
    """
    path.unlink(missing_ok=True)
    return os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | NO_LINK, 0o600)


def write_whole(path: Path, content: str | bytes, secret: bool = False) -> None:
    """Write a file atomically, so that it is always complete; text as UTF-8.

    A new file may be read by its owner only; one that takes another's place keeps that one's permissions, unless it is
    secret. Where the path is a link, the file takes its place, and what it leads to stays as it was.

    Raises
    ------
    UnwritableError
        Where it can't be written: the disk is full, or the folder is write-protected.
    """
    part = path.with_name(f".{path.name}.part")
    with writing(path):
        try:
            with os.fdopen(new_private_file(part), "wb") as file:
                file.write(content.encode() if isinstance(content, str) else content)
                file.flush()
                os.fsync(file.fileno())
            if not secret and path.exists() and not path.is_symlink():
                part.chmod(stat.S_IMODE(path.stat().st_mode))
            part.replace(path)
        finally:
            part.unlink(missing_ok=True)

"""What to install where a package that only some users need is missing."""

from collections.abc import Iterator
from contextlib import contextmanager


class MissingPackage(ImportError):
    """A package that one of the project's extras installs isn't there."""


@contextmanager
def installed_by(extra: str) -> Iterator[None]:
    """Turn a failed import into one line that names the extra.

    Examples
    --------
    >>> with installed_by("private"):
    ...     import no_such_package
    Traceback (most recent call last):
    gpn_bayes._util.extras.MissingPackage: no_such_package must be installed; use pip install "gpn_bayes[private]"
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "a package").partition(".")[0]
        if package == "gpn_bayes":
            raise
        raise MissingPackage(f'{package} must be installed; use pip install "gpn_bayes[{extra}]"') from None

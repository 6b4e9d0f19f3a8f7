"""The one look of all progress bars."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress_bar(description: str, total: float, show: bool) -> Iterator[Callable[[float], None]]:
    """Show a bar on stderr with the remaining time; yields the function that moves it on.

    Parameters
    ----------
    description : str
        What is going on.
    total : float
        Where the bar is full.
    show : bool
        Nothing is shown, and rich isn't imported, when False.

    Examples
    --------
    >>> with progress_bar("scores", 3, show=False) as advance:
    ...     advance(3)
    """
    if not show:
        yield lambda done: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description:<12}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(),
    )
    # Slow scores may be minutes apart: rate the speed over a long window.
    with Progress(*columns, console=Console(file=sys.stderr), speed_estimate_period=1800) as progress:
        task = progress.add_task(description, total=total)
        yield lambda done: progress.advance(task, done)


def shares(advance: Callable[[float], None]) -> Callable[[float], None]:
    """Turn a bar that moves by steps into one that is told the share done."""
    done = 0.0

    def move_to(share: float) -> None:
        nonlocal done
        advance(share - done)
        done = share

    return move_to


@contextmanager
def status_line(show: bool) -> Iterator[Callable[[str], None]]:
    """Show one line on stderr, for work whose end can't be foretold; yields the function that changes its text.

    Parameters
    ----------
    show : bool
        Nothing is shown, and rich isn't imported, when False.

    Examples
    --------
    >>> with status_line(show=False) as tell:
    ...     tell("gap 3.2 nats")
    """
    if not show:
        yield lambda text: None
        return
    from rich.console import Console

    with Console(file=sys.stderr).status("") as status:
        yield status.update

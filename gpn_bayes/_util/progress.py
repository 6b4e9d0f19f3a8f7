"""Progress: bars in terminals and notebooks, plain lines in logs."""

import importlib.util
import math
import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from contextvars import ContextVar
from time import monotonic
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import TaskID

# Seconds between the lines of a log; they grow to a tenth of the time so far, so that long runs keep short logs.
_LOG_SECONDS = 10.0
# Seconds between changes of the line in a notebook.
_NOTEBOOK_SECONDS = 0.5
# What is done this soon, in seconds, may come from an earlier run, and says nothing about speed.
_HEAD_START = 1.0
# Before this share is done, the time left would be a guess.
_LEAST_SHARE = 0.01
# Where the speed of late and that of the whole time differ by this factor, the time left is given as a range.
_UNEVEN = 1.5
# As many reports of progress are remembered, every second, fourth, … of longer work.
_MOST_REPORTS = 256


@contextmanager
def progress_bar(description: str, total: float, show: bool) -> Iterator[Callable[[float], None]]:
    """Show a bar on stderr with the remaining time; yields the function that advances it.

    Where stderr is a file or a pipe, lines such as ``Scoring 40% (12 s, about 18 s left)`` appear every ten seconds or
    more, whether or not anything was reported, and none at all for work that takes less. Where the speed has changed,
    the time left is a range, ``20 s to 1 min 37 s left``. Notebooks without ipywidgets show one such line that changes.

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
    shared = _shared_line.get()
    if shared is not None:
        try:
            yield shared.begin(description, total)
        finally:
            shared.rest()
        return
    from rich.console import Console

    console = Console(file=sys.stderr)
    lines = _plain_lines(console)
    if lines is not None:
        with lines:
            yield _PlainBar(description, total, lines).advance
        return
    with _BarLine(console) as line:
        yield line.begin(description, total)


class _Pace:
    """How much is done, and how long the rest may take: by the speed of the whole time and by that of late.

    Parameters
    ----------
    total : float
        What there is to do.
    """

    def __init__(self, total: float) -> None:
        self.total = total
        self.done = 0.0
        self.started = monotonic()
        # When how much was done; the first is where the part began that the speed is estimated from.
        self._reports = [(self.started, 0.0)]
        self._every, self._skipped = 1, 0

    @property
    def share(self) -> float:
        """The share done."""
        return min(self.done / self.total, 1.0) if self.total > 0 else 1.0

    @property
    def ended(self) -> bool:
        """Whether all is done, but for rounding."""
        return self.done >= self.total * (1 - 1e-9)

    def advance(self, step: float) -> None:
        """Take note of what was done."""
        now = monotonic()
        self.done += step
        if now - self.started < _HEAD_START:
            self._reports = [(now, self.done)]
            return
        self._skipped += 1
        if self._skipped >= self._every:
            self._reports.append((now, self.done))
            self._skipped = 0
        if len(self._reports) > _MOST_REPORTS:
            self._reports = self._reports[::2]
            self._every *= 2

    def left(self) -> str:
        """Return how long it may still take, in words; nothing where that isn't known yet or nothing is left."""
        now = monotonic()
        since, before = self._reports[0]
        if not _LEAST_SHARE * self.total <= self.done < self.total or self.done <= before:
            return ""
        rest = self.total - self.done
        average = (now - since) / (self.done - before) * rest
        half, done_by_half = max(report for report in self._reports if report[0] <= (since + now) / 2)
        if self.done <= done_by_half:
            return f"more than {_duration(average)}" if average >= 1.0 else ""
        of_late = (now - half) / (self.done - done_by_half) * rest
        low, high = sorted((average, of_late))
        if high <= _UNEVEN * low or _duration(low) == _duration(high):
            return f"about {_duration(average)}"
        return f"{_duration(low)} to {_duration(high)}"


class _BarLine:
    """One line of a terminal, whose bar may begin again for another part of the work.

    Parameters
    ----------
    console : Console
        Where to draw.
    title : str, optional
        What the line is called between parts, when only the clock is known to go on.
    """

    def __init__(self, console: "Console", title: str | None = None) -> None:
        from rich.progress import BarColumn, Progress, Task, TextColumn, TimeElapsedColumn
        from rich.text import Text

        class Pace(TextColumn):
            """The share done and the time left, as of now; rich would round 99.6 % to 100 % and let the time stand."""

            def __init__(self, text: Callable[[_Pace], str]) -> None:
                super().__init__("")
                self._text = text

            def render(self, task: Task) -> Text:
                pace = task.fields.get("pace")
                return Text("" if pace is None else self._text(pace))

        columns = (
            TextColumn("{task.description:<12}"),
            BarColumn(),
            Pace(lambda pace: f"{int(100 * pace.share):>3}%"),
            TimeElapsedColumn(),
            Pace(lambda pace: f"{pace.left()} left" if pace.left() else ""),
        )
        self._progress = Progress(*columns, console=console)
        self._title = title
        self._started = self._progress.get_time()

    def begin(self, description: str, total: float) -> Callable[[float], None]:
        """Begin a part; returns the function that advances its bar."""
        pace = _Pace(total)
        current = self._show(description, total=total, pace=pace)

        def advance(done: float) -> None:
            pace.advance(done)
            if current in self._progress.task_ids:
                self._progress.advance(current, done)
                if pace.ended:
                    self.rest()

        return advance

    def rest(self) -> None:
        """Show that the work goes on between parts: the title and a clock; nothing where no part has begun."""
        if self._title is not None and self._progress.task_ids:
            self._show(self._title, total=None, pace=None)
            self._progress.tasks[0].start_time = self._started

    def end(self, title: str, seconds: float) -> None:
        """Leave a full bar, of all parts together; nothing where no part has begun."""
        if self._progress.task_ids:
            pace = _Pace(1.0)
            task = self._show(title, total=1.0, pace=pace)
            self._progress.tasks[0].start_time = self._progress.get_time() - seconds
            pace.advance(1.0)
            self._progress.advance(task, 1.0)

    def _show(self, description: str, **settings: Any) -> "TaskID":
        """Let a bar take the place of the one before."""
        self._progress.start()
        for task in self._progress.task_ids:
            self._progress.remove_task(task)
        return self._progress.add_task(description, **settings)

    def __enter__(self) -> "_BarLine":
        return self

    def __exit__(self, *exception: object) -> None:
        self._progress.stop()


class _TextLine:
    """One line of a notebook, in words, that may begin again for another part of the work."""

    def __init__(self, lines: "_Lines", title: str) -> None:
        self._lines = lines
        self._title = title
        self._started = monotonic()

    def begin(self, description: str, total: float) -> Callable[[float], None]:
        """Begin a part; returns the function that advances it."""
        return _PlainBar(description, total, self._lines).advance

    def rest(self) -> None:
        """Show that the work goes on between parts."""
        self._lines.show(lambda: f"{self._title} ({_duration(monotonic() - self._started)})")

    def end(self, title: str, seconds: float) -> None:
        """Leave the title and the time; nothing where the work was too quick for a line."""
        self._lines.replace(lambda: f"{title} 100% ({_duration(seconds)})")

    def __enter__(self) -> "_TextLine":
        self._lines.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self._lines.__exit__(kind, *rest)


# The line of the stage under way, where there is one and it can change.
_shared_line: ContextVar[_BarLine | _TextLine | None] = ContextVar("line of a stage", default=None)


class Stages:
    """The stages of a long job, each of which has one line in a terminal, however many parts it has.

    At the end a line says what took the time, if it was long enough to ask.

    Parameters
    ----------
    show : bool
        Nothing is shown when False.

    Examples
    --------
    >>> stages = Stages(show=False)
    >>> with stages.stage("Sampling"), progress_bar("Sampling", 3, show=False) as advance:
    ...     advance(3)
    >>> stages.finish()
    """

    def __init__(self, show: bool) -> None:
        self._show = show
        self._seconds: dict[str, float] = {}

    @contextmanager
    def stage(self, title: str) -> Iterator[None]:
        """Give all bars that open meanwhile one line, which bears the title in the end."""
        started = monotonic()
        line: _BarLine | _TextLine | None = None
        if self._show:
            from rich.console import Console

            console = Console(file=sys.stderr)
            lines = _plain_lines(console)
            if lines is None:
                line = _BarLine(console, title)
            elif console.is_jupyter:
                line = _TextLine(lines, title)
        token = _shared_line.set(line)
        try:
            with line or nullcontext():
                yield
                if line is not None:
                    line.end(title, monotonic() - started)
        finally:
            _shared_line.reset(token)
            self._seconds[title] = self._seconds.get(title, 0.0) + monotonic() - started

    def finish(self) -> None:
        """Say what took the time, longest first; stages of less than a second aren't worth a word."""
        total = sum(self._seconds.values())
        if self._show and total >= _LOG_SECONDS:
            longest = sorted(self._seconds.items(), key=lambda item: -item[1])
            parts = [f"{title.lower()} {_duration(seconds)}" for title, seconds in longest if seconds >= 1.0]
            print(f"Took {_duration(total)}: {', '.join(parts)}.", file=sys.stderr, flush=True)


def shares(advance: Callable[[float], None]) -> Callable[[float], None]:
    """Turn a bar that moves by steps into one that takes the share done."""
    done = 0.0

    def move_to(share: float) -> None:
        nonlocal done
        advance(share - done)
        done = share

    return move_to


@contextmanager
def status_line(show: bool) -> Iterator[Callable[[str], None]]:
    """Show one line on stderr, for work whose end can't be foreseen; yields the function that changes its text.

    Where stderr is a file or a pipe, the text is written every ten seconds or more, if it has changed.

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

    console = Console(file=sys.stderr)
    lines = _plain_lines(console)
    if lines is not None:
        with lines:
            yield lambda text: lines.show(lambda: text)
        return
    with console.status("") as status:
        yield status.update


class _Lines:
    """Lines of text at intervals, where nothing can be drawn over what is there.

    Parameters
    ----------
    write : callable
        Takes a line.
    seconds : float
        The time before the first line, and between lines at least.
    """

    def __init__(self, write: Callable[[str], None], seconds: float) -> None:
        self._write = write
        self._seconds = seconds
        self._started = self._last = monotonic()
        self._text: Callable[[], str] = str
        self._written = ""
        self._lock = threading.Lock()

    def show(self, text: Callable[[], str]) -> None:
        """Set the text, which is asked for when it is written: now, if it is time for a line."""
        with self._lock:
            self._text = text
            if monotonic() - self._last >= self._pause():
                self._flush()

    def replace(self, text: Callable[[], str]) -> None:
        """Set the text without writing it: the last line says it, if there was one before."""
        with self._lock:
            self._text = text

    def __enter__(self) -> "_Lines":
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        """Write the end of what was written before: quick work leaves no line, failed work no more than it had."""
        with self._lock:
            if kind is None and self._written:
                self._flush()

    def _pause(self) -> float:
        """Return the time between lines."""
        return self._seconds

    def _flush(self) -> None:
        text = self._text()
        if text != self._written:
            self._write(text)
            self._written, self._last = text, monotonic()


class _LogLines(_Lines):
    """Lines of a log: ever further apart, and also written while nothing happens after a text was set.

    Work in many quick parts, one after the other, is not quick: its lines are due as if it were one.
    """

    # When the last part ended, and when there was last a line, or the first part began.
    _ended, _silent_since = -math.inf, -math.inf

    def __init__(self) -> None:
        super().__init__(lambda text: print(text, file=sys.stderr, flush=True), _LOG_SECONDS)
        self._timer: threading.Timer | None = None
        self._over = False
        if self._started - _LogLines._ended < _LOG_SECONDS:
            self._last = _LogLines._silent_since

    def show(self, text: Callable[[], str]) -> None:
        super().show(text)
        with self._lock:
            if self._timer is None:
                self._wait(max(self._last + self._pause() - monotonic(), 0))

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        with self._lock:
            self._over = True
            if self._timer is not None:
                self._timer.cancel()
        super().__exit__(kind, *rest)
        _LogLines._ended, _LogLines._silent_since = monotonic(), self._last

    def _pause(self) -> float:
        return max(self._seconds, (monotonic() - self._started) / 10)

    def _wait(self, seconds: float) -> None:
        """Look again after a while, whether or not anything is reported until then."""
        self._timer = threading.Timer(seconds, self._ring)
        self._timer.daemon = True
        self._timer.start()

    def _ring(self) -> None:
        with self._lock:
            if not self._over:
                self._flush()
                self._wait(self._pause())


class _PlainBar:
    """A bar in words: the share done, the time it took, and the time it may still take."""

    def __init__(self, description: str, total: float, lines: _Lines) -> None:
        self._description = description
        self._pace = _Pace(total)
        self._lines = lines

    def advance(self, step: float) -> None:
        """Move on."""
        self._pace.advance(step)
        self._lines.show(self._line)

    def _line(self) -> str:
        seconds = _duration(monotonic() - self._pace.started)
        left = self._pace.left()
        return f"{self._description} {int(100 * self._pace.share)}% ({seconds}{f', {left} left' if left else ''})"


def _plain_lines(console: "Console") -> _Lines | None:
    """Return where to write lines; None where the console can draw."""
    if console.is_jupyter:
        # Without ipywidgets rich draws nothing there, and warns repeatedly.
        return None if importlib.util.find_spec("ipywidgets") else _Lines(_notebook_line(), _NOTEBOOK_SECONDS)
    # Services that collect logs set FORCE_COLOR, for which rich takes a file or a pipe for a terminal.
    forced = os.environ.get("FORCE_COLOR") and not console.file.isatty()
    return None if console.is_interactive and not forced else _LogLines()


def _notebook_line() -> Callable[[str], None]:
    """Return a function that changes one line of a notebook's output."""
    from IPython.display import display

    handle = None

    def write(text: str) -> None:
        nonlocal handle
        content = {"text/plain": text}
        if handle is None:
            handle = display(content, raw=True, display_id=True)
        else:
            handle.update(content, raw=True)

    return write


def _duration(seconds: float) -> str:
    """Return a time in words.

    Examples
    --------
    >>> [_duration(seconds) for seconds in (12.3, 125, 4000)]
    ['12 s', '2 min 5 s', '1 h 7 min']
    """
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(round(whole / 60), 60)
    return f"{hours} h {minutes} min"

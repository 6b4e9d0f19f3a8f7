"""Watches tests: none waits without a limit, Ctrl-C is heard, no file of the first part takes more than its share.

Time is that of the processor, of the worker and the processes it waited for, without what numba compiles here: a busy
machine and an empty cache change little of it.
"""

import faulthandler
import math
import resource
import signal
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, NoReturn

import pytest
from numba.core import event

# Seconds of processor time that a file may take in the first part.
SHARE = 20.0
# Seconds by the clock that one phase of a test may take, compilation on a busy machine included, in either part.
LIMIT, LIMIT_OF_MORE = 600, 1800
# So much later the process is ended, where that error can't be raised: in compiled code that never returns.
GRACE = 120


def hear_ctrl_c() -> None:
    """Have Ctrl-C raise KeyboardInterrupt here and in processes started from here, as from a terminal.

    A background job of a script begins with the signal ignored, and hands that on to all that it starts.
    """
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def reason_for_later(item: pytest.Item) -> str | None:
    """Return why a test is left to the second part; None for a test of the first."""
    marker = item.get_closest_marker("more")
    if marker is None:
        return None
    if len(marker.args) != 1 or not isinstance(marker.args[0], str) or marker.kwargs:
        raise pytest.UsageError(f'@pytest.mark.more must say why, as in more("starts processes"); see {item.nodeid}')
    return marker.args[0]


class Limits:
    """Ends a test that has taken too long, with an error; where that can't be raised, ends the process.

    Tests that are run by hand may take as long as they do.

    Parameters
    ----------
    first, later : int
        Seconds by the clock that setting a test up, running it and clearing up may take each, in either part.
    grace : int
        Seconds after all three until the process is ended.
    """

    def __init__(self, first: int = LIMIT, later: int = LIMIT_OF_MORE, grace: int = GRACE) -> None:
        self._first, self._later, self._grace = first, later, grace
        self._armed = -math.inf

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Iterator[None]:
        """Limit the setting up."""
        self._end_all(item)
        return (yield from self._limited(item))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Limit the test itself."""
        return (yield from self._limited(item))

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_teardown(self, item: pytest.Item) -> Iterator[None]:
        """Limit the clearing up."""
        return (yield from self._limited(item))

    def pytest_enter_pdb(self) -> None:
        """Give a person all the time in the world."""
        signal.setitimer(signal.ITIMER_REAL, 0)

    def pytest_unconfigure(self) -> None:
        """End no process that goes on after its tests."""
        faulthandler.cancel_dump_traceback_later()

    def _limited(self, item: pytest.Item) -> Iterator[None]:
        if item.get_closest_marker("slow") or threading.current_thread() is not threading.main_thread():
            return (yield)
        seconds = self._first if reason_for_later(item) is None else self._later

        def stop(number: int, frame: Any) -> NoReturn:
            pytest.fail(f"waited without end? {item.nodeid} has taken {seconds} seconds")

        before = signal.signal(signal.SIGALRM, stop)
        # Again after the first time: what clears up may wait too.
        left = signal.setitimer(signal.ITIMER_REAL, seconds, seconds)
        try:
            return (yield)
        finally:
            signal.setitimer(signal.ITIMER_REAL, *left)  # of a test that runs this test
            signal.signal(signal.SIGALRM, before)

    def _end_all(self, item: pytest.Item) -> None:
        """Have the process ended once no other test has begun for too long; stopping the clock costs milliseconds."""
        if item.get_closest_marker("slow"):
            faulthandler.cancel_dump_traceback_later()
            self._armed = -math.inf
        elif time.monotonic() - self._armed > self._grace / 2:
            # Standard error by its number: what Python calls so may be a test's.
            faulthandler.dump_traceback_later(3 * max(self._first, self._later) + self._grace, exit=True, file=2)
            self._armed = time.monotonic()


class Stopwatch(event.Listener):
    """Adds up the processor time of each test of the first part, compilation taken out, and gives it to its report."""

    def __init__(self) -> None:
        self._threads = threading.local()
        self._compiling = self._started = 0.0
        event.register("numba:compile", self)

    def pytest_unconfigure(self) -> None:
        """Stop listening."""
        event.unregister("numba:compile", self)

    def on_start(self, event: Any) -> None:
        """Begin to count compilation; that of functions it calls is part of it."""
        depth = getattr(self._threads, "depth", 0)
        if not depth:
            self._threads.started = time.thread_time()
        self._threads.depth = depth + 1

    def on_end(self, event: Any) -> None:
        """End it."""
        self._threads.depth -= 1
        if not self._threads.depth:
            self._compiling += time.thread_time() - self._threads.started

    def _used(self) -> float:
        mine, below = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
        return mine.ru_utime + mine.ru_stime + below.ru_utime + below.ru_stime - self._compiling

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        """Start before a test is set up."""
        self._started = self._used()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: pytest.Item, call: Any) -> Iterator[None]:
        """Note what it took, after it has cleared up."""
        report = yield
        if call.when == "teardown" and reason_for_later(item) is None and not item.get_closest_marker("slow"):
            report.user_properties.append(("cpu_seconds", self._used() - self._started))
        return report


class Shares:
    """Says at the end which files of the first part took more than their share.

    Parameters
    ----------
    factor : float or None
        How many times the share a file may take before the tests fail for it; None for any number.
    share : float
        Seconds of processor time.
    """

    def __init__(self, factor: float | None, share: float = SHARE) -> None:
        self._factor, self._share = factor, share
        self._seconds: dict[str, float] = defaultdict(float)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Add a test to its file."""
        self._seconds[report.nodeid.partition("::")[0]] += sum(
            seconds for name, seconds in report.user_properties if name == "cpu_seconds"
        )

    def above(self, seconds: float) -> dict[str, float]:
        """Return the files that took more than so many seconds, the dearest first."""
        dearest = sorted(self._seconds.items(), key=lambda item: -item[1])
        return {file: taken for file, taken in dearest if taken > seconds}

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session, exitstatus: int) -> None:
        """Fail if that was asked for."""
        if self._factor is not None and exitstatus == pytest.ExitCode.OK and self.above(self._factor * self._share):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """List them."""
        if not self.above(self._share):
            return
        terminalreporter.section(f"files that took more than {self._share:.0f} s of processor time")
        for file, taken in self.above(self._share).items():
            too_much = self._factor is not None and taken > self._factor * self._share
            terminalreporter.line(f"{taken:7.1f} s  {file}" + "  (more than CI allows)" * too_much)

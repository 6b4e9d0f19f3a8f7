"""Ctrl-C where an exception could tear work apart, or be swallowed."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def noting_interrupts(note: Callable[[], object]) -> Iterator[None]:
    """Have the first Ctrl-C call a function instead of raising; a second one raises.

    Python raises KeyboardInterrupt wherever the main thread is: between two steps that belong together, or in the
    finaliser of some object, which swallows it. A loop that notes Ctrl-C ends where it can, and misses none. In other
    threads, which Ctrl-C never reaches, and where it is ignored, nothing changes.

    Parameters
    ----------
    note : callable
        Called without arguments at any moment, so it must do one thing that can't be half done, such as `list.append`
        or `SimpleQueue.put`.

    Examples
    --------
    >>> received = []
    >>> with noting_interrupts(lambda: received.append("Ctrl-C")):
    ...     signal.raise_signal(signal.SIGINT)
    >>> received
    ['Ctrl-C']
    """
    before = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or not callable(before):
        yield
        return
    noted = False

    def handle(number: int, frame: FrameType | None) -> None:
        nonlocal noted
        if noted:
            raise KeyboardInterrupt
        noted = True
        note()

    signal.signal(signal.SIGINT, handle)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)

"""One thread for linear algebra while scores are computed, which already uses several threads."""

import threading
from contextlib import ContextDecorator
from functools import cached_property

from threadpoolctl import OpenBLASController, ThreadpoolController


class _OneBlasThread(ContextDecorator):
    """Limits BLAS to one thread inside the block; the last thread to leave restores the limit.

    Scores are computed in parallel as it is. Threads that BLAS starts for matrices of some hundred rows mostly wait for
    each other: on a busy machine a mode search took up to a hundred times as long with them.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._inside = 0

    @cached_property
    def _controller(self) -> ThreadpoolController:
        # A controller knows the libraries loaded by now, and SciPy brings a BLAS of its own, which compiled code uses.
        import scipy.linalg.cython_blas  # noqa: F401, PLC0415

        return ThreadpoolController()

    @staticmethod
    def _take_control() -> None:
        """Let this thread set the limit: threadpoolctl silently ignores all but the first thread that did."""
        OpenBLASController.clear_controlling_thread(force=True)

    def __enter__(self) -> None:
        with self._lock:
            if self._inside == 0:
                self._take_control()
                self._limit = self._controller.limit(limits=1, user_api="blas")
            self._inside += 1

    def __exit__(self, *_: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._inside == 0:
                self._take_control()
                self._limit.restore_original_limits()


one_blas_thread = _OneBlasThread()

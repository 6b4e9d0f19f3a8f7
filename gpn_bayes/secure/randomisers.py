"""A stock of Paillier randomisers, made in the background while a party waits or does something else."""

import weakref
from collections import deque
from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

from gpn_bayes._util.checks import check_count
from gpn_bayes.secure.paillier import Integer, PublicKey

# So few that what is under way never keeps anyone waiting for long.
_BATCH = 8


class RandomiserPool:
    """Randomisers of one key, made ahead by threads; each is given out once.

    Parameters
    ----------
    key : PublicKey
        Whose randomisers; the private key makes them faster.
    workers : int, default 1
        Threads that fill the pool; whoever takes from an empty pool works too.

    Examples
    --------
    >>> from gpn_bayes.secure.paillier import generate_keys
    >>> with RandomiserPool(generate_keys(2048)) as pool:
    ...     pool.reserve(10)
    ...     ciphertext = pool.encrypt(42)
    ...     pool.key.decrypt(ciphertext)
    42
    """

    def __init__(self, key: PublicKey, workers: int = 1) -> None:
        check_count("workers", workers, 1)
        self.key = key
        self._ready: list[Integer] = []
        self._pending: deque[Future[list[Integer]]] = deque()
        self._executor = ThreadPoolExecutor(workers, thread_name_prefix="randomisers")
        # A pool that is dropped without being closed must not go on working.
        self._finish = weakref.finalize(self, self._executor.shutdown, wait=False, cancel_futures=True)

    def __enter__(self) -> Self:
        """Return the pool, which is closed at the end."""
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the pool."""
        self.close()

    @property
    def stock(self) -> int:
        """How many randomisers are made or being made."""
        return len(self._ready) + _BATCH * len(self._pending)

    def reserve(self, count: int) -> None:
        """See to it that this many randomisers are made or being made."""
        while self.stock < count:
            self._pending.append(self._executor.submit(self.key.randomisers, _BATCH))

    def take(self) -> Integer:
        """Return a randomiser that nobody else gets; make some where none is ready."""
        if not self._ready:
            self._ready = self._next_batch()
        return self._ready.pop()

    def encrypt(self, plaintext: int) -> Integer:
        """Return a ciphertext of a number from 0 to n - 1."""
        return self.key.encrypt(plaintext, self.take())

    def close(self) -> None:
        """Stop working and forget the stock."""
        self._finish()
        self._pending.clear()
        self._ready.clear()

    def _next_batch(self) -> list[Integer]:
        if not self._pending:
            return self.key.randomisers(1)
        # Rather than wait for the threads, do the last of what they haven't begun.
        if not self._pending[0].done() and self._pending[-1].cancel():
            self._pending.pop()
            return self.key.randomisers(_BATCH)
        return self._pending.popleft().result()

"""Many items of equal length, in messages that leave as soon as they are full."""

from collections.abc import Iterable, Iterator
from itertools import batched

from gpn_bayes.secure.link import Link

# A message of ciphertexts then takes a second or so to make: nobody waits too long for it.
_ITEMS = 64


def send_in_parts(link: Link, kind: str, items: Iterable[bytes]) -> None:
    """Send items of equal length, as they come.

    Examples
    --------
    >>> from gpn_bayes.secure.link import memory_links
    >>> alice, bob = memory_links()
    >>> send_in_parts(alice, "points", [bytes(32)] * 100)
    >>> [len(part) for part in receive_in_parts(bob, "points", 32, 100)]
    [2048, 1152]
    """
    for part in batched(items, _ITEMS):
        link.send(kind, b"".join(part))


def receive_in_parts(link: Link, kind: str, length: int, count: int) -> Iterator[bytes]:
    """Yield the messages that hold a known number of items of a known length, as they come from `send_in_parts`."""
    for start in range(0, count, _ITEMS):
        yield link.receive(kind, length * min(_ITEMS, count - start))

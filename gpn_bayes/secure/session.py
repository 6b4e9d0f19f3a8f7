"""What two parties set up once for all that they compute together."""

import numpy as np
from numpy.typing import NDArray

from gpn_bayes._util.types import Ints, Words
from gpn_bayes.secure.link import Link
from gpn_bayes.secure.oblivious_transfer import TransferReceiver, TransferSender
from gpn_bayes.secure.words import pack, reduced, unpack


class Session:
    """Oblivious transfers in both directions; nothing of a session may outlive the run it was made for.

    Parameters
    ----------
    link : Link
        The way to the other party.
    leads : bool
        True for one of the parties, who offers messages and garbles circuits, and False for the other.

    Attributes
    ----------
    outgoing : TransferSender
        Transfers in which this party offers.
    incoming : TransferReceiver
        Transfers in which this party chooses.

    Examples
    --------
    >>> from threading import Thread
    >>> from gpn_bayes.secure.link import memory_links
    >>> alice, bob = memory_links()
    >>> def lead():
    ...     Session(alice, leads=True).open(np.array([7]), 8)
    >>> thread = Thread(target=lead)
    >>> thread.start()
    >>> Session(bob, leads=False).open(np.array([250]), 8).tolist()
    [1]
    >>> thread.join()
    """

    def __init__(self, link: Link, leads: bool) -> None:
        self.link = link
        self.leads = leads
        if leads:
            self.outgoing, self.incoming = TransferSender(link), TransferReceiver(link)
        else:
            self.incoming, self.outgoing = TransferReceiver(link), TransferSender(link)

    def open(self, shares: Ints, bits: int) -> Words:
        """Show both parties the numbers whose shares modulo ``2**bits`` they hold."""
        return reduced(np.asarray(shares).astype("<u8") + self._swap(shares, bits), bits)

    def open_bits(self, shares: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """Show both parties the bits whose shares, 0 or 1, they hold."""
        opened: NDArray[np.uint8] = (shares ^ self._swap(shares, 8)).astype(np.uint8)
        return opened

    def _swap(self, shares: np.ndarray, bits: int) -> Words:
        """Send shares, and return those of the other party."""
        own = reduced(shares, bits)
        self.link.send("opened shares", pack(own, bits))
        return unpack(self.link.receive("opened shares", own.size * bits // 8), bits, *own.shape)

"""Two parties of a protocol in one process, weak keys that need no time, and links that note or spoil what is sent."""

from concurrent.futures import ThreadPoolExecutor
from unittest import mock

import gmpy2
import numpy as np
from scipy.stats import chisquare

from gpn_bayes.secure.link import ProtocolError, memory_links
from gpn_bayes.secure.paillier import SECURITY_BITS, PrivateKey
from gpn_bayes.secure.session import Session
from gpn_bayes.secure.words import reduced

DEADLINE = 90
# Shares come from the system's randomness: a correct one fails this about once in a million runs.
LEAST_P = 1e-6


def both(first, second):
    """Run two functions at the same time, and return what both return."""
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(first), pool.submit(second)]
        return [job.result(DEADLINE) for job in running]


def run_pair(alice, bob, wrap_alice=lambda end: end, wrap_bob=lambda end: end):
    """Run two parties, each a function of its end of the link, and return what they return, or the errors they met."""
    alices_end, bobs_end = memory_links()
    with mock.patch.dict(SECURITY_BITS, {512: 0, 1024: 0}):  # weak keys, for many of them or many products in no time
        return tuple(both(lambda: _outcome(alice, wrap_alice(alices_end)), lambda: _outcome(bob, wrap_bob(bobs_end))))


def _outcome(party, end):
    try:
        return party(end)
    except (ValueError, ProtocolError) as error:
        return error
    finally:
        # Who still waits for an answer learns at once that none will come.
        end.send("the end", b"")


def weak_key(bits=512, seed=1):
    """Return a key whose primes anyone can guess."""
    rng = np.random.default_rng(seed)
    primes = []
    while len(primes) < 2:
        digits = "11" + "".join(map(str, rng.integers(0, 2, bits // 2 - 2)))
        prime = int(gmpy2.next_prime(int(digits, 2)))
        if prime not in primes:
            primes.append(prime)
    return PrivateKey(*primes)


class Noted:
    """A link that keeps what is sent through it, and remembers the kinds and lengths of all messages."""

    def __init__(self, end):
        self._end = end
        self.messages = []
        self.record = []

    def send(self, kind, payload):
        self.messages.append((kind, payload))
        self.record.append(("sent", kind, len(payload)))
        self._end.send(kind, payload)

    def receive(self, kind, length=None):
        payload = self._end.receive(kind, length)
        self.record.append(("received", kind, len(payload)))
        return payload

    def shape(self):
        """Return the kinds and lengths of what was sent."""
        return [(kind, len(payload)) for kind, payload in self.messages]


class Spoiled:
    """A link that changes messages of one kind before they leave."""

    def __init__(self, end, kind, change):
        self._end = end
        self._kind = kind
        self._change = change

    def send(self, kind, payload):
        if kind == self._kind:
            kind, payload = self._change(kind, payload)
        self._end.send(kind, payload)

    def receive(self, kind, length=None):
        return self._end.receive(kind, length)


class Pair:
    """Two parties with a session."""

    def __init__(self):
        self.links = [Noted(end) for end in memory_links()]
        self.sessions = both(
            *(
                lambda link=link, leads=leads: Session(link, leads)
                for link, leads in zip(self.links, (True, False), strict=True)
            )
        )

    def run(self, function, *shares):
        """Run what a party does with its session and its part of each shared input; return both results."""
        jobs = [lambda side=side: function(self.sessions[side], *(part[side] for part in shares)) for side in (0, 1)]
        return both(*jobs)

    def recorded(self, function, *shares):
        """Run, and return what each party saw of messages: direction, kind and length."""
        starts = [len(link.record) for link in self.links]
        self.run(function, *shares)
        return [link.record[start:] for link, start in zip(self.links, starts, strict=True)]


def split(values, bits, rng):
    """Return two shares of whole numbers modulo a power of two."""
    first = reduced(rng.integers(0, 2**64, np.shape(values), dtype=np.uint64), bits)
    return first, reduced(reduced(values, bits) - first, bits)


def p_uniform(shares, bits):
    """Return the p-value that shares modulo a power of two are uniform, by their highest four bits."""
    classes = (np.asarray(shares) >> np.uint64(bits - 4)).astype(int)
    return chisquare(np.bincount(classes.ravel(), minlength=16)).pvalue

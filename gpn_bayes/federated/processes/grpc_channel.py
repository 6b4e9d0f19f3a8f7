"""The coordinator's channel to clients on other machines, which remembers every sum."""

import logging
from collections.abc import Callable, Mapping

import numpy as np
from numpy.typing import ArrayLike

from gpn_bayes.federated.combining import RoundSum, Shapes, most_bytes
from gpn_bayes.federated.interface import Channel
from gpn_bayes.federated.plan import Plan
from gpn_bayes.federated.processes.coordinator_store import CoordinatorStore
from gpn_bayes.federated.processes.rendezvous import Rendezvous
from gpn_bayes.federated.requests import Request
from gpn_bayes.wire.certificates import Identity
from gpn_bayes.wire.limits import Limits
from gpn_bayes.wire.server import Server

_log = logging.getLogger(__name__)


class GrpcChannel(Channel):
    """Clients that call in over mutual TLS; to be closed.

    It listens only once a sum is asked for that isn't remembered from before a restart.

    Parameters
    ----------
    plan : Plan
        What the run is about.
    store : CoordinatorStore
        Where sums are remembered.
    listen : str
        ``address:port``.
    identity : Identity
        The coordinator's certificate and key.
    authority : bytes
        The certificate (PEM) that signed all others.
    fingerprints : dict of str to str
        The clients' certificates.
    limits : Limits
        How large messages may be, and how long to wait.
    tell : callable, optional
        Called with a line of text when a round begins.
    largest : dict of str to tuple, optional
        The shapes of the largest answer of the run, where they are known: no message may be larger.
    """

    def __init__(
        self,
        plan: Plan,
        store: CoordinatorStore,
        listen: str,
        identity: Identity,
        authority: bytes,
        fingerprints: Mapping[str, str],
        limits: Limits,
        tell: Callable[[str], None] = lambda text: None,
        largest: Shapes | None = None,
    ) -> None:
        self.clients = plan.clients
        self._plan = plan
        self._store = store
        self._fingerprints = {client: fingerprints[client] for client in plan.clients}
        self._limits = limits
        self._largest = None if largest is None else most_bytes(largest, plan.secure)
        self._address = (listen, identity, authority)
        self._tell = tell
        self._number = 0
        self._shapes: dict[str, Shapes | None] = {}
        self._joined = False
        self._rendezvous: Rendezvous | None = None
        self._server: Server | None = None

    def sum(self, task: str, values: Mapping[str, ArrayLike], shapes: Shapes | None = None) -> dict[str, np.ndarray]:
        """Return the sums over all clients, remembered or new; see `Channel.sum`."""
        request = Request.of(task, values)
        digest = request.digest
        sums = self._store.sums(self._number, digest)
        if sums is None:
            expected = shapes or self._shapes.get(task)
            sums = self._ask(RoundSum(self._plan, self._number, request, expected))
            self._store.save_sums(self._number, digest, sums)
        self._shapes[task] = {name: array.shape for name, array in sums.items()}
        self._number += 1
        return sums

    def end(self, finished: bool, reason: str = "") -> None:
        """Tell the clients that the run is over, unless they know; without this they wait for it to resume."""
        # If it never listened, waiting clients hear only of success: a failure may be one of listening.
        if not self._store.ended() and (finished or self._server is not None):
            self._meeting().end(finished, reason)
            if finished:
                self._store.end()

    def close(self) -> None:
        """Stop listening."""
        if self._server is not None:
            self._server.close()

    def _meeting(self) -> Rendezvous:
        """Listen from now on, if it didn't before."""
        if self._rendezvous is None:
            meeting = Rendezvous(self._plan, self._fingerprints, self._limits, self._store.announcements())
            listen, identity, authority = self._address
            self._server = Server(
                meeting, listen, identity, authority, self._fingerprints, self._limits, self._largest
            )  # fmt: skip
            self._rendezvous = meeting
            _log.info("listening at port %d for %d clients", self._server.port, len(self.clients))
        return self._rendezvous

    def _ask(self, round_sum: RoundSum) -> dict[str, np.ndarray]:
        meeting = self._meeting()
        if not self._joined:
            self._tell(f"waiting for {len(self.clients)} clients to join")
            self._store.save_announcements(meeting.gather())
            meeting.publish_keys()
            self._joined = True
        self._tell(f"round {round_sum.number}: {round_sum.request.task}, {len(self.clients)} clients")
        meeting.ask(round_sum)
        return round_sum.total()

"""The channel to clients that are all in this process."""

import secrets
from collections.abc import Mapping, Sequence

from numpy.typing import ArrayLike

from gpn_bayes._util.types import Floats
from gpn_bayes.federated.combining import RoundSum, Shapes
from gpn_bayes.federated.interface import Channel, Participant
from gpn_bayes.federated.plan import Plan
from gpn_bayes.federated.requests import Request
from gpn_bayes.federated.session import ClientSession
from gpn_bayes.secure.key_exchange import Signer, fingerprint
from gpn_bayes.wire.certificates import new_authority, new_party


class MemoryChannel(Channel):
    """All clients in this process: same rounds, keys, masks and messages as between machines, handed over in memory.

    Parameters
    ----------
    participants : sequence of Participant
        One per client.
    secure : bool, default True
        Whether sums are masked.

    Examples
    --------
    >>> class Count(Participant):
    ...     def __init__(self, rows):
    ...         self.rows = rows
    ...     def answer(self, task, values):
    ...         return {"above": np.sum(self.rows > values["limit"])}
    ...     def state(self):
    ...         return {}
    ...     def restore(self, state):
    ...         pass
    >>> channel = MemoryChannel([Count(np.arange(n)) for n in (3, 5, 7)])
    >>> channel.sum("count", {"limit": 1})
    {'above': array(9.)}
    """

    def __init__(self, participants: Sequence[Participant], secure: bool = True) -> None:
        self.clients = tuple(f"client{number + 1}" for number in range(len(participants)))
        self._plan = Plan(secrets.token_hex(16), "memory", "{}", (), self.clients, secure)
        self._sessions = [
            ClientSession(self._plan, client, participant)
            for client, participant in zip(self.clients, participants, strict=True)
        ]
        self._round = 0
        self._shapes: dict[str, Shapes | None] = {}
        if secure:
            self._exchange_keys()

    def sum(self, task: str, values: Mapping[str, ArrayLike], shapes: Shapes | None = None) -> dict[str, Floats]:
        """Return the sums over all clients; see `Channel.sum`."""
        from gpn_bayes.wire.federation_pb2 import Answer

        request = Request.of(task, values)
        collected = RoundSum(self._plan, self._round, request, shapes or self._shapes.get(task))
        for session in self._sessions:
            collected.take(session.client, Answer.FromString(session.answer(self._round, request)))
        if collected.missing:
            raise ValueError(f"all clients must answer arrays of the same shapes; {collected.missing[0]!r} doesn't")
        self._round += 1
        self._shapes[task] = collected.shapes
        return collected.total()

    def _exchange_keys(self) -> None:
        """Give every client a certificate for the time being, and relay their keys."""
        authority = new_authority()
        identities = {client: new_party(authority, client) for client in self.clients}
        signers = {client: Signer(identity.der, identity.private_key) for client, identity in identities.items()}
        fingerprints = {client: fingerprint(signer.certificate) for client, signer in signers.items()}
        keys = [session.signed_key(signers[session.client]) for session in self._sessions]
        for session in self._sessions:
            session.accept_keys(keys, fingerprints)

"""One client in one run: which round is due, what it answers, and how the answer is hidden."""

from collections.abc import Mapping, Sequence

import numpy as np

from gpn_bayes._util.types import Floats, Words
from gpn_bayes.federated.interface import Participant
from gpn_bayes.federated.plan import Plan
from gpn_bayes.federated.requests import Request
from gpn_bayes.secure import fixed_point, key_exchange
from gpn_bayes.secure.key_exchange import SignedKey, Signer
from gpn_bayes.secure.link import ProtocolError
from gpn_bayes.secure.masking import extend, mask
from gpn_bayes.wire import arrays
from gpn_bayes.wire import federation_pb2 as messages


class ClientSession:
    """What a client keeps of a run.

    Parameters
    ----------
    plan : Plan
        What the run is about.
    client : str
        This client's name.
    participant : Participant
        What answers the tasks.
    private_key : bytes, optional
        The key of this client for this run; a fresh one by default.

    Attributes
    ----------
    last_round : int
        The last round that was answered, -1 before the first.
    transcript : bytes
        The digest of the plan and of all that was asked up to it.
    last_answer : bytes
        The exact bytes of the answer.
    """

    def __init__(self, plan: Plan, client: str, participant: Participant, private_key: bytes | None = None) -> None:
        if client not in plan.clients:
            raise ProtocolError(f"a run's clients must include this one, {client!r}; they don't")
        self.plan = plan
        self.client = client
        self.participant = participant
        self.private_key = key_exchange.new_key() if private_key is None else private_key
        self.signed_keys: tuple[SignedKey, ...] = ()
        self.last_round = -1
        self.transcript = plan.digest
        self.last_answer = b""
        self._secrets: dict[str, bytes] | None = None

    def __repr__(self) -> str:
        """Return whose session of which run it is; no keys."""
        return f"ClientSession({self.client!r}, run {self.plan.run!r}, round {self.last_round})"

    @property
    def keyed(self) -> bool:
        """Whether this client holds all it needs to answer."""
        return self._secrets is not None or not self.plan.secure

    def signed_key(self, signer: Signer) -> SignedKey:
        """Return this client's public key, to be relayed to the others."""
        return key_exchange.sign_key(self.private_key, self.client, self.plan.digest, signer)

    def accept_keys(self, signed_keys: Sequence[SignedKey], fingerprints: Mapping[str, str]) -> None:
        """Check the keys of all clients against the fingerprints of their certificates, and share secrets with them.

        Raises
        ------
        ProtocolError
            For a key that is missing, unsigned, another client's, or of a certificate that isn't known; nothing
            changes then.
        """
        if sorted(signed.client for signed in signed_keys) != sorted(self.plan.clients):
            raise ProtocolError("there must be one key of each client of the run; received others")
        others = {signed.client: signed for signed in signed_keys if signed.client != self.client}
        for name, signed in others.items():
            key_exchange.check_key(signed, self.plan.digest, fingerprints.get(name, ""))
        publics = {signed.client: signed.public_key for signed in signed_keys}
        if len(set(publics.values())) < len(publics):
            raise ProtocolError("the clients of a run must have different keys; two have the same")
        if self.signed_keys and publics != {signed.client: signed.public_key for signed in self.signed_keys}:
            raise ProtocolError("the keys of a run must not change; received others than before")
        if publics[self.client] != key_exchange.public_key(self.private_key):
            raise ProtocolError("the keys of a run must include this client's own; received another")
        self._secrets = {name: key_exchange.shared_secret(self.private_key, publics[name]) for name in others}
        self.signed_keys = tuple(signed_keys)

    def answer(self, round_number: int, request: Request) -> bytes:
        """Return the answer to a task, as bytes to be sent; the same bytes when asked again.

        Raises
        ------
        ProtocolError
            For a round that is out of turn, or another request in a round that was already answered.
        """
        digest = request.digest
        if round_number == self.last_round and digest == messages.Answer.FromString(self.last_answer).request:
            return self.last_answer
        self._check_turn(round_number)
        numbers = self.participant.answer(request.task, request.values)
        transcript = extend(self.transcript, digest)
        values = self._hidden(numbers, transcript) if self.plan.secure else _as_floats(numbers)
        message = messages.Answer(
            run=self.plan.run, round=round_number, request=digest, values=arrays.to_messages(values)
        )
        self.last_answer = message.SerializeToString()
        self.last_round, self.transcript = round_number, transcript
        return self.last_answer

    def _check_turn(self, round_number: int) -> None:
        if not self.keyed:
            raise ProtocolError("keys must be exchanged before the first round; they weren't")
        if round_number == self.last_round:
            raise ProtocolError(f"round {round_number} was answered; a different task in it is refused")
        if round_number != self.last_round + 1:
            raise ProtocolError(f"round {self.last_round + 1} is due; received a task of round {round_number}")

    def _hidden(self, numbers: Mapping[str, Floats], transcript: bytes) -> dict[str, Words]:
        """Return all numbers of an answer, encoded and masked in one piece."""
        assert self._secrets is not None
        encoded = {name: fixed_point.encode(numbers[name], len(self.plan.clients)) for name in sorted(numbers)}
        words = [array.reshape(-1, fixed_point.WORDS) for array in encoded.values()]
        joined = np.concatenate([np.zeros((0, fixed_point.WORDS), np.uint64), *words])
        masked = mask(joined, self.client, self._secrets, transcript)
        ends = np.cumsum([len(part) for part in words])
        parts = np.split(masked, ends[:-1]) if words else []
        return {name: part.reshape(array.shape) for (name, array), part in zip(encoded.items(), parts, strict=True)}


def _as_floats(numbers: Mapping[str, Floats]) -> dict[str, Floats]:
    return {name: np.asarray(value, dtype=float) for name, value in numbers.items()}

"""Where the coordinator's program and the clients' calls meet: one thread asks, others bring answers."""

import logging
import threading
import time
from collections.abc import Callable, Mapping

from google.protobuf.message import DecodeError

from gpn_bayes.federated.combining import RoundSum
from gpn_bayes.federated.plan import Plan
from gpn_bayes.federated.processes.translation import key_from_message, plan_to_message, task_to_message
from gpn_bayes.secure.key_exchange import check_key
from gpn_bayes.secure.link import ProtocolError
from gpn_bayes.wire import federation_pb2 as messages
from gpn_bayes.wire.limits import Limits

_log = logging.getLogger(__name__)
_REASONS = {
    messages.PLAN: "the plan isn't what its configuration agrees to",
    messages.TABLE: "its table doesn't fit the plan",
    messages.SUMMED_BEFORE: "its table was part of another run",
    messages.KEYS: "the keys aren't those of all clients",
    messages.TASK: "the task isn't the one that is due",
    messages.ANSWER: "it could give no answer, and has left the run",
}
_FAREWELL = 10.0  # seconds that clients have to hear that a run is over


def _known(data: bytes) -> messages.Announcement:
    try:
        return messages.Announcement.FromString(data)
    except (DecodeError, TypeError):
        raise ValueError("clients' keys must be as they were saved; one is damaged: start a new run") from None


class Rendezvous:
    """The present state of a run, shared by the thread of the program and those of the clients' calls.

    A `gpn_bayes.wire.server.Host`.

    Parameters
    ----------
    plan : Plan
        What the run is about.
    fingerprints : dict of str to str
        The clients' certificates.
    limits : Limits
        How long to wait.
    announcements : dict of str to bytes
        Those known from before a restart.
    """

    def __init__(
        self, plan: Plan, fingerprints: Mapping[str, str], limits: Limits, announcements: Mapping[str, bytes]
    ) -> None:
        self._plan = plan
        self._fingerprints = fingerprints
        self._limits = limits
        self._changed = threading.Condition()
        self._announcements = {client: _known(data) for client, data in announcements.items()}
        self._published = set(self._announcements) >= set(plan.clients)
        self._round: RoundSum | None = None
        self._task = messages.Task()
        self._end: messages.End | None = None
        self._told_end: set[str] = set()
        self._last_seen = dict.fromkeys(plan.clients, time.monotonic())
        self._silent: set[str] = set()

    # What the program's thread calls.

    def gather(self) -> dict[str, bytes]:
        """Wait till all clients have joined; return their announcements, to be saved before they are published."""
        self._wait(lambda: tuple(c for c in self._plan.clients if c not in self._announcements), "join")
        return {client: message.SerializeToString() for client, message in self._announcements.items()}

    def publish_keys(self) -> None:
        """Let the clients have each other's keys; from now on nobody's can change."""
        with self._changed:
            self._published = True
            self._changed.notify_all()

    def ask(self, round_sum: RoundSum) -> None:
        """Send a round's task to all clients, and wait till all have answered."""
        task = task_to_message(self._plan.run, round_sum.number, round_sum.request)
        with self._changed:
            self._round, self._task = round_sum, task
            self._changed.notify_all()
        self._wait(lambda: round_sum.missing, f"answer round {round_sum.number}")

    def end(self, finished: bool, reason: str = "") -> None:
        """Tell the clients that ask within a few seconds that the run is over."""
        with self._changed:
            self._end = messages.End(run=self._plan.run, finished=finished, reason=reason)
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._told_end >= set(self._announcements), timeout=_FAREWELL)

    # What the threads of clients' calls call.

    def next(self, client: str, poll: messages.Poll) -> messages.Instruction:
        """Return what a client is to do, now or when there is something; nothing after a heartbeat's time."""
        with self._changed:
            self._note_life(client)
            self._changed.wait_for(lambda: self._instruction(client, poll) is not None, self._limits.heartbeat_seconds)
            self._note_life(client)
            instruction = self._instruction(client, poll)
            if instruction is not None and instruction.WhichOneof("kind") == "end":
                self._told_end.add(client)
                self._changed.notify_all()
            return instruction or messages.Instruction(wait=messages.Wait())

    def announce(self, client: str, announcement: messages.Announcement) -> None:
        """Take a client's key, which must be its own, be signed, and stay the same."""
        if announcement.run != self._plan.run or announcement.client != client:
            raise ValueError("a key must be for the current run and from the client that sends it; received another")
        if self._plan.secure:
            try:
                check_key(key_from_message(announcement), self._plan.digest, self._fingerprints[client])
            except ProtocolError as error:
                raise ValueError(str(error)) from None
        with self._changed:
            self._note_life(client)
            known = self._announcements.get(client)
            if known is not None and known.public_key != announcement.public_key:
                raise ValueError("the key of a client must not change during a run; received another: start a new run")
            keys = {message.public_key for name, message in self._announcements.items() if name != client}
            if self._plan.secure and announcement.public_key in keys:
                raise ValueError("the clients of a run must have different keys; received one that another client has")
            if known is None:
                _log.info("client %r joined", client)
                self._announcements[client] = announcement
            self._changed.notify_all()

    def submit(self, client: str, answer: messages.Answer) -> None:
        """Take a client's answer to the present task."""
        with self._changed:
            self._note_life(client)
            if self._round is None:
                raise ValueError("an answer must follow a task; received one before the first")
            self._round.take(client, answer)
            self._changed.notify_all()

    def answer_bytes(self) -> int | None:
        """Return how large an answer to the present task may be; None if that isn't known."""
        present = self._round
        return None if present is None else present.most_bytes

    def refuse(self, client: str, refusal: messages.Refusal) -> None:
        """Record that a client refused an instruction; the run waits until it accepts."""
        _log.warning("client %r refuses: %s", client, _REASONS.get(refusal.reason, "for a reason that isn't known"))
        self.beat(client)

    def beat(self, client: str) -> None:
        """Take note that a client is alive."""
        with self._changed:
            self._note_life(client)

    def _instruction(self, client: str, poll: messages.Poll) -> messages.Instruction | None:
        if self._end is not None:
            return messages.Instruction(end=self._end)
        if poll.run != self._plan.run or client not in self._announcements:
            return messages.Instruction(plan=plan_to_message(self._plan))
        if not self._published:
            return None
        if not poll.keyed:
            keys = messages.Keys(run=self._plan.run, announcements=self._announcements.values())
            return messages.Instruction(keys=keys)
        if self._round is not None and client in self._round.missing:
            return messages.Instruction(task=self._task)
        return None

    def _note_life(self, client: str) -> None:
        self._last_seen[client] = time.monotonic()
        if client in self._silent:
            self._silent.discard(client)
            _log.info("client %r is back", client)

    def _wait(self, missing: Callable[[], tuple[str, ...]], what: str) -> None:
        """Wait till no client is missing; log those that are silent, and give up after too long a silence."""
        often = min(1.0, self._limits.silence_seconds)
        with self._changed:
            while True:
                self._changed.wait_for(lambda: not missing(), timeout=often)
                for client in missing():
                    self._check_life(client, what)
                if not missing():
                    return

    def _check_life(self, client: str, what: str) -> None:
        silence = time.monotonic() - self._last_seen[client]
        if silence > self._limits.patience_seconds:
            raise ConnectionError(
                f"client {client!r} must {what}; nothing was heard from it for {silence:.0f} seconds: start it and "
                "this run again, or a new run without it"
            )
        if silence > self._limits.silence_seconds and client not in self._silent:
            self._silent.add(client)
            _log.warning("waiting for client %r to %s; nothing heard from it for %.0f seconds", client, what, silence)

"""A client's whole run: ask the coordinator what to do, check it, answer, remember; until the run is over."""

import logging
import time
from collections.abc import Callable

from gpn_bayes.data import Dataset
from gpn_bayes.federated.interface import Participant
from gpn_bayes.federated.plan import Plan
from gpn_bayes.federated.processes.client_store import ClientStore
from gpn_bayes.federated.processes.config import ClientConfig
from gpn_bayes.federated.processes.joining import Unwilling, check_once, check_plan, select
from gpn_bayes.federated.processes.translation import (
    key_to_message,
    keys_from_message,
    plan_from_message,
    request_from_message,
)
from gpn_bayes.federated.programs import find_program
from gpn_bayes.federated.session import ClientSession
from gpn_bayes.secure.key_exchange import Signer
from gpn_bayes.secure.link import ProtocolError
from gpn_bayes.wire import federation_pb2 as messages
from gpn_bayes.wire.dialler import Dialler, Heartbeat, Refused

_log = logging.getLogger(__name__)
_MOST_REFUSALS = 10  # in a row, before a client gives up
_PAUSE = 0.2  # seconds after the first refusal; longer after each
# All that a coordinator hears of why an instruction wasn't followed.
_REASONS = {"plan": messages.PLAN, "keys": messages.KEYS, "task": messages.TASK}


def take_part(
    config: ClientConfig, data: Dataset, again: bool = False, tell: Callable[[str], None] = lambda text: None
) -> None:
    """Take part in a coordinator's run, new or resumed, until it is over.

    Parameters
    ----------
    config : ClientConfig
        From `read_client`.
    data : Dataset
        This client's rows; see `gpn_bayes.data.read_part`.
    again : bool, default False
        Whether to take part in one more run with a table that was part of another; one, however often it is needed.
    tell : callable, optional
        Called with a line of text when a round is answered.

    Raises
    ------
    ValueError
        If this client won't take part, or the coordinator keeps sending what must be refused.
    WrongCertificate
        If the coordinator isn't the one whose fingerprint the configuration states.
    ConnectionError
        If the coordinator can't be reached for too long, or gives the run up.
    """
    credentials = config.credentials
    dialler = Dialler(
        config.coordinator,
        credentials.identity,
        credentials.authority,
        config.coordinator_name,
        config.limits,
        config.coordinator_fingerprint,
    )
    try:
        with ClientStore(config.state) as store, Heartbeat(dialler.beat, config.limits.heartbeat_seconds):
            _Client(config, data, again, dialler, store, tell).run()
    finally:
        dialler.close()


class _Client:
    """The loop of instructions."""

    def __init__(
        self,
        config: ClientConfig,
        data: Dataset,
        again: bool,
        dialler: Dialler,
        store: ClientStore,
        tell: Callable[[str], None],
    ) -> None:
        self._config = config
        self._data = data
        self._again = again
        self._answered = ""  # the run that this start has answered in
        self._dialler = dialler
        self._store = store
        self._tell = tell
        self._session: ClientSession | None = None
        self._refusals = 0

    def run(self) -> None:
        """Follow instructions until the run is over."""
        self._tell(f"calling {self._config.coordinator}")
        while True:
            instruction = self._dialler.next(self._poll())
            kind = instruction.WhichOneof("kind")
            if kind == "end":
                self._end(instruction.end)
                return
            try:
                if kind == "plan":
                    self._join(plan_from_message(instruction.plan))
                elif kind == "keys":
                    self._accept_keys(instruction.keys)
                elif kind == "task":
                    self._answer(instruction.task)
                self._refusals = 0
            except (ProtocolError, Refused) as error:
                self._stand_back(error, _REASONS.get(kind or "", messages.REASON_UNSPECIFIED))

    def _poll(self) -> messages.Poll:
        session = self._session
        return messages.Poll() if session is None else messages.Poll(run=session.plan.run, keyed=session.keyed)

    def _join(self, plan: Plan) -> None:
        try:
            check_plan(plan, self._config, self._data)
            session = self._resume(plan)
            if session is None or session.last_round < 0:
                # A start opens the sums of one run at most, also one that began with a table never used before.
                check_once(plan, self._data, self._store, self._again and self._answered in ("", plan.run))
            else:
                self._answered = plan.run
            self._session = session or ClientSession(plan, self._config.name, self._participant(plan))
        except ValueError as error:
            self._dialler.refuse(plan.run, error.reason if isinstance(error, Unwilling) else messages.TABLE)
            raise
        self._store.save(self._session, self._data.fingerprint)
        identity = self._config.credentials.identity
        signed = self._session.signed_key(Signer(identity.der, identity.private_key))
        self._dialler.announce(key_to_message(plan.run, signed))
        _log.info("joined run %s, round %d is next", plan.run, self._session.last_round + 1)
        self._tell("joined; waiting for the other clients")

    def _accept_keys(self, keys: messages.Keys) -> None:
        session = self._present(keys.run)
        session.accept_keys(keys_from_message(keys), self._config.credentials.fingerprints)
        self._store.save(session, self._data.fingerprint)

    def _answer(self, task: messages.Task) -> None:
        session = self._present(task.run)
        try:
            request = request_from_message(task)
        except ValueError as error:
            raise ProtocolError(str(error)) from None
        try:
            answer = session.answer(task.round, request)
        except ProtocolError:
            raise
        except ValueError:
            # Whether there is an answer says something of the rows: nobody may ask this twice.
            self._store.finish(session.plan.run)
            self._dialler.refuse(session.plan.run, messages.ANSWER)
            raise
        # Safe on disk before it leaves: after a restart the same bytes are sent again, never others.
        self._store.save(session, self._data.fingerprint)
        self._answered = session.plan.run
        self._dialler.submit(answer)
        self._tell(f"round {task.round} answered")

    def _end(self, end: messages.End) -> None:
        self._store.finish(end.run)
        if not end.finished:
            raise ConnectionError(f"the coordinator must complete the run; it gave up: {end.reason[:200]}")
        _log.info("run %s is over", end.run)

    def _present(self, run: str) -> ClientSession:
        if self._session is None or self._session.plan.run != run:
            raise ProtocolError("an instruction must be for the run that this client has joined; received another")
        return self._session

    def _participant(self, plan: Plan) -> Participant:
        program = find_program(plan.program)
        participant = program.participant(select(self._data, plan.variables), plan)
        try:
            return program.bounded(participant, plan, self._config.bounds)
        except ValueError as error:
            raise Unwilling(str(error), messages.PLAN) from None

    def _resume(self, plan: Plan) -> ClientSession | None:
        fingerprints = self._config.credentials.fingerprints
        name, table = self._config.name, self._data.fingerprint
        return self._store.load(plan, name, table, lambda: self._participant(plan), fingerprints)

    def _stand_back(self, error: Exception, reason: messages.Reason) -> None:
        """Log what was refused, by either side, and wait a little; give up after too many in a row."""
        self._refusals += 1
        _log.warning("refused: %s", error)
        if self._refusals > _MOST_REFUSALS:
            raise ValueError(f"instructions must be valid; the last wasn't: {error}") from None
        if isinstance(error, ProtocolError):
            self._dialler.refuse("" if self._session is None else self._session.plan.run, reason)
        time.sleep(_PAUSE * self._refusals)

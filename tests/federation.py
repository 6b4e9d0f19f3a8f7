"""Federated runs for tests: a program of many rounds, parties with certificates, runs in threads."""

import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from gpn_bayes.data import Dataset, read_part
from gpn_bayes.federated.channel import MemoryChannel
from gpn_bayes.federated.interface import Channel, Participant
from gpn_bayes.federated.processes.client import take_part
from gpn_bayes.federated.processes.config import ClientConfig, CoordinatorConfig, read_client, read_coordinator
from gpn_bayes.federated.processes.setup_files import write_parties
from gpn_bayes.federated.programs import Program
from gpn_bayes.secure.key_exchange import Signer
from gpn_bayes.wire import federation_pb2 as messages
from gpn_bayes.wire.dialler import Refused
from gpn_bayes.wire.server import Server

TIME_LIMIT = 60


class DescentParticipant(Participant):
    """A client of gradient descent with momentum: what it answers depends on all rounds before."""

    def __init__(self, data: Dataset, settings: Mapping[str, Any]) -> None:
        self._values = data.values
        self._pause = settings.get("pause", 0.0)
        self._velocity = np.zeros((data.values.shape[1],) * 2)

    def answer(self, task: str, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        time.sleep(self._pause)
        if values["weights"].shape != self._velocity.shape:
            raise ValueError("weights must be a square matrix; received something else")
        residuals = self._values - self._values @ values["weights"]
        self._velocity = 0.5 * self._velocity + self._values.T @ residuals
        return {"step": self._velocity, "loss": np.sum(residuals**2), "rows": np.array(len(self._values))}

    def state(self) -> dict[str, np.ndarray]:
        return {"velocity": self._velocity}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        self._velocity = state["velocity"]


def descend(channel: Channel, names: Sequence[str], settings: Mapping[str, Any]) -> dict[str, np.ndarray]:
    """Regress every variable on the others, a step a round."""
    weights = np.zeros((len(names),) * 2)
    losses, seconds = [], []
    for _ in range(settings["rounds"]):
        started = time.perf_counter()
        sums = channel.sum("gradient", {"weights": weights})
        seconds.append(time.perf_counter() - started)
        weights = weights + 0.1 / sums["rows"] * sums["step"]
        np.fill_diagonal(weights, 0.0)
        losses.append(sums["loss"])
    return {"weights": weights, "losses": np.array(losses), "seconds": np.array(seconds)}


DESCENT = Program(
    lambda channel, plan: descend(channel, plan.variables, plan.options),
    lambda data, plan: DescentParticipant(data, plan.options),
)


def tables(sizes: Sequence[int], d: int, seed: int = 1) -> list[pd.DataFrame]:
    """Return one table a client, with correlated columns."""
    rng = np.random.default_rng(seed)
    mixing = np.eye(d) + 0.3 * rng.normal(size=(d, d))
    return [pd.DataFrame(rng.normal(size=(n, d)) @ mixing, columns=[f"x{i}" for i in range(d)]) for n in sizes]


def in_memory(parts: Sequence[pd.DataFrame], settings: Mapping[str, Any], secure: bool = True) -> dict[str, np.ndarray]:
    """Run the descent in this process."""
    participants = [DescentParticipant(read_part(part), {}) for part in parts]
    return descend(MemoryChannel(participants, secure=secure), list(parts[0].columns), settings)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Parties:
    """The folders of a coordinator and its clients, and their configurations."""

    def __init__(
        self, folder: Path, clients: Sequence[str], variables: Sequence[str], program: str, settings: str = "", **limits
    ) -> None:
        self.port = free_port()
        self.clients = tuple(clients)
        coordinator, *homes = write_parties(folder, clients, variables, f"127.0.0.1:{self.port}")
        self.homes = dict(zip(clients, homes, strict=True))
        self.coordinator_file = coordinator / "coordinator.toml"
        times = {"heartbeat_seconds": 0.5, "deadline_seconds": 5.0, "patience_seconds": 30.0} | limits
        tail = "".join(f"{name} = {value}\n" for name, value in times.items())
        for file in (self.coordinator_file, *(home / "client.toml" for home in homes)):
            text = file.read_text().replace('"statistics"', f'"{program}"').replace("0.0.0.0", "127.0.0.1")
            file.write_text(f"{text}\n[limits]\n{tail}")
        with self.coordinator_file.open("a") as file:
            file.write(f"\n[settings]\n{settings}\n")

    def coordinator(self) -> CoordinatorConfig:
        return read_coordinator(self.coordinator_file)

    def client(self, name: str) -> ClientConfig:
        return read_client(self.homes[name] / "client.toml")

    def signer(self, name: str) -> Signer:
        identity = self.client(name).credentials.identity
        return Signer(identity.der, identity.private_key)


class Background:
    """A function in a thread of its own; asked for its result, it raises what the function raised."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self._outcome: tuple[Any, BaseException | None] = (None, None)
        self._thread = threading.Thread(target=self._run, args=(function, arguments), daemon=True)
        self._thread.start()

    def _run(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
        try:
            self._outcome = (function(*arguments), None)
        except BaseException as error:
            self._outcome = (None, error)

    def result(self, seconds: float = TIME_LIMIT) -> Any:
        self._thread.join(seconds)
        assert not self._thread.is_alive(), "it takes too long"
        value, error = self._outcome
        if error is not None:
            raise error
        return value


@contextmanager
def clients_in_threads(parties: Parties, parts: Mapping[str, pd.DataFrame]) -> Iterator[dict[str, Background]]:
    """Run clients in threads; they must have come to their end when the block does."""
    running = {name: Background(take_part, parties.client(name), read_part(part)) for name, part in parts.items()}
    yield running
    for client in running.values():
        client.result()


def check_refused(call, argument, message):
    with pytest.raises(Refused, match=message):
        call(argument)


def changed(message, **changes):
    copy = type(message).FromString(message.SerializeToString())
    for field, value in changes.items():
        setattr(copy, field, value)
    return copy


def check_log(caplog, *reasons):
    """Check that each refusal was logged, and no numbers or keys with it."""
    logged = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    for reason in reasons:
        assert any(reason in line for line in logged), reason
    for line in logged:
        assert len(line) < 400 and "velocity" not in line and "[[" not in line


def play(parties, client, instructions, table, heard=None, again=False):
    """Let a client follow a script; return what the coordinator heard, also in a list of the caller's."""
    host, config = Script(instructions), parties.coordinator()
    host.heard = [] if heard is None else heard
    credentials = config.credentials
    server = Server(
        host, config.listen, credentials.identity, credentials.authority, credentials.fingerprints, config.limits
    )  # fmt: skip
    try:
        take_part(parties.client(client), table, again)
    finally:
        server.close()
    return host.heard


class Script:
    """A coordinator that gives instructions from a list, one by one, and writes down what it hears."""

    def __init__(self, instructions):
        self.instructions = list(instructions)
        self.heard = []
        self.announced = Future()

    def next(self, client, poll):
        if not self.instructions:
            return messages.Instruction(end=messages.End(run=poll.run, finished=True))
        instruction = self.instructions.pop(0)
        return instruction(self) if callable(instruction) else instruction

    def announce(self, client, announcement):
        self.heard.append("key")
        self.announced.set_result(announcement)

    def submit(self, client, answer):
        self.heard.append(answer.SerializeToString())

    def answer_bytes(self):
        return None

    def refuse(self, client, refusal):
        self.heard.append(refusal.reason)

    def beat(self, client):
        pass

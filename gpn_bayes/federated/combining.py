"""The answers of all clients to one task, checked, and their sum."""

import logging
import math
from collections import Counter
from collections.abc import Mapping

import numpy as np

from gpn_bayes._util.types import Floats
from gpn_bayes.federated.plan import Plan
from gpn_bayes.federated.requests import Request
from gpn_bayes.secure import fixed_point
from gpn_bayes.wire import arrays
from gpn_bayes.wire import federation_pb2 as messages

_log = logging.getLogger(__name__)
Shapes = Mapping[str, tuple[int, ...]]
# Bytes of a message around its numbers: names, shapes, and the run; names have two hundred characters at most.
_AROUND_ARRAY = 2000


def most_bytes(shapes: Shapes, secure: bool) -> int:
    """Return how large the message of an answer may be that holds arrays of these shapes.

    Examples
    --------
    >>> most_bytes({"weights": (20, 20)}, secure=True)
    10400
    """
    words = fixed_point.WORDS if secure else 1
    numbers = sum(math.prod(shape) for shape in shapes.values())
    return 8 * words * numbers + _AROUND_ARRAY * (1 + len(shapes))


class RoundSum:
    """Takes the answers of one round, and adds them up when all are there.

    Parameters
    ----------
    plan : Plan
        What the run is about.
    number : int
        The round.
    request : Request
        What the clients were asked.
    shapes : dict of str to tuple, optional
        The arrays that are expected; by default those that most clients answer.
    """

    def __init__(self, plan: Plan, number: int, request: Request, shapes: Shapes | None = None) -> None:
        self.plan = plan
        self.number = number
        self.request = request
        self.shapes = None if shapes is None else {name: tuple(shape) for name, shape in shapes.items()}
        self._digest = request.digest
        self._received: dict[str, bytes] = {}
        self._values: dict[str, dict[str, np.ndarray]] = {}

    @property
    def missing(self) -> tuple[str, ...]:
        """The clients that haven't answered."""
        return tuple(client for client in self.plan.clients if client not in self._received)

    @property
    def most_bytes(self) -> int | None:
        """How large the message of an answer may be; None where its arrays aren't known beforehand."""
        return None if self.shapes is None else most_bytes(self.shapes, self.plan.secure)

    def take(self, client: str, answer: messages.Answer) -> None:
        """Take one client's answer; the same again changes nothing.

        Raises
        ------
        ValueError
            For an answer of another run, round or request, a second one that differs, or wrong arrays.
        """
        self._check_turn(answer)
        received = answer.SerializeToString()
        if client in self._received:
            if received != self._received[client]:
                raise ValueError(f"round {self.number} was answered; a different answer to it is refused")
            return
        values = arrays.from_messages(answer.values)
        self._check_values(values)
        self._received[client], self._values[client] = received, values
        if self.shapes is None and not self.missing:
            self._settle()

    def total(self) -> dict[str, Floats]:
        """Return the sums over all clients, by name of the array.

        Raises
        ------
        ValueError
            If a sum is too large for a number.
        """
        answers = [self._values[client] for client in self.plan.clients]
        with np.errstate(over="ignore", invalid="ignore"):
            sums = {name: self._add([values[name] for values in answers]) for name in answers[0]}
        for name, values in sums.items():
            if not np.isfinite(values).all():
                raise ValueError(f"sums over clients must be finite; that of {name!r} isn't")
        return sums

    def _add(self, summands: list[np.ndarray]) -> Floats:
        if not self.plan.secure:
            return np.sum(summands, axis=0)
        return fixed_point.decode(fixed_point.total(np.stack(summands)))

    def _settle(self) -> None:
        """Expect what most clients answered; the answers of the others are dropped, and they are asked again."""
        layouts = {client: self._shapes(values) for client, values in self._values.items()}
        counts = Counter(tuple(layouts[client].items()) for client in self.plan.clients)
        self.shapes = dict(counts.most_common(1)[0][0])
        for client, shapes in layouts.items():
            if shapes != self.shapes:
                _log.warning("dropped an answer of client %r: its arrays have other shapes than most", client)
                del self._received[client], self._values[client]

    def _shapes(self, values: Mapping[str, np.ndarray]) -> dict[str, tuple[int, ...]]:
        """Return the shapes of an answer's numbers, in the order of their names."""
        return {name: values[name].shape[:-1] if self.plan.secure else values[name].shape for name in sorted(values)}

    def _check_turn(self, answer: messages.Answer) -> None:
        if answer.run != self.plan.run:
            raise ValueError("an answer must be for the current run; received one for another")
        if answer.round != self.number:
            raise ValueError(f"an answer to round {self.number} is due; received one to round {answer.round}")
        if answer.request != self._digest:
            raise ValueError("an answer must be to the task that was sent; received one to another")

    def _check_values(self, values: Mapping[str, np.ndarray]) -> None:
        secure = self.plan.secure
        expected_type = np.uint64 if secure else np.float64
        for array in values.values():
            if array.dtype != expected_type or (secure and array.shape[-1:] != (fixed_point.WORDS,)):
                raise ValueError(f"an answer must hold {'masked words' if secure else 'float64'}; received others")
        if self.shapes is not None and self._shapes(values) != self.shapes:
            raise ValueError("an answer's arrays must have the expected names and shapes; received others")

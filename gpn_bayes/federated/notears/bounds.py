"""What a client lets a coordinator ask of it in a run of ADMM, whatever the plan says."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from gpn_bayes._util.checks import check_count, check_not_negative
from gpn_bayes.federated.interface import Participant
from gpn_bayes.federated.notears.settings import Settings
from gpn_bayes.federated.notears.tasks import ROUND, ROWS, next_rho


@dataclass(frozen=True)
class Bounds:
    """The bounds of a client's own file.

    Parameters
    ----------
    most_rounds : int, default 200
        How many rounds a plan may have.
    largest_weight : float, default 1e6
        The largest magnitude of a shared parameter.
    smallest_rho : float, default 1e-4
        The least strength of consensus. The weaker it is, the more an answer depends on the client's rows alone.
    most_rows : int, default 1e9
        How many rows all clients together may have, according to the coordinator.

    Examples
    --------
    >>> Bounds.read({"most_rounds": 100}).largest_weight
    1000000.0
    >>> Bounds.read({"rounds": 100})
    Traceback (most recent call last):
    ValueError: bounds are largest_weight, most_rounds, most_rows, smallest_rho; received 'rounds'
    """

    most_rounds: int = 200
    largest_weight: float = 1e6
    smallest_rho: float = 1e-4
    most_rows: int = 10**9

    def __post_init__(self) -> None:
        """Refuse bounds that make no sense."""
        check_count("most_rounds", self.most_rounds, least=1)
        check_count("most_rows", self.most_rows, least=1)
        check_not_negative("largest_weight", self.largest_weight)
        check_not_negative("smallest_rho", self.smallest_rho)

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> "Bounds":
        """Return bounds from the table of a configuration file."""
        known = sorted(field.name for field in fields(cls))
        for name in given:
            if name not in known:
                raise ValueError(f"bounds are {', '.join(known)}; received {name!r}")
        return cls(**given)


class BoundedParticipant(Participant):
    """A client that answers a run of ADMM and nothing else.

    The coordinator is free to choose the shared parameters alone, within their bound: rows are counted once and before
    the first round, their number and centre stay the same, and rho follows from the plan. Whether a task is refused
    here depends on what was asked before, and never on this client's rows.

    Parameters
    ----------
    participant : Participant
        What answers.
    settings : Settings
        Those of the plan.
    bounds : Bounds
        This client's own.

    Raises
    ------
    ValueError
        If the plan exceeds the bounds.
    """

    def __init__(self, participant: Participant, settings: Settings, bounds: Bounds) -> None:
        if settings.max_rounds > bounds.most_rounds:
            raise ValueError(
                f"a run may have {bounds.most_rounds} rounds at most (most_rounds in this client's file); the "
                f"coordinator plans {settings.max_rounds}"
            )
        if settings.first_rho < bounds.smallest_rho:
            raise ValueError(
                f"rho must be at least {bounds.smallest_rho:g} (smallest_rho in this client's file); the coordinator "
                f"plans {settings.first_rho:g}"
            )
        self._participant = participant
        self._bounds = bounds
        # The last round only tells how far the clients were from what they agreed on.
        self._most = settings.max_rounds + 1
        self._rounds = -1
        self._rho = self._last_rho = settings.first_rho
        self._public: dict[str, np.ndarray] = {}

    def answer(self, task: str, values: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the participant's answer to a task that is due."""
        if (task == ROWS) != (self._rounds < 0):
            raise ValueError("rows are counted once, before the first round; received something else")
        if task == ROUND:
            self._check_round(values)
        answer = self._participant.answer(task, values)
        self._rounds += 1
        if task == ROUND:
            self._public = {name: np.array(values[name]) for name in ("rows", "centre") if name in values}
            self._last_rho, self._rho = self._rho, next_rho(self._rho)
        return answer

    def _check_round(self, values: Mapping[str, np.ndarray]) -> None:
        if self._rounds >= self._most:
            raise ValueError(f"the plan has {self._most - 1} rounds; received a task of another")
        for name, due in (("rho", self._rho), ("last_rho", self._last_rho)):
            if name not in values or np.shape(values[name]) != () or float(values[name]) != due:
                raise ValueError(f"{name!r} of this round must be {due:.6g}, by the plan; received something else")
        for name, known in self._public.items():
            if name not in values or not np.array_equal(values[name], known):
                raise ValueError(f"{name!r} must be the same in all rounds; received another")
        rows, shared = values.get("rows", 0), values.get("shared", np.nan)
        if not np.all(np.less_equal(rows, self._bounds.most_rows)):
            raise ValueError(f"all clients may have {self._bounds.most_rows} rows at most; received more")
        # Written so that NaN is refused too.
        if not np.all(np.abs(shared) <= self._bounds.largest_weight):
            raise ValueError(
                f"shared parameters must be {self._bounds.largest_weight:g} at most in size (largest_weight in this "
                "client's file); received a larger one"
            )

    def state(self) -> dict[str, np.ndarray]:
        """Return what the participant needs, and where the run stands."""
        place = {"rounds": np.array(self._rounds), "rhos": np.array([self._rho, self._last_rho])}
        public = {f"public {name}": value for name, value in self._public.items()}
        return place | public | {f"own {name}": value for name, value in self._participant.state().items()}

    def restore(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from there."""
        rounds, rhos = state.get("rounds"), state.get("rhos")
        if (
            (rounds is None or rounds.shape != () or rounds.dtype.kind != "i")
            or (rhos is None or rhos.shape != (2,) or rhos.dtype != float)
            or not (-1 <= rounds <= self._most and (rhos > 0).all())
        ):
            raise ValueError("a client's place in a run must be as it was saved; received another")
        self._rounds = int(rounds)
        self._rho, self._last_rho = (float(rho) for rho in rhos)
        self._public = {name.removeprefix("public "): state[name] for name in state if name.startswith("public ")}
        self._participant.restore(
            {name.removeprefix("own "): value for name, value in state.items() if name.startswith("own ")}
        )

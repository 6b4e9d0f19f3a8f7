"""The settings of a federated run of NOTEARS, which coordinator and clients must have alike."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from gpn_bayes._util.checks import check_choice, check_count, check_not_negative, shown

MODELS = ("linear", "mlp", "dynamic")
INTERCEPTS = ("client", "shared")
DIAGONALS = ("auto", "free", "masked")
# The penalty and the first strength of the constraints that each model has by default.
_PENALTIES = {"linear": 0.01, "mlp": 0.001, "dynamic": 0.01}
_STRENGTHS = {"linear": 0.001, "mlp": 0.1, "dynamic": 0.001}
# What a client builds, or answers, must not be a matter of the coordinator's alone.
_MOST = {"hidden": 1000, "lags": 100, "max_rounds": 10_000}


@dataclass(frozen=True)
class Settings:
    """The checked settings of `FederatedNOTEARS`; see there."""

    model: str = "linear"
    lambda1: float | None = None
    lambda2: float = 0.0
    rho: float | None = None
    threshold: float = 0.3
    lagged_threshold: float = 0.2
    hidden: int = 10
    lags: int = 1
    intercepts: str = "client"
    diagonal: str = "auto"
    required: Any = ()
    forbidden: Any = ()
    tiers: Any = None
    tolerance: float = 1e-8
    max_rounds: int = 200
    random_state: int = 0

    def __post_init__(self) -> None:
        """Refuse settings that make no sense."""
        check_choice("model", self.model, MODELS)
        check_choice("intercepts", self.intercepts, INTERCEPTS)
        check_choice("diagonal", self.diagonal, DIAGONALS)
        for name in ("lambda2", "threshold", "lagged_threshold", "tolerance"):
            check_not_negative(name, getattr(self, name))
        if self.lambda1 is not None:
            check_not_negative("lambda1", self.lambda1)
        if self.rho is not None:
            check_not_negative("rho", self.rho)
            if not self.rho > 0:
                raise ValueError(f"rho must be above 0; received {shown(self.rho)}")
        for name, most in _MOST.items():
            check_count(name, getattr(self, name), least=1)
            if getattr(self, name) > most:
                raise ValueError(f"{name} must be at most {most}; received {getattr(self, name)}")
        check_count("random_state", self.random_state)

    @property
    def penalty(self) -> float:
        """The penalty in use."""
        return float(_PENALTIES[self.model] if self.lambda1 is None else self.lambda1)

    @property
    def first_rho(self) -> float:
        """The strength of both constraints in the first round."""
        return float(_STRENGTHS[self.model] if self.rho is None else self.rho)

    @property
    def free_diagonal(self) -> bool:
        """Whether variables may act on themselves on the way to a DAG."""
        return self.model == "linear" if self.diagonal == "auto" else self.diagonal == "free"

    @property
    def shared_intercepts(self) -> bool:
        """Whether intercepts are the same for all clients."""
        return self.intercepts == "shared"

    @classmethod
    def read(cls, given: Mapping[str, Any]) -> "Settings":
        """Return settings from a mapping, such as that of a configuration file.

        Examples
        --------
        >>> Settings.read({"model": "mlp"}).penalty
        0.001
        >>> Settings.read({"lamda1": 0.1})
        Traceback (most recent call last):
        ValueError: settings must be known; received 'lamda1'
        """
        known = {field.name for field in fields(cls)}
        for name in given:
            if name not in known:
                raise ValueError(f"settings must be known; received {name!r}")
        return cls(**given)

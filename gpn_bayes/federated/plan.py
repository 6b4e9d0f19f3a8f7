"""What a run is about: its program, variables and clients; all clients must have the same plan."""

import hashlib
import json
import warnings
from dataclasses import asdict, dataclass, fields
from functools import cached_property
from typing import Any

FEWEST = 2  # a sum over one client is that client's own numbers
ENOUGH = 3
_MAX_SETTINGS = 1_000_000


@dataclass(frozen=True)
class Plan:
    """What a run is about.

    Parameters
    ----------
    run : str
        Names the run; never used for two.
    program : str
        The name of a program in `gpn_bayes.federated.programs`.
    settings : str
        The program's settings, as JSON.
    variables : tuple of str
        The columns, in order; every client must have them.
    clients : tuple of str
        Who takes part.
    secure : bool
        Whether sums are masked, so that nobody sees the numbers of a single client.
    """

    run: str
    program: str
    settings: str
    variables: tuple[str, ...]
    clients: tuple[str, ...]
    secure: bool

    def __post_init__(self) -> None:
        """Refuse plans that can't be carried out."""
        texts = (self.run, self.program, self.settings, *self.variables, *self.clients)
        if not all(isinstance(text, str) for text in texts) or not isinstance(self.secure, bool):
            raise ValueError("a plan must be made of texts and a truth value; received something else")
        if len(self.settings) > _MAX_SETTINGS:
            raise ValueError(
                f"a program's settings must have {_MAX_SETTINGS} characters at most; received {len(self.settings)}"
            )
        # A column that is summed twice would also add more to noisy sums than their noise is made for.
        if len(set(self.variables)) < len(self.variables):
            raise ValueError("variables must have different names; received one twice")
        if len(set(self.clients)) < len(self.clients):
            raise ValueError(f"clients must have different names; received {', '.join(self.clients)}")
        if self.secure and len(self.clients) < FEWEST:
            raise ValueError(
                f"a secure sum needs at least {FEWEST} clients: a sum over one is that client's own numbers; "
                f"received {len(self.clients)}"
            )

    @cached_property
    def digest(self) -> bytes:
        """A hash of everything."""
        return hashlib.sha256(self.to_json().encode()).digest()

    @property
    def options(self) -> dict[str, Any]:
        """The program's settings."""
        try:
            options = json.loads(self.settings or "{}")
        except (ValueError, RecursionError):
            options = None
        if not isinstance(options, dict):
            raise ValueError("a program's settings must be a JSON object; received something else")
        if not all(name.isprintable() for name in options):
            raise ValueError("the names of a program's settings must be printable; received one that isn't")
        return options

    def to_json(self) -> str:
        """Return the plan as JSON, the same text for the same plan."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> "Plan":
        """Return the plan that `to_json` wrote.

        Examples
        --------
        >>> Plan.from_json("[]")
        Traceback (most recent call last):
        ValueError: a plan must be one that a run wrote; received another text
        """
        try:
            content: dict[str, Any] = json.loads(text)
            content |= {name: tuple(content[name]) for name in ("variables", "clients")}
        except (ValueError, RecursionError, TypeError, KeyError):
            content = {}
        if content.keys() != {field.name for field in fields(cls)}:
            raise ValueError("a plan must be one that a run wrote; received another text")
        return cls(**content)


def warn_of_few(clients: int, stacklevel: int = 3) -> None:
    """Say in plain words what a sum over two clients reveals."""
    if FEWEST <= clients < ENOUGH:
        warnings.warn(few_clients(clients), UserWarning, stacklevel=stacklevel)


def few_clients(clients: int) -> str:
    """Return in plain words what a sum over few clients reveals."""
    return (
        f"a sum over {clients} clients hides little: anyone who knows the numbers of one (such as that client itself) "
        f"can subtract them from the sum and get the other's exactly; use at least {ENOUGH} clients"
    )

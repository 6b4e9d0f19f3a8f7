"""What both parties must know and agree on before they compute anything: all of it is public."""

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from gpn_bayes._util.checks import check_choice, check_count
from gpn_bayes.private.scoring import PRECISIONS
from gpn_bayes.secure.link import Link, ProtocolError
from gpn_bayes.secure.paillier import check_key_bits

VERSION = 1
ALIGNMENTS = ("digest", "intersection")
MAX_ROWS = 100_000
_KIND = "settings"
_SHOWN = 60


@dataclass(frozen=True)
class Settings:
    """The settings of a run.

    Parameters
    ----------
    order : tuple of str
        All variables, of both parties, parents first.
    max_parents : int, default 3
        Maximum number of parents per node.
    score : {"exact", "paper"}
        K2's score as it is, or the function g of Wright & Yang (2004).
    key_bits : int, default 3072
        Length of the encryption key: 3072, or 2048 for 112-bit security.
    align : {"digest", "intersection"}
        Whether both tables must have the same keys, or rows with keys that both have are taken.

    Examples
    --------
    >>> Settings(("rain", "wet"), max_parents=-1).check()
    Traceback (most recent call last):
    ValueError: max_parents must be a whole number, 0 or more; received -1
    """

    order: tuple[str, ...]
    max_parents: int = 3
    score: str = "exact"
    key_bits: int = 3072
    align: str = "digest"

    def check(self) -> None:
        """Refuse invalid settings."""
        if len(self.order) < 2 or not all(isinstance(name, str) for name in self.order):
            raise ValueError("an order must list two variables or more by their names; received something else")
        for name in self.order:
            if self.order.count(name) > 1:
                raise ValueError(f"an order must list every variable once; {name!r} appears more than once")
        check_count("max_parents", self.max_parents)
        check_choice("score", self.score, tuple(PRECISIONS))
        check_choice("align", self.align, ALIGNMENTS)
        check_key_bits(self.key_bits)


@dataclass(frozen=True)
class Agreement:
    """What both parties found out: whose the variables are.

    Attributes
    ----------
    variables : tuple of str
        The first party's columns, then the second's: the columns of the joined table.
    n_first : int
        How many of them are the first party's.
    """

    variables: tuple[str, ...]
    n_first: int


def agree(link: Link, settings: Settings, columns: Sequence[str], rows: int, *, first: bool) -> Agreement:
    """Compare settings with the other party; both find the same differences.

    Parameters
    ----------
    link : Link
        To the other party.
    settings : Settings
        This party's.
    columns : sequence of str
        This party's variables.
    rows : int
        This party's rows; sent unless rows are aligned by intersection, which reveals it anyway.
    first : bool
        Whether this party's columns come first; the other's don't.

    Raises
    ------
    ValueError
        If the parties don't agree.
    """
    mine: dict[str, Any] = {
        "version": VERSION,
        **asdict(settings),
        "order": list(settings.order),
        "rows": rows if settings.align == "digest" else None,
        "first": first,
        "columns": list(columns),
    }
    link.send(_KIND, json.dumps(mine).encode())
    theirs = _read(link.receive(_KIND), mine)
    _compare(mine, theirs)
    both = (mine, theirs) if first else (theirs, mine)
    variables = (*both[0]["columns"], *both[1]["columns"])
    _check_owners(settings.order, variables)
    return Agreement(variables, len(both[0]["columns"]))


def _read(payload: bytes, model: dict[str, Any]) -> dict[str, Any]:
    """Return the other party's settings, which must have the same form as this party's."""
    try:
        received = json.loads(payload)
    except (ValueError, RecursionError):
        received = None
    if not isinstance(received, dict) or not isinstance(received.get("version"), int):
        raise ProtocolError("settings must be those of a private run; received something else")
    if received["version"] != VERSION:
        raise ValueError(f"both parties must use the same version of the protocol; {VERSION} here, another there")
    whole = received.keys() == model.keys() and all(_alike(received[name], value) for name, value in model.items())
    if not whole:
        raise ProtocolError("settings must be those of a private run; received something else")
    return received


def _alike(found: Any, value: Any) -> bool:
    if isinstance(value, list):
        return isinstance(found, list) and all(isinstance(entry, str) for entry in found)
    # The alignment, which is compared first, decides whether rows are sent.
    return type(found) is type(value) or {type(found), type(value)} == {int, type(None)}


def _compare(mine: dict[str, Any], theirs: dict[str, Any]) -> None:
    for name in ("max_parents", "score", "key_bits", "align"):
        if mine[name] != theirs[name]:
            # What the other party calls a setting may be long.
            there = repr(theirs[name])[:_SHOWN]
            raise ValueError(f"both parties must have the same {name}; {mine[name]!r} here, {there} there")
    if mine["order"] != theirs["order"]:
        raise ValueError(f"both parties must have the same order; {_difference(mine['order'], theirs['order'])}")
    if mine["rows"] != theirs["rows"]:
        raise ValueError(f"both tables must have the same number of rows; {mine['rows']} here, {theirs['rows']} there")
    if mine["first"] == theirs["first"]:
        raise ValueError("one party must be the first and the other the second; both are the same")


def _difference(mine: list[str], theirs: list[str]) -> str:
    if len(mine) != len(theirs):
        return f"{len(mine)} variables here, {len(theirs)} there"
    place = next(i for i in range(len(mine)) if mine[i] != theirs[i])
    return f"at position {place + 1}, {mine[place]!r} here, {repr(theirs[place])[:_SHOWN]} there"


def _check_owners(order: Sequence[str], variables: Sequence[str]) -> None:
    for name in order:
        if variables.count(name) != 1:
            whose = "both" if name in variables else "none"
            raise ValueError(f"every variable of the order must belong to one party; {name!r} belongs to {whose}")
    if len(variables) > len(order):
        odd = next(name for name in variables if name not in order)
        raise ValueError(f"an order must list every variable once; {repr(odd)[:_SHOWN]} is missing")

"""Options, each defined once, as a field of the class that it belongs to: default, check, and what a command line says.

``Partition(temperatures=4)`` and ``gpn-bayes run --temperatures 4`` come from the same definition: the class takes its
signature from the fields, and `gpn_bayes.cli.options` makes an option of each.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, fields
from functools import wraps
from typing import Any

from gpn_bayes._util.checks import check_count, did_you_mean, shown

SAMPLING, KNOWLEDGE = "Sampling", "Prior knowledge"
Check = Callable[[str, Any], None]


@dataclass(frozen=True)
class Option:
    """What is known of an option beside its name and its default.

    Attributes
    ----------
    check : callable or None
        Takes the option's name and a value, and refuses what is wrong whatever the data.
    help : str
        What the command line says of it.
    flag : str
        What it is called there: by default as in Python, with hyphens. A pair ``--so/--no-so`` says yes or no.
    typed : type
        What the command line takes for it; None there, if it isn't typed, where the default can't be.
    panel : str
        Under which heading it stands.
    """

    check: Check | None
    help: str
    flag: str
    typed: Any
    panel: str


def option(
    default: Any, help: str, check: Check | None = None, flag: str = "", typed: Any = str, panel: str = SAMPLING
) -> Any:
    """Return the field of a dataclass that is an option; see `Option`."""
    return field(default=default, metadata={"option": Option(check, help, flag, typed, panel)})


def options_of(kind: Any) -> dict[str, Option]:
    """Return the options of a class, or of an object, by name."""
    return {own.name: own.metadata["option"] for own in fields(kind) if "option" in own.metadata}


def by_name_only[Kind](kind: type[Kind]) -> type[Kind]:
    """Have a dataclass of options refuse, in one line, what isn't one of them, and what is given without a name.

    Examples
    --------
    >>> @by_name_only
    ... @dataclass(kw_only=True)
    ... class Walk:
    ...     steps: int = option(10, "How far to go.", count(1))
    >>> Walk(step=3)
    Traceback (most recent call last):
    ValueError: Walk has no option 'step': did you mean 'steps'?
    >>> Walk(3)
    Traceback (most recent call last):
    ValueError: Walk takes options by name, such as steps=; received 3 without one
    """
    made = kind.__init__
    names = [own.name for own in fields(kind) if own.init]  # type: ignore[arg-type]  # a dataclass

    @wraps(made)
    def checked(self: Kind, *nameless: Any, **given: Any) -> None:
        if nameless:
            received = f"received {shown(nameless[0])} without one"
            raise ValueError(f"{kind.__name__} takes options by name, such as {names[0]}=; {received}")
        for name in given:
            if name not in names:
                raise ValueError(f"{kind.__name__} has no option {name!r}{did_you_mean(name, names)}")
        made(self, **given)

    kind.__init__ = checked  # type: ignore[assignment]  # takes what the other takes
    return kind


def check_options(owner: Any) -> None:
    """Refuse what no data could make right.

    Examples
    --------
    >>> @dataclass
    ... class Walk:
    ...     steps: int = option(10, "How far to go.", count(1))
    >>> check_options(Walk())
    >>> check_options(Walk(steps=0))
    Traceback (most recent call last):
    ValueError: steps must be a whole number, 1 or more; received 0
    """
    for name, own in options_of(owner).items():
        if own.check is not None:
            own.check(name, getattr(owner, name))


def flag_of(name: str, own: Option) -> str:
    """Return what the command line calls an option.

    Examples
    --------
    >>> flag_of("max_parents", Option(None, "", "", int, SAMPLING))
    '--max-parents'
    """
    return own.flag.partition("/")[0] or f"--{name.replace('_', '-')}"


def count(least: int, *others: Any) -> Check:
    """Return the check that a value is a whole number, or one of some others."""

    def check(name: str, value: Any) -> None:
        if not any(value is other or (isinstance(value, str) and value == other) for other in others):
            check_count(name, value, least)

    return check


def one_of(*values: Any) -> Check:
    """Return the check that a value is one of a few.

    Examples
    --------
    >>> one_of("auto", None)("reweight", "always")
    Traceback (most recent call last):
    ValueError: reweight must be 'auto' or None; received 'always'
    """
    *first, last = map(repr, values)

    def check(name: str, value: Any) -> None:
        if not any(value is own or (type(value) is type(own) and value == own) for own in values):
            raise ValueError(f"{name} must be {', '.join(first)} or {last}; received {shown(value)}")

    return check

"""Options that several commands take."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from gpn_bayes.data.keywords import KEYWORDS, Keyword

KNOWLEDGE = "Prior knowledge"
_TABLE = "The table"

Required = Annotated[
    list[str] | None,
    typer.Option(
        help="A required edge, 'raf -> mek', or a CSV file with columns cause,effect; repeatable.",
        rich_help_panel=KNOWLEDGE,
    ),
]
Forbidden = Annotated[
    list[str] | None,
    typer.Option(help="A forbidden edge, or a CSV file as for --required; repeatable.", rich_help_panel=KNOWLEDGE),
]
Tiers = Annotated[
    Path | None,
    typer.Option(
        help="CSV file with columns name,tier: no edge leads from a later tier to an earlier one.",
        rich_help_panel=KNOWLEDGE,
    ),
]
MaxParents = Annotated[
    int | None,
    typer.Option(help="Maximum number of parents per variable.", show_default=False, rich_help_panel=KNOWLEDGE),
]


def folder_option(help_text: str) -> Any:
    """Return an option that takes the path of a folder, but not an empty one."""
    return typer.Option(help=help_text, parser=_read_folder, metavar="<path>")


def _read_folder(text: str | Path) -> Path:
    """Return the path of a folder; a default arrives as a path already."""
    if not str(text).strip():  # as a path it would be the current folder, which nobody asked for
        raise typer.BadParameter("a folder must have a name; received ''")
    return Path(text)


Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]
TableFile = Annotated[
    Path,
    typer.Argument(help="A CSV, Excel (.xlsx), Parquet or Feather table; variables are columns. Or .npz statistics."),
]


_TYPES: dict[str, type] = {"number": float, "count": int}


def _option_of(keyword: Keyword) -> Any:
    kind = _TYPES.get(keyword.typed, str)
    return Annotated[kind | None, typer.Option(help=keyword.help, show_default=False, rich_help_panel=_TABLE)]


_TABLE_OPTIONS = {name: _option_of(own) for name, own in KEYWORDS.items()}


def reads_table(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options for reading a table to a command, which gets those that were given as a dict, `table`."""

    @functools.wraps(command)
    def with_options(**given: Any) -> None:
        table = {name: given.pop(name) for name in _TABLE_OPTIONS}
        command(**given, table={name: value for name, value in table.items() if value is not None})

    own = [parameter for parameter in inspect.signature(command).parameters.values() if parameter.name != "table"]
    further = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option)
        for name, option in _TABLE_OPTIONS.items()
    ]
    with_options.__signature__ = inspect.Signature([*own, *further])  # type: ignore[attr-defined]  # for Typer
    return with_options

"""Options that several commands take."""

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from gpn_bayes._util.options import flag_of
from gpn_bayes.data.keywords import KEYWORDS, Keyword
from gpn_bayes.sampling.options import all_options

_TABLE = "The table"


def _parameter(name: str, others: dict[str, Any]) -> inspect.Parameter:
    """Return the parameter of a command that is an option of a run; a default that can't be typed is None there."""
    own, default = all_options()[name]
    default = others.get(name, default)
    typed = (own.typed,) if isinstance(own.typed, type) else ()
    shown = default if isinstance(default, typed) else None
    flags = [own.flag] if "/" in own.flag else []
    declared = typer.Option(*flags, help=own.help, show_default=shown is not None, rich_help_panel=own.panel or None)
    called = flag_of(name, own).removeprefix("--").replace("-", "_")
    typed_or_none: Any = own.typed if shown is not None else own.typed | None
    annotation: Any = Annotated[typed_or_none, declared]
    return inspect.Parameter(called, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=shown, annotation=annotation)


def takes_options(*names: str, **defaults: Any) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add options of a run to a command, which gets them as a dict, `asked`, by their names in Python.

    Parameters
    ----------
    *names : str
        Which ones; all if none are named.
    **defaults
        Other defaults than those of `gpn_bayes.sample`.
    """

    def add(command: Callable[..., None]) -> Callable[..., None]:
        further = {name: _parameter(name, defaults) for name in names or all_options()}

        @functools.wraps(command)
        def with_options(**given: Any) -> None:
            asked = {name: given.pop(option.name) for name, option in further.items()}
            command(**given, asked=asked)

        own = [parameter for parameter in inspect.signature(command).parameters.values() if parameter.name != "asked"]
        place = [parameter.name for parameter in own].index("out") + 1
        own[place:place] = further.values()
        with_options.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]  # for Typer
        return with_options

    return add


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


def _option_of(keyword: Keyword, draws: bool) -> Any:
    kind = _TYPES.get(keyword.typed, str)
    text = keyword.help + (keyword.drawing or "") * draws
    return Annotated[kind | None, typer.Option(help=text, show_default=False, rich_help_panel=_TABLE)]


def reads_table(*, draws: bool) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Add the options for reading a table to a command, which gets those that were given as a dict, `table`.

    Parameters
    ----------
    draws : bool
        Whether the command draws networks, and so can draw missing values along with them.
    """
    options = {name: _option_of(own, draws) for name, own in KEYWORDS.items() if draws or own.drawing is not None}

    def add(command: Callable[..., None]) -> Callable[..., None]:
        @functools.wraps(command)
        def with_options(**given: Any) -> None:
            table = {name: given.pop(name) for name in options}
            command(**given, table={name: value for name, value in table.items() if value is not None})

        own = [parameter for parameter in inspect.signature(command).parameters.values() if parameter.name != "table"]
        further = [
            inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=option)
            for name, option in options.items()
        ]
        with_options.__signature__ = inspect.Signature([*own, *further])  # type: ignore[attr-defined]  # for Typer
        return with_options

    return add

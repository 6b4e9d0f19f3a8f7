"""Options that several commands take."""

from pathlib import Path
from typing import Annotated, Any

import typer

KNOWLEDGE = "Prior knowledge"

Required = Annotated[
    list[str] | None,
    typer.Option(
        help="An edge that must be there, 'raf -> mek', or a CSV file cause,effect; repeatable.",
        rich_help_panel=KNOWLEDGE,
    ),
]
Forbidden = Annotated[
    list[str] | None,
    typer.Option(help="An edge that must not be there; likewise.", rich_help_panel=KNOWLEDGE),
]
Tiers = Annotated[
    Path | None,
    typer.Option(
        help="CSV file name,tier: no edge leads from a later tier to an earlier.",
        rich_help_panel=KNOWLEDGE,
    ),
]
MaxParents = Annotated[
    int | None,
    typer.Option(help="Largest number of parents of a variable.", show_default=False, rich_help_panel=KNOWLEDGE),
]


def folder_option(help_text: str) -> Any:
    """Return an option that takes the path of a folder, but not an empty one."""
    return typer.Option(help=help_text, parser=_read_folder, metavar="<path>")


def _read_folder(text: str) -> Path:
    if not text.strip():  # as a path it would be the current folder, which nobody asked for
        raise typer.BadParameter("a folder must have a name; received ''")
    return Path(text)


Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]

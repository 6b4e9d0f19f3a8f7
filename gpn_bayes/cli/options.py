"""Options that several commands take."""

from pathlib import Path
from typing import Annotated

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
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Show no progress.")]

"""What the commands print: messages of one line, the edges of a posterior, how far to trust them."""

import errno
import math
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gpn_bayes.advice import in_options
from gpn_bayes.extras import MissingPackage

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from gpn_bayes.posterior import GraphPosterior

SHOWN_EDGES = 15
_SHOWN_FROM = 0.01
_BAR_WIDTH = 20
_EIGHTHS = " ▏▎▍▌▋▊▉"


def tell(kind: str, text: str) -> None:
    """Print one line on stderr, ``kind: text``, however long it is and however narrow the terminal."""
    line = " ".join(in_options(text).split())
    print(f"{kind}: {line}", file=sys.stderr, flush=True)


def note(text: str) -> None:
    """Print one line on stderr about what is going on."""
    print(" ".join(text.split()), file=sys.stderr, flush=True)


@contextmanager
def plain_messages() -> Iterator[None]:
    """Show errors as ``error: …`` and exit, with 2 for bad input and 1 for lost workers; warnings as ``warning: …``."""

    def show(message: Warning | str, category: type[Warning], *place: Any) -> None:
        if issubclass(category, UserWarning):
            tell("warning", str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = show  # type: ignore[assignment]
        try:
            yield
        except (ValueError, MissingPackage) as error:
            tell("error", str(error))
            raise typer.Exit(2) from None
        except ConnectionError as error:
            # Workers are gone; the same command goes on.
            tell("error", str(error))
            raise typer.Exit(1) from None
        except OSError as error:
            # Without a file it is about, it is nothing the user could mend; but for a full disk.
            if error.filename is None and error.errno != errno.ENOSPC:
                raise
            where = f": {error.filename}" if error.filename else ""
            tell("error", f"{error.strerror}{where}")
            raise typer.Exit(2) from None


def console() -> "Console":
    """Return the console of stdout, which never guesses at colours in numbers and names."""
    from rich.console import Console

    return Console(highlight=False, markup=False, emoji=False)


def show_run(post: "GraphPosterior", rows: int) -> None:
    """Print the summary of a run: what it was, its edges, and how far to trust them."""
    out = console()
    settings = post.settings
    chains, draws = post.log_score.shape
    out.print(f"\n{len(post.names)} variables, {rows} rows", style="bold", end="")
    score = str(settings["score"]).partition("(")[0]
    out.print(f"  score {score}, {settings['sampler']} sampler, {chains} x {draws} draws\n")
    out.print(_edge_table(post, out))
    out.print()
    first, *others = in_options(str(post.diagnostics())).splitlines()
    out.print(first)
    for line in others:
        out.print(line, style="yellow")


def show_files(folder: Path, files: list[Path]) -> None:
    """Print where the results are."""
    names = ", ".join(file.name for file in files)
    console().print(f"\nIn {folder}{os.sep}: {names}", soft_wrap=True)


def _edge_table(post: "GraphPosterior", out: "Console") -> "Table":
    summary = post.summary()
    shown = summary[summary["probability"] >= _SHOWN_FROM].head(SHOWN_EDGES)
    table = plain_table()
    table.add_column("edge", overflow="fold")
    table.add_column("probability", justify="right")
    table.add_column(error_heading(out), justify="right")
    table.add_column("", no_wrap=True, style="cyan")
    for row in shown.to_dict("records"):
        p = row["probability"]
        table.add_row(row["edge"], f"{p:.3f}", error_text(row["mcse"]), bar(p, out))
    if len(shown) < len(summary):
        largest = summary["probability"].iloc[len(shown)]
        table.add_row(f"{len(summary) - len(shown)} more", f"up to {largest:.3f}", style="dim")
    return table


def plain_table() -> "Table":
    """Return an empty table of the look all commands share."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False, header_style="bold")


def error_heading(out: "Console") -> str:
    """Return the sign for an error that the console can show."""
    return "+/-" if out.options.ascii_only else "±"


def error_text(mcse: float) -> str:
    """Return an error as text; a dash where the draws can't tell it."""
    if math.isnan(mcse):
        return "-"
    return "exact" if mcse == 0 else f"{mcse:.3f}"


def bar(probability: float, out: "Console") -> str:
    """Return a bar as long as a probability, to an eighth of a character."""
    if out.options.ascii_only:
        return "#" * round(probability * _BAR_WIDTH)
    whole, eighths = divmod(round(probability * _BAR_WIDTH * 8), 8)
    return ("█" * whole + _EIGHTHS[eighths]).rstrip()

"""What the commands print: one-line messages, the edges of a posterior, its diagnostics."""

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

from gpn_bayes._util.cli_wording import in_options
from gpn_bayes._util.extras import MissingPackage
from gpn_bayes._util.printable import printable

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from gpn_bayes.posterior import Diagnostics, GraphPosterior

SHOWN_EDGES = 15
# Edges between these are uncertain. Some of each kind are shown, however many there are of the other.
_UNLIKELY, _LIKELY = 0.05, 0.95
_LEAST_LIKELY_SHOWN, _LEAST_UNCERTAIN_SHOWN = 5, 10
# Where there are next to none, the most probable of the rest.
_LEAST_SHOWN, _SHOWN_FROM = 5, 0.01
_BAR_WIDTH = 20
_EIGHTHS = " ▏▎▍▌▋▊▉"


def tell(kind: str, text: str) -> None:
    """Print ``kind: text`` on stderr in one line, however narrow the terminal; the items of a list in a line each."""
    lines = (" ".join(line.split()) for line in printable(in_options(text)).split("\n  "))
    print(f"{kind}: " + "\n  ".join(lines), file=sys.stderr, flush=True)


def note(text: str) -> None:
    """Print one line on stderr about the progress of a command."""
    print(" ".join(printable(text).split()), file=sys.stderr, flush=True)


@contextmanager
def plain_messages() -> Iterator[None]:
    """Show errors as ``error: …`` and exit, with 2 for bad input and 1 for lost workers; warnings as ``warning: …``."""

    def show(message: Warning | str, category: type[Warning], *place: Any) -> None:
        if issubclass(category, UserWarning):
            tell("warning", str(message))

    with warnings.catch_warnings():
        warnings.simplefilter("default")
        warnings.showwarning = show  # type: ignore[assignment]  # takes the place of a warning as one
        try:
            yield
        except (ValueError, MissingPackage) as error:
            tell("error", str(error))
            raise typer.Exit(2) from None
        except ConnectionError as error:
            # Workers are gone; the same command resumes the run.
            tell("error", str(error))
            raise typer.Exit(1) from None
        except OSError as error:
            # Without a file name there is nothing the user can fix, except a full disk.
            if error.filename is None and error.errno != errno.ENOSPC:
                raise
            where = f": {error.filename}" if error.filename else ""
            tell("error", f"{error.strerror}{where}")
            raise typer.Exit(2) from None


def console() -> "Console":
    """Return the console of stdout, which never guesses at colours in numbers and names, and doesn't obey these."""
    from rich.console import Console

    class PlainConsole(Console):
        def render_str(self, text: str, **how: Any) -> "Text":
            return super().render_str(printable(text), **how)

    return PlainConsole(highlight=False, markup=False, emoji=False)


def show_run(post: "GraphPosterior", rows: int) -> None:
    """Print the summary of a run: its settings, its edges, whether it converged, what it assumes about the data."""
    from gpn_bayes.posterior.score_setting import score_title

    out = console()
    settings = post.settings
    chains, draws = post.log_score.shape
    out.print(f"\n{len(post.names)} variables, {rows} rows", style="bold", end="")
    out.print(f"  score {score_title(settings)}, {settings['sampler']} sampler, {chains} x {draws} draws\n")
    out.print(_edge_table(post, out))
    out.print()
    _show_grounds(post.diagnostics(), out)


def _show_grounds(found: "Diagnostics", out: "Console") -> None:
    """Print both verdicts: on the sampling, and on assumptions and data."""
    from rich.text import Text

    styles = {"good": "bold green", "caution": "bold yellow", "poor": "bold red"}
    out.print(Text.assemble((found.heading, styles[found.verdict]), " ", printable(found.summary)))
    for text in found.warnings():
        out.print(in_options(text), style="yellow")
    out.print("\nThe answers assume:", style="bold")
    for text in found.assumptions:
        out.print(f"- {text}")
    out.print(f"\n{found.data_heading}", style="bold yellow" if found.data_verdict == "flagged" else "bold")
    for flag in found.data_flags:
        out.print(f"- {in_options(flag.message)}", style=None if flag.mild else "yellow")


def show_files(folder: Path, files: list[Path]) -> None:
    """Print where the results are."""
    names = ", ".join(file.name for file in files)
    console().print(f"\nIn {folder}{os.sep}: {names}", soft_wrap=True)


def _edge_table(post: "GraphPosterior", out: "Console") -> "Table":
    """Return the edges to look at: likely ones, uncertain ones, and how many more there are of each."""
    table = plain_table()
    table.add_column("edge", overflow="fold")
    table.add_column("probability", justify="right")
    table.add_column(error_heading(out), justify="right")
    table.add_column("", no_wrap=True, style="cyan")
    for group, shown in _groups(post.summary()):
        for row in group.head(shown).to_dict("records"):
            p = row["probability"]
            table.add_row(row["edge"], f"{p:.3f}", error_text(row["mcse"]), bar(p, out))
        rest = group["probability"].iloc[shown:]
        if len(rest):
            table.add_row(f"{len(rest)} more", _range(rest.min(), rest.max()), style="dim")
    return table


def _groups(summary: "pd.DataFrame") -> "list[tuple[pd.DataFrame, int]]":
    """Return the likely, the uncertain and the unlikely edges, each with the number of them to show."""
    p = summary["probability"]
    likely, uncertain = summary[p >= _LIKELY], summary[(p >= _UNLIKELY) & (p < _LIKELY)]
    unlikely = summary[p < _UNLIKELY]
    many_likely = max(SHOWN_EDGES - len(uncertain), _LEAST_LIKELY_SHOWN)
    many_uncertain = max(SHOWN_EDGES - len(likely), _LEAST_UNCERTAIN_SHOWN)
    few = max(_LEAST_SHOWN - len(likely) - len(uncertain), 0)
    possible = int((unlikely["probability"] >= _SHOWN_FROM).sum())
    return [(likely, many_likely), (uncertain, many_uncertain), (unlikely, min(few, possible))]


def _range(lowest: float, highest: float) -> str:
    """Return between which probabilities edges lie, without a lower end of zero."""
    low, high = f"{lowest:.3f}", f"{highest:.3f}"
    if low == high:
        return low
    return f"up to {high}" if low == "0.000" else f"{low} to {high}"


def plain_table() -> "Table":
    """Return an empty table of the look all commands share."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    return Table(box=SIMPLE_HEAD, pad_edge=False, padding=(0, 2, 0, 0), show_edge=False, header_style="bold")


def error_heading(out: "Console") -> str:
    """Return the sign for an error that the console can show."""
    return "+/-" if out.options.ascii_only else "±"


def error_text(mcse: float) -> str:
    """Return an error as text; a dash where it is unknown."""
    if math.isnan(mcse):
        return "-"
    return "exact" if mcse == 0 else f"{mcse:.3f}"


def bar(probability: float, out: "Console") -> str:
    """Return a bar as long as a probability, to an eighth of a character."""
    if out.options.ascii_only:
        return "#" * round(probability * _BAR_WIDTH)
    whole, eighths = divmod(round(probability * _BAR_WIDTH * 8), 8)
    return ("█" * whole + _EIGHTHS[eighths]).rstrip()

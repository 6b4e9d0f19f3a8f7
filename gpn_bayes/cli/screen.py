"""What the commands print: one-line messages, the edges of a posterior, its diagnostics."""

import errno
import math
import os
import shutil
import sys
import textwrap
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from gpn_bayes._util.extras import MissingPackage
from gpn_bayes._util.printable import printable
from gpn_bayes.sampling.flags import in_options

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from gpn_bayes.data import Flag
    from gpn_bayes.posterior import Diagnostics, GraphPosterior

SHOWN_EDGES = 15
# Edges between these are uncertain. Some of each kind are shown, however many there are of the other.
_UNLIKELY, _LIKELY = 0.05, 0.95
_LEAST_LIKELY_SHOWN, _LEAST_UNCERTAIN_SHOWN = 5, 10
# Where there are next to none, the most probable of the rest.
_LEAST_SHOWN, _SHOWN_FROM = 5, 0.01
_BAR_WIDTH = 20
# Columns of a flag that are named where it has been printed before.
_NAMED = 5
# Bytes of address space below which the libraries of a run end the process in ways of their own (measured with two
# threads: with 1.0 GB compilation aborts, with 1.2 GB a small run succeeds).
_LEAST_ADDRESS_SPACE = 1_200_000 * 1024
# What the loader of libraries says.
_NO_MEMORY = ("failed to map segment", "annot allocate memory", "cannot create shared object descriptor")
_EIGHTHS = " ▏▎▍▌▋▊▉"


def tell(kind: str, text: str) -> None:
    """Print ``kind: text`` on stderr in one line, wrapped in a terminal; the items of a list in a line each."""
    first, *others = (" ".join(line.split()) for line in printable(in_options(text)).split("\n  "))
    lines = [f"{kind}: {first}", *(f"  {line}" for line in others)]
    print("\n".join(map(_wrapped, lines)), file=sys.stderr, flush=True)


def note(text: str) -> None:
    """Print one line on stderr about the progress of a command, wrapped in a terminal."""
    print(_wrapped(" ".join(printable(text).split())), file=sys.stderr, flush=True)


def _wrapped(line: str) -> str:
    """Return a line as a terminal shows it, which would break it inside words; elsewhere, for programs, as it is."""
    width = _terminal_width()
    if width is None or len(line) <= width:
        return line
    indent = " " * (len(line) - len(line.lstrip()) + 2)
    return textwrap.fill(
        line, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False, drop_whitespace=True
    )


def _terminal_width() -> int | None:
    """Return how wide the terminal is that shows messages; None where none does."""
    return shutil.get_terminal_size().columns if sys.stderr.isatty() else None


def check_address_space() -> None:
    """Refuse to begin with less address space than the libraries need, which then end a process without a word of ours.

    Raises
    ------
    MemoryError
        Where the process is limited (``ulimit -v``) to less.
    """
    try:
        import resource
    except ImportError:  # Windows knows no such limit
        return
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < _LEAST_ADDRESS_SPACE:
        raise MemoryError(f"{limit} bytes of address space")


def lacks_memory(error: BaseException) -> bool:
    """Return whether an error comes of memory that the system didn't give, to Python or to a library being loaded.

    Examples
    --------
    >>> lacks_memory(MemoryError()), lacks_memory(OSError(errno.ENOMEM, "Cannot allocate memory"))
    (True, True)
    >>> lacks_memory(ImportError("numpy.so: failed to map segment from shared object")), lacks_memory(KeyError("x"))
    (True, False)
    """
    seen: BaseException | None = error
    while seen is not None:
        unmapped = isinstance(seen, ImportError | OSError) and any(text in str(seen) for text in _NO_MEMORY)
        if unmapped or isinstance(seen, MemoryError) or getattr(seen, "errno", None) == errno.ENOMEM:
            return True
        seen = seen.__cause__ or seen.__context__
    return False


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
            if lacks_memory(error):
                raise
            tell("error", str(error))
            raise typer.Exit(2) from None
        except ConnectionError as error:
            # Workers are gone; the same command resumes the run.
            tell("error", str(error))
            raise typer.Exit(1) from None
        except OSError as error:
            if lacks_memory(error):
                raise
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


def show_run(post: "GraphPosterior", rows: int, noted: Collection[str] = ()) -> None:
    """Print the summary of a run: its settings, its edges, whether it converged, what it assumes about the data.

    Parameters
    ----------
    post : GraphPosterior
        What was drawn.
    rows : int
        How many rows it was drawn from.
    noted : collection of str
        The messages of flags that were printed before the run; they are only named.
    """
    out = console()
    chains, draws = post.log_score.shape
    out.print(f"\n{len(post.names)} variables, {rows} rows", style="bold", end="")
    out.print(f"  score {post.record.score_title()}, {post.record.sampler} sampler, {chains} x {draws} draws\n")
    out.print(_edge_table(post, out))
    out.print()
    _show_grounds(post.diagnostics(), out, noted)


def _show_grounds(found: "Diagnostics", out: "Console", noted: Collection[str]) -> None:
    """Print both verdicts: on the sampling, and on assumptions and data."""
    from rich.text import Text

    styles = {"good": "bold green", "caution": "bold yellow", "poor": "bold red"}
    out.print(Text.assemble((found.heading, styles[found.verdict]), " ", printable(found.summary)))
    for text in found.warnings():
        out.print(in_options(text), style="yellow")
    out.print("\nThe answers assume:", style="bold")
    for text in found.assumptions:
        out.print(f"- {text}")
    if found.directions:
        out.print("\nWhat decides directions:", style="bold")
    for text in found.directions:
        out.print(f"- {text}")
    out.print(f"\n{found.data_heading}", style="bold yellow" if found.data_verdict == "flagged" else "bold")
    for flag in found.data_flags:
        text = f"{_short(flag)} (see the note above)" if flag.message in noted else in_options(flag.message)
        out.print(f"- {text}", style=None if flag.mild else "yellow")


def _short(flag: "Flag") -> str:
    """Return what a flag is about, without saying all of it again."""
    if not flag.columns:
        return flag.kind
    more = f" and {len(flag.columns) - _NAMED} more" if len(flag.columns) > _NAMED else ""
    return f"{', '.join(flag.columns[:_NAMED])}{more}: {flag.kind}"


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

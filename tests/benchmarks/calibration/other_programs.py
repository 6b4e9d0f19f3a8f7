"""How far to trust what programs of the field state: reliability and Brier scores from its measures."""

from collections.abc import Iterator

import numpy as np
import pandas as pd

from tests.benchmarks.field.measures import as_table
from tests.benchmarks.field.programs import PROGRAMS
from tests.benchmarks.field.run import OK

# Programs that state probabilities; the others answer with one graph.
STATING = ("gpn-gp", "gpn-gp-either", "gpn-bge", "sumu", "bidag", "dibs-bge", "gpn-pc-boot")
FAMILIES = ("linear", "fourier", "gp")
# A setting is shown once this many of them have answered there.
_FEWEST_PROGRAMS = 3
# A class with fewer edges than this, over all networks, isn't shown: its share says nothing.
_FEWEST = 15
Size = tuple[int, int]


def settings(units: pd.DataFrame) -> Iterator[tuple[Size, str, pd.DataFrame]]:
    """Yield sizes, families, and the answers there of programs that state probabilities and ran on all networks."""
    done = units[(units["outcome"] == OK) & units["program"].isin(STATING)]
    for size, alike in done.groupby(["n", "rows"]):
        for family in FAMILIES:
            own = alike[alike["family"] == family]
            networks = own.groupby("program")["seed"].transform("nunique")
            compared = own[networks == networks.max()]
            if compared["program"].nunique() >= _FEWEST_PROGRAMS:
                yield size, family, compared


def pooled_diagram(answers: pd.DataFrame) -> np.ndarray:
    """Return a reliability diagram over networks: rows of what was stated, how often it held, and its standard error.

    Edges of one network hang together, so that the error is that of a ratio of sums over networks.
    """
    table = np.array([as_table(text) for text in answers["reliability"]])
    networks = len(table)
    counts, sums, true = table.sum(axis=0).T
    shown = counts >= _FEWEST
    counts, sums, true, table = counts[shown], sums[shown], true[shown], table[:, shown]
    held = true / counts
    apart = table[:, :, 2] - held * table[:, :, 0]
    error = np.sqrt((apart**2).sum(axis=0) * networks / (networks - 1)) / counts
    return np.column_stack([sums / counts, held, error])


def diagrams(units: pd.DataFrame) -> dict[str, dict[str, np.ndarray]]:
    """Return reliability diagrams by setting and program."""
    return {
        f"{family}, {n} variables, {rows:,} rows": {
            PROGRAMS[name].title: pooled_diagram(own[own["program"] == name])
            for name in STATING
            if (own["program"] == name).any()
        }
        for (n, rows), family, own in settings(units)
    }


def brier_scores(units: pd.DataFrame) -> str:
    """Return Brier scores beside that of the base rate, in Markdown: settings by programs, the best in bold."""
    names = [name for name in STATING if any(name in set(own["program"]) for *_, own in settings(units))]
    lines = [
        f"| | base rate | {' | '.join(PROGRAMS[name].title for name in names)} |",
        "|---" * (len(names) + 2) + "|",
    ]
    for (n, rows), family, own in settings(units):
        values = own.groupby("program")["brier"].mean().reindex(names).round(3)
        first = own.drop_duplicates("seed")["reliability"]
        edges = np.mean([as_table(text)[:, 2].sum() for text in first]) / (n * (n - 1))
        cells = ["–" if pd.isna(v) else f"**{v:.3f}**" if v == values.min() else f"{v:.3f}" for v in values]
        lines.append(f"| {family}, {n} variables, {rows:,} rows | {edges * (1 - edges):.3f} | {' | '.join(cells)} |")
    return "\n".join(lines)

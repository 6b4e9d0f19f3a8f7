"""Turn the measures into the guide's page: ``python -m tests.benchmarks.field.page``.

Every table gives medians over networks, and says over how many where they are fewer than ten. The best figure of a
column is in bold among the programs that ran on all of its networks. The text around them is `field_text.md`; where it
says ``{overview}`` and ``{tables}``, these go. The picture beside the page is made with it.
"""

import argparse
import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from tests.benchmarks.field.data import FAMILIES
from tests.benchmarks.field.measures import as_table, calibration_error
from tests.benchmarks.field.picture import draw
from tests.benchmarks.field.programs import PROGRAMS
from tests.benchmarks.field.run import COLUMNS, HERE, OK, RESULTS, STOPPED, UNIT

PAGE = HERE.parents[2] / "docs" / "guide" / "field.md"
PICTURE = "field.png"
TEXT = HERE / "field_text.md"
NETWORKS = 10
OURS = "gpn-"
# What the overview compares with the best of the others: our scores as they come.
SHOWN = ("gpn-gp", "gpn-bge")
# Title, decimals, and whether less is better, by column.
MEASURES = {
    "eshd": ("Expected SHD", 1, True),
    "auroc": ("AUROC of directed edges", 2, False),
    "auprc": ("AUPRC of directed edges", 2, False),
    "brier": ("Brier score of edge probabilities", 3, True),
    "calibration": ("Calibration error, all networks together", 3, True),
    "effect_error": ("Root mean squared error of total effects", 2, True),
    "log_predictive": ("Mean log density of a held-out row", 2, False),
    "learning_cpu": ("CPU seconds of learning", 1, True),
    "memory": ("Peak memory of the process, MiB", 0, True),
}
COSTS = ("learning_cpu", "memory")
ELSEWHERE = " †"


def load(paths: Sequence[Path]) -> pd.DataFrame:
    """Return the units of all files, the last row of each."""
    table = pd.concat([pd.read_csv(path) for path in paths], ignore_index=True)[list(COLUMNS)]
    return table.drop_duplicates(list(UNIT), keep="last")


def pooled_calibration(texts: Sequence[str]) -> float:
    """Return the calibration error over the edges of several networks."""
    return calibration_error(np.sum([as_table(text) for text in texts], axis=0))


def of_one_machine(units: pd.DataFrame) -> pd.DataFrame:
    """Return the units of each program and family that ran on the kind of machine that most of them ran on."""
    units = units.dropna(subset="machine")
    kinds = units.groupby(["program", "family"])["machine"].transform(lambda own: own.mode()[0])
    return units[units["machine"] == kinds]


def medians(units: pd.DataFrame, measure: str) -> pd.DataFrame:
    """Return a table of numbers: programs by families."""
    done = units[units["outcome"] == OK]
    if measure == "calibration":
        return done.groupby(["program", "family"])["reliability"].agg(pooled_calibration).unstack()
    return done.groupby(["program", "family"])[measure].median().unstack()


def cell(value: float, units: pd.DataFrame, decimals: int, best: bool, elsewhere: bool = False) -> str:
    """Return the text of a cell: a figure, in how many networks if not all, or why there is none."""
    done, stopped = (units["outcome"] == OK).sum(), (units["outcome"] == STOPPED).sum()
    if math.isnan(value):
        return "over the limit" if stopped else "failed" if len(units) and not done else "–"
    text = f"{value:.{decimals}f}"
    text = (f"**{text}**" if best else text) + (ELSEWHERE if elsewhere else "")
    return text if done >= NETWORKS else f"{text} ({done})"


def markdown(units: pd.DataFrame, measure: str) -> str:
    """Return one table, in Markdown."""
    _, decimals, less = MEASURES[measure]
    values = medians(units, measure).dropna(how="all").dropna(axis=1, how="all")
    if values.empty:
        return ""
    present = units["program"].unique()
    # A program that never answered is shown where others are compared, not where it doesn't take part.
    rows = [name for name in PROGRAMS if name in (present if measure == "eshd" else values.index)]
    families = [family for family in FAMILIES if family in values.columns]
    lines = ["| | " + " | ".join(families) + " |", "|---" * (len(families) + 1) + "|"]
    values = values.reindex(rows)
    rounded = values.round(decimals)
    # What ran on fewer networks than others doesn't compete: they may be the easier ones.
    counts = units[units["outcome"] == OK].groupby(["program", "family"]).size().unstack().reindex(rows)[families]
    rounded = rounded[families].where(counts == counts.max())
    # Nor do costs on a kind of machine that isn't that of most.
    machines = units.groupby(["program", "family"])["machine"].first().unstack().reindex(rows)[families]
    elsewhere = machines.notna() & (machines != units["machine"].mode()[0]) & (measure in COSTS)
    rounded = rounded.mask(elsewhere)
    best = rounded.min() if less else rounded.max()
    for name in rows:
        cells = [
            cell(
                values.loc[name, family],
                units[(units["program"] == name) & (units["family"] == family)],
                decimals,
                len(rows) > 1 and rounded.loc[name, family] == best[family],
                elsewhere.loc[name, family],
            )
            for family in families
        ]
        lines.append(f"| {PROGRAMS[name].title} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def by_network(units: pd.DataFrame, measure: str = "eshd") -> dict[str, pd.DataFrame]:
    """Return a measure of each family: networks by programs."""
    done = units[units["outcome"] == OK]
    return {
        family: own.pivot(index="seed", columns="program", values=measure)
        for family in FAMILIES
        if len(own := done[done["family"] == family])
    }


def overview(units: pd.DataFrame) -> str:
    """Return a row for each setting, in Markdown: our GP, our BGe and the best of the others.

    All figures of a row are of the same networks: those that GP ran on, or BGe where GP didn't run at all.
    """
    lines = [
        "| | networks | E-SHD: GP | BGe | best of the others | AUROC: GP | BGe | best of the others |",
        "|---" * 8 + "|",
    ]
    for (n, rows), own in units.groupby(["n", "rows"]):
        for family, values in by_network(own).items():
            ours = next((values[name] for name in SHOWN if name in values), pd.Series(dtype=float)).dropna()
            cells = [
                beside_others(by_network(own, measure)[family].loc[ours.index], measure)
                for measure in ("eshd", "auroc")
            ]
            if all(cells):
                lines.append(f"| {family}, {n} variables, {rows:,} rows | {len(ours)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def beside_others(values: pd.DataFrame, measure: str) -> str:
    """Return cells with the medians of our scores and of the best other program that ran on all of these networks."""
    _, decimals, less = MEASURES[measure]
    medians = values.dropna(axis=1).median().round(decimals)
    others = medians[[name for name in PROGRAMS if name in medians and not name.startswith(OURS)]].dropna()
    if others.empty:
        return ""
    leader = others.idxmin() if less else others.idxmax()
    shown = medians.reindex([*SHOWN, leader])
    best = shown.min() if less else shown.max()
    cells = ["–" if math.isnan(v) else f"**{v:.{decimals}f}**" if v == best else f"{v:.{decimals}f}" for v in shown]
    return f"{' | '.join(cells)} {PROGRAMS[leader].title}"


def winners(units: pd.DataFrame) -> list[str]:
    """Return a sentence per family: which program has the least E-SHD, and how often it beats ours, or the next.

    Only programs that ran on all networks compete.
    """
    sentences = []
    for family, own in by_network(units).items():
        order = own.dropna(axis=1).median().sort_values(kind="stable")
        if len(order) < 2:
            continue
        first = order.index[0]
        # Against our best where another program wins; against the best of the others where ours does.
        rivals = [name for name in order.index[1:] if name.startswith(OURS) != first.startswith(OURS)]
        if not rivals:
            continue
        both = own[[first, rivals[0]]].dropna()
        times = int((both[first] < both[rivals[0]]).sum())
        sentences.append(
            f"- {family}: {PROGRAMS[first].title} ({order.iloc[0]:.1f}) before {PROGRAMS[rivals[0]].title}"
            f" ({order[rivals[0]]:.1f}); nearer to the truth in {times} of {len(both)} networks."
        )
    return sentences


def partial_runs(units: pd.DataFrame) -> list[str]:
    """Return a sentence for each program with some of the networks: what it and the two best others have on these."""
    sentences = []
    for family, own in by_network(units).items():
        for name in (name for name in PROGRAMS if name in own and own[name].isna().any()):
            there = own[own[name].notna()]
            others = there.drop(columns=name).dropna(axis=1).median().sort_values(kind="stable")[:2]
            beside = " and ".join(f"{PROGRAMS[other].title} has {value:.1f}" for other, value in others.items())
            sentences.append(
                f"- {family}: {PROGRAMS[name].title} has {there[name].median():.1f} on {len(there)} of {len(own)}"
                f" networks, where {beside or 'no other program ran'}."
            )
    return sentences


def not_run(units: pd.DataFrame) -> list[str]:
    """Return the titles of programs without any answer."""
    answered = set(units.loc[units["outcome"] == OK, "program"])
    return [program.title for name, program in PROGRAMS.items() if name not in answered]


def tables(units: pd.DataFrame) -> str:
    """Return all tables, size by size, and who wins in each."""
    parts = []
    for (n, rows), own in units.groupby(["n", "rows"]):
        parts.append(f"## {n} variables, {rows:,} rows")
        for title, sentences in (
            ("Least expected SHD:", winners(own)),
            ("Run on some of the networks so far, expected SHD:", partial_runs(own)),
        ):
            if sentences:
                parts.append("\n".join([title, "", *sentences]))
        for measure, (title, _, _) in MEASURES.items():
            if text := markdown(of_one_machine(own) if measure in COSTS else own, measure):
                parts.append(f"### {title}\n\n{text}")
    notes = [
        f"- {program.title}{_version(units, name)}: {program.note}."
        for name, program in PROGRAMS.items()
        if name in set(units["program"])
    ]
    parts.append("## Settings\n\n" + "\n".join(notes))
    families = [family for family in FAMILIES if family not in set(units["family"])]
    for title, missing in (("Programs", not_run(units)), ("Families of data", families)):
        if missing:
            heading = "" if "## Not run" in parts[-1] else "## Not run\n\n"
            parts.append(f"{heading}{title} that the runner has and that aren't measured yet: {'; '.join(missing)}.")
    return "\n\n".join(parts)


def _version(units: pd.DataFrame, program: str) -> str:
    known = units.loc[units["program"] == program, "version"].dropna()
    return f" ({known.iloc[-1]})" if len(known) and str(known.iloc[-1]) else ""


def main(arguments: list[str] | None = None) -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description="Write the guide's page from the measures.")
    parser.add_argument("--results", nargs="+", type=Path, default=sorted(RESULTS.parent.glob("*.csv")))
    parser.add_argument("--page", type=Path, default=PAGE)
    given = parser.parse_args(arguments)
    units = load(given.results)
    text = TEXT.read_text(encoding="utf-8").replace("{overview}", overview(units)).replace("{tables}", tables(units))
    given.page.write_text(text, encoding="utf-8")
    draw(units, given.page.with_name(PICTURE))


if __name__ == "__main__":
    main()

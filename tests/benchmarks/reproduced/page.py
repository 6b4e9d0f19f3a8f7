"""Turn the measures into the guide's page: ``python -m tests.benchmarks.reproduced.page``.

Figures are means over the units of a setting, with the standard error of the mean; of a single unit, with the error
that it states itself. The text around the tables is `reproduced_text.md`. Where it has an experiment's name in braces,
the page says where the published figures stand, has the tables, and says how many units are still to be run. A
paragraph that begins with "{from …}" draws a conclusion, and is left out while a setting of that experiment has no
figure.
"""

import argparse
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pandas as pd

from tests.benchmarks import test_paper_figure1
from tests.benchmarks.paper import Mean, mean_of
from tests.benchmarks.reproduced.experiments import EXPERIMENTS, METHODS, NETWORKS
from tests.benchmarks.reproduced.published import READINGS, published, sources
from tests.benchmarks.reproduced.run import RESULTS, read, units, unpacked

PAGE = Path(__file__).parents[3] / "docs" / "guide" / "reproduced.md"
TEXT = Path(__file__).parent / "reproduced_text.md"
MISSING = "not measured yet"


def load(path: Path) -> pd.DataFrame:
    """Return a row per measure: experiment, setting, seed, measure, value; the unit's CPU seconds are one of them."""
    rows = [
        {**unit._asdict(), "measure": name, "value": value}
        for unit, row in read(path).items()
        for name, value in {**unpacked(row["measures"]), "cpu": float(row["cpu"])}.items()
    ]
    return pd.DataFrame(rows, columns=["experiment", "setting", "seed", "measure", "value"])


def wide(figures: pd.DataFrame, experiment: str) -> pd.DataFrame:
    """Return an experiment's units as rows, by setting and seed, with a column per measure."""
    own = figures[figures["experiment"] == experiment]
    return own.pivot(index=["setting", "seed"], columns="measure", values="value")


def summary(values: pd.DataFrame, measure: str) -> Mean:
    """Return a measure's mean over units, with its error."""
    known = values[measure].dropna()
    if len(known) > 1:
        return mean_of(known)
    error = f"error of {measure}"
    return Mean(float(known.iloc[0]), float(values[error].iloc[0]) if error in values else math.nan)


def shown(figure: Mean, decimals: int) -> str:
    """Return a figure as text, with its error where it has one."""
    value = f"{figure.value:z.{decimals}f}"
    return value if math.isnan(figure.error) else f"{value} ± {figure.error:.{decimals}f}"


def markdown(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table, in Markdown."""
    first, *others = ["| " + " | ".join(cells) + " |" for cells in (header, *rows)]
    return "\n".join([first, "|" + "---|" * len(header), *others])


def beside(values: pd.DataFrame, experiment: str, columns: Mapping[str, tuple[str, int]]) -> str:
    """Return a line for each printed number, with ours beside it."""
    rows = []
    for (setting, measure), value in published(experiment).items():
        title, decimals = columns[measure]
        there = setting in values.index.get_level_values("setting")
        ours = shown(summary(values.loc[setting], measure), decimals) if there else MISSING
        rows.append((setting, title, f"{value:g}", ours))
    return markdown(("", "", "published", "ours"), rows)


def grid(
    values: pd.DataFrame, experiment: str, columns: Mapping[str, tuple[str, int]], settings: Iterable[str] | None = None
) -> str:
    """Return a line for each setting, with a column for each measure and one for the number of units.

    `columns` has a title and a number of decimals for each measure. What the paper printed without a setting of ours is
    the first line.
    """
    rows = []
    printed = published(experiment)
    if settings is None and "" in printed.index.get_level_values(0):
        rows.append(("published", *(f"{printed['', name]:g}" for name in columns), ""))
    wanted = pd.Series([unit.setting for unit in units(EXPERIMENTS, [experiment])]).value_counts()
    for setting in EXPERIMENTS[experiment].settings if settings is None else settings:
        if setting not in values.index.get_level_values("setting"):
            rows.append((setting, MISSING, *[""] * len(columns)))
            continue
        own = values.loc[setting]
        cells = [
            shown(summary(own, name), decimals) if name in own and own[name].notna().any() else "–"
            for name, (_, decimals) in columns.items()
        ]
        count = f"{len(own)}" if len(own) == wanted[setting] else f"{len(own)} of {wanted[setting]}"
        rows.append((setting, *cells, count))
    return markdown(("", *(title for title, _ in columns.values()), "runs"), rows)


# The tables of each experiment

TABLE1 = {"SHD": ("E-SHD", 2), "TP": ("TP", 2), "FP": ("FP", 2), "erk -> akt": ("P(erk → akt)", 3)}
TABLE1 |= {"no erk -> pka": ("P(no erk → pka)", 3)}


def table1(values: pd.DataFrame) -> str:
    known = published("gpn-table1").index.get_level_values(0)
    others = [setting for setting in EXPERIMENTS["gpn-table1"].settings if setting not in known]
    return (
        beside(values, "gpn-table1", TABLE1)
        + '\n\nOurs alone; "imitated" has the hidden cost of parents:\n\n'
        + grid(values, "gpn-table1", TABLE1, others)
    )


def figure1(values: pd.DataFrame) -> str:
    """Return E-SHD as the paper compares it, and under the same graph priors."""
    long = values.drop(columns="cpu").melt(ignore_index=False).reset_index()
    long[["method", "prior", "truth"]] = long["measure"].str.split("|", expand=True).to_numpy()
    long["lambda"] = long["setting"].map(EXPERIMENTS["gpn-figure1"].settings)
    keys = ["lambda", "seed", "method", "prior"]
    table = long.pivot(index=keys, columns="truth", values="value").reset_index()
    table = table.rename(columns={"prior": "setting"})
    counts = table.groupby("lambda")["seed"].nunique()
    table = table[table["lambda"].isin(counts[counts > 1].index)]
    if table.empty:
        return f"{MISSING.capitalize()}: a mean takes two networks of a lambda."

    def cells(line: pd.Series) -> list[str]:
        return [shown(line[f"{name} {truth}"], 1) for truth in ("DAG", "CPDAG") for name in ("GP", "BGe", "gap")]

    columns = ("GP", "BGe", "GP − BGe", "GP, CPDAG", "BGe, CPDAG", "GP − BGe, CPDAG")
    tuned = [
        (f"{lam:g}", f"{line['GP']}; {line['BGe']}", *cells(line), str(counts[lam]))
        for lam, line in test_paper_figure1.tuned(table).iterrows()
    ]
    alike = [
        (f"{lam:g}", prior, *cells(line), str(counts[lam]))
        for (lam, prior), line in test_paper_figure1.alike(table).iterrows()
    ]
    return (
        "E-SHD with each score at its best, chosen with the truth in hand, as in the paper:\n\n"
        + markdown(("lambda", "chosen", *columns, "networks"), tuned)
        + "\n\nE-SHD with the same graph prior for both:\n\n"
        + markdown(("lambda", "prior", *columns, "networks"), alike)
    )


def figure3(values: pd.DataFrame) -> str:
    """Return the divergences by number of draws."""
    kinds = {"weighted": "Laplace, weighted", "laplace": "Laplace", "direct": "accurate score", "bge": "BGe"}
    counts = sorted({int(name.partition("|")[2]) for name in values if "|" in name})
    rows = [(f"{count:,}", *(shown(summary(values, f"{kind}|{count}"), 4) for kind in kinds)) for count in counts]
    return markdown(("draws", *kinds.values()), rows) + f"\n\nMeans over {len(values)} data sets."


def minimum(values: pd.DataFrame) -> str:
    """Return how far above the least F each method ends."""
    rows = []
    for setting in EXPERIMENTS["notears-minimum"].settings:
        if setting not in values.index.get_level_values("setting"):
            rows.append((setting, MISSING, "", "", ""))
            continue
        own = values.loc[setting]
        excess = [own[f"excess, {name}"] for name in METHODS]
        cells = [f"{100 * column.mean():z.2f}%, {100 * column.max():z.2f}%" for column in excess]
        rows.append((setting, shown(summary(own, "least"), 2), *cells, str(len(own))))
    titles = [f"{name}: mean excess, largest" for name in METHODS]
    return markdown(("", "least F", *titles, "data sets"), rows)


def learners(values: pd.DataFrame) -> str:
    """Return the gap to the best BIC known and the CPU seconds of each learner, network by network."""
    there = set(values.index.get_level_values("setting"))
    best = {
        network: values[values.index.get_level_values("setting").str.startswith(f"{network}, ")]["BIC"].max()
        for network in NETWORKS
    }
    names = dict.fromkeys(setting.partition(", ")[2] for setting in EXPERIMENTS["rbnets"].settings)
    rows = []
    for name in names:
        cells = []
        for network in NETWORKS:
            setting = f"{network}, {name}"
            if setting not in there:
                cells.append(MISSING)
                continue
            own = values.loc[setting].assign(gap=lambda table, network=network: best[network] - table["BIC"])
            proof = ", proved" if "proved" in own and (own["proved"] == 1).any() else ""
            cells.append(f"{shown(summary(own, 'gap'), 1)}{proof}; {own['CPU s'].mean():.1f} s ({len(own)})")
        rows.append((name, *cells))
    return markdown(("", *NETWORKS), rows)


def federated(experiment: str) -> Callable[[pd.DataFrame], str]:
    """Return what makes the tables of SHD and of TPR of all methods."""

    def tables(values: pd.DataFrame) -> str:
        methods = ("ADMM", "Voting", "Avg", "Best", "AllData", "HC-Voting", "PC-Voting")
        methods = [name for name in methods if f"SHD {name}" in values]
        distances = {f"SHD {name}": (name, 1) for name in methods} | {"CPU s ADMM": ("CPU s, ADMM", 1)}
        rates = {f"TPR {name}": (name, 2) for name in methods}
        return f"SHD:\n\n{grid(values, experiment, distances)}\n\nTPR:\n\n{grid(values, experiment, rates)}"

    return tables


def plain(experiment: str, columns: Mapping[str, tuple[str, int]]) -> Callable[[pd.DataFrame], str]:
    """Return what makes a grid."""
    return lambda values: grid(values, experiment, columns)


ORIGINAL = {
    "SHD original": ("SHD, original", 1),
    "SHD": ("SHD, ours", 1),
    "to the original": ("from one to the other", 1),
}
TABLES: dict[str, Callable[[pd.DataFrame], str]] = {
    "gpn-table1": table1,
    "gpn-figure1": figure1,
    "gpn-figure3": figure3,
    "notears-minimum": minimum,
    "notears-reference": plain(
        "notears-reference",
        {
            "notears": ("F, original", 3), "gcastle": ("F, gcastle", 3), "dagma": ("F, dagma", 3),
            "ours": ("F, ours", 3), "SHD notears": ("SHD, original", 0), "SHD ours": ("SHD, ours", 0),
        },
    ),
    "notears-accuracy": plain(
        "notears-accuracy",
        {
            "SHD NOTEARS": ("SHD, NOTEARS", 1), "FDR NOTEARS": ("FDR, NOTEARS", 2), "SHD PC": ("SHD, PC", 1),
            "SHD hill climbing": ("SHD, hill climbing", 1),
        },
    ),
    "notears-sachs": plain("notears-sachs", {"edges": ("edges", 0), "SHD 20": ("SHD", 0)}),
    "admm-reference": plain("admm-reference", ORIGINAL),
    "admm-original": plain(
        "admm-original",
        ORIGINAL
        | {
            "original again": ("original, rows moved by 1e-9", 1), "CPU s original": ("CPU s, original", 1),
            "CPU s": ("CPU s, ours", 1),
        },
    ),
    **{name: federated(name) for name in ("admm-clients", "admm-few-rows", "admm-sachs", "admm-curved")},
    "rbnets": learners,
    "private-k2-costs": plain(
        "private-k2-costs", {"megabytes": ("megabytes", 2), "cpu": ("CPU s, both parties", 1), "wall s": ("wall s", 1)}
    ),
    "private-k2-score": plain(
        "private-k2-score",
        {"nodes changed": ("nodes with other parents", 3), "parents more a node": ("parents more per node", 3)},
    ),
}  # fmt: skip


def section(figures: pd.DataFrame, experiment: str) -> str:
    """Return where the published figures stand, the tables, and what is still to be run."""
    known = sources(experiment).drop_duplicates(["paper", "place", "read"])
    origin = "; ".join(f"{row.paper}, {row.place} ({READINGS[row.read]})" for row in known.itertuples())
    values = wide(figures, experiment)
    todo = sum(1 for _ in units(EXPERIMENTS, [experiment]))
    if values.empty:
        return f"Published: {origin}.\n\nOurs: {MISSING}."
    parts = [f"Published: {origin}.", TABLES[experiment](values)]
    if len(values) < todo:
        parts.append(f"Measured so far: {len(values)} of {todo} runs.")
    return "\n\n".join(parts)


def concluded(figures: pd.DataFrame, text: str) -> str:
    """Return the text without conclusions from experiments that have settings without a figure."""
    kept = []
    for paragraph in text.split("\n\n"):
        marked = re.match(r"\{from ([a-z0-9-]+)\}\s", paragraph)
        if marked:
            done = set(figures.loc[figures["experiment"] == marked[1], "setting"])
            if not done >= set(EXPERIMENTS[marked[1]].settings):
                continue
            paragraph = paragraph[marked.end() :]
        kept.append(paragraph)
    return "\n\n".join(kept)


def built(path: Path) -> str:
    """Return the page."""
    figures = load(path)
    text = concluded(figures, TEXT.read_text(encoding="utf-8"))
    for experiment in EXPERIMENTS:
        text = text.replace(f"{{{experiment}}}", section(figures, experiment))
    return text


def main(arguments: list[str] | None = None) -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description="Write the guide's page from the measures.")
    parser.add_argument("--results", type=Path, default=RESULTS)
    parser.add_argument("--page", type=Path, default=PAGE)
    given = parser.parse_args(arguments)
    given.page.write_text(built(given.results), encoding="utf-8")


if __name__ == "__main__":
    main()

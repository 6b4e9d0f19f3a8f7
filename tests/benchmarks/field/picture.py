"""A picture of the field: the expected SHD of each program on each network, and its median."""

from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from gpn_bayes.plots.palette import BLUE, GREY
from tests.benchmarks.field.programs import PROGRAMS
from tests.benchmarks.field.run import OK

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Families of data that most programs ran on, at all sizes.
FAMILIES = {"linear": "linear", "fourier": "sums of Fourier series", "gp": "functions of a Gaussian process"}
ROWS = 100
# A program needs at least this many networks to be shown in a panel.
FEWEST = 3


def draw(units: pd.DataFrame, file: Path) -> None:
    """Save a panel for each number of variables and family: programs from top to bottom, the nearest to the truth left.

    Programs that ran on fewer than three networks of a panel are left out there; without any, there is no picture.
    """
    from matplotlib.figure import Figure

    done = units[(units["outcome"] == OK) & (units["rows"] == ROWS) & units["family"].isin(list(FAMILIES))]
    done = done[done.groupby(["n", "family", "program"])["seed"].transform("nunique") >= FEWEST]
    if done.empty:
        return
    sizes = sorted(done["n"].unique())
    names = {n: [name for name in PROGRAMS if name in set(done.loc[done["n"] == n, "program"])] for n in sizes}
    heights = [len(names[n]) for n in sizes]
    figure = Figure(figsize=(9, 0.2 * sum(heights) + 0.45 * len(sizes) + 0.5), layout="constrained")
    axes = figure.subplots(
        len(sizes), len(FAMILIES), squeeze=False, sharex="row", sharey="row", gridspec_kw={"height_ratios": heights}
    )
    for row, n in zip(axes, sizes, strict=True):
        for ax, (family, title) in zip(row, FAMILIES.items(), strict=True):
            own = done[(done["n"] == n) & (done["family"] == family)]
            _draw_panel(ax, own, names[n])
            ax.set_title(f"{n} variables, {title}" if ax is row[0] else title, fontsize=8, loc="left")
        row[0].set_yticks(range(len(names[n])), [PROGRAMS[name].title for name in names[n]])
        row[0].set(xlim=(0, None), ylim=(len(names[n]) - 0.4, -0.6))
    figure.supxlabel("expected SHD, less is better: dots are networks, bars their medians", fontsize=8)
    figure.savefig(file, dpi=120)


def _draw_panel(ax: "Axes", units: pd.DataFrame, names: list[str]) -> None:
    for place, name in enumerate(names):
        values = units.loc[units["program"] == name, "eshd"]
        if values.empty:
            continue
        colour = BLUE if name.startswith("gpn-") else GREY
        ax.plot(values, [place] * len(values), "o", color=colour, alpha=0.3, markersize=3, markeredgewidth=0)
        ax.plot([values.median()] * 2, [place - 0.32, place + 0.32], color=colour, linewidth=2.2)
    ax.tick_params(labelsize=7, length=2)
    ax.grid(axis="x", color="0.92", linewidth=0.6)
    ax.set_axisbelow(True)
    for side in ("top", "right", "left"):
        ax.spines[side].set_visible(False)
    ax.tick_params(axis="y", length=0)

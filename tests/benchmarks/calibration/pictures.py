"""Pictures of calibration: how often claims held, by the probability stated, and histograms of ranks."""

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd
from scipy import stats

from tests.benchmarks.calibration.uniformity import RANK_BINS, reliability

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.lines import Line2D

# Bands that hold all points of a calibrated posterior but one in a thousand.
_WIDTH = float(stats.norm.isf(0.0005))
_SHAPES = "so^v"


def draw_claims(name: str, claims: pd.DataFrame, file: Path) -> None:
    """Save reliability diagrams and histograms of ranks, with what chance allows in grey."""
    from matplotlib.figure import Figure

    probabilities = [kind for kind in ("edge", "path", "pair") if (claims["kind"] == kind).any()]
    ranks = [str(kind) for kind in claims["kind"].unique() if str(kind).startswith("rank of")]
    columns = max(len(probabilities), -(-len(ranks) // 2))
    figure = Figure(figsize=(3 * columns, 9), layout="constrained")
    axes = figure.subplots(3, columns, squeeze=False)
    for ax, kind in zip(axes[0], probabilities, strict=False):
        points = reliability(claims, kind)
        band = _WIDTH * points["error"]
        ax.plot([0, 1], [0, 1], color="0.7", linewidth=0.8)
        ax.fill_between(points["stated"], points["stated"] - band, points["stated"] + band, color="0.9")
        ax.plot(points["stated"], points["held"], "o", markersize=3)
        ax.set(title=kind, xlabel="stated", ylabel="true", xlim=(0, 1), ylim=(0, 1))
    for ax, kind in zip(axes[1:].ravel(), ranks, strict=False):
        own = claims.loc[claims["kind"] == kind, "stated"]
        low, high = stats.binom.interval(0.999, len(own), 1 / RANK_BINS)
        ax.axhspan(low, high, color="0.9")
        ax.hist(own, np.linspace(0, 1, RANK_BINS + 1), histtype="step")
        ax.set(title=kind, xlim=(0, 1))
    for ax in [*axes[0, len(probabilities) :], *axes[1:].ravel()[len(ranks) :]]:
        ax.axis("off")
    figure.suptitle(f"{name}: {claims['network'].nunique()} networks")
    figure.savefig(file, dpi=120)


def draw_together(diagrams: Mapping[str, Mapping[str, np.ndarray]], file: Path) -> None:
    """Save a panel for each kind of network: what its scores stated, and how often it was true, with two errors."""
    from matplotlib.figure import Figure

    columns = 3
    figure = Figure(figsize=(9, 3 * -(-len(diagrams) // columns)), layout="constrained")
    axes = _panels(figure, -(-len(diagrams) // columns), columns)
    names = list(dict.fromkeys(name for scores in diagrams.values() for name in scores))
    # The same colour and shape in all panels, whoever is there.
    styles = {name: {"color": f"C{k}", "marker": _SHAPES[k]} for k, name in enumerate(names)}
    lines = {}
    for ax, (title, scores) in zip(axes.ravel(), diagrams.items(), strict=True):
        for name, diagram in scores.items():
            lines[name] = _draw_diagram(ax, diagram, **styles[name])
        ax.set_title(title, fontsize=9)
    figure.legend(
        [lines[name] for name in names], names, loc="outside upper center", ncols=min(len(names), 3), frameon=False
    )
    figure.savefig(file, dpi=110)


def draw_apart(diagrams: Mapping[str, Mapping[str, np.ndarray]], file: Path) -> None:
    """Save a grid of panels, one row per kind of network and one column per program."""
    from matplotlib.figure import Figure

    names = list(dict.fromkeys(name for programs in diagrams.values() for name in programs))
    figure = Figure(figsize=(1.45 * len(names) + 0.6, 1.5 * len(diagrams) + 0.6), layout="constrained")
    axes = _panels(figure, len(diagrams), len(names))
    for row, (title, programs) in zip(axes, diagrams.items(), strict=True):
        for ax, name in zip(row, names, strict=True):
            if name in programs:
                _draw_diagram(ax, programs[name], color="C0", marker="o")
            else:
                ax.text(0.5, 0.5, "not run on all", color="0.6", fontsize=7, ha="center", backgroundcolor="white")
        row[0].set_ylabel(title.replace(", ", "\n", 1), fontsize=8)
    for ax, name in zip(axes[0], names, strict=True):
        ax.set_title(name.replace(", ", ",\n"), fontsize=8)
    for ax in axes.ravel():
        ax.set(xticks=[0, 0.5, 1], yticks=[0, 0.5, 1])
        ax.tick_params(labelsize=7)
    figure.savefig(file, dpi=110)


def _draw_diagram(ax: "Axes", diagram: np.ndarray, **style: Any) -> "Line2D":
    """Draw what was stated and how often it was true, with two errors, and return the line."""
    stated, held, error = diagram.T
    ax.fill_between(stated, held - 2 * error, held + 2 * error, color=style["color"], alpha=0.15, linewidth=0)
    (line,) = ax.plot(stated, held, "-", markersize=3.5, linewidth=1, **style)
    return line


def _panels(figure: "Figure", rows: int, columns: int) -> Any:
    """Return panels for diagrams, with the diagonal, and the names of both axes beside them."""
    figure.supxlabel("probability stated", fontsize=9)
    figure.supylabel("share true", fontsize=9)
    shared = {"xlim": (0, 1), "ylim": (0, 1), "aspect": "equal"}
    axes = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True, subplot_kw=shared)
    for ax in axes.ravel():
        ax.plot([0, 1], [0, 1], color="0.6", linewidth=0.8)
    return axes

"""Pictures of calibration: how often claims held, by the probability stated, and histograms of ranks."""

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pandas as pd
from scipy import stats

from tests.benchmarks.calibration.uniformity import RANK_BINS, reliability

# Bands that hold all points of a calibrated posterior but one in a thousand.
_WIDTH = float(stats.norm.isf(0.0005))
_SHAPES = "so^vDPX"


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


def draw_reliability(diagrams: Mapping[str, Mapping[str, np.ndarray]], file: Path) -> None:
    """Save a panel for each kind of network: what its scores stated, and how often it was true, with two errors."""
    from matplotlib.figure import Figure

    columns = 3
    figure = Figure(figsize=(9, 3 * -(-len(diagrams) // columns)), layout="constrained")
    axes = figure.subplots(-(-len(diagrams) // columns), columns, squeeze=False, sharex=True, sharey=True)
    names = list(dict.fromkeys(name for scores in diagrams.values() for name in scores))
    # The same colour and shape in all panels, whoever is there.
    styles = {name: {"color": f"C{k}", "marker": _SHAPES[k]} for k, name in enumerate(names)}
    lines = {}
    for ax, (title, scores) in zip(axes.ravel(), diagrams.items(), strict=True):
        ax.plot([0, 1], [0, 1], color="0.6", linewidth=0.8)
        for name, (stated, held, error) in ((name, own.T) for name, own in scores.items()):
            style = styles[name]
            ax.fill_between(stated, held - 2 * error, held + 2 * error, color=style["color"], alpha=0.15, linewidth=0)
            (lines[name],) = ax.plot(stated, held, "-", markersize=3.5, linewidth=1, **style)
        ax.set_title(title, fontsize=9)
        ax.set(xlim=(0, 1), ylim=(0, 1), aspect="equal")
    figure.supxlabel("probability stated", fontsize=9)
    figure.supylabel("share true", fontsize=9)
    figure.legend(
        [lines[name] for name in names], names, loc="outside upper center", ncols=min(len(names), 3), frameon=False
    )
    figure.savefig(file, dpi=110)

"""Draw the README's picture: `python docs/picture.py` writes docs/sachs.png, in about two minutes."""

from pathlib import Path

import matplotlib.pyplot as plt

import gpn_bayes as gpn

OUT = Path(__file__).resolve().parent / "sachs.png"
# Two proteins with two certain parents each, whose curves a line would miss.
SHOWN = {"p38": ["pkc", "jnk"], "akt": ["erk", "pka"]}


def draw(post: gpn.GraphPosterior) -> plt.Figure:
    """Return the network beside the curves of some of its edges."""
    figure = plt.figure(figsize=(11, 5), layout="constrained")
    left, right = figure.subfigures(1, 2, width_ratios=[1.2, 1])
    post.plot_network(ax=left.subplots())
    for (node, parents), panels in zip(SHOWN.items(), right.subplots(2, 2), strict=True):
        post.plot_curves(node, parents=parents, ax=list(panels))
    return figure


if __name__ == "__main__":
    draw(gpn.sample(gpn.datasets.sachs(transform="log2"), score="gp", random_seed=1)).savefig(OUT, dpi=160)

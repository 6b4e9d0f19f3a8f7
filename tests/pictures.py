"""Posteriors to draw, and what stands in a picture."""

import numpy as np

from gpn_bayes import graphs
from gpn_bayes.posterior import GraphPosterior

BGE = {"name": "bge", "parameters": {"alpha_mu": 1.0}}


def drawn(names, probabilities, chains=2, draws=20, score=BGE):
    """Return a posterior whose chains all have an edge in the first draws, as many as given for each."""
    probabilities = np.asarray(probabilities, dtype=float)
    times = np.round(probabilities * draws).astype(int)
    dags = (np.arange(draws)[None, :, None, None] < times).repeat(chains, axis=0).astype(np.int8)
    settings = {"sampler": "partition", "score": score}
    return GraphPosterior(tuple(names), graphs.pack(dags), -dags.sum(axis=(2, 3)).astype(float), settings=settings)


def turned(names, forth, draws=20):
    """Return a posterior in which the first two names are always joined, in a share of draws from first to second."""
    dags = np.zeros((1, draws, len(names), len(names)), dtype=np.int8)
    dags[0, : round(forth * draws), 0, 1] = 1
    dags[0, round(forth * draws) :, 1, 0] = 1
    return GraphPosterior(tuple(names), graphs.pack(dags), np.zeros((1, draws)), settings={"sampler": "partition"})


def chain_of(*values):
    """Return the edge probabilities of a -> b -> c ->…."""
    matrix = np.zeros((len(values) + 1, len(values) + 1))
    for k, value in enumerate(values):
        matrix[k, k + 1] = value
    return matrix


def everything(post, **given):
    """Draw every picture that needs no fitted functions."""
    other = drawn(post.names, np.zeros((len(post.names),) * 2))
    return {
        "network": post.plot_network(),
        "edges": post.plot_edges(**given),
        "runs": post.plot_runs(other),
        "comparison": post.plot_comparison(other, **given),
        "trace": post.plot_trace(),
        "rank": post.plot_rank(),
        "running": post.plot_running(),
        "counts": post.plot_parent_counts(),
    }


def by_gid(ax, gid):
    return [patch for patch in ax.patches if patch.get_gid() == gid]


def texts(ax):
    return [text.get_text() for text in ax.texts]


def legend_of(ax):
    legend = ax.get_legend()
    return [legend.get_title().get_text(), *(text.get_text() for text in legend.get_texts())]

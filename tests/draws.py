"""Posteriors made by hand, quick runs, and how to compare them; for the tests of posteriors and samplers."""

import json
from pathlib import Path

import networkx as nx
import numpy as np
import pandas as pd

import gpn_bayes as gpn
from gpn_bayes import graphs
from gpn_bayes._util.options import options_of
from gpn_bayes.posterior import GraphPosterior

REFERENCE = Path(__file__).parent / "reference" / "bge"
NULL, LINEAR = "null_n4_N50", "lin_n5_N200"
NAMES = ("a", "b", "c", "d")
DAGS = graphs.enumerate_dags(4)


def make(picks, log_weights=None, log_score=None, dags=DAGS, names=NAMES, **settings):
    """Return a posterior whose draws are the DAGs of given numbers."""
    picks = np.asarray(picks)
    score = -0.01 * picks.astype(float) if log_score is None else np.asarray(log_score, dtype=float)
    return GraphPosterior(
        names, graphs.pack(dags[picks]), score, log_weights, settings={"sampler": "partition"} | settings
    )


def sticky_picks(rng, shape, stay=0.6):
    """Return numbers of DAGs that often repeat from draw to draw, as a chain's do."""
    picks = rng.integers(len(DAGS), size=shape)
    for t in range(1, shape[1]):
        same = rng.random(shape[0]) < stay
        picks[same, t] = picks[same, t - 1]
    return picks


def drawn_posterior(weighted):
    """Return a posterior and, for brute force, a list of its draws as (networkx graph, share)."""
    rng = np.random.default_rng(5)
    picks = sticky_picks(rng, (3, 60))
    log_weights = rng.normal(-400, 1.0, picks.shape) if weighted else None
    weights = np.exp(log_weights + 400) if weighted else np.ones(picks.shape)
    shares = (weights / weights.sum()).ravel()
    listed = [(graphs.to_networkx(DAGS[pick], NAMES), share) for pick, share in zip(picks.ravel(), shares, strict=True)]
    return make(picks, log_weights), listed


def exact_posterior():
    """Return a small table and its posterior from the exact sampler."""
    data = gpn.simulate.linear(nx.DiGraph([("a", "b"), ("b", "c"), ("d", "c")]), 40, random_seed=2)
    data = data[list(NAMES)]
    return data, gpn.sample(data, draws=100, random_seed=1, progressbar=False)


def reference(name):
    return json.loads((REFERENCE / f"bge_exact_{name}.json").read_text())


def table(name):
    return pd.read_csv(REFERENCE / f"{name}.csv")


def quick(data, **settings):
    chosen = {"draws": 60, "tune": 20, "chains": 2, "random_seed": 3, "progressbar": False} | settings
    return gpn.sample(data, **chosen)


def asked(**options):
    """Return arguments of `sample` from options by their own names, so that tests can vary one at a time."""
    space = {name: options.pop(name) for name in options_of(gpn.Space) if name in options}
    own = {name: options.pop(name) for name in ("thin", "reweight", "temperatures", "bias") if name in options}
    if own:
        by_default = "partition" if "temperatures" in own else "order" if "bias" in own else "auto"
        options["sampler"] = gpn.samplers.BUILT_IN[options.get("sampler", by_default)](**own)
    return options | ({"space": gpn.Space(**space)} if space else {})


def assert_same_draws(one, other):
    np.testing.assert_array_equal(one.parents, other.parents)
    np.testing.assert_array_equal(one.log_score, other.log_score)
    np.testing.assert_array_equal(one.stats["state_log_score"], other.stats["state_log_score"])
    np.testing.assert_array_equal(one.weights, other.weights)
    assert one.settings == other.settings


def assert_edges_agree(post, expected):
    """Compare sampled edge probabilities with true ones, within 4 of their own standard errors."""
    for i, parent in enumerate(post.names):
        for j, child in enumerate(post.names):
            if i != j:
                found = post.edge_probability(parent, child)
                error = 4 * np.nan_to_num(found.mcse) + 4 / found.ess
                assert abs(found.value - expected[i, j]) < error, (parent, child, found, expected[i, j])

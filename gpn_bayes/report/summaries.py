"""What a notebook shows of a posterior, a bootstrap or an estimate: the network and its strongest edges."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from gpn_bayes import graphs
from gpn_bayes._util import cells
from gpn_bayes._util.types import Floats
from gpn_bayes.plots.placing import tiers_of
from gpn_bayes.posterior.diagnostics import diagnose
from gpn_bayes.posterior.directions import counted_sentences, grounds
from gpn_bayes.posterior.draws import Draws, GraphCollection, ResampledGraphs
from gpn_bayes.posterior.impossible_pairs import assumption
from gpn_bayes.report import wording
from gpn_bayes.report.picture import SHOWN_FROM, picture_of

_LISTED = 12
# Words of parent bits up to which the errors of all edges take no time.
_QUICK = 200_000
NOT_PROBABILITIES = "How often the learner found an edge among resamples: not how probable the edge is."


def posterior_cell(post: Draws) -> str:
    """Return what a notebook shows of a posterior, as HTML.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.simulate.linear([[0, 1], [0, 0]], 50, random_seed=1)
    >>> html = posterior_cell(gpn.sample(data, score="bge", draws=20, random_seed=1, progressbar=False))
    >>> "Computed exactly, without sampling error." in html, html.count('class="node"')
    (True, 2)
    """
    probabilities, errors = _edges(post)
    return cells.cell(
        cells.heading(wording.title(post.names), wording.subtitle(post)),
        *(cells.note(text) for text in post.record.kinds_in_words),
        *diagnose(post)._verdicts(),
        *(cells.note(text) for text in assumption(post.record, post.names)),
        _network(post, probabilities, errors, tiers_of(post)),
        cells.note("All of it: post.explore() here, or post.report('report.html') as a file."),
    )


def bootstrap_cell(result: ResampledGraphs) -> str:
    """Return what a notebook shows of a bootstrap, as HTML.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.simulate.linear([[0, 1], [0, 0]], 50, random_seed=1)
    >>> "20 resamples" in bootstrap_cell(gpn.bootstrap(gpn.estimators.PC(), data, n=20, progressbar=False))
    True
    """
    frequencies, errors = _edges(result)
    return cells.cell(
        cells.heading(
            f"Bootstrap of {wording.counted(len(result.names), 'variable')}",
            f"{wording.counted(result.resamples, 'resample')} · {result.learner}",
        ),
        cells.verdict("neutral", NOT_PROBABILITIES),
        _network(result, frequencies, errors, None),
        cells.note("All of it: result.report('report.html')."),
    )


def graph_cell(title: str, names: Sequence[str], edges: pd.DataFrame, weight: str) -> str:
    """Return what a notebook shows of one graph, as HTML.

    Parameters
    ----------
    title : str
        What it is.
    names : sequence of str
        The variables.
    edges : DataFrame
        Columns `parent`, `child`, `type` ("directed" or "undirected") and perhaps `weight`, the strongest first.
    weight : str
        What to call the weights.

    Examples
    --------
    >>> edges = pd.DataFrame({"parent": ["a"], "child": ["b"], "type": ["directed"], "weight": [2.5]})
    >>> "2.500" in graph_cell("Graph of PC", ["a", "b"], edges, "weight")
    True
    """
    picture = picture_of(names, halved(names, edges), "")
    rows = [
        [f"{row['parent']} {'–' if row['type'] == 'undirected' else '→'} {row['child']}"]
        + ([f"{row['weight']:.3f}"] if "weight" in row else [])
        for row in edges.head(_LISTED).to_dict("records")
    ]
    listed = cells.table(["edge", weight] if "weight" in edges else ["edge"], rows) if rows else ""
    counts = f"{wording.counted(len(names), 'variable')}, {wording.counted(len(edges), 'edge')}"
    return cells.cell(
        cells.heading(title, counts),
        cells.beside(picture.svg, listed + _more(len(edges) - len(rows), "edge")),
        cells.note(" ".join(filter(None, [picture.left_out(""), "All of it: est.report('report.html')."]))),
    )


def halved(names: Sequence[str], edges: pd.DataFrame) -> Floats:
    """Return a table of edges as a matrix of probabilities, rows parents; those without a direction are half each way.

    Examples
    --------
    >>> edges = pd.DataFrame({"parent": ["a", "b"], "child": ["b", "c"], "type": ["directed", "undirected"]})
    >>> halved(["a", "b", "c"], edges).tolist()
    [[0.0, 1.0, 0.0], [0.0, 0.0, 0.5], [0.0, 0.5, 0.0]]
    """
    place = {name: k for k, name in enumerate(names)}
    matrix = np.zeros((len(names), len(names)))
    for parent, child, kind in zip(edges["parent"], edges["child"], edges["type"], strict=True):
        i, j = place[parent], place[child]
        matrix[i, j] = 1.0 if kind == "directed" else 0.5
        matrix[j, i] = 0.0 if kind == "directed" else 0.5
    return matrix


def _edges(post: GraphCollection) -> tuple[Floats, Floats | None]:
    """Return the probabilities of all edges, and their errors where these take no time."""
    n = len(post.names)
    if post.parents.size <= _QUICK or "_edge_moments" in vars(post):
        return post._edge_moments.value.reshape(n, n), post._edge_moments.mcse.reshape(n, n)
    if isinstance(post, Draws) and post.exact is not None:
        return post.exact.edges, None
    weights = post._weights
    of_chains = weights.sum(axis=1) / weights.sum()
    return np.einsum("c,cij->ij", of_chains, graphs.edge_shares(post.parents, weights)), None


def _network(post: GraphCollection, probabilities: Floats, errors: Floats | None, tiers: Floats | None) -> str:
    """Return the picture beside the most probable edges, what neither shows, and what decides directions."""
    names, quantity = post.names, post.quantity
    picture = picture_of(names, probabilities, quantity, tiers)
    order = np.argsort(-probabilities, axis=None, kind="stable")
    shown = order[probabilities.ravel()[order] >= SHOWN_FROM]
    rows = []
    for place in shown[:_LISTED]:
        i, j = divmod(int(place), len(names))
        error = [] if errors is None else [_told(float(errors[i, j]))]
        rows.append([f"{names[i]} → {names[j]}", f"{probabilities[i, j]:.3f}", *error])
    columns = ["edge", quantity] + ([] if errors is None else ["± error"])
    listed = cells.table(columns, rows) if rows else cells.note(f"No edge has a {quantity} of {SHOWN_FROM} or more.")
    more = _more(len(shown) - len(rows), "edge", f" with a {quantity} of {SHOWN_FROM}+")
    left = picture.left_out(quantity)
    notes = [*([left] if left else []), *counted_sentences(grounds(post, picture.clear))]
    return cells.beside(picture.svg, listed + more) + "".join(map(cells.note, notes))


def _told(error: float) -> str:
    return "exact" if error == 0 else "–" if np.isnan(error) else f"{error:.3f}"


def _more(count: int, noun: str, which: str = "") -> str:
    return cells.note(f"and {count:,} more {noun}{'s' * (count != 1)}{which}") if count > 0 else ""

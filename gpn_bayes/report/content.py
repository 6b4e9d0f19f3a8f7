"""What a report holds, as a plain dict of numbers and texts that JSON can take."""

from functools import partial
from typing import Any

import numpy as np

from gpn_bayes import graphs
from gpn_bayes.data import check_known, read_data
from gpn_bayes.posterior.comparing import Comparison
from gpn_bayes.posterior.directions import grounds
from gpn_bayes.posterior.draws import Draws, ResampledGraphs
from gpn_bayes.posterior.estimate import Moments
from gpn_bayes.posterior.impossible_pairs import assumption
from gpn_bayes.posterior.queries import edge_probabilities, summary
from gpn_bayes.posterior.score_noise import drawn_sets
from gpn_bayes.posterior.target_answers import target_probabilities
from gpn_bayes.report import origin, trust, wording
from gpn_bayes.report.drawing import drawing_of
from gpn_bayes.report.functions import functions_of
from gpn_bayes.report.gaps import gaps_of
from gpn_bayes.report.prediction import prediction_of
from gpn_bayes.report.rounding import PROBABILITY_DECIMALS, errors, numbers
from gpn_bayes.report.what_if import effects_ahead

# As in edges.csv, so that the table's download is the same file.
_ESS_DECIMALS, _R_HAT_DECIMALS = 1, 4
_LISTED_SETS = 4


def content_of(
    post: Draws,
    data: Any = None,
    curves: int = 24,
    command: str | None = None,
    comparison: Comparison | None = None,
) -> dict[str, Any]:
    """Return everything that a report shows.

    Parameters
    ----------
    post : GraphPosterior
        The draws.
    data : DataFrame, ndarray, path or Dataset, optional
        The table that the posterior is of, for curves and effects; by default the one it was drawn from.
    curves : int, default 24
        Of how many variables to compute curves, and of how many pairs effects that are curves or tables.
    command : str, optional
        The command that drew the networks.
    comparison : Comparison, optional
        How well it predicts, beside others.

    Returns
    -------
    dict
        `names`; `edges` and `paths`, flat matrices with the parent's number times n plus the child's for a place;
        `joined`, the same of pairs either way, above the diagonal; `network`, where nodes and links are drawn; `sets`,
        the most probable parent sets of each node; `curves`; `effects`; `prediction`; `gaps`; and texts: `title`,
        `subtitle`, `answers`, `questions`, `trust`, `origin`. What isn't known is None.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.simulate.linear([[0, 1], [0, 0]], 50, random_seed=1)
    >>> content = content_of(gpn.sample(data, score="bge", draws=20, random_seed=1, progressbar=False))
    >>> content["names"], len(content["edges"]["probability"]), content["trust"]["verdict"]
    (['v1', 'v2'], 4, 'good')
    """
    if data is not None:
        imputed = post.record.is_imputed
        data = read_data(data, missing="impute" if imputed else "error")
        check_known(data, post.names, post.record.data_fingerprint)
    probabilities = edge_probabilities(post).to_numpy()
    paths = post._moments(graphs.ancestors)
    return {
        "names": list(post.names),
        "edges": _edges(post),
        "paths": with_errors(paths),
        "joined": joined(post),
        **drawing_of(post).content(),
        "sets": _parent_sets(post),
        "curves": functions_of(post, data, curves),
        "effects": effects_ahead(post, data, paths.value.reshape(probabilities.shape), curves),
        "prediction": None if comparison is None else prediction_of(comparison),
        "gaps": gaps_of(post),
        "title": wording.title(post.names),
        "subtitle": wording.subtitle(post, data),
        "answers": wording.answers(probabilities, post.names, post.record, decide=partial(grounds, post))
        + _impossible(post)
        + _changes(post),
        "questions": wording.questions(probabilities, post.names),
        "trust": trust.trust_of(post),
        "origin": {**origin.origin_of(post, command is not None), "command": command},
    }


def _impossible(post: Draws) -> list[dict[str, Any]]:
    """Return that some pairs can't be joined, as answers that look like answers of the data."""
    return [{"text": text, "links": [], "more": 0} for text in assumption(post.record, post.names)]


def _changes(post: Draws) -> list[dict[str, Any]]:
    """Return what experiments of unknown targets changed; nothing where the data to tell it weren't saved."""
    done = post.record.interventions
    if done is None or not done.unknown or post.data is None:
        return []
    return wording.changes(target_probabilities(post))


def _edges(post: Draws) -> dict[str, Any]:
    """Return the columns of the summary as flat matrices."""
    n = len(post.names)
    edges = summary(post)
    places = {name: place for place, name in enumerate(post.names)}
    flat = edges["parent"].map(places).to_numpy() * n + edges["child"].map(places).to_numpy()
    columns = {}
    for name in ("probability", "mcse", "ess", "r_hat"):
        columns[name] = np.full(n * n, np.nan)
        columns[name][flat] = edges[name].to_numpy(dtype=float)
    statuses = sorted(set(edges["status"]))
    codes = np.full(n * n, -1)
    codes[flat] = [statuses.index(status) for status in edges["status"]]
    return {
        "probability": numbers(columns["probability"], PROBABILITY_DECIMALS),
        "mcse": errors(columns["mcse"]),
        "ess": numbers(columns["ess"], _ESS_DECIMALS),
        "r_hat": numbers(columns["r_hat"], _R_HAT_DECIMALS),
        "status": codes.tolist(),
        "statuses": statuses,
    }


def joined(post: Draws | ResampledGraphs) -> dict[str, Any]:
    """Return the probabilities of edges either way, of pairs in the order of `numpy.triu_indices`."""
    return with_errors(post._joined_moments(*np.triu_indices(len(post.names), 1)))


def with_errors(found: Moments) -> dict[str, Any]:
    """Return probabilities or frequencies with their errors, as JSON takes them."""
    return {"probability": numbers(found.value, PROBABILITY_DECIMALS), "mcse": errors(found.mcse)}


def _parent_sets(post: Draws) -> list[list[Any]]:
    """Return each node's most probable parent sets, as pairs of the parents' numbers and a probability."""
    if post.exact is not None:
        tables = zip(post.exact.candidates, post.exact.parent_sets, strict=True)
        return [[[_members(mask, own), _share(p[mask])] for mask in _largest(p)] for own, p in tables]
    return drawn_parent_sets(post.parents, post.weights)


def drawn_parent_sets(parents: np.ndarray, weights: np.ndarray) -> list[list[Any]]:
    """Return each node's most frequent parent sets among weighted DAGs, given as parent bits."""
    n = parents.shape[2]
    keys, places = drawn_sets(parents)
    shares = np.bincount(places.ravel(), np.repeat(weights.ravel(), n), len(keys)) / weights.sum()
    nodes = np.array([node for node, _ in keys])
    listed = []
    for node in range(n):
        own = np.flatnonzero(nodes == node)
        listed.append([[list(keys[k][1]), _share(shares[k])] for k in own[_largest(shares[own])]])
    return listed


def _largest(probabilities: np.ndarray) -> np.ndarray:
    """Return the places of the few largest probabilities that aren't 0."""
    first = np.argsort(-probabilities, kind="stable")[:_LISTED_SETS]
    return first[probabilities[first] > 0]


def _members(mask: int, candidates: list[int]) -> list[int]:
    return [candidate for bit, candidate in enumerate(candidates) if int(mask) >> bit & 1]


def _share(probability: float) -> float:
    return round(float(probability), 4)

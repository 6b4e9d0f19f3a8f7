"""The report of a fitted learner: the network, its edges, its score, and what it is not."""

from dataclasses import dataclass, field
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from gpn_bayes._util.files import new_file, write_whole
from gpn_bayes.graphs import metrics
from gpn_bayes.report import wording
from gpn_bayes.report.data_checks import checked_data
from gpn_bayes.report.drawing import drawing, order_by_edges
from gpn_bayes.report.kinds import Kind, estimate_kind
from gpn_bayes.report.origin import plain_text, versions
from gpn_bayes.report.page import PAGES, page_of
from gpn_bayes.report.summaries import halved

HEADING = "One graph: it doesn't say how sure each edge is."
_CAVEATS = (
    "This is the one graph that the learner found. Other graphs may fit the data nearly as well, and some edges may be "
    "there by chance: gpn.sample says how sure each edge is given the data, gpn.bootstrap how often the learner finds "
    "it in resampled rows.",
)
_LISTED = 8
_NEVER_SEEN = "The data were not examined: the learner never had all rows."
# All lines stand for certain edges: half the width of a posterior's widest.
_LINES = 0.5


@dataclass(frozen=True)
class FittedGraph:
    """What a report needs of a fitted learner.

    Attributes
    ----------
    learner : str
        Its name.
    names : sequence of str
        The nodes.
    edges : DataFrame
        Columns `parent`, `child`, `type` ("directed" or "undirected") and perhaps `weight`, the strongest first.
    settings : dict
        The learner's settings.
    weight : str
        What to call the weights; empty where there are none.
    meaning : str
        What weights are, as a sentence.
    evidence : bool
        Whether weights are differences of log scores, for which there are words.
    data : Dataset or SufficientStatistics, optional
        What it was fitted to.
    score : str
        The name of the score; empty for none.
    log_score : float, optional
        The graph's.
    kinds : str
        What the score takes the columns for, where the table mixes numbers and categories.
    facts, caveats, assumptions, network : sequence of str
        What is known of the search; what to keep in mind; what is assumed; and what is assumed of the network.
    call : str, optional
        Python code that fits it again.
    seeded : bool
        Whether that finds the same graph.

    Examples
    --------
    >>> edges = pd.DataFrame({"parent": ["a"], "child": ["b"], "type": ["directed"]})
    >>> fitted = FittedGraph("PC", ("a", "b"), edges, {"alpha": 0.05})
    >>> fitted.weight, fitted.log_score is None
    ('', True)
    """

    learner: str
    names: tuple[str, ...]
    edges: pd.DataFrame
    settings: dict[str, Any]
    weight: str = ""
    meaning: str = ""
    evidence: bool = False
    data: Any = None
    score: str = ""
    log_score: float | None = None
    kinds: str = ""
    facts: tuple[str, ...] = ()
    caveats: tuple[str, ...] = ()
    assumptions: tuple[str, ...] = ()
    network: tuple[str, ...] = field(default=())
    call: str | None = None
    seeded: bool = True


def write_estimate_report(
    fitted: FittedGraph, path: str | PathLike[str], overwrite: bool = False, command: str | None = None
) -> Path:
    """Write the report of a fitted learner: one HTML file that works offline.

    Parameters
    ----------
    fitted : FittedGraph
        The graph; `gpn_bayes.estimators.NOTEARS.report` and its like describe it.
    path : path
        Where to write, such as ``"report.html"``.
    overwrite : bool, default False
        Whether an existing file may be replaced.
    command : str, optional
        The command that fitted it.

    Returns
    -------
    Path
        Where the report is.

    Raises
    ------
    ValueError
        If the file exists, or its folder doesn't.

    Examples
    --------
    >>> import tempfile
    >>> edges = pd.DataFrame({"parent": ["a"], "child": ["b"], "type": ["directed"]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_estimate_report(FittedGraph("PC", ("a", "b"), edges, {}), f"{folder}/report.html").name
    'report.html'
    """
    target = new_file(path, overwrite, PAGES)
    write_whole(target, page_of(estimate_content(fitted, command), _kind(fitted)))
    return target


def _kind(fitted: FittedGraph) -> Kind:
    return estimate_kind(fitted.weight, fitted.evidence, bool((fitted.edges["type"] == "undirected").any()))


def estimate_content(fitted: FittedGraph, command: str | None = None) -> dict[str, Any]:
    """Return everything that the report of one graph shows; see `gpn_bayes.report.content.content_of`."""
    matrix = halved(fitted.names, fitted.edges)
    network = drawing(fitted.names, matrix, order_by_edges(matrix))
    rows = getattr(fitted.data, "n_rows", None)
    known = [
        None if rows is None else wording.counted(rows, "row"),
        fitted.learner,
        f"{fitted.score} score" if fitted.score else None,
    ]
    settings = [(name.replace("_", " "), plain_text(value)) for name, value in fitted.settings.items()]
    return {
        "names": list(fitted.names),
        "listed": _listed(fitted),
        **network._replace(thinner=_LINES * network.thinner).content(),
        "title": wording.title(fitted.names),
        "subtitle": " · ".join(text for text in known if text),
        "answers": _answers(fitted),
        "trust": {
            "verdict": "neutral",
            "heading": HEADING,
            "kinds": fitted.kinds,
            **checked_data(fitted.data, _NEVER_SEEN, fitted.assumptions, fitted.network),
        },
        "caveats": [*_CAVEATS, *fitted.caveats],
        "origin": {
            "settings": settings,
            "versions": versions(),
            "call": fitted.call,
            "command": command,
            "seeded": fitted.seeded,
            "unseeded": "Fitted without a seed: another run may find another graph.",
        },
    }


def _listed(fitted: FittedGraph) -> list[dict[str, Any]]:
    """Return the edges as the page's table holds them."""
    place = {name: k for k, name in enumerate(fitted.names)}
    listed = []
    for row in fitted.edges.to_dict("records"):
        weight = float(row["weight"]) if "weight" in row else None
        listed.append(
            {
                "parent": row["parent"],
                "child": row["child"],
                "from": place[row["parent"]],
                "to": place[row["child"]],
                "type": row["type"],
                "weight": None if weight is None or not np.isfinite(weight) else weight,
                "evidence": metrics.evidence(weight) if fitted.evidence and weight is not None else "",
            }
        )
    return listed


def _answers(fitted: FittedGraph) -> list[dict[str, Any]]:
    """Return what was found, in sentences like those of `gpn_bayes.report.wording.answers`."""
    count, n = len(fitted.edges), len(fitted.names)
    undirected = int((fitted.edges["type"] == "undirected").sum())
    pairs = wording.counted(n * (n - 1) // 2, "pair")
    text = f"{count or 'None'} of {pairs} of variables {'is' if count == 1 else 'are'} joined"
    text += f", {undirected} of them without a direction." if undirected else "."
    shown = [
        f"{row['parent']} {'–' if row['type'] == 'undirected' else '→'} {row['child']}"
        + (f" {row['weight']:.2f}" if fitted.weight else "")
        for row in fitted.edges.head(_LISTED).to_dict("records")
    ]
    sentences: list[dict[str, Any]] = [{"text": text, "links": [], "more": 0}]
    if shown:
        opening = f"By {fitted.weight}, the largest first:" if fitted.weight else "These are:"
        sentences.append({"text": opening, "links": shown, "more": count - len(shown)})
    if fitted.log_score is not None:
        scored = f"Its log score{f' ({fitted.score})' if fitted.score else ''} is {fitted.log_score:,.3f}."
        sentences.append({"text": scored, "links": [], "more": 0})
    further = [*fitted.facts, *([fitted.meaning] if fitted.meaning and shown else [])]
    return sentences + [{"text": text, "links": [], "more": 0} for text in further]

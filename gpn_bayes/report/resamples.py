"""The report of a bootstrap: the page of a posterior, with frequencies among resamples in place of probabilities."""

from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from gpn_bayes import graphs
from gpn_bayes._util.files import new_file, write_whole
from gpn_bayes.posterior.diagnostics import NOT_EXAMINED
from gpn_bayes.posterior.directions import grounds
from gpn_bayes.posterior.draws import ResampledGraphs
from gpn_bayes.posterior.queries import edge_probabilities
from gpn_bayes.report import wording
from gpn_bayes.report.content import drawn_parent_sets, joined, with_errors
from gpn_bayes.report.data_checks import checked_data
from gpn_bayes.report.drawing import drawing_of
from gpn_bayes.report.kinds import BOOTSTRAP
from gpn_bayes.report.origin import versions
from gpn_bayes.report.page import PAGES, page_of

HEADING = "Frequencies among resamples: not how probable an edge is."
_CAVEATS = (
    "A frequency among resamples says how often the learner finds an edge when rows are drawn anew from the table. An "
    "edge that it finds always may still be wrong, as when what it assumes doesn't hold; gpn.sample answers how likely "
    "an edge is given the data.",
    "Errors are those of a finite number of resamples.",
)


def write_bootstrap_report(result: ResampledGraphs, path: str | PathLike[str], overwrite: bool = False) -> Path:
    """Write the report of a bootstrap: one HTML file that works offline.

    Parameters
    ----------
    result : BootstrapResult
        The graphs.
    path : path
        Where to write, such as ``"report.html"``.
    overwrite : bool, default False
        Whether an existing file may be replaced.

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
    >>> import gpn_bayes as gpn
    >>> data = gpn.simulate.linear([[0, 1], [0, 0]], 50, random_seed=1)
    >>> result = gpn.bootstrap(gpn.estimators.PC(), data, n=20, random_seed=1, progressbar=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_bootstrap_report(result, f"{folder}/report.html").name
    'report.html'
    """
    target = new_file(path, overwrite, PAGES)
    write_whole(target, page_of(bootstrap_content(result), BOOTSTRAP))
    return target


def bootstrap_content(result: ResampledGraphs) -> dict[str, Any]:
    """Return everything that the report of a bootstrap shows; see `gpn_bayes.report.content.content_of`."""
    frequencies = edge_probabilities(result).to_numpy()
    rows = None if result.data is None else result.data.n_rows
    known = [
        None if rows is None else wording.counted(rows, "row"),
        wording.counted(result.resamples, "resample"),
        result.learner,
    ]
    return {
        "names": list(result.names),
        "edges": _edges(result),
        "paths": with_errors(result._moments(graphs.ancestors)),
        "joined": joined(result),
        **drawing_of(result).content(),
        "sets": drawn_parent_sets(result.parents, np.ones(result.parents.shape[:2])),
        "title": wording.title(result.names),
        "subtitle": " · ".join(text for text in known if text),
        "answers": wording.answers(
            frequencies, result.names, phrases=wording.RESAMPLES, decide=partial(grounds, result)
        ),
        "questions": wording.questions(frequencies, result.names),
        "trust": {
            "verdict": "neutral",
            "heading": HEADING,
            **checked_data(result.data, NOT_EXAMINED),
        },
        "caveats": [*_CAVEATS, *_inconsistent(result)],
        "origin": _origin(result),
    }


def _edges(result: ResampledGraphs) -> dict[str, Any]:
    moments = result._edge_moments
    statuses = sorted(set(moments.status))
    nothing = [None] * len(moments.value)
    codes = [statuses.index(status) for status in moments.status]
    return {**with_errors(moments), "ess": nothing, "r_hat": nothing, "status": codes, "statuses": statuses}


def _inconsistent(result: ResampledGraphs) -> list[str]:
    if not result.inconsistent:
        return []
    return [
        f"{wording.counted(result.inconsistent, 'resample')} gave a graph that no DAG agrees with, and "
        f"{'counts' if result.inconsistent == 1 else 'count'} as a DAG near to it."
    ]


def _origin(result: ResampledGraphs) -> dict[str, Any]:
    """Return how to do it again; settings that are objects, and the seed, aren't known."""
    settings = [
        ("learner", result.learner),
        ("resamples", f"{result.resamples:,}"),
        ("resamples that no DAG agrees with", f"{result.inconsistent:,}"),
    ]
    return {"settings": settings, "versions": versions(), "call": None, "command": None, "seeded": True, "unseeded": ""}

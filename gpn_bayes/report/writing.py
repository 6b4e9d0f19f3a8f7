"""From a posterior to the file of its report."""

from html import escape
from os import PathLike
from pathlib import Path
from typing import Any

from gpn_bayes._util.checks import check_count
from gpn_bayes._util.files import new_file, write_whole
from gpn_bayes.posterior.comparing import Comparison
from gpn_bayes.posterior.draws import Draws
from gpn_bayes.report.content import content_of
from gpn_bayes.report.page import PAGES, page_of


def write_report(
    post: Draws,
    path: str | PathLike[str],
    data: Any = None,
    curves: int = 24,
    overwrite: bool = False,
    comparison: Comparison | None = None,
    *,
    command: str | None = None,
) -> Path:
    """Write the report of a posterior: one HTML file that works offline.

    It tells the answers in words, and holds the network, the effects of the most probable pairs, a table of all edges,
    questions to choose, whether sampling has converged, what the answers assume, what deserves a look in
    the data, and what reproduces it all.

    Parameters
    ----------
    post : GraphPosterior
        The draws.
    path : path
        Where to write, such as ``"report.html"``.
    data : DataFrame, ndarray, path or Dataset, optional
        The table that the posterior is of. Only fitted curves and effects need it, and only for a posterior that was
        saved without.
    curves : int, default 24
        Of how many variables to draw the fitted curves, those with the most probable parents first. It takes the
        Gaussian-process score, and a second or so for every few variables. Also of how many pairs to compute the
        effects under that score and those of categories, which takes about ten seconds; 0 for no curves and no such
        effects. Effects of linear scores are always there.
    overwrite : bool, default False
        Whether an existing file may be replaced.
    comparison : Comparison, optional
        What `gpn_bayes.compare` found of it and others: how well each predicts, shown variable by variable.
    command : str, optional
        The command that drew the networks, to be shown among what reproduces them.

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
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = post.report(f"{folder}/report.html")
    ...     path.name, "raf" in path.read_text(encoding="utf-8")
    ('report.html', True)
    """
    check_count("curves", curves)
    target = new_file(path, overwrite, PAGES)
    write_whole(target, page_of(content_of(post, data, curves, command, comparison)))
    return target


class Explorer:
    """The page of a report inside a notebook; see `gpn_bayes.GraphPosterior.explore`.

    Parameters
    ----------
    page : str
        The page, as HTML.
    height : int
        Of its frame, in pixels.

    Examples
    --------
    >>> Explorer("<!doctype html>", 600)._repr_html_().startswith("<iframe")
    True
    """

    def __init__(self, page: str, height: int) -> None:
        self.page, self.height = page, height

    def __repr__(self) -> str:
        """Say what to do where no notebook shows it."""
        return "<Explorer: a page for notebooks; elsewhere write post.report('report.html') and open that>"

    def _repr_html_(self) -> str:
        # The page may run its own scripts, but reach nothing of the notebook around it.
        frame = "width:100%;border:1px solid rgba(128,128,128,.4);border-radius:8px"
        return (
            f'<iframe class="gpn-bayes" title="Report" sandbox="allow-scripts" style="{frame};height:{self.height}px" '
            f'srcdoc="{escape(self.page, quote=True)}"></iframe>'
        )


def explore(post: Draws, height: int = 760, data: Any = None, curves: int = 24) -> Explorer:
    """Return the report of a posterior as a notebook shows it; see `gpn_bayes.GraphPosterior.explore`.

    Parameters
    ----------
    post : GraphPosterior
        The draws.
    height : int, default 760
        Of the frame, in pixels.
    data, curves : optional
        As in `write_report`.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.simulate.linear([[0, 1], [0, 0]], 50, random_seed=1)
    >>> post = gpn.sample(data, score="bge", draws=20, random_seed=1, progressbar=False)
    >>> "Network of 2 variables" in post.explore().page
    True
    """
    check_count("height", height, 100)
    check_count("curves", curves)
    return Explorer(page_of(content_of(post, data, curves)), height)

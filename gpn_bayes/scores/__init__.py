"""Scores: each answers log S(node | parents) for a bound data set; higher is better.

Examples
--------
>>> from gpn_bayes import datasets, scores
>>> scorer = scores.BGe().bind(datasets.sachs(transform="log2"))
>>> scorer.local("mek", ["raf"]) > scorer.local("mek")
True
"""

from typing import Any

from gpn_bayes._util.checks import did_you_mean
from gpn_bayes.scores.base import Score, ScoreBatch, Scorer
from gpn_bayes.scores.bge import BGe
from gpn_bayes.scores.bic import BIC
from gpn_bayes.scores.cache import ScoreCache
from gpn_bayes.scores.cg import CG
from gpn_bayes.scores.discrete import K2, BDeu
from gpn_bayes.scores.gp.score import GP
from gpn_bayes.scores.lasso import Lasso
from gpn_bayes.scores.prior import GraphPrior
from gpn_bayes.scores.recorded import BUILT_IN
from gpn_bayes.scores.recorded import from_parameters as from_parameters

__all__ = [
    "BDeu",
    "BGe",
    "BIC",
    "CG",
    "GP",
    "GraphPrior",
    "K2",
    "Lasso",
    "Score",
    "ScoreBatch",
    "ScoreCache",
    "Scorer",
    "by_name",
    "names",
]

# The lasso score is no likelihood, and depends on units: only learners use it.
_BY_NAME = {name: kind for name, kind in BUILT_IN.items() if kind is not Lasso}


def by_name(score: Any) -> Score:
    """Return a score given as an object or by its name.

    Parameters
    ----------
    score : Score or str
        A score, which is returned as it is, or "bge", "gp", "bic", "bdeu", "k2" or "cg" for one with default settings.

    Examples
    --------
    >>> by_name("bge")
    BGe(alpha_mu=1.0, alpha_w=None, t0=None)
    """
    if isinstance(score, Score):
        return score
    if isinstance(score, str) and score.lower() in _BY_NAME:
        return _BY_NAME[score.lower()]()
    suggestion = did_you_mean(score, _BY_NAME)
    raise ValueError(f"score must be a Score or one of {', '.join(_BY_NAME)}; received {score!r}{suggestion}")


def names() -> tuple[str, ...]:
    """Return the names that `by_name` takes.

    Examples
    --------
    >>> names()
    ('bge', 'gp', 'bic', 'bdeu', 'k2', 'cg')
    """
    return tuple(_BY_NAME)

"""Scores: each answers log S(node | parents) for a bound data set; higher is better.

Examples
--------
>>> from gpn_bayes import datasets, scores
>>> scorer = scores.BGe().bind(datasets.sachs(transform="log2"))
>>> scorer.local("mek", ["raf"]) > scorer.local("mek")
True
"""

from typing import Any

from gpn_bayes.checking import did_you_mean
from gpn_bayes.scores.base import Score, ScoreBatch, Scorer
from gpn_bayes.scores.bge import BGe
from gpn_bayes.scores.bic import BIC
from gpn_bayes.scores.cache import ScoreCache
from gpn_bayes.scores.discrete import K2, BDeu
from gpn_bayes.scores.gp import GP
from gpn_bayes.scores.lasso import Lasso
from gpn_bayes.scores.prior import GraphPrior

__all__ = [
    "BDeu",
    "BGe",
    "BIC",
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

_BY_NAME: dict[str, type[Score]] = {"bge": BGe, "gp": GP, "bic": BIC, "bdeu": BDeu, "k2": K2}


def by_name(score: Any) -> Score:
    """Return a score given as an object or by its name.

    Parameters
    ----------
    score : Score or str
        A score, which is returned as it is, or "bge", "gp", "bic", "bdeu" or "k2" for one with default settings.

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
    ('bge', 'gp', 'bic', 'bdeu', 'k2')
    """
    return tuple(_BY_NAME)

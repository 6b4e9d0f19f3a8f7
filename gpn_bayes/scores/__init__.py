"""Scores: each answers log S(node | parents) for a bound data set; higher is better.

Examples
--------
>>> from gpn_bayes import datasets, scores
>>> scorer = scores.BGe().bind(datasets.sachs(transform="log2"))
>>> scorer.local("mek", ["raf"]) > scorer.local("mek")
True
"""

import ast
from typing import Any

from gpn_bayes._util.checks import did_you_mean
from gpn_bayes.scores.base import Score, ScoreBatch, Scorer
from gpn_bayes.scores.bge import BGe
from gpn_bayes.scores.bic import BIC
from gpn_bayes.scores.cache import ScoreCache
from gpn_bayes.scores.discrete import K2, BDeu
from gpn_bayes.scores.gp.score import GP
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
_BUILT_IN: dict[str, type[Score]] = {**_BY_NAME, "lasso": Lasso}


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


def from_parameters(name: str, parameters: dict[str, Any]) -> Score:
    """Return the score of this package that has these `Score.name` and `Score.parameters`, as files keep them.

    Raises
    ------
    ValueError
        For a score that is not of this package, or whose parameters don't say all of it: a prior given as a PyMC
        distribution.

    Examples
    --------
    >>> from_parameters("bge", {"alpha_mu": 0.5})
    BGe(alpha_mu=0.5, alpha_w=None, t0=None)
    """
    if name not in _BUILT_IN:
        raise ValueError(f"the score must be one of {', '.join(_BUILT_IN)}; received {name!r}")
    try:
        return _BUILT_IN[name](**parameters)
    except TypeError:
        raise ValueError(f"{name!r} can't be made from the parameters {parameters!r}") from None


def from_label(label: str) -> Score:
    """Return the score of this package whose ``repr`` this is.

    Raises
    ------
    ValueError
        For any other text.

    Examples
    --------
    >>> from_label("BGe(alpha_mu=0.5, alpha_w=None, t0=None)").parameters["alpha_mu"]
    0.5
    """
    try:
        match ast.parse(label, mode="eval").body:
            case ast.Call(func=ast.Name(id=made), args=[], keywords=keywords):
                parameters = {str(word.arg): ast.literal_eval(word.value) for word in keywords}
                (name,) = (name for name, kind in _BUILT_IN.items() if kind.__name__ == made)
            case _:
                raise ValueError(label)
    except (SyntaxError, ValueError):
        raise ValueError(f"a description of a score must read like 'BGe(alpha_mu=1.0)'; received {label!r}") from None
    return from_parameters(name, parameters)


def names() -> tuple[str, ...]:
    """Return the names that `by_name` takes.

    Examples
    --------
    >>> names()
    ('bge', 'gp', 'bic', 'bdeu', 'k2')
    """
    return tuple(_BY_NAME)

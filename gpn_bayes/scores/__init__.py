"""Scores: each answers log S(node | parents) for a bound data set; higher is better.

Examples
--------
>>> from gpn_bayes import datasets, scores
>>> scorer = scores.BGe().bind(datasets.sachs(transform="log2"))
>>> scorer.local("mek", ["raf"]) > scorer.local("mek")
True
"""

from typing import TYPE_CHECKING, Any

from gpn_bayes._util.checks import did_you_mean, shown
from gpn_bayes._util.lazy import lazily
from gpn_bayes.scores.base import Score, ScoreBatch, Scorer
from gpn_bayes.scores.registry import find, names

if TYPE_CHECKING:
    from gpn_bayes.scores.bge import BGe
    from gpn_bayes.scores.bic import BIC
    from gpn_bayes.scores.cache import ScoreCache
    from gpn_bayes.scores.cg import CG
    from gpn_bayes.scores.discrete import K2, BDeu
    from gpn_bayes.scores.equations import DrawnEquation, DrawnLine, Equation
    from gpn_bayes.scores.gp.score import GP
    from gpn_bayes.scores.lasso import Lasso
    from gpn_bayes.scores.parameters import Parameters
    from gpn_bayes.scores.prior import GraphPrior
    from gpn_bayes.scores.recorded import from_parameters as from_parameters

__all__ = [
    "BDeu",
    "BGe",
    "BIC",
    "CG",
    "DrawnEquation",
    "DrawnLine",
    "Equation",
    "GP",
    "GraphPrior",
    "K2",
    "Lasso",
    "Parameters",
    "Score",
    "ScoreBatch",
    "ScoreCache",
    "Scorer",
    "by_name",
    "names",
]

# What takes long to load waits until it is asked for.
_LATER = {
    "BDeu": "gpn_bayes.scores.discrete",
    "BGe": "gpn_bayes.scores.bge",
    "BIC": "gpn_bayes.scores.bic",
    "CG": "gpn_bayes.scores.cg",
    "DrawnEquation": "gpn_bayes.scores.equations",
    "DrawnLine": "gpn_bayes.scores.equations",
    "Equation": "gpn_bayes.scores.equations",
    "GP": "gpn_bayes.scores.gp.score",
    "GraphPrior": "gpn_bayes.scores.prior",
    "K2": "gpn_bayes.scores.discrete",
    "Lasso": "gpn_bayes.scores.lasso",
    "Parameters": "gpn_bayes.scores.parameters",
    "ScoreCache": "gpn_bayes.scores.cache",
    "from_parameters": "gpn_bayes.scores.recorded",
}
if not TYPE_CHECKING:
    __getattr__, __dir__ = lazily(__name__, {name: __name__ for name in __all__} | _LATER)


def by_name(score: Any) -> Score:
    """Return a score given as an object or by its name.

    Parameters
    ----------
    score : Score or str
        A score, which is returned as it is, or "bge", "gp", "bic", "bdeu", "k2", "cg" or the name of a score of one's
        own that is defined, for one with default settings.

    Examples
    --------
    >>> by_name("bge")
    BGe(alpha_mu=1.0, alpha_w=None, t0=None)
    """
    if isinstance(score, Score):
        name = getattr(score, "name", None)
        if not isinstance(name, str) or not name:
            raise ValueError(f"a score must have a name; {type(score).__name__} has none")
        return score
    kind = find(score.lower()) if isinstance(score, str) and score.lower() in names() else None
    if kind is None:
        suggestion = did_you_mean(score, names())
        raise ValueError(f"score must be a Score or one of {', '.join(names())}; received {shown(score)}{suggestion}")
    try:
        made: Score = kind()
    except TypeError:
        raise ValueError(f"a score given by name must need no settings; received {score!r}, which needs some") from None
    return made

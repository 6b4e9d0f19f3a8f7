"""Scores as the settings of a run and files keep them: by name and parameters, from which they can be made again."""

from typing import Any

from gpn_bayes.scores.base import Score
from gpn_bayes.scores.bge import BGe
from gpn_bayes.scores.bic import BIC
from gpn_bayes.scores.cg import CG
from gpn_bayes.scores.discrete import K2, BDeu
from gpn_bayes.scores.gp.score import GP
from gpn_bayes.scores.lasso import Lasso

BUILT_IN: dict[str, type[Score]] = {"bge": BGe, "gp": GP, "bic": BIC, "bdeu": BDeu, "k2": K2, "cg": CG, "lasso": Lasso}


def as_setting(score: Score) -> dict[str, Any]:
    """Return a score as settings keep it, JSON-able.

    Examples
    --------
    >>> as_setting(BGe(alpha_mu=0.5))
    {'name': 'bge', 'parameters': {'alpha_mu': 0.5, 'alpha_w': None, 't0': None}}
    """
    return {"name": score.name, "parameters": score.parameters}


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
    if name not in BUILT_IN:
        raise ValueError(f"the score must be one of {', '.join(BUILT_IN)}; received {name!r}")
    try:
        return BUILT_IN[name](**parameters)
    except TypeError:
        raise ValueError(f"{name!r} can't be made from the parameters {parameters!r}") from None

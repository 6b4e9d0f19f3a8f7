"""Scores as the settings of a run and files keep them: by name and parameters, from which they can be made again."""

from typing import Any

from gpn_bayes.scores.base import Score
from gpn_bayes.scores.registry import find, is_own, names


def as_setting(score: Score) -> dict[str, Any]:
    """Return a score as settings keep it, JSON-able.

    Examples
    --------
    >>> from gpn_bayes.scores import BGe
    >>> as_setting(BGe(alpha_mu=0.5))
    {'name': 'bge', 'parameters': {'alpha_mu': 0.5, 'alpha_w': None, 't0': None}}
    """
    return {"name": score.name, "parameters": score.parameters}


def from_parameters(name: str, parameters: dict[str, Any]) -> Score:
    """Return the score that has these `Score.name` and `Score.parameters`, as files keep them.

    Raises
    ------
    ValueError
        For a score of a name that isn't registered, or whose parameters don't say all of it: a prior given as a PyMC
        distribution.

    Examples
    --------
    >>> from_parameters("bge", {"alpha_mu": 0.5})
    BGe(alpha_mu=0.5, alpha_w=None, t0=None)
    """
    kind = find(name)
    if kind is None:
        raise ValueError(
            f"the score must be one of {', '.join(names())}, or one whose module is imported; received {name!r}"
        )
    try:
        score: Score = kind(**parameters)
    except Exception:  # of a user's own class, anything
        raise ValueError(f"{name!r} can't be made from the parameters {parameters!r}") from None
    return score


def unmakeable(name: str, parameters: dict[str, Any]) -> str:
    """Return in words why a user's score can't be made again from what files keep of it; empty where it can.

    Examples
    --------
    >>> unmakeable("bge", {"alpha_mu": 0.5})
    ''
    """
    if is_own(name):
        try:
            from_parameters(name, parameters)
        except ValueError as wrong:
            return f"a score's parameters must be the arguments of its constructor; {wrong}"
    return ""

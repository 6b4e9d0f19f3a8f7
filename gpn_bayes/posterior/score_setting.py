"""The score in the settings of a posterior or a run: as a score, and in words; and what it took columns for."""

from collections.abc import Mapping
from typing import Any

from gpn_bayes.scores.base import Score
from gpn_bayes.scores.recorded import BUILT_IN, from_parameters


def score_setting(settings: Mapping[str, Any], unknown: str = "unknown") -> dict[str, Any]:
    """Return the name and parameters of the score that settings name.

    Parameters
    ----------
    settings : mapping
        The settings of a posterior or a run.
    unknown : str
        The name where they have no score.

    Examples
    --------
    >>> score_setting({})
    {'name': 'unknown', 'parameters': {}}
    """
    setting: dict[str, Any] = settings.get("score", {"name": unknown, "parameters": {}})
    return setting


def score_of(settings: Mapping[str, Any]) -> Score:
    """Return the score that settings name.

    Raises
    ------
    ValueError
        For a score that can't be made from its name and parameters; see `gpn_bayes.scores.from_parameters`.
    """
    return from_parameters(**score_setting(settings))


def kinds_of(settings: Mapping[str, Any]) -> list[str]:
    """Return in words what the score took columns for: of a mixed table, and which columns could be either.

    Examples
    --------
    >>> kinds_of({"kinds": "4 numbers, 1 category (sex)"}), kinds_of({})
    (['4 numbers, 1 category (sex)'], [])
    """
    return [str(settings[name]) for name in ("kinds", "either_kind") if settings.get(name)]


def score_title(settings: Mapping[str, Any], unknown: str = "unknown") -> str:
    """Return the score's name as its class has it, or its own where it is not of this package.

    Examples
    --------
    >>> score_title({"score": {"name": "bge", "parameters": {"alpha_mu": 0.5}}})
    'BGe'
    """
    name = str(score_setting(settings, unknown)["name"])
    return BUILT_IN[name].__name__ if name in BUILT_IN else name


def score_text(settings: Mapping[str, Any], unknown: str = "unknown") -> str:
    """Return the score and its parameters.

    Examples
    --------
    >>> score_text({"score": {"name": "bge", "parameters": {"alpha_mu": 0.5}}})
    'BGe(alpha_mu=0.5)'
    """
    if "score" not in settings:
        return unknown
    title, setting = score_title(settings), score_setting(settings)
    arguments = ", ".join(f"{name}={value!r}" for name, value in setting["parameters"].items())
    return f"{title}({arguments})" if arguments else title

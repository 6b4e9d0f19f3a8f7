"""The learners of ``gpn-bayes estimate``: a name for each, and the options it takes."""

import ast
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from gpn_bayes.estimators.base import GraphEstimator

# What --method takes, and the name in gpn_bayes.estimators that it stands for.
METHODS = {
    "k2": "K2",
    "exact": "Exact",
    "hc": "HillClimbing",
    "ordering": "OrderingSearch",
    "rbnets": "RBNets",
    "pc": "PC",
    "notears": "NOTEARS",
    "notears-mlp": "NOTEARSMLP",
    "dynotears": "DYNOTEARS",
}
# Settings that have an option of their own; a learner takes those that its constructor names.
OPTIONS = {
    "score": "--score",
    "order": "--order",
    "max_parents": "--max-parents",
    "required": "--required",
    "forbidden": "--forbidden",
    "tiers": "--tiers",
    "random_state": "--seed",
    "progressbar": "--quiet",
}


def find_method(method: str) -> "type[GraphEstimator]":
    """Return the learner that a method stands for."""
    from gpn_bayes import estimators
    from gpn_bayes._util.checks import check_choice

    check_choice("--method", method.lower(), tuple(METHODS))
    learner: type[GraphEstimator] = getattr(estimators, METHODS[method.lower()])
    return learner


def build(method: str, given: Mapping[str, Any], further: Sequence[str], usual: Mapping[str, Any]) -> "GraphEstimator":
    """Make a learner.

    Parameters
    ----------
    method : str
        One of `METHODS`.
    given : mapping
        What the user gave, by the names of `OPTIONS`; None where nothing.
    further : sequence of str
        Settings without an option, ``name=value``.
    usual : mapping
        What learners get that have such a setting, unless it was given.

    Raises
    ------
    ValueError
        For options and settings that the learner doesn't have.
    """
    learner = find_method(method)()
    known = learner.get_params()
    settings = {name: value for name, value in usual.items() if name in known}
    for name, value in given.items():
        if value is None or (name == "score" and name not in known):
            continue  # any graph can be scored, however it was learnt
        if name not in known:
            raise ValueError(f"{OPTIONS[name]} doesn't go with --method {method.lower()}")
        settings[name] = value
    own = sorted(name for name in known if name not in OPTIONS)
    for text in further:
        name, value = read_setting(text, own, method)
        settings[name] = value
    ready: GraphEstimator = learner.set_params(**settings)
    return ready


def read_setting(text: str, own: Sequence[str], method: str) -> tuple[str, Any]:
    """Return the name and the value of a setting, ``name=value``.

    Numbers, None, True and False are read as such, anything else as text.

    Examples
    --------
    >>> read_setting("restarts=20", ["jump", "restarts"], "hc")
    ('restarts', 20)
    >>> read_setting("test=hsic", ["alpha", "test"], "pc")
    ('test', 'hsic')
    """
    name, equals, value = (part.strip() for part in text.partition("="))
    name = name.replace("-", "_")
    if not equals or not value:
        raise ValueError(f"--set takes name=value; received {text!r}")
    if name in OPTIONS:
        raise ValueError(f"--set is for settings without an option; {name!r} has {OPTIONS[name]}")
    if name not in own:
        from gpn_bayes._util.checks import did_you_mean

        rule = f"--method {method.lower()} has the settings {', '.join(own) or 'none'}"
        raise ValueError(f"{rule}; received {name!r}{did_you_mean(name, own)}")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value

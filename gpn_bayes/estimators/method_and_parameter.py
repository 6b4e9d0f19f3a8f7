"""A name that a learner uses twice: for a parameter of its constructor, and for a method that scikit-learn calls."""

from collections.abc import Callable
from types import MethodType
from typing import Any


class method_and_parameter:  # noqa: N801 (a decorator)
    """Decorate a method whose name is also that of a parameter.

    Assigning to the attribute sets the parameter; reading the attribute gives the method. The parameter's value is kept
    under its name in the instance's dictionary, where pickles, copies and ``vars(learner)[name]`` find it.

    Parameters
    ----------
    method : callable
        The method.

    Examples
    --------
    >>> class Learner:
    ...     def __init__(self, score):
    ...         self.score = score
    ...     @method_and_parameter
    ...     def score(self, rows):
    ...         return f"{vars(self)['score']} of {rows} rows"
    >>> Learner("bic").score(10)
    'bic of 10 rows'
    """

    def __init__(self, method: Callable[..., Any]) -> None:
        self.method = method

    def __set_name__(self, owner: type, name: str) -> None:
        """Note the name."""
        self.name = name

    def __get__(self, instance: Any, owner: type | None = None) -> Callable[..., Any]:
        """Return the method."""
        return self.method if instance is None else MethodType(self.method, instance)

    def __set__(self, instance: Any, value: Any) -> None:
        """Set the parameter."""
        vars(instance)[self.name] = value

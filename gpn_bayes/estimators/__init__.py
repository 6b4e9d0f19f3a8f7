"""Point estimates: learners that return one graph, in the manner of scikit-learn.

Every learner has ``fit(X)``, then ``graph_``, ``adjacency_`` and ``log_score(score)``; those that maximise a score take
any that `gpn_bayes.scores` has.
"""

from importlib import import_module
from typing import Any

_NAMES: dict[str, str] = {}
__all__ = list(_NAMES)


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'gpn_bayes.estimators' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

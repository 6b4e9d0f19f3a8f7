"""Two parties learn a network over their joined columns without showing each other a row (Wright & Yang 2004).

`PrivateK2` runs both on one machine; ``gpn-bayes private-k2`` runs one of them, on its own. What is protected, and what
isn't, stands in SECURITY.md.

Examples
--------
>>> from gpn_bayes.private import PrivateK2
>>> PrivateK2(order=["rain", "wet"]).key_bits
3072
"""

from importlib import import_module
from typing import Any

_NAMES = {"PrivateK2": "gpn_bayes.private.estimator"}
__all__ = list(_NAMES)


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        return getattr(import_module(_NAMES[name]), name)
    raise AttributeError(f"module 'gpn_bayes.private' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

"""Two parties learn a network over their joined columns without showing each other a row (Wright & Yang 2004).

`PrivateK2` runs both on one machine; ``gpn-bayes private-k2`` runs one of them, on its own. What is protected, and what
isn't, stands in SECURITY.md.

Examples
--------
>>> from gpn_bayes.private import PrivateK2
>>> PrivateK2(order=["rain", "wet"]).key_bits
3072
"""

from gpn_bayes._util.lazy import lazily

_NAMES = {"PrivateK2": "gpn_bayes.private.estimator"}
__all__ = list(_NAMES)
__getattr__, __dir__ = lazily(__name__, _NAMES)

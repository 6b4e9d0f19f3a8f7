"""Learning from rows that several parties hold and don't share.

`secure_statistics` adds up what linear models need of all tables, without anybody seeing a single one; what it returns
replaces data, and gives exactly the answer of the pooled table: use it for linear models.

`FederatedNOTEARS` learns in many rounds, for models that no sums describe. Each round opens a sum, and for linear
models the sums of all rounds together can give every client's covariance away; read its warning. `Voting`, `Averaging`,
`Best` and `AllData` are what to compare with.

Examples
--------
>>> import gpn_bayes as gpn
>>> table = gpn.datasets.sachs(transform="log2")
>>> pooled = gpn.federated.secure_statistics([table[:200], table[200:500], table[500:]])
>>> pooled.n, bool(abs(pooled.mean - table.mean()).max() < 1e-12)
(853, True)
"""

from importlib import import_module
from typing import Any

from gpn_bayes._util.extras import installed_by

_NAMES = {
    "AllData": "gpn_bayes.federated.notears.baselines",
    "Averaging": "gpn_bayes.federated.notears.baselines",
    "Best": "gpn_bayes.federated.notears.baselines",
    "FederatedNOTEARS": "gpn_bayes.federated.notears.learner",
    "Voting": "gpn_bayes.federated.notears.baselines",
    "secure_statistics": "gpn_bayes.federated.statistics",
}
__all__ = list(_NAMES)


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'gpn_bayes.federated' has no attribute {name!r}")
    with installed_by("federated"):
        return getattr(import_module(_NAMES[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)

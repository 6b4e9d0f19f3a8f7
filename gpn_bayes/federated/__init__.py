"""Learning from rows that several parties hold and don't share.

`secure_statistics` adds up what linear models need of all tables, without anybody seeing a single one; what it returns
replaces data, and gives exactly the answer of the pooled table: use it for linear models. With `Privacy` the clients
add noise, so that the sums reveal little of any single row.

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

from typing import Any

from gpn_bayes._util.extras import installed_by
from gpn_bayes._util.lazy import lazily

_NAMES = {
    "AllData": "gpn_bayes.federated.notears.baselines",
    "Averaging": "gpn_bayes.federated.notears.baselines",
    "Best": "gpn_bayes.federated.notears.baselines",
    "FederatedNOTEARS": "gpn_bayes.federated.notears.learner",
    "Privacy": "gpn_bayes.federated.privacy",
    "Voting": "gpn_bayes.federated.notears.baselines",
    "secure_statistics": "gpn_bayes.federated.statistics",
}
__all__ = list(_NAMES)
_get, __dir__ = lazily(__name__, _NAMES)


def __getattr__(name: str) -> Any:
    with installed_by("federated"):
        return _get(name)

"""Whether a client joins a run: what it checks of the plan before it has anything to do with it."""

import logging
from collections.abc import Sequence

import numpy as np

from gpn_bayes.data import Dataset
from gpn_bayes.federated.plan import ENOUGH, Plan, few_clients
from gpn_bayes.federated.processes.client_store import ClientStore
from gpn_bayes.federated.processes.config import ClientConfig
from gpn_bayes.federated.programs import find_program

_log = logging.getLogger(__name__)


def check_plan(plan: Plan, config: ClientConfig, data: Dataset, store: ClientStore, again: bool) -> None:
    """Refuse a plan that this client's user hasn't agreed to.

    Raises
    ------
    ValueError
        If the plan isn't secure, runs a program or has clients that the configuration doesn't list, needs columns that
        the table lacks, or sums a table a second time.
    """
    if config.secure and not plan.secure:
        raise ValueError("sums must be secure; the coordinator plans plain ones (secure = false would allow it)")
    if plan.program not in config.programs:
        raise ValueError(f"programs must be those of the configuration; the coordinator plans {plan.program[:40]!r}")
    unknown = [name for name in plan.clients if name not in config.credentials.fingerprints]
    if unknown:
        raise ValueError(f"the clients of a run must be known; {unknown[0][:70]!r} isn't")
    if len(plan.clients) < ENOUGH:
        _log.warning("%s", few_clients(len(plan.clients)))
    select(data, plan.variables)
    earlier = store.earlier_run(data.fingerprint, plan.program, plan.run)
    if find_program(plan.program).once and earlier is not None and not again:
        raise ValueError(
            f"a table's {plan.program} are summed once: two sums that differ by one client reveal that client's; "
            f"this table was part of run {earlier} (--again allows it)"
        )


def select(data: Dataset, variables: Sequence[str]) -> Dataset:
    """Return the columns that a run is about, in its order."""
    missing = [name for name in variables if name not in data.names]
    if missing:
        raise ValueError(f"the table must have all columns of the run; {missing[0][:70]!r} isn't there")
    columns = [data.names.index(name) for name in variables]
    kinds = tuple(data.kinds[column] for column in columns)
    # In the usual order of memory, on which the last bits of products depend.
    values = np.ascontiguousarray(data.values[:, columns])
    return Dataset(tuple(variables), values, kinds, tuple(data.levels[column] for column in columns))

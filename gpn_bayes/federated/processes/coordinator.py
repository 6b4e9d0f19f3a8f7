"""A coordinator's whole run: take up what is on disk, carry out the program, write the results."""

import logging
import secrets
from collections.abc import Callable
from pathlib import Path

from gpn_bayes._util.files import write_whole
from gpn_bayes.federated.packing import pack
from gpn_bayes.federated.plan import ENOUGH, Plan, few_clients
from gpn_bayes.federated.processes.config import CoordinatorConfig
from gpn_bayes.federated.processes.coordinator_store import CoordinatorStore
from gpn_bayes.federated.processes.grpc_channel import GrpcChannel
from gpn_bayes.federated.programs import find_program

_log = logging.getLogger(__name__)


def coordinate(config: CoordinatorConfig, tell: Callable[[str], None] = lambda text: None) -> Path:
    """Start or resume a run, and return the file of its results.

    Parameters
    ----------
    config : CoordinatorConfig
        From `read_coordinator`.
    tell : callable, optional
        Called with a line of text when a round begins.

    Returns
    -------
    path
        ``<out>/<program>.npz``.

    Raises
    ------
    ValueError
        If the folder holds another run, or the program fails.
    ConnectionError
        If a client is lost for too long; the same call goes on later.
    """
    program = find_program(config.program)
    config.out.mkdir(parents=True, exist_ok=True)
    with CoordinatorStore(config.out / "run.sqlite") as store:
        plan = _take_up(store, config)
        if plan.secure and len(plan.clients) < ENOUGH:
            _log.warning("%s", few_clients(len(plan.clients)))
        credentials = config.credentials
        channel = GrpcChannel(
            plan, store, config.listen, credentials.identity, credentials.authority, credentials.fingerprints,
            config.limits, tell, program.largest(plan),
        )  # fmt: skip
        try:
            results = program.coordinate(channel, plan)
            path = config.out / f"{config.program}.npz"
            write_whole(path, pack(results))
            channel.end(finished=True)
        except ValueError:
            channel.end(finished=False, reason="the coordinator's program failed; see its log")
            raise
        finally:
            channel.close()
    return path


def _take_up(store: CoordinatorStore, config: CoordinatorConfig) -> Plan:
    """Return the plan on disk if it is this one, or write down a new one."""
    known = store.plan()
    if known is None:
        plan = config.plan(secrets.token_hex(16))
        store.start(plan)
        _log.info("new run %s", plan.run)
        return plan
    if config.plan(known.run) != known:
        raise ValueError(
            f"nothing is overwritten; {str(config.out)!r} holds a run with another program, other settings, variables "
            "or clients: choose another out"
        )
    _log.info("resuming run %s", known.run)
    return known

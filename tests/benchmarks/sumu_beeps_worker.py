"""Mean causal effects by sumu's Gadget and Beeps, as a JSON-in, JSON-out worker process.

Run it with the interpreter that has sumu 0.1.2: it imports only sumu, numpy and the standard library. The request on
stdin: ``data`` (path of a comma-separated table with a header row), ``candidates`` (how many for each node),
``chains`` (tempered; the draws are those of the coldest), ``burn_in``, ``iterations``, ``thinning`` and ``seed``. The
reply is one JSON object on stdout: the mean effect of every variable (rows) on every other (columns), zero on the
diagonal, the share of drawn DAGs with each edge, and the CPU seconds.

All is sumu's own: its candidates, its prior ("fair"), DAGs by Gadget, and coefficients and effects by Beeps.
"""

import time
from importlib.metadata import version

import numpy as np
from answering import serve
from sumu import Data, Gadget
from sumu.beeps import beeps
from sumu_gadget_worker import TOLERANCE, edge_shares

# The most parents that sumu may take from outside the candidates; it has none to take where all others are candidates.
OUTSIDE = 2


def matrices(dags, n):
    """Return DAGs as Beeps wants them: a row for each node, with its parents."""
    found = np.zeros((len(dags), n, n), dtype=np.int8)
    for matrix, dag in zip(found, dags, strict=True):
        for node, *parents in dag:
            if parents:
                matrix[node, list(parents[0])] = 1
    return found


def answer(request):
    """Do what the request asks and return the reply."""
    values = np.loadtxt(request["data"], delimiter=",", skiprows=1)
    n = values.shape[1]
    # sumu draws from numpy's global generator, so seeding that one is the only way to repeat a run.
    np.random.seed(request["seed"])  # noqa: NPY002
    began = time.process_time()
    data = Data(values, discrete=False)
    gadget = Gadget(
        data=data, scoref="bge", K=request["candidates"], d=OUTSIDE, max_id=-1, tolerance=TOLERANCE,
        cp_algo="greedy-lite", mc3_chains=request["chains"],
        **{name: request[name] for name in ("burn_in", "iterations", "thinning")}
    )  # fmt: skip
    dags, _ = gadget.sample()
    effects = np.zeros((n, n))
    effects[~np.eye(n, dtype=bool)] = beeps(matrices(dags, n), data).mean(axis=0)
    seconds = time.process_time() - began
    return {
        "effects": effects.tolist(),
        "edges": edge_shares(dags, n).tolist(),
        "cpu_seconds": seconds,
        "dags": len(dags),
        "version": version("sumu"),
    }


if __name__ == "__main__":
    serve(answer)

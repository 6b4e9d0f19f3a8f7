"""Edge probabilities by sumu's Gadget, as a JSON-in, JSON-out worker process.

Run it with the interpreter that has sumu 0.1.2: it imports only sumu, numpy and the standard library. The request on
stdin: ``data`` (path of a comma-separated table with a header row), ``prior`` ("fair" or "uniform"), ``chains``
(coupled ones, each hotter than the next; 1 for a single plain chain), ``burn_in``, ``iterations``, ``thinning`` and
``seeds``. The reply is one JSON object on stdout: for each seed the share of drawn DAGs with each edge, and the CPU
seconds.

Every other node is a candidate parent, so that the space is that of all DAGs. This is all of Gadget, DAGs drawn within
partitions included; only the choice of candidates and of the prior is replaced, for Gadget's is always "fair".
"""

import time
from importlib.metadata import version

import numpy as np
from answering import serve
from sumu import Data, Gadget, LocalScore

# sumu's own default, which Gadget overwrites with nothing unless it is given.
TOLERANCE = 2.0**-32


class OpenGadget(Gadget):
    """Gadget over all DAGs, under the prior that is asked for."""

    prior = "fair"

    def _find_candidate_parents(self):
        self.l_score = LocalScore(self.data, scoref="bge", prior=self.prior, maxid=-1)
        self.C = {v: tuple(u for u in range(self.n) if u != v) for v in range(self.n)}
        self.C_array = np.array(list(self.C.values()), dtype=np.int32)


def edge_shares(dags, n):
    """Return the share of the DAGs with each edge; a DAG is a list of a node and, unless it has none, its parents."""
    counts = np.zeros((n, n))
    for dag in dags:
        for node, *parents in dag:
            if parents:
                counts[list(parents[0]), node] += 1
    return counts / len(dags)


def run(request, values, seed):
    """Run one seed; return its edge shares and CPU seconds."""
    # sumu draws from numpy's global generator, so seeding that one is the only way to repeat a run.
    np.random.seed(seed)  # noqa: NPY002
    began = time.process_time()
    gadget = OpenGadget(
        data=Data(values, discrete=False), scoref="bge", K=values.shape[1] - 1, d=1, max_id=-1, tolerance=TOLERANCE,
        mc3_chains=request["chains"], **{name: request[name] for name in ("burn_in", "iterations", "thinning")}
    )  # fmt: skip
    gadget.prior = request["prior"]
    dags, _ = gadget.sample()
    seconds = time.process_time() - began
    return {"edges": edge_shares(dags, values.shape[1]).tolist(), "cpu_seconds": seconds}


def answer(request):
    """Do what the request asks and return the reply."""
    if request["prior"] not in ("fair", "uniform"):
        raise ValueError(f"prior must be 'fair' or 'uniform'; received {request['prior']!r}")
    values = np.loadtxt(request["data"], delimiter=",", skiprows=1)
    return {"runs": [run(request, values, seed) for seed in request["seeds"]], "version": version("sumu")}


if __name__ == "__main__":
    serve(answer)

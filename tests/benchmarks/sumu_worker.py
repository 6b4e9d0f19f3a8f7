"""Time sumu's partition MCMC on fixed candidate parents, as a JSON-in, JSON-out worker process.

Run it with the interpreter that has sumu 0.1.2 installed: it imports only sumu, numpy and the standard
library. The request on stdin: ``data`` (path of a comma-separated table with a header row), ``candidates``
(one 0-based list per node, all of one length), ``steps``, ``burn_in``, ``seed`` and ``prior`` ("fair" or
"uniform"); optionally ``thin`` (keep every thin-th score of the trace; 1 when absent) and ``start`` (the
first partition, a list of blocks of 0-based nodes with the roots first; a random one of sumu's when absent).
The reply is one JSON object on stdout.

What is timed is sumu's own ``PartitionMCMC.sample``, called ``steps`` times after ``burn_in`` untimed calls.
sumu computes its score tables beforehand, untimed. Recording is one list append a step, well under 1 % of a
sumu step. sumu's optional counting of moves (``stats``) is off, which is in sumu's favour.

Two facts a reader of the figures should know. A step is a proposal, whether or not it is valid. And sumu
0.1.2 draws its split proposals with other probabilities than those it puts in the acceptance ratio (node sets
are drawn with replacement; from the first block only single nodes are split off), so the chain's stationary
law is not exactly the posterior.
"""

import time
from importlib.metadata import version

import numpy as np
from answering import serve
from sumu import CandidateRestrictedScore, Data, LocalScore, PartitionMCMC
from sumu.gadget import Score


def candidate_lists(request, n):
    """Check the candidate lists and put them in the two forms that sumu wants."""
    candidates = [tuple(sorted(int(u) for u in row)) for row in request["candidates"]]
    sizes = {len(row) for row in candidates}
    if len(candidates) != n or len(sizes) != 1:
        raise ValueError(
            f"there must be one candidate list per column, all of one length; "
            f"received {len(candidates)} lists of lengths {sorted(sizes)} for {n} columns"
        )
    return dict(enumerate(candidates)), np.array(candidates, dtype=np.int32)


def local_tables(data, prior, array):
    """Compute log S(node | subset of its candidates) + log prior, in sumu's bitmask order.

    sumu takes any prior but "fair" as uniform, so the name is checked here.
    """
    if prior not in ("fair", "uniform"):
        raise ValueError(f"prior must be 'fair' or 'uniform'; received {prior!r}")
    scores = LocalScore(Data(data, discrete=False), scoref="bge", prior=prior, maxid=-1)
    return scores.all_candidate_restricted_scores(array)


def build_chain(lists, array, tables, start=None):
    """Build one untempered chain whose space is exactly the candidate parent sets.

    ``Gadget`` also admits parent sets of up to d nodes from outside the candidates, unless every other node
    is a candidate; then it leaves ``c_c_score`` out. That same case is built here, with d = 0, for which sumu
    rejects a partition without scoring it when a node has no candidate in the block before its own.
    """
    restricted = CandidateRestrictedScore(tables, array, array.shape[1])
    score = Score(C=lists, score_array=tables, c_r_score=restricted, c_c_score=None)
    chain = PartitionMCMC(lists, score, d=0)
    if start is not None:
        chain.R = tuple({int(v) for v in block} for block in start)
        if not chain._valid(chain.R):
            raise ValueError(f"start must be a valid partition under the candidates; received {start}")
        chain.R_node_scores = chain._pi(chain.R)
        chain.R_score = sum(chain.R_node_scores)
    return chain


def run_chain(chain, burn_in, steps):
    """Return the log score of the partition after every timed step, and the CPU seconds of these steps."""
    sample = chain.sample
    for _ in range(burn_in):
        sample()
    trace = []
    append = trace.append
    start = time.process_time()
    for _ in range(steps):
        append(sample()[1])
    return np.array(trace), time.process_time() - start


def answer(request):
    """Do what the request asks and return the reply."""
    data = np.loadtxt(request["data"], delimiter=",", skiprows=1)
    lists, array = candidate_lists(request, data.shape[1])
    # sumu draws from numpy's global generator, so seeding that one is the only way to repeat a run.
    np.random.seed(request["seed"])  # noqa: NPY002
    start = time.process_time()
    tables = local_tables(data, request["prior"], array)
    chain = build_chain(lists, array, tables, request.get("start"))
    setup_seconds = time.process_time() - start
    first_score = chain.R_score
    trace, cpu_seconds = run_chain(chain, request["burn_in"], request["steps"])
    thin = request.get("thin", 1)
    return {
        "steps": request["steps"],
        "cpu_seconds": cpu_seconds,
        "setup_cpu_seconds": setup_seconds,
        "trace": trace[thin - 1 :: thin].tolist(),
        "thin": thin,
        "first_score": float(first_score),
        "last_partition": [sorted(int(v) for v in block) for block in chain.R],
        "moved_fraction": float(np.mean(np.diff(trace) != 0.0)),
        "empty_set_scores": tables[:, 0].tolist(),
        "full_set_scores": tables[:, -1].tolist(),
        "n_candidates": array.shape[1],
        "sumu_version": version("sumu"),
    }


if __name__ == "__main__":
    serve(answer)

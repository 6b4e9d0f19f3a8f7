"""Run causal-learn's searches, as a JSON-in, JSON-out worker process.

Run it with the interpreter that has causal-learn 0.1.4.8. The request on stdin: ``data`` (path of a comma-separated
table with a header row) and ``method`` ("pc-fisherz", "pc-kci", "pc-rcit", "ges-bic", "ges-cv" or "ges-marginal"). The
reply is one JSON object on stdout: the CPDAG (an undirected edge is set both ways) and the CPU seconds of the search.

All settings are causal-learn's own: the level 0.05 for PC, with Fisher's test of partial correlations, the kernel test
of conditional independence, or the randomised test that approximates it; for GES, BIC or generalised scores by
cross-validation or by marginal likelihood.
"""

import time
from importlib.metadata import version

import numpy as np
from answering import serve
from causallearn.search.ConstraintBased.PC import pc
from causallearn.search.ScoreBased.GES import ges

SCORES = {
    "ges-bic": "local_score_BIC",
    "ges-cv": "local_score_CV_general",
    "ges-marginal": "local_score_marginal_general",
}


def search(method, values):
    """Return the matrix of marks that causal-learn found."""
    if method.startswith("pc-"):
        return pc(values, indep_test=method.removeprefix("pc-"), show_progress=False).G.graph
    return ges(values, score_func=SCORES[method])["G"].graph


def as_cpdag(marks):
    """Return an adjacency: causal-learn marks the tail of an edge by -1 in the row of the node it leaves."""
    tail, joined = marks == -1, (marks != 0) & (marks.T != 0)
    return (tail & joined).astype(int)


def answer(request):
    """Do what the request asks and return the reply."""
    values = np.loadtxt(request["data"], delimiter=",", skiprows=1)
    np.random.seed(1)  # noqa: NPY002 - the randomised test draws from the global generator
    began = time.process_time()
    marks = search(request["method"], values)
    seconds = time.process_time() - began
    return {"cpdag": as_cpdag(np.asarray(marks)).tolist(), "cpu_seconds": seconds, "version": version("causal-learn")}


if __name__ == "__main__":
    serve(answer)

"""One graph by pgmpy's hill climbing, as a JSON-in, JSON-out worker process.

Run it with the interpreter that has pgmpy. The request on stdin: ``data`` (path of a comma-separated table with a
header row). The score is Gaussian BIC, all else as pgmpy has it by default. The reply: the CPDAG of the DAG found, and
the CPU seconds of the search.
"""

import time
import warnings
from importlib.metadata import version

import numpy as np
import pandas as pd
from answering import serve
from pgmpy.estimators import HillClimbSearch


def answer(request):
    """Do what the request asks and return the reply."""
    table = pd.read_csv(request["data"])
    began = time.process_time()
    dag = HillClimbSearch(table).estimate(scoring_method="bic-g", show_progress=False)
    seconds = time.process_time() - began
    pattern = dag.to_pdag()
    names = list(table)
    edges = np.zeros((len(names), len(names)), dtype=int)
    for first, second in pattern.directed_edges:
        edges[names.index(first), names.index(second)] = 1
    for first, second in pattern.undirected_edges:
        edges[names.index(first), names.index(second)] = edges[names.index(second), names.index(first)] = 1
    return {"cpdag": edges.tolist(), "cpu_seconds": seconds, "version": version("pgmpy")}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve(answer)

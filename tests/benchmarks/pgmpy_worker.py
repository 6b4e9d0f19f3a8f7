"""Time pgmpy's local scores, as a JSON-in, JSON-out worker process.

Run it with the interpreter that has pgmpy installed: it imports only pgmpy, pandas and the standard library. The
request on stdin: ``data`` (path of a comma-separated table of codes with a header row), ``cardinalities`` (levels by
column), ``score`` ("BIC", "K2" or "BDeu") and ``sets`` (pairs of a child and the list of its parents, by name). The
reply is one JSON object on stdout. What is timed is pgmpy's own ``local_score``, after one untimed call; one imagined
row for BDeu.
"""

import time
import warnings
from importlib.metadata import version

import pandas as pd
from answering import serve
from pgmpy import estimators


def answer(request):
    """Do what the request asks and return the reply."""
    states = {name: list(range(levels)) for name, levels in request["cardinalities"].items()}
    settings = {"equivalent_sample_size": 1} if request["score"] == "BDeu" else {}
    scorer = getattr(estimators, request["score"])(pd.read_csv(request["data"]), state_names=states, **settings)
    scorer.local_score(*request["sets"][0])
    start = time.process_time()
    scores = [float(scorer.local_score(child, tuple(parents))) for child, parents in request["sets"]]
    return {"scores": scores, "cpu_seconds": time.process_time() - start, "pgmpy_version": version("pgmpy")}


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    serve(answer)

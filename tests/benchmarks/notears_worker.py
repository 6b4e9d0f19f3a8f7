"""Time other programs' linear DAG learners, as a JSON-in, JSON-out worker process.

Run it with the interpreter that has gcastle 1.0.4, dagma 1.1.1 and lingam. The request on stdin: ``program``
("gcastle", "dagma" or "lingam"), ``data`` (path of an .npz file of arrays) and ``lambda1``. The reply is one JSON
list on stdout, an entry per array: the weights before any threshold, rows parents, and the CPU seconds of the fit.
"""

import time

import numpy as np
from answering import serve


def fit_gcastle(values, lambda1):
    """Fit the NOTEARS of gcastle, which thresholds by itself unless told not to."""
    from castle.algorithms.gradient.notears.linear import Notears

    learner = Notears(lambda1=lambda1, w_threshold=0.0)
    learner.learn(values)
    return np.asarray(learner.weight_causal_matrix)


def fit_dagma(values, lambda1):
    """Fit DAGMA without its threshold."""
    from dagma.linear import DagmaLinear

    return DagmaLinear(loss_type="l2").fit(values, lambda1=lambda1, w_threshold=0.0)


def fit_lingam(values, lambda1):
    """Fit DirectLiNGAM, which has no penalty; its rows are children."""
    import lingam

    learner = lingam.DirectLiNGAM()
    learner.fit(values)
    return learner.adjacency_matrix_.T


PROGRAMS = {"gcastle": fit_gcastle, "dagma": fit_dagma, "lingam": fit_lingam}


def answer(request):
    """Do what the request asks and return the reply."""
    fit = PROGRAMS[request["program"]]
    replies = []
    with np.load(request["data"]) as tables:
        for values in tables.values():
            began = time.process_time()
            weights = fit(values - values.mean(axis=0), request["lambda1"])
            seconds = time.process_time() - began
            replies.append({"weights": np.asarray(weights, dtype=float).tolist(), "cpu_seconds": seconds})
    return replies


if __name__ == "__main__":
    serve(answer)

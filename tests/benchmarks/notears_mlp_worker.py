"""One graph by gCastle's NOTEARS-MLP (Zheng et al., 2020), as a JSON-in, JSON-out worker process.

Run it with the interpreter that has gcastle 1.0.4 and torch. The request on stdin: ``data`` (path of a comma-separated
table with a header row). All is as gCastle has it by default: perceptrons of ten hidden units, penalties of 0.01, and a
threshold of 0.3. The reply: the edges of the graph found, as zeros and ones, and the CPU seconds of the fit.
"""

import time
from importlib.metadata import version

import numpy as np
import torch
from answering import serve
from castle.algorithms import NotearsNonlinear


def answer(request):
    """Do what the request asks and return the reply."""
    values = np.loadtxt(request["data"], delimiter=",", skiprows=1)
    torch.set_num_threads(1)
    torch.manual_seed(1)
    began = time.process_time()
    learner = NotearsNonlinear()
    learner.learn(values)
    seconds = time.process_time() - began
    edges = np.asarray(learner.causal_matrix) != 0
    return {"edges": edges.astype(float).tolist(), "cpu_seconds": seconds, "version": version("gcastle")}


if __name__ == "__main__":
    serve(answer)

"""Our own posterior, or bootstrap of PC, as a JSON-in, JSON-out worker process like those of other programs.

The request on stdin: ``data`` and ``held_out`` (paths of comma-separated tables with a header row), ``settings`` (of
`gpn.sample`), ``gp`` (settings of the GP score; null where they are the default or the score is another), ``effects``
(whether to answer with mean total effects) and ``predictive_draws`` (over how many DAGs to average the density of
held-out rows; null for all, 0 for no answer). The reply: edge probabilities, mean effects (rows causes), the mean log
density of a held-out row, and the CPU seconds of learning alone. With ``resamples``, the frequencies of edges in the
graphs that PC finds in as many resamples are the reply instead.
"""

import time
import warnings

import pandas as pd
from answering import serve

import gpn_bayes as gpn


def answer(request):
    """Do what the request asks and return the reply."""
    table, held_out = pd.read_csv(request["data"]), pd.read_csv(request["held_out"])
    began = time.process_time()
    if "resamples" in request:
        frequencies = gpn.bootstrap(
            gpn.estimators.PC(), table, n=request["resamples"], cores=1, random_seed=1, progressbar=False
        ).edge_probabilities()
        seconds = time.process_time() - began
        return {"edges": frequencies.to_numpy().tolist(), "cpu_seconds": seconds, "version": gpn.__version__}
    settings = request["settings"]
    if request["gp"]:
        settings = settings | {"score": gpn.scores.GP(**request["gp"])}
    with warnings.catch_warnings():
        # A run that hasn't converged within its draws is measured as it is.
        warnings.simplefilter("ignore", UserWarning)
        post = gpn.sample(table, progressbar=False, cores=1, random_seed=1, **settings)
    seconds = time.process_time() - began
    reply = {"edges": post.edge_probabilities().to_numpy().tolist(), "cpu_seconds": seconds, "version": gpn.__version__}
    if request["predictive_draws"] != 0 and len(held_out):
        density = post.log_predictive(held_out, draws=request["predictive_draws"], progressbar=False).log_density
        reply["log_predictive"] = float(density.mean())
    if request["effects"]:
        means = post.effects(progressbar=False).pivot_table(index="cause", columns="outcome", values="mean")
        reply["effects"] = means.reindex(index=table.columns, columns=table.columns).fillna(0.0).to_numpy().tolist()
    return reply


if __name__ == "__main__":
    serve(answer)

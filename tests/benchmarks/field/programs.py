"""The programs that are compared: their workers, what they are asked, and how their replies are read.

An environment variable names the interpreter of each; ours is the one that runs the benchmark. A program whose variable
isn't set doesn't take part. `environments.sh` makes the environments and prints the variables.
"""

import os
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from tests.benchmarks.field.measures import as_chances

WORKERS = Path(__file__).parents[1]
OURS = "ours"


class Program(NamedTuple):
    """A program with its settings.

    Attributes
    ----------
    title : str
        What tables call it.
    variable : str
        The environment variable that names its interpreter.
    worker : str
        The script that the interpreter runs, in the folder of benchmarks.
    request : callable
        From the number of variables, and whether relations are linear, to what it is asked.
    read : callable
        From its reply to edge probabilities.
    note : str
        What a reader of the tables must know of its settings.
    """

    title: str
    variable: str
    worker: str
    request: Callable[[int, bool], dict[str, Any]]
    read: Callable[[Mapping[str, Any]], Any]
    note: str


def interpreter(variable: str) -> str | None:
    """Return the interpreter of a program, or None where it isn't there."""
    return sys.executable if variable == OURS else os.environ.get(variable)


def _edges(reply: Mapping[str, Any]) -> Any:
    return reply["edges"]


def _graph(reply: Mapping[str, Any]) -> Any:
    return as_chances(np.array(reply["cpdag"]))


def _particles(reply: Mapping[str, Any]) -> Any:
    run = reply["runs"][0]
    if run["mixture"] is None:
        raise ValueError("no particle is acyclic")
    return run["mixture"]


def _ours(
    title: str, note: str, predictive_draws: int | None, gp: Mapping[str, Any] | None = None, **settings: Any
) -> Program:
    def request(n: int, linear: bool) -> dict[str, Any]:
        # Effects under Gaussian processes are curves: their slopes are another question than the total effect.
        effects = linear and settings["score"] == "bge"
        return {"settings": settings, "gp": gp, "effects": effects, "predictive_draws": predictive_draws}

    return Program(title, OURS, "gpn_worker.py", request, _edges, note)


def _causal_learn(title: str, method: str, note: str) -> Program:
    return Program(
        title, "CAUSAL_LEARN_PYTHON", "causal_learn_worker.py", lambda n, linear: {"method": method}, _graph, note
    )


def _dibs(title: str, model: str, note: str) -> Program:
    request = {"model": model, "particles": 20, "steps": 1000, "seeds": [1], "edges_per_node": 2, "obs_noise": 0.1}
    return Program(title, "DIBS_PYTHON", "dibs_worker.py", lambda n, linear: request, _particles, note)


def _sumu(n: int, linear: bool) -> dict[str, Any]:
    steps = {"chains": 16, "burn_in": 10_000, "iterations": 10_000, "thinning": 10}
    return {"candidates": min(n - 1, 10), "seed": 1} | steps


PROGRAMS = {
    "gpn-bge": _ours("gpn_bayes, BGe", '`prior="fair"`, all else as it comes', None, score="bge", prior="fair"),
    "gpn-bge-partition": _ours(
        "gpn_bayes, BGe, partition MCMC", 'the same with `sampler="partition"`', None,
        score="bge", prior="fair", sampler="partition",
    ),
    "gpn-gp": _ours(
        "gpn_bayes, GP", '`prior="fair"`, all else as it comes; densities of held-out rows average over 50 DAGs', 50,
        score="gp", prior="fair",
    ),
    "gpn-gp-either": _ours(
        "gpn_bayes, GP, linear or curved", 'the same with `GP(equations="linear or curved")`', 50,
        {"equations": "linear or curved"}, score="gp", prior="fair",
    ),
    "gpn-pc-boot": Program(
        "gpn_bayes, bootstrapped PC", OURS, "gpn_worker.py", lambda n, linear: {"resamples": 200}, _edges,
        "frequencies of edges in 200 resamples, of DAGs drawn from PC's equivalence classes",
    ),
    "sumu": Program(
        "sumu, Gadget and Beeps", "SUMU_PYTHON", "sumu_beeps_worker.py", _sumu, _edges,
        "BGe, its only prior (fair), up to ten candidates by its own search, 16 tempered chains of 20,000 steps, half"
        " of them burn-in, as in its documentation",
    ),
    "bidag": Program(
        "BiDAG, partition MCMC", "BIDAG_RSCRIPT", "bidag_worker.R", lambda n, linear: {"seed": 1}, _edges,
        "BGe, a uniform prior over DAGs, its defaults: candidate parents by PC at level 0.05 and iterative order MCMC,"
        " with up to one parent of each variable from outside them, and one chain of partition MCMC of 20,000 steps"
        " (20 n² log n from 20 variables on), a fifth of them burn-in",
    ),
    "dibs-bge": _dibs("DiBS, BGe", "bge", "20 particles, 1,000 steps, weighted (DiBS+), uniform prior"),
    "dibs-nn": _dibs(
        "DiBS, neural networks", "nonlinear",
        "20 particles, 1,000 steps, weighted (DiBS+), prior of two edges per variable, its default noise; without"
        " an answer where none of its particles is acyclic",
    ),
    "arco-gp": Program(
        "ARCO-GP", "ARCO_GP_PYTHON", "arco_gp_worker.py", lambda n, linear: {"max_parents": 2}, _edges,
        "commit a254884, its defaults: up to two parents, 400 steps, 100 orders",
    ),
    "pc-fisherz": _causal_learn("causal-learn, PC, Fisher z", "pc-fisherz", "level 0.05"),
    "pc-kci": _causal_learn("causal-learn, PC, kernel test", "pc-kci", "level 0.05"),
    "ges-bic": _causal_learn("causal-learn, GES, BIC", "ges-bic", "its defaults"),
    "notears-mlp": Program(
        "gCastle, NOTEARS-MLP", "GCASTLE_PYTHON", "notears_mlp_worker.py", lambda n, linear: {}, _edges,
        "its defaults: ten hidden units, penalties of 0.01, threshold 0.3",
    ),
    "pgmpy-hc": Program(
        "pgmpy, hill climbing, BIC", "PGMPY_PYTHON", "pgmpy_search_worker.py", lambda n, linear: {}, _graph,
        "Gaussian BIC, its defaults; the DAG is taken as its equivalence class",
    ),
    "bnlearn-tabu": Program(
        "bnlearn, tabu search, BIC", "RSCRIPT", "bnlearn_worker.R", lambda n, linear: {"bootstraps": 0}, _graph,
        "Gaussian BIC, its defaults; the DAG is taken as its equivalence class",
    ),
    "bnlearn-boot": Program(
        "bnlearn, bootstrapped tabu search", "RSCRIPT", "bnlearn_worker.R", lambda n, linear: {"bootstraps": 200},
        _edges,
        "frequencies of edges in the classes of 200 resamples (`boot.strength`)",
    ),
}  # fmt: skip

"""Run blocks of code, given as JSON on standard input, in order: Python in one namespace, bash in the same folder.

With the argument "small", the proteins of Sachs, the variables of random networks, parents, draws and resamples are
fewer, and no run goes on until it has converged.
"""

import json
import subprocess
import sys
from typing import Any

import pandas as pd

import gpn_bayes as gpn

FEW_DRAWS = {"draws": 200, "tune": 100, "sampler": gpn.samplers.Auto(thin=10), "space": gpn.Space(max_parents=2)}
FEW_PROTEINS = ["raf", "mek", "erk", "akt", "pka", "pkc", "p38", "jnk"]
# More than the exact sampler takes, so that pages about many variables do what they say.
FEW_VARIABLES = 18


def make_small() -> None:
    """Replace what takes long by what takes less, under the same names."""
    sachs, sample, random_dag = gpn.datasets.sachs, gpn.sample, gpn.simulate.random_dag

    def few_proteins(**settings: Any) -> pd.DataFrame:
        return sachs(**settings)[FEW_PROTEINS]

    def few_draws(data: Any, **settings: Any) -> gpn.GraphPosterior:
        return sample(data, **FEW_DRAWS | settings | {"until": None})

    def few_variables(n: int, **settings: Any) -> Any:
        return random_dag(min(n, FEW_VARIABLES), **settings)

    bootstrap = gpn.bootstrap

    def few_resamples(estimator: Any, data: Any, n: int, **settings: Any) -> Any:
        return bootstrap(estimator, data, n=min(n, 5), **settings)

    gpn.bootstrap = few_resamples
    gpn.datasets.sachs, gpn.sample, gpn.simulate.random_dag = few_proteins, few_draws, few_variables


def run_all(blocks: list[tuple[str, str, str]]) -> None:
    namespace: dict[str, Any] = {"__name__": "__main__"}
    for language, text, place in blocks:
        print(f"--- {place}", flush=True)
        if language == "python":
            exec(compile(text, f"<{place}>", "exec"), namespace)
        elif language == "bash":
            subprocess.run(["bash", "-euo", "pipefail", "-c", text], check=True, stdin=subprocess.DEVNULL)
        else:
            sys.exit(f"a block must be python or bash, to be run; received {language!r}")


if __name__ == "__main__":
    if sys.argv[1:] == ["small"]:
        make_small()
    run_all(json.load(sys.stdin))

"""Marginal likelihoods of numbers with Student t noise under a Gaussian process, by annealed particles.

``python -m tests.benchmarks.annealed_student out.csv`` appends a row for every run of a case that isn't there yet; they
are the reference of `tests/test_gp_student.py`. A run takes about half a minute of one core.
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

from tests.benchmarks.annealed_reference import one_run
from tests.latent_reference import STUDENT_CASES, student_case, student_log_likelihood

PARTICLES, RUNS = 512, 5


def run_of_case(number, run):
    """Return an estimate of the log marginal likelihood of one case."""
    table = student_case(*STUDENT_CASES[number])
    x, y = table[:, :-1], table[:, -1]
    distances = [(own[:, None] - own) ** 2 for own in x.T]

    def log_likelihood_of(processes, sigma):
        return student_log_likelihood(y, processes[..., 0], sigma[:, None])

    rng = np.random.default_rng([number, run])
    return one_run(log_likelihood_of, 1, distances, rng, largest_sigma=np.inf, particles=PARTICLES)


def main():
    """Append what is missing of the reference."""
    path = Path(sys.argv[1])
    known = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=["case", "run"])
    done = set(zip(known["case"], known["run"], strict=True))
    for run in range(RUNS):
        for number in range(len(STUDENT_CASES)):
            if (number, run) not in done:
                value = run_of_case(number, run)
                row = pd.DataFrame({"case": [number], "run": [run], "log_evidence": [round(value, 4)]})
                row.to_csv(path, mode="a", header=not path.exists(), index=False)


if __name__ == "__main__":
    main()

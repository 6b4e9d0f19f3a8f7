"""Scores with Student t noise against annealed particles, plain numpy and dense: about a minute of a core a run."""

import numpy as np
import pytest
from scipy import stats

from gpn_bayes.scores.gp.laplace import laplace_estimate
from tests.benchmarks.annealed_reference import one_run
from tests.latent_reference import STUDENT_CASES, student_case, student_log_likelihood
from tests.test_gp_student import estimate, student

PARTICLES, RUNS = 512, 6


def run_of_case(number, run):
    """Return an estimate of the log marginal likelihood of one case."""
    table = student_case(*STUDENT_CASES[number])
    x, y = table[:, :-1], table[:, -1]
    distances = [(own[:, None] - own) ** 2 for own in x.T]

    def log_likelihood_of(processes, sigma):
        return student_log_likelihood(y, processes[..., 0], sigma[:, None])

    rng = np.random.default_rng([number, run])
    return one_run(log_likelihood_of, 1, distances, rng, largest_sigma=np.inf, particles=PARTICLES)


@pytest.mark.slow
@pytest.mark.parametrize("number", range(len(STUDENT_CASES)))
def test_evidence_is_that_of_annealed_particles(number):
    logs = np.array([run_of_case(number, run) for run in range(RUNS)])
    shares = np.exp(logs - logs.max())
    expected = logs.max() + np.log(shares.mean())
    error = shares.std(ddof=1) / shares.mean() / np.sqrt(RUNS)
    posterior = student(student_case(*STUDENT_CASES[number]))
    found = estimate(posterior)
    print(f"annealed {expected:.3f} +- {error:.3f}, importance {found.value:.3f} +- {found.error:.3f}, runs {logs}")
    # As probable as four standard errors would be if the reference's were known.
    bound = stats.t(RUNS - 1).ppf(stats.norm.cdf(4)) * np.hypot(error, found.error)
    assert found.status == "ok"
    assert found.error < 0.03
    assert abs(found.value - expected) < min(bound, 1.0)
    # The proposal score is closer than two nats, though the first row may be followed or not.
    assert abs(laplace_estimate(posterior.find_modes()).value - expected) < 2.0

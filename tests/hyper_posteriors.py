"""Posteriors of hyperparameters with known integrals: those of the reference data, and mixtures made by hand."""

import functools
import json
from pathlib import Path

import numpy as np
from scipy.stats import multivariate_normal

from gpn_bayes.scores.gp.basis import Basis
from gpn_bayes.scores.gp.low_rank import LowRankPosterior
from gpn_bayes.scores.gp.modes import Modes
from gpn_bayes.scores.gp.priors import HyperPriors

REFERENCE = Path(__file__).parent / "reference" / "gp"
_ENTRIES = [entry for entry in json.loads((REFERENCE / "gp_truth.json").read_text())["scores"] if entry["parents"]]
# The log score of every node and its parents, and its standard error (a grid's is below 0.002).
KNOWN = {(entry["node"], tuple(entry["parents"])): entry["log_score"] for entry in _ENTRIES}
KNOWN_ERROR = {(entry["node"], tuple(entry["parents"])): entry.get("std_error", 0.001) for entry in _ENTRIES}


@functools.cache
def _basis():
    table = np.loadtxt(REFERENCE / "fourier_n4_N100_seed101.csv", delimiter=",", skiprows=1)
    return Basis((table - table.mean(axis=0)) / table.std(axis=0, ddof=1))


@functools.cache
def reference_posterior(node, parents):
    """Return a posterior of the reference data, and its modes."""
    posterior = LowRankPosterior(_basis().moments(node, parents), HyperPriors().for_parents(len(parents)))
    return posterior, posterior.find_modes()


def estimates_of_reference(estimate, seed):
    """Return by how much estimates of all reference scores are off, and their errors, given a random generator each."""
    rngs = np.random.default_rng(seed).spawn(len(KNOWN))
    found = [estimate(*reference_posterior(*key), rng) for key, rng in zip(KNOWN, rngs, strict=True)]
    off = np.array([each.value for each in found]) - np.array(list(KNOWN.values()))
    return off, np.hypot([each.error for each in found], list(KNOWN_ERROR.values())), found


class KnownPosterior:
    """A mixture of normals, one left and one right of the middle, times exp(log_integral)."""

    log_integral = -123.4

    def __init__(self, size, shares=(0.7, 0.3), distance=2.0):
        self.priors = HyperPriors().for_parents(size - 1)
        self.shares = np.array(shares)
        steps = np.linspace(1.0, 0.4, size)
        self.centres = np.array([0.1 - 0.5 * distance * steps, 0.1 + 0.5 * distance * steps])
        spread = np.random.default_rng(size).normal(size=(2, size, 2 * size))
        self.covariances = 0.3 * spread @ spread.transpose(0, 2, 1) / (2 * size)
        self.parts = [multivariate_normal(c, s) for c, s in zip(self.centres, self.covariances, strict=True)]

    def log_densities(self, points):
        logs = [np.log(share) + part.logpdf(points) for share, part in zip(self.shares, self.parts, strict=True)]
        return self.log_integral + np.atleast_1d(np.logaddexp(*logs))

    def modes(self):
        """Return the modes, nearly."""
        heights = self.log_densities(self.centres)
        order = np.argsort(-heights)
        return Modes(self.centres[order], heights[order], np.linalg.inv(self.covariances)[order])

    def draw(self, count, rng, shares=None, chains=2):
        """Draw independently, or each chain within one part if `shares` is "stuck"."""
        each = -(-count // chains)
        if isinstance(shares, str):
            side = np.repeat(np.arange(chains)[:, None] % 2, each, axis=1)
        else:
            side = (rng.random((chains, each)) > (self.shares if shares is None else shares)[0]).astype(int)
        roots = np.linalg.cholesky(self.covariances)
        normal = rng.standard_normal((chains, each, self.centres.shape[1], 1))
        return self.centres[side] + (roots[side] @ normal)[..., 0]

"""A score whose truth is known, BGe, with errors put on it and a rough proposal; for the tests of reweighting."""

import threading

import numpy as np
from scipy.special import logsumexp

from gpn_bayes.scores.base import Score, ScoreBatch, Scorer
from gpn_bayes.scores.bge import BGe
from tests.draws import DAGS


def deviate(seed, node, parents):
    """Return a standard normal deviate that belongs to a node and its parents."""
    return np.random.default_rng([seed, node, *(p + 1 for p in parents)]).normal()


class Noisy(Score):
    """BGe plus noise of a given size, said to have errors of a given size; `act` is called before every batch."""

    def __init__(self, label="noisy", noise=0.0, error=0.0, rough=0.5, seed=1, status="ok", act=None):
        self.name = label
        self.noise, self.error, self.rough, self.seed, self.status = noise, error, rough, seed, status
        self.act = act

    @property
    def parameters(self):
        return {"noise": self.noise, "error": self.error, "rough": self.rough, "seed": self.seed, "status": self.status}

    def _bind(self, data):
        return NoisyScorer(self, BGe()._bind(data))


class NoisyScorer(Scorer):
    """Scores of `Noisy`; remembers what it computed."""

    def __init__(self, score, bge):
        super().__init__(score, bge.names, bge.data_fingerprint)
        self.score, self.bge = score, bge
        self.scored, self.guard = [], threading.Lock()

    def score_sets(self, node, parent_sets):
        if self.score.act is not None:
            self.score.act(len(self.scored))
        with self.guard:
            self.scored += [(node, parents) for parents in parent_sets]
        values = self.bge.score_sets(node, parent_sets).values
        values = values + [self.score.noise * deviate(self.score.seed, node, parents) for parents in parent_sets]
        count = len(parent_sets)
        return ScoreBatch(values, np.full(count, self.score.error), np.full(count, np.nan), [self.score.status] * count)

    def proposal(self):
        if self.score.rough == 0:
            return None
        return NoisyScorer(Noisy("rough", noise=self.score.rough, error=np.nan, rough=0, seed=99), self.bge)


def edge_probabilities(scorer):
    """Return edge probabilities by enumeration of all DAGs."""
    log_p = np.array([scorer.total(dag) for dag in DAGS])
    return np.einsum("d,dij->ij", np.exp(log_p - logsumexp(log_p)), DAGS)

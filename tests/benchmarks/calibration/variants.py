"""What is calibrated: models, samplers and kinds of rows; and scores that are wrong on purpose."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd

import gpn_bayes as gpn
from gpn_bayes import graphs
from gpn_bayes.data import Data, RowMoments
from gpn_bayes.scores.base import Score
from gpn_bayes.scores.bge import BGe, BGeScorer
from tests.benchmarks.calibration.claims import claims_of
from tests.benchmarks.calibration.models import SET, UNCHANGED, Curved, Discrete, Linear, LinearOrCurved, Model
from tests.benchmarks.paper import draw
from tests.benchmarks.prior_networks import uniform_dag

# Shares of rows: of two experiments, and of those in which variables were only observed.
_SHARES = {2: 0.5, 1: 0.25, 0: 0.25}
# The prior probability that an experiment changed a variable, where it isn't known.
_CHANGED = 0.3
# The share of values that are missing, completely at random.
_MISSING = 0.15


@dataclass(frozen=True)
class Variant:
    """Networks of one model, and how their posteriors are drawn.

    Attributes
    ----------
    model : callable
        Makes the model.
    rows : int
        Rows of each table.
    networks : int
        How many networks there are.
    prior : {"uniform", "fair"}
        The prior over DAGs.
    experiments : {"", "perfect", "soft", "unknown"}
        What happened in some of the rows.
    missing : bool
        Whether values are missing.
    score : callable
        Makes the score of a model; the right one by default.
    settings : dict
        Further arguments of `gpn.sample`.
    wrong : bool
        Whether the score isn't that of the model: a negative control.
    """

    model: Callable[[], Model]
    rows: int
    networks: int
    prior: str = "uniform"
    experiments: str = ""
    missing: bool = False
    score: Callable[[Model], Score] = lambda model: model.score()
    settings: dict[str, Any] = field(default_factory=dict)
    wrong: bool = False

    @property
    def source(self) -> tuple[str, int]:
        """What networks are drawn from, and their size: with the same prior and rows, they are the same networks."""
        model = self.model()
        return f"{model.stream}{self.experiments}", model.n

    def claims(self, seed: int, scores: Path | None = None) -> pd.DataFrame:
        """Return the claims of a posterior about one network, the same for all variants of a model and its rows.

        Parameters
        ----------
        seed : int
            The number of the network.
        scores : path, optional
            A folder for slow scores, which variants of the same score and networks share.
        """
        model = self.model()
        source, n = self.source
        rng = np.random.default_rng([seed, crc32(source.encode()), n])
        dag = _drawn_dag(model.n, self.prior, rng)
        versions, reading = np.full((self.rows, model.n), UNCHANGED), {}
        known: dict[str, Any] = {}
        if self.experiments:
            versions, reading, known = _experiments(self.experiments, self.rows, model.names, rng)
        network = model.network(dag, versions, rng)
        if self.missing:
            known["complete"] = network.data
            network = network._replace(data=_with_gaps(network.data, rng))
        score = self.score(model)
        settings = {"random_seed": seed, "draws": 500, "cores": 1, "prior": self.prior} | reading | self.settings
        if scores is not None and isinstance(model, Curved):
            kind = crc32(repr((self.source, self.rows, score.fingerprint)).encode())
            settings["cache"] = scores / f"{kind:08x}_{seed}.sqlite"
        post, _ = draw(network.data, score, **settings)
        # The true DAG has a score of its own in each completed table, and the prior is no part of any.
        scored = not self.missing and self.prior == "uniform"
        with warnings.catch_warnings():
            # Of few rows two columns may be identical, which the draws have been warned of.
            warnings.simplefilter("ignore", UserWarning)
            scorer = score.bind(network.data, **reading) if scored else None
        return claims_of(network, model, post, scorer, seed, **known)


def _drawn_dag(n: int, prior: str, rng: np.random.Generator) -> np.ndarray:
    if prior == "uniform":
        dag = uniform_dag(n, rng)
        return graphs.as_adjacency(dag, list(dag))
    dags = graphs.enumerate_dags(n)
    # Each number of parents of a node weighs the same, however many sets have it.
    sets = np.array([1.0])
    for k in range(1, n):
        sets = np.append(sets, sets[-1] * (n - k) / k)
    weights = (1 / sets[dags.sum(axis=1)]).prod(axis=1)
    return dags[rng.choice(len(dags), p=weights / weights.sum())]


def _experiments(
    kind: str, rows: int, names: list[str], rng: np.random.Generator
) -> tuple[np.ndarray, dict[str, Any], dict[str, Any]]:
    """Return the equation behind each entry, the settings that the package gets, and the truth kept from it."""
    n = len(names)
    experiment = np.repeat(list(_SHARES), [round(share * rows) for share in _SHARES.values()])
    versions = np.full((rows, n), UNCHANGED)
    if kind == "unknown":
        changed = pd.DataFrame(rng.random((2, n)) < _CHANGED, ["1", "2"], names)
        for k, own in enumerate(changed.to_numpy(), start=1):
            versions[np.ix_(experiment == k, own)] = k
        contexts = ["" if k == 0 else str(k) for k in experiment]
        return versions, {"contexts": contexts, "target_probability": _CHANGED}, {"changed": changed}
    chosen = rng.choice(n, 2, replace=False)
    for k, node in enumerate(chosen, start=1):
        versions[experiment == k, node] = SET if kind == "perfect" else k
    targets = ["" if k == 0 else names[chosen[k - 1]] for k in experiment]
    return versions, {"targets": targets, "intervention": kind}, {}


def _with_gaps(data: pd.DataFrame, rng: np.random.Generator) -> pd.DataFrame:
    """Return a table of which some values are missing; which ones depends on nothing."""
    while not (gaps := rng.random(data.shape) < _MISSING).any():
        pass
    return data.mask(gaps)


class WrongConstant(BGe):
    """BGe on data as they are, of which one constant is wrong: some nats too many for each parent."""

    name = "wrong constant"

    def __init__(self, nats: float) -> None:
        super().__init__(standardise=False)
        self.nats = nats

    @property
    def parameters(self) -> dict[str, Any]:
        return super().parameters | {"nats": self.nats}

    def _bind(self, data: Data | RowMoments) -> BGeScorer:
        scorer = super()._bind(data)
        scorer.constants = scorer.constants + self.nats * np.arange(len(scorer.constants))
        return scorer


def _bdeu(n: int) -> Callable[[], Model]:
    return lambda: Discrete(n, 4.0)


def _linear(n: int) -> Callable[[], Model]:
    return lambda: Linear(n)


def _curved(n: int) -> Callable[[], Model]:
    return lambda: Curved(n)


def _gp(**settings: Any) -> Callable[[Model], Score]:
    return lambda model: gpn.scores.GP(standardise=False, **{"sigma": (3.0, 1.0)} | settings)


_PARTITION = {"sampler": "partition", "draws": 400, "tune": 200}
_DIRECT = {"sampler": gpn.samplers.Exact(reweight=None)}
_IMPUTED = {"missing": "impute", "draws": 200, "tune": 100}

VARIANTS = {
    "BGe, exact, n = 4": Variant(_linear(4), 30, 1000),
    "BGe, exact, n = 5": Variant(_linear(5), 30, 600),
    "BGe, exact, n = 6": Variant(_linear(6), 30, 400),
    "BGe, exact, fair prior, n = 4": Variant(_linear(4), 30, 500, prior="fair"),
    "BGe, partition, n = 5": Variant(_linear(5), 30, 400, settings=_PARTITION),
    "BGe, order, corrected, n = 5": Variant(
        _linear(5), 30, 400, settings=_PARTITION | {"sampler": gpn.samplers.Order(bias="correct")}
    ),
    "BGe, perfect interventions, n = 4": Variant(_linear(4), 40, 500, experiments="perfect"),
    "BGe, soft interventions, n = 4": Variant(_linear(4), 40, 500, experiments="soft"),
    "BGe, unknown targets, n = 4": Variant(_linear(4), 40, 500, experiments="unknown"),
    "BGe, imputed, n = 4": Variant(_linear(4), 30, 400, missing=True, settings=_IMPUTED),
    "BDeu, exact, n = 4": Variant(_bdeu(4), 60, 600),
    "BDeu, exact, n = 5": Variant(_bdeu(5), 60, 400),
    "BDeu, partition, n = 5": Variant(_bdeu(5), 60, 300, settings=_PARTITION),
    "BDeu, soft interventions, n = 4": Variant(_bdeu(4), 80, 400, experiments="soft"),
    "BDeu, imputed, n = 4": Variant(_bdeu(4), 60, 300, missing=True, settings=_IMPUTED),
    "K2, exact, n = 4": Variant(lambda: Discrete(4, None), 60, 400),
    "GP, reweighted, n = 4": Variant(_curved(4), 60, 600),
    "GP, importance alone, n = 4": Variant(_curved(4), 60, 200, settings=_DIRECT),
    "GP, bridge alone, n = 4": Variant(
        _curved(4), 60, 200, score=_gp(estimator="bridge"), settings=_DIRECT
    ),
    "GP, Laplace alone, n = 4": Variant(_curved(4), 60, 200, score=_gp(estimator="laplace")),
    "GP, linear or curved, n = 4": Variant(lambda: LinearOrCurved(4), 60, 200),
    "BGe with a wrong constant, n = 4": Variant(
        _linear(4), 30, 1000, score=lambda model: WrongConstant(0.5), wrong=True
    ),
    "BGe with a wrong prior, n = 4": Variant(
        _linear(4), 30, 1000, score=lambda model: BGe(alpha_w=model.n + 6, standardise=False), wrong=True
    ),
    "BDeu with a wrong sample size, n = 4": Variant(
        _bdeu(4), 60, 600,
        score=lambda model: gpn.scores.BDeu(16.0, dict(zip(model.names, model.levels, strict=True))),
        wrong=True,
    ),
    "GP with a wrong prior, n = 4": Variant(_curved(4), 60, 200, score=_gp(theta=(2.0, 8.0)), wrong=True),
    "GP, curved though half are linear, n = 4": Variant(lambda: LinearOrCurved(4), 60, 200, score=_gp(), wrong=True),
}  # fmt: skip

"""Networks that no score's model generates, and variants of scores that might do better on them.

Four variables, 60 rows, uniform DAGs, the exact sampler: what a posterior says is then a matter of the score alone.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pandas as pd
from scipy.special import logsumexp

import gpn_bayes as gpn
from gpn_bayes import graphs
from gpn_bayes.data import Dataset
from gpn_bayes.scores.base import Score, ScoreBatch, Scorer
from tests.benchmarks.calibration.claims import claims_of_structure
from tests.benchmarks.calibration.models import UNCHANGED, Curved
from tests.benchmarks.calibration.uniformity import nats_per_edge, reliability
from tests.benchmarks.field.data import WRONG, rows_of
from tests.benchmarks.paper import draw
from tests.benchmarks.prior_networks import uniform_dag

N, ROWS, NETWORKS, DRAWS = 4, 60, 300, 1000
RESULTS = Path(__file__).with_name("wrong_models.csv")
# The GP score's own prior, whose rows are standardised afterwards, as those of any table are by default.
PRIOR = "prior, standardised"
FAMILIES = (PRIOR, "linear", "fourier", "mlp", "gp", *WRONG)


class Averaged(Score):
    """An average of scores: the equation of every variable is of one of several kinds, all as probable in advance.

    Parameters
    ----------
    parts : dict
        For each kind a score of standardised rows, with the unit in which it takes them.
    """

    name = "averaged"

    def __init__(self, parts: Mapping[str, tuple[Score, float]]) -> None:
        self.parts = dict(parts)

    @property
    def parameters(self) -> dict[str, Any]:
        return {name: [score.parameters, unit] for name, (score, unit) in self.parts.items()}

    def _bind(self, data: Any) -> Scorer:
        return AveragedScorer(self, data)


class AveragedScorer(Scorer):
    """Scores of `Averaged`."""

    default_max_parents = 5

    def __init__(self, score: Averaged, data: Dataset) -> None:
        super().__init__(score, data.names, data.fingerprint)
        values = data.standardised("an average of scores")
        units = np.array([unit for _, unit in score.parts.values()])
        # A density of rows divided by a unit is one of the rows themselves times the unit for each.
        self.log_units = -len(values) * np.log(units)
        self.parts = [own.bind(values / unit) for own, unit in score.parts.values()]

    def score_sets(self, node: int, parent_sets: Sequence[tuple[int, ...]]) -> ScoreBatch:
        batches = [part.score_sets(node, parent_sets) for part in self.parts]
        values = np.array([batch.values for batch in batches]) + self.log_units[:, None]
        total = logsumexp(values, axis=0)
        shares = np.exp(values - total)
        errors = np.sqrt((shares**2 * np.array([batch.errors for batch in batches]) ** 2).sum(axis=0))
        k_hats = np.fmax.reduce([batch.k_hats for batch in batches])
        return ScoreBatch(total - np.log(len(batches)), errors, k_hats, ["ok"] * len(parent_sets))


def amplitudes(values: Sequence[float] = (0.25, 0.5, 1.0, 2.0)) -> Averaged:
    """Return Gaussian processes whose functions have a standard deviation that isn't 1 but one of several.

    Where functions have standard deviation a, rows divided by a have functions of standard deviation 1, and priors of
    noise, mean and length scales in their units: so the score at every a is one that the package has.
    """
    return Averaged(
        {
            f"{a:g}": (gpn.scores.GP(standardise=False, sigma=(1.0, 1 / a), theta=(2.0, 2 / a), mu=(0.0, 1 / a)), a)
            for a in values
        }
    )


SCORES: dict[str, Callable[[], Score]] = {
    "GP": gpn.scores.GP,
    "GP, light-tailed noise prior": lambda: gpn.scores.GP(sigma=(3.0, 1.0)),
    "GP, amplitudes": amplitudes,
    "GP, Student noise": lambda: gpn.scores.GP(noise="student"),
    "BGe": gpn.scores.BGe,
    "linear or curved": lambda: gpn.scores.GP(equations="linear or curved"),
}


@dataclass(frozen=True)
class WrongModel:
    """Networks of a family under a score; kept as `running.claims_of_variant` keeps them.

    Attributes
    ----------
    family, score : str
        One of `FAMILIES`, and of `SCORES`.
    networks : int
        How many networks there are, the same under all scores.
    """

    family: str
    score: str
    networks: int = NETWORKS

    def claims(self, seed: int, scores: Path | None = None) -> pd.DataFrame:
        """Return the claims about edges, paths and pairs of one network; slow scores aren't kept."""
        dag, table = network(self.family, seed)
        post, _ = draw(table, SCORES[self.score](), random_seed=seed, draws=DRAWS, cores=1, prior="uniform")
        return claims_of_structure(dag, post, seed)


def network(family: str, seed: int) -> tuple[np.ndarray, pd.DataFrame]:
    """Return a DAG and its rows."""
    rng = np.random.default_rng([seed, crc32(family.encode())])
    drawn = uniform_dag(N, rng)
    dag = graphs.as_adjacency(drawn, list(drawn))
    if family == PRIOR:
        model = Curved(N, (1.0, 1.0))
        return dag, model.network(dag, np.full((ROWS, N), UNCHANGED), rng).data
    return dag, rows_of(family, drawn, ROWS, rng)


def summary(claims: pd.DataFrame) -> dict[str, Any]:
    """Return how good the edge probabilities of one family and score are, as a row of a table.

    Its columns are the number of networks; Brier and logarithmic scores, means over edges, of the probabilities and of
    stating the base rate of every edge; the nats that edges lack, with their error; and the reliability diagram, as
    text that `points` reads.
    """
    edges = claims[claims["kind"] == "edge"]
    held = edges["held"].to_numpy()
    # As much as one draw more of either outcome: no share of draws is certain.
    stated = (edges["stated"].to_numpy() * DRAWS + 0.5) / (DRAWS + 1)
    base = held.mean()
    lacking = nats_per_edge(claims)
    diagram = reliability(claims, "edge")[["stated", "held", "error"]].to_numpy()
    return {
        "networks": claims["network"].nunique(),
        "brier": float(np.mean((stated - held) ** 2)),
        "brier_base": float(base * (1 - base)),
        "log_score": float(np.mean(np.where(held == 1, np.log(stated), np.log1p(-stated)))),
        "log_score_base": float(base * np.log(base) + (1 - base) * np.log1p(-base)),
        "nats": lacking.value,
        "nats_error": lacking.error,
        "reliability": ";".join(":".join(f"{value:.3f}" for value in point) for point in diagram),
    }

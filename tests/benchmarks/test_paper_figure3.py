"""Figure 3: reverse KL divergence from draws to the enumerated posterior over all 543 DAGs of four nodes.

The posterior to meet has bridge-sampled scores, made with other random numbers than the scores that weight the draws.
"weighted" is partition MCMC under Laplace's approximation with importance weights, "laplace" the same draws without
them, "direct" draws under the accurate score itself, "bge" draws under BGe. Run with
``pytest -m slow -s tests/benchmarks/test_paper_figure3.py``.
"""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes import graphs, metrics
from gpn_bayes.scores.cache import ScoreCache
from tests.benchmarks.paper import draw, log_totals, mean_of, random_network, shares_of, show

pytestmark = pytest.mark.slow

DATA_SETS, CHAINS = 20, 4
DRAWS = (25, 100, 400, 1600, 6400)
DAGS = graphs.enumerate_dags(4)
TRUTH = gpn.scores.GP(estimator="bridge", seed=7)


def data_set(seed: int) -> pd.DataFrame:
    """Return data from a random network of four nodes with curved relations."""
    return random_network(seed, 4, 0.5, 100, 1.0)[1]


def divergences(data: pd.DataFrame, cache: Path) -> pd.DataFrame:
    """Return KL(draws || posterior) of every kind of draws, rows by the number of draws."""
    log_p = log_totals(ScoreCache(TRUTH.bind(data)).get, DAGS)
    common = {"sampler": "partition", "draws": DRAWS[-1], "chains": CHAINS}
    weighted, _ = draw(data, "gp", cache=cache, **common)
    direct, _ = draw(data, "gp", cache=cache, **common | {"sampler": gpn.samplers.Partition(reweight=None)})
    bge, _ = draw(data, "bge", **common)
    rows = {}
    for count in DRAWS:
        shares = {
            "weighted": shares_of(weighted, DAGS, count),
            "laplace": shares_of(weighted, DAGS, count, weighted=False),
            "direct": shares_of(direct, DAGS, count),
            "bge": shares_of(bge, DAGS, count),
        }
        with np.errstate(divide="ignore"):
            rows[CHAINS * count] = {kind: metrics.reverse_kl(np.log(q), log_p) for kind, q in shares.items()}
    return pd.DataFrame(rows).T


@pytest.fixture(scope="module")
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[int, pd.DataFrame]:
    folder = tmp_path_factory.mktemp("scores")
    return {seed: divergences(data_set(seed), folder / f"{seed}.sqlite") for seed in range(DATA_SETS)}


def test_weighted_draws_come_closest(found: dict[int, pd.DataFrame]) -> None:
    stacked = pd.concat(found, names=["data set", "draws"])
    show(f"Figure 3, mean over {DATA_SETS} data sets", stacked.groupby("draws").mean(), digits=4)
    show("Figure 3, standard errors of these", stacked.groupby("draws").sem(), digits=4)
    at_end = stacked.xs(CHAINS * DRAWS[-1], level="draws")
    show("Figure 3, quartiles at the end", at_end.describe(), digits=4)
    for other in ("laplace", "bge"):
        # Divergences differ by orders of magnitude between data sets: compare their logs.
        gap = mean_of(np.log(at_end[other] / at_end["weighted"]))
        assert gap.value > 4 * gap.error, f"{other}: {gap}"


def test_weights_cost_no_more_than_the_draws_they_take(found: dict[int, pd.DataFrame]) -> None:
    """Draws under the accurate score itself have only their number against them; weights must come near that."""
    at_end = pd.concat(found, names=["data set", "draws"]).xs(CHAINS * DRAWS[-1], level="draws")
    assert mean_of(at_end["weighted"]).value < 2 * mean_of(at_end["direct"]).value


def test_only_the_weighted_draws_go_on_towards_the_posterior(found: dict[int, pd.DataFrame]) -> None:
    few, many = CHAINS * DRAWS[-2], CHAINS * DRAWS[-1]
    for table in found.values():
        assert table.loc[many, "weighted"] < 0.5 * table.loc[few, "weighted"]
    floors = mean_of([table.loc[many, "bge"] / table.loc[few, "bge"] for table in found.values()])
    assert floors.value > 0.8

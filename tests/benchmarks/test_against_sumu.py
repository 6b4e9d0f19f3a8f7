"""Steps and effective samples per CPU second, side by side with sumu 0.1.2 in one run.

Needs an interpreter that has sumu: give its path in ``SUMU_PYTHON``, or let this file make a virtual environment with
Python 3.11 or 3.12 from the package index. Run with ``pytest -m slow -s tests/benchmarks/test_against_sumu.py``.

Target and space are the same for both: BGe, the "fair" prior, and for each node eight candidates, chosen by one of two
rules: the strongest partial correlations, or the strongest plain ones, among which the best networks score far lower. A
step is one proposal, accepted or not. The posterior within such candidates has many deep modes, and no single chain of
either program visits all of them: the effective size of the log score is that within a chain, wherever it settled, and
R-hat over the chains stands next to it. A chain that hardly moves can have a large effective size.
"""

import json
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from arviz_stats.base import array_stats

from gpn_bayes.mcmc import chains, order
from gpn_bayes.mcmc.choices import Chance
from gpn_bayes.mcmc.tables import ScoreTables, build_tables
from gpn_bayes.scores import BGe, GraphPrior

pytestmark = pytest.mark.slow

HERE = Path(__file__).parent
DATA = HERE.parent / "reference" / "bge"
CANDIDATES = 8
SEEDS = range(4)
SUMU_STEPS, SUMU_BURN_IN = 150_000, 30_000
DRAWS, TUNE, THIN = 3000, 1000, 500


@pytest.fixture(scope="session")
def sumu_python(tmp_path_factory: pytest.TempPathFactory) -> str:
    given = os.environ.get("SUMU_PYTHON")
    if given:
        return given
    base = shutil.which("python3.12") or shutil.which("python3.11")
    if base is None:
        pytest.skip("sumu needs Python 3.11 or 3.12; set SUMU_PYTHON")
    folder = tmp_path_factory.mktemp("sumu")
    subprocess.run([base, "-m", "venv", str(folder)], check=True)
    subprocess.run([str(folder / "bin" / "pip"), "install", "-q", "sumu==0.1.2"], check=True)
    return str(folder / "bin" / "python")


def strongest_candidates(data: pd.DataFrame, rule: str) -> list[list[int]]:
    strength = np.corrcoef(data.to_numpy(), rowvar=False)
    if rule == "partial":
        strength = np.linalg.inv(strength)
        scale = np.sqrt(np.diag(strength))
        strength = strength / np.outer(scale, scale)
    strength = np.abs(strength)
    np.fill_diagonal(strength, 0)
    return [sorted(np.argsort(-column)[:CANDIDATES].tolist()) for column in strength.T]


def tables_for(data: pd.DataFrame, candidates: list[list[int]]) -> tuple[ScoreTables, list[np.ndarray]]:
    scorer = BGe().bind(data)
    prior = GraphPrior(scorer.names, "fair")
    scores = [scorer.table(i, own) + prior.log_table(i, own) for i, own in enumerate(candidates)]
    return build_tables(candidates, scores), scores


def run_ours(tables: ScoreTables, sampler: str, seed: int) -> tuple[float, np.ndarray]:
    """Return the CPU seconds of one chain and the log scores of its partitions or orders."""
    n = len(tables.layout)
    rng = np.random.default_rng(seed)
    if sampler == "order":
        state, run, mix = order.new_order(tables, rng.permutation(n)), chains.run_order, order.DEFAULT_MIX
    else:
        state = chains.start_partition(Chance(rng), tables, rng.permutation(n))
        run, mix = chains.run_partition, chains.PARTITION_MIX

    def block(draws: int, thin: int) -> np.ndarray:
        words, targets = np.zeros((draws, n, 1), np.uint64), np.empty(draws)
        counters = np.zeros((len(mix), 2), np.int64)
        run(Chance(rng), tables, state, mix, thin, words, np.empty(draws), targets, counters)
        return targets

    block(1, 10)  # compile
    block(TUNE, THIN)
    began = time.process_time()
    targets = block(DRAWS, THIN)
    return time.process_time() - began, targets


def run_sumu(python: str, name: str, candidates: list[list[int]], seed: int) -> dict:
    request = {
        "data": str(DATA / f"{name}.csv"),
        "candidates": candidates,
        "steps": SUMU_STEPS,
        "burn_in": SUMU_BURN_IN,
        "seed": seed,
        "prior": "fair",
    }
    done = subprocess.run(
        [python, str(HERE / "sumu_worker.py")], input=json.dumps(request), capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def figures(steps: int, seconds: list[float], traces: list[np.ndarray]) -> dict[str, float]:
    stacked = np.stack(traces)
    within = [float(array_stats.ess(trace[None, :])) for trace in stacked]
    return {
        "steps per CPU s": steps * len(seconds) / sum(seconds),
        "ESS per CPU s, median chain": float(np.median([e / s for e, s in zip(within, seconds, strict=True)])),
        "R-hat": float(array_stats.rhat(stacked)),
        "best mean log score": float(stacked.mean(axis=1).max()),
    }


@pytest.mark.parametrize("rule", ["partial", "plain"])
@pytest.mark.parametrize("name", ["lin_n20_N500", "lin_n40_N1000"])
def test_fifty_times_sumu(name: str, rule: str, sumu_python: str) -> None:
    data = pd.read_csv(DATA / f"{name}.csv")
    candidates = strongest_candidates(data, rule)
    tables, scores = tables_for(data, candidates)
    sumu, ours = [], {"partition": [], "order": []}
    for seed in SEEDS:
        # By turns, so that a busy machine is busy for both.
        sumu.append(run_sumu(sumu_python, name, candidates, seed))
        for sampler, runs in ours.items():
            runs.append(run_ours(tables, sampler, seed))
    # The same target: sumu's scores of the empty and the full parent sets are ours.
    np.testing.assert_allclose(sumu[0]["empty_set_scores"], [own[0] for own in scores], atol=1e-8)
    np.testing.assert_allclose(sumu[0]["full_set_scores"], [own[-1] for own in scores], atol=1e-8)
    table = {"sumu": figures(SUMU_STEPS, [r["cpu_seconds"] for r in sumu], [np.array(r["trace"]) for r in sumu])}
    for sampler, runs in ours.items():
        table[sampler] = figures(DRAWS * THIN, [seconds for seconds, _ in runs], [trace for _, trace in runs])
    print(
        f"\n{name}, {rule} correlations\n{pd.DataFrame(table).to_string(float_format='{:.4g}'.format)}", file=sys.stderr
    )
    for sampler in ours:
        assert table[sampler]["steps per CPU s"] >= 50 * table["sumu"]["steps per CPU s"]
        assert table[sampler]["ESS per CPU s, median chain"] >= 50 * table["sumu"]["ESS per CPU s, median chain"]

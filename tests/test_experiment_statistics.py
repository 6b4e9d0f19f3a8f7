"""Statistics of several experiments take the place of their rows, whoever has these."""

import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes import Dataset, SufficientStatistics, estimators, graphs, scores
from gpn_bayes.data import PrivacyNoise
from tests.test_interventions import NAMES, all_families, experiments
from tests.test_unknown_targets import contexts_of

pytestmark = pytest.mark.more("repeats whole runs for every score and setting")

SETTINGS = {"random_seed": 1, "progressbar": False}


def readings():
    """Return tables with how they are read: known targets and unknown ones."""
    table, targets = experiments(rows=120)
    other, context = contexts_of()
    return {
        "perfect": (table, {"targets": targets}),
        "soft": (table, {"targets": targets, "intervention": "soft"}),
        "unknown": (other, {"contexts": context}),
        "penalty": (other, {"contexts": context, "target_penalty": 2.0}),
    }


@pytest.mark.parametrize("kind", readings())
@pytest.mark.parametrize("score", [scores.BGe(), scores.BGe(standardise=False), scores.BIC(kind="gaussian")])
def test_they_score_as_the_rows_do(score, kind):
    table, reading = readings()[kind]
    data = Dataset.read(table, **reading)
    of_rows, of_statistics = score.bind(data), score.bind(SufficientStatistics.of(data))
    for node, parents in all_families():
        assert of_statistics.local(node, parents) == pytest.approx(of_rows.local(node, parents), abs=1e-8)


@pytest.mark.parametrize("kind", readings())
def test_posteriors_of_statistics_are_kept_in_files(kind, tmp_path):
    table, reading = readings()[kind]
    statistics = SufficientStatistics.of(Dataset.read(table, **reading))
    statistics.save(tmp_path / "statistics.npz")
    loaded = SufficientStatistics.load(tmp_path / "statistics.npz")
    assert loaded.fingerprint == statistics.fingerprint
    post = gpn.sample(tmp_path / "statistics.npz", "bge", **SETTINGS)
    of_rows = gpn.sample(table, "bge", **reading, **SETTINGS)
    np.testing.assert_allclose(post.edge_probabilities(), of_rows.edge_probabilities(), atol=1e-8)
    assert post.settings["interventions"] == of_rows.settings["interventions"]
    post.save(tmp_path / "post.nc")
    again = gpn.load(tmp_path / "post.nc")
    assert again.data.fingerprint == statistics.fingerprint
    if kind in ("unknown", "penalty"):
        np.testing.assert_allclose(again.target_probabilities(), of_rows.target_probabilities(), atol=1e-8)


def test_sites_that_ran_different_experiments_pool_them():
    """Three sites have observed rows; two of them set b, and two c and d."""
    table, targets = experiments(rows=120)
    labels = pd.Series(targets)
    chosen = labels != "d"
    sites = np.random.default_rng(1).integers(0, 3, len(table))
    joined, done = [], ["", "b", "c;d"]
    for number, target in enumerate(done):
        rows = (labels == target).to_numpy()
        split = [rows & (sites != number) & (sites == (number + 1) % 3), rows & ~(sites == (number + 1) % 3)]
        joined.append(gpn.federated.secure_statistics([table[part] for part in split], secure=False))
    statistics = SufficientStatistics.join(joined, targets=done)
    assert statistics.n == chosen.sum()
    pooled = scores.BGe().bind(table[chosen], targets=labels[chosen].tolist())
    of_sites = scores.BGe().bind(statistics)
    for node, parents in all_families():
        assert of_sites.local(node, parents) == pytest.approx(pooled.local(node, parents), abs=1e-6)
    best = max(graphs.enumerate_dags(4), key=pooled.total)
    found = estimators.HillClimbing("bge").fit(statistics).adjacency_
    assert pooled.total(found) == pytest.approx(pooled.total(best))


def test_joined_without_experiments_they_are_those_of_all_rows():
    table, _ = experiments()
    halves = [SufficientStatistics.of(part) for part in (table[:25], table[25:])]
    joined, whole = SufficientStatistics.join(halves), SufficientStatistics.of(table)
    assert joined.n == whole.n and joined.interventions is None
    np.testing.assert_allclose(joined.mean, whole.mean, rtol=1e-12)
    np.testing.assert_allclose(joined.cov, whole.cov, rtol=1e-12)


def test_a_column_may_be_constant_within_an_experiment():
    """It was set to one value: groups of rows in which it doesn't vary have scores all the same."""
    table, targets = experiments(rows=120)
    table.loc[[target == "b" for target in targets], "b"] = 1.5
    data = Dataset.read(table, targets=targets, intervention="soft")
    for score in (scores.BGe(), scores.BIC(), scores.GP(estimator="laplace")):
        assert np.isfinite([score.bind(data).local(node, parents) for node, parents in all_families()[:12]]).all()
    of_statistics = scores.BGe().bind(SufficientStatistics.of(data))
    assert of_statistics.local("c", ["b"]) == pytest.approx(scores.BGe().bind(data).local("c", ["b"]), abs=1e-8)


def test_what_takes_all_rows_as_alike_refuses_them():
    table, reading = readings()["perfect"]
    statistics = SufficientStatistics.of(Dataset.read(table, **reading))
    for call_it in (
        lambda: estimators.PC().fit(statistics),
        lambda: estimators.NOTEARS().fit(statistics),
        lambda: scores.Lasso().bind(statistics),
    ):
        with pytest.raises(ValueError, match="takes rows that were only observed; received targets of interventions"):
            call_it()
    with pytest.raises(ValueError, match="the Gaussian-process score needs the rows"):
        scores.GP().bind(statistics)


def test_bad_parts_are_one_line():
    table, _ = experiments()
    part = SufficientStatistics.of(table)
    other = SufficientStatistics.of(table[["b", "a", "c", "d"]])
    noisy = SufficientStatistics(part.n, part.mean, part.cov, NAMES, PrivacyNoise(1.0, 1e-6, np.ones((4, 4))))
    for parts, given, message in (
        ([], {}, "statistics are joined of one table or more; received none"),
        (
            [part, other],
            {},
            "statistics that are joined must be of the same variables in the same order; received a, b",
        ),
        ([part, noisy], {}, "statistics that are joined must have no noise and no experiments; received some that do"),
        ([part, part], {"targets": ["a"]}, "targets must be as many as there are rows, 2; received 1"),
        ([part, part], {"targets": ["", "e"]}, "targets must be variables; received 'e', not one of"),
        ([part, part], {"contexts": ["x", "x"]}, "contexts must be 1 to 12 besides the reference"),
    ):
        with pytest.raises(ValueError) as refused:
            SufficientStatistics.join(parts, **given)
        assert str(refused.value).startswith(message) and "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"experiment_mean": np.zeros((3, 4))}, "moments of experiments must be as many as experiments and variables"),
        ({"experiment_n": np.array([40, 0, 20, 20])}, "moments of experiments must be as many as experiments and var"),
        ({"experiment_n": None}, "experiment_n is missing"),
        ({"target": None}, "target or context is missing"),
        ({"target": np.zeros((4, 3), dtype=np.int8)}, "targets must be truth values for each row and variable"),
        ({"intervention": np.array("hard")}, "intervention must be one of perfect, soft; received 'hard'"),
    ],
)
def test_damaged_files_are_one_line(changed, message, tmp_path):
    table, reading = readings()["perfect"]
    arrays = SufficientStatistics.of(Dataset.read(table, **reading)).to_arrays() | changed
    np.savez(tmp_path / "damaged.npz", **{name: array for name, array in arrays.items() if array is not None})
    with pytest.raises(ValueError) as refused:
        SufficientStatistics.load(tmp_path / "damaged.npz")
    assert str(refused.value).startswith(f"damaged.npz can't be read as statistics: {message}")


def test_damaged_contexts_are_one_line(tmp_path):
    table, reading = readings()["unknown"]
    arrays = SufficientStatistics.of(Dataset.read(table, **reading)).to_arrays()
    for changed in (
        {"context": np.array([0, 1, 2, 2])},
        {"context": np.array([0, 1, 2, 7])},
        {"contexts": np.array(["x"])},
        {"target_probability": np.array([0.1, 0.2])},
    ):
        np.savez(tmp_path / "damaged.npz", **(arrays | changed))
        with pytest.raises(ValueError, match="contexts must be names of experiments, with the number of one for each"):
            SufficientStatistics.load(tmp_path / "damaged.npz")

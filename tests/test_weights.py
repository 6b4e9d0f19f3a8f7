"""Weights of rows: frequencies are repeated rows, scores take any weights, and what takes none refuses them."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

import gpn_bayes as gpn
from gpn_bayes import Dataset, SufficientStatistics, scores
from gpn_bayes.candidates.methods import check_methods
from gpn_bayes.cli import app
from gpn_bayes.data import weights as row_weights
from gpn_bayes.estimators.independence import FisherZ
from gpn_bayes.kernels.gaussian_process.dense import log_likelihood, new_workspace
from gpn_bayes.posterior.predictive_checks import predictive_checks

pytestmark = pytest.mark.more("repeats whole runs for every score and setting")

ROWS = 60
# Log likelihoods by low-rank algebra are off by up to this, by that of other functions for repeated rows.
LOW_RANK = 2e-4


@pytest.fixture
def kept(monkeypatch):
    """Keep frequencies as weights, as those of very many rows are."""
    monkeypatch.setattr(row_weights, "MOST_REPEATED", 0)


def _numbers():
    rng = np.random.default_rng(1)
    a = rng.normal(3, 2, ROWS)
    b = np.sin(a) + 0.3 * rng.normal(size=ROWS)
    return pd.DataFrame({"a": a, "b": b, "c": a * b + rng.normal(size=ROWS), "n": rng.integers(0, 5, ROWS)})


def _categories():
    rng = np.random.default_rng(2)
    a = rng.choice(["x", "y", "z"], ROWS)
    b = np.where(rng.random(ROWS) < 0.7, a == "x", rng.random(ROWS) < 0.5)
    c = np.where(b, rng.integers(0, 2, ROWS), rng.integers(1, 4, ROWS))
    return pd.DataFrame({"a": a, "b": b, "c": c, "n": rng.integers(0, 5, ROWS)})


def _mixed():
    rng = np.random.default_rng(3)
    table = _numbers()
    table["b"] = np.where(rng.random(ROWS) < 0.5, "f", "m")
    table["c"] = table["c"] + (table["b"] == "f")
    return table


TABLES = {"numbers": _numbers, "categories": _categories, "mixed": _mixed}
SCORES = [
    (scores.BGe(), "numbers"),
    (scores.BGe(standardise=False), "numbers"),
    (scores.BIC(), "numbers"),
    (scores.BDeu(ess=2.0), "categories"),
    (scores.BDeu(cardinalities={"c": 6}), "categories"),
    (scores.K2(), "categories"),
    (scores.BIC(), "categories"),
    (scores.CG(), "mixed"),
    (scores.CG(), "categories"),
    (scores.BIC(), "mixed"),
    (scores.GP(estimator="laplace"), "numbers"),
    (scores.GP(estimator="laplace", kernel="interaction"), "numbers"),
    (scores.GP(estimator="laplace", dense=True, standardise=False), "numbers"),
]
SETS = [("a", []), ("b", []), ("b", ["a"]), ("c", ["a"]), ("c", ["b"]), ("c", ["a", "b"]), ("a", ["b", "c"])]


def _repeated(table):
    return table.loc[table.index.repeat(table["n"])].drop(columns="n").reset_index(drop=True)


def _stand_for(table):
    return f"weights: {(table['n'] > 0).sum()} rows stand for {table['n'].sum()}"


def _survey(table, weights):
    """Read a table with survey weights, of which the warning isn't the point here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return Dataset.read(table, weights=weights)


# Scores


@pytest.mark.parametrize("score", [scores.BDeu(), scores.K2(), scores.BIC()], ids=str)
def test_weighted_counts_of_many_configurations(score, kept):
    """Most rows are alone in their group, which the counts of whole rows drop."""
    rng = np.random.default_rng(3)
    table = pd.DataFrame(rng.integers(0, [2, 3, 7, 12, 30], (200, 5)), columns=list("abcde")).astype(str)
    table["n"] = rng.integers(1, 5, 200)
    by_weights, by_rows = score.bind(table, weights="n"), score.bind(_repeated(table))
    for node in range(5):
        others = [v for v in range(5) if v != node]
        np.testing.assert_allclose(by_weights.table(node, others), by_rows.table(node, others), rtol=1e-10)


@pytest.mark.parametrize(("score", "kind"), SCORES, ids=lambda value: str(value)[:40])
def test_frequencies_are_repeated_rows(score, kind, kept):
    """Scores from weights are those of the table in which every row stands as often as it says."""
    table = TABLES[kind]()
    weighted = Dataset.read(table, weights="n")
    assert weighted.weights is not None and weighted.notes == (_stand_for(table),)
    assert weighted.n_rows == (table["n"] > 0).sum() and weighted.size == table["n"].sum()
    by_weights, by_rows = score.bind(weighted), score.bind(_repeated(table))

    def tolerance_of(parents):
        low_rank = isinstance(score, scores.GP) and parents > 0 and not by_rows.only_dense(parents)
        return {"rtol": 0, "atol": LOW_RANK} if low_rank else {"rtol": 1e-8}

    for node, parents in SETS:
        own, expected = by_weights.local(node, parents), by_rows.local(node, parents)
        np.testing.assert_allclose(own, expected, **tolerance_of(len(parents)), err_msg=f"{node}")
    graph = [("a", "c"), ("b", "c")]
    np.testing.assert_allclose(by_weights.total(graph), by_rows.total(graph), **tolerance_of(2))
    if by_rows.closed_form:
        tables = [scorer.table("c", ["a", "b"]) for scorer in (by_weights, by_rows)]
        np.testing.assert_allclose(*tables, rtol=1e-8)
    # A control: without weights, scores are others.
    assert abs(score.bind(table.drop(columns="n")).local("c", ["a"]) - by_rows.local("c", ["a"])) > 1


def test_the_gaussian_process_likelihood_of_any_weights():
    """It is the integral over f of N(f; 0, K) prod_i N(y_i; f_i, sigma^2)^w_i, by completing the square in f."""
    data = _survey(_numbers().drop(columns="n"), np.random.default_rng(4).uniform(0.2, 2.5, ROWS))
    scorer = scores.GP().bind(data)
    low_rank, dense = scorer.low_rank_posterior(2, (0,)), scorer.dense_posterior(2, (0,))
    x, y, w = scorer.values[:, 0], scorer.values[:, 2], data.weights
    for phi in (np.array([-1.0, 0.0]), np.array([0.2, 0.7])):
        noise = np.exp(2 * phi[0])
        kernel = np.exp(-0.5 * ((x[:, None] - x) / np.exp(phi[1])) ** 2) + 1
        system, linear = np.eye(ROWS) + kernel * (w / noise), w * y / noise
        expected = (
            -0.5 * w.sum() * np.log(2 * np.pi * noise)
            - 0.5 * linear @ y
            - 0.5 * np.linalg.slogdet(system)[1]
            + 0.5 * linear @ np.linalg.solve(system, kernel @ linear)
        )
        own = log_likelihood(phi, x[:, None], y, False, 1.0, new_workspace(x[:, None]), w)
        assert np.isclose(own, expected, rtol=1e-9)
        assert np.isclose(low_rank.log_densities(phi[None])[0], dense.log_density(phi), rtol=0, atol=LOW_RANK)


def test_gradients_of_weighted_likelihoods(kept):
    scorer = scores.GP(dense=True).bind(Dataset.read(_numbers(), weights="n"))
    posterior = scorer.dense_posterior(2, (0, 1))
    phi = np.array([-0.4, 0.1, 0.5])
    _, gradient = posterior.log_density_and_gradient(phi)
    for k, step in enumerate(1e-5 * np.eye(3)):
        rise = posterior.log_density(phi + step) - posterior.log_density(phi - step)
        assert np.isclose(gradient[k], rise / 2e-5, rtol=1e-5)


EQUATIONS = [
    (score, kind)
    for score, kind in SCORES
    if kind != "mixed" and score.name != "cg" and getattr(score, "kernel", "additive") == "additive"
]


@pytest.mark.parametrize(("score", "kind"), EQUATIONS, ids=lambda value: str(value)[:40])
def test_equations_are_those_of_repeated_rows(score, kind, kept):
    table = TABLES[kind]()
    rng = np.random.default_rng(5)
    places = rng.integers(0, ROWS, 5)
    new = table.drop(columns="n").iloc[places]
    found = []
    for data in (
        Dataset.read(table, weights="n"),
        Dataset.read(_repeated(table)),
        Dataset.read(table.drop(columns="n")),
    ):
        scorer = score.bind(data)
        rows = scores.densities.values_of(scores.densities.read_rows(new, data.names), scorer)
        found.append(scores.densities.log_densities(scorer, data, [(0, ()), (2, (0,)), (2, (0, 1))], rows))
    # Under Gaussian processes 32 hyperparameters are resampled, around modes that are found to some tolerance: rounding
    # can put a neighbour in the place of one of them.
    np.testing.assert_allclose(*found[:2], atol=0.01 if isinstance(score, scores.GP) else 1e-8, rtol=0)
    # Rows without weights are other data.
    assert np.abs(found[0] - found[2]).max() > 0.1


def test_curves_and_residuals_are_those_of_repeated_rows(kept):
    table = _numbers()
    times = table["n"].to_numpy()
    some = table[times > 0].reset_index(drop=True)
    phi = np.log([0.4, 1.0, 1.5])
    at = [np.linspace(-1, 1, 5)] * 2
    for dense in (False, True):
        by_weights, by_rows = (
            scores.GP(dense=dense).bind(data) for data in (Dataset.read(some, weights="n"), _repeated(some))
        )
        for one, two in zip(
            scores.gp.components.components(by_weights, 2, (0, 1), phi, at),
            scores.gp.components.components(by_rows, 2, (0, 1), phi, at),
            strict=True,
        ):
            np.testing.assert_allclose(one.mean, two.mean, atol=1e-6)
            np.testing.assert_allclose(one.sd, two.sd, atol=1e-6)
            np.testing.assert_allclose(np.repeat(one.at_rows, some["n"]), two.at_rows, atol=1e-6)
        noise = [scores.gp.components.noise(scorer, 2, (0, 1), phi) for scorer in (by_weights, by_rows)]
        np.testing.assert_allclose(np.repeat(noise[0], some["n"]), noise[1], atol=1e-6)
    data = Dataset.read(some, weights="n"), Dataset.read(_repeated(some))
    lines = [scores.BGe().bind(own).residuals(own, 2, (0, 1)) for own in data]
    np.testing.assert_allclose(np.repeat(lines[0], some["n"]), lines[1], atol=1e-9)


def test_statistics_and_tests_of_independence(kept):
    table = _numbers()
    own, expected = (SufficientStatistics.of(data) for data in (Dataset.read(table, weights="n"), _repeated(table)))
    assert own.n == expected.n
    np.testing.assert_allclose(own.cov, expected.cov)
    np.testing.assert_allclose(own.mean, expected.mean)
    p_values = [FisherZ().bind(data).p_value("a", "c", ["b"]) for data in (Dataset.read(table, weights="n"), expected)]
    assert np.isclose(*p_values)


# Reading


def test_frequencies_repeat_rows_before_all_else():
    table = _numbers()
    data = Dataset.read(table, weights="n")
    assert data.weights is None and data.repeated and data.names == ("a", "b", "c")
    assert data.notes == (_stand_for(table),)
    assert data.fingerprint == Dataset.read(_repeated(table)).fingerprint
    for given in (table["n"], table["n"].tolist(), table["n"].to_numpy(float)):
        assert Dataset.read(table.drop(columns="n"), weights=given).fingerprint == data.fingerprint
    for further in ({"discretise": 3}, {"targets": ["a"] * 20 + [""] * 40}):
        labels = further.get("targets")
        whole = further if labels is None else {"targets": list(np.repeat(labels, table["n"]))}
        assert Dataset.read(table, weights="n", **further).fingerprint == (
            Dataset.read(_repeated(table), **whole).fingerprint
        )
    often = table["n"].idxmax()
    table.loc[often, "a"] = np.nan
    assert Dataset.read(table, weights="n", missing="drop").rows_dropped == table.loc[often, "n"] > 1
    # Copies of rows are looked for in a table as it is, not in one of frequencies.
    assert "same rows" not in {flag.kind for flag in gpn.data.data_flags(data, numbers=True)}
    assert "same rows" in {flag.kind for flag in gpn.data.data_flags(Dataset.read(_repeated(_numbers())), numbers=True)}


def test_rows_of_weight_0_are_left_out():
    table = _numbers()
    table.loc[table["n"] == 0, "a"] = np.nan
    assert Dataset.read(table, weights="n").n_rows == table["n"].sum()
    assert _survey(table, "n").n_rows == table["n"].sum()
    fractions = table.assign(n=0.3 * table["n"])
    assert _survey(fractions, "n").n_rows == (table["n"] > 0).sum()


def test_weights_of_dropped_rows_tell_what_weights_are():
    table = _numbers()
    table["n"] += 1.0
    table.loc[0, ["a", "n"]] = np.nan, 0.5
    with pytest.warns(UserWarning, match="survey weights, here scaled to add up to the 59 rows"):
        data = Dataset.read(table, weights="n", missing="drop")
    assert data.size == 59 and data.rows_dropped == 1


def test_survey_weights_are_scaled_with_a_warning():
    table = _numbers().drop(columns="n")
    weights = np.random.default_rng(4).uniform(0.2, 2.5, ROWS)
    with pytest.warns(UserWarning, match="scaled to add up to the 60 rows: .* the design of the survey is ignored"):
        data = Dataset.read(table, weights=weights)
    assert data.n_rows == data.size == ROWS and np.isclose(data.weights.sum(), ROWS)
    np.testing.assert_allclose(data.weights / data.weights[0], weights / weights[0])
    assert data.fingerprint != Dataset.read(table).fingerprint
    assert data.fingerprint != _survey(table, weights[::-1]).fingerprint
    np.testing.assert_allclose(_survey(table, 7 * weights).weights, data.weights)
    # Weighted means and covariances, and N the sum of the weights: as in BiDAG's BGe.
    centre = np.average(table, axis=0, weights=weights)
    np.testing.assert_allclose(data.means(), centre)
    cov = np.cov(table.to_numpy(), rowvar=False, aweights=data.weights, ddof=0) * ROWS / (ROWS - 1)
    np.testing.assert_allclose(SufficientStatistics.of(data).cov, cov)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"weights": "m"}, "weights must be a column of the table, or a sequence as long as it; received 'm', which"),
        ({"weights": [1, 2]}, "weights must be as many as there are rows, 60; received 2"),
        ({"weights": 3}, "weights must be a column of the table, or a sequence; received 3"),
        ({"weights": [-1] + [1] * 59}, "weights must be numbers, 0 or more, in every row; received -1 in row 0"),
        ({"weights": ["x"] + [1] * 59}, "weights must be numbers, 0 or more, in every row; received 'x' in row 0"),
        ({"weights": [np.nan] + [1] * 59}, "weights must be numbers, 0 or more, in every row; received nan in row 0"),
        ({"weights": [np.inf] + [1] * 59}, "weights must be numbers, 0 or more, in every row; received inf in row 0"),
        ({"weights": [1e300] * 60}, "weights must add up to less than 2^53; they add up to 6e+301"),
        ({"weights": [1] + [0] * 59}, "at least two rows must have a weight above 0; received 1"),
        ({"weights": "n", "columns": ["a", "n"]}, "the column of weights is no variable; columns has 'n'"),
        ({"weights": [0.5] * 60, "discretise": 3}, "discretise can be given beside weights by which rows are repeated"),
        ({"weights": [0.5] * 60, "targets": [""] * 60}, "targets can be given beside weights by which rows are"),
    ],
)  # fmt: skip
def test_weights_that_are_wrong(settings, message):
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        Dataset.read(_numbers(), **settings)


def test_weights_of_a_file(tmp_path):
    table = _numbers().round(3)
    table.to_csv(tmp_path / "plain.csv", index=False)
    table.to_csv(tmp_path / "comma.csv", index=False, sep=";", decimal=",")
    expected = Dataset.read(table, weights="n")
    for name in ("plain.csv", "comma.csv"):
        np.testing.assert_allclose(Dataset.read(tmp_path / name, weights="n").values, expected.values)
    fractions = table.assign(n=table["n"] + 0.25)
    fractions.to_csv(tmp_path / "comma.csv", index=False, sep=";", decimal=",")
    np.testing.assert_allclose(_survey(tmp_path / "comma.csv", "n").weights, _survey(fractions, "n").weights)


# Runs


def _run(data, **settings):
    return gpn.sample(data, draws=200, random_seed=1, progressbar=False, **settings)


def test_a_run_by_frequencies_is_that_of_repeated_rows():
    table = _numbers()
    own, expected = _run(table, weights="n"), _run(_repeated(table))
    pd.testing.assert_frame_equal(own.edge_probabilities(), expected.edge_probabilities())
    assert own.settings["row_weights"] == "frequencies" and "row_weights" not in expected.settings


@pytest.mark.parametrize("score", ["bge", "bdeu", scores.GP(estimator="laplace")], ids=str)
def test_a_run_by_kept_weights_answers_as_that_of_repeated_rows(score, kept, tmp_path):
    table = _categories() if score == "bdeu" else _numbers()
    own, expected = _run(table, score=score, weights="n"), _run(_repeated(table), score=score)
    assert own.data.weights is not None
    tolerance = 1e-8 if isinstance(score, str) else LOW_RANK
    np.testing.assert_allclose(own.edge_probabilities(), expected.edge_probabilities(), atol=tolerance)
    own.save(tmp_path / "run.nc")
    loaded = gpn.load(tmp_path / "run.nc")
    np.testing.assert_array_equal(loaded.data.weights, own.data.weights)
    for post in (own, loaded):
        effects = [asked.effect("a", "c", progressbar=False).mean for asked in (post, expected)]
        np.testing.assert_allclose(*effects, atol=1e-6 if isinstance(score, str) else 0.01)
        with pytest.raises(ValueError, match="^leave-one-out and predictive checks need rows that all count alike; "):
            post.to_arviz(log_likelihood=True)


def test_survey_weights_in_a_run():
    table = _numbers().assign(n=np.random.default_rng(4).uniform(0.2, 2.5, ROWS))
    with pytest.warns(UserWarning, match="the design of the survey is ignored"):
        post = _run(table, weights="n")
    assert post.settings["row_weights"] == "survey weights"
    assert any("survey" in text for text in post.diagnostics().assumptions)
    assert np.isfinite(post.effects()["mean"]).all()
    new = table.drop(columns="n").head(3)
    assert np.isfinite(post.log_predictive(new)).all()
    with pytest.raises(ValueError, match="^predictive checks need rows that all count alike; received weights of rows"):
        predictive_checks(post, progressbar=False)
    with pytest.raises(ValueError, match="^a curve needs the method"):
        post.curves("c")


def test_the_command_line(tmp_path):
    table = _numbers()
    table.to_csv(tmp_path / "table.csv", index=False)
    command = [str(tmp_path / "table.csv"), "--weights", "n", "-q"]
    out = tmp_path / "results"
    done = CliRunner().invoke(app, ["run", *command, "--draws", "100", "--out", str(out)])
    assert done.exit_code == 0, done.output
    expected = _run(_repeated(table)).edge_probabilities()
    edges = pd.read_csv(out / "edges.csv")
    for row in edges.itertuples():
        assert abs(row.probability - expected.loc[row.parent, row.child]) < 1e-6
    refused = CliRunner().invoke(app, ["run", command[0], "--weights", "m", "--out", str(out)])
    assert refused.exit_code == 2 and "--weights must be a column of the table" in refused.output


# What takes no weights


class _Own(scores.Score):
    name, parameters = "own", {}

    def _bind(self, data):
        raise AssertionError("a score that takes no weights was bound")


@pytest.mark.parametrize(
    "ask",
    [
        lambda data: _Own().bind(data),
        lambda data: scores.Lasso().bind(data),
        lambda data: gpn.bootstrap(gpn.estimators.PC(), data, n=2, progressbar=False),
        lambda data: gpn.estimators.NOTEARS().fit(data),
        lambda data: gpn.estimators.NOTEARSMLP().fit(data),
        lambda data: gpn.estimators.DYNOTEARS().fit(data),
        lambda data: gpn.estimators.PC(test="hsic").fit(data),
        lambda data: gpn.federated.secure_statistics([data, data]),
        lambda data: gpn.pymc_network(data, [("a", "b")]),
        lambda data: scores.GP().pymc_model(data, "c", ["a"]),
        lambda data: gpn.simulate.discretise(data),
        lambda data: check_methods(["distance-correlation"], scores.BGe().bind(data), data),
    ],
)
def test_what_takes_rows_alike_refuses_weights(ask):
    data = _survey(_numbers().drop(columns="n"), np.linspace(0.5, 2, ROWS))
    with pytest.raises(ValueError, match="takes rows that all count alike; received weights of rows") as refused:
        ask(data)
    assert "\n" not in str(refused.value)


def test_k2_by_stirlings_formula_refuses_them(kept):
    with pytest.raises(ValueError, match="^K2 by Stirling's formula takes rows that all count alike"):
        scores.K2(form="stirling").bind(_categories(), weights="n")


def test_rows_of_a_time_series_stand_there_once():
    with pytest.raises(ValueError, match="^every row of a time series stands there once; received rows"):
        gpn.estimators.DYNOTEARS().fit(Dataset.read(_numbers(), weights="n"))


@pytest.mark.parametrize("learner", [gpn.estimators.HillClimbing(score="bic"), gpn.estimators.Exact(score="bic"),
                                     gpn.estimators.PC(alpha=0.2)])  # fmt: skip
def test_learners_by_scores_and_correlations_take_them(learner, kept):
    table = _numbers()
    graphs = [learner.fit(data).adjacency_.copy() for data in (Dataset.read(table, weights="n"), _repeated(table))]
    np.testing.assert_array_equal(*graphs)

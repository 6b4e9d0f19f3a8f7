"""The machinery behind the benchmark of wrong models: functions of any amplitude, and how probabilities are judged."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from gpn_bayes.scores import GP
from tests.benchmarks.calibration import other_programs, page
from tests.benchmarks.calibration.claims import COLUMNS
from tests.benchmarks.calibration.variants import VARIANTS
from tests.benchmarks.calibration.wrong_models import (
    FAMILIES,
    ROWS,
    SCORES,
    N,
    WrongModel,
    amplitudes,
    network,
    summary,
)
from tests.benchmarks.field.measures import as_table

pytestmark = pytest.mark.more("statistics that take long")


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(3)
    x = rng.normal(size=14)
    values = np.column_stack([x, np.sin(2 * x) + 0.3 * rng.normal(size=14)])
    return (values - values.mean(axis=0)) / values.std(axis=0, ddof=1)


def log_evidence(rows, amplitude):
    """Return the log marginal likelihood of the second column given the first, by quadrature over dense matrices."""
    x, y = rows.T
    log_sigma, log_theta = np.linspace(-4, 4, 61), np.linspace(-3, 5, 61)
    gaps = (x[:, None] - x) ** 2
    total = np.full((61, 61), -np.inf)
    for i, sigma in enumerate(np.exp(log_sigma)):
        for j, theta in enumerate(np.exp(log_theta)):
            covariance = amplitude**2 * np.exp(-gaps / (2 * theta**2)) + 1.0 + sigma**2 * np.eye(len(x))
            prior = stats.invgamma.logpdf(sigma, 1, scale=1) + stats.invgamma.logpdf(theta, 2, scale=2)
            density = stats.multivariate_normal.logpdf(y, cov=covariance)
            total[i, j] = density + prior + log_sigma[i] + log_theta[j]
    step = (log_sigma[1] - log_sigma[0]) * (log_theta[1] - log_theta[0])
    return float(np.logaddexp.reduce(total.ravel()) + np.log(step))


@pytest.mark.parametrize("amplitude", [0.5, 2.0])
def test_one_amplitude_is_that_of_the_functions(rows, amplitude):
    scorer = amplitudes([amplitude]).bind(rows)
    batch = scorer.score_sets(1, [(0,)])
    assert batch.values[0] == pytest.approx(log_evidence(rows, amplitude), abs=0.01 + 4 * batch.errors[0])


def test_without_parents_amplitudes_say_nothing(rows):
    found = [amplitudes([a]).bind(rows).local(1) for a in (0.25, 1.0, 2.0)]
    np.testing.assert_allclose(found, GP().bind(rows).local(1), atol=1e-3)


def test_an_average_over_amplitudes_lies_between_them(rows):
    single = [amplitudes([a]).bind(rows).local(1, [0]) for a in (0.5, 2.0)]
    both = amplitudes([0.5, 2.0]).bind(rows)
    assert both.local(1, [0]) == pytest.approx(np.logaddexp(*single) - np.log(2), abs=1e-9)


@pytest.mark.parametrize("family", FAMILIES)
def test_networks_of_a_family(family):
    dag, table = network(family, 1)
    assert dag.shape == (N, N)
    assert table.shape == (ROWS, N)
    assert np.isfinite(table.to_numpy()).all()
    pd.testing.assert_frame_equal(table, network(family, 1)[1])


def test_claims_are_those_of_a_posterior():
    claims = WrongModel("linear", "BGe").claims(1)
    assert list(claims) == COLUMNS
    dag, _ = network("linear", 1)
    edges = claims[claims["kind"] == "edge"]
    assert edges["held"].tolist() == dag[~np.eye(N, dtype=bool)].tolist()


def test_scores_of_probabilities():
    rng = np.random.default_rng(1)
    stated = rng.beta(0.5, 0.5, 20_000)
    held = (rng.random(20_000) < stated).astype(float)
    claims = pd.DataFrame({"network": np.arange(20_000) // 10, "kind": "edge", "stated": stated, "held": held})
    right = summary(claims)
    assert right["brier"] == pytest.approx(np.mean(stated * (1 - stated)), abs=0.005)
    assert right["brier"] < 0.6 * right["brier_base"]
    wrong = summary(claims.assign(stated=1 - stated))
    assert wrong["brier"] > wrong["brier_base"]
    assert wrong["log_score"] < wrong["log_score_base"]


def test_a_reliability_diagram_as_text():
    claims = pd.DataFrame({"network": range(400), "kind": "edge", "stated": 0.5, "held": [0.0, 1.0, 1.0, 1.0] * 100})
    np.testing.assert_allclose(as_table(summary(claims)["reliability"]), [[0.5, 0.75, 0.025]])


def test_the_guide_has_the_figures_that_were_measured():
    measured = page.Measured.read()
    assert set(measured.wrong_models["family"]) == set(FAMILIES)
    assert set(measured.wrong_models["score"]) <= set(SCORES)
    assert list(measured.held.variants["variant"]) == list(VARIANTS) == list(page.VARIANT_TITLES)
    text = page.PAGE.read_text(encoding="utf-8")
    assert page.with_tables(text, measured) == text
    for name, table in page.tables(measured).items():
        assert f"<!-- {name} -->\n{table}\n<!-- end -->\n" in text


def test_programs_of_the_field_by_what_they_stated():
    """Four networks: 0.5 is stated of forty edges, of which half are true; of one program, all that it is sure of."""
    shared = {"family": "gp", "n": 5, "rows": 60, "outcome": "ok"}
    classes = "0:0:0;0:0:0;10:5:{};0:0:0;0:0:0;10:10:{}"
    rows = [
        shared | {"program": name, "seed": seed, "brier": brier, "reliability": classes.format(5 + (-1) ** seed, sure)}
        for seed in range(1, 5)
        for name, brier, sure in (("gpn-gp", 0.25, 10), ("gpn-bge", 0.125, 7), ("sumu", 0.2, 7), ("pc-fisherz", 0, 10))
    ]
    units = pd.DataFrame(rows)
    ((title, found),) = other_programs.diagrams(units).items()
    assert title == "gp, 5 variables, 60 rows"
    assert list(found) == ["gpn_bayes, GP", "gpn_bayes, BGe", "sumu, Gadget and Beeps"]
    # Of 0.5, shares of 0.4 and 0.6 by turns: a standard error of 0.1 sqrt(4 / 3) / sqrt(4).
    np.testing.assert_allclose(found["gpn_bayes, GP"], [[0.5, 0.5, 0.1 / np.sqrt(3)], [1, 1, 0]], atol=1e-12)
    np.testing.assert_allclose(found["gpn_bayes, BGe"][1], [1, 0.7, 0], atol=1e-12)
    # 15 of 20 ordered pairs are edges on average, by the rows of the first program: a base rate of 0.75 times 0.25.
    assert "| gp, 5 variables, 60 rows | 0.188 | 0.250 | **0.125** | 0.200 |" in other_programs.brier_scores(units)
    # A program with fewer networks isn't compared, and then too few are left.
    fewer = units[(units["program"] != "gpn-gp") | (units["seed"] > 1)]
    assert other_programs.diagrams(fewer) == {}

"""The machinery behind the benchmark of calibration: networks from priors, ranks, tests, runs that are kept."""

import re
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from gpn_bayes import graphs
from gpn_bayes.scores import GP, BGe
from tests.benchmarks.calibration import page, running, what_held
from tests.benchmarks.calibration.claims import COLUMNS, rank
from tests.benchmarks.calibration.models import SET, UNCHANGED, Curved, Discrete, Linear, LinearOrCurved
from tests.benchmarks.calibration.pictures import draw_claims
from tests.benchmarks.calibration.uniformity import nats_per_edge, p_values
from tests.benchmarks.calibration.variants import Variant, WrongConstant
from tests.benchmarks.calibration.what_held import WhatHeld
from tests.benchmarks.prior_networks import curved_equation, linear_equation, uniform_dag

pytestmark = pytest.mark.more("statistics that take long")

CHAIN = np.array([[0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=np.int8)
SMALL = Variant(lambda: Linear(3), 20, 40)


def test_small_networks_are_calibrated():
    claims = running.claims_of_variant("small", SMALL)
    assert claims["network"].nunique() == 40
    assert p_values(claims)["p_value"].min() > 0.001
    lacking = nats_per_edge(claims)
    assert abs(lacking.value) < 4 * lacking.error
    # A negative control.
    wrong = replace(SMALL, score=lambda model: WrongConstant(2.0))
    caught = running.claims_of_variant("wrong", wrong)
    assert p_values(caught)["p_value"].min() < 1e-6
    assert nats_per_edge(caught).value < -4 * nats_per_edge(caught).error


def test_a_run_goes_on_where_it_stopped(tmp_path, monkeypatch):
    first = running.claims_of_variant("small", replace(SMALL, networks=3), tmp_path)
    ran = []
    claims_of_one = Variant.claims
    monkeypatch.setattr(
        Variant, "claims", lambda self, seed, *given: ran.append(seed) or claims_of_one(self, seed, *given)
    )
    both = running.claims_of_variant("small", replace(SMALL, networks=5), tmp_path)
    assert ran == [3, 4]
    pd.testing.assert_frame_equal(both[both["network"] < 3], first)
    fresh = running.claims_of_variant("small", replace(SMALL, networks=5))
    pd.testing.assert_frame_equal(both, fresh)
    draw_claims("small", both, tmp_path / "small.png")
    assert (tmp_path / "small.png").stat().st_size > 10_000


def test_slow_scores_are_shared_by_variants_of_the_same_networks_alone(tmp_path):
    laplace = Variant(
        lambda: Curved(3), 20, 1, score=lambda model: GP(estimator="laplace", standardise=False), settings={"draws": 50}
    )
    running.claims_of_variant("curved", laplace, tmp_path)
    running.claims_of_variant("curved again", laplace, tmp_path)
    assert len(list((tmp_path / "scores").glob("*.sqlite"))) == 1
    # The same score, whose fingerprint doesn't tell the networks apart.
    running.claims_of_variant("half linear", replace(laplace, model=lambda: LinearOrCurved(3)), tmp_path)
    assert len(list((tmp_path / "scores").glob("*.sqlite"))) == 2


def test_what_an_unfinished_run_held_is_not_kept(tmp_path, monkeypatch, capsys):
    for networks, name in ((3, "done"), (2, "stopped"), (0, "barely begun")):
        table = pd.DataFrame({"network": range(networks), "kind": "edge", "stated": 0.5, "held": 1.0})
        table[COLUMNS].to_csv(tmp_path / f"{name}.csv", index=False)
    of_three = dict.fromkeys(["done", "stopped", "barely begun", "not begun"], replace(SMALL, networks=3))
    monkeypatch.setattr(what_held, "VARIANTS", of_three)
    monkeypatch.setattr(WhatHeld, "write", lambda self: pytest.fail("written"))
    monkeypatch.setattr("sys.argv", ["what_held", str(tmp_path)])
    with pytest.raises(SystemExit):
        what_held.main()
    message = "but has of stopped: 2 of 3; of barely begun: 0 of 3; of not begun: 0 of 3"
    assert message in capsys.readouterr().err


def test_what_held_is_kept_and_shown(tmp_path):
    rng = np.random.default_rng(4)
    chances = rng.beta(1, 1, 4000)
    right = pd.DataFrame({"network": np.arange(4000) // 10, "kind": "edge", "stated": chances})
    right["held"] = (rng.random(4000) < chances).astype(float)
    names = ["BGe, exact, n = 4", "BGe, exact, n = 5", "BGe with a wrong constant, n = 4"]
    wrong = right.assign(stated=np.sqrt(chances))
    found = WhatHeld.of(dict(zip(names, [right, right, wrong], strict=True)))
    # Two variants have the same claims of different networks, and what is wrong isn't among them.
    assert found.edges["claims"].sum() == 8000
    assert np.abs((found.edges["held"] - found.edges["stated"]) / found.edges["error"]).max() < 4
    # Of the same networks, the second variant tells nothing new.
    same = WhatHeld.of({"BGe, exact, n = 5": right, "BGe, partition, n = 5": right})
    np.testing.assert_allclose(same.edges["error"], np.sqrt(2) * found.edges["error"])
    found.write(tmp_path)
    kept = WhatHeld.read(tmp_path)
    for table, own in zip(kept, found, strict=True):
        pd.testing.assert_frame_equal(table, own, rtol=1e-3)
    assert page.variants_table(kept, wrong=False).count("| 400 |") == 2
    shown = page.variants_table(kept, wrong=True).splitlines()[2:]
    assert len(shown) == 1
    assert shown[0].startswith("| BGe with half a nat too many for each parent | 400 | ")
    smallest, lacking = (cell.strip() for cell in shown[0].split("|")[3:5])
    digit, power = re.fullmatch(r"(\d) · 10⁻([⁰¹²³⁴⁵⁶⁷⁸⁹]+)", smallest).groups()
    exponent = int(power.translate(str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")))
    assert float(f"{digit}e-{exponent}") == pytest.approx(
        found.p_values.set_index("variant")["p_value"][names[2]].min(), rel=0.5
    )
    assert exponent > 6
    assert float(lacking.split()[0]) < -4 * float(lacking.split()[-1])


@pytest.mark.parametrize("count", [0, 3, 50])
def test_ranks_are_uniform_with_ties_and_few_draws(count):
    rng = np.random.default_rng(1)
    tables = rng.poisson(1.0, (2000, count + 1)).astype(float)
    ranks = [rank(own[0], own[1:], np.ones(count), rng) for own in tables]
    assert stats.kstest(ranks, "uniform").pvalue > 0.001
    # A negative control: a truth that is one larger.
    if count:
        assert stats.kstest([rank(own[0] + 1, own[1:], np.ones(count), rng) for own in tables], "uniform").pvalue < 1e-6


def stated(rng, truth_of, networks=300, claims=12):
    """Return claims whose outcomes within a network depend on each other, of true probabilities `truth_of(stated)`."""
    p = rng.beta(0.5, 0.5, (networks, claims))
    common = rng.standard_normal((networks, 1))
    noise = np.sqrt(0.5) * (common + rng.standard_normal(p.shape))
    held = stats.norm.cdf(noise) < truth_of(p)
    rows = [(k, "edge", *pair) for k in range(networks) for pair in zip(p[k], held[k], strict=True)]
    table = pd.DataFrame(rows, columns=COLUMNS).astype({"held": float})
    # Claims of other kinds stand between them.
    return pd.concat([table, table.assign(kind="rank of something")]).sort_values("network", kind="stable")


def test_p_values_of_calibrated_claims_are_uniform_though_claims_depend_on_each_other():
    rng = np.random.default_rng(2)
    found = pd.concat([p_values(stated(rng, lambda p: p)).query("kind == 'edge'") for _ in range(100)])
    assert found.groupby("test")["p_value"].agg(lambda p: stats.kstest(p, "uniform").pvalue).min() > 0.001
    # Negative controls: what is stated is too sure, or too often true.
    sure = p_values(stated(rng, lambda p: 0.5 + 0.8 * (p - 0.5))).query("kind == 'edge'").set_index("test")["p_value"]
    assert sure["confidence"] < 1e-6 and sure["bins"] < 1e-6
    often = p_values(stated(rng, lambda p: 0.8 * p)).query("kind == 'edge'").set_index("test")["p_value"]
    assert often["sum"] < 1e-6


def test_intervals_are_counted_exactly():
    def p_value(held):
        held = np.repeat([1.0, 0.0], [held, 75 - held])
        claims = pd.DataFrame({"network": range(75), "kind": "90% interval", "stated": 0.9, "held": held})
        return p_values(claims)["p_value"].item()

    assert p_value(73) == pytest.approx(2 * stats.binom(75, 0.9).sf(72))
    assert p_value(50) == pytest.approx(2 * stats.binom(75, 0.9).cdf(50))
    assert p_value(68) > 0.5


def test_dags_are_uniform():
    rng = np.random.default_rng(3)
    place = {dag.tobytes(): k for k, dag in enumerate(graphs.enumerate_dags(3))}
    drawn = (uniform_dag(3, rng) for _ in range(2500))
    counts = np.bincount([place[graphs.as_adjacency(dag, list(dag)).tobytes()] for dag in drawn], minlength=25)
    assert stats.chisquare(counts).pvalue > 0.001


def test_linear_equations_have_the_prior_of_bge():
    rng = np.random.default_rng(4)
    drawn = [linear_equation(4, 2, rng) for _ in range(2000)]
    prior = BGe().bind(rng.normal(size=(30, 4))).prior_equation(2)
    variances = np.array([sd**2 for _, sd in drawn])
    assert stats.kstest(prior.residual / variances, stats.chi2(prior.df).cdf).pvalue > 0.001
    scaled = [weights[0] / sd * np.sqrt(prior.residual) for weights, sd in drawn]
    assert stats.kstest(scaled, "norm").pvalue > 0.001


def test_curved_equations_have_the_covariance_of_the_kernel():
    rng = np.random.default_rng(5)
    x = np.array([-1.0, 0.0, 0.4])
    drawn = [curved_equation(1, (3.0, 1.0), rng) for _ in range(1000)]
    values = np.array([own.values([x], np.zeros(3)) - own.mean for own in drawn])
    theta = stats.invgamma(2, scale=2).rvs(50_000, random_state=rng)
    expected = [[np.exp(-((a - b) ** 2) / (2 * theta**2)).mean() for a in x] for b in x]
    # Products of standard normal numbers have variance 2 at most.
    np.testing.assert_allclose(values.T @ values / len(values), expected, atol=4 * np.sqrt(2 / len(values)))


@pytest.mark.parametrize("model", [Linear(3), Discrete(3, 4.0), Discrete(3, None), Curved(3)])
def test_true_effects_are_those_of_rows_under_interventions(model):
    rng = np.random.default_rng(6)
    network = model.network(CHAIN, np.full((50, 3), UNCHANGED), rng)
    column = network.data["v1"].to_numpy(dtype=float)
    grid = np.arange(2.0) if isinstance(model, Discrete) else np.linspace(column.min(), column.max(), 9)
    rows, means, errors = 1_000 if isinstance(model, Curved) else 100_000, [], []
    for value in grid:
        second = model.values(network.equations[1], [np.full(rows, value)], rows, rng)
        third = model.values(network.equations[2], [second], rows, rng)
        third = third == 0 if isinstance(model, Discrete) else third
        means.append(third.mean())
        errors.append(third.std() / np.sqrt(rows))
    shares = np.histogram(column, grid)[0] / len(column) if len(grid) > 2 else np.ones(1)
    slope = shares @ (np.diff(means) / np.diff(grid))
    # Of a curve, the truth itself is simulated, in as many rows.
    error = 2 * np.max(errors) / np.diff(grid)[0]
    assert model.effect(network, 0, 2, rng) == pytest.approx(slope, abs=4 * error)


def test_experiments_set_or_change_a_variable():
    model, rng = Linear(3), np.random.default_rng(7)
    versions = np.full((4000, 3), UNCHANGED)
    versions[2000:, 1] = SET
    data = model.network(CHAIN, versions, rng).data
    before, after = data[:2000].corr(), data[2000:].corr()
    assert abs(after.loc["v1", "v2"]) < 4 / np.sqrt(2000) < abs(before.loc["v1", "v2"])
    versions[2000:, 1] = 1
    data = model.network(CHAIN, versions, rng).data
    slopes = [np.polyfit(part["v1"], part["v2"], 1)[0] for part in (data[:2000], data[2000:])]
    assert abs(slopes[0] - slopes[1]) > 0.1

"""Gaussian processes on tables of numbers and categories: kernels over levels, and processes behind levels."""

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit

import gpn_bayes as gpn
from gpn_bayes.data import Dataset
from gpn_bayes.scores.gp.basis import Basis
from gpn_bayes.scores.gp.dense import DensePosterior
from gpn_bayes.scores.gp.importance import importance_estimate
from gpn_bayes.scores.gp.laplace import laplace_estimate
from gpn_bayes.scores.gp.links import LatentPosterior, offsets_of
from gpn_bayes.scores.gp.low_rank import LowRankPosterior
from gpn_bayes.scores.gp.priors import HyperPriors
from gpn_bayes.scores.gp.table import gp_table
from tests.latent_reference import (
    CATEGORY_CASES,
    category_case,
    log_evidence,
    log_evidence_by_quadrature,
    log_evidence_of_two_levels,
)
from tests.latent_reference import SPACING as CASE_SPACING

pytestmark = pytest.mark.more("compiles and integrates Gaussian processes of every kind")

SPACING = 2.5
LINKS = [(2, True), (3, True), (3, False), (4, False)]


def clinic(rows=150, seed=1):
    """Return a table of every kind: numbers, a text of three levels, a 0/1 column."""
    rng = np.random.default_rng(seed)
    age = rng.normal(50, 12, rows)
    site = rng.choice(["a", "b", "c"], rows)
    bmi = 25 + 0.1 * (age - 50) + 3 * (site == "b") + rng.normal(0, 2, rows)
    ill = (0.5 * (bmi - 26) + ((age - 50) / 12) ** 2 - 1 + rng.logistic(size=rows) > 0).astype(int)
    return pd.DataFrame({"age": age, "site": site, "bmi": bmi, "ill": ill})


def latent(cardinality, ordered, parents, rows=80, seed=3):
    """Return the posterior behind a category whose parents are two numbers and a category of four levels."""
    rng = np.random.default_rng(seed)
    values = np.column_stack([rng.normal(size=(rows, 2)), rng.integers(0, 4, rows)])
    behind = 2 * np.sin(2 * values[:, 0]) + values[:, 1] + (values[:, 2] == 1) + rng.logistic(size=rows)
    levels = np.searchsorted(np.quantile(behind, np.arange(1, cardinality) / cardinality), behind)
    basis = Basis(values, spacings=np.array([0.0, 0.0, SPACING]))
    counts = basis.counts(parents, levels, offsets_of(levels, cardinality, ordered), ordered)
    priors = HyperPriors().for_parents(len(parents), category=True)
    return LatentPosterior(counts, priors, np.random.default_rng(4)), values, levels


def distances_of(values, parents):
    """Return the squared distances of every parent's rows, as the kernel over levels has them."""
    return [
        SPACING * (values[:, None, p] != values[None, :, p])
        if p == 2
        else (values[:, None, p] - values[None, :, p]) ** 2
        for p in parents
    ]


def annealed():
    """Return the reference of `tests/benchmarks/annealed_reference.py`: estimates of all cases, and their errors."""
    return pd.read_csv(Path(__file__).parent / "reference" / "gp" / "categories_annealed.csv")


@pytest.mark.parametrize("number", range(len(CATEGORY_CASES)))
def test_evidence_is_that_of_annealed_particles(number):
    cardinality, ordered, parents, rows = CATEGORY_CASES[number]
    values, levels, _ = category_case(cardinality, ordered, parents, rows)
    basis = Basis(values, spacings=np.array([0.0, 0.0, CASE_SPACING]))
    counts = basis.counts(parents, levels, offsets_of(levels, cardinality, ordered), ordered)
    priors = HyperPriors().for_parents(len(parents), category=True)
    posterior = LatentPosterior(counts, priors, np.random.default_rng(1))
    modes = posterior.find_modes()
    found = importance_estimate(posterior, modes, np.random.default_rng(2), target_error=0.02)
    expected = annealed().iloc[number]
    assert (expected["levels"], expected["rows"]) == (cardinality, rows)
    assert found.error < 0.03
    # The error of the reference comes from few runs: as probable as four standard errors would be if it were known.
    bound = stats.t(expected["runs"] - 1).ppf(stats.norm.cdf(4)) * np.hypot(expected["error"], found.error)
    assert abs(found.value - expected["log_evidence"]) < min(bound, 0.3)
    # Laplace's approximation is what the proposal score is for: closer than a nat.
    assert abs(laplace_estimate(modes).value - expected["log_evidence"]) < 1.0


def test_a_search_that_starts_where_codes_lead_finds_the_highest_modes_in_fewer_steps():
    table = clinic()
    scorer = gpn.scores.GP().bind(table)
    place = list(table).index
    steps = {"codes": 0, "usual": 0}
    for node, parents in (("ill", ["age"]), ("ill", ["bmi", "site"]), ("site", ["age", "bmi", "ill"])):
        posterior = scorer.latent_posterior(place(node), tuple(sorted(map(place, parents))))
        usual = LatentPosterior(posterior.counts, posterior.priors, np.random.default_rng(1))
        heights = {}
        for name, own in (("codes", posterior), ("usual", usual)):
            values, gradients = Counted(own.log_density), Counted(own.log_density_and_gradient)
            own.log_density, own.log_density_and_gradient = values, gradients
            heights[name] = own.find_modes().heights[0]
            steps[name] += values.calls + gradients.calls
        assert heights["codes"] == pytest.approx(heights["usual"], abs=1e-3)
    assert steps["codes"] < steps["usual"]


class Counted:
    """A function that counts its calls."""

    def __init__(self, function):
        self.function, self.calls = function, 0

    def __call__(self, *arguments):
        self.calls += 1
        return self.function(*arguments)


def test_two_rows_of_a_category_are_as_far_apart_on_average_as_those_of_a_number():
    table = gp_table(Dataset.read(clinic()), standardise=True)
    site, bmi = table.values[:, 1], table.values[:, 2]
    pairs = len(site) * (len(site) - 1)
    assert table.spacings[1] * (site[:, None] != site).sum() / pairs == pytest.approx(2)
    assert ((bmi[:, None] - bmi) ** 2).sum() / pairs == pytest.approx(2)
    assert table.spacings[[0, 2, 3]].tolist() == [0, 0, 0]
    assert sorted(table.categories) == [1, 3]


def test_two_levels_are_two_numbers():
    """A kernel over two levels is that of a standardised 0/1 column, whatever the names of the levels."""
    table = clinic()
    named = table.assign(ill=np.where(table["ill"] == 1, "yes", "no"))
    scores = [gpn.scores.GP(estimator="laplace").bind(one).local("bmi", ["ill"]) for one in (table, named)]
    assert scores[0] == scores[1]
    shares = np.bincount(table["ill"]) / len(table)
    ddof = len(table) / (len(table) - 1)
    spacing = 2 / ((1 - shares @ shares) * ddof)
    column = gp_table(Dataset.read(table), standardise=True).values[:, 3]
    assert np.ptp(column) ** 2 == pytest.approx(spacing)


@pytest.mark.parametrize("phi", [[-0.5, 0.3, -0.2], [-0.1, 1.5, 0.8], [0.3, -1.0, -1.5]])
def test_a_number_given_a_category_has_the_likelihood_of_the_textbook(phi):
    rng = np.random.default_rng(2)
    values = np.column_stack([rng.normal(size=60), rng.integers(0, 5, 60), rng.normal(size=60)])
    spacings = np.array([0.0, SPACING, 0.0])
    priors = HyperPriors().for_parents(2)
    moments = Basis(values, 1e-10, spacings=spacings).moments(2, (0, 1))
    low_rank = LowRankPosterior(moments, priors)
    dense = DensePosterior(values[:, 2], values[:, :2], priors, spacings=spacings[:2])
    kernels = [
        np.exp(-0.5 * (values[:, None, 0] - values[:, 0]) ** 2 / np.exp(2 * phi[1])),
        np.exp(-0.5 * SPACING * (values[:, None, 1] != values[:, 1]) / np.exp(2 * phi[2])),
    ]
    whole = sum(kernels) + 1 + np.exp(2 * phi[0]) * np.eye(60)
    textbook = stats.multivariate_normal(np.zeros(60), whole).logpdf(values[:, 2])
    prior = stats.invgamma(1, scale=1).logpdf(np.exp(phi[0])) + phi[0]
    prior += sum(stats.invgamma(2, scale=2).logpdf(np.exp(value)) + value for value in phi[1:])
    point = np.array(phi)
    assert low_rank.log_densities(point[None])[0] == pytest.approx(textbook + prior, abs=1e-5)
    assert dense.log_density(point) == pytest.approx(textbook + prior, abs=1e-5)
    _, gradient = dense.log_density_and_gradient(point)
    assert gradient == pytest.approx(low_rank.log_density_and_gradient(point)[1], abs=1e-4)


@pytest.mark.parametrize(("cardinality", "ordered"), LINKS)
@pytest.mark.parametrize("parents", [(0,), (2,), (0, 1, 2)])
def test_the_gradient_is_that_of_the_density(cardinality, ordered, parents):
    posterior, *_ = latent(cardinality, ordered, parents)
    phi = np.array([0.3, 0.2, -0.1, 0.4])[: 1 + len(parents)]
    _, gradient = posterior.log_density_and_gradient(phi)
    steps = 1e-4 * np.eye(len(phi))
    differences = [(posterior.log_density(phi + s) - posterior.log_density(phi - s)) / 2e-4 for s in steps]
    assert gradient == pytest.approx(np.array(differences), abs=2e-3)


class FewValues(NamedTuple):
    """A category whose parent has few values, so that all integrals can be done by rules of known points."""

    scorer: object
    parent: np.ndarray
    levels: np.ndarray
    counts: np.ndarray
    ordered: bool
    spacing: float

    def log_evidence(self, counts=None):
        """Return that of other counts, cuts being those of these."""
        values = len(self.counts)
        return log_evidence_by_quadrature(
            self.counts if counts is None else counts,
            self.ordered,
            lambda theta: np.exp(-0.5 * self.spacing * (1 - np.eye(values)) / theta**2),
            shares=self.counts.sum(axis=0) / self.counts.sum(),
            nodes=12 if self.ordered else 8,
        )


def few_values(cardinality, ordered):
    rng = np.random.default_rng(7)
    values = 3 if ordered else 2
    parent = rng.integers(0, values, 60)
    behind = 1.2 * parent + rng.logistic(size=60)
    levels = np.searchsorted(np.quantile(behind, np.arange(1, cardinality) / cardinality), behind)
    kind = pd.Categorical.from_codes(levels, [f"level {k}" for k in range(cardinality)], ordered=ordered)
    data = Dataset.read(pd.DataFrame({"parent": [f"value {k}" for k in parent], "child": kind}))
    scorer = gpn.scores.GP(target_error=0.01).bind(data)
    spacing = gp_table(data, standardise=True).spacings[0] or np.ptp(scorer.values[:, 0]) ** 2
    counts = np.array([np.bincount(levels[parent == value], minlength=cardinality) for value in range(values)])
    assert scorer.columns_of_levels[1].ordered == (ordered or cardinality == 2)
    return FewValues(scorer, parent, levels, counts, ordered, spacing)


@pytest.mark.parametrize(("cardinality", "ordered"), [(2, True), (3, True), (3, False)])
def test_evidence_is_that_of_quadrature(cardinality, ordered):
    few = few_values(cardinality, ordered)
    batch = few.scorer.score_sets(1, [(0,)])
    assert batch.errors[0] < 0.02
    assert batch.values[0] == pytest.approx(few.log_evidence(), abs=4 * batch.errors[0] + 0.01)
    # Without the parent, all rows have one value.
    alone = log_evidence_by_quadrature(few.counts.sum(axis=0)[None], ordered, lambda theta: np.zeros((1, 1)))
    assert few.scorer.score_sets(1, [()]).values[0] == pytest.approx(alone, abs=0.01)


@pytest.mark.parametrize(("cardinality", "ordered"), [(2, True), (3, False)])
def test_predictions_are_ratios_of_evidences(cardinality, ordered):
    """p(level | value, rows) = p(rows and one more) / p(rows); leaving a row out, p(rows) / p(all but one)."""
    few = few_values(cardinality, ordered)
    equation = few.scorer.equation(1, (0,))
    whole = few.log_evidence()
    found = np.exp(equation.log_predictive(np.arange(cardinality), np.full((1, cardinality), 1.0)))
    assert found.sum() == pytest.approx(1)
    more = few.counts.copy()
    more[1, 0] += 1
    assert found[0] == pytest.approx(np.exp(few.log_evidence(more) - whole), abs=0.02)
    left_out = equation.leave_one_out(few.levels, few.parent[None].astype(float))
    row = 0
    fewer = few.counts.copy()
    fewer[few.parent[row], few.levels[row]] -= 1
    assert np.exp(left_out.log_density[row]) == pytest.approx(np.exp(whole - few.log_evidence(fewer)), abs=0.02)
    # Levels before the first have none, and those before the last what it leaves.
    first, last = few.levels == 0, few.levels == cardinality - 1
    np.testing.assert_allclose(left_out.below[first], 0, atol=1e-9)
    np.testing.assert_allclose(left_out.below[last], 1 - np.exp(left_out.log_density[last]), atol=1e-6)
    # A row's own level was less probable without it.
    with_it = equation.log_predictive(few.levels, few.parent[None].astype(float))
    assert (left_out.log_density < with_it).all()


def test_effects_on_a_category_follow_the_truth():
    """Logistic in x with slope 2, shifted by a category: probabilities at any x are known."""
    rng = np.random.default_rng(8)
    x, group = rng.normal(size=600), rng.choice(["a", "b", "c"], 600)
    chance = expit(2 * x + 1.5 * (group == "b"))
    table = pd.DataFrame({"x": x, "group": group, "ill": (rng.random(600) < chance).astype(int)})
    post = gpn.sample(
        table,
        score=gpn.scores.GP(estimator="laplace"),
        required=[("x", "ill"), ("group", "ill")],
        forbidden=[("x", "group"), ("group", "x")],
        draws=100,
        random_seed=1,
        progressbar=False,
    )
    effect = post.effect("x", "ill", to=1.0, versus=-1.0, progressbar=False)
    truth = np.mean(expit(2.0 + 1.5 * (group == "b")) - expit(-2.0 + 1.5 * (group == "b")))
    assert float(effect.mean.sel(outcome=1)) == pytest.approx(truth, abs=0.08)
    by_group = post.effect("group", "ill", to="b", versus="a", progressbar=False)
    truth = np.mean(expit(2 * x + 1.5) - expit(2 * x))
    assert float(by_group.mean.sel(outcome=1)) == pytest.approx(truth, abs=0.08)
    assert float(by_group.mean.sel(outcome=0)) == pytest.approx(-float(by_group.mean.sel(outcome=1)))


@pytest.mark.parametrize(("cardinality", "ordered", "parents"), [(2, True, (0, 2)), (3, True, (0,)), (3, False, (1,))])
def test_evidence_is_that_of_independent_code(cardinality, ordered, parents):
    """Rows as many as they are, no low rank: hyperparameters from a quasi-random sequence."""
    posterior, values, levels = latent(cardinality, ordered, parents, rows=40 if ordered else 20)
    rng = np.random.default_rng(1)
    found = gpn.scores.gp.importance.importance_estimate(posterior, posterior.find_modes(), rng, target_error=0.02)
    expected, error = log_evidence(levels, cardinality, ordered, distances_of(values, parents), log2=8)
    assert error < 0.15
    assert found.value == pytest.approx(expected, abs=4 * np.hypot(found.error, error))


def test_estimators_agree():
    posterior, *_ = latent(2, True, (0, 1))
    modes = posterior.find_modes()
    rng = np.random.default_rng(5)
    importance = gpn.scores.gp.importance.importance_estimate(posterior, modes, rng)
    bridge = gpn.scores.gp.bridge.bridge_estimate(posterior, modes, rng)
    assert importance.value == pytest.approx(bridge.value, abs=4 * np.hypot(importance.error, bridge.error))
    laplace = gpn.scores.gp.laplace.laplace_estimate(modes).value
    # Laplace's approximation is far enough off for the test above to notice it.
    assert abs(laplace - importance.value) > 4 * np.hypot(importance.error, bridge.error)
    assert abs(laplace - importance.value) < 1


def test_a_parent_without_effect_costs_about_as_much_as_it_does_for_a_number():
    """Otherwise edges would be drawn to categories, or away from them, whatever the data say."""
    rng = np.random.default_rng(6)
    losses = []
    for _ in range(8):
        table = pd.DataFrame({"x": rng.normal(size=150), "y": rng.normal(size=150), "c": rng.choice(["a", "b"], 150)})
        scorer = gpn.scores.GP(estimator="laplace").bind(table)
        losses.append([scorer.local(name) - scorer.local(name, ["x"]) for name in ("y", "c")])
    number, category = np.mean(losses, axis=0)
    assert 0.6 < category / number < 1.7


def test_curved_causes_of_a_category_are_found():
    table = clinic(250)
    post = gpn.sample(table, score=gpn.scores.GP(estimator="laplace"), random_seed=1, progressbar=False)
    assert post.edge_probability("age", "ill").value > 0.9
    assert post.edge_probability("site", "bmi").value + post.edge_probability("bmi", "site").value > 0.9
    assert post.edge_probability("site", "ill").value < 0.3


@pytest.mark.parametrize(
    ("settings", "setting"),
    [
        ({"kernel": "interaction"}, "kernel='interaction'"),
        ({"dense": True}, "dense=True"),
        ({"estimator": "bridge", "posterior": "nuts"}, "posterior='nuts'"),
        ({"theta": (2.0, 0.1)}, "a prior of very short length scales"),
        ({"sigma": (400.0, 800.0)}, "a prior of sigma above 1"),
    ],
)
def test_settings_that_need_numbers_say_so(settings, setting):
    with pytest.raises(ValueError, match=f"{setting} needs columns that are numbers; received the category 'site'"):
        gpn.scores.GP(**settings).bind(clinic())


def test_experiments_take_numbers():
    table = clinic().assign(target=np.where(np.arange(150) < 50, "bmi", ""))
    with pytest.raises(ValueError, match="needs numbers; column 'site' holds text"):
        gpn.scores.GP().bind(table, targets="target")


def test_in_experiments_two_values_are_numbers():
    """As they were before: groups of rows may lack a level, and cuts would differ between them."""
    table = clinic().drop(columns="site")
    target = np.where(np.arange(150) < 50, "bmi", "")
    integers = gpn.scores.GP(estimator="laplace").bind(table.assign(target=target), targets="target")
    numbers = table.assign(ill=table["ill"].astype(float), target=target)
    as_numbers = gpn.scores.GP(estimator="laplace").bind(numbers, targets="target")
    for parents in ([], ["age"], ["age", "bmi"]):
        assert integers.local("ill", parents) == pytest.approx(as_numbers.local("ill", parents), abs=1e-9)
    alone = gpn.scores.GP(estimator="laplace").bind(table)
    assert abs(alone.local("ill", ["age"]) - as_numbers.local("ill", ["age"])) > 1


def test_caches_of_numbers_are_not_read_as_those_of_categories():
    table = clinic()[["age", "ill"]]
    score = gpn.scores.GP(estimator="laplace")
    assert (
        score.bind(table).score_fingerprint != score.bind(table[["age"]].assign(b=table["age"] ** 2)).score_fingerprint
    )
    assert score.bind(table).score_fingerprint != score.fingerprint


def test_tables_as_they_are_and_standardised_share_nothing():
    """They once did, in one process: the first to come prepared the rows for both."""
    table = clinic()[["age", "bmi"]]
    standardised = gpn.scores.GP(estimator="laplace").bind(table)
    as_it_is = gpn.scores.GP(estimator="laplace", standardise=False).bind(table)
    assert standardised.local("bmi", ["age"]) - as_it_is.local("bmi", ["age"]) > 100


@pytest.mark.parametrize("ones", [5, 20])
def test_two_levels_without_parents_leave_nothing_of_the_prior_out(ones):
    levels = np.repeat([0, 1], [40 - ones, ones])
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"x": rng.normal(size=40), "ill": levels})
    batches = [gpn.scores.GP(seed=seed).bind(table).score_sets(1, [()]) for seed in range(12)]
    off = np.array([batch.values[0] for batch in batches]) - log_evidence_of_two_levels(levels)
    errors = np.array([batch.errors[0] for batch in batches])
    # Of the prior of sigma, 1e-4 lies beyond the grid.
    assert abs(off.mean()) < 4 * off.std(ddof=1) / np.sqrt(12) + 2e-4
    assert np.mean(np.abs(off) < 2 * errors + 2e-4) > 0.7

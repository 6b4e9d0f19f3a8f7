"""Equations of tables that mix numbers and categories: against priors written out, all DAGs, refits and quadrature."""

from functools import cache
from itertools import product

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats
from scipy.special import expit, logsumexp

import gpn_bayes as gpn
from gpn_bayes import graphs
from gpn_bayes.data import Dataset
from gpn_bayes.posterior.densities import of_rows_left_out, rows_left_out
from gpn_bayes.posterior.predictive_checks import predictive_checks
from gpn_bayes.scores import BIC, CG, BDeu, BGe, Score, ScoreBatch, Scorer, strata
from gpn_bayes.scores.equations import DrawnLevels, LevelsEquation, LinearEquation
from tests.test_mixed_scores import mixed_table

pytestmark = pytest.mark.more("compiles and integrates Gaussian processes of every kind")

QUIET = {"random_seed": 1, "progressbar": False}
# The posterior that `Plain` writes out.
EACH = CG(variances="each")
NAMES = ("s", "x", "t", "y")
CATEGORIES, NUMBERS = (0, 2), (1, 3)
FAMILIES = [(1, ()), (1, (0,)), (3, (1,)), (3, (0, 1)), (3, (0, 1, 2)), (0, (2,)), (2, ())]
EDGES = [("s", "t"), ("s", "x"), ("t", "x"), ("s", "y"), ("x", "y")]


class Parameters:
    """The posterior of a number in one stratum, by the normal-inverse-Wishart prior of all numbers of a family."""

    def __init__(self, rows, ess, scale, cells):
        nu, (n, d) = ess / cells, rows.shape
        mean = rows.mean(axis=0) if n else np.zeros(d)
        apart = rows - mean
        self.psi = scale * nu * np.eye(d) + apart.T @ apart + nu * n / (nu + n) * np.outer(mean, mean)
        self.kappa, self.df, self.mean = nu + n, nu + d - 1 + n, n / (nu + n) * mean

    def expected(self):
        """Return the mean intercept and the mean coefficients."""
        slopes = np.linalg.solve(self.psi[:-1, :-1], self.psi[:-1, -1])
        return self.mean[-1] - slopes @ self.mean[:-1], slopes

    def draws(self, count, rng):
        """Return draws of the intercept, coefficients and sigma, by way of covariance matrices."""
        d = len(self.psi)
        covariances = stats.invwishart.rvs(self.df, self.psi, count, random_state=rng).reshape(count, d, d)
        found = []
        for own in covariances:
            mean = rng.multivariate_normal(self.mean, own / self.kappa)
            slopes = np.linalg.solve(own[:-1, :-1], own[:-1, -1])
            found.append([mean[-1] - slopes @ mean[:-1], *slopes, np.sqrt(own[-1, -1] - slopes @ own[:-1, -1])])
        return np.array(found)


class Plain:
    """A table's posteriors given any DAG, written out: numbers standardised, categories by codes."""

    def __init__(self, table, ess=1.0, scale=0.5):
        self.levels = {v: sorted(table.iloc[:, v].unique()) for v in CATEGORIES}
        self.codes = {v: table.iloc[:, v].map(self.levels[v].index).to_numpy() for v in CATEGORIES}
        numbers = table.iloc[:, list(NUMBERS)].to_numpy()
        self.units = {v: (numbers[:, k].mean(), numbers[:, k].std()) for k, v in enumerate(NUMBERS)}
        self.z = {v: (table.iloc[:, v].to_numpy() - m) / s for v, (m, s) in self.units.items()}
        self.ess, self.scale = ess, scale
        self.under = cache(self._under)
        self.lines = cache(lambda node, parents, own: self.stratum(node, parents, dict(own))[1].expected())

    def stratum(self, node, parents, configuration):
        """Return the posterior of a number where categories are as in a configuration."""
        categories = [p for p in parents if p in CATEGORIES]
        numbers = [p for p in parents if p in NUMBERS]
        rows = np.all([self.codes[p] == configuration[p] for p in categories] or [np.ones(len(self.z[1]), bool)], 0)
        own = np.column_stack([self.z[v][rows] for v in (*numbers, node)])
        cells = int(np.prod([len(self.levels[p]) for p in categories]))
        return numbers, Parameters(own, self.ess, self.scale, cells)

    def share(self, node, parents, configuration, imagined):
        """Return the expected probability of a category's level, given those of its parents."""
        rows = np.all([self.codes[p] == configuration[p] for p in parents] or [np.ones(len(self.z[1]), bool)], 0)
        counts = np.bincount(self.codes[node][rows], minlength=len(self.levels[node])) + imagined(node, parents)
        return counts[configuration[node]] / counts.sum()

    def uniform(self, node, parents):
        """Return the rows that BDeu imagines in a cell."""
        return self.ess / np.prod([len(self.levels[v]) for v in (*parents, node)])

    def _under(self, edges, setting, imagined=None):
        """Return expected numbers and probabilities of levels with one variable set, given a DAG.

        Parameters of different nodes are independent, and so are those of different strata: means of products are
        products of means, configuration by configuration.
        """
        imagined = imagined or self.uniform
        dag = np.array(edges).reshape(4, 4)
        (cause, value), parents = setting, {v: tuple(np.flatnonzero(dag[:, v]).tolist()) for v in range(4)}
        numbers, shares = np.zeros(4), {v: np.zeros(len(self.levels[v])) for v in CATEGORIES}
        for codes in product(*(range(len(self.levels[v])) for v in CATEGORIES)):
            own = dict(zip(CATEGORIES, codes, strict=True))
            if cause in own and own[cause] != value:
                continue
            share = np.prod([self.share(v, parents[v], own, imagined) for v in CATEGORIES if v != cause])
            means = {}
            for v in graphs.topological_order(dag):
                if v in NUMBERS:
                    given = [p for p in parents[v] if p in NUMBERS]
                    strata = tuple((p, own[p]) for p in parents[v] if p in CATEGORIES)
                    level, slopes = self.lines(int(v), parents[v], strata)
                    means[v] = value if v == cause else level + slopes @ np.array([means[p] for p in given])
            for v in NUMBERS:
                numbers[v] += share * means[v]
            for v in CATEGORIES:
                shares[v][own[v]] += share
        return numbers, shares


def weighed(scorer):
    """Return all DAGs that have a score, and their probabilities under a uniform prior."""
    dags = [dag for dag in graphs.enumerate_dags(4) if np.isfinite(scorer.total(dag))]
    scores = np.array([scorer.total(dag) for dag in dags])
    return dags, np.exp(scores - logsumexp(scores))


def in_units_of(scorer, other):
    """Return a scorer whose numbers are standardised as those of another."""
    raw = scorer._values * scorer._scale + scorer._centre
    scorer._centre, scorer._scale = other._centre, other._scale
    scorer._values = np.ascontiguousarray((raw - other._centre) / other._scale)
    scorer._known.clear()
    return scorer


def one_dag(table, edges=EDGES, score=EACH, **settings):
    """Return the posterior of a single DAG."""
    others = [(a, b) for a in table for b in table if a != b and (a, b) not in edges]
    return gpn.sample(table, score=score, required=edges, forbidden=others, draws=50, **QUIET, **settings)


# Parameters


@pytest.mark.parametrize(("s", "t"), [(0, 1), (1, 2), (1, 0)])
def test_drawn_parameters_are_those_of_the_prior_written_out(s, t):
    table = mixed_table()
    equation = CG(ess=2.0, scale=0.8, variances="each").bind(table).equation(3, (0, 1, 2))
    drawn = equation.draw(3000, np.random.default_rng(1))
    at = np.array([[s, s], [0.0, 1.0], [t, t]])
    lines = np.array([drawn.expected(k, at) for k in range(3000)])
    sigma = np.array([drawn.noise(k, at[:, :1])[0] for k in range(3000)])
    found = np.column_stack([lines[:, 0], lines[:, 1] - lines[:, 0], sigma])
    plain = Plain(table, 2.0, 0.8)
    known = plain.stratum(3, (0, 1, 2), {0: s, 2: t})[1].draws(3000, np.random.default_rng(2))
    for own, other in zip(found.T, known.T, strict=True):
        assert stats.ks_2samp(own, other).pvalue > 1e-4
    # A negative control: another stratum has other parameters.
    wrong = plain.stratum(3, (0, 1, 2), {0: 1 - s, 2: t})[1].draws(3000, np.random.default_rng(2))
    assert stats.ks_2samp(found[:, 1], wrong[:, 1]).pvalue < 1e-8


def test_one_variance_is_that_of_a_regression_with_levels_and_slopes_of_each_stratum():
    """Drawn noise and coefficients are those of one conjugate regression on dummies and their products with x."""
    table = mixed_table()
    score = CG(ess=2.0, scale=0.8, variances="one")
    drawn = score.bind(table).equation(3, (0, 1)).draw(3000, np.random.default_rng(1))
    plain = Plain(table)
    own = np.eye(2)[plain.codes[0]]
    design = np.column_stack([own, own * plain.z[1][:, None]])
    precision = design.T @ design + np.diag([1.0, 1.0, 0.8, 0.8])  # ess / 2, and scale * ess / 2
    mean = np.linalg.solve(precision, design.T @ plain.z[3])
    df, squares = 2.0 + 1 + len(table), 1.6 + (plain.z[3] ** 2).sum() - mean @ precision @ mean
    at = np.array([[0.0, 0.0, 1.0, 1.0], [0.0, 1.0, 0.0, 1.0]])
    lines = np.array([drawn.expected(k, at) for k in range(3000)])
    sigma = np.array([drawn.noise(k, at) for k in range(3000)])
    assert (sigma == sigma[:, :1]).all()
    assert stats.kstest(squares / sigma[:, 0] ** 2, stats.chi2(df).cdf).pvalue > 1e-4
    spread = np.sqrt(squares / df * np.diag(np.linalg.inv(precision)))
    found = np.column_stack([lines[:, 0], lines[:, 2], lines[:, 1] - lines[:, 0], lines[:, 3] - lines[:, 2]])
    for draws, location, scale in zip(found.T, mean, spread, strict=True):
        assert stats.kstest(draws, stats.t(df, location, scale).cdf).pvalue > 1e-4
    # A negative control: with a variance for each stratum it isn't the same.
    each = EACH.bind(table).equation(3, (0, 1)).draw(1, np.random.default_rng(1)).noise(0, at)
    assert each[0] != each[2]


def test_one_variance_or_each_is_an_average_of_both():
    """By how probable each is; draws, densities and rows left out alike."""
    table = mixed_table(60)
    node, parents = 3, (0, 1)
    both, one, each = (CG(variances=own).bind(table) for own in ("one or each", "one", "each"))
    share = np.exp(one.local("y", ["s", "x"]) - np.log(2) - both.local("y", ["s", "x"]))
    assert 0.1 < share < 0.9
    rows = both.rows(Dataset.read(table))
    centre, scale = both.units(None)
    rows = (rows - centre) / scale
    values, given = rows[:, 3], rows[:, [0, 1]].T
    equations = [scorer.equation(node, parents) for scorer in (both, one, each)]
    densities = [np.exp(own.log_predictive(values, given)) for own in equations]
    np.testing.assert_allclose(densities[0], share * densities[1] + (1 - share) * densities[2], rtol=1e-9)
    left = [own.leave_one_out(values, given) for own in equations]
    # Without a row, either is as probable as the others make it.
    shares = np.array([share / np.exp(left[1].log_density), (1 - share) / np.exp(left[2].log_density)])
    shares /= shares.sum(axis=0)
    np.testing.assert_allclose(
        np.exp(left[0].log_density), (shares * np.exp([left[1].log_density, left[2].log_density])).sum(axis=0)
    )
    np.testing.assert_allclose(left[0].below, (shares * [left[1].below, left[2].below]).sum(axis=0))
    drawn = equations[0].draw(4000, np.random.default_rng(1))
    same = np.ptp(drawn.sigma, axis=1) == 0
    assert abs(same.mean() - share) < 4 * np.sqrt(share * (1 - share) / 4000)


def test_strata_without_rows_have_the_prior():
    table = mixed_table().query("s == 'f' or t != 'low'")
    scorer = CG(ess=12.0, variances="each").bind(table)
    x_given_both, y_given_all = scorer.equation(1, (0, 2)), scorer.equation(3, (0, 1, 2))
    empty = Parameters(np.empty((0, 1)), 12.0, 0.5, 6)
    new = np.array([0.3]), np.array([[1.0], [1.0]])
    density = stats.t.logpdf(0.3, 2.0, scale=np.sqrt(empty.psi[0, 0] / 2.0 * (1 + 1 / 2.0)))
    assert x_given_both.log_predictive(*new)[0] == pytest.approx(density, abs=1e-10)
    drawn = y_given_all.draw(3000, np.random.default_rng(1))
    at = np.array([[1.0, 1.0], [0.0, 1.0], [1.0, 1.0]])
    slopes = np.diff([drawn.expected(k, at) for k in range(3000)]).ravel()
    known = Parameters(np.empty((0, 2)), 12.0, 0.5, 6).draws(3000, np.random.default_rng(2))
    assert stats.ks_2samp(slopes, known[:, 1]).pvalue > 1e-4
    # With a sixth of an imagined row, parameters have no mean: the noise is known, and all else is drawn given it.
    loose = EACH.bind(table).equation(1, (0, 2)).draw(2000, np.random.default_rng(1))
    at = np.array([[1.0], [1.0]])
    means, sigma = (np.array([own(k, at)[0] for k in range(2000)]) for own in (loose.expected, loose.noise))
    np.testing.assert_allclose(sigma, 0.5**0.5, rtol=1e-4)
    assert stats.kstest(means, stats.norm(0, np.sqrt(0.5 * 6)).cdf).pvalue > 1e-4


def test_many_strata_are_those_that_have_rows(monkeypatch):
    table = mixed_table().query("s == 'f' or t != 'low'")
    rows = CG().bind(table).rows(Dataset.read(table))
    values = (rows[:, 3] - rows[:, 3].mean()) / rows[:, 3].std()
    parents = np.array([rows[:, 0], (rows[:, 1] - rows[:, 1].mean()) / rows[:, 1].std(), rows[:, 2]])
    parents[:, 0] = 1.0, 0.3, 1.0  # without rows
    few = CG().bind(table).equation(3, (0, 1, 2))
    monkeypatch.setattr(strata, "_MOST_STRATA", 2)
    many = CG().bind(table).equation(3, (0, 1, 2))
    assert (len(few.lines.df), len(many.lines.df)) == (7, 6)
    np.testing.assert_allclose(many.log_predictive(values, parents), few.log_predictive(values, parents), rtol=1e-12)
    assert many.draw(3, np.random.default_rng(1)).expected(0, parents).shape == (len(table),)


def test_without_categories_equations_and_effects_are_those_of_bge():
    rng = np.random.default_rng(1)
    a, b, c = rng.normal(size=(3, 70))
    table = pd.DataFrame({"a": 3 * a + 5, "b": a + b, "c": 0.4 * (a + b) - a + c})
    standard = (table - table.mean()) / table.std(ddof=0)
    mixed, plain = CG(ess=3.0, scale=0.7), BGe(alpha_mu=3.0, alpha_w=3.0 + 2, t0=0.7 * 3, standardise=False)
    one, two = mixed.bind(table).equation(2, (0, 1)), plain.bind(standard).equation(2, (0, 1))
    for name in ("mean", "spread", "residual", "df", "level", "centre", "rows"):
        np.testing.assert_allclose(getattr(one, name), getattr(two, name), atol=1e-10)
    posts = [gpn.sample(own, score=score, draws=200, **QUIET) for own, score in ((table, mixed), (standard, plain))]
    pairs = [post.effects().set_index(["cause", "outcome"]).sort_index() for post in posts]
    units = [table[j].std(ddof=0) / table[i].std(ddof=0) for i, j in pairs[1].index]
    np.testing.assert_allclose(pairs[0]["mean"], pairs[1]["mean"] * units, rtol=1e-6)
    assert "to" not in pairs[0]


def test_without_numbers_effects_and_densities_are_those_of_bdeu():
    table = mixed_table()[["s", "t"]].assign(u=lambda own: np.roll(own["s"], 3))
    posts = [gpn.sample(table, score=score, draws=200, **QUIET) for score in (CG(ess=3), BDeu(ess=3))]
    one, two = (post.effect("s", "t").mean for post in posts)
    np.testing.assert_array_equal(one, two)
    one, two = (post.log_predictive(table[:5]).log_density for post in posts)
    np.testing.assert_allclose(one, two, rtol=1e-12)
    with pytest.raises(ValueError, match="^counterfactuals need numbers"):
        posts[0].counterfactual(table.iloc[0], {"s": "m"})


# Effects


@pytest.fixture(scope="module", params=[EACH, BIC()], ids=["cg", "bic"])
def known(request):
    """Return a posterior, and a function of two variables and a setting that averages over all DAGs."""
    table = mixed_table()
    post = gpn.sample(table, score=request.param, draws=1000, **QUIET)
    plain, (dags, probabilities) = Plain(table), weighed(post.scorer.scorer)
    imagined = None if request.param is EACH else lambda node, parents: 1.0

    def averaged(cause, value, outcome, weights=probabilities):
        if cause in NUMBERS:
            centre, scale = plain.units[cause]
            value = (value - centre) / scale
        found = []
        for dag in dags:
            numbers, shares = plain.under(tuple(dag.ravel()), (cause, value), imagined)
            if outcome in CATEGORIES:
                found.append(shares[outcome])
            else:
                centre, scale = plain.units[outcome]
                found.append(centre + scale * numbers[outcome])
        return np.average(found, axis=0, weights=weights)

    return post, averaged, len(dags)


def test_effects_are_averages_over_all_dags(known):
    post, averaged, count = known
    assert count > 50
    slope = post.effect("x", "y", draws=1200)
    exact = averaged(1, 60.0, 3) - averaged(1, 59.0, 3)
    assert abs(slope.mean - exact) < 4 * slope.mcse
    contrast = post.effect("x", "y", to=65, versus=50, draws=1200)
    assert contrast.mean == pytest.approx(15 * slope.mean) and contrast.slope.mean == slope.mean
    means = post.effect("s", "y", draws=1200)
    assert means.quantity == "means" and means.mean["cause"].to_numpy().tolist() == ["f", "m"]
    numbers = [f"{means.mean[k]:.3f} ± {means.mcse[k]:.3f} at {level}" for k, level in enumerate("fm")]
    assert str(means).startswith(f"y if s is set: {numbers[0]}, {numbers[1]}; any effect with probability ")
    for code in (0, 1):
        assert abs(float(means.mean[code]) - averaged(0, code, 3)) < 4 * float(means.mcse[code])
    change = post.effect("s", "y", to="m", versus="f", draws=1200)
    exact = averaged(0, 1, 3) - averaged(0, 0, 3)
    assert change.quantity == "contrast" and abs(change.mean - exact) < 4 * change.mcse
    # A negative control: other weights of the DAGs are noticed.
    even = averaged(0, 1, 3, np.ones(count)) - averaged(0, 0, 3, np.ones(count))
    assert abs(change.mean - even) > 4 * change.mcse


def test_effects_on_categories_are_changes_of_probabilities(known):
    post, averaged, _ = known
    table = post.effect("s", "t", draws=1200)
    assert table.quantity == "table" and table.mean["outcome"].to_numpy().tolist() == ["high", "low", "mid"]
    for code in (0, 1):
        assert (np.abs(table.mean[code] - averaged(0, code, 2)) < 4 * table.mcse[code]).all()
    change = post.effect("s", "t", to="m", versus="f", draws=1200)
    assert change.quantity == "change"
    np.testing.assert_allclose(change.mean, table.mean[1] - table.mean[0])
    levels = (("high", 0), ("low", 1), ("mid", 2))
    parts = [
        ", ".join(f"{level} {table.mean[k][j]:.3f} ± {table.mcse[k][j]:.3f}" for level, j in levels) + f" at {cause}"
        for k, cause in enumerate("fm")
    ]
    assert str(table).startswith(f"t if s is set: {parts[0]}; {parts[1]}; any effect with probability ")
    assert f"from f to m: high {change.mean[0]:.3f} ± {change.mcse[0]:.3f}, low " in str(change)
    # A number is never a cause of a category.
    none = post.effect("x", "t", points=3)
    assert none.quantity == "curves" and none.probability == 0 and none.mean.shape == (3, 3)
    assert (none.mean == none.mean[0]).all()
    assert (post.effect("x", "t", to=60, versus=40).mean == 0).all()


def test_all_effects_on_numbers(known):
    post, averaged, _ = known
    table = post.effects(draws=1200, progressbar=False)
    assert len(table) == 2 + 2 + 4  # x and y on each other, s on both, t by two levels on both
    assert set(table["outcome"]) == {"x", "y"}
    assert (table["standardised"].abs().diff().dropna() <= 1e-12).all()
    spread = mixed_table().std(numeric_only=True)
    for row in table.itertuples():
        i, j = NAMES.index(row.cause), NAMES.index(row.outcome)
        if row.cause in ("x", "y"):
            exact, unit = averaged(i, 1.0, j) - averaged(i, 0.0, j), spread[row.cause]
            assert pd.isna(row.to)
        else:
            levels = {"s": ["f", "m"], "t": ["high", "low", "mid"]}[row.cause]
            assert row.versus == levels[0]
            exact, unit = averaged(i, levels.index(row.to), j) - averaged(i, 0, j), 1.0
        assert abs(row.mean - exact) < 4 * row.mcse
        assert row.standardised == pytest.approx(row.mean * unit / spread[row.outcome])
    wrong = table["mean"] + 0.3 * spread[table["outcome"]].to_numpy()
    assert (np.abs(wrong - table["mean"]) > 4 * table["mcse"]).all()


def test_rows_under_interventions(known):
    post, averaged, _ = known
    rows = post.do({"s": "m"}, draws=4000)
    assert (rows["s"] == "m").all()
    for v in (1, 3):
        own = rows[NAMES[v]]
        assert abs(own.mean() - averaged(0, 1, v)) < 4 * own.std() / np.sqrt(len(rows))
    for code, share in enumerate(averaged(0, 1, 2)):
        found = (rows["t"] == ["high", "low", "mid"][code]).mean()
        assert abs(found - share) < 4 * np.sqrt(share * (1 - share) / len(rows))
    assert post.do({"x": ("shift", 100.0), "t": None}, draws=200)["x"].mean() > 130
    with pytest.raises(ValueError, match="^a category can only be set to one of its levels; received .* for 's'$"):
        post.do({"s": ("shift", 1.0)})
    with pytest.raises(ValueError, match="^'s' must be one of its levels, f, m; received 'q'$"):
        post.effect("s", "y", to="q", versus="f")


def test_slopes_within_one_dag_are_averaged_over_categories():
    """In y = (1 or -1, by s) x, the slope of x is the average over s, and that of do(s) the one of its level."""
    post = one_dag(mixed_table(2000))
    table = mixed_table(2000)
    share = (table["s"] == "f").mean()
    assert post.effect("x", "y").mean == pytest.approx((share - (1 - share)) / 10, abs=0.005)
    rows = [post.do({"s": "f", "x": value}, draws=2000, random_seed=3)["y"].mean() for value in (40.0, 60.0)]
    assert np.diff(rows)[0] == pytest.approx(2.0, abs=0.1)


def test_effects_of_one_dag_are_distributed_as_those_of_parameters_drawn_by_hand():
    """Covariance matrices and probabilities are drawn, and categories summed over, in place of simulations."""
    table, rng, count = mixed_table(), np.random.default_rng(5), 1000
    post = gpn.sample(
        table, score=EACH, required=EDGES, forbidden=[(b, a) for a, b in EDGES] + [("t", "y"), ("y", "t")],
        draws=250, **QUIET,
    )  # fmt: skip
    plain = Plain(table)
    of_s = rng.dirichlet(np.bincount(plain.codes[0]) + 0.5, count)
    x, y, of_t = {}, {}, {}
    for s in (0, 1):
        of_t[s] = rng.dirichlet(np.bincount(plain.codes[2][plain.codes[0] == s]) + 1 / 6, count)
        y[s] = plain.stratum(3, (0, 1), {0: s})[1].draws(count, rng)
        x[s] = np.column_stack([plain.stratum(1, (0, 2), {0: s, 2: t})[1].draws(count, rng)[:, 0] for t in range(3)])
    mean = {s: y[s][:, 0] + y[s][:, 1] * (of_t[s] * x[s]).sum(axis=1) for s in (0, 1)}
    (_, scale_x), (_, scale_y) = plain.units[1], plain.units[3]
    slopes = (of_s[:, 0] * y[0][:, 1] + of_s[:, 1] * y[1][:, 1]) * scale_y / scale_x
    found = post.effect("s", "y", to="m", versus="f", draws=count).draws.to_numpy().ravel()
    assert stats.ks_2samp(found, scale_y * (mean[1] - mean[0])).pvalue > 1e-3
    assert stats.ks_2samp(post.effect("x", "y", draws=count).draws.to_numpy().ravel(), slopes).pvalue > 1e-3
    # A negative control: parameters at their means, and a slope that isn't averaged over categories.
    assert stats.ks_2samp(found, np.full(count, found.mean())).pvalue < 1e-8
    assert stats.ks_2samp(slopes, y[0][:, 1] * scale_y / scale_x).pvalue < 1e-8


def test_counterfactuals_keep_the_noise_of_numbers_and_refuse_that_of_categories():
    table = mixed_table()
    post = gpn.sample(table, score="cg", draws=300, **QUIET)
    row = table.iloc[0]
    same = post.counterfactual(row, {"x": row["x"]}, draws=100)
    assert (same[["s", "t"]] == row[["s", "t"]]).all().all()
    np.testing.assert_allclose(same[["x", "y"]].astype(float), [row[["x", "y"]].astype(float)] * 100, rtol=1e-9)
    with pytest.raises(ValueError, match="^a row doesn't tell the noise of a category; 't' depends on 's' in some "):
        post.counterfactual(row, {"s": "m"}, draws=100)


def test_counterfactuals_run_the_noise_of_a_row_through_other_strata():
    """With many rows, parameters are what least squares say of each stratum."""
    table = mixed_table(4000)
    row = table.iloc[0]
    rows = one_dag(table).counterfactual(row, {"s": "m", "t": row["t"]}, draws=300)
    assert row["s"] == "f" and (rows["s"] == "m").all() and (rows["t"] == row["t"]).all()
    before, after = (table[(table["s"] == level) & (table["t"] == row["t"])]["x"] for level in ("f", "m"))
    x = after.mean() + after.std() * (row["x"] - before.mean()) / before.std()
    assert abs(rows["x"].mean() - x) < 4 * (after.std() / np.sqrt(len(after)) + before.std() / np.sqrt(len(before)))
    lines, left = {}, {}
    for level, own in table.groupby("s"):
        lines[level] = np.polyfit(own["x"], own["y"], 1)
        left[level] = (own["y"] - np.polyval(lines[level], own["x"])).std()
    noise = (row["y"] - np.polyval(lines["f"], row["x"])) / left["f"]
    expected = np.polyval(lines["m"], rows["x"]) + noise * left["m"]
    assert np.abs(rows["y"] - expected).max() < 0.15
    # A negative control: without other slopes the row would have ended elsewhere.
    assert np.abs(rows["y"] - np.polyval(lines["f"], rows["x"]) - noise * left["f"]).mean() > 0.5


# Densities


@pytest.mark.parametrize("variances", ["one", "each"])
@pytest.mark.parametrize("place", [0, 3, 50])
def test_densities_of_new_rows_are_ratios_of_scores(place, variances):
    table, new = mixed_table().drop(index=place), mixed_table().iloc[[place]]
    score = CG(ess=2.0, scale=0.7, variances=variances)
    post = one_dag(table, score=score)
    scorer = post.scorer.scorer
    whole = in_units_of(score.bind(mixed_table()), scorer)
    found = post.log_predictive(new)
    assert float(found.log_density[0]) == pytest.approx(whole.total(EDGES) - scorer.total(EDGES), abs=1e-8)
    for node in NAMES:
        parents = [a for a, b in EDGES if b == node]
        ratio = whole.local(node, parents) - scorer.local(node, parents)
        assert float(found.log_density_given_parents.sel(variable=node)[0]) == pytest.approx(ratio, abs=1e-8)


@pytest.mark.parametrize("variances", ["one", "each"])
def test_densities_of_new_strata_are_ratios_of_scores(variances):
    table = mixed_table().query("s == 'f' or t != 'low'").reset_index(drop=True)
    new = pd.DataFrame({"s": ["m"], "x": [70.0], "t": ["low"], "y": [0.5]})
    post = one_dag(table, [*EDGES, ("t", "y")], CG(variances=variances))
    whole = in_units_of(CG(variances=variances).bind(pd.concat([table, new])), post.scorer.scorer)
    edges = [*EDGES, ("t", "y")]
    ratio = whole.total(edges) - post.scorer.scorer.total(edges)
    assert float(post.log_predictive(new).log_density[0]) == pytest.approx(ratio, abs=1e-8)


def test_densities_average_over_dags():
    table, new = mixed_table()[4:], mixed_table()[:4]
    post = gpn.sample(table, score=EACH, draws=2000, **QUIET)
    scorer = post.scorer.scorer
    dags, probabilities = weighed(scorer)
    found = post.log_predictive(new)
    for i in range(4):
        whole = in_units_of(EACH.bind(pd.concat([table, new[i : i + 1]])), scorer)
        ratios = [whole.total(dag) - scorer.total(dag) for dag in dags]
        exact = logsumexp(ratios, b=probabilities)
        assert abs(float(found.log_density[i]) - exact) < 4 * float(found.mcse[i])
    assert float(np.abs(found.log_density[0] - found.log_density[1])) > 4 * float(found.mcse.max())


def test_densities_are_integrals_over_the_parameters():
    table = mixed_table()
    equation = EACH.bind(table).equation(1, (0, 2))
    own = Plain(table).stratum(1, (0, 2), {0: 1, 2: 0})[1]

    def integrand(log_variance, z):
        variance = np.exp(log_variance)
        inverse_gamma = stats.invgamma.pdf(variance, own.df / 2, scale=own.psi[0, 0] / 2)
        return stats.norm.pdf(z, own.mean[0], np.sqrt(variance * (1 + 1 / own.kappa))) * inverse_gamma * variance

    for z in (-2.0, 0.4, 3.0):
        exact, _ = integrate.quad(integrand, -15, 15, args=(z,), epsabs=1e-12, limit=200)
        assert equation.log_predictive(np.array([z]), np.array([[1.0], [0.0]]))[0] == pytest.approx(
            np.log(exact), abs=1e-8
        )
    grid = np.linspace(-300, 300, 300_001)
    density = np.exp(equation.log_predictive(grid, np.repeat([[1.0], [0.0]], len(grid), axis=1)))
    assert np.trapezoid(density, grid) == pytest.approx(1, abs=1e-3)


@pytest.mark.parametrize("score", [EACH, CG(ess=4.0, scale=0.9, variances="one"), BIC()])
@pytest.mark.parametrize(("node", "parents"), FAMILIES)
def test_rows_left_out_are_those_of_refits(score, node, parents):
    table = mixed_table(60)
    scorer = score.bind(table)
    rows = scorer.rows(Dataset.read(table))
    centre, scale = scorer.units(None)
    rows = (rows - centre) / scale
    own = rows[:, node].astype(int) if node in CATEGORIES else rows[:, node]
    found = scorer.equation(node, parents).leave_one_out(own, rows[:, list(parents)].T)
    for i in range(0, 60, 7):
        refit = in_units_of(score.bind(table.drop(index=i)), scorer).equation(node, parents)
        given = rows[i : i + 1, list(parents)].T
        assert found.log_density[i] == pytest.approx(refit.log_predictive(own[i : i + 1], given)[0], abs=1e-8)
        if node in CATEGORIES:
            earlier = np.arange(own[i])
            smaller = np.exp(refit.log_predictive(earlier, np.repeat(given, len(earlier), axis=1))).sum()
            assert found.below[i] == pytest.approx(smaller, abs=1e-8)
            continue
        smaller, _ = integrate.quad(
            lambda z, at=given, line=refit: float(np.exp(line.log_predictive(np.array([z]), at))[0]), -np.inf, own[i]
        )
        assert found.below[i] == pytest.approx(smaller, abs=1e-5)


# What follows from these


def test_levels_are_predicted_from_all_other_variables():
    table = mixed_table()
    post = one_dag(table)
    shares = post.predict(table[:6].drop(columns="t"), "t", given="all")
    assert shares.columns.tolist() == ["high", "low", "mid"]
    for i in range(6):
        joint = [float(post.log_predictive(table[i : i + 1].assign(t=level)).log_density[0]) for level in shares]
        np.testing.assert_allclose(shares.iloc[i], np.exp(joint - logsumexp(joint)), rtol=1e-6)
    by_parents = post.predict(table[:6].drop(columns="t"), "t")
    assert by_parents.groupby(table["s"][:6]).nunique().max().max() == 1


def test_numbers_are_predicted_with_noise():
    table = mixed_table(400)
    post = gpn.sample(table[:300], score="cg", draws=300, **QUIET)
    for given in ("parents", "all"):
        found = post.predict(table[300:].drop(columns="y"), "y", given=given)
        assert 0.8 <= table["y"][300:].between(found["lower"], found["upper"]).mean() <= 0.98
    # Noise of its own in each stratum.
    wide = mixed_table(400).assign(y=lambda own: own["y"] * np.where(own["s"] == "f", 10, 1))
    found = gpn.sample(wide, score="cg", draws=100, **QUIET).predict(wide, "y")
    assert found["sd"][wide["s"] == "f"].mean() > 4 * found["sd"][wide["s"] == "m"].mean()


def test_numbers_of_strata_with_few_rows_are_predicted_from_all_others():
    """Tails are heavy there: predictions are integrals over values that lie close where they are likely."""
    table = mixed_table()[lambda own: (own["t"] != "high") | (np.cumsum(own["t"] == "high") == 1)]
    post, row = one_dag(table), table[table["t"] == "high"]
    equation = post.scorer.scorer.equation(1, (0, 2))
    assert equation.lines.df.min() < 1.2
    found = post.predict(row, "x", given="all").iloc[0]
    grid = np.sort(np.concatenate([sign * np.geomspace(1e-4, 1e6, 3000) for sign in (-1, 1)])) + found["mean"]
    joint = post.log_predictive(pd.concat([row] * len(grid)).assign(x=grid), draws=1).log_density.to_numpy()
    density = np.exp(joint - joint.max())
    below = integrate.cumulative_trapezoid(density, grid, initial=0)
    lower, upper = np.interp([0.05, 0.95], below / below[-1], grid)
    assert found["mean"] == pytest.approx(np.trapezoid(density * grid, grid) / below[-1], abs=0.01 * (upper - lower))
    assert (found["lower"], found["upper"]) == pytest.approx((lower, upper), abs=0.01 * (upper - lower))


def test_posteriors_of_a_mixed_table_are_compared():
    table = mixed_table(80)
    posts = {score: gpn.sample(table, score=score, draws=300, **QUIET) for score in ("cg", "bic")}
    posts["empty"] = one_dag(table, [])
    found = gpn.compare(posts)
    assert found.table.index[-1] == "empty" and found.rows == 80
    assert found.table.loc["empty", "elpd_diff"] < -50
    assert set(found.by_variable["variable"]) == set(NAMES)
    # Of a single DAG, elpd is the sum of what refits say of each row.
    known = of_rows_left_out(posts["empty"], np.arange(1), progressbar=False)
    assert found.table.loc["empty", "elpd"] == pytest.approx(known.joint(slice(None)).sum(), abs=1e-3)
    numbers = gpn.sample(table[["x", "y"]], score="bge", draws=100, **QUIET)
    codes = gpn.sample(table[["x", "y"]].round().astype(int), score="bdeu", draws=100, **QUIET)
    with pytest.raises(ValueError, match="^densities of numbers and probabilities of categories can't be compared"):
        gpn.compare({"numbers": numbers, "codes": codes})


def test_ranks_of_rows_left_out_are_uniform():
    table = mixed_table(600, seed=5)
    post = gpn.sample(table, score="cg", draws=100, **QUIET)
    panels = post.plot_ppc(draws=100)
    assert panels.shape == (4, 5)
    plt.close("all")
    for check in predictive_checks(post, draws=100, tables=5):
        assert stats.kstest(check.pit, "uniform").pvalue > 1e-3
        assert bool(check.levels) == (check.name in ("s", "t")) == (check.residuals is None)
    left = rows_left_out(post, 100, progressbar=False)
    assert left.elpd.elpd == pytest.approx(left.joint.mean(axis=0).sum(), abs=2)


def test_drawn_tables_are_like_the_data():
    table = mixed_table(400)
    post = gpn.sample(table, score="cg", draws=300, **QUIET)
    drawn = post.sample_predictive(400, tables=30)
    assert drawn.index.names == ["table", "row"] and list(drawn) == list(table)
    for name in ("x", "y"):
        assert drawn[name].mean() == pytest.approx(table[name].mean(), abs=0.2 * table[name].std())
        assert drawn[name].std() == pytest.approx(table[name].std(), rel=0.15)
    counts = drawn.groupby(["s", "t"]).size() / len(drawn)
    np.testing.assert_allclose(counts, table.groupby(["s", "t"]).size() / len(table), atol=0.05)
    tree = post.to_arviz(log_likelihood=True, posterior_predictive=True, variable="t")
    assert set(np.unique(tree["posterior_predictive"]["t"])) == {0, 1, 2}


def test_zeros_and_ones_among_numbers_keep_their_values():
    table = mixed_table().assign(s=lambda own: 3 * (own["s"] == "m"))
    post = gpn.sample(table, score="cg", draws=100, **QUIET)
    assert set(post.do({}, draws=100)["s"]) == {0, 3}
    named = gpn.sample(mixed_table(), score="cg", draws=100, **QUIET)
    assert post.effect("s", "y", to=3, versus=0).mean == pytest.approx(named.effect("s", "y", to="m", versus="f").mean)


def test_learners_score_new_rows_of_mixed_tables():
    table = mixed_table(300)
    found = gpn.estimators.HillClimbing(score=EACH).fit(table[:200])
    post = one_dag(table[:200], list(found.graph_.edges))
    assert found.score(table[200:]) == pytest.approx(float(post.log_predictive(table[200:]).log_density.mean()))


def test_effects_are_reported_drawn_and_saved(tmp_path):
    post = gpn.sample(mixed_table(), score="cg", draws=100, **QUIET)
    page = post.report(tmp_path / "report.html").read_text(encoding="utf-8")
    for quantity in ("slope", "means", "table"):
        assert f'"quantity":"{quantity}"' in page
    for pair in (("s", "y"), ("x", "y"), ("s", "t"), ("x", "t")):
        post.plot_effect(*pair)
    matrix = post.plot_effects()
    assert matrix.get_ylabel() == "cause"
    plt.close("all")
    post.save(tmp_path / "run.nc")
    again = gpn.load(tmp_path / "run.nc")
    assert again.effect("s", "y", to="m", versus="f").mean == post.effect("s", "y", to="m", versus="f").mean


def test_what_needs_one_kind_is_refused():
    table = mixed_table()
    post = gpn.sample(table, score="cg", draws=50, **QUIET)
    with pytest.raises(
        ValueError, match="^tables are those of categories; the score CG.* takes some columns as numbers$"
    ):
        post.to_pgmpy()
    for network in (lambda: gpn.pymc_network(table, EDGES, score="cg"), lambda: gpn.pymc_networks(post)):
        with pytest.raises(ValueError, match="^a PyMC network needs the method `pymc_node`, which cg doesn't have$"):
            network()
    with pytest.raises(ValueError, match="^a curve needs the method `hyper_posterior`, which cg doesn't have"):
        post.plot_curves("y")


# Scores to come: numbers as parents of categories, by any equation


class Logistic(Score):
    """A score under which a number makes a level more probable, by a logistic curve."""

    name, parameters, standardise = "logistic", {}, False

    def _bind(self, data):
        return LogisticScorer(self, data.names, data.fingerprint)


class LogisticScorer(Scorer):
    levels = ((), ("no", "yes"), ())

    def score_sets(self, node, parent_sets):
        return ScoreBatch.exact(np.zeros(len(parent_sets)))

    def equation(self, node, parents):
        if node == 1:
            return LogisticEquation()
        k = len(parents)
        return LinearEquation(np.full(k, 2.0), 1e-12 * np.eye(k), 1e8, 1e8, 0.0, np.zeros(k), 1e12)


class LogisticEquation(LevelsEquation):
    def draw(self, count, rng):
        return DrawnLogistic()

    def log_predictive(self, codes, parents):
        return np.log(expit(np.where(codes == 1, 1, -1) * (3 * parents.sum(axis=0) - 1)))

    leave_one_out = None


class DrawnLogistic(DrawnLevels):
    def chances(self, draw, parents):
        share = expit(3 * parents.sum(axis=0) - 1)
        return np.stack([1 - share, share], axis=-1)


def test_any_equation_can_give_levels_their_probabilities():
    table = pd.DataFrame({"bmi": np.linspace(-1, 1, 20), "ill": np.tile([0, 1], 10), "cost": np.linspace(0, 1, 20)})
    forbidden = [("ill", "bmi"), ("cost", "ill"), ("cost", "bmi"), ("bmi", "cost")]
    required = [("bmi", "ill"), ("ill", "cost")]
    post = gpn.sample(table, score=Logistic(), required=required, forbidden=forbidden, draws=50, **QUIET)
    curves = post.effect("bmi", "ill", points=5)
    assert curves.quantity == "curves"
    np.testing.assert_allclose(curves.mean.sel(outcome="yes"), expit(3 * np.linspace(-1, 1, 5) - 1))
    change = post.effect("bmi", "ill", to=1.0, versus=0.0)
    assert float(change.mean.sel(outcome="yes")) == pytest.approx(expit(2) - expit(-1))
    # By way of the level: a curve, not a line, of probabilities times two.
    through = post.effect("bmi", "cost", to=1.0, versus=0.0)
    assert through.quantity == "contrast" and through.mean == pytest.approx(2 * (expit(2) - expit(-1)), abs=0.02)
    rows = post.do({"bmi": 0.5}, draws=4000)
    assert (rows["ill"] == "yes").mean() == pytest.approx(expit(0.5), abs=4 * 0.5 / np.sqrt(4000))
    assert post.effect("bmi", "cost", points=5).quantity == "curve"
    found = post.predict({"bmi": 0.5, "cost": 0.0}, "ill")
    assert float(found["yes"].iloc[0]) == pytest.approx(expit(0.5))

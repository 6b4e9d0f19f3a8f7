"""Tests of independence against plain formulas; their p-values under independence, and their power."""

from itertools import combinations, permutations

import numpy as np
import pandas as pd
import pytest
from scipy.spatial.distance import pdist
from scipy.stats import chi2, chi2_contingency, kstest, norm

from gpn_bayes import SufficientStatistics
from gpn_bayes.estimators.independence import HSIC, BoundTest, CallableTest, DistanceCorrelation, FisherZ, GSquared
from gpn_bayes.estimators.independence.kernel_tests import permutation_moments
from gpn_bayes.estimators.independence.residuals import Regression
from gpn_bayes.kernels.independence.contingency import g_squared
from gpn_bayes.kernels.independence.dependence import (
    centred_distances,
    centred_gaussian,
    median_distance,
    permuted_sums,
    product_sum,
    traces,
)

KERNEL_TESTS = {"hsic": HSIC, "distance-correlation": DistanceCorrelation}


def partial_correlation(values, x, y, given):
    """Return the correlation of what least squares on the others leaves of two columns."""
    others = np.column_stack([np.ones(len(values)), values[:, given]])
    left = [values[:, k] - others @ np.linalg.lstsq(others, values[:, k])[0] for k in (x, y)]
    return np.corrcoef(left)[0, 1]


def bent(rng, rows=100, slope=0.0):
    """Return z, and x and y that both depend on it, non-linearly, and y on x by some slope."""
    z = rng.normal(size=rows)
    x = np.sin(2 * z) + z + 0.5 * rng.normal(size=rows)
    y = z**2 - z + slope * np.tanh(x) + 0.5 * rng.normal(size=rows)
    return pd.DataFrame({"x": x, "y": y, "z": z})


class TestKernels:
    """The compiled sums against numpy."""

    rng = np.random.default_rng(1)
    a, b = rng.normal(size=30), rng.exponential(size=30)

    def test_hsic_is_the_textbook_trace(self):
        widths = [np.sort(pdist(v[:, None]))[217] for v in (self.a, self.b)]
        k, m = (np.exp(-0.5 * (v[:, None] - v) ** 2 / w**2) for v, w in zip((self.a, self.b), widths, strict=True))
        h = np.eye(30) - 1 / 30
        sums = product_sum(centred_gaussian(self.a), centred_gaussian(self.b))
        assert sums == pytest.approx(np.trace(k @ h @ m @ h), rel=1e-12)

    def test_distance_covariance_is_the_textbook_one(self):
        d, e = (np.abs(v[:, None] - v) for v in (self.a, self.b))
        v2 = (d * e).mean() + d.mean() * e.mean() - 2 * (d.mean(axis=0) * e.mean(axis=0)).mean()
        sums = product_sum(centred_distances(self.a), centred_distances(self.b))
        assert sums / 30**2 == pytest.approx(v2, rel=1e-12)

    def test_the_median_distance_leaves_out_copies(self):
        points = self.rng.normal(size=(21, 3))
        apart = pdist(points)
        assert median_distance(points) == pytest.approx(np.median(np.append(apart, np.inf)))
        twice = np.repeat(points[:7], 2, axis=0)
        assert median_distance(twice) == np.sort(pdist(points[:7]))[10]
        assert median_distance(np.ones((4, 2))) == 0

    def test_moments_are_those_over_all_permutations(self):
        first, second = centred_gaussian(self.a[:6]), centred_distances(self.b[:6])
        sums = permuted_sums(first, second, np.array(list(permutations(range(6)))))
        mean, variance = permutation_moments(traces(first), traces(second), 6)
        assert mean == pytest.approx(sums.mean(), rel=1e-10)
        assert variance == pytest.approx(sums.var(), rel=1e-10)
        assert sums[0] == pytest.approx(product_sum(first, second))


class TestRegression:
    def test_copies_of_rows_change_nothing(self):
        values = bent(np.random.default_rng(2), 40).to_numpy()
        rows = np.random.default_rng(3).integers(40, size=120)
        rows[:40] = np.arange(40)
        single, copied = Regression(values).residuals(0, (2,)), Regression(values[rows]).residuals(0, (2,))
        # Scales differ, since copies count in standard deviations.
        assert np.corrcoef(copied, single[rows])[0, 1] > 0.999

    def test_linear_and_bent_relations_are_taken_out(self):
        rng = np.random.default_rng(4)
        z, noise = rng.uniform(-3, 3, size=(200, 2)), rng.normal(size=200)
        for signal in (4 * z[:, 0], 4 * np.sin(2 * z[:, 0]) - z[:, 1] ** 2):
            left = Regression(np.column_stack([z, signal + noise])).residuals(2, (0, 1))
            assert np.corrcoef(left, noise)[0, 1] > 0.9

    def test_noise_stays(self):
        values = np.random.default_rng(5).normal(size=(100, 3))
        assert Regression(values).residuals(0, (1, 2)).var() > 0.85


class TestUnderIndependence:
    """Over many tables p-values are uniform, those of the gamma distribution where they are small enough to matter."""

    @pytest.mark.parametrize("test", KERNEL_TESTS.values())
    def test_kernel_tests(self, test):
        rng = np.random.default_rng(6)
        tables = [np.column_stack([rng.normal(size=60), rng.exponential(size=60)]) for _ in range(400)]
        p = np.array([test().bind(table).p_value(0, 1) for table in tables])
        for level in (0.02, 0.05, 0.1):
            assert abs((p < level).mean() - level) < 3 * np.sqrt(level * (1 - level) / 400)
        permuted = [test("permutation", 99).bind(table, random_state=1).p_value(0, 1) for table in tables[:200]]
        # Between the hundredths that such p-values can be, any would do.
        assert kstest(np.array(permuted) - rng.random(200) / 100, "uniform").pvalue > 1e-3

    @pytest.mark.parametrize("test", KERNEL_TESTS.values())
    def test_kernel_tests_given_a_common_cause(self, test):
        """What regressions leave is a little less dependent than noise: p-values err on the large side."""
        rng = np.random.default_rng(7)
        p = np.array([test().bind(bent(rng)).p_value("x", "y", ["z"]) for _ in range(200)])
        assert (p < 0.05).mean() < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 200)
        assert kstest(p, "uniform", alternative="greater").pvalue > 1e-3
        assert np.median(p) < 0.7

    def test_the_check_would_notice(self):
        """Negative control: without regression the common cause shows."""
        rng = np.random.default_rng(7)
        p = [HSIC().bind(bent(rng)).p_value("x", "y") for _ in range(50)]
        assert kstest(p, "uniform", alternative="greater").pvalue < 1e-3

    def test_fisher_z(self):
        rng = np.random.default_rng(8)
        p = []
        for _ in range(300):
            z = rng.normal(size=(30, 2))
            p.append(FisherZ().bind(np.column_stack([z @ [1, 2] + rng.normal(size=30), z])).p_value(1, 2))
        assert kstest(p, "uniform").pvalue > 1e-3

    def test_g_squared(self):
        rng = np.random.default_rng(9)
        p = []
        for _ in range(200):
            z = rng.integers(3, size=600)
            x, y = (rng.random((2, 600)) * (1 + z)).astype(int)
            p.append(GSquared().bind(pd.DataFrame({"x": x, "y": y, "z": z})).p_value("x", "y", ["z"]))
        assert kstest(p, "uniform").pvalue > 1e-3


def test_a_stratum_of_weight_zero_has_no_degrees_of_freedom():
    first, second = np.array([0, 1, 0, 1], np.int32), np.array([0, 1, 1, 0], np.int32)
    strata = np.array([0, 2, 4])
    statistic, degrees = g_squared(first, second, np.array([5, 6, 0, 0]), np.arange(4), strata, (2, 2))
    assert degrees == 1
    whole = np.array([[5, 0], [0, 6]])
    assert statistic == pytest.approx(chi2_contingency(whole, correction=False, lambda_="log-likelihood").statistic)


class TestPower:
    @pytest.mark.parametrize("test", KERNEL_TESTS.values())
    def test_kernel_tests_see_what_correlations_miss(self, test):
        rng = np.random.default_rng(10)
        found, missed = 0, 0
        for _ in range(30):
            x = rng.uniform(-2, 2, size=80)
            table = np.column_stack([x, x**2 + 0.5 * rng.normal(size=80)])
            found += test().bind(table).p_value(0, 1) < 0.01
            missed += FisherZ().bind(table).p_value(0, 1) > 0.01
        assert found == 30
        assert missed > 20

    @pytest.mark.parametrize("test", KERNEL_TESTS.values())
    def test_a_direct_effect_shows_beside_a_common_cause(self, test):
        rng = np.random.default_rng(11)
        p = [test().bind(bent(rng, slope=2.0)).p_value("x", "y", ["z"]) for _ in range(20)]
        assert np.mean(np.array(p) < 0.05) > 0.8


@pytest.mark.parametrize("test", KERNEL_TESTS.values())
def test_gamma_and_permutations_agree(test):
    """The distribution fits best in the tail that tests look at."""
    rng = np.random.default_rng(12)
    for strength in np.linspace(0, 0.4, 12):
        x = rng.normal(size=100)
        table = np.column_stack([x, strength * x + rng.normal(size=100)])
        gamma = test().bind(table).p_value(0, 1)
        permuted = test("permutation", 1999).bind(table, random_state=1).p_value(0, 1)
        assert abs(gamma - permuted) < 4 * np.sqrt(gamma * (1 - gamma) / 1999) + 0.005 + 0.08 * gamma


def test_permutations_follow_the_seed():
    table = np.random.default_rng(13).normal(size=(30, 2))
    p = [HSIC("permutation", 50).bind(table, random_state=seed).p_value(0, 1) for seed in (1, 1, 2, 3, 4)]
    assert p[0] == p[1]
    assert len(set(p)) > 1
    assert HSIC("permutation", 50).bind(np.repeat(table[:, :1], 2, axis=1) + 0.0001 * table).p_value(0, 1) == 1 / 51


@pytest.mark.parametrize("test", [HSIC(), DistanceCorrelation(), FisherZ()], ids=repr)
def test_a_set_that_determines_a_variable_tells_nothing(test):
    x = np.random.default_rng(14).normal(size=(50, 3))
    x[:, 1] = 2 * x[:, 0]
    bound = test.bind(x)
    assert np.isnan(bound.p_value(0, 2, [1]))
    assert bound.p_value(0, 1) < 1e-6
    assert bound.p_value(0, 2) > 1e-6


class TestFisherZ:
    values = np.random.default_rng(15).normal(size=(40, 6)) @ np.random.default_rng(16).normal(size=(6, 6))

    def test_it_is_the_partial_correlation(self):
        test = FisherZ().bind(self.values)
        for given in ([], [2], [3, 2], [2, 3, 4, 5]):
            z = np.sqrt(40 - len(given) - 3) * np.arctanh(abs(partial_correlation(self.values, 0, 1, given)))
            assert test.p_value(1, 0, given) == pytest.approx(2 * norm.sf(z), rel=1e-8)

    def test_the_compiled_skeleton_is_the_plain_one(self):
        test = FisherZ().bind(self.values)
        kept, apart = np.zeros((6, 6), bool), np.zeros((6, 6), bool)
        kept[0, 3] = kept[3, 0] = apart[1, 2] = apart[2, 1] = True
        for limits in ((0.05, None), (0.3, None), (0.3, 1)):
            fast = test.skeleton(*limits, kept, apart)
            plain = BoundTest.skeleton(test, *limits, kept, apart)
            free = ~(kept | apart | np.eye(6, dtype=bool))
            assert (fast.adjacent == plain.adjacent).all()
            assert fast.separating_sets == plain.separating_sets
            assert (fast.largest_set, fast.complete) == (plain.largest_set, plain.complete)
            assert np.allclose(fast.p_values[free], plain.p_values[free], rtol=1e-8)
            assert fast.adjacent[0, 3]
            assert not fast.adjacent[1, 2]

    def test_too_few_rows_tell_nothing(self):
        test = FisherZ().bind(self.values[:6])
        assert not np.isnan(test.p_value(0, 1, [2, 3]))
        assert np.isnan(test.p_value(0, 1, [2, 3, 4]))


class TestGSquared:
    rng = np.random.default_rng(17)
    table = pd.DataFrame(rng.integers(3, size=(500, 4)), columns=list("abcd"))

    def test_without_others_it_is_scipy(self):
        expected = chi2_contingency(pd.crosstab(self.table.a, self.table.b), correction=False, lambda_="log-likelihood")
        assert GSquared().bind(self.table).p_value("a", "b") == pytest.approx(expected.pvalue, rel=1e-10)

    @pytest.mark.parametrize("given", [["c"], ["d", "c"]])
    def test_strata_add_up(self, given):
        found = [
            chi2_contingency(pd.crosstab(part.a, part.b), correction=False, lambda_="log-likelihood")
            for _, part in self.table.groupby(given)
        ]
        statistic, freedom = sum(one.statistic for one in found), sum(one.dof for one in found)
        p = GSquared().bind(self.table).p_value("a", "b", given)
        assert p == pytest.approx(chi2.sf(statistic, freedom), rel=1e-10)

    def test_levels_that_do_not_occur_give_no_freedom(self):
        wide = self.table.astype(pd.CategoricalDtype(range(9)))
        assert GSquared().bind(wide).p_value("a", "b", "c") == GSquared().bind(self.table).p_value("a", "b", "c")

    def test_too_few_rows_tell_nothing(self):
        assert np.isnan(GSquared().bind(self.table[:50]).p_value("a", "b", ["c", "d"]))
        assert not np.isnan(GSquared(min_rows=0).bind(self.table[:50]).p_value("a", "b", ["c", "d"]))

    def test_nothing_to_compare_is_independence(self):
        table = pd.DataFrame({"a": list("xyxy"), "b": list("qpqp"), "c": list("uvuw")})
        assert GSquared().bind(table).p_value("a", "b", ["c"]) == 1.0

    def test_many_levels_and_rows_are_quick(self):
        rng = np.random.default_rng(18)
        table = pd.DataFrame(rng.integers(60, size=(20_000, 6)), columns=list("abcdef"))
        test = GSquared(min_rows=0).bind(table)
        for size in range(5):
            for given in combinations("cdef", size):
                assert 0 <= test.p_value("a", "b", given) <= 1


def test_a_function_is_a_test():
    asked = []

    def function(table, x, y, given):
        asked.append((table.shape, x, y, given))
        return 0.5

    test = CallableTest(function).bind(pd.DataFrame({"a": [1.0, 2.0], "b": ["p", "q"], "c": [1, 0]}))
    assert test.p_value("b", "a", ["c"]) == test.p_value(0, 1, [2]) == 0.5
    assert asked == [((2, 3), "a", "b", ("c",))]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: HSIC("beta"), "^null must be one of gamma, permutation; received 'beta'$"),
        (lambda: HSIC(permutations=0), "^permutations must be a whole number, 1 or more; received 0$"),
        (lambda: HSIC(permutations=True), "^permutations must be a whole number, 1 or more; received True$"),
        (lambda: GSquared(-1), "^min_rows must be 0 or more; received -1$"),
        (lambda: HSIC().bind(np.eye(4)), "^HSIC needs at least 5 rows; received 4$"),
        (
            lambda: DistanceCorrelation().bind(SufficientStatistics(9, [0, 0], np.eye(2), ["a", "b"])),
            "^DistanceCorrelation needs the rows; received SufficientStatistics$",
        ),
        (
            lambda: CallableTest(min).bind(SufficientStatistics(9, [0, 0], np.eye(2), ["a", "b"])),
            "^a user-defined test needs the rows; received SufficientStatistics$",
        ),
        (
            lambda: HSIC().bind(pd.DataFrame({"a": list("xyxyx"), "b": range(5)})),
            "^HSIC needs numbers; column 'a' holds text such as 'x'$",
        ),
        (
            lambda: FisherZ().bind(np.eye(9)).p_value(0, 1, [1]),
            r"^x, y and the variables given must all differ; received \['v1', 'v2', 'v2'\]$",
        ),
        (
            lambda: CallableTest(lambda *_: 2.0).bind(np.eye(9)).p_value(0, 1),
            "^a test must return a p-value between 0 and 1, or NaN; received 2.0$",
        ),
    ],
)
def test_what_is_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_tests_show_their_settings():
    assert repr(HSIC("permutation", 9)) == "HSIC(null='permutation', permutations=9)"
    assert repr(FisherZ()) == "FisherZ()"

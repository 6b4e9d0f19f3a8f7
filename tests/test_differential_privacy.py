"""Statistics with noise: its size, what it protects, what the statistics are then good for, and what is refused."""

import json
import math
import random
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import gpn_bayes as gpn
from gpn_bayes import estimators
from gpn_bayes.data import PrivacyNoise, read_part
from gpn_bayes.federated import Privacy, noisy_moments
from gpn_bayes.federated.moments import FRACTION_BITS, from_digits
from gpn_bayes.federated.noisy_moments import noisy_digits, scaled_rows
from gpn_bayes.federated.plan import Plan
from gpn_bayes.federated.privacy import GRID_BITS, planned_privacy
from gpn_bayes.federated.statistics import StatisticsParticipant, sum_statistics
from tests.federated import PlainChannel, split
from tests.federation import tables

pytestmark = pytest.mark.more("statistics that take long")

BOUNDS = {"x": (-4.0, 4.0), "y": (0.0, 10.0)}
NAMES = tuple(BOUNDS)
PRIVACY = Privacy(1.0, 1e-6, BOUNDS)
SETTINGS = {"score": "bge", "sampler": "exact", "draws": 20, "chains": 1, "progressbar": False, "random_seed": 1}


@pytest.fixture(autouse=True)
def seeded(monkeypatch):
    monkeypatch.setattr("gpn_bayes.secure.discrete_gaussian.randbelow", random.Random(11).randrange)


@pytest.fixture
def no_noise(monkeypatch):
    monkeypatch.setattr(noisy_moments, "discrete_gaussian", lambda variance, count: [0] * count)


def sums(digits):
    return np.array([total / 2.0**FRACTION_BITS for total in from_digits(digits)])


def rows(n, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    return np.column_stack([x, 5 + x + rng.normal(size=n)])


def noisy(parts, privacy=PRIVACY):
    """Return statistics of tables, without the cost of masks."""
    channel = PlainChannel([StatisticsParticipant(read_part(part), privacy, len(parts)) for part in parts])
    return sum_statistics(channel, list(privacy.bounds), privacy)


def frames(n, parts=4, seed=1):
    return split(pd.DataFrame(rows(n, seed), columns=list(NAMES)), parts)


# The noise


@pytest.mark.parametrize("clients", [2, 5])
def test_the_noise_of_the_sum_is_unbiased_and_has_the_variance_it_should(clients):
    parts = np.array_split(rows(40), clients)
    exact = np.column_stack([np.ones(40), scaled_rows(rows(40), NAMES, PRIVACY) / 2**20])
    exact = (exact.T @ exact)[np.triu_indices(3)]
    repetitions = 400
    answers = np.array(
        [[sums(noisy_digits(part, NAMES, PRIVACY, clients)) for part in parts] for _ in range(repetitions)]
    )
    noise = answers.sum(axis=1) - exact
    variance = PRIVACY.noise_scale() ** 2
    error = math.sqrt(2 / noise.size)
    expected = variance * clients / (clients - 1)
    assert np.mean(noise**2) == pytest.approx(expected, rel=4 * error)
    assert np.mean(noise**2) != pytest.approx(variance, rel=4 * error)  # negative control: one share less
    assert np.abs(noise.mean(axis=0)).max() < 4 * math.sqrt(expected / repetitions)
    # What a client sees that subtracts its own answer is as noisy as the guarantee needs.
    others = noise - (answers[:, 0] - answers[:, 0].mean(axis=0))
    assert np.mean(others**2) == pytest.approx(variance, rel=4 * error)


@pytest.mark.parametrize("radius", [None, 0.6, 1.2])
def test_a_row_adds_no_more_than_the_sensitivity(radius):
    privacy = Privacy(1.0, 1e-6, {name: (-1.0, 3.0) for name in "abcd"}, radius)
    rng = np.random.default_rng(2)
    wild = np.vstack([
        rng.normal(size=(200, 4)) * 10.0 ** rng.uniform(-3, 300, size=(200, 1)),
        rng.choice([-1.0, 3.0, 1e308], size=(50, 4)),
        np.eye(4) * 1e9 + 1.0,
    ])  # fmt: skip
    z = scaled_rows(wild, "abcd", privacy) / 2**20
    assert (z * 2**20 == np.rint(z * 2**20)).all() and np.abs(z).max() <= 1
    augmented = np.column_stack([np.ones(len(z)), z])
    upper = np.triu_indices(5)
    added = np.array([np.outer(row, row)[upper] for row in augmented])
    lengths = np.sqrt((added**2).sum(axis=1))
    assert lengths.max() <= privacy.sensitivity()
    if radius is None:
        assert privacy.sensitivity() == pytest.approx(math.sqrt(1 + 4 + 10))
        assert lengths.max() == pytest.approx(privacy.sensitivity())  # attained in a corner
    assert lengths.max() > 0.9 * privacy.sensitivity()
    unclipped = (wild[-1] - 1.0) / 2.0  # negative control
    assert np.linalg.norm(unclipped) > privacy.sensitivity()


def test_bounds_next_to_each_other_do_not_let_rows_grow():
    """Their middle is rounded to one of them, so that the other would be 2 away instead of 1."""
    privacy = Privacy(1.0, 1e-6, {"x": (1.0, math.nextafter(1.0, 2.0))})
    assert scaled_rows(np.array([[0.0], [5.0]]), ["x"], privacy).tolist() == [[0.0], [2.0**20]]


def test_an_outlier_moves_the_sums_by_no_more_than_the_sensitivity(no_noise):
    before, after = rows(50), np.vstack([rows(50), [1e9, -1e9]])
    moved = sums(noisy_digits(after, NAMES, PRIVACY, 3)) - sums(noisy_digits(before, NAMES, PRIVACY, 3))
    assert 2 < np.linalg.norm(moved) <= PRIVACY.sensitivity()


def epsilon_at_least(privacy, delta, scale=1.0):
    """Return a lower bound on epsilon, with 99.9% confidence, from sums of two neighbours.

    The attacker is one of two clients, and knows that the other's table may have one row more, at the bounds.
    """
    repetitions = 3000
    row = np.array([[4.0]])
    directions = []
    for table in (np.zeros((5, 1)), np.vstack([np.zeros((5, 1)), row])):
        drawn = np.array([sums(noisy_digits(table, ["x"], privacy, 2)) for _ in range(repetitions)])
        directions.append((drawn - [5.0, 0.0, 0.0]) @ np.ones(3) / math.sqrt(3))
    without, having = directions
    # The best event: the loss exceeds epsilon.
    noise = privacy.noise_scale() * scale
    threshold = math.sqrt(3) / 2 + privacy.epsilon * noise**2 / math.sqrt(3)
    k, j = int((having > threshold).sum()), int((without > threshold).sum())
    least = stats.beta.ppf(0.0005, k, repetitions - k + 1) if k else 0.0
    most = stats.beta.ppf(0.9995, j + 1, repetitions - j)
    return math.log(max(least - delta, 1e-300) / most)


def test_neighbours_cannot_be_told_apart_beyond_epsilon(monkeypatch):
    delta = 0.05
    privacy = Privacy(1.0, delta, {"x": (-4.0, 4.0)})
    # Without delta, the event's probabilities differ by more than epsilon: the noise isn't far too large.
    assert epsilon_at_least(privacy, 0.0) > 0.9
    assert epsilon_at_least(privacy, delta) < 1.0
    enough = noisy_moments.noise_variance
    monkeypatch.setattr(noisy_moments, "noise_variance", lambda own, clients: enough(own, clients) // 100)
    assert epsilon_at_least(privacy, delta, scale=0.1) > 3.0  # negative control: ten times too little noise


def test_a_smaller_radius_takes_less_noise():
    bounds = {f"x{i}": (-4, 4) for i in range(11)}
    whole, short = Privacy(1.0, 1e-6, bounds), Privacy(1.0, 1e-6, bounds, radius=math.sqrt(11 / 8))
    assert whole.noise_scale() == pytest.approx(4.2246788893 * math.sqrt(78), rel=1e-8)
    assert short.noise_scale() < whole.noise_scale() / 4
    assert Privacy(1.0, 1e-6, bounds, radius=1e300).noise_scale() == pytest.approx(whole.noise_scale(), rel=1e-12)


# What comes of it


def test_without_noise_statistics_are_those_of_the_table(no_noise):
    """Units, means and the divisor; clipping acts on nothing."""
    pooled = noisy(frames(5000))
    table = rows(5000)
    assert pooled.n == 5000
    np.testing.assert_allclose(pooled.mean, table.mean(axis=0), atol=2e-5)
    np.testing.assert_allclose(pooled.cov, np.cov(table.T), rtol=1e-4, atol=1e-4)


def test_large_tables_are_summed_in_blocks_without_error(no_noise):
    table = rows(20_000)
    z = scaled_rows(table, NAMES, PRIVACY).astype(np.int64).astype(object)
    augmented = np.column_stack([np.full(len(z), 2**20, dtype=object), z])
    exact = (augmented.T @ augmented)[np.triu_indices(3)]
    assert from_digits(noisy_digits(table, NAMES, PRIVACY, 3)) == [int(total) << 100 for total in exact]


def test_the_reported_noise_is_that_of_repetitions():
    """With means far from the middle of the bounds, so that the noise of means and of n matters."""
    parts, repetitions = frames(8000), 400
    privacy = Privacy(1.0, 1e-6, {"x": (-3.0, 13.0), "y": (1.0, 25.0)})
    drawn = [noisy(parts, privacy) for _ in range(repetitions)]
    seen = np.std([pooled.cov for pooled in drawn], axis=0)
    reported = np.mean([pooled.noise.sd for pooled in drawn], axis=0)
    np.testing.assert_allclose(seen, reported, rtol=4 / math.sqrt(2 * repetitions))
    exact = gpn.SufficientStatistics.of(pd.concat(parts))
    errors = np.mean([own.cov for own in drawn], axis=0) - exact.cov
    assert (np.abs(errors) < 4 * reported / math.sqrt(repetitions)).all()
    largest = reported[0, 1] / math.sqrt(exact.cov[0, 0] * exact.cov[1, 1])
    assert np.mean([own.largest_noise for own in drawn]) == pytest.approx(largest, rel=0.05)
    assert (drawn[0].noise.epsilon, drawn[0].noise.delta) == (1.0, 1e-6)


def test_the_reported_noise_is_by_the_slopes_of_the_covariances(monkeypatch):
    """Of two columns that vary as much as bounds allow, so that it matters how the number of rows acts on them."""
    x = np.where(np.arange(1000) % 20 < 17, 4.0, -4.0)
    part = pd.DataFrame({"x": x, "y": np.where(np.arange(1000) % 30 < 25, 9.0, 1.0)})

    def scaled_covariance(place, step):
        """Return it with so much added to one of the sums."""
        added = [0] * 6
        added[place] = step << GRID_BITS
        monkeypatch.setattr(noisy_moments, "discrete_gaussian", lambda variance, count: added)
        found = noisy([part])
        return found.cov / np.outer([4, 5], [4, 5]), found.noise.sd / np.outer([4, 5], [4, 5])

    slopes = [(scaled_covariance(place, 5)[0] - scaled_covariance(place, -5)[0]) / 10 for place in range(6)]
    expected = PRIVACY.noise_scale() * np.sqrt(np.sum(np.square(slopes), axis=0))
    np.testing.assert_allclose(scaled_covariance(0, 0)[1], expected, rtol=0.01)


def test_covariances_stay_positive_definite_under_much_noise():
    parts = tables((60, 70, 50), 6)
    privacy = Privacy(0.5, 1e-6, {name: (-4, 4) for name in parts[0].columns})
    smallest = []
    for _ in range(20):
        try:
            pooled = noisy(parts, privacy)
        except ValueError as error:
            assert str(error).startswith("the number of rows, with noise, must be at least 2; it is -")
        else:
            smallest.append(np.linalg.eigvalsh(pooled.correlation)[0])
            assert np.isfinite(gpn.scores.BGe().bind(pooled).local(parts[0].columns[0], [parts[0].columns[1]]))
    assert len(smallest) > 5 and min(smallest) > 1e-3


@pytest.mark.parametrize("clients", [2, 3, 6])
def test_where_data_do_not_vary_covariances_are_as_large_as_the_noise(no_noise, clients):
    """That of all clients but one is what the guarantee needs; a matrix of noise is sqrt(d) times as large."""
    names = ["a", "b", "c"]
    privacy = Privacy(1.0, 1e-6, dict.fromkeys(names, (-1.0, 1.0)))
    values = np.random.default_rng(1).uniform(-1, 1, 5000)
    pooled = noisy(split(pd.DataFrame(dict.fromkeys(names, values)), clients), privacy)
    size = privacy.noise_scale() * math.sqrt(clients / (clients - 1)) * math.sqrt(3)
    np.testing.assert_allclose(np.linalg.eigvalsh(pooled.cov)[:2] * (pooled.n - 1), size, rtol=1e-6)


def test_means_beyond_the_bounds_are_drawn_back_to_them(monkeypatch):
    """Noise can take a sum beyond what rows within the bounds could add up to; the mean is then the bound."""
    # In the order of n, sum a, sum b, ...: five rows' worth for the first variable, as many against the second.
    monkeypatch.setattr(
        noisy_moments,
        "discrete_gaussian",
        lambda variance, count: [0, 5 << GRID_BITS, -5 << GRID_BITS] + [0] * (count - 3),
    )
    (low_a, high_a), (low_b, high_b) = PRIVACY.bounds.values()
    part = pd.DataFrame({NAMES[0]: [high_a] * 3, NAMES[1]: [low_b] * 3})
    found = noisy([part])
    np.testing.assert_allclose(found.mean, [high_a, low_b])
    assert low_a < high_a and low_b < high_b


def test_too_few_rows_for_the_noise_are_named(monkeypatch):
    monkeypatch.setattr(noisy_moments, "discrete_gaussian", lambda variance, count: [-3 << 40] + [0] * (count - 1))
    message = "^the number of rows, with noise, must be at least 2; it is -1: use more rows or a larger epsilon$"
    with pytest.raises(ValueError, match=message):
        gpn.federated.secure_statistics(frames(8, 3), privacy=PRIVACY)


def test_masked_sums_with_noise_are_near_those_of_the_table():
    """The public function, with masks; two clients need no warning, as neither learns the other's sums."""
    pooled = gpn.federated.secure_statistics(frames(4000, 2), privacy=PRIVACY)
    exact = gpn.SufficientStatistics.of(pd.DataFrame(rows(4000), columns=list(NAMES)))
    assert pooled.names == NAMES and abs(pooled.n - 4000) < 6 * 1.42 * PRIVACY.noise_scale()
    assert (np.abs(pooled.cov - exact.cov) < 6 * pooled.noise.sd + 1e-3).all()
    assert not np.array_equal(pooled.cov, gpn.federated.secure_statistics(frames(4000, 2), privacy=PRIVACY).cov)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"secure": False, "privacy": PRIVACY}, "^privacy needs secure sums: plain ones show each client's answer, "),
        (
            {"privacy": Privacy(1.0, 1e-6, {"x": (0, 1)})},
            "^bounds must be given for every variable and nothing else; 'y' has none$",
        ),
        (
            {"privacy": Privacy(1.0, 1e-6, BOUNDS | {"z": (0, 1)})},
            "^bounds must be given for every variable and nothing else; 'z' is no variable$",
        ),
    ],
)
def test_what_is_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        gpn.federated.secure_statistics(frames(30, 3), **settings)


GOOD = {"epsilon": 1.0, "delta": 1e-6, "bounds": {"x": [0, 1], "y": [0, 1]}}
HOSTILE = {
    "unknown": ({"depth": 3}, "settings of statistics are epsilon, delta, bounds, radius; received 'depth'"),
    "no delta": (
        {"epsilon": 1.0, "bounds": {}},
        "settings of statistics must include delta if there are any; they don't",
    ),
    "zero": (GOOD | {"epsilon": 0}, "epsilon must lie between 1e-06 and 100; received 0"),
    "negative": (GOOD | {"epsilon": -1.0}, "epsilon must lie between 1e-06 and 100; received -1.0"),
    "large": (GOOD | {"epsilon": 101}, "epsilon must lie between 1e-06 and 100; received 101"),
    "huge": (GOOD | {"epsilon": 10**4000}, "epsilon must lie between 1e-06 and 100; received 1000"),
    "nan": (GOOD | {"epsilon": math.nan}, "epsilon must lie between 1e-06 and 100; received nan"),
    "infinity": (GOOD | {"delta": math.inf}, "delta must lie between 1e-15 and 0.1; received inf"),
    "true": (GOOD | {"epsilon": True}, "epsilon must lie between 1e-06 and 100; received True"),
    "text": (GOOD | {"delta": "1e-6"}, "delta must lie between 1e-15 and 0.1; received '1e-6'"),
    "one": (GOOD | {"delta": 1.0}, "delta must lie between 1e-15 and 0.1; received 1.0"),
    "none": (GOOD | {"bounds": None}, "bounds must give a pair of numbers for each variable; received None"),
    "list": (GOOD | {"bounds": [[0, 1], [0, 1]]}, "bounds must give a pair of numbers for each variable; received [["),
    "reversed": (
        GOOD | {"bounds": {"x": [1, 0], "y": [0, 1]}},
        "bounds must be pairs of finite numbers, the lowest value first; those of 'x' are [1, 0]",
    ),
    "equal": (GOOD | {"bounds": {"x": [1, 1], "y": [0, 1]}}, "bounds must be pairs of finite numbers, the lowest "),
    "endless": (GOOD | {"bounds": {"x": [0, math.inf], "y": [0, 1]}}, "bounds must be pairs of finite numbers, "),
    "three": (GOOD | {"bounds": {"x": [0, 1, 2], "y": [0, 1]}}, "bounds must be pairs of finite numbers, "),
    "letters": (GOOD | {"bounds": {"x": "01", "y": [0, 1]}}, "bounds must be pairs of finite numbers, "),
    "nested": (GOOD | {"bounds": {"x": [[0], 1], "y": [0, 1]}}, "bounds must be pairs of finite numbers, "),
    "wide": (GOOD | {"bounds": {"x": [0, 1e200], "y": [0, 1]}}, "bounds must be at most 1e+100 in size and at least "),
    "narrow": (GOOD | {"bounds": {"x": [0, 1e-300], "y": [0, 1]}}, "bounds must be at most 1e+100 in size and at "),
    "missing": (GOOD | {"bounds": {"x": [0, 1]}}, "bounds must be given for every variable and nothing else; 'y' has "),
    "other": (
        GOOD | {"bounds": {"x": [0, 1], "y": [0, 1], "A" * 10_000: [0, 1]}},
        "bounds must be given for every variable and nothing else; 'AAA",
    ),
    "radius": (GOOD | {"radius": 0}, "radius must be a number, 0.001 or more; received 0"),
    "odd radius": (GOOD | {"radius": [1]}, "radius must be a number, 0.001 or more; received [1]"),
}


@pytest.mark.parametrize(("settings", "message"), HOSTILE.values(), ids=HOSTILE)
def test_settings_that_make_no_sense_are_refused_in_one_line(settings, message):
    plan = Plan("run", "statistics", json.dumps(settings), ("x", "y"), ("a", "b", "c"), True)
    with pytest.raises(ValueError) as error:
        planned_privacy(plan)
    text = str(error.value)
    assert text.startswith(message) and "\n" not in text and len(text) < 200


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"secure": False}, "^privacy needs secure sums: "),
        ({"variables": ("x", "y", "x")}, "^variables must have different names; received one twice$"),
        ({"clients": tuple(f"c{i}" for i in range(200_000))}, "^noise can't be split among 200000 clients; use fewer "),
    ],
)
def test_plans_that_would_weaken_the_noise_are_refused(changes, message):
    settings = json.dumps(GOOD | {"epsilon": 100.0})
    plan = {"variables": ("x", "y"), "clients": ("a", "b", "c"), "secure": True} | changes
    with pytest.raises(ValueError, match=message):
        planned_privacy(Plan("run", "statistics", settings, **plan))
    assert planned_privacy(Plan("run", "statistics", settings, ("x", "y"), ("a", "b", "c"), True)).epsilon == 100.0
    assert planned_privacy(Plan("run", "statistics", "{}", ("x", "y"), ("a", "b", "c"), True)) is None


# Statistics that carry noise


def example():
    noise = PrivacyNoise(2.0, 1e-5, [[0.1, 0.2], [0.2, 0.4]])
    return gpn.SufficientStatistics(100, [0.0, 1.0], [[1.0, 0.5], [0.5, 4.0]], NAMES, noise)


def test_noise_is_saved_and_part_of_the_fingerprint(tmp_path):
    plain = gpn.SufficientStatistics(100, [0.0, 1.0], [[1.0, 0.5], [0.5, 4.0]], NAMES)
    assert (
        plain.fingerprint == "9a4adcde526e68d5722dbbc1e676c81f" and plain.largest_noise == 0
    )  # as before there was noise
    assert example().largest_noise == pytest.approx(0.1)
    other = gpn.SufficientStatistics(100, plain.mean, plain.cov, NAMES, PrivacyNoise(2.0, 1e-6, example().noise.sd))
    assert len({plain.fingerprint, example().fingerprint, other.fingerprint}) == 3
    for own in (plain, example()):
        own.save(tmp_path / "statistics.npz")
        loaded = gpn.SufficientStatistics.load(tmp_path / "statistics.npz")
        assert loaded.fingerprint == own.fingerprint
    np.testing.assert_array_equal(loaded.noise.sd, example().noise.sd)
    assert (loaded.noise.epsilon, loaded.noise.delta) == (2.0, 1e-5)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"delta": None}, "^s.npz can't be read as statistics: delta is missing$"),
        ({"noise_sd": None}, "^s.npz can't be read as statistics: noise_sd is missing$"),
        ({"noise_sd": np.ones(2)}, "^s.npz can't be read as statistics: noise_sd is float64 of 1 dimensions$"),
        ({"noise_sd": np.ones((3, 3))}, r": noise must have the shape \(2, 2\) of cov; received \(3, 3\)$"),
        ({"noise_sd": -np.ones((2, 2))}, ": standard deviations of noise must be numbers, 0 or more; received others$"),
        ({"noise_sd": np.full((2, 2), np.nan)}, ": standard deviations of noise must be numbers, 0 or more; "),
        (
            {"epsilon": np.array(np.nan)},
            ": epsilon must be positive, and delta between 0 and 1; received nan and 1e-05$",
        ),
        ({"delta": np.array(1.0)}, ": epsilon must be positive, and delta between 0 and 1; received 2.0 and 1.0$"),
        ({"epsilon": np.array("1")}, "^s.npz can't be read as statistics: epsilon is <U1 of 0 dimensions$"),
    ],
)
def test_damaged_files_are_refused(tmp_path, changes, message):
    arrays = {name: value for name, value in (example().to_arrays() | changes).items() if value is not None}
    np.savez(tmp_path / "s.npz", **arrays)
    with pytest.raises(ValueError, match=message):
        gpn.SufficientStatistics.load(tmp_path / "s.npz")


WARNING = (
    "the statistics carry noise for differential privacy (epsilon 2, delta 1e-05) of standard deviation up to 0.1 in "
    "a correlation, beside a sampling error of 0.1; results take it for part of the data, unless .discounted() "
    "statistics allow for it"
)


def test_discounted_statistics_do_not_take_noise_for_edges():
    rng = np.random.default_rng(5)
    names = [f"x{i}" for i in range(6)]
    parts = split(pd.DataFrame(rng.normal(size=(20_000, 6)), columns=names), 4)
    privacy = Privacy(1.0, 1e-6, {name: (-4, 4) for name in names})
    false = {"taken as exact": 0, "discounted": 0}
    for _ in range(5):
        drawn = noisy(parts, privacy)
        assert drawn.discounted().n == int(1 / (1 / drawn.n + drawn.largest_noise**2))
        with pytest.warns(UserWarning, match="noise for differential privacy"):
            false["taken as exact"] += n_joined(drawn)
        false["discounted"] += n_joined(drawn.discounted())
    # Of 75 pairs; exact statistics join none.
    assert false["taken as exact"] > 20 and false["discounted"] < 8
    assert n_joined(gpn.SufficientStatistics.of(pd.concat(parts))) == 0
    plain = gpn.SufficientStatistics(100, [0.0, 1.0], [[1.0, 0.5], [0.5, 4.0]], NAMES)
    assert plain.discounted().fingerprint == plain.fingerprint


def n_joined(data):
    """Return how many pairs are joined with a probability above one half."""
    probabilities = gpn.sample(data, **SETTINGS).edge_probabilities().to_numpy()
    return int((np.triu(probabilities + probabilities.T) > 0.5).sum())


@pytest.mark.parametrize(
    "use",
    [
        lambda data: gpn.sample(data, **SETTINGS),
        lambda data: estimators.Exact(score="bge").fit(data),
        lambda data: estimators.HillClimbing(score="bic").fit(data),
        lambda data: estimators.PC(test="fisher-z").fit(data),
        lambda data: estimators.NOTEARS(lambda1=0.1).fit(data),
    ],
)
def test_noise_is_warned_of_once(use):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        use(example())
    (warning,) = (one for one in caught if "noise" in str(one.message))
    assert str(warning.message) == WARNING
    assert not warning.filename.startswith(str(Path(gpn.__file__).parent))  # it points at the caller
    use(gpn.SufficientStatistics(100, [0.0, 1.0], [[1.0, 0.5], [0.5, 4.0]], NAMES))  # warnings are errors


def test_posteriors_report_the_noise(tmp_path):
    with pytest.warns(UserWarning, match="noise for differential privacy"):
        post = gpn.sample(example(), **SETTINGS)
    assert post.settings["privacy"] == {"epsilon": 2.0, "delta": 1e-5, "correlation_sd": pytest.approx(0.1)}
    assert f"- The statistics are taken as exact, although they {WARNING[15:]}." in str(post.diagnostics())
    post.save(tmp_path / "post.nc")
    loaded = gpn.load(tmp_path / "post.nc")
    assert loaded.settings["privacy"] == post.settings["privacy"]
    assert loaded.data.fingerprint == example().fingerprint and loaded.data.noise.epsilon == 2.0
    loaded.report(tmp_path / "report.html")
    assert "epsilon 2, delta 1e-05" in (tmp_path / "report.html").read_text()
    plain = gpn.sample(gpn.SufficientStatistics(100, [0.0, 1.0], [[1.0, 0.5], [0.5, 4.0]], NAMES), **SETTINGS)
    assert "privacy" not in plain.settings and "noise for" not in str(plain.diagnostics())

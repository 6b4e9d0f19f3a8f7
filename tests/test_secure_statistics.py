"""Statistics of tables that nobody pooled: exactly those of the pooled table, and so are the posteriors."""

from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes.data import read_part
from gpn_bayes.federated import moments
from gpn_bayes.federated.statistics import StatisticsParticipant
from tests.command_line import call
from tests.federation import tables


def exact_statistics(values):
    """Return mean and covariance by exact fractions."""
    n = len(values)
    rows = [[Fraction(float(value)) for value in row] for row in values]
    mean = [sum(column) / n for column in zip(*rows, strict=True)]
    d = len(mean)
    cov = [
        [float(sum((r[i] - mean[i]) * (r[j] - mean[j]) for r in rows) / (n - 1)) for j in range(d)] for i in range(d)
    ]
    return np.array([float(m) for m in mean]), np.array(cov)


@pytest.mark.parametrize("secure", [True, False])
def test_pooled_statistics_are_those_of_the_pooled_table(secure):
    parts = tables((40, 75, 60), 6)
    pooled = gpn.federated.secure_statistics(parts, secure=secure)
    plain = gpn.SufficientStatistics.of(gpn.Dataset.read(pd.concat(parts)))
    assert pooled.n == 175 and pooled.names == plain.names
    np.testing.assert_allclose(pooled.mean, plain.mean, rtol=1e-12)
    np.testing.assert_allclose(pooled.cov, plain.cov, rtol=1e-12)


def test_columns_of_very_different_magnitudes():
    """Units from 1e-9 to 1e12, and means far away from zero: the covariance is the small difference of large sums."""
    rng = np.random.default_rng(3)
    values = rng.normal(size=(60, 5)) @ (np.eye(5) + 0.5) * [1e-9, 1e-3, 1.0, 1e6, 1e12]
    values += np.array([1.0, -1e4, 1e8, 0.0, 1e15])
    pooled = gpn.federated.secure_statistics([values[:11], values[11:40], values[40:]])
    mean, cov = exact_statistics(values)
    np.testing.assert_allclose(pooled.mean, mean, rtol=1e-12)
    np.testing.assert_allclose(pooled.cov, cov, rtol=1e-9)


def test_sums_of_floats_would_not_do():
    """Negative control of the test above: the textbook formula loses those covariances."""
    values = np.random.default_rng(3).normal(size=(60, 2)) + 1e8
    sums, products = values.sum(axis=0), values.T @ values
    textbook = (products - np.outer(sums, sums) / 60) / 59
    assert not np.allclose(textbook, np.cov(values.T), rtol=1e-6)
    pooled = gpn.federated.secure_statistics(np.split(values, 3))
    np.testing.assert_allclose(pooled.cov, np.cov(values.T), rtol=1e-9)


def test_posteriors_from_the_sums_are_those_of_the_pooled_table():
    parts = tables((30, 45, 25, 50), 5, seed=2)
    pooled = gpn.federated.secure_statistics(parts)
    settings = {"score": "bge", "sampler": "exact", "draws": 20, "chains": 1, "progressbar": False, "random_seed": 1}
    ours = gpn.sample(pooled, **settings).edge_probabilities()
    theirs = gpn.sample(pd.concat(parts), **settings).edge_probabilities()
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-9)
    other = gpn.sample(gpn.federated.secure_statistics(parts[:3]), **settings).edge_probabilities()
    assert np.abs(other - theirs).to_numpy().max() > 1e-3  # negative control: a part less is seen


def test_a_part_may_have_constant_columns_and_a_single_row():
    values = np.random.default_rng(4).normal(size=(30, 3))
    values[:10, 1] = 2.0
    pooled = gpn.federated.secure_statistics([values[:10], values[10:29], values[29:]])
    np.testing.assert_allclose(pooled.cov, np.cov(values.T), rtol=1e-12)


def test_digits_are_exact_whatever_adds_them():
    rng = np.random.default_rng(5)
    numbers = [
        int(x) << int(s) for x, s in zip(rng.integers(-(2**60), 2**60, 50), rng.integers(0, 200, 50), strict=True)
    ]
    digits = moments.to_digits(numbers)
    assert np.abs(digits).max() <= 2**39
    assert moments.from_digits(digits) == numbers
    assert moments.from_digits(np.sum([digits] * 1000, axis=0)) == [1000 * number for number in numbers]


def test_inputs_are_not_modified():
    parts = [part.to_numpy(copy=True) for part in tables((10, 12, 9), 3)]
    before = [part.copy() for part in parts]
    gpn.federated.secure_statistics(parts)
    for part, kept in zip(parts, before, strict=True):
        np.testing.assert_array_equal(part, kept)


def test_two_clients_are_warned_of_what_a_sum_of_two_reveals():
    expected = r"^a sum over 2 clients hides little: anyone who knows the numbers of one .* get the other's exactly"
    with pytest.warns(UserWarning, match=expected):
        gpn.federated.secure_statistics(tables((10, 12), 3))


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        ([], "^statistics need at least one table; received none$"),
        (
            [np.eye(3)],
            "^a secure sum needs at least 2 clients: a sum over one is that client's own numbers; received 1$",
        ),
        (
            [pd.DataFrame({"x": [1.0, 2.0], "y": [0.0, 1.0]}), pd.DataFrame({"y": [1.0, 2.0], "x": [0.0, 1.0]})],
            "^all tables must have the same columns in the same order; table 2 has y, x, the first x, y$",
        ),
        (
            [pd.DataFrame({"x": [1.0, 2.0], "y": ["a", "b"]})] * 3,
            "^a sum over clients needs numbers; column 'y' holds text such as 'a'$",
        ),
        (
            [np.array([[1.0, np.nan], [1.0, 2.0]])] * 3,
            "^every value must be present; 1 is missing, in 1 of .*'v2' in row 0",
        ),
        ([np.eye(2)[:0]] * 3, "^a part of a table needs at least one row; received none$"),
        ([np.eye(3) * [1.0, 1.0, 1e25]] * 3, "^sums of products must be below 1e41 in size; "),
        ([np.eye(3) * [1.0, 1.0, 1e-20]] * 3, "^a column must vary by more than 1e-16; 'v3' doesn't: give it in"),
        ([np.ones((4, 2))] * 3, "^every column must vary; column 'v1' has variance 0.0$"),
    ],
)
def test_what_is_refused(parts, message):
    with pytest.raises(ValueError, match=message):
        gpn.federated.secure_statistics(parts)


def test_participants_refuse_other_tasks_and_the_same_twice():
    participant = StatisticsParticipant(read_part(np.eye(3)))
    with pytest.raises(ValueError, match="^the only task of statistics is 'moments'; received 'rows'$"):
        participant.answer("rows", {})
    participant.answer("moments", {})
    restarted = StatisticsParticipant(read_part(np.eye(3)))
    restarted.restore(participant.state())
    for own in (participant, restarted):
        with pytest.raises(ValueError, match="^statistics are summed once in a run; received the task again$"):
            own.answer("moments", {})


def test_files_of_statistics_take_the_place_of_data(tmp_path):
    part = tables((80,), 4)[0]
    statistics = gpn.SufficientStatistics.of(gpn.Dataset.read(part))
    statistics.save(tmp_path / "statistics.npz")
    loaded = gpn.SufficientStatistics.load(tmp_path / "statistics.npz")
    assert loaded.fingerprint == statistics.fingerprint and loaded.names == statistics.names
    settings = {"score": "bge", "sampler": "exact", "draws": 20, "chains": 1, "progressbar": False}
    from_file = gpn.sample(tmp_path / "statistics.npz", **settings)
    np.testing.assert_allclose(
        from_file.edge_probabilities(), gpn.sample(part, **settings).edge_probabilities(), rtol=0, atol=1e-9
    )


def test_files_that_hold_no_statistics_are_refused(tmp_path):
    with pytest.raises(ValueError, match="^the file of statistics must exist; 'nowhere.npz' is not a file$"):
        gpn.SufficientStatistics.load("nowhere.npz")
    np.savez(tmp_path / "other.npz", n=3)
    (tmp_path / "text.npz").write_text("n,mean")
    np.savez(tmp_path / "pickled.npz", n=3, mean=[0.0, 0.0], cov=np.eye(2), names=np.array(["a", None], dtype=object))
    needed = "n, mean, cov and names"
    for name, why in (("other", "mean is missing"), ("text", needed), ("pickled", needed)):
        with pytest.raises(ValueError, match=f"^{name}.npz can't be read as statistics: {why}$"):
            gpn.SufficientStatistics.load(tmp_path / f"{name}.npz")


def test_the_command_line_takes_a_file_of_statistics(tmp_path, capsys):
    table = gpn.datasets.sachs(transform="log2")
    gpn.SufficientStatistics.of(gpn.Dataset.read(table)).save(tmp_path / "statistics.npz")
    table.to_csv(tmp_path / "table.csv", index=False)
    edges = {}
    for name in ("statistics.npz", "table.csv"):
        out = tmp_path / f"run of {name}"
        code, shown, _ = call(capsys, "run", tmp_path / name, "--score", "bge", "--draws", 20, "--out", out, "-q")
        assert code == 0 and "11 variables, 853 rows" in shown
        edges[name] = pd.read_csv(out / "edges.csv").set_index(["parent", "child"])["probability"].sort_index()
        out = tmp_path / f"estimate of {name}"
        code, _, _ = call(capsys, "estimate", tmp_path / name, "--method", "hc", "--score", "bge", "--out", out, "-q")
        assert code == 0
    np.testing.assert_allclose(edges["statistics.npz"], edges["table.csv"], atol=1e-6)
    assert call(capsys, "run", tmp_path / "statistics.npz", "--score", "gp", "--out", tmp_path / "gp")[0] == 2

"""The Gaussian BIC score against least squares; and which form of BIC a table gets."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from gpn_bayes import SufficientStatistics, graphs
from gpn_bayes.data import Dataset
from gpn_bayes.scores import BIC
from gpn_bayes.scores.discrete import DiscreteBICScorer
from gpn_bayes.scores.gaussian_bic import GaussianBICScorer


@pytest.fixture(scope="module")
def frame():
    rng = np.random.default_rng(13)
    x = rng.normal(size=(60, 5))
    x[:, 2] += x[:, 0] - 0.5 * x[:, 1]
    x[:, 4] += 0.8 * x[:, 2]
    return pd.DataFrame(4 * x + [3, 0, -50, 1, 7], columns=list("abcde"))


def least_squares(frame, node, parents):
    """Return the log likelihood of the best regression on standardised columns, less half a log row a parameter."""
    x = ((frame - frame.mean()) / frame.std(ddof=1)).to_numpy()
    design = np.column_stack([np.ones(len(x)), x[:, list(parents)]])
    coefficients = np.linalg.lstsq(design, x[:, node])[0]
    residuals = x[:, node] - design @ coefficients
    fit = norm.logpdf(residuals, scale=np.sqrt(np.mean(residuals**2))).sum()
    return fit - 0.5 * np.log(len(x)) * (len(parents) + 2)


def test_scores_are_those_of_least_squares(frame):
    scorer = BIC().bind(frame)
    for node in range(5):
        others = [i for i in range(5) if i != node]
        table = scorer.table(node, others)
        for mask in range(16):
            parents = [others[bit] for bit in range(4) if mask >> bit & 1]
            expected = least_squares(frame, node, parents)
            assert scorer.local(node, parents) == pytest.approx(expected, abs=1e-9)
            assert table[mask] == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("parents", [(), (0,), (0, 1, 4)])
def test_equations_are_those_of_least_squares(frame, parents):
    """Under flat priors: the t distributions have the estimates, their standard errors and rows less coefficients."""
    x = ((frame - frame.mean()) / frame.std(ddof=1)).to_numpy()
    design = np.column_stack([np.ones(60), x[:, list(parents)]])
    coefficients = np.linalg.lstsq(design, x[:, 2])[0]
    squares = ((x[:, 2] - design @ coefficients) ** 2).sum()
    equation = BIC().bind(frame).equation(2, parents)
    df = 60 - 1 - len(parents)
    assert equation.df == df and equation.residual == pytest.approx(squares)
    errors = np.sqrt(squares / df * np.diag(np.linalg.inv(design.T @ design)))
    np.testing.assert_allclose(equation.mean, coefficients[1:])
    np.testing.assert_allclose(equation.scale, errors[1:])


def test_statistics_are_enough(frame):
    statistics = SufficientStatistics.of(Dataset.read(frame))
    assert BIC().bind(statistics).local("c", ["a", "b"]) == BIC().bind(frame).local("c", ["a", "b"])


def test_units_do_not_matter(frame):
    scaled = frame * [1e-6, 1.0, 50.0, -3.0, 2.0] + [0.0, 7.0, 1e4, 0.0, 0.0]
    np.testing.assert_allclose(
        BIC().bind(scaled).table(2, [0, 1, 3, 4]), BIC().bind(frame).table(2, [0, 1, 3, 4]), atol=1e-7
    )


def test_equivalent_dags_score_alike(frame):
    scorer = BIC().bind(frame[list("abcd")])
    dags = graphs.enumerate_dags(4)
    classes = {}
    for dag, pattern in zip(dags, graphs.cpdag(dags), strict=True):
        classes.setdefault(pattern.tobytes(), []).append(scorer.total(dag))
    assert max(np.ptp(totals) for totals in classes.values()) < 1e-9


def test_columns_that_determine_each_other_have_finite_scores(frame):
    with pytest.warns(UserWarning, match="identical"):
        scorer = BIC().bind(frame.assign(copy=frame["a"], sum=frame["a"] + frame["b"]))
    for node in range(7):
        others = [i for i in range(7) if i != node]
        table = scorer.table(node, others)
        assert np.isfinite(table).all()
        np.testing.assert_allclose(table[-1], scorer.local(node, others), rtol=1e-6)
    assert scorer.local("a", ["copy"]) > scorer.local("a", ["b"]) + 100
    # A copy of a parent explains nothing more, and costs a parameter.
    lost = scorer.local("c", ["a", "copy"]) - scorer.local("c", ["a"])
    assert lost == pytest.approx(-0.5 * np.log(60), abs=0.01)


def test_as_many_coefficients_as_rows_score_minus_infinity():
    x = np.random.default_rng(2).normal(size=(5, 8))
    table = BIC().bind(x).table(0, range(1, 8))
    sizes = np.array([mask.bit_count() for mask in range(128)])
    np.testing.assert_array_equal(np.isneginf(table), sizes + 1 >= 5)
    assert np.isfinite(table[sizes <= 3]).all()


COLUMNS = {
    "text": ["a", "b"] * 50,
    "truth": [True, False, False, True] * 25,
    "few": np.arange(100) % 20,
    "some": np.arange(100) % 40,
    "many": np.arange(100)[::-1],
    "float": np.linspace(0, 1, 100) ** 2,
}
KINDS = [
    (["text", "truth"], "discrete"),
    (["truth", "few"], "discrete"),
    (["few", "some"], "discrete"),
    (["text", "some"], "discrete"),
    (["some", "copy"], "gaussian"),
    (["few", "many"], "gaussian"),
    (["truth", "float"], "gaussian"),
    (["many", "float"], "gaussian"),
]


@pytest.mark.parametrize(
    ("columns", "kind"), KINDS, ids=lambda value: "+".join(value) if isinstance(value, list) else ""
)
def test_the_kind_of_data_chooses_the_form(columns, kind):
    known = COLUMNS | {"copy": np.roll(COLUMNS["some"], 7)}
    frame = pd.DataFrame({name: known[name] for name in columns})
    expected = {"discrete": DiscreteBICScorer, "gaussian": GaussianBICScorer}
    assert type(BIC().bind(frame)) is expected[kind]
    if "text" not in columns:
        assert type(BIC(kind="gaussian").bind(frame)) is GaussianBICScorer
    if kind == "discrete" or columns[1] == "copy":
        assert type(BIC(kind="discrete").bind(frame)) is DiscreteBICScorer


def test_cardinalities_make_a_table_discrete():
    frame = pd.DataFrame({"few": COLUMNS["few"], "many": COLUMNS["many"] % 70})
    assert type(BIC().bind(frame)) is GaussianBICScorer
    with pytest.warns(UserWarning, match="few values repeat"):
        assert BIC(cardinalities={"many": 80}).bind(frame).cardinalities.tolist() == [20, 80]

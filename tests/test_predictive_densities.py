"""Densities of new rows, against scores of tables with and without them."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from scipy.special import logsumexp

import gpn_bayes as gpn
from gpn_bayes import graphs, scores
from gpn_bayes.scores import GP, BGe
from tests.test_effects import weighed_dags

pytestmark = pytest.mark.more("compiles and integrates Gaussian processes of every kind")

FAMILIES = [(0, ()), (2, (0,)), (2, (0, 1))]


def numbers(rows=40, seed=1):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, rows))
    return np.column_stack([a, b, 0.5 * a + np.sin(2 * b) + 0.4 * rng.normal(size=rows)])


def categories(rows=60, seed=2):
    rng = np.random.default_rng(seed)
    a = rng.integers(0, 3, rows)
    b = np.where(rng.random(rows) < 0.7, a > 0, rng.random(rows) < 0.5).astype(int)
    return pd.DataFrame({"a": a.astype(str), "b": b.astype(str), "c": np.roll(b, 1).astype(str)})


@pytest.mark.parametrize(("node", "parents"), FAMILIES)
def test_linear_densities_are_ratios_of_scores(node, parents):
    values, score = numbers(), BGe(standardise=False)
    names = list("abc")
    whole = score.bind(pd.DataFrame(values, columns=names))
    own = [names[p] for p in parents]
    left = [score.bind(pd.DataFrame(np.delete(values, i, 0), columns=names)) for i in range(4)]
    ratios = [whole.local(names[node], own) - other.local(names[node], own) for other in left]
    y, x = values[:, node], values[:, list(parents)].T
    for i, other in enumerate(left):
        new = other.equation(node, parents).log_predictive(y[i : i + 1], x[:, i : i + 1])
        np.testing.assert_allclose(new, ratios[i], atol=1e-10)


@pytest.mark.parametrize(("node", "parents"), FAMILIES)
@pytest.mark.parametrize("score", [scores.BDeu(ess=6), scores.K2()])
def test_probabilities_of_levels_are_ratios_of_scores(score, node, parents):
    table = categories()
    codes = table.apply(lambda column: column.astype("category").cat.codes).to_numpy(dtype=np.int64)
    names = list(table)
    own = [names[p] for p in parents]
    whole = score.bind(table)
    for i in range(4):
        other = score.bind(table.drop(index=i))
        ratio = whole.local(names[node], own) - other.local(names[node], own)
        new = other.equation(node, parents).log_predictive(codes[i : i + 1, node], codes[i : i + 1, list(parents)].T)
        assert new[0] == pytest.approx(ratio, abs=1e-10)


@pytest.mark.parametrize(("node", "parents"), FAMILIES)
def test_densities_of_curves_are_ratios_of_evidences(node, parents):
    """Evidences are integrals over the hyperparameters, of which densities take a few draws."""
    values, score = numbers(), GP(estimator="bridge", standardise=False)
    names = list("abc")
    own = [names[p] for p in parents]
    whole = score.bind(pd.DataFrame(values, columns=names))
    y, x = values[:, node], values[:, list(parents)].T
    for i in range(6):
        other = score.bind(pd.DataFrame(np.delete(values, i, 0), columns=names))
        ratio = whole.local(names[node], own) - other.local(names[node], own)
        new = other.equation(node, parents).log_predictive(y[i : i + 1], x[:, i : i + 1])
        assert new[0] == pytest.approx(ratio, abs=0.15 if parents else 1e-3)


@pytest.mark.parametrize(("node", "parents"), FAMILIES)
@pytest.mark.parametrize("score", [BGe(), GP()])
def test_densities_integrate_to_one(score, node, parents):
    equation = score.bind(numbers()).equation(node, parents)
    grid = np.linspace(-30, 30, 6001)
    x = np.full((len(parents), len(grid)), 0.3)
    assert np.trapezoid(np.exp(equation.log_predictive(grid, x)), grid) == pytest.approx(1, abs=1e-3)


# Averaged over DAGs

QUIET = {"random_seed": 1, "progressbar": False}


def test_linear_densities_average_over_all_dags():
    table = pd.DataFrame(numbers(30), columns=list("abc"))
    old, new = table[:24], table[24:]
    post = gpn.sample(old, score="bge", draws=2000, **QUIET)
    found = post.log_predictive(new)
    dags, probabilities = weighed_dags(post.scorer.scorer)
    # The units that the old rows have.
    values = ((new - old.mean()) / old.std()).to_numpy()
    scorer = post.scorer.scorer
    expected = np.zeros((len(dags), len(new)))
    for own, dag in zip(expected, dags, strict=True):
        for node in range(3):
            parents = tuple(np.flatnonzero(dag[:, node]).tolist())
            own += scorer.equation(node, parents).log_predictive(values[:, node], values[:, list(parents)].T)
            own -= np.log(old.iloc[:, node].std())
    exact = logsumexp(expected + np.log(probabilities)[:, None], axis=0)
    assert (np.abs(found.log_density - exact) < 4 * found.mcse).all()
    # Draws are independent: the error is the standard deviation of densities over their mean and the root of the draws.
    relative = np.exp(expected - exact)
    spread = np.sqrt(probabilities @ (relative - 1) ** 2)
    np.testing.assert_allclose(found.mcse, spread / np.sqrt(post.log_score.size), rtol=0.15)
    assert found.log_density_given_parents.shape == (6, 3)
    assert found["row"].to_numpy().tolist() == list(range(24, 30))
    # A negative control: shuffled columns are less probable.
    assert post.log_predictive(new.assign(c=new["c"].to_numpy()[::-1])).log_density.sum() < found.log_density.sum()


def test_densities_are_the_same_after_saving_and_in_other_units(tmp_path):
    table = pd.DataFrame(numbers(50), columns=list("abc"))
    settings = {"score": "gp", "draws": 30, "space": gpn.Space(max_parents=1)} | QUIET
    post = gpn.sample(table[:40], **settings)
    first = post.log_predictive(table[40:], progressbar=False)
    post.save(tmp_path / "post.nc")
    assert first.identical(gpn.load(tmp_path / "post.nc").log_predictive(table[40:], progressbar=False))
    other = gpn.sample(10 * table[:40], **settings).log_predictive(10 * table[40:], progressbar=False)
    np.testing.assert_allclose(other.log_density, first.log_density - 3 * np.log(10), atol=1e-6)


def test_categories_have_probabilities():
    table = categories()
    post = gpn.sample(table, score="bdeu", draws=200, **QUIET)
    rows = pd.DataFrame([(a, b, c) for a in "012" for b in "01" for c in "01"], columns=list("abc"))
    assert np.exp(post.log_predictive(rows).log_density).sum() == pytest.approx(1)
    with pytest.raises(ValueError, match="^'a' must be one of its levels, 0, 1, 2; received '7'$"):
        post.log_predictive({"a": "7", "b": "0", "c": "0"})


@pytest.mark.parametrize("given", ["parents", "all"])
def test_predictions_are_averages_by_the_weights_of_the_draws(given):
    table = categories()
    post = gpn.sample(table, score="bdeu", draws=20, chains=1, random_seed=1, progressbar=False)
    dags = np.zeros((1, 20, 3, 3), dtype=np.int8)
    dags[:, 10:, 0, 1] = 1
    known = {"log_score": np.zeros((1, 20)), "stats": {}, "exact": None}

    def predicted(dags, log_weights):
        own = replace(post, parents=graphs.pack(dags), log_weights=log_weights, **known)
        return own.predict(table.drop(columns="b"), "b", given=given, progressbar=False).to_numpy()

    weights = np.repeat([[9.0, 1.0]], 10, axis=1)
    apart = [predicted(np.repeat(dags[:, k : k + 1], 20, axis=1), None) for k in (0, 10)]
    # The other variables are as probable under both DAGs.
    np.testing.assert_allclose(predicted(dags, np.log(weights)), 0.9 * apart[0] + 0.1 * apart[1])
    assert np.abs(apart[0] - apart[1]).max() > 0.1


def test_codes_with_a_cardinality_are_their_own_levels():
    """Of 0, 1, 2 and 3 only 1 and 3 occur: 1 is the second level, not the first."""
    rng = np.random.default_rng(3)
    a = rng.choice([1, 3], 60)
    table = pd.DataFrame({"a": a, "b": np.where(rng.random(60) < 0.8, a == 3, a == 1).astype(int)})
    post = gpn.sample(table, score=gpn.scores.BDeu(cardinalities={"a": 4}), draws=200, **QUIET)
    chances = np.exp(post.log_predictive(pd.DataFrame({"a": range(4), "b": 0})).log_density.to_numpy())
    assert chances[[1, 3]].min() > 0.05 > chances[[0, 2]].max()
    np.testing.assert_array_equal(
        post.log_predictive({"a": 1.0, "b": "0"}).log_density, post.log_predictive({"a": 1, "b": 0}).log_density
    )
    effect = post.effect("b", "a")
    assert effect.draws["outcome"].to_numpy().tolist() == [0, 1, 2, 3]
    assert float(effect.mean.sel(outcome=[0, 2]).max()) < 0.05
    assert set(post.do({"b": 1}, draws=200)["a"]) >= {1, 3}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ({"a": 1.0, "b": 2.0}, "^new rows must have a column for every variable; received none for 'c'$"),
        ({"a": 1.0, "b": 2.0, "c": np.nan}, "^new rows must hold finite numbers; received nan for 'c'$"),
        ({"a": "x", "b": 2.0, "c": 1.0}, "^new rows must hold finite numbers; received x for 'a'$"),
    ],
)
def test_bad_rows_are_refused(rows, message):
    post = gpn.sample(pd.DataFrame(numbers(30), columns=list("abc")), score="bge", draws=50, **QUIET)
    with pytest.raises(ValueError, match=message):
        post.log_predictive(rows)

"""The report's section "What if": effects computed ahead of time."""

import json

import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes.posterior import GraphPosterior
from gpn_bayes.posterior.effects import PairEffects
from gpn_bayes.report import content, what_if
from tests.draws import exact_posterior
from tests.reports import AWKWARD, awkward_posterior, made_posterior, read_numbers

pytestmark = pytest.mark.more("compiles and integrates Gaussian processes of every kind")


def effects_of(post: GraphPosterior, most: int = 24, data=None) -> dict:
    return what_if.effects_ahead(post, data, post.path_probabilities().to_numpy(), most)


@pytest.fixture(scope="module")
def linear() -> GraphPosterior:
    data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt", "pka"]]
    return gpn.sample(data, score="bge", draws=300, random_seed=1, progressbar=False)


@pytest.fixture(scope="module")
def curved() -> tuple[pd.DataFrame, GraphPosterior]:
    rng = np.random.default_rng(1)
    x = rng.uniform(-3, 3, 60)
    # Far from zero, so that digits which only a difference shows must stay.
    data = pd.DataFrame({"x": 2000 + x, "y": 5e4 + np.sin(x) + 0.2 * rng.normal(size=60)})
    return data, gpn.sample(data, score="gp", draws=50, chains=2, random_seed=1, progressbar=False)


@pytest.fixture(scope="module")
def discrete() -> GraphPosterior:
    rng = np.random.default_rng(2)
    a = rng.integers(0, 3, 200)
    b = (rng.random(200) < 0.2 + 0.3 * a).astype(int)
    data = pd.DataFrame({"<b>a</b>": np.array(["</script>", "&", "x"])[a], "b": np.array(["no", "yes"])[b]})
    return gpn.sample(data, score="bdeu", draws=50, chains=2, random_seed=1, progressbar=False)


def test_slopes_are_those_of_the_posterior(linear):
    found = effects_of(linear)
    assert found["quantity"] == "slope" and found["networks"] == found["all"] == linear.log_score.size
    for pair in found["pairs"]:
        effect = linear.effect(linear.names[pair["cause"]], linear.names[pair["outcome"]])
        lower, upper = effect.interval(0.9)
        span = max(abs(end) for end in pair["ends"])
        for name, expected in (("mean", effect.mean), ("sd", effect.sd), ("lower", lower), ("upper", upper)):
            assert pair[name] == pytest.approx(expected, abs=1e-3 * span)
        assert pair["probability"] == pytest.approx(effect.probability, abs=1e-4)
        # What is zero is in no bin.
        assert sum(pair["shares"]) == pytest.approx(effect.probability, abs=2e-3)


def test_pairs_are_the_most_probable_and_the_largest_effect_comes_first(linear, monkeypatch):
    paths = linear.path_probabilities().to_numpy()
    every = {(int(i), int(j)) for i, j in np.argwhere(paths >= what_if.EFFECTS_FROM) if i != j}
    found = effects_of(linear)
    assert {(pair["cause"], pair["outcome"]) for pair in found["pairs"]} == every and found["left"] == 0
    table = linear.effects()
    first = found["pairs"][0]
    assert (linear.names[first["cause"]], linear.names[first["outcome"]]) == tuple(table.loc[0, ["cause", "outcome"]])
    monkeypatch.setattr(what_if, "_MOST_SLOPES", 3)
    few = effects_of(linear)
    assert len(few["pairs"]) == 3 and few["left"] == len(every) - 3
    shown = [paths[pair["cause"], pair["outcome"]] for pair in few["pairs"]]
    assert min(shown) >= sorted((paths[pair] for pair in every), reverse=True)[2]


def test_curves_are_those_of_the_posterior(curved):
    _, post = curved
    found = effects_of(post)
    pair = next(own for own in found["pairs"] if (own["cause"], own["outcome"]) == (0, 1))
    effect = post.effect("x", "y", points=13, draws=120, progressbar=False)
    bands = dict(zip(("lower", "upper"), effect.interval(0.9), strict=True))
    bands |= dict(zip(("lowest", "highest"), effect.outcome_interval(0.9), strict=True))
    for name, expected in (bands | {"mean": effect.mean}).items():
        np.testing.assert_allclose(pair[name], expected.to_numpy(), atol=3e-3, rtol=0)
    assert pair["slope"] == pytest.approx([effect.slope.mean, *effect.slope.interval(0.9)], abs=2e-3)
    assert pair["x"] == pytest.approx(effect.mean["cause"].to_numpy()[[0, -1]], abs=1e-2, rel=0)
    assert (found["quantity"], found["networks"]) == ("curve", 100)


def test_tables_are_those_of_the_posterior(discrete, monkeypatch):
    found = effects_of(discrete)
    pair = next(own for own in found["pairs"] if (own["cause"], own["outcome"]) == (0, 1))
    effect = discrete.effect(0, 1, draws=200)
    assert found["levels"]["0"] == [str(level) for level in effect.mean["cause"].to_numpy()]
    for name, expected in zip(("mean", "lower", "upper"), (effect.mean, *effect.interval(0.9)), strict=True):
        assert pair[name] == pytest.approx(expected.to_numpy().ravel(), abs=1e-4)
    monkeypatch.setattr(what_if, "_MOST_CELLS", 6)
    assert len(effects_of(discrete)["pairs"]) == 1


def test_curves_and_tables_can_be_left_out(curved, discrete):
    for post in (curved[1], discrete):
        assert effects_of(post, most=0)["missing"].startswith("Effects were left out of this report")
        assert len(effects_of(post, most=1)["pairs"]) == 1


def test_a_pair_is_answered_as_alone_whatever_was_asked_before(curved):
    _, post = curved
    source = PairEffects(post, 20, 3)
    source.effect(1, 0, points=5)
    alone = post.effect("x", "y", points=5, draws=20, random_seed=3, progressbar=False)
    np.testing.assert_array_equal(source.effect(0, 1, points=5).draws, alone.draws)


def test_why_there_are_none_is_told(curved, tmp_path):
    data, post = curved
    assert "need the score, and this posterior doesn't have it" in effects_of(awkward_posterior())["missing"]
    post.save(tmp_path / "post.nc", data=False)
    loaded = gpn.load(tmp_path / "post.nc")
    without = read_numbers(loaded.report(tmp_path / "without.html"))["effects"]
    assert "need the data, and this posterior was saved without them" in without["missing"] and not without["pairs"]
    given = read_numbers(loaded.report(tmp_path / "given.html", data=data))["effects"]
    assert given == effects_of(post) and loaded.data is None


def test_scores_without_equations_say_so(curved):
    data, _ = curved
    score = gpn.scores.GP(kernel="interaction", estimator="laplace")
    data = data.assign(z=np.random.default_rng(1).normal(size=len(data)))
    post = gpn.sample(data, score=score, draws=20, random_seed=1, progressbar=False)
    assert "additive kernel only" in effects_of(post)["missing"]
    post = gpn.sample(data, score=gpn.scores.Lasso(0.1), draws=20, random_seed=1, progressbar=False)
    assert "needs the method `equation`, which lasso doesn't have" in effects_of(post)["missing"]


def test_without_paths_there_are_no_effects():
    data = pd.DataFrame(np.random.default_rng(1).normal(size=(50, 2)), columns=["a", "b"])
    forbidden = [("a", "b"), ("b", "a")]
    post = gpn.sample(data, score="bge", forbidden=forbidden, draws=20, random_seed=1, progressbar=False)
    assert effects_of(post)["missing"] == "No directed path has a probability of 0.01 or more."


def test_effects_are_plain_json_with_awkward_names(discrete, tmp_path):
    path = discrete.report(tmp_path / "report.html")
    text = path.read_text(encoding="utf-8")
    assert 'id="what-if"' in text and text.count("<script") == 3
    assert "</script>" in read_numbers(path)["effects"]["levels"]["0"]
    json.dumps(content.content_of(discrete), allow_nan=False)


def test_many_variables_add_few_bytes():
    """Sixty variables in a chain: 1,770 pairs with a path."""
    n = 60
    rng = np.random.default_rng(1)
    values = np.cumsum(rng.normal(size=(200, n)), axis=1)
    made = made_posterior([f"v{k}" for k in range(n)], [(k, k + 1, 1.0) for k in range(n - 1)], shape=(2, 20))
    data = gpn.Dataset.read(pd.DataFrame(values, columns=list(made.names)))
    _, drawn = exact_posterior()
    scorer = type(drawn.scorer)(gpn.scores.BGe(), drawn.scorer.prior, data)
    post = GraphPosterior(made.names, made.parents, made.log_score, scorer=scorer, data=data)
    found = effects_of(post)
    assert (len(found["pairs"]), found["left"]) == (400, 1370)
    assert len(json.dumps(found, separators=(",", ":"))) < 200_000
    assert what_if._draws(made_posterior(AWKWARD, [], shape=(4, 1000)), "slope") is None

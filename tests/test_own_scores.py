"""Scores of users: their names, their optional parts, and what follows from draws of an equation's parameters."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import integrate, stats

import gpn_bayes as gpn
from gpn_bayes import Dataset, scores
from gpn_bayes.posterior.equations import DrawnEquations
from gpn_bayes.scores import BGe, DrawnLine, Equation, Parameters, Score, ScoreBatch, Scorer, registry
from gpn_bayes.scores.densities import left_out
from gpn_bayes.scores.residuals import residual_flags
from tests.command_line import call
from tests.test_mixed_scores import mixed_table

ROOT = Path(__file__).resolve().parents[1]
PAGE = (ROOT / "docs" / "guide" / "your_own.md").read_text(encoding="utf-8")
LINES = 25
QUIET = {"random_seed": 1, "progressbar": False}


@pytest.fixture(scope="module")
def laplace():
    """Run the page's definition of a score, as printed."""
    code = re.search(r"^```python\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)[1]
    written = [line for line in code[code.index("class LaplaceNoise") :].splitlines() if line.strip()]
    assert len(written) <= LINES
    namespace = {"__name__": __name__}
    exec(compile(code, "your_own.md", "exec"), namespace)
    yield namespace
    registry._registered.pop("laplace noise")


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(1)
    x = rng.laplace(size=120)
    y = x + rng.laplace(size=120)
    return pd.DataFrame({"x": x, "y": y, "z": 0.5 * y + rng.laplace(size=120)})


@pytest.fixture(scope="module")
def post(laplace, table):
    return gpn.sample(table, score="laplace noise", draws=200, chains=2, **QUIET)


# What score_sets must return


@pytest.mark.parametrize("closed_form", [True, False])
@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda sets: None, "score_sets must return a ScoreBatch; received NoneType"),
        (lambda sets: [0.0] * len(sets), "score_sets must return a ScoreBatch; received list"),
        (lambda sets: np.zeros(len(sets)), "score_sets must return a ScoreBatch; received ndarray"),
        (lambda sets: ScoreBatch.exact(np.zeros(len(sets) + 1)), "score_sets must return a score for each of "),
        (lambda sets: ScoreBatch(0.0, 0.0, 0.0, ["exact"]), "score_sets must return a score for each of "),
    ],
)
def test_what_is_no_batch_of_scores_is_refused(answer, message, closed_form, table):
    class Wrong(Scorer):
        def score_sets(self, node, parent_sets):
            return answer(parent_sets)

    class Own(Score):
        parameters = {}

        def __init__(self):
            self.name = "own"

        def _bind(self, data):
            return Wrong(self, data.names, data.fingerprint)

    Wrong.closed_form = closed_form
    for wrong in (lambda: gpn.sample(table, score=Own(), draws=10, **QUIET), lambda: Own().bind(table).local("x")):
        with pytest.raises(ValueError) as refused:
            wrong()
        assert str(refused.value).startswith(message) and "\n" not in str(refused.value)


class Counted(Scorer):
    """Scores by the number of parents, but for one variable's, whose scores are all minus infinity."""

    closed_form = True

    def score_sets(self, node, parent_sets):
        sizes = np.array([-1.0 * len(parents) for parents in parent_sets])
        return ScoreBatch.exact(sizes - np.inf if self.names[node] == self.score.without else sizes)


class CountedScore(Score):
    """It has no name of its own."""

    parameters, without = {}, None

    def _bind(self, data):
        return Counted(self, data.names, data.fingerprint)


def test_a_score_needs_a_name_and_finite_scores_and_sets_what_it_takes(table):
    own = CountedScore()
    with pytest.raises(ValueError, match="^a score must have a name; CountedScore has none$"):
        gpn.sample(table, own, **QUIET)
    own.name, own.without = "counted", "y"
    with pytest.raises(ValueError, match="^every variable must have a finite score for some parent set; 'y' has none$"):
        gpn.sample(table, own, **QUIET)
    rule = "the score 'counted' takes rows that all count alike; received weights of rows (a score that counts rows by "
    refused = pytest.raises(ValueError, match=re.escape(rule + "Dataset.weights sets takes_weights)"))
    with pytest.warns(UserWarning, match="are survey weights"), refused:
        gpn.sample(table, own, weights=[2.0, 0.5] * 60, **QUIET)


def test_parameters_that_make_no_score_are_said_when_it_is_saved_and_after_loading(table, tmp_path):
    class Unlike(CountedScore):
        name, parameters = "unlike its parameters", {"size": 3}

    rule = "a score's parameters must be the arguments of its constructor; 'unlike its parameters' can't be made from "
    try:
        post = gpn.sample(table, Unlike(), draws=10, **QUIET)
        with pytest.warns(UserWarning, match=f"^the file will answer only what needs no score: {rule}"):
            post.save(tmp_path / "own.nc")
        again = gpn.load(tmp_path / "own.nc")
        for asked, what in ((lambda: again.effect("x", "y"), "effects"), (again.sample_predictive, "predictions")):
            with pytest.raises(ValueError, match=f"^{what} need the score; {rule}"):
                asked()
    finally:
        del registry._registered["unlike its parameters"]


# Names


def test_a_score_is_known_from_its_definition_on(laplace):
    assert scores.names()[-1] == "laplace noise" and isinstance(
        scores.by_name("Laplace noise"), laplace["LaplaceNoise"]
    )
    with pytest.raises(ValueError, match=r"^score must be a Score or one of bge, gp, bic, .*; received 'laplac nois'"):
        scores.by_name("laplac nois")


def test_two_classes_of_one_name_are_refused():
    with pytest.raises(ValueError) as refused:
        type("BGe", (Score,), {"name": "bge"})
    assert str(refused.value) == "every score must have a name of its own; 'bge' is that of gpn_bayes.scores.bge.BGe"
    for wrong in ("Upper", "", 3):
        with pytest.raises(ValueError, match="^the name of a score must be text in lower case; received "):
            type("Own", (Score,), {"name": wrong})
    assert "Upper" not in registry._registered and registry.find("bge") is BGe


def test_a_class_that_is_defined_again_takes_its_own_place():
    try:
        first, second = (type("Own", (Score,), {"name": "defined again"}) for _ in range(2))
        assert registry.find("defined again") is second is not first
    finally:
        del registry._registered["defined again"]


def test_a_subclass_without_a_name_is_its_parent_by_name():
    type("Same", (BGe,), {})
    assert registry.find("bge") is BGe


def test_a_score_by_name_needs_no_settings():
    try:
        type(
            "Needy",
            (Score,),
            {"name": "needy", "__init__": lambda self, much: None, "__abstractmethods__": frozenset()},
        )
        with pytest.raises(ValueError, match="^a score given by name must need no settings; received 'needy', which"):
            scores.by_name("needy")
    finally:
        del registry._registered["needy"]


def test_built_in_scores_are_names_of_the_package():
    for name in registry._BUILT_IN:
        kind = registry.find(name)
        assert kind.__name__ in scores.__all__ and getattr(scores, kind.__name__) is kind


def test_built_in_scores_are_loaded_when_they_are_asked_for():
    code = (
        "import sys; from gpn_bayes import scores; scores.names()\n"
        "print(*(m for m in sys.modules if m.startswith('gpn_bayes.scores')))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert "gpn_bayes.scores.base" in loaded.split()
    assert not {f"gpn_bayes.scores.{name}" for name in ("bge", "discrete", "cg", "gp", "lasso")} & set(loaded.split())


# Optional parts: each works, or is refused in one wording


def on_small_tables():
    rng = np.random.default_rng(1)
    numbers = pd.DataFrame(rng.normal(size=(40, 2)), columns=["a", "b"])
    levels = pd.DataFrame(rng.choice(["u", "v"], (40, 2)), columns=["a", "b"])
    mixed = mixed_table()[["s", "y"]][:40].rename(columns={"s": "a", "y": "b"})
    taken = {"bdeu": [levels], "k2": [levels], "bic": [numbers, levels, mixed], "cg": [mixed], "gp": [numbers, mixed]}
    return [(name, own) for name in (*registry._BUILT_IN, "sparse one") for own in taken.get(name, [numbers])]


class Sparse(Score):
    """Only what is required."""

    name, parameters = "sparse one", {}

    def _bind(self, data):
        return SparseScorer(self, data.names, data.fingerprint)


class SparseScorer(Scorer):
    def score_sets(self, node, parent_sets):
        return ScoreBatch.exact(np.array([-1.0 * len(parents) for parents in parent_sets]))


def works(purpose, part, name, act):
    """Return whether a part works; where it doesn't, it must be refused in the one wording, or for another reason."""
    try:
        act()
    except ValueError as error:
        # What else can be done may follow.
        missing = str(error).startswith(f"{purpose} needs the method `{part}`, which {name} doesn't have")
        assert missing or "mixes them" in str(error), error
        return False
    return True


HAVING = {
    "equation": {"bge", "gp", "bic", "bdeu", "k2", "cg"},
    "complete": {"bge", "gp", "bdeu", "k2", "cg"},
    "pymc_node": {"bge", "gp", "bdeu", "k2"},
}


@pytest.mark.parametrize(("name", "own"), on_small_tables(), ids=lambda given: given if isinstance(given, str) else "")
def test_every_optional_part_works_or_is_refused_in_one_wording(name, own):
    score = registry.find(name)()
    scorer = score.bind(own)

    def draw():
        return scorer.equation(1, (0,)).draw(3, np.random.default_rng(1))

    assert works("an effect or a prediction", "equation", name, draw) == (name in HAVING["equation"])
    gaps = own.astype({"a": object}).mask(np.eye(len(own), 2, dtype=bool)) if own["a"].dtype == object else own.copy()
    gaps.iloc[3, 0] = None

    def complete():
        made = score.complete(Dataset.read(gaps, missing="impute"))
        values = made.begin(np.random.default_rng(1))
        made.draw(np.random.default_rng(1), values, np.array([[0, 1], [0, 0]], dtype=np.int8))
        assert np.isfinite(made.scorer(values).local(1, [0]))

    assert works("missing='impute'", "complete", name, complete) == (name in HAVING["complete"])

    def network():
        assert gpn.pymc_network(own, [("a", "b")], score).observed_RVs

    mixed_processes = name == "gp" and own["a"].dtype != own["b"].dtype
    assert works("a PyMC network", "pymc_node", name, network) == (name in HAVING["pymc_node"] and not mixed_processes)


def test_what_a_score_lacks_is_said_where_it_is_asked_for():
    data = np.random.default_rng(1).normal(size=(40, 2))
    post = gpn.sample(data, score=Sparse(), draws=50, **QUIET)
    wording = "^an effect or a prediction needs the method `equation`, which sparse one doesn't have$"
    for ask in (lambda: post.effect("v1", "v2"), lambda: post.do({"v1": 1.0}), lambda: post.predict({"v1": 1.0}, "v2")):
        with pytest.raises(ValueError, match=wording):
            ask()
    assert post.scorer.scorer.residuals(post.data, 1, (0,)) is None


# A score of 25 lines, with noise of its own


def by_quadrature(y, x):
    """Return the log evidence of the page's model for a node with one parent, or none, on a grid."""
    ends = [np.linspace(-2, 2, 91)] * (1 + x.shape[1]) + [np.linspace(-2, 1.5, 91)]
    grid = np.stack([own.ravel() for own in np.meshgrid(*ends, indexing="ij")], axis=1)
    log_density = stats.norm.logpdf(grid).sum(axis=1)
    sigma = np.exp(grid[:, -1])
    for row, value in zip(x, y, strict=True):
        error = value - grid[:, 0] - grid[:, 1:-1] @ row
        log_density -= np.sqrt(2) * np.abs(error) / sigma + np.log(np.sqrt(2) * sigma)
    density = np.exp(log_density - log_density.max()).reshape([len(own) for own in ends])
    for own in reversed(ends):
        density = integrate.simpson(density, x=own)
    return float(np.log(density) + log_density.max())


@pytest.mark.parametrize("rows", [8, 30])
def test_the_score_is_the_integral_over_its_parameters(laplace, table, rows):
    data = Dataset.read(table[:rows])
    scorer, values = laplace["LaplaceNoise"]().bind(data), data.standardised("a test")
    batch = scorer.score_sets(1, [(), (0,)])
    exact = np.array([by_quadrature(values[:, 1], values[:, list(own)]) for own in ((), (0,))])
    assert (batch.errors < 0.021).all() and (batch.k_hats < 0.7).all() and batch.statuses == ["ok", "ok"]
    gaps = np.abs(batch.values - exact) / batch.errors
    assert (gaps < 4).all()
    # The integral of a likelihood with normal noise is another one.
    assert (np.abs(BGe().bind(data).score_sets(1, [(), (0,)]).values - exact) > 8 * batch.errors).all()


def test_directions_follow_from_the_shape_of_the_noise(post, table):
    normal = gpn.sample(table, score="bge", draws=200, **QUIET)
    for cause, outcome in (("x", "y"), ("y", "z")):
        assert post.edge_probability(cause, outcome).value > 0.95
        assert normal.edge_probability(cause, outcome).value < 0.8


def test_effects_predictions_and_saving_follow_from_one_method(post, table, tmp_path):
    effect = post.effect("x", "z", progressbar=False)
    assert effect.quantity == "slope" and effect.interval(0.99)[0] < 0.5 < effect.interval(0.99)[1]
    done = post.do({"y": 3.0}, draws=500, progressbar=False)
    assert (done["y"] == 3.0).all() and done["z"].mean() == pytest.approx(1.5, abs=0.3)
    # Laplace noise has excess kurtosis 3.
    kurtosis = stats.kurtosis(post.sample_predictive(4000, tables=1, progressbar=False)["x"])
    assert 1.5 < kurtosis < 6
    row = table.iloc[0]
    counterfactual = post.counterfactual(row, {"x": float(row["x"])}, draws=50, progressbar=False)
    np.testing.assert_allclose(counterfactual, np.tile(row, (50, 1)), atol=1e-8)
    predicted = post.predict(table, "z", progressbar=False)
    assert 0.8 < table["z"].between(predicted["lower"], predicted["upper"]).mean() < 0.97
    tree = post.to_arviz(log_likelihood=True, posterior_predictive=True)
    assert np.isfinite(tree["log_likelihood"]["rows"]).all() and tree["posterior_predictive"]["z"].shape[-1] == 120
    normal = gpn.sample(table, score="bge", draws=200, chains=2, **QUIET)
    assert str(gpn.compare({"own": post, "normal": normal}, progressbar=False)).startswith("own predicts rows left out")
    post.save(tmp_path / "own.nc")
    again = gpn.load(tmp_path / "own.nc")
    assert repr(again.scorer.score) == "LaplaceNoise()"
    assert again.effect("x", "z", progressbar=False).mean == effect.mean


def test_a_file_never_makes_a_score_that_is_not_defined(post, tmp_path, monkeypatch):
    post.save(tmp_path / "own.nc")
    monkeypatch.delitem(registry._registered, "laplace noise")
    again = gpn.load(tmp_path / "own.nc")
    assert again.scorer is None and again.edge_probabilities().equals(post.edge_probabilities())
    needed = "effects need the score, and 'laplace noise' isn't known: import the module that defines it before loading"
    with pytest.raises(ValueError, match=f"^{needed}$"):
        again.effect("x", "z")
    with pytest.raises(ValueError, match="^the score must be one of bge, .*; received 'os.system'$"):
        scores.from_parameters("os.system", {"command": "true"})


def test_rows_of_experiments_are_in_units_of_the_whole_table(laplace):
    """Set far from where it was observed, a variable has another mean and spread in the rows of its experiment."""
    rng = np.random.default_rng(3)
    a, targets = rng.laplace(size=240), np.repeat(["", "a"], 120)
    a[120:] = 20 + 4 * a[120:]
    rows = pd.DataFrame({"a": a, "b": 0.5 * a + rng.laplace(size=240)})
    settings = {"targets": targets.tolist(), "required": [("a", "b")], "draws": 200, "random_seed": 1}
    post = gpn.sample(rows, score="laplace noise", progressbar=False, **settings)
    assert post.effect("a", "b").mean == pytest.approx(0.5, abs=0.1)
    # What a is where it wasn't set.
    assert abs(post.do({}, random_seed=1)["a"].mean()) < 1.0


@pytest.mark.parametrize("count", [3, 16, 24])
def test_many_parameters_are_integrated_too(count):
    found = Parameters.of(lambda draws: stats.norm.logpdf(draws, scale=0.1).sum(axis=1), np.zeros(count))
    assert abs(found.log_evidence) < 5 * found.error < 0.2 and found.k_hat < 0.7


def test_densities_that_are_none_are_refused():
    for wrong, message in [
        (lambda draws: np.log(draws[:, 0]), "must be a number or -inf for any parameters"),
        (lambda draws: draws, "must be one number for each of"),
    ]:
        with pytest.raises(ValueError, match=message), np.errstate(invalid="ignore"):
            Parameters.of(wrong, [1.0])


def test_residuals_are_checked_against_the_noise_that_a_score_has(laplace, table):
    """Laplace noise has heavy tails under normal noise, as it should be under Laplace noise; Cauchy noise is not."""
    rng = np.random.default_rng(2)
    x = rng.laplace(size=400)
    own = pd.DataFrame({"x": x, "y": x + rng.laplace(size=400), "z": x + rng.standard_cauchy(size=400)})
    data, parents = Dataset.read(own), [(), (0,), (0,)]
    heavy = {
        name: {column for flag in residual_flags(score.bind(data), data, parents) for column in flag.columns}
        for name, score in (("bge", BGe()), ("own", laplace["LaplaceNoise"]()))
    }
    assert heavy == {"bge": {"x", "y", "z"}, "own": {"z"}}


def test_the_command_line_takes_a_score_that_is_defined(laplace, table, tmp_path, capsys):
    table.to_csv(tmp_path / "data.csv", index=False)
    given = ("--score", "laplace noise", "--draws", 100, "--quiet", "--out", tmp_path / "out")
    code, shown, _ = call(capsys, "run", tmp_path / "data.csv", *given)
    assert code == 0 and "score LaplaceNoise, exact sampler" in shown
    assert repr(gpn.load(tmp_path / "out" / "posterior.nc").scorer.score) == "LaplaceNoise()"


# What follows from draws, against closed forms


class Drawn(Equation):
    """BGe's linear equation without its closed forms."""

    def __init__(self, line, widened=1.0):
        self.line, self.widened = line, widened

    def draw(self, count, rng):
        drawn = self.line.draw(count, rng)
        return DrawnLine(drawn.intercept, drawn.coefficients, self.widened * drawn.sigma)


@pytest.fixture(scope="module")
def line_and_rows():
    data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk"]][:100]
    rows = ((data - data.mean()) / data.std()).to_numpy().T
    return BGe().bind(data).equation(1, (0, 2)), rows[1], rows[[0, 2]]


def errors_of_averages(drawn, y, x, draws=1000):
    """Return standard errors of the averages over draws, with and without each row, from the spread of other draws."""
    density = np.exp(drawn.line.draw(draws, np.random.default_rng(5)).densities(y, x).log_density)
    return [own.std(axis=0) / own.mean(axis=0) / np.sqrt(draws) for own in (density, 1 / density)]


def test_averages_over_draws_are_the_closed_forms(line_and_rows):
    line, y, x = line_and_rows
    drawn = Drawn(line)
    with_row, without_row = errors_of_averages(drawn, y, x)
    gaps = np.abs(drawn.log_predictive(y, x) - line.log_predictive(y, x)) / with_row
    assert gaps.max() < 4.5 and with_row.max() < 0.1
    exact, found = line.leave_one_out(y, x), drawn.leave_one_out(y, x)
    sure = found.k_hats < 0.7
    assert sure.mean() > 0.95
    apart = np.abs(found.log_density - exact.log_density)
    assert (apart / without_row)[sure].max() < 4.5 and without_row[sure].max() < 0.1
    np.testing.assert_allclose(found.below[sure], exact.below[sure], atol=0.02)
    # The density with its own row is another one, and so is that of wider noise.
    assert ((line.log_predictive(y, x) - exact.log_density) / without_row)[sure].max() > 10
    wrong = Drawn(line, widened=1.2)
    assert (np.abs(wrong.log_predictive(y, x) - line.log_predictive(y, x)) / with_row).max() > 10


def test_residuals_of_normal_noise_are_those_of_the_line(line_and_rows):
    line, y, x = line_and_rows
    np.testing.assert_allclose(Drawn(line).residuals(y, x), line.errors(y, x)[0], atol=0.02)


def test_rows_that_cannot_be_left_out_are_counted(laplace):
    """One row that alone determines what its value may be."""

    class Certain(Equation):
        def draw(self, count, rng):
            return DrawnLine(rng.standard_normal(count), np.empty((count, 0)), np.full(count, 0.05))

    found = Certain().leave_one_out(np.array([0.0, 3.0]), np.empty((0, 2)))
    assert found.k_hats[1] > 0.7

    class Own(SparseScorer):
        def equation(self, node, parents):
            return Certain()

    data = Dataset.read(np.array([[0.0, 1.0], [3.0, 2.0], [1.0, 0.0]]))
    with pytest.warns(
        UserWarning, match=r"^\d of 3 rows can't be left out reliably: weights of drawn parameters have a"
    ):
        list(left_out(Own(Sparse(), data.names, data.fingerprint), data, [(0, ())]))


def test_a_noise_is_its_quantiles():
    drawn = DrawnLine(np.zeros(1), np.zeros((1, 0)), np.ones(1), stats.laplace(scale=0.5**0.5))
    normal = np.linspace(-8, 8, 33)
    np.testing.assert_allclose(drawn.normal_from_noise(drawn.noise_from_normal(normal)), normal, rtol=1e-9, atol=1e-12)
    noise = drawn.noise_from_normal(np.random.default_rng(1).standard_normal(200_000))
    assert noise.std() == pytest.approx(1, abs=0.01) and stats.kurtosis(noise) == pytest.approx(3, abs=0.3)


def test_the_same_answers_every_time(laplace, post):
    scorer = post.scorer.scorer
    once, again = (scorer.score_sets(2, [(0, 1)]).values for _ in range(2))
    assert once == again == scorer.score_sets(2, [(), (0, 1)]).values[1]
    places = np.zeros(5, dtype=np.int64)
    assert not DrawnEquations(post, places, 1).linear and DrawnEquations(post, places, 1).straight


# Parameters


@pytest.mark.parametrize("d", [1, 3, 6])
def test_integrals_of_normal_densities_are_one(d):
    rng = np.random.default_rng(d)
    for scale in (1.0, 0.1, 0.01):
        root = scale * (rng.normal(size=(d, d)) / np.sqrt(d) + np.eye(d))
        target = stats.multivariate_normal(rng.uniform(-3, 3, d), root @ root.T)
        found = Parameters.of(lambda draws, target=target: target.logpdf(draws).reshape(-1), np.zeros(d))
        assert abs(found.log_evidence) < 4.5 * found.error < 0.1 and found.k_hat < 0.7
        drawn = found.draw(4000, np.random.default_rng(1))
        gap = (drawn.mean(axis=0) - target.mean) / np.sqrt(np.diag(np.atleast_2d(target.cov)))
        assert np.abs(gap).max() < 0.15
        # Half of a density has an integral of one half.
        assert found.log_evidence - np.log(0.5) > 10 * found.error


def test_a_density_must_be_finite_at_the_start():
    with pytest.raises(ValueError, match="^the log density must be finite at the start; received -inf$"):
        Parameters.of(lambda draws: np.where(draws[:, 0] > 1, 0.0, -np.inf), [0.0])

"""Learners among scikit-learn's tools: its own checks of estimators, cross-validation, grids and pipelines."""

import doctest
import inspect
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import joblib
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator, estimator_checks_generator

import gpn_bayes as gpn
from gpn_bayes import estimators, scores, simulate
from gpn_bayes.private import PrivateK2

pytestmark = pytest.mark.more("starts processes")

# Every learner, with settings that take little time.
LEARNERS = [
    estimators.HillClimbing(restarts=1),
    estimators.HillClimbing(score="bge", restarts=1),
    estimators.HillClimbing(score="bdeu", restarts=1),
    estimators.OrderingSearch(restarts=1, patience=2),
    estimators.Exact(),
    estimators.K2(),
    estimators.K2(score="bge"),
    estimators.RBNets(episodes=2, hidden=(4,)),
    estimators.PC(),
    estimators.NOTEARS(rounds=1, check_scale=False),
    estimators.NOTEARSMLP(hidden=2, starts=1),
    estimators.DYNOTEARS(starts=1),
]
# Runs only where an environment variable of SciPy's is set before it is imported.
NOT_RUN_HERE = {"check_array_api_input"}


# These take a second or two; all checks of the others take a minute.
IN_FULL = ("HillClimbing-bge", "K2-k2", "K2-bge")
QUICK = {
    "check_estimator_cloneable",
    "check_fit_score_takes_y",
    "check_n_features_in",
    "check_no_attributes_set_in_init",
    "check_parameters_default_constructible",
    "check_set_params",
}


def learner_id(learner):
    return f"{type(learner).__name__}-{learner.get_params().get('score', '')}".rstrip("-")


def every_learner(test):
    return pytest.mark.parametrize("learner", LEARNERS, ids=learner_id)(test)


@pytest.fixture(scope="module")
def chain():
    """Rows of rain -> flow -> level."""
    return simulate.linear(nx.path_graph(["rain", "flow", "level"], create_using=nx.DiGraph), 300, random_seed=1)


def test_all_learners_are_checked():
    assert {type(learner).__name__ for learner in LEARNERS} == set(estimators.__all__)


@every_learner
def test_a_few_of_scikit_learns_checks(learner):
    """Those that learners are likeliest to break; all of them run below, most of them only on request."""
    chosen = [check for _, check in estimator_checks_generator(clone(learner)) if check.func.__name__ in QUICK]
    assert {check.func.__name__ for check in chosen} == QUICK
    for check in chosen:
        check(clone(learner))


@pytest.mark.parametrize(
    "learner",
    [pytest.param(one, marks=() if learner_id(one) in IN_FULL else pytest.mark.slow) for one in LEARNERS],
    ids=learner_id,
)
def test_scikit_learns_own_checks(learner):
    results = check_estimator(learner, on_fail=None, on_skip=None)
    assert {one["check_name"]: one["exception"] for one in results if one["status"] == "failed"} == {}
    assert {one["check_name"] for one in results if one["status"] == "skipped"} <= NOT_RUN_HERE
    assert len(results) > 35


@every_learner
def test_score_is_a_method_and_a_parameter(learner, chain, tmp_path):
    table = (chain > 0).astype(int) if learner.__sklearn_tags__().input_tags.categorical else chain
    fitted = clone(learner).set_params(random_state=1).fit(table[:200])
    assert isinstance(fitted.score(table), float) and np.isfinite(fitted.score(table))
    assert fitted.score(table.to_numpy()) == fitted.score(table)
    assert fitted.score(table[table.columns[::-1]]) == pytest.approx(fitted.score(table), abs=1e-12)
    assert pickle.loads(pickle.dumps(fitted)).score(table) == fitted.score(table)
    joblib.dump(fitted, tmp_path / "learner")
    assert joblib.load(tmp_path / "learner").score(table) == fitted.score(table)
    assert clone(fitted).get_params() == fitted.get_params()


def test_the_parameter_is_set_listed_and_shown():
    learner = estimators.HillClimbing(score="bge")
    assert learner.get_params()["score"] == "bge"
    assert "score='bge'" in repr(learner)
    bic = scores.BIC(kind="gaussian")
    assert learner.set_params(score=bic).get_params()["score"] is bic
    learner.score = "bdeu"
    assert clone(learner).get_params()["score"] == "bdeu"
    assert callable(learner.score)
    assert callable(estimators.HillClimbing.score)


# What score returns


def levels_of(chain):
    return pd.DataFrame({name: np.where(chain[name] > 0, "high", "low") for name in chain})


@pytest.mark.parametrize("score", [scores.BGe(standardise=False), scores.K2(), scores.BDeu(ess=3.0)])
def test_score_is_the_ratio_of_marginal_likelihoods(score, chain):
    """What a row adds to the log marginal likelihood of the graph is its log density given the others."""
    table = chain if score.name == "bge" else levels_of(chain)
    known, new = table[:50], table[50:54]
    fitted = estimators.HillClimbing(score=score, random_state=1).fit(known)
    assert fitted.graph_.number_of_edges() > 0
    before = score.bind(known).total(fitted.graph_)
    gains = [score.bind(pd.concat([known, new[i : i + 1]])).total(fitted.graph_) - before for i in range(len(new))]
    assert fitted.score(new) == pytest.approx(np.mean(gains), abs=1e-9)
    assert fitted.score(new) != pytest.approx(fitted.score(table[60:64]), abs=1e-3)


def test_score_is_in_units_of_the_table(chain):
    learner = estimators.HillClimbing(score="bge", random_state=1)
    wide = learner.fit(10 * chain[:200]).score(10 * chain[200:])
    assert wide == pytest.approx(learner.fit(chain[:200]).score(chain[200:]) - 3 * np.log(10), abs=1e-9)


def test_score_is_that_of_a_posterior_of_one_graph(chain):
    fitted = estimators.HillClimbing(score="bge", random_state=1).fit(chain[:200])
    edges = list(fitted.graph_.edges)
    absent = [(a, b) for a in chain for b in chain if a != b and (a, b) not in edges]
    post = gpn.sample(chain[:200], score="bge", required=edges, forbidden=absent, draws=10, progressbar=False)
    expected = post.log_predictive(chain[200:]).log_density.mean()
    assert fitted.score(chain[200:]) == pytest.approx(float(expected), abs=1e-9)


def test_learners_without_a_likelihood_score_by_the_kind_of_data(chain):
    known, new = chain[:200], chain[200:]
    for learner in (estimators.PC(), estimators.Exact(score=scores.Lasso(lambda1=0.1))):
        fitted = learner.fit(known)
        same = estimators.HillClimbing(score="bge").fit(known)
        same._keep_graph(np.array(nx.to_numpy_array(fitted._dag(), nodelist=list(chain))), list(chain), same._data)
        assert fitted.score(new) == pytest.approx(same.score(new), abs=1e-9)
    levels = levels_of(chain)
    fitted = estimators.PC().fit(levels[:200])
    same = estimators.HillClimbing(score="bdeu").fit(levels[:200])
    same._keep_graph(np.array(nx.to_numpy_array(fitted._dag(), nodelist=list(chain))), list(chain), same._data)
    assert fitted.score(levels[200:]) == pytest.approx(same.score(levels[200:]), abs=1e-9)


def test_rows_that_cannot_be_predicted_are_refused(chain):
    levels = levels_of(chain)
    fitted = estimators.K2().fit(levels)
    with pytest.raises(ValueError, match="^'rain' must be one of its levels, high, low; received 'none'$"):
        fitted.score(levels.assign(rain="none"))
    with pytest.raises(ValueError, match="^new rows must have a column for every variable; received none for 'flow'$"):
        fitted.score(levels[["rain", "level"]])
    with pytest.raises(ValueError, match="^new rows must be a DataFrame, a Series or a mapping; received list$"):
        fitted.score([1, 2])
    private = PrivateK2(order=list(chain.columns), score="paper")
    private._keep_graph(np.zeros((3, 3)), list(chain.columns), None)
    with pytest.raises(ValueError, match="^a learner must keep its data to predict from; PrivateK2 keeps none$"):
        private.score(levels)
    assert private.get_params()["score"] == "paper"


@pytest.mark.parametrize("learner", [estimators.HillClimbing, estimators.DYNOTEARS])
def test_the_examples_of_score_run(learner):
    """Doctest doesn't look into what is a method and a parameter."""
    text = inspect.cleandoc(inspect.getattr_static(learner, "score").method.__doc__)
    case = doctest.DocTestParser().get_doctest(text, {}, learner.__name__, None, 0)
    assert len(case.examples) > 2
    assert doctest.DocTestRunner(verbose=False).run(case).failed == 0


# Other processes


def answers(post, scorer, fitted, rows):
    """Return what another process finds out about what it was given."""
    return (
        post.edge_probabilities().to_numpy().tolist(),
        post.log_score_gap([]),
        scorer.local(0, [1]),
        fitted.score(rows),
        fitted.to_text("graphml"),
    )


@pytest.fixture(scope="module")
def sent(chain):
    post = gpn.sample(chain, score="bge", draws=20, random_seed=1, progressbar=False)
    return post, scores.BGe().bind(chain), estimators.HillClimbing(score="bge", random_state=1).fit(chain), chain[:5]


def test_posteriors_scorers_and_learners_reach_a_pool_of_processes(sent):
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        assert pool.submit(answers, *sent).result(timeout=120) == answers(*sent)


def test_posteriors_scorers_and_learners_reach_joblibs_processes(sent):
    [there, again] = joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(answers)(*sent) for _ in range(2))
    assert there == again == answers(*sent)


@every_learner
def test_unfitted_learners_say_so(learner, chain):
    message = f"^a learner must be fitted before it is scored; {type(learner).__name__} isn't: call fit first$"
    for ask in (lambda one: one.score(chain), lambda one: one.log_score("bic")):
        with pytest.raises(NotFittedError, match=message):
            ask(clone(learner))


NOTEARS = estimators.NOTEARS(rounds=1, check_scale=False, random_state=1)
REFUSALS = {
    "sparse": (
        scipy.sparse.csr_array(np.eye(3)),
        r"NOTEARS needs a dense array; received a sparse one: .*",
    ),
    "complex": (np.eye(3) * 1j, "Complex data not supported: values must be real numbers; received complex128"),
    "NaN": (np.full((3, 2), np.nan), "every value must be present; received an array with 6 NaN"),
    "one row": (np.ones((1, 2)), r"Found array with 1 sample.* while a minimum of 2 is required by NOTEARS\."),
    "one column": (np.ones((3, 1)), r"Found array with 1 feature.* while a minimum of 2 is required by NOTEARS\."),
    "one named column": (pd.DataFrame({"x": [1.0, 2.0]}), "a network needs at least two variables; received 1"),
}


@pytest.mark.parametrize(("data", "message"), REFUSALS.values(), ids=REFUSALS)
def test_refused_in_one_line(data, message):
    with pytest.raises(ValueError, match=f"^{message}$") as refusal_text:
        clone(NOTEARS).fit(data)
    assert "\n" not in str(refusal_text.value)


def test_arrays_of_objects_are_numbers_where_they_can_be(chain):
    plain, objects = (clone(NOTEARS).fit(values) for values in (chain.to_numpy(), chain.to_numpy(dtype=object)))
    np.testing.assert_array_equal(plain.weights_, objects.weights_)
    # Series are read elsewhere.
    plain, objects = (
        estimators.DYNOTEARS(random_state=1).fit(values) for values in (chain.to_numpy(), chain.to_numpy(dtype=object))
    )
    np.testing.assert_array_equal(plain.weights_, objects.weights_)


def test_arrays_of_other_widths_are_refused(chain):
    fitted = clone(NOTEARS).fit(chain)
    with pytest.raises(ValueError, match="^X has 2 features, but NOTEARS is expecting 3 features as input$"):
        fitted.score(chain.to_numpy()[:, :2])


def test_what_an_earlier_fit_found_is_gone(chain):
    learner = clone(NOTEARS).set_params(lambda1="bic").fit(chain)
    assert len(learner.path_) > 1
    assert not hasattr(learner.set_params(lambda1=0.1).fit(chain), "path_")


def test_a_penalty_by_cross_validation(chain):
    """A penalty of 50 leaves no edges, and held-out rows show it."""
    search = GridSearchCV(NOTEARS, {"lambda1": [0.1, 50.0]}, cv=3).fit(chain)
    assert search.best_params_ == {"lambda1": 0.1}
    assert nx.has_path(search.best_estimator_.graph_, "rain", "level")
    kept, empty = search.cv_results_["mean_test_score"]
    assert kept > empty + 0.1
    assert search.score(chain) == search.best_estimator_.score(chain)


def test_the_choice_does_not_depend_on_the_order_of_the_grid(chain):
    assert GridSearchCV(NOTEARS, {"lambda1": [50.0, 0.1]}, cv=3).fit(chain).best_params_ == {"lambda1": 0.1}


def test_a_score_is_searched_over_like_any_setting(chain):
    search = GridSearchCV(
        estimators.HillClimbing(restarts=1, random_state=1),
        {"score": ["bic", scores.BGe()]},
        cv=3,
        scoring=lambda learner, rows, y=None: learner.log_score("bge", rows),
    ).fit(chain)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()


def test_pipelines_keep_the_names(chain):
    pipeline = make_pipeline(StandardScaler().set_output(transform="pandas"), NOTEARS)
    held_out = cross_val_score(pipeline, chain, cv=3)
    assert held_out.shape == (3,)
    assert np.isfinite(held_out).all()
    assert list(pipeline.fit(chain)[-1].graph_.nodes) == ["rain", "flow", "level"]

"""Learners among scikit-learn's tools: its own checks of estimators, cross-validation, grids and pipelines."""

import pickle

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
from sklearn.utils.estimator_checks import check_estimator

from gpn_bayes import estimators, scores, simulate
from gpn_bayes.private import PrivateK2

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
# What can't hold for learners of categories, and why. All else holds for all of them.
OF_CATEGORIES = {"check_estimators_dtypes": "floats are measurements, and scores of counts refuse them"}
# Runs only where an environment variable of SciPy's is set before it is imported.
NOT_RUN_HERE = {"check_array_api_input"}


def expected_failures(learner):
    return OF_CATEGORIES if learner.get_params().get("score") in ("k2", "bdeu") else {}


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
def test_scikit_learns_own_checks(learner):
    expected = expected_failures(learner)
    results = check_estimator(learner, expected_failed_checks=expected, on_fail=None, on_skip=None)
    assert {one["check_name"]: one["exception"] for one in results if one["status"] == "failed"} == {}
    assert {one["check_name"] for one in results if one["status"] == "xfail"} == set(expected)
    assert {one["check_name"] for one in results if one["status"] == "skipped"} <= NOT_RUN_HERE
    assert len(results) > 35


@every_learner
def test_score_is_a_method_and_a_parameter(learner, chain):
    table = (chain > 0).astype(int) if learner.__sklearn_tags__().input_tags.categorical else chain
    fitted = clone(learner).set_params(random_state=1).fit(table)
    setting = fitted.get_params().get("score", "bic")
    assert fitted.score(table) == pytest.approx(fitted.log_score(setting), abs=1e-9)
    assert fitted.score(table.to_numpy()) == fitted.score(table)
    assert fitted.score(table[100:]) == pytest.approx(fitted.log_score(setting, table[100:]), abs=1e-9)
    assert pickle.loads(pickle.dumps(fitted)).score(table) == fitted.score(table)
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


def test_scores_go_by_the_learners_own(chain):
    fits = {name: estimators.HillClimbing(score=name, random_state=1).fit(chain) for name in ("bic", "bge")}
    assert fits["bic"].adjacency_.tolist() == fits["bge"].adjacency_.tolist()
    assert fits["bic"].score(chain) == fits["bic"].log_score_
    assert fits["bge"].score(chain) == fits["bge"].log_score_
    assert fits["bge"].score(chain) != fits["bic"].score(chain)


def test_private_k2_scores_by_k2(chain):
    learner = PrivateK2(order=list(chain.columns), score="paper")
    learner._keep_graph(np.zeros((3, 3)), list(chain.columns), None)
    levels = (chain > 0).astype(int)
    assert learner.score(levels) == scores.K2().bind(levels).total([])
    assert learner.get_params()["score"] == "paper"


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
    assert kept > empty + 10
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

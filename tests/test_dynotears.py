"""DYNOTEARS: the objective against all orders, recovery, realisations, constraints and refusals; its simulator."""

from itertools import permutations

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import Lasso

from gpn_bayes import graphs, metrics, scores, simulate
from gpn_bayes.estimators import DYNOTEARS
from gpn_bayes.estimators.lagged_data import read_series
from gpn_bayes.estimators.notears import order_search
from gpn_bayes.simulate import svar

pytestmark = pytest.mark.more("repeats whole searches for every learner and setting")


def system(seed, d=4, lags=2, lengths=(60, 80), density=0.15):
    """Return a DAG, lagged effects and series."""
    rng = np.random.default_rng(seed)
    dag = simulate.random_dag(d, p=0.5, random_seed=rng)
    lagged = (rng.random((lags, d, d)) < density).astype(int)
    return dag, lagged, svar(dag, lagged, lengths, random_seed=rng)


def blocks(series, lags):
    """Return each time's row, and the rows before it, beside each other."""
    values = [one.to_numpy() for one in series]
    now = np.concatenate([one[lags:] for one in values])
    past = [np.concatenate([one[lags - k : len(one) - k] for one in values]) for k in range(1, lags + 1)]
    table = np.hstack([now, *past])
    return table - table.mean(axis=0)


def objective(table, weights, lambda_w, lambda_a):
    """Return the objective of the paper; rows of the weights are parents."""
    d = weights.shape[1]
    errors = table[:, :d] - table @ weights
    penalty = lambda_w * np.abs(weights[:d]).sum() + lambda_a * np.abs(weights[d:]).sum()
    return (errors**2).sum() / (2 * len(table)) + penalty


def least_over_orders(table, d, lambda_w, lambda_a):
    """Return the least and the largest minimum over all orders, from lassos on scaled columns."""
    penalties = np.where(np.arange(table.shape[1]) < d, lambda_w, lambda_a)
    scaled = table / penalties
    known = {}
    totals = []
    for order in permutations(range(d)):
        total = 0.0
        for place, child in enumerate(order):
            parents = tuple(sorted(order[:place]))
            if (child, parents) not in known:
                columns = [*parents, *range(d, table.shape[1])]
                fit = Lasso(1.0, fit_intercept=False, tol=1e-12, max_iter=1_000_000).fit(
                    scaled[:, columns], table[:, child]
                )
                errors = table[:, child] - scaled[:, columns] @ fit.coef_
                known[child, parents] = (errors**2).mean() / 2 + np.abs(fit.coef_).sum()
            total += known[child, parents]
        totals.append(total)
    return min(totals), max(totals)


@pytest.mark.parametrize("seed", range(4))
def test_the_least_objective_of_all_orders(seed):
    _, _, series = system(seed)
    found = DYNOTEARS(2, 0.1, 0.03, random_state=1).fit(series)
    table = blocks(series, 2)
    least, largest = least_over_orders(table, 4, 0.1, 0.03)
    assert found.objective_ == pytest.approx(least, rel=1e-7)
    assert largest > least * 1.01
    raw = np.concatenate([found.raw_weights_, *found.raw_lagged_weights_])
    assert found.objective_ == pytest.approx(objective(table, raw, 0.1, 0.03), rel=1e-9)
    assert graphs.is_acyclic(found.raw_weights_ != 0)
    assert found.objective_ == found.objectives_.min()
    assert found.objectives_.shape == (5,)


def test_exact_recovery():
    dag, lagged, series = system(1, d=6, lengths=(300, 500, 700))
    found = DYNOTEARS(2, random_state=1).fit(series)
    assert metrics.shd(found.graph_, dag) == 0
    assert ((found.lagged_weights_ != 0) == lagged).all()
    truth, later = (np.array(series[0].attrs[key]) for key in ("weights", "lagged_weights"))
    # The penalty shrinks weights, the more so where parents are alike.
    assert found.weights_ == pytest.approx(truth, abs=0.25)
    assert found.lagged_weights_ == pytest.approx(later, abs=0.25)
    assert lagged.sum() >= 5
    assert not found.interrupted_


def test_the_lagged_graph():
    _, _, series = system(1, d=3)
    found = DYNOTEARS(2, random_state=1).fit(series)
    graph = found.lagged_graph_
    assert list(graph) == [f"v{i}[{time}]" for time in ("t", "t-1", "t-2") for i in (1, 2, 3)]
    weights = np.concatenate([found.weights_, *found.lagged_weights_])
    assert nx.to_numpy_array(graph)[:, :3] == pytest.approx(weights)
    assert not nx.to_numpy_array(graph)[:, 3:].any()
    assert nx.is_directed_acyclic_graph(graph)
    assert (found.adjacency_ == (found.weights_ != 0)).all()


def test_thresholds():
    _, _, series = system(2)
    found = DYNOTEARS(2, threshold=0.9, lagged_threshold=0.35, random_state=1).fit(series)
    assert (found.weights_ == found.raw_weights_ * (np.abs(found.raw_weights_) > 0.9)).all()
    kept = np.abs(found.raw_lagged_weights_) > 0.35
    assert (found.lagged_weights_ == found.raw_lagged_weights_ * kept).all()
    assert 0 < kept.sum() < np.count_nonzero(found.raw_lagged_weights_)


def test_each_time_stands_beside_its_own_past():
    series = [np.arange(8.0).reshape(4, 2), 10 + np.arange(6.0).reshape(3, 2) ** 2]
    lagged = read_series(series, 2)
    assert lagged.columns == ["v1[t]", "v2[t]", "v1[t-1]", "v2[t-1]", "v1[t-2]", "v2[t-2]"]
    assert lagged.values.tolist() == [[4, 5, 2, 3, 0, 1], [6, 7, 4, 5, 2, 3], [26, 35, 14, 19, 10, 11]]
    assert lagged.moments() == pytest.approx(np.cov(lagged.values, rowvar=False, ddof=0))


def test_one_series_is_a_list_of_one():
    _, _, series = system(3, lengths=(120,))
    alone, listed = (DYNOTEARS(random_state=1).fit(one) for one in (series[0], series))
    array = DYNOTEARS(random_state=1).fit(series[0].to_numpy())
    assert (alone.raw_weights_ == listed.raw_weights_).all()
    assert (alone.raw_lagged_weights_ == array.raw_lagged_weights_).all()


@pytest.mark.parametrize("names", [[1, 2], ["Elbe", "Oder"]])
def test_a_column_may_tell_realisations_apart(names, tmp_path):
    _, _, series = system(3)
    series = series[:2]
    parts = [one.assign(river=name) for one, name in zip(series, names, strict=True)]
    table = pd.concat(parts, ignore_index=True)
    # The rows of both stand in turn, each in its own order.
    table = table.loc[np.argsort(np.concatenate([np.arange(len(one)) for one in series]), kind="stable")]
    plain = DYNOTEARS(random_state=1).fit(series)
    table.to_csv(tmp_path / "rivers.csv", index=False)
    for given in (table, tmp_path / "rivers.csv"):
        found = DYNOTEARS(series="river", random_state=1).fit(given)
        assert found.feature_names_in_.tolist() == plain.feature_names_in_.tolist()
        np.testing.assert_allclose(found.raw_weights_, plain.raw_weights_, atol=1e-9)
    assert found.log_score("bge", data=table) == pytest.approx(plain.log_score("bge"))


def test_columns_are_matched_by_name():
    _, _, series = system(3)
    same = DYNOTEARS(random_state=1).fit(series)
    mixed = DYNOTEARS(random_state=1).fit([series[0], series[1][["v3", "v1", "v4", "v2"]]])
    assert (mixed.raw_weights_ == same.raw_weights_).all()


def test_a_variable_may_rest_in_one_realisation():
    _, _, series = system(3)
    resting = series[1].assign(v1=0.0)
    assert np.isfinite(DYNOTEARS(random_state=1).fit([series[0], resting]).objective_)


def test_same_seed_same_answer_and_input_as_it_was():
    _, _, series = system(4, d=8)
    copies = [one.copy() for one in series]
    found = DYNOTEARS(random_state=3).fit(series)
    again = clone(found).fit(copies)
    assert (found.raw_weights_ == again.raw_weights_).all()
    for one, copy in zip(series, copies, strict=True):
        pd.testing.assert_frame_equal(one, copy)


def test_more_variables_than_times():
    series = [one for seed in range(2) for one in system(seed, d=12, lags=1, lengths=(5,))[2]]
    found = DYNOTEARS(random_state=1).fit(series)
    assert graphs.is_acyclic(found.adjacency_)
    assert np.isfinite(found.raw_lagged_weights_).all()


def test_a_delay_line():
    """One variable is another's past: exactly that is found, within a slice nothing."""
    x = np.random.default_rng(1).normal(size=2001)
    found = DYNOTEARS(random_state=1).fit(pd.DataFrame({"x": x[1:], "y": x[:-1]}))
    assert list(found.lagged_graph_.edges) == [("x[t-1]", "y[t]")]


def test_constraints():
    _, _, series = system(5, d=5)
    free = DYNOTEARS(2, random_state=1).fit(series)
    parent, child = map(int, np.argwhere(free.weights_)[0])
    edge = (f"v{parent + 1}", f"v{child + 1}")
    back = DYNOTEARS(2, required=[edge[::-1]], random_state=1).fit(series)
    assert back.adjacency_[child, parent] == 1
    assert back.raw_weights_[parent, child] == 0
    without = DYNOTEARS(2, forbidden=[edge], random_state=1).fit(series)
    assert without.raw_weights_[parent, child] == 0
    assert without.objective_ > free.objective_


def test_forbidden_lagged_edges():
    _, _, series = system(5, d=5)
    free = DYNOTEARS(2, random_state=1).fit(series)
    lag, parent, child = map(int, np.argwhere(free.lagged_weights_)[0])
    edge = (f"v{parent + 1}", f"v{child + 1}")
    at_all = DYNOTEARS(2, forbidden_lagged=[edge], random_state=1).fit(series)
    assert not at_all.raw_lagged_weights_[:, parent, child].any()
    at_one = DYNOTEARS(2, forbidden_lagged=[(*edge, lag + 1)], random_state=1).fit(series)
    assert at_one.raw_lagged_weights_[lag, parent, child] == 0
    assert free.objective_ < at_one.objective_ <= at_all.objective_


def test_a_required_edge_stays_without_a_weight():
    rng = np.random.default_rng(1)
    found = DYNOTEARS(required=[("v3", "v1")], random_state=1).fit(rng.normal(size=(500, 3)))
    assert list(found.graph_.edges) == [("v3", "v1")]
    assert ("v3[t]", "v1[t]") in found.lagged_graph_.edges


def test_scored_with_the_past():
    dag, lagged, series = system(6, d=3)
    found = DYNOTEARS(2, random_state=1).fit(series)
    table = pd.DataFrame(blocks(series, 2), columns=read_series(series, 2).columns)
    scorer = scores.by_name("bge").bind(table)
    total = sum(scorer.local(f"v{i}[t]", found.lagged_graph_.predecessors(f"v{i}[t]")) for i in (1, 2, 3))
    assert found.log_score("bge") == pytest.approx(total)
    assert found.log_score("bge", data=series) == found.log_score("bge")
    assert found.log_score("bge", data=series[0]) != found.log_score("bge")
    assert found.log_score("bge") > DYNOTEARS(2, 100.0, 100.0).fit(series).log_score("bge")
    with pytest.raises(
        ValueError, match="^the data must have the estimate's variables; 'v3' is in only one of the two$"
    ):
        found.log_score("bge", data=series[0][["v1", "v2"]])
    with pytest.raises(ValueError, match="^a learner must be fitted before it is scored; DYNOTEARS isn't: call fit"):
        DYNOTEARS().log_score("bge")


@pytest.mark.parametrize("last", [1, 10])
def test_interrupted(monkeypatch, last):
    _, _, series = system(6)
    calls = []
    search = order_search.search_orders

    def until(*given):
        calls.append(1)
        if len(calls) > last:
            raise KeyboardInterrupt
        return search(*given)

    monkeypatch.setattr(order_search, "search_orders", until)
    found = DYNOTEARS(starts=50, random_state=1).fit(series)
    assert found.interrupted_
    assert graphs.is_acyclic(found.raw_weights_ != 0)
    assert found.raw_weights_.any()
    raw = np.concatenate([found.raw_weights_, *found.raw_lagged_weights_])
    assert found.objective_ == pytest.approx(objective(blocks(series, 1), raw, 0.05, 0.05))


def test_progress_is_shown(capsys, progress_at_once):
    _, _, series = system(6)
    DYNOTEARS(random_state=1, progressbar=True).fit(series)
    assert "Orders" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lags": 0}, "lags must be a whole number, 1 or more; received 0"),
        ({"starts": 0}, "starts must be a whole number, 1 or more; received 0"),
        ({"lambda_w": -1}, "lambda_w must be a number, 0 or more; received -1"),
        ({"lambda_a": None}, "lambda_a must be a number, 0 or more; received None"),
        ({"threshold": np.inf}, "threshold must be a number, 0 or more; received inf"),
        ({"lagged_threshold": True}, "lagged_threshold must be a number, 0 or more; received True"),
        ({"required": [("v1", "v2"), ("v2", "v1")]}, "required edges must not form a cycle; received v1 -> v2 -> v1"),
        ({"series": "v1"}, "series = 'v1' splits one table; received a list of 2"),
        ({"forbidden_lagged": "v1"}, "forbidden_lagged must hold edges .* received 'v1'"),
        ({"forbidden_lagged": ["v1"]}, "a lagged edge must be .* received 'v1'"),
        ({"forbidden_lagged": [("v1", "v2", 3)]}, "the lag of an edge must be a whole number from 1 to 1; received 3"),
        ({"forbidden_lagged": [("v1", "w")]}, "every node must be one of the variables; 'w' is not"),
    ],
)
def test_refused_settings(settings, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        DYNOTEARS(**settings).fit(system(1)[2])


def test_a_series_column_that_is_not_there():
    with pytest.raises(ValueError, match="^series must be a column of the table; received 'river'$"):
        DYNOTEARS(series="river").fit(system(1)[2][0])


ROWS = np.random.default_rng(1).normal(size=(10, 2))


@pytest.mark.parametrize(
    ("series", "message"),
    [
        ([], "a list of series must hold at least one; received none"),
        (ROWS[:2], "every series must be longer than lags = 2; series 1 has 2 rows"),
        ([ROWS, ROWS[:1]], "every series must be longer than lags = 2; series 2 has 1 rows"),
        (
            [ROWS, ROWS[:, :1]],
            r"all series must have the same columns; series 2 has \['v1'\], the first \['v1', 'v2'\]",
        ),
        (ROWS[:3], "at least two times with a full past are needed; received 1"),
        ([ROWS, np.where(ROWS > 0.8, np.nan, ROWS)], "every value must be present; .*'v1' in row 12"),
        (ROWS * [0, 1], "every column must vary; column 'v1' is constant"),
        (
            np.where(np.arange(10)[:, None] < 9, [[0.0, 1.0]], ROWS) + np.arange(10)[:, None] * [[0, 1]],
            r"every variable must vary among the times with a full past; 'v1\[t-1\]' is constant",
        ),
        (pd.DataFrame({"a": ["x", "y"] * 5, "b": range(5, 15)}), "a time series needs numbers; column 'a' holds text"),
        (ROWS[0], "an array of data must have two dimensions; received 1"),
        ("nowhere.csv", "the data file must exist; 'nowhere.csv' is not a file"),
    ],
)
def test_refused_series(series, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        DYNOTEARS(2).fit(series)


@pytest.mark.parametrize("seed", range(3))
def test_simulated_series_follow_their_equation(seed):
    rng = np.random.default_rng(seed)
    dag = simulate.random_dag(5, p=0.5, random_seed=rng)
    lagged = (rng.random((2, 5, 5)) < 0.2).astype(int)
    series = svar(dag, lagged, [400, 600], noise_scale=2.0, random_seed=seed)
    truth = np.concatenate([series[0].attrs["weights"], *series[0].attrs["lagged_weights"]])
    table = blocks(series, 2)
    errors = table[:, :5] - table @ truth
    assert np.cov(errors.T) == pytest.approx(4 * np.eye(5), abs=5 * 4 / np.sqrt(996))
    # Errors know nothing of the past.
    assert np.abs(np.corrcoef(errors.T, table[:, 5:].T)[:5, 5:]).max() < 5 / np.sqrt(996)
    assert ((truth[:5] != 0) == graphs.as_adjacency(dag, list(dag))).all()
    assert ((truth[5:].reshape(2, 5, 5) != 0) == lagged).all()
    assert (series[0].to_numpy() == svar(dag, lagged, [400, 600], noise_scale=2.0, random_seed=seed)[0]).all(axis=None)


def test_growing_processes_are_slowed_down():
    everyone = np.ones((2, 15, 15), dtype=int)
    series = svar(np.zeros((15, 15)), everyone, 3000, random_seed=1)[0]
    weights = np.abs(series.attrs["lagged_weights"])
    assert weights[0].max() < 0.3
    assert weights[1].max() / weights[0].max() < 1
    halves = series.to_numpy()[:1500].std(), series.to_numpy()[1500:].std()
    assert halves[0] == pytest.approx(halves[1], rel=0.3)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"lengths": []}, "at least one realisation needs a length; received none"),
        ({"lengths": [5, 0]}, "every length must be a whole number, at least 1; received 0"),
        ({"lagged": np.ones((2, 2))}, r"lagged must have the shape \(lags, 2, 2\); received \(2, 2\)"),
        ({"lagged": np.full((1, 2, 2), 0.5)}, "lagged must hold 0 and 1 only; received other numbers"),
        ({"noise_scale": 0}, "noise_scale must be positive and finite; received 0"),
        ({"weight_range": (2, 1)}, r"weight_range must be \(low, high\) with 0 <= low <= high; received \(2, 1\)"),
        ({"lagged_range": (-1, 1)}, r"lagged_range must be \(low, high\) with 0 <= low <= high; received \(-1, 1\)"),
    ],
)
def test_refused_simulations(change, message):
    given = {"dag": np.array([[0, 1], [0, 0]]), "lagged": np.eye(2)[None], "lengths": 10}
    with pytest.raises(ValueError, match=f"^{message}$"):
        svar(**given | change)

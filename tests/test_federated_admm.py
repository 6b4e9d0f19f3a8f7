"""NOTEARS-ADMM: its two steps against their formulas, the reference runs, every model."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize

from gpn_bayes import graphs, metrics, simulate
from gpn_bayes.estimators import DYNOTEARS, NOTEARS
from gpn_bayes.federated import FederatedNOTEARS
from gpn_bayes.federated.notears import building, consensus
from gpn_bayes.federated.notears.consensus import consensus_rounds
from gpn_bayes.federated.notears.estimate import estimate
from gpn_bayes.federated.notears.participants import LinearParticipant, NetworkParticipant
from gpn_bayes.federated.notears.settings import Settings
from gpn_bayes.federated.notears.shared_models import LinearModel, NetworkModel
from gpn_bayes.kernels.learners.acyclicity import exponential
from gpn_bayes.simulate import svar
from tests.federated import PlainChannel, asked, reference, split, two_clients_allowed

pytestmark = pytest.mark.more("repeats whole protocols for every fault of a party")

CHAIN = nx.DiGraph([("a", "b"), ("b", "c")])
NONE = np.zeros((3, 3), dtype=bool)
OTHERS = ~np.eye(3, dtype=bool)
SCHEDULE = building.schedule(Settings())


def differences(function, x, step=1e-6):
    """Return central differences, in the shape of x."""
    found = np.zeros(x.size)
    for k in range(x.size):
        e = np.zeros(x.size)
        e[k] = step
        found[k] = (function(x + e.reshape(x.shape)) - function(x - e.reshape(x.shape))) / (2 * step)
    return found.reshape(x.shape)


@pytest.fixture(scope="module")
def chain():
    return simulate.linear(CHAIN, 300, random_seed=4)


@pytest.fixture(scope="module")
def fitted(chain):
    return FederatedNOTEARS().fit([chain[:60], chain[60:100], chain[100:]])


# The client's step


def test_a_client_solves_its_regressions():
    rng = np.random.default_rng(1)
    values, n = rng.normal(size=(20, 3)), 50.0
    client = LinearParticipant(values, 3)
    assert client.answer("rows", {}) == {"rows": 20}
    rows = values - values.mean(axis=0)
    covariance, multipliers, weights = rows.T @ rows / n, np.zeros((3, 3)), None
    for shared, rho, last_rho in (
        (np.zeros((3, 3)), 0.1, 0.1),
        (rng.normal(size=(3, 3)), 0.3, 0.1),
        (np.eye(3), 0.9, 0.3),
    ):
        answer = client.answer("round", asked(shared, rho, last_rho, n))
        expected = 0.0
        if weights is not None:
            multipliers = multipliers + last_rho * (weights - shared)
            expected = ((weights - shared) ** 2).sum()
        right = rho * shared - multipliers + covariance
        weights = np.linalg.inv(covariance + rho * np.eye(3)) @ right
        assert answer["target"] == pytest.approx(weights + multipliers / rho, abs=1e-10)
        assert answer["distance"] == pytest.approx(expected)


def test_a_client_of_networks_finds_the_minimum():
    rng = np.random.default_rng(2)
    rows, n, rho = rng.normal(size=(30, 3)), 70.0, 0.2
    rows -= rows.mean(axis=0)
    client = NetworkParticipant(rows, OTHERS, hidden=2)
    model = NetworkModel(OTHERS, NONE, 2, 0.0, 0.0, rng)
    shared = model.start
    client.answer("round", asked(shared, 0.1, 0.1, n))
    first = client.state()["own"]
    answer = client.answer("round", asked(0.5 * shared, rho, 0.1, n))
    found, multipliers = (client.state()[name] for name in ("own", "multipliers"))
    assert multipliers == pytest.approx(0.1 * (first - 0.5 * shared))
    assert answer["target"] == pytest.approx(found + multipliers / rho)

    def objective(free):
        x = found.copy()
        x[model.free] = free
        gap = x - 0.5 * shared
        errors = client._networks.predict(x, rows) - rows
        return (errors**2).sum() / (2 * n) + multipliers @ gap + rho / 2 * gap @ gap

    assert (found[~model.free] == 0).all()
    assert np.abs(differences(objective, found[model.free])).max() < 1e-4
    assert objective(found[model.free]) <= minimize(objective, found[model.free], tol=1e-12).fun + 1e-8


# The coordinator's step


@pytest.mark.parametrize("kind", ["linear", "network"])
def test_cycles_have_their_gradient(kind):
    rng = np.random.default_rng(3)
    model = LinearModel(OTHERS, np.zeros((5, 3))) if kind == "linear" else NetworkModel(OTHERS, NONE, 2, 0, 0, rng)
    shared = 0.4 * rng.normal(size=model.start.shape)
    h, slope = model.cycles(shared)
    assert h == pytest.approx(exponential(model.strengths(shared) ** 2)[0])
    assert slope == pytest.approx(differences(lambda x: model.cycles(x)[0], shared), abs=1e-6)


def test_networks_have_penalties_on_both_layers_and_only_the_inputs_that_are_allowed():
    rng = np.random.default_rng(5)
    allowed = np.triu(OTHERS)
    model = NetworkModel(allowed, NONE, 2, 0.1, 0.3, rng)
    shared = rng.normal(size=model.start.shape)
    layers = model._networks.layers(shared)
    squares = (layers.first**2).sum() + (layers.second**2).sum()
    assert model.squares_penalties @ shared**2 == pytest.approx(0.3 * squares)
    assert model.penalties @ np.abs(shared) == pytest.approx(0.1 * np.abs(layers.first).sum())
    assert ((model.strengths(model.free.astype(float)) > 0) == allowed).all()


def test_intercepts_leave_residuals_of_mean_zero():
    """Of time series too, where the past has a part in them."""
    rng = np.random.default_rng(6)
    rows = rng.normal(size=(40, 9)) + np.arange(9)
    shared = rng.normal(size=(9, 3))
    np.fill_diagonal(shared, 0)
    shared[[1, 2, 2], [0, 0, 1]] = 0
    last = consensus.Round(1, shared, 0.0, 0.0, 1.0, 1.0, "converged", rows.mean(axis=0))
    found = estimate(last, ("a", "b", "c"), Settings(model="dynamic", lags=2, intercepts="shared"))
    residuals = rows[:, :3] - rows @ np.vstack([found.raw_weights, *found.raw_lagged_weights]) - found.intercepts
    np.testing.assert_allclose(residuals.mean(axis=0), 0, atol=1e-12)


def test_the_shared_weights_minimise_what_they_should():
    """The objective as it is written, over all clients; the other minimiser has positive and negative parts."""
    rng = np.random.default_rng(4)
    d, clients, lambda1, alpha, rho1, rho2 = 4, 3, 0.05, 0.7, 2.0, 0.4
    own, multipliers = rng.normal(size=(2, clients, d, d))

    def smooth(weights):
        h, slope = exponential(weights**2)
        gaps = own - weights
        value = alpha * h + rho1 / 2 * h**2 + (multipliers * gaps).sum() + rho2 / 2 * (gaps**2).sum()
        return value, (alpha + rho1 * h) * 2 * weights * slope - (multipliers + rho2 * gaps).sum(axis=0)

    def in_parts(parts):
        up, down = parts.reshape(2, d, d)
        value, slope = smooth(up - down)
        return value + lambda1 * parts.sum(), np.stack([slope + lambda1, lambda1 - slope]).ravel()

    off = ~np.eye(d, dtype=bool)
    bounds = [(0, None if free else 0) for free in off.ravel()] * 2
    model = LinearModel(off, np.full((d, d), lambda1))
    target = (own + multipliers / rho2).mean(axis=0)
    found, h = consensus._solve(model, model.start, target, clients * rho2, alpha, rho1)
    up, down = minimize(in_parts, np.zeros(2 * d * d), jac=True, bounds=bounds, options={"ftol": 1e-14}).x.reshape(
        2, d, d
    )
    assert h == pytest.approx(exponential(found**2)[0])
    assert (found.diagonal() == 0).all()
    assert smooth(found)[0] + lambda1 * np.abs(found).sum() <= smooth(up - down)[0] + lambda1 * (up + down).sum() + 1e-9
    assert found == pytest.approx(up - down, abs=1e-4)


# Whole runs


@pytest.fixture(scope="module")
def references():
    """Return the reference runs with masks, by number of clients."""
    with two_clients_allowed():
        return {clients: FederatedNOTEARS().fit(reference(clients)[0]) for clients in (2, 8)}


@pytest.mark.parametrize("clients", [2, 8])
def test_the_graph_of_the_original(clients, references):
    _, _, weights, graph = reference(clients)
    found = references[clients]
    assert (found.adjacency_ == graph).all()
    assert found.raw_weights_ == pytest.approx(weights, abs=0.02)
    assert found.h_ < 1e-7
    assert found.state_ == "converged"
    assert found.consensus_ < 1e-8
    assert found.rounds_ < 100


def test_no_worse_than_the_original_with_many_clients():
    tables, truth, _, graph = reference(64)
    found = FederatedNOTEARS(secure=False).fit(tables)
    assert metrics.shd(found.adjacency_, truth) <= metrics.shd(graph, truth)
    assert found.h_ < 1e-7


def test_masks_change_nothing(references):
    secure = references[8]
    plain = FederatedNOTEARS(secure=False).fit(reference(8)[0])
    assert secure.raw_weights_ == pytest.approx(plain.raw_weights_, abs=1e-6)
    assert (secure.raw_weights_ != plain.raw_weights_).any()
    assert secure.rounds_ == plain.rounds_


def test_what_a_run_leaves(chain, fitted):
    assert sorted(fitted.graph_.edges) == sorted(CHAIN.edges)
    assert graphs.is_acyclic(fitted.adjacency_)
    assert (fitted.raw_weights_.diagonal() == 0).all()
    assert (fitted.weights_ == np.where(np.abs(fitted.raw_weights_) >= 0.3, fitted.raw_weights_, 0)).all()
    assert fitted.history_.columns.tolist() == ["h", "consensus", "rho1", "rho2"]
    assert fitted.history_.index.tolist() == list(range(1, fitted.rounds_ + 1))
    assert fitted.history_["consensus"].iloc[-1] == fitted.consensus_
    # On the way, variables may act on themselves; in the end that is dropped.
    assert 0 < fitted.h_ <= fitted.history_["h"].iloc[-1] < 1e-8
    assert fitted.history_["rho1"].iloc[1] == pytest.approx(0.00175)
    assert fitted.history_["rho2"].iloc[1] == pytest.approx(0.00125)
    assert len(fitted.removed_) == 0
    pooled = NOTEARS(0.01, check_scale=False, random_state=1).fit(chain)
    assert fitted.raw_weights_[0, 1] == pytest.approx(pooled.raw_weights_[0, 1], abs=0.1)


def test_rows_count_not_clients(chain):
    """A client with few odd rows is outvoted by one with many."""
    odd = pd.DataFrame(np.random.default_rng(0).normal(size=(6, 3)), columns=chain.columns)
    found = FederatedNOTEARS(secure=False).fit([chain[:150], chain[150:], odd, odd + 5])
    assert sorted(found.graph_.edges) == sorted(CHAIN.edges)


def test_clients_may_have_their_own_means(chain):
    parts = split(chain, 3)
    moved = [part + 50 * k for k, part in enumerate(parts)]
    weights = [FederatedNOTEARS(secure=False).fit(tables).raw_weights_ for tables in (parts, moved)]
    assert weights[0] == pytest.approx(weights[1], abs=1e-6)


def test_intercepts_may_be_shared(chain):
    """As if one had centred the pooled table; to centre in every client isn't the same."""
    tables = split(chain + [30.0, -20.0, 10.0], 3)
    found = FederatedNOTEARS(intercepts="shared").fit(tables)
    assert sorted(found.graph_.edges) == sorted(CHAIN.edges)
    pooled = pd.concat(tables)
    rows = [LinearParticipant(np.vstack([part, -part]), 3) for part in np.split(pooled - pooled.mean(), 3)]
    doubled = list(consensus_rounds(PlainChannel(rows), building.shared_model(pooled.columns, Settings()), SCHEDULE))
    assert found.raw_weights_ + np.diag(doubled[-1].shared.diagonal()) == pytest.approx(doubled[-1].shared, abs=1e-6)
    means = pooled.mean().to_numpy()
    assert found.intercepts_ == pytest.approx(means - means @ found.raw_weights_)
    apart = FederatedNOTEARS(secure=False).fit(tables)
    assert (apart.intercepts_ == 0).all()
    assert np.abs(apart.raw_weights_ - found.raw_weights_).max() > 1e-4


def test_networks_may_share_their_means():
    data = simulate.mlp(CHAIN, 300, random_seed=2)[:60]
    shared = FederatedNOTEARS("mlp", hidden=3, intercepts="shared", secure=False)
    moved = shared.fit(split(data + 20.0, 3)).raw_weights_
    assert moved == pytest.approx(shared.fit(split(data, 3)).raw_weights_, abs=1e-3)
    assert moved.max() > 0.3
    assert (shared.intercepts_ == 0).all()


def test_networks():
    data = simulate.mlp(CHAIN, 300, random_seed=2)
    found = FederatedNOTEARS("mlp", hidden=4).fit(split(data, 3))
    assert sorted(found.graph_.edges) == sorted(CHAIN.edges)
    assert found.state_ == "converged"
    assert (found.raw_weights_ >= 0).all()
    assert found.h_ < 1e-7


def test_series():
    lagged = np.array([np.diag([1, 0, 1])])
    series = svar(CHAIN, lagged, [120, 130, 90, 60], random_seed=3)
    found = FederatedNOTEARS("dynamic", secure=False).fit([series[0], series[1], series[2:]])
    assert sorted(found.graph_.edges) == sorted(CHAIN.edges)
    assert ((found.lagged_weights_ != 0) == lagged).all()
    pooled = DYNOTEARS(1, 0.01, 0.01, lagged_threshold=0.2, random_state=1).fit(series)
    assert set(found.lagged_graph_.edges) == set(pooled.lagged_graph_.edges)
    weight = found.lagged_graph_.edges["a[t-1]", "a[t]"]["weight"]
    assert weight == pytest.approx(pooled.lagged_weights_[0, 0, 0], abs=0.1)


def test_edges_known_beforehand(chain):
    found = FederatedNOTEARS(secure=False, required=[("a", "c")], forbidden=[("a", "b")]).fit(split(chain, 3))
    assert found.graph_.has_edge("a", "c")
    assert not found.graph_.has_edge("a", "b")
    backwards = FederatedNOTEARS(secure=False, tiers=[["c"], ["b"], ["a"]]).fit(split(chain, 3))
    assert set(backwards.graph_.edges) <= {("c", "b"), ("c", "a"), ("b", "a")}
    assert backwards.graph_.number_of_edges() >= 2


def test_a_masked_diagonal_stays_zero(chain):
    model = building.shared_model(("a", "b", "c"), Settings(diagonal="masked"))
    assert (model.free == OTHERS).all()
    assert building.shared_model(("a", "b", "c"), Settings()).free.all()
    assert sorted(FederatedNOTEARS(secure=False, diagonal="masked").fit(split(chain, 3)).graph_.edges) == sorted(
        CHAIN.edges
    )

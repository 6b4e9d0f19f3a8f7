"""NOTEARS-MLP: gradients against differences and plain formulas, recovery, constraints and refusals."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy.special import expit
from sklearn.base import clone

from gpn_bayes import graphs, metrics, simulate
from gpn_bayes.data import Dataset, SufficientStatistics
from gpn_bayes.estimators import NOTEARSMLP, notears_mlp
from gpn_bayes.estimators.perceptrons import Perceptrons
from gpn_bayes.kernels.learners.acyclicity import exponential

pytestmark = pytest.mark.more("repeats whole searches for every learner and setting")

CHAIN = nx.DiGraph([("a", "b"), ("b", "c")])


def networks(seed=0, rows=40, inputs=4, outputs=4, hidden=3, lambda1=0.1, lambda2=0.3):
    rng = np.random.default_rng(seed)
    allowed = rng.random((inputs, outputs)) < 0.7
    free = np.zeros((inputs, outputs), dtype=bool)
    free[0, 0] = True
    model = Perceptrons(
        rng.normal(size=(rows, inputs)), rng.normal(size=(rows, outputs)), allowed, hidden, lambda1, lambda2, free
    )
    parameters = rng.normal(size=model.size)
    layers = model.layers(parameters)
    layers.first[~np.repeat(allowed.T, hidden, axis=0)] = 0.0
    return model, parameters, allowed


def differences(function, x, step=1e-5):
    """Return central differences with a correction of the next order."""
    found = []
    for e in np.eye(len(x)):
        near, far = ((function(x + h * e) - function(x - h * e)) / (2 * h) for h in (step, 2 * step))
        found.append((4 * near - far) / 3)
    return np.array(found)


@pytest.fixture(scope="module")
def chain():
    return simulate.mlp(CHAIN, 200, random_seed=2)


@pytest.fixture(scope="module")
def fitted(chain):
    return NOTEARSMLP(starts=1, random_state=1).fit(chain)


@pytest.mark.parametrize("shape", [(4, 4), (5, 1), (1, 3)])
def test_gradient(shape):
    model, parameters, allowed = networks(inputs=shape[0], outputs=shape[1])
    gradient = model.loss(parameters)[1]
    expected = differences(lambda x: model.loss(x)[0], parameters)
    # Inputs that a network doesn't have can't move.
    model.layers(expected).first[~np.repeat(allowed.T, model.hidden, axis=0)] = 0.0
    assert gradient == pytest.approx(expected, abs=1e-8)


def test_loss_is_the_formula():
    model, parameters, allowed = networks()
    layers = model.layers(parameters)
    total = 0.15 * ((layers.first**2).sum() + (layers.second**2).sum())
    said = []
    for j in range(4):
        first = layers.first.reshape(4, 3, 4)[j]
        units = expit(model.inputs @ first.T + layers.biases.reshape(4, 3)[j])
        said.append(units @ layers.second[j] + layers.offsets[j])
        total += ((said[-1] - model.outputs[:, j]) ** 2).mean() / 2
    assert model.loss(parameters)[0] == pytest.approx(total, rel=1e-12)


def test_penalties_are_on_the_first_layer_alone():
    model, _, _ = networks(lambda1=0.1)
    layers = model.layers(model.penalties)
    first = layers.first.reshape(4, 3, 4)
    assert (first[0, :, 0] == 0).all()
    assert np.count_nonzero(first == 0.1) == first.size - 3
    assert not any(part.any() for part in layers[1:])


def test_gradient_of_cycles():
    model, parameters, _ = networks()
    assert model.squares(parameters) == pytest.approx(
        (model.layers(parameters).first.reshape(4, 3, 4) ** 2).sum(axis=1).T
    )
    value, slopes = exponential(model.squares(parameters))
    expected = differences(lambda x: exponential(model.squares(x))[0], parameters, 1e-4)
    assert value > 0.1
    assert model.through_squares(parameters, slopes) == pytest.approx(
        expected, rel=1e-6, abs=1e-6 * np.abs(expected).max()
    )


def test_parts_are_the_networks():
    """Networks on their own have the losses that add up to that of all."""
    model, parameters, _ = networks()
    free = np.zeros((4, 1), dtype=bool)
    alone = []
    for j in range(4):
        one = Perceptrons(model.inputs, model.outputs[:, [j]], np.ones((4, 1), dtype=bool), 3, 0.1, 0.3, free)
        alone.append(one.loss(model.part(parameters, np.arange(4), j))[0])
    assert sum(alone) == pytest.approx(model.loss(parameters)[0])


def test_saturated_units_have_a_loss():
    model, parameters, _ = networks()
    value, gradient = model.loss(1e6 * parameters)
    assert np.isfinite(value)
    assert np.isfinite(gradient).all()


def test_recovery(fitted, chain):
    assert metrics.shd(fitted.graph_, CHAIN) == 0
    assert list(fitted.feature_names_in_) == list("abc")
    assert (fitted.adjacency_ == (fitted.weights_ > 0)).all()
    assert graphs.is_acyclic(fitted.raw_weights_ > 0)
    kept = fitted.raw_weights_ > 0.5
    assert (fitted.weights_ == np.where(kept, fitted.raw_weights_, 0)).all()
    assert 0 <= fitted.h_ <= 1e-5
    assert len(fitted.removed_) == 0
    assert not fitted.interrupted_
    assert fitted.objective_ < 0.6 * chain.var(ddof=0).sum() / 2


def test_a_non_linear_relation_without_correlation():
    """Negative control for the networks: no line finds this edge."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=300)
    table = pd.DataFrame({"x": x, "y": 4 * np.abs(x - x.mean()) + rng.normal(size=300)})
    assert abs(np.corrcoef(table.T)[0, 1]) < 0.08
    assert list(NOTEARSMLP(random_state=1).fit(table).graph_.edges) == [("x", "y")]
    # The start of the paper doesn't see it.
    assert NOTEARSMLP(starts=1, random_state=1).fit(table).graph_.number_of_edges() == 0


def test_a_large_penalty_leaves_the_variances(chain):
    """With no input, each network says the mean, whatever its scale."""
    found = NOTEARSMLP(lambda1=100.0, random_state=1).fit(chain + 1e3)
    assert not found.raw_weights_.any()
    assert found.graph_.number_of_edges() == 0
    assert found.objective_ == pytest.approx(chain.var(ddof=0).sum() / 2, rel=1e-5)


def test_lowest_of_several_starts(chain):
    found = NOTEARSMLP(starts=3, random_state=2).fit(chain)
    assert found.objectives_.shape == (3,)
    assert found.objective_ == found.objectives_.min()
    assert len(np.unique(found.objectives_)) == 3
    assert NOTEARSMLP(starts=1, random_state=2).fit(chain).objective_ == found.objectives_[0]


def test_same_seed_same_answer_and_input_as_it_was(chain, fitted):
    values = chain.to_numpy().copy()
    again = clone(fitted).fit(values)
    assert (again.raw_weights_ == fitted.raw_weights_).all()
    assert (values == chain.to_numpy()).all()
    assert (NOTEARSMLP(random_state=7).fit(chain).raw_weights_ != fitted.raw_weights_).any()


def test_constraints(chain):
    table = chain.assign(d=chain["a"].to_numpy()[::-1])
    rules = {"required": [("c", "b"), ("d", "a")], "forbidden": [("a", "b")]}
    found = NOTEARSMLP(random_state=1, threshold=1.0, **rules).fit(table)
    assert {("c", "b"), ("d", "a")} <= set(found.graph_.edges)
    assert found.raw_weights_[0, 1] == found.raw_weights_[1, 2] == found.raw_weights_[0, 3] == 0
    assert graphs.is_acyclic(found.adjacency_)
    backwards = NOTEARSMLP(random_state=1, tiers=[["c"], ["b"], ["a"]]).fit(chain)
    assert not np.triu(backwards.raw_weights_).any()
    assert backwards.graph_.number_of_edges() > 0


def test_a_required_edge_stays_without_a_weight():
    rng = np.random.default_rng(1)
    table = pd.DataFrame(rng.normal(size=(100, 3)), columns=list("xyz"))
    found = NOTEARSMLP(1.0, random_state=1, threshold=100.0, required=[("z", "x")]).fit(table)
    assert list(found.graph_.edges) == [("z", "x")]


def test_cut_edges_are_told(chain, monkeypatch):
    """With nothing done about cycles, those that are left are cut, and named."""

    def without_constraint(loss, constraint, start, largest_h, minimiser):
        yield notears_mlp.Round(minimiser(loss, start).x, 1.0)

    monkeypatch.setattr(notears_mlp, "augmented_lagrangian", without_constraint)
    found = NOTEARSMLP(random_state=1).fit(chain)
    assert len(found.removed_) >= 1
    assert graphs.is_acyclic(found.adjacency_)
    for parent, child, weight in found.removed_.itertuples(index=False):
        assert weight > 0.5
        assert not found.graph_.has_edge(parent, child)


@pytest.mark.parametrize("last", [0, 3, 700])
def test_interrupted(chain, monkeypatch, last):
    calls = []
    loss = Perceptrons.loss

    def until(self, parameters):
        calls.append(1)
        # The last evaluations, which tell the objective, are let through.
        if last < len(calls) <= last + 1:
            raise KeyboardInterrupt
        return loss(self, parameters)

    monkeypatch.setattr(Perceptrons, "loss", until)
    found = NOTEARSMLP(starts=5, random_state=1).fit(chain)
    assert found.interrupted_
    assert graphs.is_acyclic(found.adjacency_)
    assert len(found.objectives_) < 5
    assert np.isfinite(found.objective_)


def test_more_variables_than_rows():
    table = simulate.mlp(simulate.random_dag(6, edges_per_node=1, random_seed=1), 4, random_seed=1)
    found = NOTEARSMLP(random_state=1).fit(table)
    assert graphs.is_acyclic(found.adjacency_)
    assert np.isfinite(found.objective_)


def test_identical_columns(chain):
    with pytest.warns(UserWarning, match="'c' and 'e' are identical"):
        found = NOTEARSMLP(random_state=1).fit(chain.assign(e=chain["c"]))
    assert graphs.is_acyclic(found.adjacency_)


def test_progress_is_shown(chain, capsys, progress_at_once):
    NOTEARSMLP(random_state=1, progressbar=True).fit(chain[["a", "b"]])
    assert "Networks" in capsys.readouterr().err
    NOTEARSMLP(random_state=1).fit(chain[["a", "b"]])
    assert capsys.readouterr().err == ""


def test_scored_by_any_score(fitted, chain):
    assert fitted.log_score("bge") == fitted.log_score("bge", data=chain)
    assert fitted.log_score("bge") > NOTEARSMLP(100.0, random_state=1).fit(chain).log_score("bge")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"lambda1": -1}, "lambda1 must be a number, 0 or more; received -1"),
        ({"lambda2": np.nan}, "lambda2 must be a number, 0 or more; received nan"),
        ({"threshold": "auto"}, "threshold must be a number, 0 or more; received 'auto'"),
        ({"hidden": 0}, "hidden must be a whole number, 1 or more; received 0"),
        ({"starts": 1.5}, "starts must be a whole number, 1 or more; received 1.5"),
        ({"required": [("a", "b")], "forbidden": [("a", "b")]}, "an edge can't be required and forbidden; a -> b is"),
    ],
)  # fmt: skip
def test_refused_settings(chain, settings, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        NOTEARSMLP(**settings).fit(chain)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda table: table.assign(b=np.nan), "every value must be present; column 'b' has 200 missing"),
        (lambda table: table.assign(b=1.0), "every column must vary; column 'b' is constant"),
        (lambda table: table.assign(b="x y".split() * 100), "NOTEARS-MLP needs numbers; column 'b' holds text"),
        (lambda table: table.head(1), "a table needs at least two rows; received 1"),
        (
            lambda table: SufficientStatistics.of(Dataset.read(table)),
            "NOTEARS-MLP needs the rows of a table; received SufficientStatistics",
        ),
    ],
)  # fmt: skip
def test_refused_data(chain, change, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        NOTEARSMLP().fit(change(chain))

"""FederatedNOTEARS as a learner: when a run ends, how it goes on after a restart, its manners and refusals."""

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone

import gpn_bayes as gpn
from gpn_bayes import graphs, simulate
from gpn_bayes.data import read_part
from gpn_bayes.estimators import NOTEARS
from gpn_bayes.federated import FederatedNOTEARS
from gpn_bayes.federated.notears import building, learner, program
from gpn_bayes.federated.notears.consensus import consensus_rounds
from gpn_bayes.federated.notears.participants import LinearParticipant, NetworkParticipant
from gpn_bayes.federated.notears.settings import Settings
from tests.federated import PlainChannel, ReplayedChannel, asked, reference, split

CHAIN = nx.DiGraph([("a", "b"), ("b", "c")])
OTHERS = ~np.eye(3, dtype=bool)


@pytest.fixture(scope="module")
def chain():
    return simulate.linear(CHAIN, 300, random_seed=4)


@pytest.fixture(scope="module")
def fitted(chain):
    return FederatedNOTEARS().fit([chain[:60], chain[60:100], chain[100:]])


# When a run ends, and how it goes on


def test_out_of_rounds_is_told_and_cycles_are_broken():
    tables, *_ = reference(8)
    with pytest.warns(UserWarning, match="^the clients must agree on a DAG; after 4 rounds h is"):
        found = FederatedNOTEARS(secure=False, max_rounds=4, threshold=0.0).fit(tables)
    assert found.state_ == "out of rounds"
    assert found.rounds_ == 4
    assert graphs.is_acyclic(found.adjacency_)


def test_what_breaks_cycles_is_told():
    tables, *_ = reference(64)
    with pytest.warns(UserWarning, match="raise max_rounds$"):
        found = FederatedNOTEARS(secure=False, max_rounds=12, threshold=0.05).fit(tables)
    assert found.h_ > 1e-3
    assert len(found.removed_) > 0
    assert graphs.is_acyclic(found.weights_ != 0)
    for parent, child, weight in found.removed_.itertuples(index=False):
        place = [list(found.feature_names_in_).index(name) for name in (parent, child)]
        assert found.raw_weights_[*place] == weight
        assert found.weights_[*place] == 0


def test_a_run_that_goes_nowhere_ends(chain):
    found = FederatedNOTEARS(secure=False, tolerance=0.0).fit(split(chain, 3))
    assert found.state_ == "stalled"
    assert found.rounds_ < 150
    assert sorted(found.graph_.edges) == sorted(CHAIN.edges)


def test_ctrl_c_leaves_the_last_round(chain, monkeypatch):
    def interrupted(*arguments):
        for found in consensus_rounds(*arguments):
            yield found
            if found.number == 30:
                raise KeyboardInterrupt

    monkeypatch.setattr(learner, "consensus_rounds", interrupted)
    found = FederatedNOTEARS(secure=False).fit(split(chain, 3))
    assert found.interrupted_
    assert found.state_ == "interrupted"
    assert found.rounds_ == 30
    assert graphs.is_acyclic(found.adjacency_)


def test_ctrl_c_before_the_first_round_is_passed_on(chain, monkeypatch):
    def interrupted(*arguments):
        raise KeyboardInterrupt
        yield

    monkeypatch.setattr(learner, "consensus_rounds", interrupted)
    with pytest.raises(KeyboardInterrupt):
        FederatedNOTEARS(secure=False).fit(split(chain, 3))


@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_both_sides_go_on_after_a_restart(model):
    """Clients from their states, the coordinator from the sums that it has had."""
    settings = Settings(model, hidden=3, max_rounds=12)
    data = simulate.mlp(CHAIN, 90, random_seed=2)
    parts = [read_part(table) for table in split(data, 3)]
    names = parts[0].names

    def rounds(channel):
        return list(consensus_rounds(channel, building.shared_model(names, settings), building.schedule(settings)))

    whole = PlainChannel([building.participant(part, settings) for part in parts])
    last = rounds(whole)[-1]
    halfway = PlainChannel([building.participant(part, settings) for part in parts])
    for task, values in whole.asked[:7]:
        halfway.sum(task, values)
    restarted = [building.participant(part, settings) for part in parts]
    for old, new in zip(halfway.participants, restarted, strict=True):
        new.restore(old.state())
    for (task, values), sums in zip(whole.asked[7:], whole.sums[7:], strict=True):
        again = PlainChannel(restarted).sum(task, values)
        assert (again["target"] == sums["target"]).all()
    replayed = rounds(ReplayedChannel(whole.clients, whole.sums))[-1]
    assert (replayed.shared == last.shared).all()
    assert replayed._replace(shared=None) == last._replace(shared=None)


def test_as_a_program_for_processes(chain, fitted):
    parts = [read_part(table) for table in (chain[:60], chain[60:100], chain[100:])]
    channel = PlainChannel([program.notears_participant(part, {"threshold": 0.3}) for part in parts])
    found = program.coordinate_notears(channel, parts[0].names, {"threshold": 0.3})
    assert found["raw_weights"] == pytest.approx(fitted.raw_weights_, abs=1e-6)
    assert (found["adjacency"] == fitted.adjacency_).all()
    assert found["names"].tolist() == ["a", "b", "c"]
    assert found["history"].shape == (fitted.rounds_, 4)
    assert found["state"] == "converged"
    series = program.notears_participant(parts[0], {"model": "dynamic", "lags": 2})
    assert series.answer("rows", {}) == {"rows": 58}
    with pytest.raises(ValueError, match="^settings must be known; received 'lamda'$"):
        program.notears_participant(parts[0], {"lamda": 1})


# The manners of a learner


def test_it_is_a_learner(chain, fitted):
    assert clone(fitted).get_params() == fitted.get_params()
    assert gpn.federated.FederatedNOTEARS is FederatedNOTEARS
    with pytest.raises(ValueError, match="^FederatedNOTEARS keeps no data; pass some to log_score"):
        fitted.log_score("bge")
    assert fitted.log_score("bge", data=chain) == pytest.approx(NOTEARS(random_state=1).fit(chain).log_score("bge"))


def test_input_is_left_alone(chain):
    before = chain.copy()
    FederatedNOTEARS(secure=False, max_rounds=200).fit(split(chain, 2))
    pd.testing.assert_frame_equal(chain, before)


def test_two_clients_are_warned(chain):
    with pytest.warns(UserWarning, match="^a sum over 2 clients hides little"):
        FederatedNOTEARS().fit(split(chain, 2))


def test_a_column_may_rest_in_one_client(chain):
    tables = [table.copy() for table in split(chain, 3)]
    tables[1]["b"] = 2.0
    assert FederatedNOTEARS(secure=False).fit(tables).state_ == "converged"
    for table in tables:
        table["b"] = 2.0
    with pytest.raises(ValueError, match="^every column must vary in some client's table; column 'b' doesn't$"):
        FederatedNOTEARS(secure=False).fit(tables)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"model": "trees"}, "model must be one of linear, mlp, dynamic; received 'trees'"),
        ({"intercepts": "none"}, "intercepts must be one of client, shared; received 'none'"),
        ({"diagonal": 1}, "diagonal must be one of auto, free, masked; received 1"),
        ({"lambda1": -1.0}, "lambda1 must be a number, 0 or more; received -1.0"),
        ({"rho": 0}, "rho must be above 0; received 0"),
        ({"rho": -2}, "rho must be a number, 0 or more; received -2"),
        ({"threshold": np.nan}, "threshold must be a number, 0 or more; received nan"),
        ({"tolerance": "small"}, "tolerance must be a number, 0 or more; received 'small'"),
        ({"hidden": 0}, "hidden must be a whole number, 1 or more; received 0"),
        ({"lags": 1.5}, "lags must be a whole number, 1 or more; received 1.5"),
        ({"max_rounds": 0}, "max_rounds must be a whole number, 1 or more; received 0"),
        ({"random_state": None}, "random_state must be a whole number, 0 or more; received None"),
    ],
)  # fmt: skip
def test_settings_are_checked(chain, settings, message):
    with pytest.raises(ValueError) as refusal_text:
        FederatedNOTEARS(**settings).fit(split(chain, 3))
    assert str(refusal_text.value) == message


def test_tables_are_checked(chain):
    with pytest.raises(ValueError, match="^fit needs a list of tables, one per client; received DataFrame$"):
        FederatedNOTEARS().fit(chain)
    with pytest.raises(ValueError, match="^at least two clients are needed; received 1$"):
        FederatedNOTEARS().fit([chain])
    with pytest.raises(
        ValueError, match="^all clients must have the same columns in the same order; client 2 has b, a,"
    ):
        FederatedNOTEARS().fit([chain, chain[["b", "a", "c"]]])
    with pytest.raises(
        ValueError, match="^client 2: every value must be present; 3 are missing, in 1 of .* rows and 3 of 3 columns "
    ):
        FederatedNOTEARS().fit([chain, chain.mask(chain["a"] == chain["a"].max())])
    with pytest.raises(ValueError, match="^client 1: every series must be longer than lags = 3"):
        FederatedNOTEARS("dynamic", lags=3).fit([chain[:3], chain])
    with pytest.raises(ValueError, match="^federated NOTEARS needs numbers; column 'a' holds text such as 'x': "):
        FederatedNOTEARS().fit([chain, chain.assign(a="x"), chain])


@pytest.mark.parametrize("client", [LinearParticipant(np.eye(3), 3), NetworkParticipant(np.eye(3), OTHERS, 2)])
def test_clients_refuse_what_they_don_t_know(client):
    with pytest.raises(ValueError, match="^task must be one of rows, round; received 'covariance'$"):
        client.answer("covariance", {})
    with pytest.raises(ValueError, match=r"^'shared' of a round must have the shape .*; received \(2, 2\)$"):
        client.answer("round", asked(np.zeros((2, 2)), 0.1, 0.1, 3.0))
    with pytest.raises(ValueError, match="^'rho' of a round must be above 0; received -0.1$"):
        client.answer("round", asked(np.zeros((2, 2)), -0.1, 0.1, 3.0))
    with pytest.raises(ValueError, match="^a round must come with 'rho'; it doesn't$"):
        client.answer("round", {})


def test_a_centre_is_taken_only_if_that_was_agreed():
    """A coordinator can't move the rows of clients that centre theirs."""
    rows = np.random.default_rng(1).normal(size=(9, 3))
    values = asked(np.zeros((3, 3)), 0.1, 0.1, 9.0)
    moved = values | {"centre": np.array([5.0, 5.0, 5.0])}
    answers = [LinearParticipant(rows, 3).answer("round", sent)["target"] for sent in (values, moved)]
    assert (answers[0] == answers[1]).all()
    shared = LinearParticipant(rows, 3, shared_intercepts=True)
    with pytest.raises(ValueError, match="^a round must come with 'centre'; it doesn't$"):
        shared.answer("round", values)
    assert (shared.answer("round", moved)["target"] != answers[0]).any()

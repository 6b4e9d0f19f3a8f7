"""A client of NOTEARS over rounds answers ADMM, within the bounds of its own file, and no other questions."""

import numpy as np
import pytest

from gpn_bayes.data import read_part
from gpn_bayes.federated.notears import building, program
from gpn_bayes.federated.notears.bounds import BoundedParticipant, Bounds
from gpn_bayes.federated.notears.consensus import consensus_rounds
from gpn_bayes.federated.notears.settings import Settings
from gpn_bayes.federated.processes.translation import plan_to_message
from gpn_bayes.wire import federation_pb2 as messages
from tests.federated import PlainChannel
from tests.federation import Parties, play, tables

pytestmark = pytest.mark.more("repeats whole protocols for every fault of a party")

NAMES = ("a", "b", "c")
TABLES = tables((40, 50, 60), 3)
PARTS = [read_part(table) for table in TABLES]
COLUMNS = list(TABLES[0].columns)


def bounded(part, settings, bounds=None):
    return BoundedParticipant(building.participant(part, settings), settings, bounds or Bounds())


def rounds(channel, settings):
    return list(consensus_rounds(channel, building.shared_model(COLUMNS, settings), building.schedule(settings)))


@pytest.mark.parametrize("intercepts", ["client", "shared"])
@pytest.mark.parametrize("model", ["linear", "mlp"])
def test_a_run_of_admm_stays_within_the_bounds(model, intercepts):
    """To its very last round, with a client that is restarted in the middle."""
    settings = Settings(model, hidden=2, max_rounds=9, intercepts=intercepts)
    free = PlainChannel([building.participant(part, settings) for part in PARTS])
    rounds(free, settings)
    clients = [bounded(part, settings, Bounds(most_rounds=9)) for part in PARTS]
    for number, ((task, values), sums) in enumerate(zip(free.asked, free.sums, strict=True)):
        if number == 5:
            old, clients = clients, [bounded(part, settings, Bounds(most_rounds=9)) for part in PARTS]
            for client, before in zip(clients, old, strict=True):
                client.restore(before.state())
        again = PlainChannel(clients).sum(task, values)
        assert all((again[name] == sums[name]).all() for name in sums)
    with pytest.raises(ValueError, match="^the plan has 9 rounds; received a task of another$"):
        clients[0].answer(*free.asked[-1])


def first_round(**changes):
    values = {"shared": np.zeros((3, 3)), "rho": 0.001, "last_rho": 0.001, "rows": 150.0} | changes
    return {name: np.asarray(value) for name, value in values.items()}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rho": 1e-9}, "'rho' of this round must be 0.001, by the plan; received something else"),
        ({"last_rho": 5.0}, "'last_rho' of this round must be 0.001, by the plan; received something else"),
        ({"rho": [0.001, 0.001]}, "'rho' of this round must be 0.001, by the plan; received something else"),
        ({"rows": 1e300}, "all clients may have 1000000000 rows at most; received more"),
        (
            {"shared": np.full((3, 3), 1e12)},
            "shared parameters must be 1e+06 at most in size (largest_weight in this client's file); received a "
            "larger one",
        ),
        (
            {"shared": np.full((3, 3), np.nan)},
            "shared parameters must be 1e+06 at most in size (largest_weight in this client's file); received a "
            "larger one",
        ),
    ],
)
def test_chosen_queries_are_refused(changes, message):
    """By such rounds a coordinator could ask when the answer overflows, and so learn a client's covariance."""
    client = bounded(PARTS[0], Settings())
    client.answer("rows", {})
    with pytest.raises(ValueError) as refused:
        client.answer("round", first_round(**changes))
    assert str(refused.value) == message
    assert client.answer("round", first_round())["target"].shape == (3, 3)


def test_a_run_has_one_count_of_rows_and_no_other_order():
    client = bounded(PARTS[0], Settings())
    with pytest.raises(ValueError, match="^rows are counted once, before the first round"):
        client.answer("round", first_round())
    client.answer("rows", {})
    with pytest.raises(ValueError, match="^rows are counted once, before the first round"):
        client.answer("rows", {})
    client.answer("round", first_round())
    second = {"rho": 0.00125, "last_rho": 0.001}
    with pytest.raises(ValueError, match="^'rows' must be the same in all rounds; received another$"):
        client.answer("round", first_round(**second, rows=3.0))
    client.answer("round", first_round(**second))


def test_the_centre_of_all_rows_does_not_move():
    """By which a coordinator could shift a client's rows as it likes."""
    client = bounded(PARTS[0], Settings(intercepts="shared"))
    client.answer("rows", {})
    client.answer("round", first_round(centre=np.zeros(3)))
    with pytest.raises(ValueError, match="^'centre' must be the same in all rounds; received another$"):
        client.answer("round", first_round(rho=0.00125, centre=np.ones(3)))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"max_rounds": 201},
            "a run may have 200 rounds at most .most_rounds in this client's file.; the ",
        ),
        (
            {"rho": 1e-6},
            "rho must be at least 0.0001 .smallest_rho in this client's file.; the coordinator plans",
        ),
    ],
)
def test_a_plan_beyond_the_bounds_is_not_joined(settings, message):
    participant = program.notears_participant(PARTS[0], settings)
    with pytest.raises(ValueError, match=f"^{message}"):
        program.bounded_participant(participant, settings, Bounds())


@pytest.mark.parametrize("bounds", [{"most_rounds": 0}, {"largest_weight": -1.0}, {"smallest_rho": "x"}, {"rounds": 5}])
def test_bounds_that_make_no_sense_are_refused(tmp_path, bounds):
    parties = Parties(tmp_path, NAMES, COLUMNS, "notears")
    with (parties.homes["c"] / "client.toml").open("a") as file:
        file.write("[bounds]\n" + "".join(f"{name} = {value!r}\n" for name, value in bounds.items()))
    with pytest.raises(ValueError, match="^client.toml: .*received "):
        parties.client("c")


def test_a_clients_file_says_how_many_rounds_it_takes_part_in(tmp_path):
    parties = Parties(tmp_path, NAMES, COLUMNS, "notears", "max_rounds = 60")
    plan = messages.Instruction(plan=plan_to_message(parties.coordinator().plan("run 7")))
    with (parties.homes["c"] / "client.toml").open("a") as file:
        file.write("[bounds]\nmost_rounds = 50\n")
    heard = []
    with pytest.raises(ValueError, match="^a run may have 50 rounds at most .* the coordinator plans 60$"):
        play(parties, "c", [plan], PARTS[2], heard)
    assert heard == [messages.PLAN]

"""Rounds of a run: what a client answers, resends and refuses; what the coordinator adds up and remembers."""

from dataclasses import replace

import numpy as np
import pytest

from gpn_bayes.data import read_part
from gpn_bayes.federated.channel import MemoryChannel
from gpn_bayes.federated.combining import RoundSum
from gpn_bayes.federated.interface import Participant
from gpn_bayes.federated.packing import pack, unpack
from gpn_bayes.federated.plan import Plan
from gpn_bayes.federated.processes.client_store import ClientStore
from gpn_bayes.federated.processes.coordinator_store import CoordinatorStore
from gpn_bayes.federated.requests import Request
from gpn_bayes.federated.session import ClientSession
from gpn_bayes.secure import fixed_point, key_exchange
from gpn_bayes.secure.key_exchange import Signer, fingerprint
from gpn_bayes.secure.link import ProtocolError
from gpn_bayes.wire import arrays
from gpn_bayes.wire import federation_pb2 as messages
from gpn_bayes.wire.certificates import new_authority, new_party
from tests.federation import DescentParticipant, in_memory, tables

NAMES = ("a", "b", "c")
AUTHORITY = new_authority()
IDENTITIES = {name: new_party(AUTHORITY, name) for name in NAMES}
SIGNERS = {name: Signer(identity.der, identity.private_key) for name, identity in IDENTITIES.items()}
FINGERPRINTS = {name: fingerprint(signer.certificate) for name, signer in SIGNERS.items()}
PARTS = dict(zip(NAMES, tables((20, 30, 25), 3), strict=True))
PLAN = Plan("run 1", "descent", "{}", tuple(PARTS["a"].columns), NAMES, True)


def request(value=0.0):
    return Request.of("gradient", {"weights": np.full((3, 3), value)})


def participant(name):
    return DescentParticipant(read_part(PARTS[name]), {})


def sessions(plan=PLAN):
    """Return the sessions of all clients, with each other's keys."""
    joined = {name: ClientSession(plan, name, participant(name)) for name in NAMES}
    if plan.secure:
        keys = [session.signed_key(SIGNERS[name]) for name, session in joined.items()]
        for session in joined.values():
            session.accept_keys(keys, FINGERPRINTS)
    return joined


def answer(session, number=0, value=0.0):
    return messages.Answer.FromString(session.answer(number, request(value)))


# What a client does


def test_an_answer_is_resent_byte_for_byte():
    session = sessions()["a"]
    first = session.answer(0, request())
    state = session.participant.state()["velocity"].copy()
    assert session.answer(0, request()) == first
    np.testing.assert_array_equal(session.participant.state()["velocity"], state)


def test_a_key_that_two_clients_have_is_refused(monkeypatch):
    """Even if it came with all proofs: c, in league with the coordinator, shows a's key as its own."""
    monkeypatch.setattr(key_exchange, "check_key", lambda *given: None)
    joined = {name: ClientSession(PLAN, name, participant(name)) for name in NAMES}
    keys = {name: session.signed_key(SIGNERS[name]) for name, session in joined.items()}
    copied = replace(keys["c"], public_key=keys["a"].public_key)
    with pytest.raises(ProtocolError, match="^the clients of a run must have different keys; two have the same$"):
        joined["b"].accept_keys([keys["a"], keys["b"], copied], FINGERPRINTS)
    assert not joined["b"].keyed


def test_a_client_set_back_in_time_never_uses_a_mask_twice(tmp_path):
    """An older copy of a client's file, and another request before the one that the newer one had answered."""
    session = sessions()["a"]
    with ClientStore(tmp_path / "state.sqlite") as store:
        session.answer(0, request())
        store.save(session, "table")
    kept = (tmp_path / "state.sqlite").read_bytes()
    session.answer(1, request(0.25))
    first = words(session.answer(2, request(0.75)))
    (tmp_path / "old.sqlite").write_bytes(kept)
    with ClientStore(tmp_path / "old.sqlite") as store:
        older = store.load(PLAN, "a", "table", lambda: participant("a"), FINGERPRINTS)
    older.answer(1, request(0.5))
    second = words(older.answer(2, request(0.75)))
    encoded = [fixed_point.encode(step_after(0.0, value, 0.75), len(NAMES)) for value in (0.25, 0.5)]
    of_masked = fixed_point.total(np.stack([first, fixed_point.negate(second)]))
    of_numbers = fixed_point.total(np.stack([encoded[0], fixed_point.negate(encoded[1])]))
    assert (of_masked != of_numbers).all(), "under one mask the difference of the answers would be that of the numbers"
    with ClientStore(tmp_path / "state.sqlite") as store:
        same = store.load(PLAN, "a", "table", lambda: participant("a"), FINGERPRINTS)
    same.answer(1, request(0.25))
    np.testing.assert_array_equal(words(same.answer(2, request(0.75))), first)


def words(answer):
    return arrays.from_messages(messages.Answer.FromString(answer).values)["step"]


def step_after(*asked):
    """Return what client a adds in the last of several rounds."""
    own = participant("a")
    return [own.answer("gradient", request(value).values) for value in asked][-1]["step"]


@pytest.mark.parametrize(
    ("number", "value", "message"),
    [
        (1, 0.5, "^round 1 was answered; a different task in it is refused$"),
        (0, 0.0, "^round 2 is due; received a task of round 0$"),
        (3, 0.0, "^round 2 is due; received a task of round 3$"),
    ],
    ids=["another request", "replayed", "skipped"],
)
def test_rounds_out_of_turn_are_refused(number, value, message):
    session = sessions()["a"]
    session.answer(0, request())
    last = session.answer(1, request())
    with pytest.raises(ProtocolError, match=message):
        session.answer(number, request(value))
    assert session.answer(1, request()) == last
    session.answer(2, request())


def test_no_answer_without_keys():
    session = ClientSession(PLAN, "a", participant("a"))
    with pytest.raises(ProtocolError, match="^keys must be exchanged before the first round; they weren't$"):
        session.answer(0, request())


def test_keys_that_do_not_fit_are_refused():
    joined = {name: ClientSession(PLAN, name, participant(name)) for name in NAMES}
    keys = {name: session.signed_key(SIGNERS[name]) for name, session in joined.items()}
    session = joined["a"]
    for received, message in (
        ([keys["a"], keys["b"]], "one key of each client"),
        ([keys["a"], keys["b"], keys["b"]], "one key of each client"),
        ([keys["a"], keys["b"], ClientSession(PLAN, "c", participant("c")).signed_key(SIGNERS["b"])], "fingerprint"),
        ([ClientSession(PLAN, "a", participant("a")).signed_key(SIGNERS["a"]), keys["b"], keys["c"]], "client's own"),
    ):
        with pytest.raises(ProtocolError, match=message):
            session.accept_keys(received, FINGERPRINTS)
        assert not session.keyed
    session.accept_keys(list(keys.values()), FINGERPRINTS)
    swapped = ClientSession(PLAN, "b", participant("b")).signed_key(SIGNERS["b"])
    with pytest.raises(ProtocolError, match="^the keys of a run must not change; received others than before$"):
        session.accept_keys([keys["a"], swapped, keys["c"]], FINGERPRINTS)


def test_clients_that_were_told_different_plans_refuse_each_other():
    other = Plan("run 1", "descent", "{}", PLAN.variables, NAMES[::-1], True)
    joined = {name: ClientSession(other if name == "c" else PLAN, name, participant(name)) for name in NAMES}
    keys = [session.signed_key(SIGNERS[name]) for name, session in joined.items()]
    for name, blamed in (("a", "c"), ("c", "a")):
        with pytest.raises(ProtocolError, match=f"^the key of client '{blamed}' must be signed"):
            joined[name].accept_keys(keys, FINGERPRINTS)


def test_a_client_must_be_one_of_the_run():
    with pytest.raises(ProtocolError, match="^a run's clients must include this one, 'd'; they don't$"):
        ClientSession(PLAN, "d", participant("a"))


# What a client remembers


def load(store, plan=PLAN, data="table"):
    return store.load(plan, "a", data, lambda: participant("a"), FINGERPRINTS)


def test_a_client_goes_on_after_a_restart(tmp_path):
    ours, untouched = sessions()["a"], None
    with ClientStore(tmp_path / "state.sqlite") as store:
        assert load(store) is None
        sent = [ours.answer(number, request(number)) for number in range(3)]
        store.save(ours, "table")
        untouched = ours.answer(3, request(3))
    with ClientStore(tmp_path / "state.sqlite") as store:
        again = load(store)
        assert again is not None and again.answer(2, request(2)) == sent[2]
        assert again.answer(3, request(3)) == untouched
        with pytest.raises(ProtocolError, match="^round 3 was answered"):
            again.answer(3, request(7))


def test_only_the_owner_may_read_the_keys(tmp_path):
    with ClientStore(tmp_path / "state.sqlite") as store:
        store.save(sessions()["a"], "table")
        for file in tmp_path.glob("state.sqlite*"):
            if not file.name.endswith(".lock"):
                assert file.stat().st_mode & 0o777 == 0o600, file.name


def test_a_run_that_is_over_is_not_joined_again(tmp_path):
    ours = sessions()["a"]
    ours.answer(0, request())
    with ClientStore(tmp_path / "state.sqlite") as store:
        store.save(ours, "table")
        changed = Plan(PLAN.run, "statistics", "{}", PLAN.variables, NAMES, True)
        with pytest.raises(ProtocolError, match="^a run's plan must not change after this client joined; "):
            load(store, changed)
        with pytest.raises(ValueError, match="^a client's table must stay the same during a run; received another$"):
            load(store, data="edited")
        store.finish(PLAN.run)
        with pytest.raises(ProtocolError, match="^this run is over for this client; start a new one$"):
            load(store)
    assert ours.private_key not in (tmp_path / "state.sqlite").read_bytes()


def test_the_ledger_knows_which_tables_were_summed(tmp_path):
    with ClientStore(tmp_path / "state.sqlite") as store:
        ours = sessions()["a"]
        store.save(ours, "table")
        assert store.earlier_releases("table", "run 2") == []  # joined, but nothing given yet
        ours.answer(0, request())
        store.save(ours, "table")
        assert store.earlier_releases("table", "run 2") == [("run 1", "descent", NAMES)]
        assert store.earlier_releases("table", "run 1") == []
        assert store.earlier_releases("another", "run 2") == []
        # It knows the clients also of runs that are over, of any program.
        store.finish(PLAN.run)
        fewer = sessions(Plan("run 3", "statistics", "{}", PLAN.variables, NAMES, True))["a"]
        fewer.answer(0, request())
        store.save(fewer, "table")
        assert store.earlier_releases("table", "run 2") == [("run 1", "descent", NAMES), ("run 3", "statistics", NAMES)]


# What the coordinator takes


def test_the_sum_of_masked_answers_is_the_plain_one():
    joined = sessions()
    collected = RoundSum(PLAN, 0, request())
    assert collected.missing == NAMES
    for name in ("c", "a", "b"):
        collected.take(name, answer(joined[name]))
    assert collected.missing == ()
    expected = [participant(name).answer("gradient", request().values) for name in NAMES]
    for name, total in collected.total().items():
        np.testing.assert_allclose(total, sum(part[name] for part in expected), rtol=1e-13)


def spoilt(message, **changes):
    copy = messages.Answer.FromString(message.SerializeToString())
    for field, value in changes.items():
        setattr(copy, field, value)
    return copy


def test_answers_that_do_not_fit_are_refused_and_the_round_goes_on():
    joined = sessions()
    right = {name: answer(joined[name]) for name in NAMES}
    collected = RoundSum(PLAN, 0, request(), {"step": (3, 3), "loss": (), "rows": ()})
    short = spoilt(right["a"])
    del short.values[0]
    flat = spoilt(right["a"])
    flat.values[2].shape[:] = [18]
    cut = spoilt(right["a"])
    cut.values[2].data = cut.values[2].data[:-8]
    floats = spoilt(right["a"])
    floats.values[2].type = messages.FLOAT64
    floats.values[2].data = np.zeros(18).tobytes()
    for wrong, message in (
        (spoilt(right["a"], run="run 0"), "^an answer must be for the current run; received one for another$"),
        (spoilt(right["a"], round=1), "^an answer to round 0 is due; received one to round 1$"),
        (spoilt(right["a"], request=b"x"), "^an answer must be to the task that was sent; received one to another$"),
        (short, "^an answer's arrays must have the expected names and shapes; received others$"),
        (flat, "^an answer must hold masked words; received others$"),
        (cut, r"^an array's shape must fit its bytes; received \(3, 3, 2\), 136 bytes$"),
        (floats, "^an answer must hold masked words; received others$"),
    ):
        with pytest.raises(ValueError, match=message):
            collected.take("a", wrong)
        assert collected.missing == NAMES
    for name in NAMES:
        collected.take(name, right[name])
        collected.take(name, right[name])
    masked = spoilt(right["b"])
    masked.values[0].data = bytes(16)
    with pytest.raises(ValueError, match="^round 0 was answered; a different answer to it is refused$"):
        collected.take("b", masked)
    np.testing.assert_allclose(collected.total()["rows"], 75)


def test_most_clients_say_what_is_expected_where_nobody_else_does(caplog):
    joined = sessions()
    right = {name: answer(joined[name]) for name in NAMES}
    misshapen = spoilt(right["a"])
    misshapen.values[2].shape[:] = [9, 1, 2]
    collected = RoundSum(PLAN, 0, request())
    for name, message in (("a", misshapen), ("b", right["b"]), ("c", right["c"])):
        collected.take(name, message)
    assert collected.missing == ("a",)
    assert caplog.messages == ["dropped an answer of client 'a': its arrays have other shapes than most"]
    with pytest.raises(ValueError, match="the expected names and shapes"):
        collected.take("a", misshapen)
    collected.take("a", right["a"])
    np.testing.assert_allclose(collected.total()["rows"], 75)


def test_nan_in_a_plain_answer_is_refused():
    plan = Plan("run 1", "descent", "{}", PLAN.variables, NAMES, False)
    right = answer(sessions(plan)["a"])
    right.values[0].data = np.array(np.nan).tobytes()
    with pytest.raises(ValueError, match="^every number must be finite; array 'loss' holds NaN or infinity$"):
        RoundSum(plan, 0, request()).take("a", right)


# What the coordinator remembers


def test_sums_are_remembered_with_what_was_asked(tmp_path):
    sums = {"step": np.arange(6.0).reshape(2, 3), "a/b c": np.array(3.5)}
    with CoordinatorStore(tmp_path / "run.sqlite") as store:
        assert store.plan() is None
        store.start(PLAN)
        store.save_sums(0, request().digest, sums)
    with CoordinatorStore(tmp_path / "run.sqlite") as store:
        assert store.plan() == PLAN
        found = store.sums(0, request().digest)
        assert store.sums(1, request().digest) is None
        with pytest.raises(ValueError, match="^a resumed run must repeat its requests; round 0 differs"):
            store.sums(0, request(1.0).digest)
    assert found.keys() == sums.keys()
    for name, value in sums.items():
        np.testing.assert_array_equal(found[name], value)


def test_python_objects_are_not_packed():
    with pytest.raises(ValueError, match="^arrays of a checkpoint must hold plain values; 'x' holds Python objects$"):
        pack({"x": np.array([{}])})
    file = pack({"file": np.arange(3)})
    np.testing.assert_array_equal(unpack(file)["file"], np.arange(3))


# The channel in memory


def test_secure_and_plain_runs_agree():
    parts, settings = tables((20, 30, 25), 4), {"rounds": 12}
    secure, plain = (in_memory(parts, settings, secure=secure) for secure in (True, False))
    np.testing.assert_allclose(secure["weights"], plain["weights"], rtol=0, atol=1e-12)
    assert secure["losses"][-1] < secure["losses"][0]


def test_requests_tell_apart_what_differs():
    digests = {
        Request.of(task, values).digest
        for task, values in (
            ("t", {}), ("u", {}), ("t", {"x": 1.0}), ("t", {"x": 1}), ("t", {"x": [1.0]}), ("t", {"y": 1.0}),
            ("t", {"x": 1.0, "y": 2.0}), ("t", {"x": [[1.0, 2.0]]}), ("t", {"x": [[1.0], [2.0]]}), ("t", {"x": -1.0}),
        )
    }  # fmt: skip
    assert len(digests) == 10
    assert Request.of("t", {"x": 1.0, "y": 2}).digest == Request.of("t", {"y": 2, "x": np.float32(1)}).digest


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([np.nan], "^values of a task must be finite; 'x' holds NaN or infinity$"),
        (["a"], "^values of a task must be real numbers; 'x' holds <U1$"),
        ([1j], "^values of a task must be real numbers; 'x' holds complex128$"),
    ],
)
def test_values_that_are_no_numbers_are_refused(value, message):
    with pytest.raises(ValueError, match=message):
        Request.of("t", {"x": value})


class Answers(Participant):
    def __init__(self, value):
        self.value = value

    def answer(self, task, values):
        return self.value

    def state(self):
        return {}

    def restore(self, state):
        pass


def test_answers_without_arrays_and_of_whole_numbers():
    assert MemoryChannel([Answers({})] * 3).sum("t", {}) == {}
    assert MemoryChannel([Answers({"n": 3})] * 3).sum("t", {}) == {"n": 9.0}


def test_participants_that_differ_in_shape_or_answer_nan_are_told():
    with pytest.raises(ValueError, match="^all clients must answer arrays of the same shapes; 'client1' doesn't$"):
        MemoryChannel([Answers({"x": np.zeros(n)}) for n in (3, 2, 2)]).sum("t", {})
    with pytest.raises(ValueError, match="the expected names and shapes"):
        MemoryChannel([Answers({"x": np.zeros(n)}) for n in (2, 2, 3)]).sum("t", {}, {"x": (2,)})
    with pytest.raises(ValueError, match="received a larger one, or NaN$"):
        MemoryChannel([Answers({"x": np.array(np.nan)})] * 3).sum("t", {})
    with pytest.raises(ValueError, match="^clients must have different names; received a, a$"):
        Plan("run", "descent", "{}", (), ("a", "a"), True)

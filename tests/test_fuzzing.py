"""Whatever a file or another party sends ends in a result or in one message; see `tests.fuzzing`."""

import json

import pytest

from tests.fuzz_targets import TARGETS
from tests.fuzzing import Target, damaged, fault_of, fuzz

pytestmark = pytest.mark.more("fuzzes every reader of files and messages")

QUICK, SLOW = 100, 10_000
# Megabytes that a target may take beyond what it took for valid content.
MOST_MB = 600


def check(outcome):
    print(outcome)
    assert not outcome.faults, "\n".join([str(outcome), *outcome.faults])
    assert outcome.refused + outcome.accepted == outcome.cases
    assert outcome.peak_mb - outcome.base_mb < MOST_MB


@pytest.fixture(scope="module")
def outcomes():
    """One process for all targets: most of the time is that of its imports."""
    return fuzz(dict.fromkeys(TARGETS, QUICK))


@pytest.mark.parametrize("target", TARGETS)
def test_damaged_content_ends_in_one_message(outcomes, target):
    assert outcomes[target].cases >= QUICK // 2  # of few different ones there may be fewer
    check(outcomes[target])


@pytest.mark.slow
@pytest.mark.parametrize("target", TARGETS)
def test_damaged_content_ends_in_one_message_ten_thousand_times(target, tmp_path):
    check(fuzz({target: SLOW}, seed=2, keep=tmp_path)[target])


# The harness finds what it looks for.


def raising(error):
    def read(content, folder):
        raise error

    return read


@pytest.mark.parametrize(
    ("read", "problem"),
    [
        (raising(KeyError("x")), "another type"),
        (raising(UnicodeDecodeError("utf-8", b"\xff", 0, 1, "why")), "a library's type"),
        (raising(ValueError("")), "not one line"),
        (raising(ValueError("a rule; received\nsomething")), "not one line"),
        (raising(ValueError("a rule; received something")), None),
        (raising(ValueError("a rule; received two problems:\n  one\n  two")), None),
    ],
)
def test_a_refusal_is_one_line_of_ours(read, problem, tmp_path):
    with pytest.raises(Exception) as refusal:
        read(b"", tmp_path)
    found = fault_of(refusal.value, (ValueError,))
    assert found is None if problem is None else found.startswith(problem)


def test_a_library_s_own_text_is_a_fault():
    with pytest.raises(ValueError) as refusal:
        json.JSONDecoder(parse_int=int).decode("1" * 5000)
    assert fault_of(refusal.value, (ValueError,)).startswith("a library's text")


def test_damage_is_repeatable_and_changes_something():
    whole = bytes(range(256)) * 4
    changed = [damaged(whole, seed, [whole]) for seed in range(200)]
    assert changed == [damaged(whole, seed, [whole]) for seed in range(200)]
    assert sum(content != whole for content in changed) > 150
    assert {len(content) < len(whole) for content in changed} == {True, False}


HARMFUL = {
    "hang": "while True: pass",
    "crash": "import os, signal; os.kill(os.getpid(), signal.SIGSEGV)",
    "traceback": "raise KeyError('x')",
    "memory": "bytearray(8 << 30)",
}


@pytest.mark.parametrize("harm", HARMFUL)
def test_what_ends_a_process_is_counted_and_kept(harm, tmp_path, monkeypatch):
    """By a target that does harm where its content begins with a zero byte."""
    module = tmp_path / "harmful_targets.py"
    module.write_text(
        "from tests.fuzzing import Target\n"
        "def read(content, folder):\n"
        f"    if content[:1] == b'\\0':\n        exec({HARMFUL[harm]!r})\n"
        "def make_target(name, folder):\n"
        "    from hypothesis import strategies as st\n"
        "    return Target([b'x'], read, st.sampled_from([b'\\0one', b'two', b'three']), damage=False)\n"
    )
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    outcome = fuzz({"harmful": 3}, keep=tmp_path / "kept", targets="harmful_targets", cpu_seconds=2)["harmful"]
    kept = [path.read_bytes() for path in (tmp_path / "kept").iterdir()]
    assert set(kept) == {b"\0one"} and outcome.faults
    assert (outcome.hangs > 0) == (harm == "hang")
    assert (outcome.crashes > 0) == (harm == "crash")


def test_targets_accept_what_is_valid(tmp_path):
    for name in ("frames", "bif", "csv"):
        target = TARGETS[name](tmp_path)
        assert isinstance(target, Target) and target.valid
        for content in target.valid:
            target.read(content, tmp_path)

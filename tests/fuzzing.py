"""Fuzzing: readers of files and messages get damaged content, in a process that may crash or hang without harm.

A case is bytes: the content of a file, or of what another party sends. The child process writes each case to disk
before it reads it, so that the case that ended the process is known. Replay one by

    python -m tests.fuzzing TARGET FILE

and run any number of them, from a seed, into a folder for those that went wrong, by

    python -m tests.fuzzing TARGET COUNT SEED FOLDER
"""

import hashlib
import importlib
import json
import math
import os
import random
import resource
import select
import signal
import subprocess
import sys
import tempfile
import traceback
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.running import ROOT, STRICT_PYTHON

# What one case may take: seconds of processor time, seconds by the clock (for waiting without working), bytes.
CASE_CPU = 10
CASE_CLOCK = 120
CASE_BYTES = 2 << 30
# Seconds by the clock until a target is ready: it may have to compile first, on a busy machine.
READY_CLOCK = 900
# An error's text is for a person to read.
LONGEST_TEXT = 20_000
# After that many crashes and hangs the others needn't be counted.
MOST_DEATHS = 20


@dataclass(frozen=True)
class Target:
    """A reader of what others send.

    Parameters
    ----------
    valid : list of bytes
        Content that it must accept, from which damaged content is made.
    read : callable
        ``read(content, folder)``; the folder is there for files.
    structured : hypothesis strategy of bytes
        Nearly valid content.
    refusals : tuple of types
        What a refusal may be.
    damage : bool, default True
        Whether valid content is damaged; otherwise all cases are structured.
    """

    valid: Sequence[bytes]
    read: Callable[[bytes, Path], Any]
    structured: Any = None
    refusals: tuple[type[BaseException], ...] = (ValueError,)
    damage: bool = True


@dataclass
class Outcome:
    """What came of a target's cases."""

    target: str
    cases: int = 0
    accepted: int = 0
    refused: int = 0
    hangs: int = 0
    crashes: int = 0
    cpu: float = 0.0
    base_mb: int = 0
    peak_mb: int = 0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Return all figures in one line."""
        tracebacks = len(self.faults) - self.hangs - self.crashes
        return (
            f"{self.target}: {self.cases} cases, {self.accepted} accepted, {self.refused} refused, {self.hangs} hangs, "
            f"{self.crashes} crashes, {tracebacks} tracebacks, peak {self.peak_mb} MB "
            f"(of it {self.base_mb} MB before the first case), {self.cpu:.1f} s of CPU"
        )


def damaged(content: bytes, seed: int, others: Sequence[bytes] = ()) -> bytes:
    """Return content with one to four random changes: of bits, bytes, numbers, blocks, or its length."""
    chance = random.Random(seed)
    changed = bytearray(content)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        chance.choice(_CHANGES)(changed, chance, others)
    return bytes(changed)


def _place(data: bytearray, chance: random.Random) -> int:
    return chance.randrange(len(data)) if data else 0


def _flip(data: bytearray, chance: random.Random, others: Sequence[bytes]) -> None:
    if data:
        data[_place(data, chance)] ^= 1 << chance.randrange(8)


def _replace(data: bytearray, chance: random.Random, others: Sequence[bytes]) -> None:
    if data:
        data[_place(data, chance)] = chance.choice((0, 1, 127, 128, 255, chance.randrange(256)))


def _truncate(data: bytearray, chance: random.Random, others: Sequence[bytes]) -> None:
    del data[_place(data, chance) :]


def _cut(data: bytearray, chance: random.Random, others: Sequence[bytes]) -> None:
    start = _place(data, chance)
    del data[start : start + chance.randint(1, 64)]


def _repeat(data: bytearray, chance: random.Random, others: Sequence[bytes]) -> None:
    start, length = _place(data, chance), chance.randint(1, 256)
    data[start:start] = bytes(data[start : start + length]) * chance.choice((1, 1, 2, 50))


def _swap(data: bytearray, chance: random.Random, others: Sequence[bytes]) -> None:
    length = chance.choice((1, 4, 8, 64, 512))
    one, other = sorted((_place(data, chance), _place(data, chance)))
    first, second = bytes(data[one : one + length]), bytes(data[other : other + length])
    if one + length <= other:
        data[other : other + length] = first
        data[one : one + length] = second


def _splice_number(data: bytearray, chance: random.Random, others: Sequence[bytes]) -> None:
    width = chance.choice((2, 4, 8))
    most = 1 << 8 * width
    number = chance.choice((0, 1, most - 1, most >> 1, (most >> 1) - 1, most - 2, chance.randrange(most))) % most
    start = _place(data, chance)
    data[start : start + width] = number.to_bytes(width, chance.choice(("little", "big")))


def _splice_digits(data: bytearray, chance: random.Random, others: Sequence[bytes]) -> None:
    start = _place(data, chance)
    text = chance.choice((b"-1", b"1e999", b"nan", b"9" * 30, b"9" * 5000, b"0x7f", b"\xff\xfe", b"[" * 3000, b"\0"))
    data[start : start + chance.choice((0, 1, len(text)))] = text


def _cross(data: bytearray, chance: random.Random, others: Sequence[bytes]) -> None:
    if others:
        data[_place(data, chance) :] = (other := chance.choice(others))[chance.randrange(len(other) + 1) :]


_CHANGES = (
    _flip, _flip, _flip, _replace, _replace, _truncate, _cut, _repeat, _swap, _splice_number, _splice_number,
    _splice_digits, _cross,
)  # fmt: skip


def strategy_of(target: Target) -> Any:
    """Return a strategy of cases: damaged content and, in equal parts, nearly valid content."""
    from hypothesis import strategies as st

    def change(drawn: tuple[int, int]) -> bytes:
        return damaged(target.valid[drawn[0]], drawn[1], target.valid)

    # Places come from a seed: hypothesis prefers small numbers, and would damage beginnings alone.
    changed = st.tuples(st.integers(0, len(target.valid) - 1), st.integers(0, 2**62)).map(change)
    if target.structured is None:
        return changed
    return st.one_of(changed, target.structured) if target.damage else target.structured


def fault_of(error: BaseException, refusals: tuple[type[BaseException], ...]) -> str | None:
    """Return what is wrong with the way content was refused; None if nothing is."""
    text, place = str(error), traceback.extract_tb(error.__traceback__)[-1]
    if not isinstance(error, refusals):
        problem = "another type"
    elif not (type(error) in refusals or type(error).__module__.startswith("gpn_bayes.")):
        problem = "a library's type"
    elif not Path(place.filename).is_relative_to(ROOT):
        problem = "a library's text"
    elif not _readable(text):
        problem = "not one line"
    else:
        return None
    return f"{problem}: {type(error).__name__}: {text[:300]!r} at {Path(place.filename).name}:{place.lineno}"


def _readable(text: str) -> bool:
    """Tell whether a text is one line; or, as of tables, a line with an indented list of problems below."""
    first, *others = text.split("\n")
    return bool(first.strip()) and len(text) <= LONGEST_TEXT and all(line.startswith("  ") for line in others)


# The child process.


MakeTarget = Callable[[str, Path], Target]


def _child(
    names: Sequence[str],
    counts: Sequence[int],
    seed: int,
    folder: Path,
    pipe: int,
    make_target: MakeTarget,
    cpu_seconds: int,
) -> None:
    """Run cases of targets one after the other, and write to a pipe what comes of them, line by line."""

    def say(**content: Any) -> None:
        os.write(pipe, json.dumps(content).encode() + b"\n")

    for name, count in zip(names, counts, strict=True):
        own = folder / name
        own.mkdir()
        _lift_limits()
        _run_target(make_target(name, own), count, seed, own, folder / "case", cpu_seconds, say)
        say(event="end")


def _run_target(
    target: Target, count: int, seed: int, folder: Path, note: Path, cpu_seconds: int, say: Callable[..., None]
) -> None:
    import hypothesis

    for content in target.valid:
        target.read(content, folder)  # which also loads and compiles what it needs
    say(event="ready", mb=_peak_mb())
    _limit_memory()
    left = count

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        database=None,
        deadline=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategy_of(target))
    def run(content: bytes) -> None:
        nonlocal left
        if left == 0:
            return
        left -= 1
        note.write_bytes(content)
        _limit_time(cpu_seconds)
        before = _cpu()
        say(event="case")
        fault, accepted = _attempt(target, content, folder)
        case = None if fault is None else content.hex()
        note.unlink()  # what ends this process between two cases is no case
        say(event="done", accepted=accepted, fault=fault, case=case, cpu=_cpu() - before, mb=_peak_mb())

    run()


def _attempt(target: Target, content: bytes, folder: Path) -> tuple[str | None, bool]:
    """Return what is wrong with the way content was taken, if anything is, and whether it was accepted."""
    try:
        target.read(content, folder)
    except Exception as error:
        return fault_of(error, target.refusals), False
    return None, True


def _cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    below = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime + below.ru_utime + below.ru_stime


def _peak_mb() -> int:
    kilobytes = max(resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return kilobytes // 1024


def _limit_time(seconds: int) -> None:
    """Let the system end this process if a case works for too long, even inside a library."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    most = math.ceil(used.ru_utime + used.ru_stime) + seconds
    resource.setrlimit(resource.RLIMIT_CPU, (most, resource.getrlimit(resource.RLIMIT_CPU)[1]))


def _lift_limits() -> None:
    """Let a target take what it needs to get ready, compilation included."""
    for kind in (resource.RLIMIT_CPU, resource.RLIMIT_AS):
        most = resource.getrlimit(kind)[1]
        resource.setrlimit(kind, (most, most))


def _limit_memory() -> None:
    """Allow this process a fixed amount beyond what its libraries have reserved."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * resource.getpagesize() + CASE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, resource.getrlimit(resource.RLIMIT_AS)[1]))


# The parent process.


def fuzz(
    counts: dict[str, int],
    seed: int = 1,
    keep: Path | None = None,
    targets: str = "tests.fuzz_targets",
    cpu_seconds: int = CASE_CPU,
) -> dict[str, Outcome]:
    """Run cases of targets in a child process, and in another one after a case that ended it.

    Parameters
    ----------
    counts : dict of str to int
        How many cases of each target.
    seed : int, default 1
        Where the cases come from.
    keep : path, optional
        The folder for cases that were neither accepted nor properly refused.
    targets : str
        The module whose ``make_target`` makes them.
    cpu_seconds : int
        Processor time that one case may take.
    """
    outcomes = {name: Outcome(name) for name in counts}
    left = dict(counts)
    while left:
        with tempfile.TemporaryDirectory() as folder:
            _Watch(left, outcomes, Path(folder), keep).run(seed, targets, cpu_seconds)
        seed += 1
    return outcomes


class _Watch:
    """One child process, and what it says; targets that it completes are struck off."""

    def __init__(self, left: dict[str, int], outcomes: dict[str, Outcome], folder: Path, keep: Path | None) -> None:
        self._left, self._outcomes, self._folder, self._keep = left, outcomes, folder, keep
        self._in_case = False

    def run(self, seed: int, targets: str, cpu_seconds: int) -> None:
        """Start the child, and follow it to its end."""
        reading, writing = os.pipe()
        order = [json.dumps(list(self._left)), json.dumps(list(self._left.values())), str(seed), str(self._folder)]
        errors = self._folder / "errors"
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        with errors.open("wb") as log, os.fdopen(reading, "rb", buffering=0) as pipe:
            child = subprocess.Popen(
                [*STRICT_PYTHON, "-m", "tests.fuzzing", "--child", *order, str(writing), targets, str(cpu_seconds)],
                cwd=ROOT, stdout=log, stderr=log, pass_fds=[writing], env=os.environ | {"PYTHONPATH": path},
            )  # fmt: skip
            os.close(writing)
            late = self._follow(pipe)
            if late:
                child.kill()
            ended = child.wait()
        if self._left:
            self._note_death(late or ended == -signal.SIGXCPU, ended, errors.read_text(errors="replace"))

    def _follow(self, pipe: Any) -> bool:
        """Take in what the child says; return whether it fell silent."""
        rest = b""
        while True:
            if not select.select([pipe], [], [], CASE_CLOCK if self._in_case else READY_CLOCK)[0]:
                return True
            read = pipe.read(1 << 16)
            if not read:
                return False
            *lines, rest = (rest + read).split(b"\n")
            for line in lines:
                self._take(**json.loads(line))

    def _take(self, event: str, **content: Any) -> None:
        outcome = self._outcomes[next(iter(self._left))]
        self._in_case = event == "case"
        if event == "ready":
            outcome.base_mb, outcome.peak_mb = content["mb"], max(outcome.peak_mb, content["mb"])
        elif event == "case":
            outcome.cases += 1
            self._left[outcome.target] -= 1
        elif event == "done":
            outcome.cpu += content["cpu"]
            outcome.peak_mb = max(outcome.peak_mb, content["mb"])
            outcome.accepted += content["accepted"]
            outcome.refused += not content["accepted"] and content["fault"] is None
            if content["fault"] is not None:
                self._note_fault(outcome, content["fault"], content["case"])
        else:
            del self._left[outcome.target]

    def _note_death(self, hung: bool, ended: int, errors: str) -> None:
        outcome = self._outcomes[next(iter(self._left))]
        if not (self._folder / "case").exists():
            raise RuntimeError(f"{outcome.target} must be ready for cases; its process ended:\n{errors}")
        outcome.hangs += hung
        outcome.crashes += not hung
        what = "hang" if hung else f"crash, status {ended}"
        self._note_fault(outcome, f"{what}: {errors.strip()[-300:]}", (self._folder / "case").read_bytes().hex())
        if outcome.hangs + outcome.crashes > MOST_DEATHS or self._left[outcome.target] <= 0:
            del self._left[outcome.target]

    def _note_fault(self, outcome: Outcome, fault: str, case: str) -> None:
        content = bytes.fromhex(case)
        if self._keep is not None:
            self._keep.mkdir(parents=True, exist_ok=True)
            path = self._keep / f"{outcome.target}-{hashlib.sha256(content).hexdigest()[:12]}"
            path.write_bytes(content)
            fault += f" ({path})"
        outcome.faults.append(fault)


def main(arguments: Sequence[str]) -> None:
    """Be the child process of `fuzz`; or run cases from the command line, or replay one."""
    if arguments[0] == "--child":
        names, counts, seed, folder, pipe, targets, cpu_seconds = arguments[1:]
        make_target = importlib.import_module(targets).make_target
        _child(json.loads(names), json.loads(counts), int(seed), Path(folder), int(pipe), make_target, int(cpu_seconds))
    elif Path(arguments[1]).is_file():
        from tests.fuzz_targets import make_target

        with tempfile.TemporaryDirectory() as folder:
            target = make_target(arguments[0], Path(folder))
            print(repr(target.read(Path(arguments[1]).read_bytes(), Path(folder)))[:2000])
    else:
        for outcome in fuzz({arguments[0]: int(arguments[1])}, int(arguments[2]), Path(arguments[3])).values():
            print(outcome, *outcome.faults, sep="\n")


if __name__ == "__main__":
    main(sys.argv[1:])

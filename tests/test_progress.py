"""Progress: bars in terminals, lines at intervals in logs, one changing line in notebooks without ipywidgets."""

import io
import math
import os
import re
import select
import sys
import time
from contextlib import contextmanager
from types import ModuleType, SimpleNamespace

import pytest
from rich.console import Console
from rich.progress import BarColumn

from gpn_bayes._util import progress
from gpn_bayes._util.progress import Stages, progress_bar, status_line


@pytest.fixture
def clock(monkeypatch):
    """Return a clock that only moves when it is told to."""
    now = SimpleNamespace(seconds=0.0)
    monkeypatch.setattr(progress, "monotonic", lambda: now.seconds)
    monkeypatch.setattr(progress._LogLines, "_ended", -math.inf)
    return now


@pytest.fixture(autouse=True)
def no_settings_of_rich(monkeypatch):
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE", "TTY_INTERACTIVE"):
        monkeypatch.delenv(name, raising=False)


@contextmanager
def stderr_to(file):
    before, sys.stderr = sys.stderr, file
    try:
        yield
    finally:
        sys.stderr = before


def work(clock, steps: int, seconds: float, description: str = "Scoring") -> None:
    with progress_bar(description, steps, show=True) as advance:
        for _ in range(steps):
            clock.seconds += seconds
            advance(1)


# Logs


def test_a_log_gets_a_line_every_ten_seconds(clock, capsys):
    work(clock, 100, 1.0)
    shown = capsys.readouterr()
    lines = shown.err.splitlines()
    assert shown.out == "" and len(lines) == 10
    assert lines[1] == "Scoring 20% (20 s, about 1 min 20 s left)" and lines[-1] == "Scoring 100% (1 min 40 s)"


def test_lines_of_long_work_are_further_apart(clock, capsys):
    work(clock, 36_000, 1.0)
    lines = capsys.readouterr().err.splitlines()
    assert 40 < len(lines) < 100 and lines[-1] == "Scoring 100% (10 h 0 min)"


def test_quick_work_leaves_no_line(clock, capsys):
    work(clock, 9, 1.0)
    clock.seconds += 60.0
    with status_line(show=True) as tell:
        clock.seconds += 9.0
        tell("gap 3.2 nats")
    assert capsys.readouterr() == ("", "")


def test_many_quick_parts_are_no_quick_work(clock, capsys):
    for k in range(1, 7):
        work(clock, 4, 1.0, f"Round {k}")
    lines = capsys.readouterr().err.splitlines()
    ends = ("50% (2 s, about 2 s left)", "100% (4 s)")
    assert lines == [f"Round {k} {end}" for k in (3, 6) for end in ends]
    clock.seconds += 60.0
    work(clock, 9, 1.0, "Later")
    assert capsys.readouterr().err == ""


def test_what_an_earlier_run_did_says_nothing_about_speed(clock, capsys):
    with progress_bar("Sampling", 100, show=True) as advance:
        advance(60)
        clock.seconds += 10.0
        advance(10)
    assert capsys.readouterr().err == "Sampling 70% (10 s, about 30 s left)\n"


def test_failed_work_says_no_more(clock, capsys):
    with pytest.raises(RuntimeError), progress_bar("Scoring", 4, show=True) as advance:
        for _ in range(2):
            clock.seconds += 6.0
            advance(1)
        advance(1)
        raise RuntimeError
    assert capsys.readouterr().err == "Scoring 50% (12 s, about 12 s left)\n"


def test_lines_are_there_while_work_goes_on(clock, tmp_path):
    log = tmp_path / "log.txt"
    with log.open("w", encoding="utf-8") as file, stderr_to(file):
        with progress_bar("Scoring", 3, show=True) as advance:
            clock.seconds += 12.0
            advance(1)
            assert log.read_text(encoding="utf-8") == "Scoring 33% (12 s, about 24 s left)\n"


def test_a_status_that_stays_is_written_too(monkeypatch, capsys):
    monkeypatch.setattr(progress, "_LOG_SECONDS", 0.05)
    with status_line(show=True) as tell:
        tell("waiting for 3 clients to join")
        shown, deadline = "", time.monotonic() + 10
        while not shown and time.monotonic() < deadline:
            time.sleep(0.01)
            shown = capsys.readouterr().err
        assert shown == "waiting for 3 clients to join\n"
        tell("waiting for 3 clients to join")
        time.sleep(0.2)
    assert capsys.readouterr().err == ""


def test_colours_in_a_log_bring_no_bars(clock, capsys, monkeypatch):
    monkeypatch.setenv("FORCE_COLOR", "1")
    work(clock, 20, 1.0)
    assert capsys.readouterr().err == "Scoring 50% (10 s, about 10 s left)\nScoring 100% (20 s)\n"


def test_the_clock_of_a_log_ticks_while_nothing_is_reported(monkeypatch, capsys):
    monkeypatch.setattr(progress, "_LOG_SECONDS", 0.02)
    monkeypatch.setattr(progress, "_duration", lambda seconds: f"{seconds:.3f} s")
    with progress_bar("Scoring", 4, show=True) as advance:
        advance(1)
        shown, deadline = "", time.monotonic() + 10
        while shown.count("\n") < 4 and time.monotonic() < deadline:
            time.sleep(0.01)
            shown += capsys.readouterr().err
    seconds = [float(re.match(r"Scoring 25% \(([\d.]+) s", line).group(1)) for line in shown.splitlines()]
    assert len(seconds) >= 4 and sorted(set(seconds)) == seconds


# The time left


def left_after(clock, total, reports):
    """Return the time left after reports at these times of so much done in all."""
    pace = progress._Pace(total)
    began, done = clock.seconds, 0.0
    for seconds, reached in reports:
        clock.seconds = began + seconds
        pace.advance(reached - done)
        done = reached
    return pace


def test_work_that_slows_down_has_a_range_of_time_left(clock):
    """80 quick sets in 8 s, then slow ones: 4 s each, not 0.1."""
    quick = [(k / 10, k) for k in range(1, 81)]
    pace = left_after(clock, 100, quick)
    assert pace.left() == "about 2 s"
    for _ in range(2):
        clock.seconds += 4.0
        pace.advance(1)
    # On average 16 s for 82; in the last 8 of these, 4 s for each.
    assert pace.left() == "4 s to 1 min 12 s"


def test_the_time_left_grows_while_nothing_is_reported(clock):
    pace = left_after(clock, 10, [(k * 2.0, k) for k in range(1, 6)])
    assert pace.left() == "about 10 s"
    clock.seconds += 20.0
    assert pace.left() == "more than 30 s"


def test_nothing_is_said_before_the_speed_is_known_nor_after_the_end(clock):
    assert left_after(clock, 1000, [(5.0, 9)]).left() == ""
    # What is there within a second may be from an earlier run.
    assert left_after(clock, 10, [(0.5, 6)]).left() == ""
    assert left_after(clock, 10, [(5.0, 10)]).left() == ""


def test_many_reports_take_little_memory_and_change_no_estimate(clock):
    pace = left_after(clock, 40_000, [(k / 100, k) for k in range(1, 20_001)])
    assert len(pace._reports) <= progress._MOST_REPORTS + 1
    assert pace.left() == "about 3 min 20 s"


# Terminals


def all_drawn(terminal):
    """Return what was drawn; a terminal hands it out in pieces."""
    pieces = []
    while select.select([terminal], [], [], 0.5)[0]:
        pieces.append(os.read(terminal, 100_000))
    return b"".join(pieces).decode()


def test_a_terminal_gets_a_bar(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w", encoding="utf-8") as terminal, stderr_to(terminal):
        with progress_bar("Scoring", 2, show=True) as advance:
            advance(2)
        drawn = all_drawn(ours)
    os.close(ours)
    assert re.search(r"Scoring.*━━━.*100%", drawn)


def test_a_stage_of_many_parts_has_one_line(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w", encoding="utf-8") as terminal, stderr_to(terminal):
        stages = Stages(show=True)
        with stages.stage("Nothing to do"):
            pass
        with stages.stage("Scores"):
            for part in ("Round 1", "Scoring", "Round 2"):
                with progress_bar(part, 2, show=True) as advance:
                    advance(2)
        drawn = all_drawn(ours)
    os.close(ours)
    # What is drawn over is drawn in the same line, so that one line break is left at the end.
    lines = [re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", line) for line in drawn.splitlines() if "━" in line]
    assert drawn.count("\x1b[1A") == 0 and "Nothing" not in drawn
    assert re.search(r"Scores +━+ +100%", lines[-1])
    assert any("Round 2" in line for line in lines)


def text_of(line):
    """Return the columns of a bar's line as they would be drawn now."""
    (task,) = line._progress.tasks
    return [str(column(task)) for column in line._progress.columns if not isinstance(column, BarColumn)]


@pytest.fixture
def line(clock):
    """Return the line of a stage in a terminal, whose clock is ours and which draws nothing by itself."""
    line = progress._BarLine(Console(file=io.StringIO(), force_terminal=True), "Scores")
    line._progress.get_time = line._progress._tasks_clock = lambda: clock.seconds
    line._progress.live.auto_refresh = False
    line._started = clock.seconds
    return line


def test_a_full_bar_gives_way_to_the_stage_and_a_clock_that_ticks(line, clock):
    with line:
        advance = line.begin("Scoring", 200)
        clock.seconds += 10.0
        advance(199.9)
        # Not 100 %, which rounding would make of 99.95 %.
        assert text_of(line) == ["Scoring     ", " 99%", "0:00:10", "about 0 s left"]
        clock.seconds += 60.0
        assert text_of(line) == ["Scoring     ", " 99%", "0:01:10", ""]
        advance(0.1)
        assert text_of(line) == ["Scores      ", "", "0:01:10", ""]
        clock.seconds += 50.0
        assert text_of(line) == ["Scores      ", "", "0:02:00", ""]
        advance(0.1)  # more than there was to do
        line.begin("Round 2 of at most 10", 4)
        assert text_of(line)[:2] == ["Round 2 of at most 10", "  0%"]
        line.rest()
        assert text_of(line)[0] == "Scores      "
        line.end("Scores", 120.0)
        assert text_of(line) == ["Scores      ", "100%", "0:02:00", ""]


def test_a_bar_without_a_stage_stays_full(clock):
    line = progress._BarLine(Console(file=io.StringIO(), force_terminal=True))
    with line:
        line.begin("Scoring", 2)(2)
        assert text_of(line)[:2] == ["Scoring     ", "100%"]


def test_the_last_line_says_what_took_the_time(clock, capsys):
    stages = Stages(show=True)
    for title, seconds in (("Candidates", 0.5), ("Scores", 20), ("Sampling", 70)):
        with stages.stage(title):
            clock.seconds += seconds
    stages.finish()
    assert capsys.readouterr().err == "Took 1 min 30 s: sampling 1 min 10 s, scores 20 s.\n"


def test_nobody_asks_what_took_a_moment(clock, capsys):
    for show, seconds in ((True, 5), (False, 500)):
        stages = Stages(show=show)
        with stages.stage("Scores"):
            clock.seconds += seconds
        stages.finish()
    assert capsys.readouterr().err == ""


# Notebooks


class _Handle:
    def __init__(self, shown: list[str]) -> None:
        self._shown = shown

    def update(self, content, raw):
        self._shown[-1] = content["text/plain"]


class _Output:
    """Stand-in for the widget that rich draws in."""

    def __enter__(self):
        return self

    def __exit__(self, *error):
        return False

    def clear_output(self, wait):
        pass


@pytest.fixture
def notebook(monkeypatch):
    """Return what a notebook displays, whether or not IPython is installed."""
    shown: list = []

    def display(*objects, raw=False, display_id=False, **options):
        assert len(objects) == 1
        shown.append(objects[0]["text/plain"] if raw else objects[0])
        return _Handle(shown) if display_id else None

    ipython, displaying, widgets = ModuleType("IPython"), ModuleType("IPython.display"), ModuleType("ipywidgets")
    ipython.display, displaying.display, widgets.Output = displaying, display, _Output
    for name, module in (("IPython", ipython), ("IPython.display", displaying), ("ipywidgets", widgets)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    monkeypatch.setattr("rich.jupyter.display", lambda segments, text: None)
    return shown


@pytest.fixture
def without_widgets(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    monkeypatch.setattr(progress.importlib.util, "find_spec", lambda name: None)


def test_a_notebook_without_ipywidgets_gets_one_line_that_changes(notebook, without_widgets, clock, capsys):
    seen = []
    with progress_bar("Scoring", 10, show=True) as advance:
        for _ in range(10):
            clock.seconds += 2.0
            advance(1)
            seen += notebook
    assert seen[0] == "Scoring 10% (2 s, about 18 s left)" and len(set(seen)) == 10
    assert notebook == ["Scoring 100% (20 s)"]
    with status_line(show=True) as tell:
        for k in range(3):
            clock.seconds += 1.0
            tell(f"round {k}")
    assert notebook == ["Scoring 100% (20 s)", "round 2"]
    assert capsys.readouterr() == ("", "")


def test_a_stage_has_one_line_in_a_notebook_without_ipywidgets(notebook, without_widgets, clock, capsys):
    stages = Stages(show=True)
    seen = []
    for title, parts in (("Scores", ("Round 1", "Scoring")), ("Sampling", ("Chains",))):
        with stages.stage(title):
            for part in parts:
                work(clock, 2, 3.0, part)
                seen.append(notebook[-1])
    assert seen == ["Round 1 100% (6 s)", "Scoring 100% (6 s)", "Chains 100% (6 s)"]
    assert notebook == ["Scores 100% (12 s)", "Sampling 100% (6 s)"]
    with stages.stage("Quick"):
        work(clock, 1, 0.1)
    assert len(notebook) == 2 and capsys.readouterr() == ("", "")


def test_quick_work_leaves_nothing_in_a_notebook(notebook, without_widgets, clock):
    work(clock, 4, 0.1)
    assert notebook == []


def test_a_notebook_with_ipywidgets_gets_the_bar(notebook, monkeypatch):
    monkeypatch.setattr(progress.importlib.util, "find_spec", lambda name: SimpleNamespace(name=name))
    with progress_bar("Scoring", 1, show=True) as advance:
        advance(1)
    assert [type(shown) for shown in notebook] == [_Output]

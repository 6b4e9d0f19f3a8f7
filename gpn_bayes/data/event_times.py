"""Columns that hold a time to an event, and whether it came: what survival analysis is about, and networks are not."""

import re

import numpy as np

from gpn_bayes.data.flagging import Flag, TableColumn

_STATUS = {
    "status", "event", "events", "death", "died", "dead", "deceased", "fail", "failed", "failure", "relapse",
    "relapsed", "recurrence", "cens", "censor", "censored", "censoring", "delta",
}  # fmt: skip
_TIME = {
    "time", "days", "weeks", "months", "years", "surv", "survival", "survtime", "futime", "followup", "follow", "tte",
    "duration", "week",
}  # fmt: skip
_BESIDE = {"event", "death", "vital", "to", "of", "until", "up", "in", "is", "os", "pfs", "dfs", "fu", "overall"}
# Codes of a status, values of a time at least, and the rows that reach its end, with their share.
_MOST_LEVELS, _FEWEST_TIMES, _FEWEST_AT_END, _SHARE_AT_END = 3, 10, 10, 0.1


def event_times(columns: list[TableColumn]) -> list[tuple[str, str, str]]:
    """Return pairs of columns that look like a time and whether it ended in an event, with what was seen.

    By their names, or because all rows of one status have the longest time of all: those followed to the end.

    Parameters
    ----------
    columns : list of TableColumn
        Those of the table.

    Examples
    --------
    >>> import pandas as pd
    >>> from gpn_bayes.data.dataset import Dataset
    >>> rng = np.random.default_rng(1)
    >>> arrest = (rng.random(100) < 0.4).astype(float)
    >>> week = np.where(arrest == 1, rng.integers(1, 52, 100), 52)
    >>> data = Dataset.read(pd.DataFrame({"week": week, "arrest": arrest}))
    >>> event_times([TableColumn.of(data, v, True) for v in range(2)])
    [('week', 'arrest', 'arrest is 0 only where week is 52, its largest value')]
    """
    statuses = [c for c in columns if 2 <= len(c.distinct) <= _MOST_LEVELS and (c.is_text or c.whole)]
    times = [c for c in columns if not c.is_text and len(c.distinct) >= _FEWEST_TIMES and c.distinct[0] >= 0]
    seen = []
    for time in times:
        for status in statuses:
            if what := _at_end(time, status):
                seen.append((time.name, status.name, what))
            elif _called(time.name, _TIME) and _called(status.name, _STATUS):
                seen.append((time.name, status.name, "by their names"))
    return seen


def event_flag(seen: list[tuple[str, str, str]]) -> Flag | None:
    """Return the flag on what `event_times` saw; None if it saw nothing."""
    if not seen:
        return None
    time, status, what = seen[0]
    return Flag(
        "time to event",
        tuple(dict.fromkeys(name for pair in seen for name in pair[:2])),
        f"{time} and {status} look like a time and whether it ended in an event ({what}). Edges from or to either "
        "mix risk with how long rows were followed: replace both by one 0/1 column, whether the event came within a "
        "time for which nearly all rows were followed.",
    )


def _called(name: str, words: set[str]) -> bool:
    """Tell whether a name consists of some words, and of others that often go with them."""
    parts = {part.lower() for part in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)}
    return bool(parts & words) and parts <= words | _BESIDE


def _at_end(time: TableColumn, status: TableColumn) -> str:
    """Return in words that the rows of one status all have the longest time; nothing if they don't."""
    if len(status.distinct) != 2 or time.counts[-1] < max(_FEWEST_AT_END, _SHARE_AT_END * len(time.values)):
        return ""
    rows, of_time, of_status = np.intersect1d(time.rows, status.rows, return_indices=True)
    at_end = time.values[of_time] == time.distinct[-1]
    for value in status.distinct:
        own = status.values[of_status] == value
        ended = ~own & at_end
        if own.sum() < _FEWEST_AT_END or not at_end[own].all() or 2 * ended.sum() > (~own).sum():
            continue
        if len(np.unique(time.values[of_time][~own])) >= _FEWEST_TIMES and len(rows):
            code = "one category" if status.is_text else f"{value:g}"
            return f"{status.name} is {code} only where {time.name} is {time.distinct[-1]:g}, its largest value"
    return ""

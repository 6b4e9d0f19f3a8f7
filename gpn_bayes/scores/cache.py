"""Remember every score with its error and status, in memory and SQLite; fill many through an Executor."""

import json
import math
import os
import sqlite3
import sys
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from itertools import batched
from typing import TYPE_CHECKING, NamedTuple, Self

import numpy as np

from gpn_bayes._util import sqlite
from gpn_bayes._util.progress import progress_bar
from gpn_bayes._util.types import Floats
from gpn_bayes.scores.workers import (
    Batch,
    ParentSet,
    WorkersLost,
    check_executor,
    describe,
    parents_text,
    score_batch,
    spread,
)

if TYPE_CHECKING:
    from gpn_bayes.scores.base import ScoreBatch, Scorer

# A batch is what a kill can lose, so it is small. Its size follows from the number of sets, never the cores.
MAX_BATCH_SIZE = 64
MIN_BATCHES = 256

# The target score, and the proposal score that DAGs are drawn under.
TABLES = ("scores", "proposal_scores")

# Of larger scores, differences that matter would be lost to rounding: compiled samplers rely on them.
_LARGEST = 1e12
_SHOWN = 80  # characters of what a file says
_SCHEMA = """CREATE TABLE IF NOT EXISTS {table} (
    node TEXT, parents TEXT, value REAL NOT NULL, error REAL, k_hat REAL, status TEXT NOT NULL,
    PRIMARY KEY (node, parents)) WITHOUT ROWID"""


class ScoreRecord(NamedTuple):
    """A score, its standard error, its Pareto k-hat (nan where there is none) and how it was computed."""

    value: float
    error: float
    k_hat: float
    status: str


class ScoreCache:
    """Every score computed so far; computes, and remembers, what it is asked for and doesn't know.

    Scores must not depend on which other sets are in their batch. To be used from one thread; only `fill`
    spreads work.

    Parameters
    ----------
    scorer : Scorer
        A score bound to data.
    path : str, path or StoreConnection, optional
        An SQLite file, made if missing, or ``cache.connection`` of another cache, which stays open. A killed run finds
        its scores there when it is started again. It holds the scores of one data set, those of one score a table, by
        name, and can be read with the sqlite3 shell at any time; a missing error or k-hat is NULL.
    table : {"scores", "proposal_scores"}
        Where in the file: the target score and the proposal score share it.

    Raises
    ------
    ValueError
        If the file holds scores of other data or of another score, is in use by another run, or isn't ours.

    Examples
    --------
    >>> from gpn_bayes.scores.bge import BGe
    >>> scorer = BGe().bind(np.random.default_rng(1).normal(size=(50, 3)))
    >>> cache = ScoreCache(scorer)
    >>> cache.fill([(0, ()), (0, (1,)), (0, (1, 2))], progressbar=False)
    >>> len(cache), (0, (2, 1)) in cache
    (3, True)
    >>> cache.get(0, (2, 1)) == scorer.local(0, [1, 2])
    True
    >>> sorted(request for request, record in cache.items() if record.status == "exact")
    [(0, ()), (0, (1,)), (0, (1, 2))]

    A file keeps them for the next run.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     cache = ScoreCache(scorer, f"{folder}/run.sqlite")
    ...     value = cache.get(0, (1,))
    ...     cache.close()
    ...     with ScoreCache(scorer, f"{folder}/run.sqlite") as again:
    ...         len(again), again.lookup(0, (1,)).value == value
    (1, True)
    """

    def __init__(
        self,
        scorer: "Scorer",
        path: str | os.PathLike[str] | sqlite.StoreConnection | None = None,
        table: str = "scores",
    ) -> None:
        if table not in TABLES:
            raise ValueError(f"the table must be one of {', '.join(TABLES)}; received {table!r}")
        self.scorer = scorer
        self.connection: sqlite.StoreConnection | None = None
        self._table = table
        self._owns = not isinstance(path, sqlite.StoreConnection)
        self._records: list[dict[ParentSet, ScoreRecord]] = [{} for _ in scorer.names]
        if path is not None:
            self.connection = path if isinstance(path, sqlite.StoreConnection) else sqlite.open_store(path)
            try:
                _adopt(self.connection, scorer, table)
                self._load(self.connection)
            except BaseException:
                self.close()
                raise

    def get(self, node: int, parents: Iterable[int] = ()) -> float:
        """Return log S(node | parents), computing it if it isn't known.

        Parameters
        ----------
        node : int
            The variable's index.
        parents : iterable of int
            Its parents' indices, in any order.
        """
        return float(self.values(node, [tuple(parents)])[0])

    def lookup(self, node: int, parents: Iterable[int] = ()) -> ScoreRecord | None:
        """Return what is known about a score, None if nothing; never computes.

        Parameters
        ----------
        node : int
            The variable's index.
        parents : iterable of int
            Its parents' indices, in any order.

        Returns
        -------
        ScoreRecord or None
            Its `value`, `error`, `k_hat` and `status`.

        Examples
        --------
        >>> from gpn_bayes.scores.bge import BGe
        >>> cache = ScoreCache(BGe().bind(np.random.default_rng(1).normal(size=(50, 3))))
        >>> cache.lookup(0, (1,)) is None, round(cache.get(0, (1,)), 1)
        (True, -78.4)
        >>> cache.lookup(0, (1,)).error
        0.0
        """
        return self._known(node).get(tuple(sorted(parents)))

    def values(self, node: int, sets: Sequence[Sequence[int]]) -> Floats:
        """Return the scores of many parent sets of a node, computing here and now those that aren't known.

        Parameters
        ----------
        node : int
            The variable's index.
        sets : sequence of tuple of int
            Parent sets by index; sorted tuples are found fastest.

        Returns
        -------
        ndarray of float, in the order of `sets`

        Examples
        --------
        >>> from gpn_bayes.scores.bge import BGe
        >>> cache = ScoreCache(BGe().bind(np.random.default_rng(1).normal(size=(50, 3))))
        >>> cache.values(0, [(), (1,), (1, 2)]).round(1).tolist()
        [-75.3, -78.4, -81.3]
        """
        known = self._known(node)
        try:
            return np.fromiter((known[s].value for s in sets), np.float64, len(sets))  # type: ignore[index]  # lists fail
        except (KeyError, TypeError):  # unknown, unsorted, or lists
            keys = [self._key(node, s) for s in sets]
        unknown = dict.fromkeys(key for key in keys if key not in known)
        for batch in batched(unknown, MAX_BATCH_SIZE):
            self._keep(Batch(node, batch), score_batch(self.scorer, node, batch))
        return np.fromiter((known[key].value for key in keys), np.float64, len(keys))

    def records(self, requests: Iterable[tuple[int, ParentSet]]) -> list[ScoreRecord]:
        """Return what is known about many scores, all of which must be known.

        Parameters
        ----------
        requests : iterable of (int, tuple of int)
            Nodes and parent sets, by index, each set ascending.

        Examples
        --------
        >>> from gpn_bayes.scores.bge import BGe
        >>> cache = ScoreCache(BGe().bind(np.random.default_rng(1).normal(size=(50, 3))))
        >>> cache.fill([(0, ()), (1, (0, 2))], progressbar=False)
        >>> [record.status for record in cache.records([(0, ()), (1, (0, 2))])]
        ['exact', 'exact']
        """
        return [self._known(node)[parents] for node, parents in requests]

    def items(self) -> Iterator[tuple[tuple[int, ParentSet], ScoreRecord]]:
        """Iterate over everything known, as ((node, parents), record)."""
        for node, known in enumerate(self._records):
            for parents, record in known.items():
                yield (node, parents), record

    def fill(
        self,
        requests: Iterable[tuple[int, Iterable[int]]],
        executor: Executor | None = None,
        progressbar: bool = True,
        batch_size: int | None = None,
        description: str = "Scoring",
    ) -> None:
        """Compute all requested scores that aren't known yet.

        What is finished is kept at once, batch by batch, also when a batch fails or the user interrupts: then
        the waiting batches are cancelled and the exception goes on to the caller.

        Parameters
        ----------
        requests : iterable of (int, iterable of int)
            Nodes and parent sets, by index.
        executor : concurrent.futures.Executor, optional
            Where to compute: threads, processes, a dask or MPI executor; it is not shut down. By default
            threads of this process, one a core.
        progressbar : bool
            Show progress and the remaining time, on the standard error stream.
        batch_size : int, optional
            Parent sets a task; by default few enough for many tasks, and at most 64.
        description : str
            What the progress bar calls it.
        """
        if batch_size is not None and batch_size < 1:
            raise ValueError(f"batch_size must be 1 or more; received {batch_size}")
        check_executor(executor)
        missing = self._missing(requests)
        if not missing:
            return
        size = batch_size or min(MAX_BATCH_SIZE, math.ceil(sum(map(len, missing.values())) / MIN_BATCHES))
        batches = (Batch(node, batch) for node, sets in missing.items() for batch in batched(sets, size))
        pool = ThreadPoolExecutor(os.cpu_count()) if executor is None else executor
        try:
            with progress_bar(description, sum(map(self._cost, missing.values())), progressbar) as advance:
                spread(self.scorer, batches, pool, self._keep, lambda batch: advance(self._cost(batch.sets)))
        except WorkersLost as lost:
            raise WorkersLost(f"{lost}; {self._where_kept()}") from lost
        except BaseException:
            if executor is None:
                pool.shutdown(wait=False, cancel_futures=True)
            raise
        if executor is None:
            pool.shutdown()

    def close(self) -> None:
        """Close the file, if it was opened here; what is in memory stays readable."""
        if self.connection is not None and self._owns:
            self.connection.close()
        self.connection = None

    def __len__(self) -> int:
        """Return the number of scores known."""
        return sum(map(len, self._records))

    def __contains__(self, request: tuple[int, Iterable[int]]) -> bool:
        """Tell whether the score of (node, parents) is known."""
        return self.lookup(*request) is not None

    def __enter__(self) -> Self:
        """Return the cache itself; leaving the block closes its file."""
        return self

    def __exit__(self, *exception: object) -> None:
        """Close the file, whatever happened."""
        self.close()

    def _missing(self, requests: Iterable[tuple[int, Iterable[int]]]) -> dict[int, dict[ParentSet, None]]:
        """Return the unknown sets of every node, once each and in the order they were asked for."""
        missing: dict[int, dict[ParentSet, None]] = {}
        for node, parents in requests:
            key = self._key(node, parents)
            if key not in self._known(node):
                missing.setdefault(int(node), {})[key] = None
        return missing

    def _cost(self, sets: Iterable[ParentSet]) -> float:
        return sum(self.scorer.cost(len(parents)) for parents in sets)

    def _where_kept(self) -> str:
        if self.connection is None:
            return "start the run again, with cache='run.sqlite' to keep the scores that are finished"
        file = sqlite.file_of(self.connection)
        return f"the finished scores are kept in '{file}': start the run again to resume"

    def _keep(self, batch: Batch, scores: "ScoreBatch") -> None:
        """Check a finished batch and remember it, in the file first."""
        node, sets = batch
        records = _checked_records(self.scorer.names, node, sets, scores)
        if self.connection is not None:
            names = self.scorer.names
            rows = [(names[node], parents_text(names, s), *r) for s, r in zip(sets, records, strict=True)]
            with sqlite.transaction(self.connection):
                self.connection.executemany(f"INSERT OR REPLACE INTO {self._table} VALUES (?, ?, ?, ?, ?, ?)", rows)
        self._records[node].update(zip(sets, records, strict=True))

    def _known(self, node: int) -> dict[ParentSet, ScoreRecord]:
        if not 0 <= node < len(self._records):
            raise ValueError(f"a node must be an index from 0 to {len(self._records) - 1}; received {node}")
        return self._records[node]

    def _key(self, node: int, parents: Iterable[int]) -> ParentSet:
        key = tuple(sorted(map(int, parents)))
        n = len(self._records)
        if key and not 0 <= key[0] <= key[-1] < n:
            raise ValueError(f"parents must be indices from 0 to {n - 1}; received {key}")
        if node in key or len(set(key)) < len(key):
            raise ValueError(f"parents must be distinct and differ from the node {node}; received {key}")
        return key

    def _load(self, connection: sqlite3.Connection) -> None:
        index = {name: i for i, name in enumerate(self.scorer.names)}
        sets: dict[str, ParentSet] = {}  # nodes share parent sets: parse each once, keep it once
        try:
            for node, text, value, error, k_hat, status in connection.execute(f"SELECT * FROM {self._table}"):
                parents = sets.get(text)
                if parents is None:
                    parents = sets[text] = tuple(sorted(index[name] for name in json.loads(text)))
                # SQLite stores nan as NULL, and takes a text or bytes for a number if it is given them.
                numbers = (value, math.nan if error is None else error, math.nan if k_hat is None else k_hat)
                if not (all(type(number) is float for number in numbers) and _is_possible(value)):
                    raise ValueError(f"the score of {node!r} given {text}")
                self._records[index[node]][self._key(index[node], parents)] = ScoreRecord(*numbers, sys.intern(status))
        except (sqlite3.DatabaseError, KeyError, ValueError, TypeError, RecursionError) as problem:
            raise ValueError(
                f"a score file must be intact; '{sqlite.file_of(connection)}' is damaged: {repr(problem)[:_SHOWN]}"
            ) from problem


def _adopt(connection: sqlite3.Connection, scorer: "Scorer", table: str) -> None:
    """Mark a new file, or a new table of it, as this scorer's; refuse one that is another's."""
    data = {"data_fingerprint": scorer.data_fingerprint, "names": json.dumps(scorer.names, ensure_ascii=False)}
    score = {"score_fingerprint": scorer.score_fingerprint, "label": scorer.label}
    prefix = "" if table == "scores" else f"{table}:"
    with sqlite.reading(connection):
        theirs = dict(connection.execute("SELECT key, value FROM meta").fetchall())
    other_data = any(theirs.get(key, value) != value for key, value in data.items())
    known = {key: theirs.get(f"{prefix}{key}") for key in score}
    other_score = known["score_fingerprint"] not in (None, scorer.score_fingerprint)
    if other_data or other_score:
        what = " and ".join(["other data"] * other_data + ["another score"] * other_score)
        label = known["label"] or "scores"
        raise ValueError(
            f"a score file must come from the same data and score; '{sqlite.file_of(connection)}' was made from "
            f"{what}: it holds {_summary({**theirs, 'label': label})}, received {_summary({**data, **score})}"
        )
    if known["score_fingerprint"] is None:
        ours = data | {f"{prefix}{key}": value for key, value in score.items()}
        with sqlite.transaction(connection):
            connection.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", ours.items())
            connection.execute(_SCHEMA.format(table=table))


def _summary(meta: dict[str, str]) -> str:
    try:
        variables = f"{len(json.loads(meta['names']))} variables"
    except (KeyError, ValueError, TypeError, RecursionError):
        variables = "unknown variables"
    label = " ".join(str(meta["label"]).split())[:_SHOWN]
    return f"{label} on {variables} (data {str(meta.get('data_fingerprint'))[:8]})"


def _is_possible(score: float) -> bool:
    """Tell whether a sampler can work with a score; it can't with NaN, nor where rounding swallows differences."""
    return abs(score) <= _LARGEST or score == -math.inf


def _checked_records(
    names: Sequence[str], node: int, sets: Sequence[ParentSet], scores: "ScoreBatch"
) -> list[ScoreRecord]:
    lengths = [len(column) if np.ndim(column) == 1 else 0 for column in scores]
    if lengths != [len(sets)] * 4:
        raise ValueError(
            "a scorer must return one value, error, k-hat and status per parent set; "
            f"{describe(names, Batch(node, tuple(sets)))}: received {lengths} for {len(sets)} sets"
        )
    values, errors, k_hats = (np.asarray(column, np.float64).tolist() for column in scores[:3])
    records = list(map(ScoreRecord, values, errors, k_hats, map(str, scores[3])))
    for parents, record in zip(sets, records, strict=True):
        if not _is_possible(record.value):
            raise ValueError(
                f"every score must be a number, of magnitude {_LARGEST:.0e} at most, or minus infinity; "
                f"{describe(names, Batch(node, (parents,)))} scored {record.value} ({record.status})"
            )
    return records

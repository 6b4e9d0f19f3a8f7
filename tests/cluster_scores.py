"""Scores for tests of clusters, which workers import: they tell who computed what, and take their time."""

import json
import os
import time
from pathlib import Path
from typing import Any

import numpy as np

from gpn_bayes.scores.base import Score, Scorer
from gpn_bayes.scores.bge import BGe


class Logged(Score):
    """BGe, not in closed form: slower, and every worker keeps a log of what it did.

    Parameters
    ----------
    folder : path
        Where the logs are, one a process.
    delay : float
        Seconds a parent set.
    deadly : bool
        Whether sets of two parents end the process.
    ballast : int
        Numbers to carry along.
    """

    name = "logged"

    def __init__(self, folder: Path, delay: float = 0.0, deadly: bool = False, ballast: int = 0) -> None:
        self.folder = Path(folder)
        self.delay = delay
        self.deadly = deadly
        self.ballast = ballast

    @property
    def parameters(self) -> dict[str, Any]:
        return {"folder": str(self.folder)}

    def _bind(self, data: Any) -> "LoggedScorer":
        return LoggedScorer(self, BGe().bind(data))


class LoggedScorer(Scorer):
    def __init__(self, score: Logged, bge: Scorer) -> None:
        super().__init__(score, bge.names, bge.data_fingerprint)
        self.score = score
        self.bge = bge
        self.ballast = np.random.default_rng(1).normal(size=score.ballast)

    def score_sets(self, node, parent_sets):
        if self.score.deadly and any(len(parents) == 2 for parents in parent_sets):
            os._exit(1)
        time.sleep(self.score.delay * len(parent_sets))
        self._write(*([node, list(parents)] for parents in parent_sets))
        return self.bge.score_sets(node, parent_sets)

    def __setstate__(self, state):
        """Write down that it was received."""
        self.__dict__.update(state)
        self._write("arrived")

    def _write(self, *lines: Any) -> None:
        with open(self.score.folder / f"{os.getpid()}.log", "a") as file:
            file.write("".join(json.dumps(line) + "\n" for line in lines))


def read_logs(folder: Path) -> dict[int, list[Any]]:
    """Return what every process wrote."""
    return {int(p.stem): [json.loads(x) for x in p.read_text().splitlines()] for p in Path(folder).glob("*.log")}


def computed(folder: Path) -> list[tuple[int, tuple[int, ...]]]:
    """Return the node and the parents of every score that was computed."""
    lines = [line for log in read_logs(folder).values() for line in log if line != "arrived"]
    return [(node, tuple(parents)) for node, parents in lines]

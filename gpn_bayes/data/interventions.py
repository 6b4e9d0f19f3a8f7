"""Which variables an experimenter changed in which rows."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from gpn_bayes._util.checks import check_choice
from gpn_bayes._util.types import Bools

KINDS = ("perfect", "soft")
# Between several targets of a row that are given as one text.
_SEPARATOR = ";"


@dataclass(frozen=True, eq=False)
class Interventions:
    """The targets of every row, and what was done to them.

    Attributes
    ----------
    targets : ndarray of bool, shape (rows, variables)
        Whether the variable was changed in the row.
    kind : {"perfect", "soft"}
        "perfect": a target was set from outside, so that its parents had no effect on it in that row. "soft": it still
        depends on the same parents, in another way.

    Examples
    --------
    >>> changed = Interventions.read(["", "mek", "mek;akt"], ("raf", "mek", "akt"), "perfect")
    >>> changed.targets.astype(int).tolist()
    [[0, 0, 0], [0, 1, 0], [0, 1, 1]]
    >>> [rows.tolist() for rows in changed.rows_by_group(1)]
    [[0]]
    """

    targets: Bools
    kind: str

    def __post_init__(self) -> None:
        """Check what was done."""
        check_choice("intervention", self.kind, KINDS)

    @classmethod
    def read(cls, given: Sequence[Any], names: tuple[str, ...], kind: str) -> "Interventions":
        """Return the interventions that labels of rows name.

        Parameters
        ----------
        given : sequence
            For each row its target: nothing (None, NaN or an empty text) where all variables were only observed, a
            name, several joined by ";", or a list of names.
        names : tuple of str
            The variables.
        kind : {"perfect", "soft"}
            What was done to the targets.

        Raises
        ------
        ValueError
            For names that aren't those of variables, and for variables that are targets in every row.
        """
        places = {name: place for place, name in enumerate(names)}
        targets = np.zeros((len(given), len(names)), dtype=bool)
        for row, label in enumerate(given):
            for name in _names_of(label):
                if name not in places:
                    known = ", ".join(map(repr, names[:20])) + (", …" if len(names) > 20 else "")
                    raise ValueError(f"targets must be variables; received {name!r}, not one of {known}")
                targets[row, places[name]] = True
        if not targets.any():
            raise ValueError("targets must name a variable in at least one row; received none")
        for place in np.flatnonzero(targets.all(axis=0)):
            raise ValueError(
                f"a variable must not be a target in every row, where nothing can be learnt of its parents; "
                f"{names[place]!r} is"
            )
        targets.setflags(write=False)
        return cls(targets, kind)

    def experiments(self) -> list[tuple[list[int], int]]:
        """Return the targets of each experiment, and its number of rows; not of rows that were only observed."""
        patterns, counts = np.unique(self.targets, axis=0, return_counts=True)
        found = [(np.flatnonzero(own).tolist(), int(rows)) for own, rows in zip(patterns, counts, strict=True)]
        return sorted((places, rows) for places, rows in found if places)

    def rows_by_group(self, node: int) -> list[np.ndarray]:
        """Return the rows of each group whose scores add up to the score of a node.

        Rows of one group share the parameters of the node's relation to its parents. Those in which it was a target
        form the second group of a soft change, and are left out of a perfect one.
        """
        changed = self.targets[:, node]
        groups = [np.flatnonzero(~changed)]
        if self.kind == "soft" and changed.any():
            groups.append(np.flatnonzero(changed))
        return groups


def _names_of(label: Any) -> list[str]:
    """Return the targets of a row."""
    if isinstance(label, str):
        return [name.strip() for name in label.split(_SEPARATOR) if name.strip()]
    if isinstance(label, list | tuple | set | frozenset | np.ndarray):
        return [str(name) for name in label]
    return [] if pd.isna(label) else [str(label)]


def refuse_interventions(data: Any, what: str) -> None:
    """Refuse a table with interventions where all rows are taken as alike.

    Parameters
    ----------
    data : Dataset or other
        The table.
    what : str
        What takes no interventions, for the message.
    """
    if getattr(data, "interventions", None) is not None:
        raise ValueError(
            f"{what} takes rows that were only observed; received targets of interventions: use a score "
            "(gpn.sample, Exact, HillClimbing), or leave out these rows"
        )

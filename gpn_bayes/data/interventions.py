"""Which variables an experimenter changed in which rows, or may have changed."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gpn_bayes._util.checks import check_choice, check_not_negative, check_share, listed
from gpn_bayes._util.types import Bools, Ints
from gpn_bayes.data.keywords import INTERVENTIONS

TARGET_PROBABILITY = 0.1
# All sets of them are summed over.
MAX_CONTEXTS = 12
# Between several targets of a row that are given as one text.
SEPARATOR = ";"

# Some of the experiments, by their numbers: their rows are taken together.
Group = tuple[int, ...]


class Term(NamedTuple):
    """One way in which a node's mechanism may have been changed.

    Attributes
    ----------
    log_weight : float
        The log prior of this way.
    groups : tuple of Group
        The experiments whose rows share the parameters of the node's relation to its parents: first those in which it
        wasn't changed.
    """

    log_weight: float
    groups: tuple[Group, ...]


class Interventions(ABC):
    """The experiment of every row, and how the rows of a node fall into groups.

    Attributes
    ----------
    experiment : ndarray of int, shape (rows,)
        The number of each row's experiment.
    kind : str
        What was done.
    """

    experiment: Ints
    kind: str

    @abstractmethod
    def terms(self, node: int) -> list[Term]:
        """Return the ways in which a node's mechanism may have been changed; the likelihood is their weighted sum."""

    @abstractmethod
    def at(self, rows: Ints) -> "Interventions":
        """Return those of some rows, one of each experiment at least."""

    @abstractmethod
    def parts(self) -> tuple[Any, ...]:
        """Return what tells these interventions from others, for fingerprints."""

    @abstractmethod
    def summary(self, names: tuple[str, ...], sizes: Ints | None = None) -> dict[str, Any]:
        """Return what was done in words and numbers, JSON-able.

        Parameters
        ----------
        names : tuple of str
            The variables.
        sizes : ndarray of int, optional
            The rows that each stands for, where they are statistics of several.
        """

    @abstractmethod
    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything as named arrays; `interventions_of` reads them."""

    def _counts(self, sizes: Ints | None) -> list[int]:
        """Return the number of rows of each experiment."""
        return [int(rows) for rows in np.bincount(self.experiment, weights=sizes)]

    def rows_of(self, group: Group) -> Ints:
        """Return the rows of some experiments."""
        return np.flatnonzero(np.isin(self.experiment, group))


class KnownTargets(Interventions):
    """The targets of every row, and what was done to them.

    Parameters
    ----------
    targets : ndarray of bool, shape (rows, variables)
        Whether the variable was changed in the row.
    kind : {"perfect", "soft"}
        "perfect": a target was set from outside, so that its parents had no effect on it in that row. "soft": it still
        depends on the same parents, in another way.

    Examples
    --------
    >>> changed = KnownTargets.read(["", "mek", "mek;akt"], ("raf", "mek", "akt"), "perfect")
    >>> changed.targets.astype(int).tolist()
    [[0, 0, 0], [0, 1, 0], [0, 1, 1]]
    >>> [[changed.rows_of(group).tolist() for group in term.groups] for term in changed.terms(1)]
    [[[0]]]
    """

    def __init__(self, targets: Bools, kind: str) -> None:
        check_choice("intervention", kind, INTERVENTIONS)
        self.targets = targets
        self.kind = kind
        self._patterns, of_row = np.unique(targets, axis=0, return_inverse=True)
        self.experiment = of_row.reshape(-1)

    @classmethod
    def read(cls, given: Sequence[Any], names: tuple[str, ...], kind: str) -> "KnownTargets":
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
            For names that aren't those of variables, for variables that are targets in every row, and where no row was
            only observed.
        """
        places = {name: place for place, name in enumerate(names)}
        targets = np.zeros((len(given), len(names)), dtype=bool)
        for row, label in enumerate(given):
            for name in names_of(label):
                if name not in places:
                    raise ValueError(f"targets must be variables; received {name!r}, not one of {listed(names)}")
                targets[row, places[name]] = True
        if not targets.any():
            raise ValueError("targets must name a variable in at least one row; received none")
        for place in np.flatnonzero(targets.all(axis=0)):
            raise ValueError(
                f"a variable must not be a target in every row, where nothing can be learnt of its parents; "
                f"{names[place]!r} is"
            )
        if targets.any(axis=1).all():
            raise ValueError(
                f"some rows must have no target, being only observed; received one in all {len(given)} rows"
            )
        targets.setflags(write=False)
        return cls(targets, kind)

    def target_sets(self) -> list[list[int]]:
        """Return the targets of each experiment, but for rows that were only observed."""
        return sorted(np.flatnonzero(own).tolist() for own in self._patterns if own.any())

    def terms(self, node: int) -> list[Term]:
        """Return the one way there is.

        Rows in which the node was a target form the second group of a soft change, and are left out of a perfect one.
        """
        changed = self._patterns[:, node]
        groups = [tuple(np.flatnonzero(~changed).tolist())]
        if self.kind == "soft" and changed.any():
            groups.append(tuple(np.flatnonzero(changed).tolist()))
        return [Term(0.0, tuple(groups))]

    def at(self, rows: Ints) -> "KnownTargets":
        """Return those of some rows."""
        return KnownTargets(self.targets[rows], self.kind)

    def parts(self) -> tuple[Any, ...]:
        """Return what tells these interventions from others."""
        return self.kind, self.targets

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the targets and what was done to them."""
        return {"target": self.targets.astype(np.int8), "intervention": np.array(self.kind)}

    def summary(self, names: tuple[str, ...], sizes: Ints | None = None) -> dict[str, Any]:
        """Return the targets of the experiments and the numbers of their rows."""
        counts = self._counts(sizes)
        found = sorted((np.flatnonzero(own).tolist(), rows) for own, rows in zip(self._patterns, counts, strict=True))
        experiments = [{"targets": [names[place] for place in own], "rows": rows} for own, rows in found if own]
        return {"kind": self.kind, "experiments": experiments}


@dataclass(frozen=True, eq=False)
class UnknownTargets(Interventions):
    """The context of every row, in which some variables may depend on their parents in another way.

    Attributes
    ----------
    experiment : ndarray of int, shape (rows,)
        The place of each row's context in `contexts`.
    contexts : tuple of str
        The contexts; nothing was changed in the first of them, the reference.
    target_probability : float
        The prior probability that a context changed a variable, independent of others.
    target_penalty : float, optional
        Instead of a probability, what each change costs: this much is subtracted from the log score.

    Examples
    --------
    >>> found = UnknownTargets.read(["", "", "drug"])
    >>> found.contexts, found.experiment.tolist()
    (('', 'drug'), [0, 0, 1])
    >>> [(round(term.log_weight, 3), term.groups) for term in found.terms(0)]
    [(-0.105, ((0, 1),)), (-2.303, ((0,), (1,)))]
    """

    experiment: Ints
    contexts: tuple[str, ...]
    target_probability: float = TARGET_PROBABILITY
    target_penalty: float | None = None
    kind = "unknown"

    def __post_init__(self) -> None:
        """Check the prior."""
        check_share("target_probability", self.target_probability, ends=False)
        if self.target_penalty is not None:
            check_not_negative("target_penalty", self.target_penalty)

    @classmethod
    def read(
        cls,
        given: Sequence[Any],
        target_probability: float | None = None,
        target_penalty: float | None = None,
    ) -> "UnknownTargets":
        """Return the contexts that labels of rows name.

        Parameters
        ----------
        given : sequence
            For each row its context: nothing (None, NaN or an empty text) for the reference; where no row has none, the
            context of the first row is the reference.
        target_probability, target_penalty : float, optional
            The prior of a change, as a probability (0.1 by default) or a cost; not both.

        Raises
        ------
        ValueError
            For a single context and for more than 12 besides the reference.
        """
        if target_probability is not None and target_penalty is not None:
            raise ValueError("target_probability and target_penalty say the same; received both")
        labels = [
            "" if isinstance(label, str) and not label.strip() or _is_missing(label) else str(label) for label in given
        ]
        reference = "" if "" in labels else labels[0]
        contexts = (reference, *(label for label in dict.fromkeys(labels) if label != reference))
        if not 2 <= len(contexts) <= MAX_CONTEXTS + 1:
            raise ValueError(
                f"contexts must be 1 to {MAX_CONTEXTS} besides the reference, the rows without one or the first row's; "
                f"received {len(contexts) - 1}"
            )
        places = {label: place for place, label in enumerate(contexts)}
        experiment: Ints = np.array([places[label] for label in labels], dtype=np.int64)
        experiment.setflags(write=False)
        probability = TARGET_PROBABILITY if target_probability is None else target_probability
        return cls(experiment, contexts, probability, target_penalty)

    def term(self, changed: Collection[int]) -> Term:
        """Return the way in which these contexts, and no others, changed a node; each of them in its own way."""
        others = len(self.contexts) - 1 - len(changed)
        if self.target_penalty is None:
            p = self.target_probability
            log_weight = len(changed) * np.log(p) + others * np.log1p(-p)
        else:
            log_weight = -self.target_penalty * len(changed)
        unchanged = tuple(k for k in range(len(self.contexts)) if k not in changed)
        return Term(float(log_weight), (unchanged, *((k,) for k in sorted(changed))))

    @cached_property
    def _terms(self) -> list[Term]:
        others = range(1, len(self.contexts))
        return [self.term(changed) for size in range(len(self.contexts)) for changed in combinations(others, size)]

    def terms(self, node: int) -> list[Term]:
        """Return the ways in which any set of contexts changed a node, the smallest sets first."""
        return self._terms

    def at(self, rows: Ints) -> "UnknownTargets":
        """Return those of some rows."""
        return replace(self, experiment=self.experiment[rows])

    def parts(self) -> tuple[Any, ...]:
        """Return what tells these interventions from others."""
        prior = [self.target_probability] if self.target_penalty is None else ["penalty", self.target_penalty]
        return self.kind, list(self.contexts), prior, self.experiment

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return the contexts and the prior of a change."""
        arrays = {"context": self.experiment, "contexts": np.array(self.contexts, dtype=str)}
        arrays["target_probability"] = np.array(float(self.target_probability))
        if self.target_penalty is not None:
            arrays["target_penalty"] = np.array(float(self.target_penalty))
        return arrays

    def summary(self, names: tuple[str, ...], sizes: Ints | None = None) -> dict[str, Any]:
        """Return the contexts with the numbers of their rows, and the prior of a change."""
        counts = self._counts(sizes)
        listed = [{"context": name, "rows": rows} for name, rows in zip(self.contexts, counts, strict=True)]
        prior = (
            {"target_probability": self.target_probability}
            if self.target_penalty is None
            else {"target_penalty": self.target_penalty}
        )
        return {"kind": self.kind, "reference": listed[0], "contexts": listed[1:], **prior}


def interventions_of(arrays: Mapping[str, NDArray[Any]], shape: tuple[int, ...]) -> Interventions | None:
    """Return the interventions that arrays of a file describe, or None where they describe none.

    Parameters
    ----------
    arrays : mapping
        Among others those of `Interventions.to_arrays`.
    shape : tuple of int
        The number of rows, and that of variables.

    Raises
    ------
    ValueError
        For arrays that `to_arrays` doesn't return.

    Examples
    --------
    >>> known = KnownTargets.read(["", "mek"], ("raf", "mek"), "soft")
    >>> interventions_of(known.to_arrays(), (2, 2)).kind
    'soft'
    """
    if "target" in arrays:
        targets, kind = arrays["target"], arrays.get("intervention", np.array(""))
        if targets.shape != shape or targets.dtype.kind not in "biu" or kind.shape != ():
            raise ValueError("targets must be truth values for each row and variable; received others")
        if targets.all(axis=0).any():
            raise ValueError("a variable must not be a target in every row; received one that is")
        return KnownTargets(targets.astype(bool), str(kind))
    if "context" not in arrays:
        return None
    experiment, contexts = arrays["context"], arrays.get("contexts", np.array([]))
    right = experiment.dtype.kind in "iu" and experiment.shape == shape[:1] and contexts.dtype.kind in "UO"
    right = right and contexts.ndim == 1 and 2 <= len(contexts) <= MAX_CONTEXTS + 1
    prior = [arrays[name] for name in ("target_probability", "target_penalty") if name in arrays]
    right = right and "target_probability" in arrays and all(v.shape == () and v.dtype.kind == "f" for v in prior)
    if not right or not np.array_equal(np.unique(experiment), np.arange(len(contexts))):
        raise ValueError("contexts must be names of experiments, with the number of one for each row; received others")
    names = tuple(str(name) for name in contexts)
    return UnknownTargets(experiment.astype(np.int64), names, *(float(value) for value in prior))


def names_of(label: Any) -> list[str]:
    """Return the targets that a label names.

    Examples
    --------
    >>> names_of("mek; akt"), names_of("")
    (['mek', 'akt'], [])
    """
    if isinstance(label, str):
        return [name.strip() for name in label.split(SEPARATOR) if name.strip()]
    if isinstance(label, list | tuple | set | frozenset | np.ndarray):
        return [str(name) for name in label]
    return [] if _is_missing(label) else [str(label)]


def _is_missing(label: Any) -> bool:
    return bool(pd.api.types.is_scalar(label) and pd.isna(label))


def refuse_interventions(data: Any, what: str) -> None:
    """Refuse a table with interventions where all rows are taken as alike.

    Parameters
    ----------
    data : Dataset or other
        The table.
    what : str
        What takes no interventions, for the message.
    """
    interventions = getattr(data, "interventions", None)
    if interventions is not None:
        word = "contexts" if isinstance(interventions, UnknownTargets) else "targets"
        raise ValueError(
            f"{what} takes rows that were only observed; received {word} of interventions: use a score "
            "(gpn.sample, Exact, HillClimbing), or leave out these rows"
        )

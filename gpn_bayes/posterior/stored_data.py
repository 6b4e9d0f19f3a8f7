"""The data behind a posterior, as groups of its file."""

import json
from collections.abc import Mapping
from typing import Any

import numpy as np
import xarray as xr

from gpn_bayes.data import Dataset, SufficientStatistics
from gpn_bayes.data.interventions import interventions_of
from gpn_bayes.posterior.file_reading import StoredGroup

# ArviZ's name for what a posterior is given; statistics are no observations.
_ROWS, _STATISTICS = "observed_data", "sufficient_statistics"
_SQUARE = ("variable", "other_variable")
_DIMENSIONS = {
    "mean": ("variable",), "cov": _SQUARE, "noise_sd": _SQUARE, "target": ("row", "variable"), "context": ("row",),
    "contexts": ("context_number",), "experiment_n": ("row",), "experiment_mean": ("row", "variable"),
    "experiment_scatter": ("row", *_SQUARE), "weight": ("row",),
}  # fmt: skip


def to_xarray(data: Dataset | SufficientStatistics) -> tuple[str, xr.Dataset]:
    """Return the name of the group that holds the data, and its content."""
    names = list(data.names)
    if isinstance(data, SufficientStatistics):
        arrays = {name: array for name, array in data.to_arrays().items() if name not in ("n", "names")}
        return _STATISTICS, xr.Dataset(_named(arrays), coords={"variable": names}, attrs={"n": data.n})
    levels = [None if known is None else [_plain(level) for level in known] for known in data.levels]
    rows: dict[str, Any] = {"value": (("row", "variable"), data.values)}
    described: dict[str, Any] = {"kinds": json.dumps(list(data.kinds)), "levels": json.dumps(levels)}
    if data.interventions is not None:
        rows |= _named(data.interventions.to_arrays())
    if data.weights is not None:
        rows |= _named({"weight": data.weights})
    if data.repeated:
        described["repeated"] = 1
    return _ROWS, xr.Dataset(rows, coords={"variable": names}, attrs=described)


def from_groups(
    groups: Mapping[str, StoredGroup], names: tuple[str, ...], fingerprint: str | None
) -> Dataset | SufficientStatistics | None:
    """Return the data that a file holds; None where it was saved without them.

    Parameters
    ----------
    groups : mapping of str to StoredGroup
        The file's content.
    names : tuple of str
        The posterior's variables.
    fingerprint : str or None
        That of the data the posterior was drawn from.

    Raises
    ------
    ValueError
        If the data aren't those that the posterior was drawn from.
    """
    data: Dataset | SufficientStatistics
    if _STATISTICS in groups:
        group = groups[_STATISTICS]
        arrays = _arrays(group) | {"n": np.array(group.attrs["n"]), "names": np.array(names, dtype=str)}
        data = SufficientStatistics.from_arrays(arrays)
    elif _ROWS in groups:
        group = groups[_ROWS]
        values = group.variables["value"].copy()
        if values.dtype.kind not in "biuf" or values.ndim != 2:
            raise ValueError("its data are no table of numbers")
        values.setflags(write=False)
        levels = (None if known is None else tuple(known) for known in json.loads(group.attrs["levels"]))
        interventions = interventions_of(_arrays(group), values.shape)
        kinds = tuple(json.loads(group.attrs["kinds"]))
        weights, repeated = _weights(group, len(values)), bool(group.attrs.get("repeated", 0))
        data = Dataset(
            names, values, kinds, tuple(levels), interventions=interventions, weights=weights, repeated=repeated
        )
    else:
        return None
    if data.fingerprint != fingerprint:
        raise ValueError("a posterior's file must hold the data it was drawn from; this one holds others")
    return data


def _weights(group: StoredGroup, rows: int) -> np.ndarray | None:
    """Return the weights of rows that a file holds, if any."""
    if "weight" not in group.variables:
        return None
    weights = group.variables["weight"].copy()
    if weights.dtype.kind != "f" or weights.shape != (rows,) or not ((weights > 0) & np.isfinite(weights)).all():
        raise ValueError("its weights of rows are no positive numbers, one of each row")
    weights.setflags(write=False)
    return weights


def _named(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Return arrays as variables of a group."""
    return {name: (_DIMENSIONS.get(name, ()), array) for name, array in arrays.items()}


def _arrays(group: StoredGroup) -> dict[str, np.ndarray]:
    return {name: array.copy() for name, array in group.variables.items()}


def _plain(level: Any) -> Any:
    """Return a level as JSON keeps it: numbers and truth values as they are, all else as text."""
    level = level.item() if isinstance(level, np.generic) else level
    return level if isinstance(level, bool | int | float) else str(level)

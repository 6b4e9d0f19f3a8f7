"""The data behind a posterior, as groups of its file."""

import json
from typing import Any

import numpy as np
import xarray as xr

from gpn_bayes.data import Dataset, Interventions, KnownTargets, PrivacyNoise, SufficientStatistics, UnknownTargets
from gpn_bayes.data.interventions import MAX_CONTEXTS

# ArviZ's name for what a posterior is given; statistics are no observations.
_ROWS, _STATISTICS = "observed_data", "sufficient_statistics"


def to_xarray(data: Dataset | SufficientStatistics) -> tuple[str, xr.Dataset]:
    """Return the name of the group that holds the data, and its content."""
    names = list(data.names)
    if isinstance(data, SufficientStatistics):
        square = ("variable", "other_variable")
        moments: dict[str, Any] = {"mean": ("variable", data.mean), "cov": (square, data.cov)}
        attributes: dict[str, Any] = {"n": data.n}
        if data.noise is not None:
            moments["noise_sd"] = (square, data.noise.sd)
            attributes |= {"epsilon": data.noise.epsilon, "delta": data.noise.delta}
        return _STATISTICS, xr.Dataset(moments, coords={"variable": names}, attrs=attributes)
    levels = [None if known is None else [_plain(level) for level in known] for known in data.levels]
    rows: dict[str, Any] = {"value": (("row", "variable"), data.values)}
    described: dict[str, Any] = {"kinds": json.dumps(list(data.kinds)), "levels": json.dumps(levels)}
    if isinstance(data.interventions, KnownTargets):
        rows["target"] = (("row", "variable"), data.interventions.targets.astype(np.int8))
        described["intervention"] = data.interventions.kind
    elif isinstance(data.interventions, UnknownTargets):
        rows["context"] = ("row", data.interventions.experiment)
        described["contexts"] = json.dumps(list(data.interventions.contexts))
        described["target_probability"] = data.interventions.target_probability
        if data.interventions.target_penalty is not None:
            described["target_penalty"] = data.interventions.target_penalty
    return _ROWS, xr.Dataset(rows, coords={"variable": names}, attrs=described)


def from_tree(
    tree: xr.DataTree, names: tuple[str, ...], fingerprint: str | None
) -> Dataset | SufficientStatistics | None:
    """Return the data that a file holds; None where it was saved without them.

    Parameters
    ----------
    tree : DataTree
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
    if _STATISTICS in tree:
        group = tree[_STATISTICS]
        noise = None
        if "noise_sd" in group:
            epsilon, delta = (float(group.attrs[name]) for name in ("epsilon", "delta"))
            noise = PrivacyNoise(epsilon, delta, group["noise_sd"].to_numpy())
        mean, cov = group["mean"].to_numpy(), group["cov"].to_numpy()
        if mean.dtype.kind not in "iuf" or cov.dtype.kind not in "iuf":
            raise ValueError("its statistics are no numbers")
        data = SufficientStatistics(int(group.attrs["n"]), mean, cov, names, noise)
    elif _ROWS in tree:
        group = tree[_ROWS]
        values = group["value"].to_numpy()
        if values.dtype.kind not in "biuf" or values.ndim != 2:
            raise ValueError("its data are no table of numbers")
        values.setflags(write=False)
        levels = (None if known is None else tuple(known) for known in json.loads(group.attrs["levels"]))
        interventions = _interventions(group, values.shape)
        kinds = tuple(json.loads(group.attrs["kinds"]))
        data = Dataset(names, values, kinds, tuple(levels), interventions=interventions)
    else:
        return None
    if data.fingerprint != fingerprint:
        raise ValueError("a posterior's file must hold the data it was drawn from; this one holds others")
    return data


def _interventions(group: Any, shape: tuple[int, ...]) -> Interventions | None:
    """Return what was done in the rows of a file."""
    if "target" in group:
        targets = group["target"].to_numpy()
        if targets.shape != shape or targets.dtype.kind not in "biu":
            raise ValueError("its targets are no table of truth values as large as its data")
        return KnownTargets(targets.astype(bool), str(group.attrs["intervention"]))
    if "context" not in group:
        return None
    experiment, contexts = group["context"].to_numpy(), json.loads(group.attrs["contexts"])
    numbers = experiment.dtype.kind in "iu" and experiment.shape == shape[:1]
    names = isinstance(contexts, list) and 2 <= len(contexts) <= MAX_CONTEXTS + 1
    if not (numbers and names and (np.unique(experiment) == np.arange(len(contexts))).all()):
        raise ValueError("its contexts are no names of at least two experiments, with the number of that of each row")
    penalty = group.attrs.get("target_penalty")
    return UnknownTargets(
        experiment.astype(np.int64),
        tuple(str(name) for name in contexts),
        float(group.attrs["target_probability"]),
        None if penalty is None else float(penalty),
    )


def _plain(level: Any) -> Any:
    """Return a level as JSON keeps it: numbers and truth values as they are, all else as text."""
    level = level.item() if isinstance(level, np.generic) else level
    return level if isinstance(level, bool | int | float) else str(level)

"""How probable new rows are, averaged over DAGs, with the parameters of their equations integrated out."""

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from gpn_bayes._util.checks import did_you_mean
from gpn_bayes._util.progress import progress_bar
from gpn_bayes._util.types import Floats
from gpn_bayes.posterior.effects import CURVE_DRAWS, Chosen, choose
from gpn_bayes.posterior.equations import scorer_of, units_of
from gpn_bayes.posterior.protocols import DrawnPosterior
from gpn_bayes.posterior.score_noise import DrawnSets, drawn_sets
from gpn_bayes.scores.base import Scorer

if TYPE_CHECKING:
    import xarray as xr

# Numbers of all draws that are held at a time.
_CHUNK = 20_000_000


class Predictions(DrawnPosterior):
    """Densities of new rows under a posterior."""

    def log_predictive(self, rows: Any, *, draws: int | None = None, progressbar: bool = True) -> "xr.Dataset":
        """Return the log density of new rows, averaged over DAGs with their parameters integrated out.

        BGe: each variable is t distributed given its parents. Gaussian processes: normal given the hyperparameters, of
        which draws are averaged over. Scores of categories: log probabilities. Densities are in units of the table, so
        that posteriors under different scores of the same columns can be compared on rows that none of them has seen.

        Parameters
        ----------
        rows : DataFrame, Series or mapping
            New rows, with a column for every variable; further columns are left aside. They are taken as merely
            observed, also where some rows behind the posterior come from experiments.
        draws : int, optional
            Over how many DAGs to average; all by default, and 500 under Gaussian processes, whose densities take long.
        progressbar : bool, default True
            Whether Gaussian processes show progress.

        Returns
        -------
        xarray.Dataset
            `log_density` of each ``row``, with its Monte Carlo standard error `mcse`; and `log_density_given_parents`
            (``row``, ``variable``), that of each variable given its parents. Both are logarithms of averages over
            DAGs, so that the latter don't add up to the former.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data[:800], score="bge", draws=500, random_seed=1, progressbar=False)
        >>> found = post.log_predictive(data[800:])
        >>> found.sizes["row"], round(float(found.log_density.mean()), 1)
        (53, -4.4)
        """
        import xarray as xr

        scorer = scorer_of(self, "predictions")
        table = _read(rows, self.names)
        values = _codes(table, scorer) if scorer.discrete else _numbers(table)
        chosen = choose(self, CURVE_DRAWS if draws is None and not scorer.closed_form else draws)
        sets = drawn_sets(self.parents.reshape(1, -1, *self.parents.shape[2:])[:, chosen.places])
        by_set = _densities(scorer, self.data, sets, values, progressbar)
        places = sets.places.reshape(-1, len(self.names))
        step = max(1, _CHUNK // (len(places) * len(self.names)))
        parts = [
            self._averaged(by_set[:, begin : begin + step], places, chosen) for begin in range(0, len(values), step)
        ]
        density, mcse, given = (np.concatenate(part) for part in zip(*parts, strict=True))
        return xr.Dataset(
            {
                "log_density": ("row", density),
                "mcse": ("row", mcse),
                "log_density_given_parents": (("row", "variable"), given),
            },
            coords={"row": table.index.to_numpy(), "variable": list(self.names)},
        )

    def _averaged(self, by_set: Floats, places: np.ndarray, chosen: Chosen) -> tuple[Floats, Floats, Floats]:
        """Return log densities of rows, their errors, and those of each variable, from those of parent sets."""
        by_node = by_set[places]
        share = (chosen.weights / chosen.weights.sum()).ravel()
        joint = by_node.sum(axis=1)
        top = joint.max(axis=0)
        moments = self._drawn_moments(np.exp(joint - top), *chosen)
        highest = by_node.max(axis=0)
        given = highest + np.log(np.einsum("d,dvr->vr", share, np.exp(by_node - highest)))
        return top + np.log(moments.value), moments.mcse / moments.value, given.T


def _densities(scorer: Scorer, data: Any, sets: DrawnSets, values: np.ndarray, progressbar: bool) -> Floats:
    """Return log densities of rows in units of the table, of shape (parent set, row): of each node given a set."""
    centre, scale = units_of(scorer, data)
    if not scorer.discrete:
        values = (values - centre) / scale
    found = np.empty((len(sets.keys), len(values)))
    with progress_bar("Densities", len(sets.keys), progressbar and not scorer.closed_form) as advance:
        for place, (node, parents) in enumerate(sets.keys):
            equation: Any = scorer.equation(node, parents)
            found[place] = equation.log_predictive(values[:, node], values[:, list(parents)].T)
            found[place] -= np.log(scale[node])
            advance(1)
    return found


def _read(rows: Any, names: tuple[str, ...]) -> pd.DataFrame:
    """Return rows with a column for every variable, in their order."""
    table = (rows if isinstance(rows, pd.DataFrame) else pd.DataFrame([dict(rows)])).rename(columns=str)
    missing = [name for name in names if name not in table]
    if missing:
        raise ValueError(
            f"new rows must have a column for every variable; received none for {missing[0]!r}"
            f"{did_you_mean(missing[0], list(table))}"
        )
    if table.empty:
        raise ValueError("new rows must be one or more; received none")
    return table[list(names)]


def _numbers(table: pd.DataFrame) -> Floats:
    values: Floats = table.apply(pd.to_numeric, errors="coerce").to_numpy(dtype=float)
    if not np.isfinite(values).all():
        row, column = np.argwhere(~np.isfinite(values))[0].tolist()
        received, name = table.iat[row, column], table.columns[column]
        raise ValueError(f"new rows must hold finite numbers; received {received!s} for {name!r}")
    return values


def _codes(table: pd.DataFrame, scorer: Scorer) -> np.ndarray:
    """Return the levels of categories as numbers."""
    codes = np.empty(table.shape, dtype=np.int64)
    for node, name in enumerate(table):
        known = {value: scorer.level_code(node, value) for value in table[name].unique()}
        codes[:, node] = table[name].map(known)
    return codes

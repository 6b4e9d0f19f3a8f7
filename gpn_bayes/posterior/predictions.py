"""How probable new rows are, averaged over DAGs, with the parameters of their equations integrated out."""

from typing import TYPE_CHECKING, Any

import numpy as np

from gpn_bayes._util.types import Floats
from gpn_bayes.posterior.effects import CURVE_DRAWS, Chosen, choose
from gpn_bayes.posterior.equations import scorer_of
from gpn_bayes.posterior.protocols import DrawnPosterior
from gpn_bayes.posterior.score_noise import drawn_sets
from gpn_bayes.scores.densities import log_densities, read_rows, values_of

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
        table = read_rows(rows, self.names)
        values = values_of(table, scorer)
        chosen = choose(self, CURVE_DRAWS if draws is None and not scorer.closed_form else draws)
        sets = drawn_sets(self.parents.reshape(1, -1, *self.parents.shape[2:])[:, chosen.places])
        by_set = log_densities(scorer, self.data, sets.keys, values, progressbar)
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

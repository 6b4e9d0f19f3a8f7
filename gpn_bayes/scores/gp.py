"""The Gaussian-process score: a node is an unknown smooth function of each of its parents, plus noise."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy import stats

from gpn_bayes.data import Dataset, SufficientStatistics
from gpn_bayes.kernels.gp_modes import HIGHEST_LOG_SIGMA, LOWEST_LOG_SIGMA, LOWEST_LOG_THETA, find_modes
from gpn_bayes.scores.base import Score, ScoreBatch, Scorer
from gpn_bayes.scores.gp_basis import Basis
from gpn_bayes.scores.importance import importance_estimate
from gpn_bayes.scores.laplace import laplace_estimate

ESTIMATORS = ("importance", "laplace")
# A mode this close to the edge of the box, in e-folds, was stopped by it; one so many nats below the best is no matter.
_EDGE, _NEGLIGIBLE = 0.02, 15.0


class GP(Score):
    """The marginal likelihood of a Gaussian-process network, on standardised data.

    X = f(parents) + noise, f a sum of one Gaussian process a parent with squared-exponential kernels of unit variance
    and length scales theta_i ~ IG(2, 2), noise N(mu, sigma^2) with mu ~ N(0, 1) and sigma ~ IG(1, 1). The score is the
    integral of the likelihood over these hyperparameters (Giudice, Kuipers & Moffa 2023); mu is integrated out exactly.
    Length scales below 0.1 standard deviations, of prior probability 4e-8, are left out of the integral; a score whose
    best length scale is found at that limit is refused. Much rougher relations look like noise.

    Parameters
    ----------
    estimator : {"importance", "laplace"}
        "importance" estimates the integral with a standard error of at most `target_error`; "laplace" is quicker, and
        off by some tenths of a nat.
    target_error : float, default 0.02
        Standard error aimed at, in nats.
    sigma, theta : pair of float
        Shape and scale of the inverse-gamma priors.
    seed : int, default 0
        Each score's randomness follows from this seed, the node and its parents, so that it doesn't depend on the
        order in which scores are computed.

    Examples
    --------
    >>> x = np.random.default_rng(1).normal(size=60)
    >>> y = np.sin(2 * x) + 0.3 * np.random.default_rng(2).normal(size=60)
    >>> scorer = GP(estimator="laplace").bind(np.column_stack([x, y]))
    >>> scorer.local("v2", ["v1"]) > scorer.local("v2") + 10
    True
    """

    name = "gp"

    def __init__(
        self,
        estimator: str = "importance",
        target_error: float = 0.02,
        sigma: tuple[float, float] = (1.0, 1.0),
        theta: tuple[float, float] = (2.0, 2.0),
        seed: int = 0,
    ) -> None:
        if estimator not in ESTIMATORS:
            raise ValueError(f"estimator must be one of {', '.join(ESTIMATORS)}; received {estimator!r}")
        if not target_error > 0:
            raise ValueError(f"target_error must be positive; received {target_error}")
        for prior, values in (("sigma", sigma), ("theta", theta)):
            if len(values) != 2 or not all(value > 0 for value in values):
                raise ValueError(f"{prior} needs a positive shape and scale; received {values}")
        self.estimator = estimator
        self.target_error = target_error
        self.sigma = (float(sigma[0]), float(sigma[1]))
        self.theta = (float(theta[0]), float(theta[1]))
        self.seed = seed

    @property
    def parameters(self) -> dict[str, Any]:
        """The settings that determine the score."""
        return {
            "estimator": self.estimator,
            "target_error": self.target_error,
            "sigma": list(self.sigma),
            "theta": list(self.theta),
            "seed": self.seed,
        }

    def _bind(self, data: Dataset | SufficientStatistics) -> "GPScorer":
        if not isinstance(data, Dataset):
            raise ValueError("the Gaussian-process score needs the rows; received SufficientStatistics")
        return GPScorer(self, data)

    def pymc_model(self, data: Any, node: str | int, parents: Sequence[str | int] = ()) -> Any:
        """Return the `pm.Model` that states this score of a node given its parents, for use with PyMC.

        Parameters
        ----------
        data : DataFrame, ndarray or path
            The table; it is standardised.
        node : str or int
            The variable.
        parents : sequence of str or int
            Its parents.
        """
        from gpn_bayes.scores.gp_pymc import pymc_model

        table = Dataset.read(data)
        values = table.standardised("the Gaussian-process score")
        return pymc_model(values, table.names, node, parents, {"sigma": self.sigma, "theta": self.theta})


class GPScorer(Scorer):
    """Gaussian-process scores of one data set; see `GP`."""

    default_max_parents = 5

    def __init__(self, score: GP, data: Dataset) -> None:
        super().__init__(score, data.names, data.fingerprint)
        self.score = score
        self.basis = Basis(data.standardised("the Gaussian-process score"))
        self.priors = np.array([*score.sigma, *score.theta])

    def score_sets(self, node: int, parent_sets: Sequence[tuple[int, ...]]) -> ScoreBatch:
        """Score several parent sets of one node, given by index."""
        rows = [self._score(node, tuple(sorted(parents))) for parents in parent_sets]
        values, errors, k_hats, statuses = zip(*rows, strict=True) if rows else ((), (), (), ())
        return ScoreBatch(np.array(values), np.array(errors), np.array(k_hats), list(statuses))

    def _score(self, node: int, parents: tuple[int, ...]) -> tuple[float, float, float, str]:
        if not parents:
            return self._without_parents(node), 0.0, float("nan"), "exact"
        moments = self.basis.moments(node, parents)
        modes, heights, hessians = find_modes(moments, self.priors)
        self._refuse_roughness(node, parents, modes, heights)
        if self.score.estimator == "laplace":
            value, status = laplace_estimate(heights, hessians)
            if not np.isfinite(value):
                names = [self.names[p] for p in parents]
                raise ValueError(
                    f"no mode was found for {self.names[node]!r} given {names}; use estimator='importance'"
                )
            return value, float("nan"), float("nan"), status
        rng = np.random.default_rng([self.score.seed, node, *(p + 1 for p in parents)])
        found = importance_estimate(
            moments, self.priors, modes, heights, hessians, rng, target_error=self.score.target_error
        )
        return found.value, found.error, found.k_hat, found.status

    def _refuse_roughness(self, node: int, parents: tuple[int, ...], modes: np.ndarray, heights: np.ndarray) -> None:
        """Refuse to score where the posterior leans on the edge below which length scales are left out."""
        for mode, height in zip(modes, heights, strict=True):
            shortest = int(mode[1:].argmin())
            if height > heights[0] - _NEGLIGIBLE and mode[1 + shortest] < LOWEST_LOG_THETA + _EDGE:
                raise ValueError(
                    f"relations must have a length scale of 0.1 standard deviations or more; {self.names[node]!r} "
                    f"varies faster with {self.names[parents[shortest]]!r}"
                )

    def _without_parents(self, node: int) -> float:
        """Integrate over log sigma alone; the trapezoidal rule is exact to rounding on a smooth peak."""
        y = self.basis.values[:, node]
        n_rows, squares = len(y), float(y @ y)
        shape, scale = self.score.sigma
        # The peak lies near log sigma = 0, and is about 1 / sqrt(2 N) wide.
        half_width = min(14.0 / np.sqrt(2 * n_rows) + 1.0, HIGHEST_LOG_SIGMA)
        grid = np.linspace(max(-half_width, LOWEST_LOG_SIGMA), half_width, 4001)
        noise = np.exp(2 * grid)
        log_density = -0.5 * (
            (n_rows - 1) * 2 * grid + np.log(noise + n_rows) + squares / noise + n_rows * np.log(2 * np.pi)
        )
        log_density += stats.invgamma(shape, scale=scale).logpdf(np.exp(grid)) + grid
        top = log_density.max()
        return float(top + np.log(np.trapezoid(np.exp(log_density - top), grid)))

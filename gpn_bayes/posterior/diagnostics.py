"""How far a posterior can be trusted, in numbers and in plain words."""

from dataclasses import dataclass, fields

import numpy as np

# Beyond these a run is called unreliable; the usual values for R-hat and ESS (Vehtari et al. 2021).
R_HAT_POOR = 1.05
ESS_LIMIT = 400
GAP_LIMIT = 0.05
WEIGHT_ESS_LIMIT = 0.1


@dataclass(frozen=True)
class Diagnostics:
    """Diagnostics of a `GraphPosterior`; print it for plain words.

    Attributes
    ----------
    chains, draws : int
        What was drawn.
    r_hat, ess : float
        R-hat and bulk effective size of the log score.
    largest_gap : float
        The largest difference between two chains in the probability of an edge.
    largest_gap_edge : str
        Which edge that is.
    pareto_k : float
        Shape of the tail of the importance weights; NaN where nothing was weighted.
    weight_ess : float
        Effective share of the draws after weighting, between 0 and 1; 1 where nothing was weighted.
    sampler : str
        "exact", "partition" or "order".
    order_bias : bool
        Whether the draws carry the bias of order MCMC towards DAGs with many orders.
    """

    chains: int
    draws: int
    r_hat: float
    ess: float
    largest_gap: float
    largest_gap_edge: str
    pareto_k: float
    weight_ess: float
    sampler: str
    order_bias: bool

    def __getitem__(self, key: str) -> object:
        """Return a number by its name."""
        if key not in {field.name for field in fields(self)}:
            raise KeyError(key)
        return getattr(self, key)

    @property
    def ok(self) -> bool:
        """Whether nothing speaks against the numbers."""
        return not self.warnings()

    @property
    def _disagree(self) -> bool:
        # Chance alone parts two chains of e effective draws by up to about 4 sqrt(2 p (1 - p) / e); p = 1/2 at worst.
        effective = (self.ess if np.isfinite(self.ess) else self.draws) / self.chains
        by_chance = 4 * np.sqrt(0.5 / effective)
        # R-hat is NaN where the log score never changes: then the edges alone tell.
        return self.chains > 1 and (self.r_hat > R_HAT_POOR or self.largest_gap > max(GAP_LIMIT, by_chance))

    def warnings(self) -> list[str]:
        """Return what speaks against the numbers, each with what to do about it."""
        found = []
        if self.sampler != "exact":
            if self.chains == 1:
                found.append("One chain can't be compared with others; run at least two.")
            if self._disagree:
                found.append(
                    f"The chains disagree (R-hat {self.r_hat:.2f}, largest gap {self.largest_gap:.2f} for "
                    f"{self.largest_gap_edge}): draw longer, with a larger tune and thin."
                )
            if np.isfinite(self.ess) and self.ess < ESS_LIMIT:
                found.append(f"Only {self.ess:.0f} effective draws of the log score: draw more or thin more.")
        if self.weight_ess < WEIGHT_ESS_LIMIT:
            found.append(
                f"Few draws carry the weight ({self.weight_ess:.0%} effective): "
                + ("use sampler='partition', which needs no correction." if self.sampler == "order" else "draw more.")
            )
        if self.order_bias:
            found.append(
                "Drawn by order MCMC without correction: DAGs that fit many orders are over-weighted. "
                "Use sampler='partition', or order_bias='correct' for up to 20 variables."
            )
        return found

    def __str__(self) -> str:
        """Say it in plain words."""
        if self.sampler == "exact":
            text = f"Exact: edge probabilities carry no Monte Carlo error; {self.draws} independent draws."
        elif self.chains == 1:
            text = f"1 chain of {self.draws} draws; {self.ess:.0f} effective draws of the log score."
        else:
            verdict = "don't agree" if self._disagree else "agree"
            text = (
                f"{self.chains} chains {verdict}; largest gap {self.largest_gap:.2f} "
                f"({self.largest_gap_edge}); R-hat {self.r_hat:.3f}, {self.ess:.0f} effective draws of the log score."
            )
        return "\n".join([text, *self.warnings()])


def largest_gap(edge_by_chain: np.ndarray, names: tuple[str, ...]) -> tuple[float, str]:
    """Return the largest difference between chains in an edge's probability, and the edge."""
    gaps = edge_by_chain.max(axis=0) - edge_by_chain.min(axis=0)
    np.fill_diagonal(gaps, -1)
    parent, child = np.unravel_index(int(gaps.argmax()), gaps.shape)
    return float(gaps[parent, child]), f"{names[parent]} -> {names[child]}"

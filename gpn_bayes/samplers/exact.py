"""Independent draws from the posterior, where all DAGs can be summed over."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gpn_bayes._util.options import by_name_only
from gpn_bayes._util.progress import progress_bar, shares
from gpn_bayes.samplers.base import Sampler, reweight_option

if TYPE_CHECKING:
    import numpy as np

    from gpn_bayes.mcmc.exact_posterior import ExactPosterior
    from gpn_bayes.mcmc.tables import ScoreTables
    from gpn_bayes.samplers.chains import MarkovChain


@by_name_only
@dataclass(frozen=True, kw_only=True)
class Exact(Sampler):
    """Draw independently, for up to 17 variables (at 17 it takes a gigabyte).

    Unless the draws are weighted to another score, edge probabilities are known without Monte Carlo error.

    Parameters
    ----------
    reweight : {"auto", None}
        "auto" draws DAGs under a quicker, rougher score where the score offers one ("gp" offers Laplace's
        approximation), computes the score itself only for the parent sets that were drawn, and weights the draws by
        the ratio of the two. None draws under the score itself: slower, but edge probabilities are then known without
        Monte Carlo error. Scores without a closed form are computed for all parent sets where there are up to a
        thousand; where there are more, for those that count, and the diagnostics say about how much the others hold.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk"]]
    >>> post = gpn.sample(data, "bge", sampler=gpn.samplers.Exact(), random_seed=1, progressbar=False)
    >>> post.edge_probability("raf", "mek").mcse
    0.0
    """

    name: ClassVar[str] = "exact"
    independent: ClassVar[bool] = True
    outside: ClassVar[bool] = False

    reweight: str | None = reweight_option()

    @property
    def max_nodes(self) -> int:
        """For how many variables it is, at most."""
        from gpn_bayes.mcmc.exact_draws import MAX_NODES

        return MAX_NODES

    def takes_all(self, n: int, closed_form: bool, plus_one: bool) -> bool:
        """Return whether all others are a node's candidates by default: more can't cost more."""
        return n <= self.max_nodes

    def chains(
        self, tables: "ScoreTables", required: "np.ndarray", count: int, progressbar: bool = False
    ) -> "list[MarkovChain]":
        """Return chains that have no memory."""
        from gpn_bayes.mcmc.exact_draws import layered_weights
        from gpn_bayes.samplers.chains import ExactChain

        with progress_bar("Summing", 1.0, progressbar) as advance:
            weights = layered_weights(tables, shares(advance))
        return [ExactChain(tables, required, weights) for _ in range(count)]

    def answers(self, tables: "ScoreTables", progressbar: bool) -> "ExactPosterior":
        """Return edge probabilities without Monte Carlo error."""
        from gpn_bayes.mcmc.exact_posterior import exact_probabilities

        with progress_bar("Edges", 1.0, progressbar) as advance:
            return exact_probabilities(tables, shares(advance))

    @property
    def compiled(self) -> tuple[Any, tuple[str, ...]]:
        """The function that is compiled last, and the parts in which it can be compiled."""
        from gpn_bayes.mcmc.exact_draws import draw_exact

        return draw_exact, ("draws", "answers")

    def rehearse(self, part: str) -> None:
        """Compile a part by using it on three variables."""
        from gpn_bayes.samplers.chains import draw_a_few, three_nodes

        if part == "answers":
            self.answers(three_nodes(outside=False), progressbar=False)
        else:
            draw_a_few(self.chains, outside=False)

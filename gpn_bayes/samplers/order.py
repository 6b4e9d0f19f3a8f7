"""Order MCMC, and the weights that correct its bias towards DAGs with many orders.

It draws an order and then a DAG that agrees with it, so that a DAG G is drawn with a probability proportional
to p(G | data) e(G), where e(G) is the number of its linear extensions: the orders in which all its edges lead forward.
Weighted by 1 / e(G), the draws represent p(G | data) (Ellis & Wong 2008, Learning causal Bayesian network structures
from experimental data, Journal of the American Statistical Association 103).
"""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from gpn_bayes._util.options import by_name_only, one_of, option
from gpn_bayes.samplers.base import Sampler, reweight_option, thin_option

if TYPE_CHECKING:
    import numpy as np

    from gpn_bayes.mcmc.tables import ScoreTables
    from gpn_bayes.samplers.chains import MarkovChain

# Counting the orders of a DAG walks through sets of nodes.
MAX_CORRECTED_NODES = 20


@by_name_only
@dataclass(frozen=True, kw_only=True)
class Order(Sampler):
    """MCMC over orders, which favours DAGs with many orders, unless corrected.

    Parameters
    ----------
    thin, reweight
        As of `Partition`.
    bias : {"keep", "correct"}
        "correct" weights each draw by one over the number of its orders.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk"]]
    >>> order = gpn.samplers.Order(bias="correct")
    >>> post = gpn.sample(data, "bge", sampler=order, draws=200, random_seed=1, progressbar=False)
    >>> post.settings["order_bias"]
    'correct'
    """

    name: ClassVar[str] = "order"

    thin: int | str = thin_option()
    reweight: str | None = reweight_option()
    bias: str = option(
        "keep",
        "keep or correct the bias of the order sampler towards DAGs with many orders.",
        one_of("keep", "correct"),
        flag="--order-bias",
    )

    @property
    def move_names(self) -> tuple[str, ...]:
        """The moves over orders."""
        from gpn_bayes.mcmc.order import MOVES

        return MOVES

    @property
    def settings(self) -> dict[str, Any]:
        """What the settings of a posterior say of it."""
        return super().settings | {"order_bias": self.bias}

    def settle(self, n: int, outside: bool) -> "Order":
        """Return the sampler itself, unless there are too many variables for the correction."""
        if self.bias == "correct" and n > MAX_CORRECTED_NODES:
            raise ValueError(
                f"bias='correct' takes at most {MAX_CORRECTED_NODES} variables; received {n}: use 'partition'"
            )
        return self

    def imputing(self) -> "Order":
        """Return the sampler itself, if it corrects nothing."""
        if self.bias == "correct":
            raise ValueError(
                "missing='impute' takes the order sampler without correction; received "
                "sampler=gpn.samplers.Order(bias='correct')"
            )
        return self

    def chains(
        self, tables: "ScoreTables", required: "np.ndarray", count: int, progressbar: bool = False
    ) -> "list[MarkovChain]":
        """Return chains over orders."""
        from gpn_bayes.samplers.chains import OrderChain

        return [OrderChain(tables, required) for _ in range(count)]

    def log_weights(self, parents: "np.ndarray") -> "np.ndarray | None":
        """Return log(1 / e(G)) of each DAG G, e(G) being the number of its linear extensions, to correct the bias.

        Parameters
        ----------
        parents : ndarray of uint64, shape (chain, draw, node, words)
            DAGs drawn by order MCMC, as parent bits.

        Warns
        -----
        UserWarning
            Where the weights leave few draws effective.

        Examples
        --------
        A DAG without edges over two nodes has two orders, one with an edge has one:

        >>> from gpn_bayes import graphs
        >>> dags = np.array([[[[0, 0], [0, 0]], [[0, 1], [0, 0]]]])
        >>> np.exp(Order(bias="correct").log_weights(graphs.pack(dags))).round(3).tolist()
        [[0.5, 1.0]]
        """
        import numpy as np

        from gpn_bayes import graphs
        from gpn_bayes._util.effective_size import WEIGHT_ESS_LIMIT, effective_size

        if self.bias == "keep":
            return None
        flat = parents.reshape(-1, *parents.shape[2:])
        distinct, inverse = np.unique(flat, axis=0, return_inverse=True)
        orders: np.ndarray = graphs.log_linear_extensions(distinct)[inverse.reshape(-1)].reshape(parents.shape[:2])
        log_weights = -orders
        weights = np.exp(log_weights - log_weights.max())
        share = effective_size(weights) / weights.size
        if share < WEIGHT_ESS_LIMIT:
            warnings.warn(
                f"correcting the order bias leaves {share:.1%} of the draws effective; sampler='partition' needs "
                "no correction",
                UserWarning,
                stacklevel=4,
            )
        return log_weights

    @property
    def compiled(self) -> tuple[Any, tuple[str, ...]]:
        """The function that is compiled last, and the parts in which it can be compiled."""
        from gpn_bayes.mcmc.chains import run_order

        return run_order, ("draws",)

    def rehearse(self, part: str) -> None:
        """Compile the chains by using them on three variables."""
        from gpn_bayes.samplers.chains import draw_a_few

        draw_a_few(self.chains, outside=True)

"""The sampler that is chosen by the number of variables."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from gpn_bayes._util.options import by_name_only
from gpn_bayes.samplers.base import Sampler, reweight_option, thin_option
from gpn_bayes.samplers.exact import Exact
from gpn_bayes.samplers.partition import Partition

if TYPE_CHECKING:
    import numpy as np

    from gpn_bayes.mcmc.tables import ScoreTables
    from gpn_bayes.samplers.chains import MarkovChain


@by_name_only
@dataclass(frozen=True, kw_only=True)
class Auto(Sampler):
    """Exact for up to 16 variables (15 where scores have no closed form, such as "gp"), else `Partition`.

    Partition, too, where parents from outside the candidates are allowed.

    Parameters
    ----------
    thin, reweight
        As of `Partition`.

    Examples
    --------
    >>> Auto().settle(16, outside=False).name, Auto().settle(16, outside=True).name
    ('exact', 'partition')
    """

    name: ClassVar[str] = "auto"

    thin: int | str = thin_option()
    reweight: str | None = reweight_option()

    def settle(self, n: int, outside: bool) -> Sampler:
        """Return the sampler that is chosen."""
        from gpn_bayes.candidates.costs import AUTO_EXACT_NODES

        # The exact sampler has no way to parents from outside the candidates.
        return Exact(reweight=self.reweight) if n <= AUTO_EXACT_NODES and not outside else self.imputing()

    def takes_all(self, n: int, closed_form: bool, plus_one: bool) -> bool:
        """Return whether all others are a node's candidates by default."""
        from gpn_bayes.candidates.costs import AUTO_EXACT_NODES, AUTO_EXACT_SLOW

        return n <= (AUTO_EXACT_NODES if closed_form else AUTO_EXACT_SLOW) and not plus_one

    def imputing(self) -> Partition:
        """Return the sampler for tables of scores that change."""
        return Partition(thin=self.thin, reweight=self.reweight)

    def chains(
        self, tables: "ScoreTables", required: "np.ndarray", count: int, progressbar: bool = False
    ) -> "list[MarkovChain]":
        """Return chains of the sampler that is chosen for as many nodes."""
        return self.settle(len(tables.layout), False).chains(tables, required, count, progressbar)

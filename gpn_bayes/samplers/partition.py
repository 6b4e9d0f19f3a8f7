"""Partition MCMC: built-in moves and others, alone or coupled to copies under flattened scores."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from gpn_bayes._util.checks import shown
from gpn_bayes._util.options import by_name_only, count, option
from gpn_bayes.samplers.base import Sampler, reweight_option, thin_option
from gpn_bayes.samplers.moves import Mix

if TYPE_CHECKING:
    import numpy as np

    from gpn_bayes.mcmc.tables import ScoreTables
    from gpn_bayes.samplers.chains import MarkovChain


@by_name_only
@dataclass(frozen=True, kw_only=True)
class Partition(Sampler):
    """MCMC over ordered partitions, under the uniform prior over DAGs.

    Parameters
    ----------
    thin : int or "auto"
        Steps of a chain before each draw; ten per variable by default.
    reweight : {"auto", None}
        Whether to draw under a quicker score, where the score offers one, and to weight the draws; see `Exact`.
    temperatures : int, default 1
        More than one couples every chain to copies of itself under flattened scores, which cross what it can't; each
        takes as long as the chain. Try 4 to 8 where chains don't agree. Chains under slow scores, such as "gp", are
        coupled to 4 by themselves if they don't.
    moves : list of (move, share), optional
        Moves of your own, each with the share of the steps in which it is tried, ``[(MyMove(), 0.3)]``: see
        `gpn_bayes.samplers.Move`. The built-in moves have the rest, in their usual proportions; one of them, by name,
        can be given a share too: ``[("relocation", 0.2)]``.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> gpn.samplers.Partition().move_names[:4]
    ('split or join', 'adjacent swap', 'any swap', 'relocation')
    >>> gpn.samplers.Partition(temperatures=0)
    Traceback (most recent call last):
    ValueError: temperatures must be a whole number, 1 or more; received 0
    """

    name: ClassVar[str] = "partition"

    thin: int | str = thin_option()
    reweight: str | None = reweight_option()
    temperatures: int = option(1, "Coupled copies of each chain, to cross what it can't.", count(1), typed=int)
    moves: Any = None

    def __post_init__(self) -> None:
        """Check every option, and the moves."""
        super().__post_init__()
        if self.moves is not None and self._mix.own and self.temperatures > 1:
            raise ValueError(f"your own moves need temperatures=1; received temperatures={shown(self.temperatures)}")

    @property
    def _mix(self) -> Mix:
        """The moves that were given."""
        from gpn_bayes.mcmc.chains import PARTITION_MOVES

        return Mix.read(self.moves or (), PARTITION_MOVES)

    @property
    def move_names(self) -> tuple[str, ...]:
        """The moves over partitions, those over DAGs, and the user's own."""
        from gpn_bayes.mcmc.chains import PARTITION_MOVES

        return (*PARTITION_MOVES, *(name for name, *_ in self._mix.own))

    @property
    def settings(self) -> dict[str, Any]:
        """What the settings of a posterior say of it."""
        known = super().settings | {"temperatures": self.temperatures}
        if not self.moves:
            return known
        shares = self._mix.shares | {name: share for name, _, share in self._mix.own}
        # In their order, and with what they hold: moves that differ there draw differently.
        own = [[name, repr(sorted(getattr(move, "__dict__", {}).items()))] for name, move, _ in self._mix.own]
        return known | {"shares_of_moves": shares} | ({"own_moves": own} if own else {})

    def imputing(self) -> "Partition":
        """Return the sampler itself, if its chains aren't coupled."""
        if self.temperatures > 1:
            raise ValueError(
                f"with missing='impute', temperatures must be 1; received temperatures={self.temperatures}"
            )
        return self

    def coupled(self, temperatures: int) -> "Partition | None":
        """Return the sampler with coupled chains, unless they are already or there are moves of the user's own."""
        return replace(self, temperatures=temperatures) if self.temperatures == 1 and not self._mix.own else None

    def chains(
        self, tables: "ScoreTables", required: "np.ndarray", count: int, progressbar: bool = False
    ) -> "list[MarkovChain]":
        """Return chains over partitions."""
        from gpn_bayes.mcmc.chains import PARTITION_MIX, PARTITION_MOVES
        from gpn_bayes.samplers.chains import PartitionChain, TemperedChain

        mix = self._mix
        shares = mix.built_in_shares(PARTITION_MOVES, PARTITION_MIX)
        if self.temperatures > 1:
            return [TemperedChain(tables, required, self.temperatures, shares) for _ in range(count)]
        return [PartitionChain(tables, required, shares, mix.own) for _ in range(count)]

    @property
    def compiled(self) -> tuple[Any, tuple[str, ...]]:
        """The function that is compiled last, and the parts in which it can be compiled."""
        from gpn_bayes.mcmc import chains, tempering

        if self.temperatures > 1:
            return tempering.run_tempered, ("tempered", "walk")
        return chains.run_partition, ("draws", "walk")

    def rehearse(self, part: str) -> None:
        """Compile a part by using it on three variables."""
        from gpn_bayes.samplers.chains import draw_a_few, walk_over_dags

        if part == "walk":
            walk_over_dags()
        else:
            draw_a_few(Partition(temperatures=2 if part == "tempered" else 1).chains, outside=True)

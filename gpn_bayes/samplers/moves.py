"""Moves over partitions beside the built-in ones, and which share of the steps each is tried in."""

from collections.abc import Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from gpn_bayes._util.checks import did_you_mean, shown

if TYPE_CHECKING:
    import numpy as np

    from gpn_bayes.mcmc.partition import PartitionState
    from gpn_bayes.mcmc.tables import ScoreTables

Blocks = tuple[frozenset[int], ...]


class Move(Protocol):
    """A move: ``propose(rng, partition)`` returns another partition and log q(backward) - log q(forward).

    An ordered partition of the nodes 0, …, n - 1 is a tuple of frozensets: the first holds the roots of a DAG, and a
    node of any other has its parents in those before, at least one of them in the one just before. The sampler computes
    the posterior of both partitions and accepts or refuses. All chains share a move, so it keeps nothing between calls.

    Examples
    --------
    Swap two neighbouring blocks, which is as probable forward as backward:

    >>> class SwapBlocks:
    ...     def propose(self, rng, partition):
    ...         if len(partition) == 1:
    ...             return partition, 0.0
    ...         k = rng.integers(len(partition) - 1)
    ...         return (*partition[:k], partition[k + 1], partition[k], *partition[k + 2 :]), 0.0
    >>> SwapBlocks().propose(np.random.default_rng(1), (frozenset({0}), frozenset({1})))
    ((frozenset({1}), frozenset({0})), 0.0)
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk"]]
    >>> sampler = gpn.samplers.Partition(moves=[(SwapBlocks(), 0.3)])
    >>> post = gpn.sample(data, "bge", sampler=sampler, draws=200, random_seed=1, progressbar=False)
    >>> post.settings["moves"]["SwapBlocks"] > 0
    True
    """

    def propose(self, rng: "np.random.Generator", partition: Blocks) -> tuple[Any, float]:
        """Return a new partition, and the log ratio of the probability of proposing the way back to that there."""
        ...


class Mix(NamedTuple):
    """Which moves are tried, and how often.

    Attributes
    ----------
    shares : dict of str to float
        Of built-in moves whose share was given.
    own : tuple of (str, Move, float)
        Moves of the user's own, by name, with their shares.
    """

    shares: dict[str, float]
    own: tuple[tuple[str, Move, float], ...]

    @classmethod
    def read(cls, given: Any, built_in: Sequence[str]) -> "Mix":
        """Return what was given as moves with their shares, checked.

        Examples
        --------
        >>> Mix.read([("any swap", 0.5)], ["any swap", "relocation"]).shares
        {'any swap': 0.5}
        >>> Mix.read([("any swap", 1.5)], ["any swap", "relocation"])
        Traceback (most recent call last):
        ValueError: the share of a move must lie between 0 and 1, without the ends; 'any swap' has 1.5
        """
        rule = "moves must be pairs of a move and its share, [(MyMove(), 0.3), …]"
        pairs = list(given.items()) if isinstance(given, dict) else given
        if not isinstance(pairs, list | tuple):
            raise ValueError(f"{rule}; received {shown(given)}")
        mix = cls({}, ())
        for pair in pairs:
            if not isinstance(pair, list | tuple) or len(pair) != 2:
                raise ValueError(f"{rule}; received {shown(pair)}")
            move, share = pair
            name = move if isinstance(move, str) else str(getattr(move, "name", type(move).__name__))
            if isinstance(move, str):
                if move not in built_in:
                    known = f"the built-in moves are {', '.join(built_in)}"
                    raise ValueError(f"{known}; received {shown(move)}{did_you_mean(move, built_in)}")
            elif isinstance(move, type) or not callable(getattr(move, "propose", None)):
                raise ValueError(f"a move must have a method propose(rng, partition); received {shown(move)}")
            elif name in built_in:
                raise ValueError(f"your own move must not be named like a built-in one; received {name!r}")
            if name in mix.shares or name in [own for own, *_ in mix.own]:
                raise ValueError(f"moves must have different names; received {name!r} twice")
            if isinstance(share, bool) or not isinstance(share, Real) or not 0 < float(share) < 1:
                raise ValueError(
                    f"the share of a move must lie between 0 and 1, without the ends; {name!r} has {shown(share)}"
                )
            if isinstance(move, str):
                mix.shares[name] = float(share)
            else:
                mix = mix._replace(own=(*mix.own, (name, move, float(share))))
        total = sum(mix.shares.values()) + sum(share for *_, share in mix.own)
        if total >= 1:
            raise ValueError(
                f"shares of moves must add up to less than 1, so that the other built-in moves, which reach every "
                f"DAG, have the rest; received {total:.4g}"
            )
        return mix

    def built_in_shares(self, names: Sequence[str], usual: "np.ndarray") -> "np.ndarray":
        """Return the shares of the built-in moves: those given, and of the others what is left, as they usually are."""
        import numpy as np

        if not self.shares:
            return usual
        named = np.array([name in self.shares for name in names])
        rest = 1 - sum(self.shares.values()) - sum(share for *_, share in self.own)
        given = np.array([self.shares.get(name, 0.0) for name in names])
        if named.all():
            return given
        return np.where(named, given, usual * rest / usual[~named].sum())


def step(
    rng: "np.random.Generator", tables: "ScoreTables", state: "PartitionState", name: str, move: Move
) -> "PartitionState":
    """Return where a step by a move of one's own leads: Metropolis-Hastings for the posterior of partitions."""
    import numpy as np

    from gpn_bayes.mcmc.partition import BLOCK, partition_from_depths

    depth = state.ints[BLOCK, : len(state.score)]
    blocks = [frozenset(np.flatnonzero(depth == b).tolist()) for b in range(int(depth.max()) + 1)]
    proposed, log_ratio = _proposed(move.propose(rng, tuple(blocks)), name)
    new_depth = _depths(proposed, len(depth), name)
    if np.array_equal(new_depth, depth):
        return state
    new = partition_from_depths(tables, new_depth)
    log_ratio += float(new.score.sum() - state.score.sum())
    return new if log_ratio >= 0 or rng.random() < np.exp(log_ratio) else state


def _proposed(answer: Any, name: str) -> tuple[Any, float]:
    """Return the two parts of what a move proposes."""
    import numpy as np

    rule = "a move must return a partition and log q(backward) - log q(forward), a number"
    try:
        proposed, log_ratio = answer
        number = float(log_ratio)
    except (TypeError, ValueError):
        raise ValueError(f"{rule}; {name} returned {shown(answer)}") from None
    if np.isnan(number) or number == np.inf:
        raise ValueError(f"{rule}; {name} returned {number}")
    return proposed, number


def _depths(blocks: Any, n: int, name: str) -> "np.ndarray":
    """Return the block of each node, of what must be a partition of all nodes."""
    import numpy as np

    depth = np.full(n, -1, np.int64)
    try:
        members = [[int(node) for node in block] for block in blocks]
    except (TypeError, ValueError):
        members = [[]]
    nodes = [node for block in members for node in block]
    if sorted(nodes) != list(range(n)) or not all(members):
        raise ValueError(
            f"a move must propose a partition of the nodes 0, …, {n - 1} into blocks that aren't empty; {name} "
            f"proposed {shown(blocks)}"
        )
    for b, block in enumerate(members):
        depth[block] = b
    return depth

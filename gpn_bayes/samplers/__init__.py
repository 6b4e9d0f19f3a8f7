"""Samplers: each makes chains of DAGs from tables of scores, and carries its own options.

Examples
--------
>>> import gpn_bayes as gpn
>>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk"]]
>>> sampler = gpn.samplers.Partition(temperatures=2)
>>> post = gpn.sample(data, "bge", sampler=sampler, draws=100, random_seed=1, progressbar=False)
>>> post.settings["temperatures"]
2
"""

from typing import Any

from gpn_bayes._util.checks import did_you_mean, shown
from gpn_bayes._util.lazy import lazily
from gpn_bayes.samplers.auto import Auto
from gpn_bayes.samplers.base import Sampler
from gpn_bayes.samplers.exact import Exact
from gpn_bayes.samplers.moves import Move
from gpn_bayes.samplers.order import Order
from gpn_bayes.samplers.partition import Partition

# What a sampler of one's own is made of; loaded when it is first used, so that the command line starts quickly.
_CHAINS = dict.fromkeys(("Block", "ChainInfo", "MarkovChain", "WalkingChain"), "gpn_bayes.samplers.chains")
__all__ = ["Auto", "Exact", "Move", "Order", "Partition", "Sampler", *_CHAINS, "by_name", "names"]
__getattr__, _ = lazily(__name__, _CHAINS)

BUILT_IN: dict[str, type[Sampler]] = {kind.name: kind for kind in (Auto, Exact, Partition, Order)}


def by_name(sampler: Any) -> Sampler:
    """Return a sampler given as an object or by its name.

    Parameters
    ----------
    sampler : Sampler or str
        A sampler, which is returned as it is, or "auto", "exact", "partition" or "order" for one with default settings.

    Examples
    --------
    >>> by_name("order")
    Order(thin='auto', reweight='auto', bias='keep')
    """
    if isinstance(sampler, Sampler):
        kind, name = type(sampler), getattr(sampler, "name", None)
        if not isinstance(name, str) or not name:
            raise ValueError(f"a sampler must have a name; {kind.__name__} has none")
        if BUILT_IN.get(name, kind) is not kind:
            raise ValueError(f"your own sampler must not be named like a built-in one; {kind.__name__} is {name!r}")
        return sampler
    if isinstance(sampler, str) and sampler in BUILT_IN:
        return BUILT_IN[sampler]()
    suggestion = did_you_mean(sampler, BUILT_IN)
    raise ValueError(
        f"sampler must be a Sampler or one of {', '.join(BUILT_IN)}; received {shown(sampler)}{suggestion}"
    )


def names() -> tuple[str, ...]:
    """Return the names that `by_name` takes.

    Examples
    --------
    >>> names()
    ('auto', 'exact', 'partition', 'order')
    """
    return tuple(BUILT_IN)

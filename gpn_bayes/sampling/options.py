"""What a run can be asked for: every option with its default, and the rules that need no data to be checked."""

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any

from gpn_bayes._util.checks import check_choice, check_count, shown

SAMPLERS = ("auto", "exact", "partition", "order")
# Options that are whole numbers, and the smallest value of each.
_SMALLEST = {
    "draws": 1,
    "chains": 1,
    "tune": 0,
    "cores": 1,
    "thin": 1,
    "random_seed": 0,
    "temperatures": 1,
}
# The values of these options that are not numbers.
_NO_COUNT = {"cores": None, "random_seed": None, "thin": "auto"}


@dataclass(frozen=True, eq=False)
class RunOptions:
    """The options of `gpn_bayes.sample` that define a run, checked as far as they can be without data.

    `gpn_bayes.sample` and ``gpn-bayes run`` take their defaults from here.

    Attributes
    ----------
    score : Score or str
        How to score a node given its parents.
    sampler : {"auto", "exact", "partition", "order"}
        How to draw DAGs; "auto" decides by the number of variables.
    draws, tune : int
        DAGs to keep from each chain, and DAGs to discard before them.
    chains : int
        Number of independent chains.
    cores : int or None
        Threads; None for as many as there are processors.
    random_seed : int or None
        The seed of the random generators; None for a different run every time.
    thin : int or "auto"
        Steps of a chain before each draw; "auto" for ten per variable.
    until : {None, "converged"}
        Whether the length of the run depends on the convergence of its chains.
    temperatures : int
        Coupled copies of each partition chain, under flattened scores.
    prior : {"uniform", "fair"}, table of edge probabilities, or GraphPrior
        The graph prior.
    required, forbidden : edges (parent, child)
        Edges that must, or must not, be in a DAG.
    tiers : groups of names, mapping of names to numbers, or None
        No edge leads from a later tier to an earlier one.
    max_parents : int or None
        Largest number of parents of a node; None for the score's own limit.
    candidates : Any
        The candidate parents of each variable, or how to find them; see `gpn_bayes.sample`.
    plus_one : bool or "auto"
        Whether a node may have one parent from outside its candidates; "auto" where the candidates were estimated.
    expand : bool, float or "auto"
        The probability at which a parent from outside becomes a candidate; False for never.
    reweight : {"auto", None}
        Whether to draw under a quicker score, where there is one, and to weight the draws.
    order_bias : {"keep", "correct"}
        Whether draws of the order sampler are weighted to the uniform prior over DAGs.

    Raises
    ------
    ValueError
        For a value that is wrong whatever the data.

    Examples
    --------
    >>> RunOptions("gp", draws=500).tune
    1000
    >>> RunOptions(draws=0)
    Traceback (most recent call last):
    ValueError: draws must be a whole number, 1 or more; received 0
    """

    score: Any = "bge"
    _: KW_ONLY
    sampler: str = "auto"
    draws: int = 2000
    tune: int = 1000
    chains: int = 4
    cores: int | None = None
    random_seed: int | None = None
    thin: int | str = "auto"
    until: str | None = None
    temperatures: int = 1
    prior: Any = "uniform"
    required: Any = ()
    forbidden: Any = ()
    tiers: Any = None
    max_parents: int | None = None
    candidates: Any = None
    plus_one: bool | str = "auto"
    expand: float | bool | str = "auto"
    reweight: str | None = "auto"
    order_bias: str = "keep"

    def __post_init__(self) -> None:
        """Refuse what no data could make right."""
        for name, smallest in _SMALLEST.items():
            value = getattr(self, name)
            if name not in _NO_COUNT or value != _NO_COUNT[name]:
                check_count(name, value, smallest)
        check_choice("sampler", self.sampler, SAMPLERS)
        if self.reweight not in ("auto", None):
            raise ValueError(f"reweight must be 'auto' or None; received {shown(self.reweight)}")
        if self.until not in ("converged", None):
            raise ValueError(f"until must be 'converged' or None; received {shown(self.until)}")
        if self.order_bias not in ("keep", "correct"):
            raise ValueError(f"order_bias must be 'keep' or 'correct'; received {shown(self.order_bias)}")
        if self.plus_one not in (True, False, "auto"):
            raise ValueError(f"plus_one must be True, False or 'auto'; received {shown(self.plus_one)}")
        is_probability = isinstance(self.expand, Real) and 0 < self.expand < 1
        if not (isinstance(self.expand, bool) or self.expand == "auto" or is_probability):
            raise ValueError(f"expand must be True, False, 'auto' or a probability; received {shown(self.expand)}")


DEFAULTS = RunOptions()

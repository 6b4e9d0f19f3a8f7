"""What a sampler is."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Self

from gpn_bayes._util.options import check_options, count, one_of, option, options_of

if TYPE_CHECKING:
    import numpy as np

    from gpn_bayes.mcmc.exact_posterior import ExactPosterior
    from gpn_bayes.mcmc.tables import ScoreTables
    from gpn_bayes.samplers.chains import MarkovChain


def thin_option() -> Any:
    """Return the option of samplers that walk: how far before each draw."""
    return option("auto", "Steps before each draw; auto is ten per variable.", count(1, "auto"))


def reweight_option() -> Any:
    """Return the option of samplers whose draws may be weighted from one score to another."""
    help_text = "auto draws under a quicker score where there is one (gp) and weights the draws; none doesn't."
    return option("auto", help_text, one_of("auto", None))


class Sampler(ABC):
    """How DAGs are drawn: given tables of scores, `chains` returns Markov chains, each with init, step, state, restore.

    A sampler of one's own is a subclass with a name and `chains`, which `gpn_bayes.sample` takes as ``sampler=``; all
    else has a default. See `gpn_bayes.samplers.MarkovChain`.

    Attributes
    ----------
    name : str
        What settings, reports and messages call it.
    move_names : tuple of str
        The moves of its chains, in the order of their counters.
    thin : int or "auto"
        Steps of a chain before each draw; "auto" for ten per variable.
    reweight : {"auto", None}
        Whether to draw under a quicker score, where the score offers one, and to weight the draws.
    independent : bool
        Whether draws don't depend on each other, so that there is nothing to tune or thin.
    outside : bool
        Whether it can draw parents from outside the candidates.
    max_nodes : int or None
        For how many variables it is, at most.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> gpn.samplers.Partition(temperatures=4)
    Partition(thin='auto', reweight='auto', temperatures=4, moves=None)
    >>> gpn.samplers.Order(bias="fix")
    Traceback (most recent call last):
    ValueError: bias must be 'keep' or 'correct'; received 'fix'

    What a run asks of a sampler:

    >>> sampler = gpn.samplers.Partition(thin=5)
    >>> sampler.steps(8), sampler.settle(8, outside=True) is sampler, sampler.takes_all(8, True, plus_one=False)
    (5, True, False)
    >>> sampler.coupled(4).temperatures, sampler.imputing() is sampler, sampler.max_nodes
    (4, True, None)
    >>> sampler.settings, len(sampler.move_names)
    ({'sampler': 'partition', 'temperatures': 1}, 8)
    >>> gpn.samplers.Order.with_options({"bias": ("correct", "keep"), "temperatures": (1, 1)}).bias
    'correct'
    >>> sampler.compiled[1], sampler.rehearse("walk")
    (('draws', 'walk'), None)

    And what it makes of tables of scores, here those of three variables:

    >>> from gpn_bayes.mcmc.tables import build_tables
    >>> scorer = gpn.scores.BGe().bind(gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk"]])
    >>> lists = [[1, 2], [0, 2], [0, 1]]
    >>> tables = build_tables(lists, [scorer.table(i, own) for i, own in enumerate(lists)])
    >>> (chain,) = sampler.chains(tables, np.zeros((3, 3), bool), 1)
    >>> rng = np.random.default_rng(1)
    >>> chain.init(rng)
    >>> block = chain.step(rng, 4, thin=5, tuning=False)
    >>> block.parents.shape, int(chain.info().counters[:, 0].sum())
    ((4, 3, 1), 20)
    >>> sampler.log_weights(block.parents[None]) is None, sampler.answers(tables, progressbar=False) is None
    (True, True)
    """

    name: ClassVar[str]
    independent: ClassVar[bool] = False
    outside: ClassVar[bool] = True
    thin: int | str = "auto"
    reweight: str | None = "auto"

    def __post_init__(self) -> None:
        """Check every option."""
        check_options(self)

    @property
    def move_names(self) -> tuple[str, ...]:
        """The moves of its chains, in the order of their counters."""
        return ()

    @property
    def max_nodes(self) -> int | None:
        """For how many variables it is, at most; None for any number."""
        return None

    @property
    def settings(self) -> dict[str, Any]:
        """What the settings of a posterior say of it, JSON-able; two that draw differently must differ here."""
        known = {"sampler": self.name} | ({"independent": True} if self.independent else {})
        built_in = type(self).__module__.startswith("gpn_bayes.samplers.")
        own = {} if built_in else {name: repr(value) for name, value in sorted(vars(self).items())}
        return known | ({"sampler_options": own} if own else {})

    def steps(self, n: int) -> int:
        """Return the steps of a chain before each draw of a DAG over n nodes."""
        return 10 * n if self.thin == "auto" else int(self.thin)

    def settle(self, n: int, outside: bool) -> "Sampler":
        """Return the sampler that draws DAGs over n nodes, with or without parents from outside the candidates.

        Raises
        ------
        ValueError
            If it can't.
        """
        if self.max_nodes is not None and n > self.max_nodes:
            raise ValueError(
                f"the {self.name} sampler takes at most {self.max_nodes} variables; received {n}: use 'partition'"
            )
        if outside and not self.outside:
            raise ValueError(f"the {self.name} sampler takes no parents from outside the candidates; use 'partition'")
        return self

    def takes_all(self, n: int, closed_form: bool, plus_one: bool) -> bool:
        """Return whether all others are a node's candidates by default, under scores with or without a closed form."""
        return False

    def imputing(self) -> "Sampler":
        """Return the sampler as it goes with missing values that are drawn along, if it does.

        Its chains must be `gpn_bayes.samplers.WalkingChain`.
        """
        raise ValueError(f"with missing='impute', sampler must be 'partition' or 'order'; received {self.name!r}")

    def coupled(self, temperatures: int) -> "Sampler | None":
        """Return the sampler with chains coupled to copies of themselves, for those that don't agree; None for none."""
        return None

    @abstractmethod
    def chains(
        self, tables: "ScoreTables", required: "np.ndarray", count: int, progressbar: bool = False
    ) -> "list[MarkovChain]":
        """Return chains that have not started yet.

        Parameters
        ----------
        tables : ScoreTables
            The scores of every node's parent sets.
        required : ndarray of bool, shape (n, n)
            Edges that every DAG has, rows parents.
        count : int
            How many chains.
        progressbar : bool
            Whether to show the progress of what must be computed first.
        """

    def log_weights(self, parents: "np.ndarray") -> "np.ndarray | None":
        """Return log weights that make draws, as parent bits, draws from the posterior; None if they are already."""
        return None

    def answers(self, tables: "ScoreTables", progressbar: bool) -> "ExactPosterior | None":
        """Return edge probabilities without Monte Carlo error, from a sampler that knows them."""
        return None

    @property
    def compiled(self) -> tuple[Any, tuple[str, ...]] | None:
        """The function that is compiled last, and the parts in which it can be compiled; None for none."""
        return None

    def rehearse(self, part: str) -> None:
        """Compile a part of `compiled` by using it."""
        raise ValueError(f"the {self.name} sampler has no parts to compile; received {part!r}")

    @classmethod
    def with_options(cls, given: Mapping[str, Any]) -> Self:
        """Return the sampler with those of some options that it has; the others must have their defaults.

        Parameters
        ----------
        given : mapping of str to (value, default)
            Options of all samplers, by name.
        """
        own = options_of(cls)
        for name, (value, default) in given.items():
            if name not in own and value != default:
                raise ValueError(f"{name} must go with another sampler; received sampler={cls.name!r}")
        return cls(**{name: value for name, (value, _) in given.items() if name in own})

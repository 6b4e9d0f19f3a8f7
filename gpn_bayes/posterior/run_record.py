"""How the draws of a posterior were made: its settings, checked once and then read by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, is_dataclass
from functools import cache
from types import NoneType
from typing import TYPE_CHECKING, Any, Self, get_args, get_origin, get_type_hints

if TYPE_CHECKING:
    from gpn_bayes.scores.base import Score

# What settings say of draws that were to be weighted to another score, but weren't.
INTERRUPTED = "interrupted"
_UNKNOWN = "unknown"


@dataclass(frozen=True)
class ScoreRecord:
    """A score by its name and parameters."""

    name: str
    parameters: dict[str, Any] = field(default_factory=dict)

    @property
    def title(self) -> str:
        """The score's name as its class has it, or its own where no class is registered under it."""
        from gpn_bayes.scores.registry import title

        return title(self.name)

    def __str__(self) -> str:
        """Return the score and its parameters."""
        arguments = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"{self.title}({arguments})" if arguments else self.title

    def make(self) -> "Score":
        """Return the score itself; a ValueError where name and parameters don't determine it."""
        from gpn_bayes.scores.recorded import from_parameters

        return from_parameters(self.name, self.parameters)


@dataclass(frozen=True)
class PriorRecord:
    """The prior of graphs, by the parameters of `gpn_bayes.scores.GraphPrior`; None where there were none."""

    kind: str = _UNKNOWN
    edge_penalty: float = 0.0
    log_odds: Any = None
    required: tuple[tuple[int, int], ...] = ()
    forbidden: tuple[tuple[int, int], ...] = ()
    tiers: tuple[float, ...] | None = None


@dataclass(frozen=True)
class SetsRecord:
    """How many parent sets there are, how many have a score, and what the others hold."""

    conceivable: int = 0
    scored: int = 0
    audited: int = 0
    neglected_mass: float = 0.0
    error: float = 0.0


@dataclass(frozen=True)
class SpaceRecord:
    """Where the candidates came from."""

    method: str = "all others"
    sets: SetsRecord = SetsRecord()


@dataclass(frozen=True)
class GapsRecord:
    """What became of missing values: how many were imputed, in how many runs, or how many rows were dropped."""

    imputed: int | None = None
    tables: int | None = None
    dropped: int = 0
    rows: int = 0
    rows_concerned: int = 0
    columns_concerned: int = 0


@dataclass(frozen=True)
class TargetsRecord:
    """The targets of an experiment, by name."""

    targets: tuple[str, ...] = ()


@dataclass(frozen=True)
class ExperimentsRecord:
    """What experiments did: with known targets ("perfect", "soft"), or in contexts of unknown ones ("unknown")."""

    kind: str
    experiments: tuple[TargetsRecord, ...] = ()
    contexts: tuple[dict[str, Any], ...] = ()
    target_probability: float | None = None
    target_penalty: float | None = None

    @property
    def unknown(self) -> bool:
        """Whether it isn't known what the experiments changed."""
        return self.kind == _UNKNOWN


@dataclass(frozen=True)
class ExcludedRecord:
    """Edges that can't be: those without a score, and those that the candidates given leave out."""

    score: tuple[tuple[int, int], ...] = ()
    candidates: tuple[tuple[int, int], ...] = ()


@dataclass(frozen=True)
class RunRecord:
    """How draws were made. Names are those of `gpn_bayes.sample`; what else there is says so.

    Attributes
    ----------
    score : ScoreRecord or None
        None where it wasn't recorded.
    sampler : str
        Its name.
    independent : bool
        Whether draws don't depend on each other; else they are those of Markov chains.
    candidates : SpaceRecord
        How the search space came about.
    planned_thin : int or None
        Where chains were thinned more, what they were to begin with.
    reweight : str or None
        None for draws under the score itself.
    order_bias : str or None
        "keep" or "correct", of draws that have one.
    converged : bool or None
        Whether chains agreed in time; None where nobody waited for that.
    interrupted : bool
        Whether chains were, by Ctrl-C.
    pareto_k : float or None
        The shape of the weights' tail.
    poor_scores : int
        How many scores are less precise than asked for.
    betas : tuple of float
        Of tempered chains.
    shares_of_moves : dict or None
        The share of the steps that each move took, where a user's own were among them.
    missing : GapsRecord
        What became of missing values.
    interventions : ExperimentsRecord or None
        None where all rows were merely observed.
    table : dict or None
        What was said of the table, by keyword of `gpn_bayes.Table`; None where it was read before.
    assumptions : tuple of str or None
        What the score assumes; None where it wasn't recorded.
    kinds, either_kind : str
        What the score took columns for, of a mixed table, and which could be either.
    impossible_pairs : tuple of pairs
        Variables that can't be joined.
    can_join : str
        What could join them, with the time that it takes where that is long.
    excluded : ExcludedRecord
        Edges that can't be.
    data_flags : tuple of dict or None
        What is odd in the data; None where these couldn't be looked at.
    examined : bool
        Whether the data were checked.

    Examples
    --------
    >>> record = RunRecord.read({"sampler": "order", "draws": 100, "score": {"name": "bge", "parameters": {}}})
    >>> record.independent, record.draws, record.tables, str(record.score)
    (False, 100, 1, 'BGe')
    >>> RunRecord.read({"draws": "many"})
    Traceback (most recent call last):
    ValueError: the setting draws must be a whole number; received 'many'
    """

    score: ScoreRecord | None = None
    sampler: str = _UNKNOWN
    independent: bool = False
    prior: PriorRecord = PriorRecord()
    max_parents: int | None = None
    draws: int = 0
    tune: int = 0
    chains: int = 0
    thin: int = 1
    planned_thin: int | None = None
    until: str | None = None
    temperatures: int = 1
    plus_one: Any = False
    random_seed: Any = None
    reweight: str | None = None
    order_bias: str | None = None
    candidates: SpaceRecord = SpaceRecord()
    converged: bool | None = None
    interrupted: bool = False
    pareto_k: float | None = None
    poor_scores: int = 0
    betas: tuple[float, ...] = ()
    shares_of_moves: dict[str, float] | None = None
    missing: GapsRecord = GapsRecord()
    row_weights: str | None = None
    interventions: ExperimentsRecord | None = None
    data_fingerprint: str | None = None
    table: dict[str, Any] | None = field(default_factory=dict)
    assumptions: tuple[str, ...] | None = None
    kinds: str = ""
    either_kind: str = ""
    impossible_pairs: tuple[tuple[int, int], ...] = ()
    can_join: str = ""
    excluded: ExcludedRecord = ExcludedRecord()
    data_flags: tuple[dict[str, Any], ...] | None = ()
    examined: bool = False

    @classmethod
    def read(cls, settings: Mapping[str, Any]) -> Self:
        """Return the record that settings are; refuse values of another type, and leave aside what nobody asks for.

        Parameters
        ----------
        settings : mapping
            As a run or a file has them, JSON-able.
        """
        known = dict(settings) | {"examined": "data_flags" in settings}
        record: Self = _read(cls, known, "the setting")
        return record

    @property
    def has_order_bias(self) -> bool:
        """Whether DAGs with many orders were drawn too often."""
        return self.order_bias == "keep"

    @property
    def was_cut_short(self) -> bool:
        """Whether Ctrl-C ended the run, or its weighting."""
        return self.interrupted or self.reweight == INTERRUPTED

    @property
    def is_imputed(self) -> bool:
        """Whether missing values were drawn along."""
        return self.missing.imputed is not None

    @property
    def tables(self) -> int:
        """On how many completed tables, each with as many chains, draws were made; 1 where on the same."""
        return self.missing.tables or 1

    @property
    def score_name(self) -> str:
        """The name of the score."""
        return _UNKNOWN if self.score is None else self.score.name

    @property
    def score_parameters(self) -> Mapping[str, Any]:
        """The parameters of the score."""
        return {} if self.score is None else self.score.parameters

    def score_title(self, unknown: str = _UNKNOWN) -> str:
        """Return the score's name as its class has it."""
        return unknown if self.score is None else self.score.title

    def score_text(self, unknown: str = _UNKNOWN) -> str:
        """Return the score and its parameters."""
        return unknown if self.score is None else str(self.score)

    @property
    def kinds_in_words(self) -> list[str]:
        """What the score took columns for: of a mixed table, and which columns could be either."""
        return [text for text in (self.kinds, self.either_kind) if text]


_IN_WORDS: dict[Any, str] = {
    int: "a whole number",
    float: "a number",
    str: "a text",
    bool: "true or false",
    tuple: "a list",
    dict: "a table of names and values",
    NoneType: "nothing",
}


@cache
def _types_of(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _read(kind: type, given: Mapping[str, Any], what: str) -> Any:
    """Return the dataclass of some values by name, of which it may leave some out; None stands for its default."""
    types = _types_of(kind)
    values = {}
    for own in fields(kind):
        value = given.get(own.name)
        if value is not None:
            values[own.name] = _typed(value, types[own.name], f"{what} {own.name}")
        elif own.name in given and NoneType in get_args(types[own.name]):
            values[own.name] = None
    try:
        return kind(**values)
    except TypeError:
        raise ValueError(f"{what} must have a name; received {given!r}") from None


def _typed(value: Any, kind: Any, what: str) -> Any:
    """Return a value of JSON as the type that it is to have."""
    origin, of = get_origin(kind), get_args(kind)
    if kind is Any:
        return value
    if NoneType in of:
        return _typed(value, next(own for own in of if own is not NoneType), what)
    if is_dataclass(kind) and isinstance(value, Mapping):
        return _read(kind, value, what)  # type: ignore[arg-type]  # a class, not an instance
    if origin is dict and isinstance(value, Mapping):
        return dict(value)
    if origin is tuple and isinstance(value, list | tuple):
        kinds = of[:1] * len(value) if of[-1] is Ellipsis else of
        if len(kinds) == len(value):
            return tuple(_typed(item, own, what) for item, own in zip(value, kinds, strict=True))
    # A truth value is a number to Python, but not here.
    elif kind in (int, float, str, bool) and isinstance(value, bool) is (kind is bool):
        if isinstance(value, (int, float) if kind is float else kind):
            return value
    words = _IN_WORDS[dict if is_dataclass(kind) else origin or kind]
    raise ValueError(f"{what} must be {words}; received {value!r}")

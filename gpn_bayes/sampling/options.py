"""What a run can be asked for: every option with its default and check, and what the command line says of it."""

from collections.abc import Mapping
from dataclasses import KW_ONLY, Field, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any

from gpn_bayes import samplers
from gpn_bayes._util.checks import check_choice, did_you_mean, shown
from gpn_bayes._util.options import KNOWLEDGE, Option, check_options, count, flag_of, one_of, option, options_of
from gpn_bayes.candidates.space import Space

# Longer values are left out of what a message tells to type.
_LONGEST_SHOWN = 60


@dataclass(frozen=True, eq=False)
class RunOptions:
    """The options of `gpn_bayes.sample` that define a run, checked as far as they can be without data.

    `gpn_bayes.sample` and ``gpn-bayes run`` take their defaults from here.

    Attributes
    ----------
    score : Score or str
        How to score a node given its parents.
    sampler : Sampler or str
        How to draw DAGs; a name is turned into the sampler.
    space : Space or None
        Which parents each variable may have; None for the default.
    prior : {"uniform", "fair"}, table of edge probabilities, or GraphPrior
        The graph prior.
    required, forbidden : edges (parent, child)
        Edges that must, or must not, be in a DAG.
    tiers : groups of names, mapping of names to numbers, or None
        No edge leads from a later tier to an earlier one.
    draws, tune : int
        DAGs to keep from each chain, and DAGs to discard before them.
    chains : int
        Number of independent chains.
    cores : int or None
        Threads; None for as many as there are processors.
    random_seed : int or None
        The seed of the random generators; None for a different run every time.
    until : {None, "converged"}
        Whether the length of the run depends on the convergence of its chains.

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

    score: Any = option(
        "bge",
        "How to score a variable given its parents: bge (linear relations), gp (unknown smooth ones, of numbers "
        "and categories), bdeu or k2 (categories), cg (numbers and categories, linear), or bic (any of these, as the "
        "data are).",
        panel="",
    )
    _: KW_ONLY
    sampler: Any = option(
        "auto", "exact (up to 17 variables), partition or order; auto is exact up to 16, else partition."
    )
    space: Any = None
    prior: Any = option(
        "uniform",
        "uniform, fair, or a CSV file of edge probabilities: a square table, rows parents, or the columns parent, "
        "child, probability.",
        panel=KNOWLEDGE,
    )
    required: Any = option(
        (),
        "A required edge, 'raf -> mek', or a CSV file with columns cause,effect; repeatable.",
        typed=list[str],
        panel=KNOWLEDGE,
    )
    forbidden: Any = option(
        (), "A forbidden edge, or a CSV file as for --required; repeatable.", typed=list[str], panel=KNOWLEDGE
    )
    tiers: Any = option(
        None,
        "CSV file with columns name,tier: no edge leads from a later tier to an earlier one.",
        typed=Path,
        panel=KNOWLEDGE,
    )
    draws: int = option(2000, "DAGs to keep of each chain.", count(1), typed=int)
    tune: int = option(1000, "DAGs to drop before, of each chain.", count(0), typed=int)
    chains: int = option(4, "Independent chains.", count(1), typed=int)
    cores: int | None = option(None, "Threads; all processors by default.", count(1, None), typed=int)
    random_seed: int | None = option(
        None, "The same seed gives the same results.", count(0, None), flag="--seed", typed=int
    )
    until: str | None = option(
        None,
        "converged stops early if the chains agree, and goes on, thinner and longer, if they don't.",
        one_of("converged", None),
    )

    def __post_init__(self) -> None:
        """Refuse what no data could make right."""
        check_options(self)
        object.__setattr__(self, "sampler", samplers.by_name(self.sampler))
        if self.space is None:
            object.__setattr__(self, "space", Space())
        elif not isinstance(self.space, Space):
            raise ValueError(f"space must be a gpn.Space; received {shown(self.space)}")

    def with_space(self, **changed: Any) -> "RunOptions":
        """Return the options with another search space."""
        return replace(self, space=replace(self.space, **changed))


DEFAULTS = RunOptions()
# Where options stand that are not arguments of `gpn_bayes.sample` themselves, by the class that has them: first the one
# that draws as before whatever the number of variables.
_HOLDERS: dict[str, Any] = {
    "space=gpn.Space": Space,
    "sampler=gpn.samplers.Auto": samplers.Auto,
    "sampler=gpn.samplers.Partition": samplers.Partition,
    "sampler=gpn.samplers.Order": samplers.Order,
}
# What options were called before they stood there.
_RENAMED = {"order_bias": "bias"}


def all_options() -> dict[str, tuple[Option, Any]]:
    """Return every option of a run that the command line has, by its name in Python, with its default.

    Examples
    --------
    >>> known = all_options()
    >>> known["temperatures"][1], known["max_parents"][0].help
    (1, 'Maximum number of parents per variable.')
    """
    kinds: list[Any] = [RunOptions, *samplers.BUILT_IN.values(), Space]
    return {
        own.name: (options_of(kind)[own.name], own.default)
        for kind in kinds
        for own in fields(kind)
        if own.name in options_of(kind)
    }


def nested(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return arguments of `gpn_bayes.sample`, given its options by name alone, as commands and files have them.

    Examples
    --------
    >>> nested({"draws": 500, "max_parents": 3, "temperatures": 4})["space"].max_parents
    3
    >>> nested({"temperatures": 4})["sampler"].name
    'partition'
    """
    left = dict(given)
    of_samplers = dict.fromkeys(name for kind in samplers.BUILT_IN.values() for name in options_of(kind))
    own = {name: (left.pop(name), all_options()[name][1]) for name in of_samplers if name in left}
    if own or isinstance(left.get("sampler"), str):
        asked = left.get("sampler", samplers.Auto.name)
        check_choice("sampler", asked, samplers.names())
        left["sampler"] = _sampler_with(asked, own).with_options(own)
    space = {name: left.pop(name) for name in options_of(Space) if name in left}
    return left | ({"space": Space(**space)} if space else {})


def _sampler_with(name: str, given: Mapping[str, tuple[Any, Any]]) -> type[samplers.Sampler]:
    """Return the sampler of a name; where "auto" lacks an option that was given, the only one that has it."""
    chosen = samplers.BUILT_IN[name]
    needed = {option for option, (value, default) in given.items() if value != default}
    if chosen is not samplers.Auto or needed <= options_of(chosen).keys():
        return chosen
    able = [kind for kind in samplers.BUILT_IN.values() if needed <= options_of(kind).keys()]
    if not able:
        called = " and ".join(flag_of(option, all_options()[option][0]) for option in sorted(needed))
        raise ValueError(f"options must be of one sampler; {called} are of different ones")
    return able[0]


def flags() -> dict[str, str]:
    """Return what the command line calls every option of a run and of a table, by its name in Python."""
    from gpn_bayes.data.table import TableKeywords

    of_tables = {name: f"--{name.replace('_', '-')}" for name in TableKeywords.__annotations__}
    return of_tables | {name: flag_of(name, own) for name, (own, _) in all_options().items()}


def check_keywords(given: Mapping[str, Any], sampler: Any = "auto") -> None:
    """Refuse what isn't among the keywords of a table: what has moved says where to, anything else what is close.

    Parameters
    ----------
    given : mapping
        The keywords.
    sampler : Sampler or str
        What was given beside them: an option of this sampler has moved there.

    Examples
    --------
    >>> check_keywords({"max_parents": 3})
    Traceback (most recent call last):
    ValueError: max_parents=3 is now space=gpn.Space(max_parents=3)
    >>> check_keywords({"wieghts": "n"})
    Traceback (most recent call last):
    ValueError: sample takes no argument 'wieghts': did you mean 'weights'?
    """
    from gpn_bayes.data.keywords import KEYWORDS, TableKeywords

    chosen = samplers.BUILT_IN[sampler]() if isinstance(sampler, str) and sampler in samplers.BUILT_IN else sampler
    for name, value in given.items():
        if name in TableKeywords.__annotations__:
            continue
        text = shown(value)
        text = text if len(text) <= _LONGEST_SHOWN else "…"
        new = _RENAMED.get(name, name)
        _refuse_beside(chosen, name, new, text)
        for holder, kind in _HOLDERS.items():
            if new in options_of(kind):
                raise ValueError(f"{name}={text} is now {holder}({new}={text})")
        if new in _fields(samplers.Partition):
            raise ValueError(f"{name} belong to a sampler: use sampler=gpn.samplers.Partition({name}={text})")
        if name in KEYWORDS:
            raise ValueError(f"{name} says how to read a table: use gpn.Table(data, {name}={text}) as data")
        known = [*(own.name for own in fields(RunOptions)), *TableKeywords.__annotations__]
        known += ["cache", "executor", "progressbar"]
        raise ValueError(f"sample takes no argument {name!r}{did_you_mean(name, known)}")


def _refuse_beside(sampler: Any, name: str, new: str, text: str) -> None:
    """Refuse an option that belongs to the sampler that was given, or that this sampler lacks."""
    if not isinstance(sampler, samplers.Sampler):
        return
    kind, built_in = type(sampler), type(sampler) in samplers.BUILT_IN.values()
    if new == "thin" and sampler.independent:
        raise ValueError(f"independent draws have no thinning; received {name}={text} with the {kind.__name__} sampler")
    if new in _fields(kind):
        default = {own.name: own.default for own in _fields(kind).values()}
        given = {own: shown(getattr(sampler, own)) for own in default if own != new}
        changed = {own: value for own, value in given.items() if value != shown(default[own])}
        arguments = ", ".join(f"{own}={value}" for own, value in (changed | {new: text}).items())
        raise ValueError(f"{name}={text} is now sampler={'gpn.samplers.' * built_in}{kind.__name__}({arguments})")
    if not built_in and new in options_of(samplers.Auto):
        raise ValueError(
            f"{name} must be an option of the sampler; received {name}={text}, which {kind.__name__} lacks"
        )


def _fields(kind: type[samplers.Sampler]) -> dict[str, Field[Any]]:
    """Return what a sampler is made of, by name."""
    return {own.name: own for own in fields(kind) if own.init} if is_dataclass(kind) else {}

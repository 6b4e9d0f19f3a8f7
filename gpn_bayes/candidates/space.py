"""The search space as a user asks for it."""

from dataclasses import dataclass
from numbers import Real
from typing import Any

from gpn_bayes._util.checks import shown
from gpn_bayes._util.options import KNOWLEDGE, by_name_only, check_options, count, one_of, option


def _check_expand(name: str, value: Any) -> None:
    is_probability = isinstance(value, Real) and 0 < float(value) < 1
    if not (isinstance(value, bool) or (isinstance(value, str) and value == "auto") or is_probability):
        raise ValueError(f"{name} must be True, False, 'auto' or a probability; received {shown(value)}")


@by_name_only
@dataclass(frozen=True, kw_only=True, eq=False)
class Space:
    """Which parents each variable may have.

    Parameters
    ----------
    candidates : dict, networkx.DiGraph, fitted estimator, str, list of str, or int, optional
        Candidate parents of each variable, at most 20 each, by name: ``{"erk": ["mek", "pka"], "raf": []}`` gives raf
        none, and leaves those not named with what they have by default. A graph names all there are: variables that
        aren't in it, or have no edge to them, have none. Or an estimate, whose edges make both their ends candidates of
        each other; or how to find them, up to 12 each: "pc", "dual-pc", "greedy" (forward selection under the score),
        "correlation", "distance-correlation", or several of these; or how many to begin with.
        By default the exact sampler takes all others, and MCMC too where they are at most 14. Beyond,
        those found by "pc" and "greedy", or only "greedy" for "gp" and for categories, for which other methods have no
        numbers; they are filled up by the score, to 14 of up to 27 variables under "bge" and fewer where there are more
        or scores take longer. Parents that aren't candidates have probability zero, unless `plus_one` lets them in.
    max_parents : int, optional
        Largest number of parents of a node. By default 5 for the "gp" score and no limit for others, except that
        scores of categories take as many as keep their time to minutes, and at least 3.
    plus_one : bool or "auto"
        Whether every variable may also have one parent that isn't among its candidates; "auto" for those variables
        whose candidates are found by a method or an estimate.
    expand : bool, float or "auto"
        Whether to draw in rounds before: parents from outside whose probability reaches 0.05, or the number given,
        become candidates, until a round finds no more. "auto" where `plus_one` is on. Under "gp" a short run under
        "bge" comes first, on tables of numbers.

    Raises
    ------
    ValueError
        For a value that is wrong whatever the data.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> gpn.Space(max_parents=3)
    Space(candidates=None, max_parents=3, plus_one='auto', expand='auto')
    >>> gpn.Space(plus_one="two")
    Traceback (most recent call last):
    ValueError: plus_one must be True, False or 'auto'; received 'two'
    """

    candidates: Any = option(
        None,
        "CSV file parent,child: the candidates of each child it names, at most 20, none if the parent is left empty; "
        "or how to find them: pc, dual-pc, greedy, correlation, distance-correlation, joined by +; or how many.",
        panel=KNOWLEDGE,
    )
    max_parents: int | None = option(
        None, "Maximum number of parents per variable.", count(0, None), typed=int, panel=KNOWLEDGE
    )
    plus_one: bool | str = option(
        "auto",
        "Whether a variable may have one parent from outside its candidates; by default if these were found.",
        one_of(True, False, "auto"),
        flag="--plus-one/--no-plus-one",
        typed=bool,
        panel=KNOWLEDGE,
    )
    expand: float | bool | str = option(
        "auto",
        "Probability at which such a parent becomes a candidate, 0.05 by default; 0 for never.",
        _check_expand,
        typed=float,
        panel=KNOWLEDGE,
    )

    def __post_init__(self) -> None:
        """Check every option."""
        check_options(self)

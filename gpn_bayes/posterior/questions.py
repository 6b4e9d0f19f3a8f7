"""Questions in plain text, ``raf -> mek`` and the like."""

from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from gpn_bayes._util.checks import did_you_mean, shown

# Longer signs first: "a -> b" is no question about a - b.
SIGNS = ("->", "~>", "<", "-")
_QUOTES = (('"', '"'), ("'", "'"), ("“", "”"))
FORMS = "'a -> b' (edge), 'a ~> b' (path), 'a - b' (edge either way) or 'a < b < c' (order)"


class Question(NamedTuple):
    """What is asked about which variables."""

    sign: str
    names: tuple[str, ...]

    def __str__(self) -> str:
        """Return the question as one would type it."""
        return f" {self.sign} ".join(self.names)


def read_question(text: str, names: Sequence[str], signs: Sequence[str] = SIGNS) -> Question:
    r"""Return the question that a text asks about the named variables.

    Signs with spaces around them are looked for first, so that names may hold the signs themselves. Names may stand in
    quotation marks.

    Parameters
    ----------
    text : str
        Such as "erk -> akt".
    names : sequence of str
        The variables.
    signs : sequence of str
        The signs allowed.

    Examples
    --------
    >>> read_question("TNF-alpha - IL-6", ["TNF-alpha", "IL-6"])
    Question(sign='-', names=('TNF-alpha', 'IL-6'))
    >>> read_question("erk->akt", ["akt", "erk"]).names
    ('erk', 'akt')
    >>> read_question("'β-carotene %' -> \"weight < 5\"", ["β-carotene %", "weight < 5"]).names
    ('β-carotene %', 'weight < 5')
    """
    if "→" in text and not any(set(own.names) <= set(names) for own in _splits(text, names, signs, spaced=False)):
        text = text.replace("→", "->")  # as reports write edges
    for spaced in (True, False):
        readings = {reading for reading in _splits(text, names, signs, spaced) if set(reading.names) <= set(names)}
        if len(readings) > 1:
            raise ValueError(f"a question must have one meaning; {shown(text)} has {len(readings)}: use spaces")
        if readings:
            (question,) = readings
            if len(set(question.names)) < len(question.names):
                raise ValueError(f"a question names each variable once; received {shown(text)}")
            return question
    raise ValueError(_complaint(text, names, signs))


def _splits(text: str, names: Sequence[str], signs: Sequence[str], spaced: bool) -> Iterator[Question]:
    """Yield every way to cut a text at a sign: an order at all places, all else at one."""

    def name(part: str) -> str:
        part = part.strip()
        quoted = len(part) > 2 and (part[0], part[-1]) in _QUOTES and part not in names
        return part[1:-1] if quoted else part

    for sign in signs:
        mark = f" {sign} " if spaced else sign
        parts = text.split(mark)
        if sign == "<" and len(parts) > 2:
            yield Question(sign, tuple(map(name, parts)))
        for cut in range(1, len(parts)):
            yield Question(sign, (name(mark.join(parts[:cut])), name(mark.join(parts[cut:]))))


def _complaint(text: str, names: Sequence[str], signs: Sequence[str]) -> str:
    """Return what is wrong with a text that can't be read: an unknown name, or no sign."""
    # A hyphen without spaces is more likely part of a name than a sign.
    tight = [sign for sign in signs if sign != "-"]
    for split in chain(_splits(text, names, signs, spaced=True), _splits(text, names, tight, spaced=False)):
        if all(split.names):
            unknown = next(name for name in split.names if name not in names)
            hint = did_you_mean(unknown, names) or f" (they are {_some(names)})"
            return f"every name must be one of the variables; {unknown!r} is not{hint}"
    return f"a question must read {FORMS}; received {shown(text)}"


def _some(names: Sequence[str]) -> str:
    listed = ", ".join(names[:12])
    return listed if len(names) <= 12 else f"{listed}, … {len(names)} in all"

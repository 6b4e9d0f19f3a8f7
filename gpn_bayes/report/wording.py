"""The answers of a posterior in words: which pairs are joined, which way and by what, and what is open."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from gpn_bayes.plots.links import Link, links
from gpn_bayes.posterior.directions import JOINED, Ground
from gpn_bayes.posterior.draws import Draws
from gpn_bayes.posterior.questions import Question
from gpn_bayes.posterior.run_record import RunRecord

# A pair that isn't joined is called open down to this probability.
OPEN = 0.1
_LISTED = 8


class Phrases(NamedTuple):
    """How answers speak of the shares of networks that have an edge.

    Attributes
    ----------
    share : str
        What such a share is.
    likelier, undetermined : (str, str)
        Of the direction of a pair, and of several, whose number stands in the braces.
    undecided : str
        Of pairs that are joined in some of them.
    edges : str
        How many edges they have on average, whose number stands in the braces.
    none : str
        That there are none.
    """

    share: str
    likelier: tuple[str, str]
    undetermined: tuple[str, str]
    undecided: str
    edges: str
    none: str


def _of_draws(who: str) -> Phrases:
    """Return how answers speak of draws, given what determines directions."""
    return Phrases(
        share="probability",
        likelier=("One direction is likelier than the other:", "One direction is likelier for {}:"),
        undetermined=(f"{who} don't determine its direction:", f"{who} don't determine the direction of {{}}:"),
        undecided="Open whether they are joined:",
        edges="A network drawn from the posterior has {:.1f} edges on average.",
        none="No edge was ever drawn.",
    )


RESAMPLES = Phrases(
    share="frequency",
    likelier=("One direction is more frequent than the other:", "One direction is more frequent for {}:"),
    undetermined=("The resamples don't agree on its direction:", "The resamples don't agree on the direction of {}:"),
    undecided="Joined in some resamples only:",
    edges="The learner found {:.1f} edges in a resample on average.",
    none="No edge was ever found.",
)


def title(names: Sequence[str]) -> str:
    """Return the heading of a report."""
    return f"Network of {counted(len(names), 'variable')}"


def subtitle(post: Draws, data: Any = None) -> str:
    """Return in one line what was computed."""
    chains, draws = post.log_score.shape
    rows = getattr(post.data if data is None else data, "n_rows", None)
    known = [
        None if rows is None else counted(rows, "row"),
        f"{post.record.score_title()} score",
        f"{post.record.sampler} sampler",
        f"{chains} × {draws:,} networks drawn",
    ]
    return " · ".join(text for text in known if text)


def changes(probabilities: pd.DataFrame) -> list[dict[str, Any]]:
    """Return what experiments of unknown targets changed, as sentences like those of `answers`.

    Parameters
    ----------
    probabilities : DataFrame
        Rows are contexts and columns variables; see `GraphPosterior.target_probabilities`.

    Examples
    --------
    >>> found = pd.DataFrame({"a": [0.99, 0.2], "b": [0.95, 0.1]}, index=["drug", "heat"])
    >>> [change["text"] for change in changes(found)]
    ['drug probably changed how these depend on their parents: a, b.', 'heat probably changed nothing.']
    """
    sentences = []
    for context, row in probabilities.iterrows():
        changed = [str(name) for name, value in row.items() if value >= JOINED]
        if changed:
            text = f"{context} probably changed how these depend on their parents: {', '.join(changed)}."
        else:
            text = f"{context} probably changed nothing."
        sentences.append({"text": text, "links": [], "more": 0})
    return sentences


def answers(
    probabilities: np.ndarray,
    names: Sequence[str],
    record: RunRecord | None = None,
    phrases: Phrases | None = None,
    decide: Callable[[list[tuple[int, int]]], Sequence[Ground]] | None = None,
) -> list[dict[str, Any]]:
    """Return what the edge probabilities say, as sentences, each with the links it is about.

    Parameters
    ----------
    probabilities : ndarray of shape (n, n)
        Edge probabilities, rows parents.
    names : sequence of str
        The variables.
    record : RunRecord, optional
        That of the run: where its prior or its candidates favour edges, neither they nor the data determine what is
        open.
    phrases : Phrases, optional
        How to speak of the probabilities; by default as of those of draws.
    decide : callable, optional
        Takes pairs (parent, child) whose direction is clear, and returns what decides it: see
        `gpn_bayes.posterior.directions.grounds`.

    Returns
    -------
    list of dict
        Each with `text`, `links` (texts such as "a → b 0.97"; the probability of a pair without an arrow is that it is
        joined either way), and `more`, how many links aren't listed.

    Examples
    --------
    >>> [answer["text"] for answer in answers(np.array([[0.0, 0.97], [0.02, 0.0]]), ["a", "b"])]
    ['1 of 1 pair of variables is joined with a probability of 0.9 or more.', 'Its direction is clear:']
    """
    ranked = sorted(links(probabilities, OPEN), key=lambda link: -link.probability)
    sure = [link for link in ranked if link.probability >= JOINED]
    pairs = len(names) * (len(names) - 1) // 2
    if phrases is None:
        phrases = _of_draws(
            "Data and prior knowledge" if (record is not None and _favours_edges(record)) else "The data"
        )
    sentences = [_overview(len(sure), len(ranked) - len(sure), pairs, phrases.share)]
    sentences += _decided(sure, probabilities, names, decide) + _directions(sure, probabilities, names, phrases)
    undecided = [link for link in ranked if link.probability < JOINED]
    if undecided:
        sentences.append(_listed(phrases.undecided, undecided, names))
    if not ranked:
        sentences += _nothing(probabilities, names, phrases.none)
    elif pairs > 1:
        sentences.append({"text": phrases.edges.format(probabilities.sum()), "links": [], "more": 0})
    return sentences


def questions(probabilities: np.ndarray, names: Sequence[str]) -> list[dict[str, Any]]:
    """Return questions to start with: the likeliest edge, and a path and an order along likely edges.

    Each has its `text`, its `sign`, and the `pair` of variables that it is about, by their numbers.

    Examples
    --------
    >>> found = questions(np.array([[0.0, 0.97], [0.02, 0.0]]), ["a", "b"])
    >>> [question["text"] for question in found], found[1]["sign"], found[1]["pair"]
    (['a -> b', 'a ~> b', 'a - b', 'a < b'], '~>', [0, 1])
    """
    n = len(names)
    i, j = divmod(int(probabilities.argmax()), n)
    if i == j:  # nothing was ever drawn
        i, j = 0, 1
    onwards = probabilities[j].copy()
    onwards[[i, j]] = -1.0
    end = int(onwards.argmax()) if n > 2 and onwards.max() > 0 else j
    return [
        {"text": str(Question(sign, (names[i], names[k]))), "sign": sign, "pair": [i, k]}
        for sign, k in (("->", j), ("~>", end), ("-", j), ("<", end))
    ]


def counted(number: int, noun: str) -> str:
    """Return a number with its noun.

    Examples
    --------
    >>> counted(1, "row"), counted(1200, "row")
    ('1 row', '1,200 rows')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def _overview(sure: int, undecided: int, pairs: int, share: str) -> dict[str, Any]:
    be = "is" if sure == 1 or pairs == 1 else "are"
    all_pairs = f"{counted(pairs, 'pair')} of variables"
    text = f"{sure or 'None'} of {all_pairs} {be} joined with a {share} of {JOINED:g} or more"
    rest = pairs - sure - undecided
    if not sure and not undecided:
        text += f"; {'it lies' if pairs == 1 else 'all lie'} below {OPEN:g}"
        return {"text": f"{text}.", "links": [], "more": 0}
    if undecided:
        text += f"; {undecided} {'lies' if undecided == 1 else 'lie'} between {OPEN:g} and {JOINED:g}"
    if rest:
        text += f"; {'the other' if rest == 1 else f'the other {rest:,}'} below {OPEN:g}"
    return {"text": f"{text}.", "links": [], "more": 0}


def _favours_edges(record: RunRecord) -> bool:
    """Tell whether a run treated some edges otherwise than others, before it saw the data."""
    imposed = any(i != j for i, j in (*record.prior.required, *record.prior.forbidden))
    return imposed or record.prior.log_odds is not None or record.candidates.method == "given"


def _decided(
    sure: list[Link],
    p: np.ndarray,
    names: Sequence[str],
    decide: Callable[[list[tuple[int, int]]], Sequence[Ground]] | None,
) -> list[dict[str, Any]]:
    """Say of the joined pairs with a clear direction what decides it."""
    clear = {(link.parent, link.child): link for link in sure if link.direction == "clear"}
    if not clear:
        return []
    decided = [Ground("", list(clear), "{} is clear", "")] if decide is None else decide(list(clear))
    sentences = []
    for ground in decided:
        which = "its direction" if len(sure) == 1 else f"the direction of {_some(len(ground.pairs), len(sure))}"
        own = [clear[pair] for pair in ground.pairs]
        sentences.append(_listed(f"{ground.sentence(which)}:", own, names, p))
    return sentences


def _some(count: int, total: int) -> str:
    return f"all {count}" if count == total else f"{count} of these"


def _directions(sure: list[Link], p: np.ndarray, names: Sequence[str], phrases: Phrases) -> list[dict[str, Any]]:
    """Say of the joined pairs which direction is the likelier, or that none is."""
    openings = {"likelier": phrases.likelier, "open": phrases.undetermined}
    sentences = []
    for kind, (alone, of_some) in openings.items():
        own = [link for link in sure if link.direction == kind]
        if own:
            text = alone if len(sure) == 1 else of_some.format(_some(len(own), len(sure)))
            sentences.append(_listed(text, own, names, None if kind == "open" else p))
    return sentences


def _listed(text: str, chosen: list[Link], names: Sequence[str], p: np.ndarray | None = None) -> dict[str, Any]:
    """List pairs with the probability that they are joined; given that of every edge, as arrows with the edge's own."""
    shown = [
        f"{names[own.parent]} – {names[own.child]} {own.probability:.2f}"
        if p is None
        else f"{names[own.parent]} → {names[own.child]} {p[own.parent, own.child]:.2f}"
        for own in chosen[:_LISTED]
    ]
    return {"text": text, "links": shown, "more": len(chosen) - len(shown)}


def _nothing(probabilities: np.ndarray, names: Sequence[str], none: str) -> list[dict[str, Any]]:
    """Say which pair comes closest where none is worth a line."""
    ranked = sorted(links(probabilities, 0.0), key=lambda link: -link.probability)
    if not ranked:
        return [{"text": none, "links": [], "more": 0}]
    return [_listed("The pair that comes closest:", ranked[:1], names)]

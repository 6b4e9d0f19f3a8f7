"""What differs between the pages of a posterior, of a bootstrap and of one graph: parts, words and columns."""

from typing import Any, NamedTuple

# Every column that a table of edges may have, after parent and child: its heading, and its class in the style sheet.
_COLUMNS = {
    "mcse": ("± error", "number wide"),
    "ess": ("Effective draws", "number wide"),
    "r_hat": ("R-hat", "number wide"),
    "status": ("Status", "wide"),
    "evidence": ("Evidence", "wide"),
    "type": ("Type", "wide"),
}


class Kind(NamedTuple):
    """A kind of page.

    Attributes
    ----------
    name : str
        "posterior", "bootstrap" or "estimate".
    parts : frozenset of str
        The parts of the template that it has, of those that some pages lack.
    texts : dict of str
        What the template says where pages differ.
    words : dict of str
        The same for scripts.
    columns : dict
        Of the table of edges: `further`, the keys after parent and child; `csv`, all that are downloaded; `sort` and
        `descending`, how it is sorted at first.
    headings : dict of (str, str)
        The heading of every column, and its class.
    """

    name: str
    parts: frozenset[str]
    texts: dict[str, str]
    words: dict[str, str]
    columns: dict[str, Any]
    headings: dict[str, tuple[str, str]]


def _columns(further: list[str], csv: list[str], sort: str, number: str = "") -> tuple[dict[str, Any], dict[str, Any]]:
    headings = {"parent": ("Parent", ""), "child": ("Child", "")}
    # The first number has the name that the page gives it, and is shown on phones too.
    headings |= {key: _COLUMNS[key] if key in _COLUMNS else (number, "number") for key in further}
    return {"further": further, "csv": csv, "sort": sort, "descending": sort == further[0]}, headings


def _shares(share: str, most: str) -> dict[str, str]:
    """Return the texts of pages that are about shares of networks."""
    return {
        "start": "ask",
        "start_label": "questions",
        "without_scripts": "Network, table and questions need JavaScript; answers don't.",
        "answers_title": "Answers",
        "share": share,
        "most": most,
        "sorted_by": share,
        "clear": "clear direction",
        "wider": f"Wider and stronger: more {most}.",
        "caveats_title": "",
    }


def _posterior() -> Kind:
    further = ["probability", "mcse", "ess", "r_hat", "status"]
    own = {
        "without_scripts": "Network, table, questions and effects need JavaScript; answers and diagnostics don't.",
        "ground": "sampling",
        "ground_label": "Figures",
        "trust_title": "What the numbers rest on",
    }
    words = {
        "share": "probability",
        "most": "probable",
        "never": "in none of the draws",
        "always": "in all draws",
    }
    columns = _columns(further, ["parent", "child", *further], "probability", "Probability")
    parts = frozenset({"ask", "shares", "undirected", "what-if", "sampling"})
    return Kind("posterior", parts, _shares("probability", "probable") | own, words, *columns)


def _bootstrap() -> Kind:
    further = ["probability", "mcse", "status"]
    own = {
        "ground": "caveats",
        "ground_label": "What they are",
        "trust_title": "What the numbers rest on",
        "caveats_title": "What the frequencies are",
    }
    words = {
        "share": "frequency",
        "most": "frequent",
        "never": "in none of the resamples",
        "always": "in all resamples",
    }
    columns = _columns(further, ["parent", "child", *further], "probability", "Frequency")
    parts = frozenset({"ask", "shares", "undirected", "caveats"})
    return Kind("bootstrap", parts, _shares("frequency", "frequent") | own, words, *columns)


POSTERIOR, BOOTSTRAP = _posterior(), _bootstrap()


def estimate_kind(weight: str, evidence: bool, undirected: bool) -> Kind:
    """Return the kind of page of one graph.

    Parameters
    ----------
    weight : str
        What to call the weights of edges; empty where there are none.
    evidence : bool
        Whether edges have words for their evidence.
    undirected : bool
        Whether some edges have no direction.

    Examples
    --------
    >>> kind = estimate_kind("worth", True, False)
    >>> kind.columns["further"], "ask" in kind.parts
    (['weight', 'evidence', 'type'], False)
    """
    further = [*(["weight"] if weight else []), *(["evidence"] if evidence else []), "type"]
    texts = {
        "start": "net",
        "start_label": "network",
        "without_scripts": "Network and table need JavaScript; the rest doesn't.",
        "answers_title": "Estimate",
        "share": "",
        "most": "",
        "sorted_by": weight or "name",
        "clear": "directed edge",
        "wider": "",
        "ground": "caveats",
        "ground_label": "What it is",
        "trust_title": "What the graph rests on",
        "caveats_title": "What this graph is",
    }
    words = {"share": "", "most": "", "weight": weight}
    csv = ["parent", "child", "type", *(["weight"] if weight else [])]
    columns, headings = _columns(further, csv, "weight" if weight else "parent", weight.capitalize())
    parts = frozenset({"caveats", *(["undirected"] if undirected else [])})
    return Kind("estimate", parts, texts, words, columns, headings)

"""A fitted learner as reports and notebooks show it: its edges, what its weights are, and what to keep in mind."""

import inspect
from typing import Any

from gpn_bayes import graphs, scores
from gpn_bayes.estimators.edge_tables import edge_table
from gpn_bayes.posterior.diagnostics import NETWORK_ASSUMPTIONS
from gpn_bayes.posterior.directions import any_known, is_equivalent, known_to_learner
from gpn_bayes.report import FittedGraph
from gpn_bayes.report.summaries import graph_cell
from gpn_bayes.scores.mixed import kinds_in_words

_WORTH = "The worth of an edge is the loss in log score without it."
_COEFFICIENT = "The weight of an edge is its coefficient in the equation of the child."
_SIZE = "The weight of an edge is the size of the parent's part in the equation of the child."
_NOT_PROVED = "The search doesn't prove that no graph scores higher."
_INTERRUPTED = "The search was interrupted: this is the best graph until then."
_UNITS = (
    "With a squared loss, directions depend on the units of the variables: on standardised columns the learner finds "
    "another graph."
)


def describe(learner: Any, score: Any = None, log_score: float | None = None) -> FittedGraph:
    """Return what a report shows of a fitted learner.

    Parameters
    ----------
    learner : GraphEstimator
        Fitted.
    score, log_score : optional
        A score and the graph's value, for a learner that maximises none.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> fitted = describe(gpn.estimators.HillClimbing(score="bge").fit(data))
    >>> fitted.learner, fitted.weight, fitted.score, len(fitted.edges)
    ('HillClimbing', 'worth', 'BGe', 2)
    """
    maximises = hasattr(learner, "log_score_")
    if maximises:
        score, log_score = learner._own_score, learner.log_score_
    edges = edge_table(learner)
    weight = "" if "weight" not in edges else "worth" if maximises else "weight"
    settings = {name: value for name, value in learner.get_params(deep=False).items() if name != "progressbar"}
    series = hasattr(learner, "lagged_graph_")
    bound = scores.by_name(learner._own_score).bind(learner._data) if maximises and learner._data is not None else None
    return FittedGraph(
        learner=type(learner).__name__,
        names=_nodes(learner),
        edges=edges,
        settings=settings,
        weight=weight,
        meaning=_meaning(learner, weight),
        evidence=maximises,
        data=learner._data,
        score="" if score is None else type(scores.by_name(score)).__name__,
        log_score=log_score,
        facts=_facts(learner, maximises),
        caveats=_caveats(learner),
        kinds="" if bound is None else kinds_in_words(bound, learner._data),
        assumptions=() if bound is None else _score_assumptions(learner, bound),
        # The rows of a series are anything but independent.
        network=NETWORK_ASSUMPTIONS[:-1] if series else NETWORK_ASSUMPTIONS,
        call=_call(learner),
        seeded="random_state" not in settings or settings["random_state"] is not None,
    )


def learner_cell(learner: Any) -> str:
    """Return what a notebook shows of the graph of a fitted learner, as HTML."""
    weight = "worth" if hasattr(learner, "log_score_") else "weight"
    return graph_cell(f"Graph of {type(learner).__name__}", _nodes(learner), edge_table(learner), weight)


def _nodes(learner: Any) -> tuple[str, ...]:
    """Return the nodes of the graph that is shown: of a series, variables at each time."""
    shown = getattr(learner, "lagged_graph_", learner.graph_)
    return tuple(str(name) for name in shown.nodes)


def _meaning(learner: Any, weight: str) -> str:
    """Return what weights are, given what they are called."""
    if weight == "worth":
        return _WORTH
    # The sizes of functions have no sign; coefficients do.
    nonlinear = type(learner).__name__ == "NOTEARSMLP" or learner.get_params().get("model") == "mlp"
    return "" if not weight else _SIZE if nonlinear else _COEFFICIENT


def _facts(learner: Any, maximises: bool) -> tuple[str, ...]:
    """Return what is known of the search."""
    facts = [_INTERRUPTED] if getattr(learner, "interrupted_", False) else []
    gap = getattr(learner, "gap_", None)
    if gap is not None:
        facts.append(proof_in_words(gap, learner.searched_up_to_, limit_of(learner)))
    elif maximises:
        facts.append(_NOT_PROVED)
    return tuple(facts)


def proof_in_words(gap: float, up_to: int | None, limit: int | None = None) -> str:
    """Return what an exact search proved, and of which graphs.

    Parameters
    ----------
    gap : float
        How far below the best score the graph may be.
    up_to : int or None
        Up to which number of parents all sets were searched, where larger ones weren't; None where all were.
    limit : int, optional
        The most parents that the user allowed, where that is a limit.

    Examples
    --------
    >>> proof_in_words(0.0, None)
    'Proved: no graph scores higher.'
    >>> proof_in_words(0.0, 3)
    "No graph with at most 3 parents per variable scores higher; larger sets weren't all searched."
    >>> proof_in_words(0.0, None, limit=3)
    'Proved: no graph with at most 3 parents per variable scores higher.'
    """
    most = limit if up_to is None else up_to
    those = "" if most is None else f" with at most {most} parent{'s' * (most != 1)} per variable"
    if up_to is not None:
        best = f"No graph{those} scores higher" if gap == 0 else f"At most {gap:.3f} below the best graph{those}"
        return f"{best}; larger sets weren't all searched."
    if gap == 0:
        return f"Proved: no graph{those} scores higher."
    return f"At most {gap:.3f} below the best {f'graph{those}' if those else 'score'}."


def limit_of(learner: Any) -> int | None:
    """Return the most parents that the user of a fitted learner allowed, where that is a limit."""
    stated, largest = getattr(learner, "max_parents", None), learner.n_features_in_ - 1
    return stated if stated is not None and stated < largest else None


def _caveats(learner: Any) -> tuple[str, ...]:
    caveats = []
    if getattr(learner, "diagnostics_", {}).get("hinges_on_scale"):
        caveats.append(_UNITS)
    both_ways = int(((learner.adjacency_ != 0) & (learner.adjacency_.T != 0)).sum()) // 2
    if both_ways:
        caveats.append(f"{both_ways} of its edges have no direction: the tests that were made don't determine it.")
    return tuple(caveats)


def _score_assumptions(learner: Any, scorer: scores.Scorer) -> tuple[str, ...]:
    """Return what the learner's score assumes, and how many directions it leaves open."""
    open_directions = []
    if is_equivalent(scorer.assumptions):
        known = known_to_learner(learner.get_params(deep=False), scorer.names)
        if scorer.impossible is not None:
            known["the score"] = scorer.impossible
        pattern = graphs.mpdag(learner.adjacency_, any_known(known, len(scorer.names)))
        count = int((pattern & pattern.T).sum()) // 2
        if count:
            edges = int(learner.adjacency_.sum())
            open_directions = [f"In this graph, that leaves open the direction of {count} of {edges} edges."]
    return (*scorer.assumptions, *open_directions)


def _call(learner: Any) -> str | None:
    """Return the call that fits it again, given the same table; None where its settings don't tell all of it."""
    own = type(learner).__module__.startswith("gpn_bayes.estimators.")
    if not own or learner._data is None or learner._data.table is None:
        return None
    given = []
    for name, parameter in inspect.signature(type(learner)).parameters.items():
        value = learner.get_params(deep=False)[name]
        if name == "progressbar" or _same(value, parameter.default):
            continue
        if isinstance(value, scores.Score):
            given.append(f"{name}=gpn.scores.{value!r}")
        elif _is_plain(value):
            given.append(f"{name}={value!r}")
        else:
            return None
    fit = f"est = gpn.estimators.{type(learner).__name__}({', '.join(given)}).fit(df)"
    return f"import gpn_bayes as gpn\n\n{fit}"


def _same(value: Any, default: Any) -> bool:
    return value is default or (type(value) is type(default) and _is_plain(value) and value == default)


def _is_plain(value: Any) -> bool:
    """Tell whether Python reads what it writes of a value."""
    if isinstance(value, list | tuple):
        return all(_is_plain(own) for own in value)
    if isinstance(value, dict):
        return all(_is_plain(own) for pair in value.items() for own in pair)
    return value is None or type(value) in (bool, int, float, str)

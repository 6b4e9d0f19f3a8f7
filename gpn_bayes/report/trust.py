"""What the numbers rest on: whether sampling has converged, with the figures behind it; assumptions; the data."""

from typing import Any

import numpy as np

from gpn_bayes._util.effective_size import WEIGHT_ESS_LIMIT
from gpn_bayes.posterior.diagnostics import (
    DATA_LIGHTS,
    EDGE_ESS_LIMIT,
    ESS_LIMIT,
    R_HAT_POOR,
    Diagnostics,
    diagnose,
    pareto_k_limit,
)
from gpn_bayes.posterior.draws import Draws
from gpn_bayes.report.wording import counted
from gpn_bayes.sampling.flags import in_both

# Points of a trace that are shown of each chain.
_TRACE_POINTS = 200


def trust_of(post: Draws) -> dict[str, Any]:
    """Return what the numbers of a posterior rest on.

    Returns
    -------
    dict
        Of the sampling: `verdict` ("good", "caution" or "poor"), its `heading`, a `summary` of one sentence, `warnings`
        that say what to do, in Python and on the command line, `figures` (name, value, what it should be, whether it
        is, what it means) and `trace`, the log scores of every chain, thinned; None for independent draws. Of the rest:
        `assumptions`, `data_verdict` ("neutral" or "caution"), `data_heading`, `kinds` of columns where the table mixes
        them, `either_kind`, those that could be either, and `flags`.
    """
    diagnostics = diagnose(post)
    return {
        "verdict": diagnostics.verdict,
        "heading": diagnostics.heading,
        "summary": diagnostics.summary,
        # Whoever reads a report may have neither written the script nor typed the command.
        "warnings": [in_both(text) for text in diagnostics.warnings()],
        "figures": [*_chain_figures(diagnostics), *_weight_figures(diagnostics), *_score_figures(diagnostics)],
        "trace": None if post.record.independent else _trace(post.log_score),
        "assumptions": [_arrow(text) for text in diagnostics.assumptions],
        "data_verdict": DATA_LIGHTS[diagnostics.data_verdict],
        "data_heading": diagnostics.data_heading,
        "kinds": post.record.kinds,
        "either_kind": in_both(post.record.either_kind),
        "flags": [in_both(flag.message) for flag in diagnostics.data_flags],
    }


def _figure(name: str, value: str, wanted: str, fine: bool | None, meaning: str) -> dict[str, Any]:
    return {"name": name, "value": value, "wanted": wanted, "fine": fine, "meaning": meaning}


def _chain_figures(found: Diagnostics) -> list[dict[str, Any]]:
    """Return the figures of chains; independent draws have none but their number."""
    drawn = _figure("Networks drawn", f"{found.draws:,}", "", None, f"in {counted(found.chains, 'chain')}")
    if found.independent:
        return [drawn | {"meaning": "drawn independently of each other"}]
    several = found.chains > 1
    r_hat = _figure(
        "R-hat of the log score",
        _told(found.r_hat, 3),
        f"at most {R_HAT_POOR:g}",
        None if np.isnan(found.r_hat) else found.r_hat <= R_HAT_POOR,
        "1 where all chains have the same log scores, which says little of single edges",
    )
    gap = _figure(
        "Largest gap between chains",
        f"{found.largest_gap:.3f}" if several else "–",
        f"at most {found.gap_limit:.2f}" if several else "",
        found.largest_gap <= found.gap_limit if several else None,
        f"in the probability of {_arrow(found.largest_gap_edge)}" if several else "takes two chains or more",
    )
    ess = _figure(
        "Effective draws of the log score",
        _told(found.ess, 0),
        f"at least {ESS_LIMIT}",
        None if np.isnan(found.ess) else found.ess >= ESS_LIMIT,
        "how many independent draws would tell as much",
    )
    # Edges are what is asked for; the log score may be alike in chains that disagree about them.
    figures = [drawn, gap, r_hat, ess]
    if np.isnan(found.edge_ess):
        return figures
    slowest = _figure(
        "Effective draws of the slowest edge",
        _told(found.edge_ess, 0),
        f"at least {EDGE_ESS_LIMIT}",
        found.edge_ess >= EDGE_ESS_LIMIT,
        f"of {_arrow(found.edge_ess_edge)}",
    )
    return [*figures, slowest]


def _weight_figures(found: Diagnostics) -> list[dict[str, Any]]:
    """Return the figures of weights, where draws are weighted."""
    if found.reweighted != "yes" and found.weight_share > 1 - 1e-9:
        return []
    share = _figure(
        "Worth of the weighted draws",
        f"{found.weight_share:.0%}",
        f"at least {WEIGHT_ESS_LIMIT:.0%}",
        found.weight_share >= WEIGHT_ESS_LIMIT,
        f"{found.weight_ess:,.0f} draws of equal weight would tell as much",
    )
    if np.isnan(found.pareto_k):
        return [share]
    limit = pareto_k_limit(found.draws)
    tail = _figure(
        "Pareto k of the weights",
        f"{found.pareto_k:.2f}",
        f"at most {limit:.2f}",
        found.pareto_k <= limit,
        "how heavy the tail of the largest weights is",
    )
    return [share, tail]


def _score_figures(found: Diagnostics) -> list[dict[str, Any]]:
    """Return the figures of scores, where these are estimates."""
    if found.score_error == 0:
        return []
    meaning = "95% are below; all errors count them in"
    if np.isnan(found.score_error):
        meaning = "approximations; reported errors don't include this"
    return [
        _figure("Errors of the scores", _told(found.score_error, 3), "", None, meaning),
        _figure("Imprecise scores", f"{found.poor_scores:,}", "0", found.poor_scores == 0, "of drawn parent sets"),
    ]


def _told(value: float, decimals: int) -> str:
    return "unknown" if np.isnan(value) else f"{value:,.{decimals}f}"


def _arrow(text: str) -> str:
    return text.replace(" -> ", " → ").replace(" <- ", " ← ")


def _trace(log_score: np.ndarray) -> list[list[float]]:
    """Return every so manieth log score of each chain."""
    step = -(-log_score.shape[1] // _TRACE_POINTS)
    return [[round(float(value), 3) for value in chain[::step]] for chain in log_score]

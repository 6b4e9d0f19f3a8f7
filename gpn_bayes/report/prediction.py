"""The section of a report on how well it predicts, beside other posteriors of the same table."""

from html import escape
from typing import Any

import numpy as np

from gpn_bayes.posterior.comparing import Comparison

# Differences of more standard errors are called clear.
_CLEAR = 3.0


def prediction_of(comparison: Comparison) -> dict[str, Any]:
    """Return what the section shows: sentences, and how far each posterior is below the best, variable by variable.

    Parameters
    ----------
    comparison : Comparison
        What `gpn_bayes.compare` returned.
    """
    table, by_variable = comparison.table, comparison.by_variable
    others = [str(model) for model in table.index[1:]]
    differences = [
        {
            "variable": row["variable"],
            "model": row["model"],
            "difference": float(row["elpd_diff"]),
            "error": float(np.hypot(row["dse"], row["mcse"])),
        }
        for row in by_variable.to_dict("records")
        if row["model"] in others
    ]
    return {"best": comparison.best, "others": others, "sentences": str(comparison).split("\n"), "rows": differences}


def section_of(found: dict[str, Any]) -> str:
    """Return the section as HTML, without scripts.

    Parameters
    ----------
    found : dict
        What `prediction_of` returned.
    """
    sentences = "".join(f"<p>{escape(text)}.</p>" for text in found["sentences"])
    reach = max((abs(row["difference"]) + row["error"] for row in found["rows"]), default=0.0) or 1.0
    many = len(found["others"]) > 1
    rows = "".join(_row(row, reach, many) for row in found["rows"])
    model = '<th scope="col">Posterior</th>' if many else ""
    worse, better = f"worse than {found['best']}", "better"
    return (
        f'{sentences}<div class="table"><table class="differences"><thead><tr><th scope="col">Variable, given its '
        f'parents</th>{model}<th scope="col" class="number">Difference</th><th scope="col" class="number">± error</th>'
        f'<th scope="col"><span>{escape(worse)}</span><span>{better}</span></th></tr></thead><tbody>{rows}</tbody>'
        '</table></div><p class="hint">Log densities of rows, each predicted from all others, in nats. Where an edge '
        "points one way in one posterior and the other way in another, one variable gains what the other loses: look "
        "at both.</p>"
    )


def _row(row: dict[str, Any], reach: float, many: bool) -> str:
    clear = ' class="clear"' if abs(row["difference"]) > _CLEAR * row["error"] else ""
    model = f"<td>{escape(row['model'])}</td>" if many else ""
    numbers = f'<td class="number">{row["difference"]:+,.1f}</td><td class="number">{row["error"]:,.1f}</td>'
    return f'<tr{clear}><th scope="row">{escape(row["variable"])}</th>{model}{numbers}<td>{_mark(row, reach)}</td></tr>'


def _mark(row: dict[str, Any], reach: float) -> str:
    """Return a difference as a dot, with one standard error to either side; zero is in the middle."""
    low, at, high = (50 + 48 * (row["difference"] + sign * row["error"]) / reach for sign in (-1, 0, 1))
    lines = (
        '<line class="zero" x1="50%" x2="50%" y1="0" y2="100%"/>'
        f'<line x1="{low:.1f}%" x2="{high:.1f}%" y1="50%" y2="50%"/>'
    )
    return f'<svg aria-hidden="true">{lines}<circle cx="{at:.1f}%" cy="50%" r="4"/></svg>'

"""The section of a report on missing values: what is missing where, and what is assumed of it."""

from html import escape
from typing import Any

from gpn_bayes.posterior.draws import Draws
from gpn_bayes.posterior.imputed_tables import gap_patterns

_MOST_PATTERNS = 20


def gaps_of(post: Draws) -> dict[str, Any] | None:
    """Return what the section shows; None where nothing was imputed.

    Returns
    -------
    dict or None
        `sentences`; and, unless the posterior was saved without its table, `names` and `counts` of the columns with
        missing values, and `patterns`, the number of rows and what they lack, of groups of rows that lack the same.
    """
    done = post.record.missing
    if not post.record.is_imputed:
        return None
    concerned = f"{done.rows_concerned:,} of {done.rows:,} rows and {done.columns_concerned} columns"
    how = (
        f"{done.tables} completed tables were drawn from networks of a linear score, each with a run of its own; "
        "all errors include how far answers differ between completed tables."
        if done.tables
        else "They were drawn along with the networks, from their equations, and all answers are averages over them."
    )
    content: dict[str, Any] = {
        "sentences": [
            f"{done.imputed:,} values are missing, in {concerned}. {how}",
            "This assumes that they are missing at random: whether a value is missing may depend on what was observed, "
            "but not on the value itself.",
        ],
        "names": [],
    }
    gaps = getattr(post.data, "missing", None)
    if gaps is None:
        return content
    columns = gaps.any(axis=0).nonzero()[0]
    found = gap_patterns(gaps[:, columns], _MOST_PATTERNS)
    return content | {
        "names": [post.names[v] for v in columns],
        "counts": gaps[:, columns].sum(axis=0).tolist(),
        "patterns": list(zip(found.rows.tolist(), found.missing.tolist(), strict=True)),
        "left": (found.left, found.left_rows),
    }


def section_of(found: dict[str, Any]) -> str:
    """Return the section as HTML, without scripts.

    Parameters
    ----------
    found : dict
        What `gaps_of` returned.
    """
    sentences = "".join(f"<p>{escape(text)}</p>" for text in found["sentences"])
    if not found["names"]:
        return sentences
    heads = "".join(
        f'<th scope="col"><span title="{escape(name)}: {count:,} missing">{escape(name)}</span></th>'
        for name, count in zip(found["names"], found["counts"], strict=True)
    )
    rows = "".join(_row(rows, lacks) for rows, lacks in found["patterns"])
    counts = "".join(f'<td class="number">{count:,}</td>' for count in found["counts"])
    patterns, left = found["left"]
    more = f" {left:,} more rows lack {patterns:,} other combinations." if patterns else ""
    return (
        f'{sentences}<div class="table"><table class="gaps"><thead><tr><th scope="col">Rows</th>{heads}</tr></thead>'
        f'<tbody>{rows}</tbody><tfoot><tr><th scope="row">missing</th>{counts}</tr></tfoot></table></div>'
        f'<p class="hint">Each line stands for the rows that lack the same values, which are coloured.{more}</p>'
    )


def _row(rows: int, lacks: list[bool]) -> str:
    cells = "".join('<td class="gap"><span class="hidden">missing</span></td>' if gap else "<td></td>" for gap in lacks)
    return f'<tr><th scope="row" class="number">{rows:,}</th>{cells}</tr>'

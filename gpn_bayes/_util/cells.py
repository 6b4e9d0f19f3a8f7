"""HTML that notebooks show for an object: readable in light and dark themes, and never the reason that a cell fails."""

import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import wraps
from html import escape
from typing import Any

# Text and frames take the colour that the notebook writes in. These are for marks and lines: no theme says which
# colours go with its background, so each has a contrast of 3 or more to both white and the grey of dark themes.
BLUE, VERMILION = "#2b7fc4", "#cc6018"
LIGHTS = {"good": "#2a9460", "caution": "#b57f0a", "poor": "#dc5046", "neutral": "#858e9c"}
_FONT = "system-ui,-apple-system,'Segoe UI',Roboto,'Helvetica Neue','Noto Sans',Arial,sans-serif"
_MUTED = "opacity:.75;font-size:12px"


def safe_html(method: Callable[[Any], str]) -> Callable[[Any], str]:
    """Make a `_repr_html_` that warns and shows the plain text where it would fail.

    Examples
    --------
    >>> class Broken:
    ...     @safe_html
    ...     def _repr_html_(self):
    ...         raise ValueError("no such edge")
    ...
    ...     def __repr__(self):
    ...         return "<Broken>"
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     print(Broken()._repr_html_())
    <pre>&lt;Broken&gt;</pre>
    >>> print(caught[0].message)
    Broken can't be shown as HTML: ValueError: no such edge
    """

    @wraps(method)
    def shown(self: Any) -> str:
        try:
            return method(self)
        except Exception as error:
            reason = f"{type(self).__name__} can't be shown as HTML: {type(error).__name__}: {error}"
            warnings.warn(reason, RuntimeWarning, stacklevel=2)
            return f"<pre>{escape(repr(self))}</pre>"

    return shown


def cell(*parts: str) -> str:
    """Return parts, which are HTML, as one output of a notebook."""
    style = f"font:14px/1.5 {_FONT};font-variant-numeric:tabular-nums;overflow-wrap:break-word;max-width:980px"
    return f'<div class="gpn-bayes" style="{style}">{"".join(parts)}</div>'


def heading(text: str, beside: str = "") -> str:
    """Return a title, and a text beside it in smaller letters."""
    small = f' <span style="{_MUTED}">{escape(beside)}</span>' if beside else ""
    return f'<div style="margin:2px 0 4px"><strong style="font-size:15px">{escape(text)}</strong>{small}</div>'


def verdict(light: str, text: str, beside: str = "") -> str:
    """Return a sentence after a light: "good", "caution", "poor" or "neutral".

    Examples
    --------
    >>> "Sampling has converged." in verdict("good", "Sampling has converged.")
    True
    """
    dot = f'<svg width="10" height="10" aria-hidden="true"><circle cx="5" cy="5" r="5" fill="{LIGHTS[light]}"/></svg>'
    return f"<div>{dot} <strong>{escape(text)}</strong> {escape(beside)}</div>"


def note(text: str) -> str:
    """Return a remark in smaller letters."""
    return f'<div style="{_MUTED};margin:2px 0">{escape(text)}</div>'


def listed(texts: Sequence[str], title: str = "") -> str:
    """Return sentences as a list; one with a title is closed until it is asked for. Nothing for none."""
    if not texts:
        return ""
    items = "".join(f"<li>{escape(text)}</li>" for text in texts)
    whole = f'<ul style="margin:2px 0 6px;padding-left:20px">{items}</ul>'
    return f'<details><summary style="cursor:pointer">{escape(title)}</summary>{whole}</details>' if title else whole


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table of texts; all columns but the first hold numbers."""
    side = ["left", *["right"] * (len(columns) - 1)]
    pad = "padding:1px 0 1px 14px;white-space:nowrap;overflow:hidden;text-overflow:ellipsis;max-width:340px"

    def line(tag: str, texts: Sequence[str]) -> str:
        cells = zip(side, texts, strict=True)
        return "".join(f'<{tag} style="text-align:{own};{pad}">{escape(text)}</{tag}>' for own, text in cells)

    body = "".join(f"<tr>{line('td', row)}</tr>" for row in rows)
    head = f"<thead><tr>{line('th', columns)}</tr></thead>"
    style = "border-collapse:collapse;margin:0;font-size:13px;color:inherit"
    return f'<table style="{style}">{head}<tbody>{body}</tbody></table>'


def beside(*parts: str) -> str:
    """Return parts side by side, below each other where there is no room."""
    items = "".join(f'<div style="max-width:100%;overflow-x:auto">{part}</div>' for part in parts if part)
    return f'<div style="display:flex;flex-wrap:wrap;gap:8px 28px;align-items:flex-start;margin:6px 0">{items}</div>'

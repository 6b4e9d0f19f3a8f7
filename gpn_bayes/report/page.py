"""The page of a report: a template, a style sheet, scripts and numbers in one HTML text."""

import json
import re
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from gpn_bayes.report.gaps import section_of as gaps_section
from gpn_bayes.report.kinds import POSTERIOR, Kind
from gpn_bayes.report.prediction import section_of as prediction_section

# How the names of files that hold a page may end.
PAGES = (".html", ".htm")

_ASSETS = files("gpn_bayes.report") / "assets"
# In the order they are run; each defines functions, and the last one starts them.
_SCRIPTS = (
    "numbers.js", "theme.js", "charts.js", "questions.js", "table.js", "network.js", "list.js", "variable.js",
    "effects.js", "start.js",
)  # fmt: skip
# Parts of the template that some pages lack.
_PART = re.compile(r"[ ]*<!-- only ([\w-]+) -->\n(.*?)[ ]*<!-- end -->\n", re.DOTALL)
# What scripts needn't know, since it stands in the page.
_WITHOUT_SCRIPTS = ("gaps", "answers", "origin", "caveats", "prediction", "layouts")
_LIGHTS = {True: "good", False: "poor", None: "none"}


def page_of(content: dict[str, Any], kind: Kind = POSTERIOR) -> str:
    """Return the page that shows what `gpn_bayes.report.content.content_of` found, or one of its siblings.

    Parameters
    ----------
    content : dict
        What it shows.
    kind : Kind
        Which parts it has, and how it speaks.
    """
    scripts = "\n".join(_asset(name) for name in _SCRIPTS)
    prediction, gaps = content.get("prediction"), content.get("gaps")
    parts = kind.parts | ({"prediction"} if prediction else set()) | ({"gaps"} if gaps else set())
    template = _PART.sub(lambda found: found[2] if found[1] in parts else "", _asset("page.html"))
    for_scripts = {name: own for name, own in content.items() if name not in _WITHOUT_SCRIPTS}
    return Template(template).substitute(
        kind.texts,
        kind=kind.name,
        columns="\n".join(_column(key, *own) for key, own in kind.headings.items()),
        prediction=prediction_section(prediction) if prediction else "",
        gaps=gaps_section(gaps) if gaps else "",
        caveats=_sentences(content.get("caveats", [])),
        title=escape(content["title"]),
        subtitle=escape(content["subtitle"]),
        style=_asset("style.css"),
        verdict=escape(content["trust"]["verdict"]),
        heading=escape(content["trust"]["heading"]),
        summary=escape(content["trust"].get("summary", "")),
        answers="\n".join(_answer(own) for own in content["answers"]),
        warnings=_listed("What to do", content["trust"].get("warnings", [])),
        data_verdict=escape(content["trust"]["data_verdict"]),
        data_heading=escape(content["trust"]["data_heading"]),
        kinds=_sentences(_kinds(content["trust"])),
        assumptions=_listed("What the answers assume", content["trust"]["assumptions"]),
        flags=_listed("What to look at in the data", content["trust"]["flags"]),
        figures="\n".join(_figure(own) for own in content["trust"].get("figures", [])),
        settings=_definitions(content["origin"]["settings"]),
        versions=_definitions(content["origin"]["versions"]),
        call=_ways(content["origin"]),
        layouts="\n".join(map(_layout, content["layouts"])),
        numbers=script_json({**for_scripts, "kind": kind.name, "words": kind.words, "columns": kind.columns}),
        scripts=f'(function () {{\n"use strict";\n{scripts}\n}})();',
    )


def script_json(value: Any) -> str:
    r"""Return JSON that can stand inside a script element, whatever the names in it are.

    Examples
    --------
    >>> print(script_json(["</script>"]))
    ["\u003c/script\u003e"]
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text


def _asset(name: str) -> str:
    return (_ASSETS / name).read_text(encoding="utf-8")


def _layout(layout: dict[str, Any]) -> str:
    """Return a drawing that scripts may show."""
    size = f'data-width="{layout["width"]}" data-height="{layout["height"]}"'
    return f'<template class="layout" {size}><svg>{layout["svg"]}</svg></template>'


def _answer(answer: dict[str, Any]) -> str:
    chips = "".join(f'<li class="chip" title="{escape(link)}">{escape(link)}</li>' for link in answer["links"])
    more = f'<li class="more">and {answer["more"]:,} more</li>' if answer["more"] else ""
    listed = f'<ul class="chips">{chips}{more}</ul>' if chips else ""
    return f"<p>{escape(answer['text'])}</p>{listed}"


def _listed(heading: str, texts: list[str]) -> str:
    """Return sentences as a list under a heading; nothing for none."""
    if not texts:
        return ""
    return f"<h4>{heading}</h4><ul>" + "".join(f"<li>{escape(text)}</li>" for text in texts) + "</ul>"


def _column(key: str, heading: str, css: str) -> str:
    named = f' class="{css}"' if css else ""
    return f'<th data-key="{key}" scope="col"{named}><button type="button">{escape(heading)}</button></th>'


def _sentences(texts: list[str]) -> str:
    return "".join(f"<p>{escape(text)}</p>" for text in texts)


def _kinds(trust: dict[str, Any]) -> list[str]:
    """Return what columns were taken for, as sentences."""
    kinds, either = trust.get("kinds", ""), trust.get("either_kind", "")
    return [f"The table has {kinds}."] * bool(kinds) + [f"{either[:1].upper()}{either[1:]}."] * bool(either)


def _figure(figure: dict[str, Any]) -> str:
    light = _LIGHTS[figure["fine"]]
    word = {"good": "fine", "poor": "not fine", "none": ""}[light]
    cells = (
        f'<th scope="row">{escape(figure["name"])}<small>{escape(figure["meaning"])}</small></th>',
        f'<td class="number">{escape(figure["value"])}</td>',
        f'<td class="number">{escape(figure["wanted"])}</td>',
        f'<td><span class="light {light}"></span> {word}</td>',
    )
    return f"<tr>{''.join(cells)}</tr>"


def _definitions(pairs: list[tuple[str, str]]) -> str:
    return "".join(f"<div><dt>{escape(name)}</dt><dd>{escape(text)}</dd></div>" for name, text in pairs)


def _ways(origin: dict[str, Any]) -> str:
    """Return the ways to the same results: by a command, and by Python."""
    name = origin.get("table", "df")
    in_python = f"In Python, with the table {'' if name == 'df' else 'as it was read, '}<code>{name}</code>"
    ways = {"On the command line": origin["command"], in_python: origin["call"]}
    calls = "".join(f"<h3>{way}</h3><pre><code>{escape(text)}</code></pre>" for way, text in ways.items() if text)
    if not calls:
        return "<p>The settings below don't tell the whole call; keep the script that made it.</p>"
    return calls if origin["seeded"] else f"{calls}<p>{escape(origin['unseeded'])}</p>"

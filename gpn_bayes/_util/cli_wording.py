"""Messages name arguments of Python; here they are rewritten as command-line options."""

import ast
import csv
import io
import re
import shlex
from typing import Any

# The arguments of `gpn_bayes.sample` that have an option of another name than their own.
_RENAMED = {"random_seed": "--seed", "random_state": "--seed"}
_OPTIONS = {
    name: _RENAMED.get(name, f"--{name.replace('_', '-')}")
    for name in (
        "candidates", "chains", "contexts", "cores", "draws", "expand", "imputations", "intervention", "kinds",
        "max_parents", "missing", "order_bias", "plus_one", "prior", "random_seed", "random_state", "reweight",
        "points", "sampler", "score", "target_penalty", "target_probability", "targets", "temperatures", "thin", "to",
        "tune", "until", "versus", "weights", "which",
    )
}  # fmt: skip
_NAMES = "|".join(_OPTIONS)
# Arguments of the reader of tables, whose values may be lists and numbers too; descriptions of objects, such as
# BGe(alpha_w=None), which are no advice and stay as they are; and arguments by themselves, with a value or none.
_ARGUMENT = re.compile(
    r"Dataset\.read\(data, (?P<settings>(?:[^()'\"]|'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\")*)\)"
    rf"|\w+\([^()]*\)|\b(?P<name>{_NAMES})=(?:'(?P<text>\w+)'|(?P<number>\d+)\b|(?P<none>None\b)|(?=[ ,;)]|$))"
)
_SUBJECT = re.compile(rf"^({_NAMES})(?= must )")


def in_options(text: str) -> str:
    """Write arguments of Python, ``order_bias='keep'``, as options, ``--order-bias keep``.

    Arguments without an option, and those within the description of an object, stay as they are.

    Examples
    --------
    >>> in_options("use sampler='partition'")
    'use --sampler partition'
    >>> in_options("use reweight=None")
    'use --reweight none'
    >>> in_options("random_seed must be a whole number, 0 or more; received -1")
    '--seed must be a whole number, 0 or more; received -1'
    >>> in_options("it holds BGe(alpha_mu=1.0, alpha_w=None, t0=None)")
    'it holds BGe(alpha_mu=1.0, alpha_w=None, t0=None)'
    >>> in_options("Dataset.read(data, drop=['id', 'blood group']) leaves them out")
    "--drop 'id,blood group' leaves them out"
    >>> in_options("Dataset.read(data, kinds={'visit': 'number'}) keeps it")
    '--kinds visit=number keeps it'
    >>> in_options("Dataset.read(data, na=[-999], missing='impute')"), in_options("run with temperatures=4")
    ('--na -999 --missing impute', 'run with --temperatures 4')
    >>> in_options("a contrast needs both values, to= and versus=; received one of them")
    'a contrast needs both values, --to and --versus; received one of them'
    """
    text = text.replace("candidates={child: [parents]}", "--candidates FILE")
    text = _SUBJECT.sub(lambda found: _OPTIONS[found[1]], text)
    return _ARGUMENT.sub(lambda found: _option(found) or found[0], text)


def in_both(text: str) -> str:
    """Write after every argument of Python the option that is the same, for readers of either.

    Examples
    --------
    >>> in_both("use sampler='partition'")
    "use sampler='partition' (command line: --sampler partition)"
    """
    return _ARGUMENT.sub(
        lambda found: f"{found[0]} (command line: {own})" if (own := _option(found)) else found[0], text
    )


def _option(found: re.Match[str]) -> str:
    """Return the option that is the same as an argument; empty for what is no argument."""
    if found["name"] is not None:
        value = found["text"] or found["number"] or ("none" if found["none"] else "")
        return f"{_OPTIONS[found['name']]} {value}".rstrip()
    if found["settings"] is None:
        return ""
    try:
        call = ast.parse(f"read({found['settings']})", mode="eval").body
        given = [(word.arg, ast.literal_eval(word.value)) for word in getattr(call, "keywords", [])]
    except (SyntaxError, ValueError):  # no call with its values
        return ""
    return " ".join(_setting(str(name), value) for name, value in given)


def _setting(name: str, value: Any) -> str:
    """Return the option that is the same as a setting of the reader of tables."""
    if isinstance(value, dict):
        value = [f"{key}={own if isinstance(own, str) else '<'.join(own)}" for key, own in value.items()]
    text = _joined(value) if isinstance(value, list) else str(value)
    return f"--{name.replace('_', '-')} {shlex.quote(text)}"


def _joined(values: list[Any]) -> str:
    """Return values as the fields of a line, as options take several."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    return "" if values == [""] else line.getvalue()

"""What to do, written in arguments of Python or, for readers of the command line, in its options."""

import ast
import csv
import io
import re
import shlex

# An argument by itself, or one of the reader of tables, whose values may be lists and numbers too.
_ARGUMENT = re.compile(
    r"Dataset\.read\(data, (?P<name>\w+)=(?P<value>'[^']*'|\"[^\"]*\"|\d+|\[.*?\])\)"
    r"|\b(?P<word>\w+)=(?:'(?P<text>\w+)'|None\b)"
)


def in_options(text: str) -> str:
    """Write arguments of Python, ``order_bias='keep'``, as options, ``--order-bias keep``.

    Examples
    --------
    >>> in_options("use sampler='partition'")
    'use --sampler partition'
    >>> in_options("use reweight=None")
    'use --reweight none'
    >>> in_options("Dataset.read(data, drop=['id', 'blood group']) leaves them out")
    "--drop 'id,blood group' leaves them out"
    """
    text = text.replace("candidates={child: [parents]}", "--candidates FILE")
    return _ARGUMENT.sub(_option, text)


def in_both(text: str) -> str:
    """Write after every argument of Python the option that is the same, for readers of either.

    Examples
    --------
    >>> in_both("use sampler='partition'")
    "use sampler='partition' (command line: --sampler partition)"
    """
    return _ARGUMENT.sub(lambda found: f"{found[0]} (command line: {_option(found)})", text)


def _option(found: re.Match[str]) -> str:
    if found["name"] is None:
        return f"--{found['word'].replace('_', '-')} {found['text'] or 'none'}"
    value = ast.literal_eval(found["value"])
    return f"--{found['name']} {shlex.quote(_joined(value) if isinstance(value, list) else str(value))}"


def _joined(values: list[str]) -> str:
    """Return values as the fields of a line, as options take several."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    return "" if values == [""] else line.getvalue()

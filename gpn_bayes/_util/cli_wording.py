"""Messages name arguments of Python; here they are rewritten as command-line options."""

import ast
import csv
import io
import re
import shlex

# The arguments of `gpn_bayes.sample` that have an option of another name than their own.
_RENAMED = {"random_seed": "--seed", "random_state": "--seed"}
_OPTIONS = {
    name: _RENAMED.get(name, f"--{name.replace('_', '-')}")
    for name in (
        "candidates", "chains", "contexts", "cores", "draws", "expand", "imputations", "intervention", "kinds",
        "max_parents", "missing", "order_bias", "plus_one", "prior", "random_seed", "random_state", "reweight",
        "sampler", "score", "target_penalty", "target_probability", "targets", "temperatures", "thin", "tune", "until",
        "weights", "which",
    )
}  # fmt: skip
_NAMES = "|".join(_OPTIONS)
# Arguments of the reader of tables, whose values may be lists and numbers too; descriptions of objects, such as
# BGe(alpha_w=None), which are no advice and stay as they are; and arguments by themselves.
_ARGUMENT = re.compile(
    r"Dataset\.read\(data, (?P<setting>\w+)=(?P<value>'[^']*'|\"[^\"]*\"|\d+|\[.*?\]|\{.*?\})\)"
    rf"|\w+\([^()]*\)|\b(?P<name>{_NAMES})=(?:'(?P<text>\w+)'|None\b)"
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
        return f"{_OPTIONS[found['name']]} {found['text'] or 'none'}"
    if found["setting"] is None:
        return ""
    value = ast.literal_eval(found["value"])
    option = found["setting"].replace("_", "-")
    if isinstance(value, dict):
        value = [f"{name}={own if isinstance(own, str) else '<'.join(own)}" for name, own in value.items()]
    return f"--{option} {shlex.quote(_joined(value) if isinstance(value, list) else str(value))}"


def _joined(values: list[str]) -> str:
    """Return values as the fields of a line, as options take several."""
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(values)
    return "" if values == [""] else line.getvalue()

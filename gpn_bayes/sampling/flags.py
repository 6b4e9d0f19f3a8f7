"""Messages name arguments of Python; for the command line they are rewritten as its options."""

import ast
import csv
import io
import re
import shlex
from functools import cache
from typing import Any

from gpn_bayes import samplers
from gpn_bayes.sampling.options import all_options, flags

# Arguments of questions and learners, which aren't options of a run.
_OTHERS = {"random_state": "--seed"} | {name: f"--{name}" for name in ("points", "to", "versus", "which")}
_INSIDE = r"""(?:[^()'"]|'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")*"""
_KINDS = "|".join(["Table", "Space", *(kind.__name__ for kind in samplers.BUILT_IN.values())])


@cache
def _flags() -> dict[str, str]:
    return flags() | _OTHERS


@cache
def _argument() -> re.Pattern[str]:
    """Return the pattern of what holds options, of descriptions of objects, and of arguments by themselves.

    Descriptions, such as BGe(alpha_w=None), are no advice and stay as they are.
    """
    return re.compile(
        rf"(?P<call>(?:\b\w+=)?\bgpn\.(?:samplers\.)?(?:{_KINDS})\({_INSIDE}\))|\w+\([^()]*\)"
        rf"|\b(?P<given>(?P<name>{'|'.join(_flags())})=(?:'\w+'|\d+\b|None\b|True\b|False\b|(?=[ ,;)]|$)))"
    )


def in_options(text: str) -> str:
    """Write arguments of Python, ``sampler=gpn.samplers.Order(bias='keep')``, and rules of them, as options.

    Arguments without an option, and those within the description of an object, stay as they are.

    Examples
    --------
    >>> in_options("use sampler='partition'"), in_options("use sampler=gpn.samplers.Order(bias='keep')")
    ('use --sampler partition', 'use --sampler order --order-bias keep')
    >>> in_options("use reweight=None"), in_options("use space=gpn.Space(max_parents=2, plus_one=False)")
    ('use --reweight none', 'use --max-parents 2 --no-plus-one')
    >>> in_options("random_seed must be a whole number, 0 or more; received -1")
    '--seed must be a whole number, 0 or more; received -1'
    >>> in_options("reweight must be 'auto' or None; received 'foo'")
    "--reweight must be auto or none; received 'foo'"
    >>> in_options("target_penalty needs contexts; received 2.0 without them")
    '--target-penalty needs --contexts; received 2.0 without them'
    >>> in_options("with missing='impute', plus_one must be False; received plus_one=True")
    'with --missing impute, --no-plus-one must be given; received --plus-one'
    >>> in_options("it holds BGe(alpha_mu=1.0, alpha_w=None, t0=None)")
    'it holds BGe(alpha_mu=1.0, alpha_w=None, t0=None)'
    >>> in_options("gpn.Table(data, drop=['id', 'blood group']) leaves them out")
    "--drop 'id,blood group' leaves them out"
    >>> in_options("gpn.Table(data, kinds={'visit': 'number'}) keeps it")
    '--kinds visit=number keeps it'
    >>> in_options("a contrast needs both values, to= and versus=; received one of them")
    'a contrast needs both values, --to and --versus; received one of them'
    """
    names = "|".join(_flags())
    text = re.sub(rf"^({names}) must be ('\w+'.*?) or None(?=;)", lambda found: _rule(found[1], found[2]), text)
    text = re.sub(
        rf"^({names}) needs ({names})(?=;)", lambda found: f"{_flags()[found[1]]} needs {_flags()[found[2]]}", text
    )
    text = re.sub(rf"^({names})(?= must | needs )", lambda found: _flags()[found[1]], text)
    text = re.sub(rf"\b({names}) must be (False|True)(?=;)", r"\1=\2 must be given", text)
    return _argument().sub(lambda found: _option(found) or found[0], text)


def _rule(name: str, choices: str) -> str:
    """Return a rule that ends in "or None" as it is typed."""
    return f"{_flags()[name]} must be {choices.replace("'", '')} or none"


def in_both(text: str) -> str:
    """Write after every argument of Python the option that is the same, for readers of either.

    Examples
    --------
    >>> in_both("use sampler='partition'")
    "use sampler='partition' (command line: --sampler partition)"
    """
    return _argument().sub(
        lambda found: f"{found[0]} (command line: {own})" if (own := _option(found)) else found[0], text
    )


def _option(found: re.Match[str]) -> str:
    """Return the option that is the same as an argument; empty for what is no argument."""
    text = found["call"] or found["given"]
    if text is None:
        return ""
    if text.endswith("="):
        return _flags()[found["name"]]
    try:
        call = ast.parse(f"sample({text})", mode="eval").body
        assert isinstance(call, ast.Call)
        return " ".join(_words("", call))
    except (SyntaxError, ValueError, LookupError):  # no call with its values, or with others than options
        return ""


def _words(name: str, node: ast.expr) -> list[str]:
    """Return the options that are the same as an argument, and as all that an object holds."""
    if isinstance(node, ast.Call):
        kind = ast.unparse(node.func).rpartition(".")[2].lower()
        own = [f"--sampler {kind}"] if kind in samplers.BUILT_IN else []
        inside: list[tuple[str, ast.expr]] = [("", given) for given in node.args if isinstance(given, ast.Call)]
        inside += [(str(word.arg), word.value) for word in node.keywords]
        return [*own, *(word for key, value in inside for word in _words(key, value))]
    flag = _flags().get(name, f"--{name.replace('_', '-')}")
    if name == "candidates" and isinstance(node, ast.Dict):
        return [f"{flag} FILE"]
    value = ast.literal_eval(node)
    if isinstance(value, bool):
        both = all_options()[name][0].flag.split("/")
        return [both[not value]] if len(both) == 2 else [] if value else [f"{flag} 0"]  # --expand 0: never
    return [f"{flag} {_value(value)}"]


def _value(value: Any) -> str:
    """Return a value as it is typed in a shell: several as the fields of a line."""
    if isinstance(value, dict):
        value = [f"{key}={own if isinstance(own, str) else '<'.join(own)}" for key, own in value.items()]
    if isinstance(value, list):
        line = io.StringIO()
        csv.writer(line, lineterminator="").writerow(value)
        value = "" if value == [""] else line.getvalue()
    return "none" if value is None else shlex.quote(str(value))

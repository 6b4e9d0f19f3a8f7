"""Messages name arguments of Python; here they are rewritten as options for readers of the command line."""

import re

# The arguments of `gpn_bayes.sample` that have an option of another name than their own.
_RENAMED = {"random_seed": "--seed", "random_state": "--seed"}
_OPTIONS = {
    name: _RENAMED.get(name, f"--{name.replace('_', '-')}")
    for name in (
        "candidates", "chains", "cores", "draws", "expand", "max_parents", "order_bias", "plus_one", "prior",
        "random_seed", "random_state", "reweight", "sampler", "temperatures", "thin", "tune", "until",
    )
}  # fmt: skip
_NAMES = "|".join(_OPTIONS)
# The first alternative skips descriptions of objects, such as BGe(alpha_w=None): these are no advice.
_ARGUMENT = re.compile(rf"\w+\([^()]*\)|\b({_NAMES})=(?:'(\w+)'|None\b)")
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
    """
    text = text.replace("candidates={child: [parents]}", "--candidates FILE")
    text = _SUBJECT.sub(lambda found: _OPTIONS[found[1]], text)
    return _ARGUMENT.sub(lambda found: _option(found) if found[1] else found[0], text)


def in_both(text: str) -> str:
    """Write after every argument of Python the option that is the same, for readers of either.

    Examples
    --------
    >>> in_both("use sampler='partition'")
    "use sampler='partition' (command line: --sampler partition)"
    """
    return _ARGUMENT.sub(lambda found: f"{found[0]} (command line: {_option(found)})" if found[1] else found[0], text)


def _option(found: re.Match[str]) -> str:
    return f"{_OPTIONS[found[1]]} {found[2] or 'none'}"

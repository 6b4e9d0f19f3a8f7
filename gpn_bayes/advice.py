"""What to do, told in arguments of Python, as whoever reads it would write it: as options of the command line too."""

import re

_ARGUMENT = re.compile(r"\b(\w+)=(?:'(\w+)'|None\b)")


def in_options(text: str) -> str:
    """Write arguments of Python, ``order_bias='keep'``, as options, ``--order-bias keep``.

    Examples
    --------
    >>> in_options("use sampler='partition'")
    'use --sampler partition'
    >>> in_options("use reweight=None")
    'use --reweight none'
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
    return f"--{found[1].replace('_', '-')} {found[2] or 'none'}"

"""The command as its user may type it again."""

import shlex
from collections.abc import Iterator
from typing import Any

import typer

# What changes the way to the results, but not the results.
_OF_THIS_RUN = {"cores", "dask", "quiet", "tls_ca", "tls_cert", "tls_key"}


def retyped(context: typer.Context) -> str:
    """Return the command that gives the same results, with the options that its user gave.

    Parameters
    ----------
    context : typer.Context
        What the command was called with.

    Returns
    -------
    str
        A line for a shell.
    """
    given = [
        word
        for parameter in context.command.params
        if parameter.name is not None and parameter.name not in _OF_THIS_RUN and _was_typed(context, parameter.name)
        for word in _words(parameter, context.params[parameter.name])
    ]
    return shlex.join([*context.command_path.split(), *given])


def _was_typed(context: typer.Context, name: str) -> bool:
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def _words(parameter: Any, value: Any) -> Iterator[str]:
    """Return the words of one parameter, those of an option that was given several times too."""
    if parameter.param_type_name == "argument":
        # Else a file "-cells.csv" would be read as options.
        yield f"./{value}" if str(value).startswith("-") else str(value)
    elif isinstance(value, bool):
        yield (parameter.opts if value else parameter.secondary_opts)[0]
    else:
        for own in value if isinstance(value, list | tuple) else [value]:
            yield from (parameter.opts[0], str(own))

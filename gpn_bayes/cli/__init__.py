"""The command line: ``gpn-bayes run``, ``demo``, ``query``, ``effect``, ``export``, ``compare`` and others."""

import os
import sys
from typing import Annotated

import typer

import gpn_bayes
from gpn_bayes.cli import compare, effect, estimate, export, federate, private_k2, query, run, screen, warm_up

app = typer.Typer(
    name="gpn-bayes",
    help="How probable is this edge, path or order, given my data?",
    epilog="Start with 'gpn-bayes demo', then 'gpn-bayes run your.csv --out results/'.",
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
app.command("run")(run.run_file)
app.command("demo")(run.run_demo)
app.command("query")(query.answer)
app.command("effect")(effect.show_effect)
app.command("export")(export.export_graph)
app.command("compare")(compare.compare_runs)
app.command("estimate")(estimate.estimate_file)
app.command("warm-up")(warm_up.warm_up)
app.add_typer(federate.app, name="federate")
app.add_typer(private_k2.app, name="private-k2")


@app.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    if version:
        typer.echo(f"gpn-bayes {gpn_bayes.__version__}")
    elif context.invoked_subcommand is None:
        typer.echo(context.get_help())


def main(arguments: list[str] | None = None) -> None:
    """Run a command and exit: 0 done, 1 for lost workers, parties or memory, 2 for bad input, 130 after Ctrl-C."""
    # numba would also take it from a file in the folder that the user works in, and what lies there is unpickled.
    os.environ.setdefault("NUMBA_CACHE_DIR", "")
    for stream in (sys.stdout, sys.stderr):
        # A terminal that can't show a variable's name still gets the answer.
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="replace")
    try:
        screen.check_address_space()
        code = typer.main.get_command(app).main(args=arguments, prog_name="gpn-bayes", standalone_mode=False)
    except Exception as error:
        if screen.lacks_memory(error):
            # `tell` would load more than there may be room for.
            screen.note("error: this needs more memory than the process may have (see ulimit -v)")
            sys.exit(1)
        # Typer's usage errors; their common class lives in another package from version to version.
        if not hasattr(error, "format_message"):
            raise
        screen.tell("error", error.format_message())
        code = 2
    sys.exit(code)

"""``gpn-bayes effect``: what happens to a variable if another one is set."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpn_bayes._util.printable import printable
from gpn_bayes.cli import screen
from gpn_bayes.cli.folder import find_posterior
from gpn_bayes.sampling.flags import in_options

if TYPE_CHECKING:
    from gpn_bayes.posterior import Effect


def show_effect(
    posterior: Annotated[Path, typer.Argument(help="posterior.nc, or the folder it is in.")],
    question: Annotated[str, typer.Argument(help="'cause -> outcome'.", show_default=False)],
    to: Annotated[str | None, typer.Option(help="A value to set the cause to.")] = None,
    versus: Annotated[str | None, typer.Option(help="The value to compare it with.")] = None,
    points: Annotated[int, typer.Option(help="Of a curve: at how many values of the cause.")] = 9,
    draws: Annotated[int | None, typer.Option(help="DAGs to average over; all, or 500 for curves.")] = None,
    seed: Annotated[int, typer.Option(help="Random seed of the drawn parameters.")] = 0,
    quiet: Annotated[bool, typer.Option("--quiet", help="Show no progress.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the effect of setting one variable on another, averaged over networks, with its standard error.

    Linear scores: the change of the outcome for each unit of the cause.
    Gaussian processes: the expected outcome over values of the cause, and its average slope.
    Scores of categories: the probabilities of the outcome's levels.
    Tables of both: the change for each unit, or the mean of the outcome at each level of the cause.
    With --to and --versus: the change between two values.
    """
    with screen.plain_messages():
        from gpn_bayes.posterior import load
        from gpn_bayes.posterior.questions import read_question

        post = load(find_posterior(posterior))
        sign, names = read_question(question, post.names)
        if sign != "->":
            raise ValueError(f"an effect is asked for as 'cause -> outcome'; received {question!r}")
        effect = post.effect(
            *names, to=to, versus=versus, points=points, draws=draws, random_seed=seed, progressbar=not quiet
        )
        if as_json:
            typer.echo(json.dumps(_record(effect), indent=1, ensure_ascii=False))
            return
        typer.echo(printable(in_options(str(effect))))
        if effect.draws.ndim > 2:
            table = screen.plain_table()
            columns = effect.table()
            for name in columns.rename(columns={"cause": effect.cause, "outcome": effect.outcome}):
                table.add_column(printable(str(name)), justify="right")
            for row in columns.itertuples(index=False):
                table.add_row(*map(_cell, row))
            screen.console().print(table)


def _cell(value: Any) -> str:
    """Return a number, a level, or a dash for the error of draws that are all alike."""
    if isinstance(value, float):
        return "–" if math.isnan(value) else f"{value:.3f}"
    return printable(str(value))


def _record(effect: "Effect") -> dict[str, Any]:
    """Return an effect for JSON, which has no NaN."""
    shared = {"cause": effect.cause, "outcome": effect.outcome, "quantity": effect.quantity}
    slope = {} if effect.slope is None else {"slope": _rows(effect.slope)[0]}
    given = {} if effect.given_path is None else {"rows_given_path": _rows(effect.given_path)}
    shared |= {"note": effect.note} if effect.note else {}
    return shared | {"probability": effect.probability, "rows": _rows(effect)} | given | slope


def _rows(effect: "Effect") -> list[dict[str, Any]]:
    rows = effect.table().to_dict(orient="records")
    return [{str(name): None if value != value else value for name, value in row.items()} for row in rows]

"""``gpn-bayes query``: ask a posterior about edges, paths and orders."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpn_bayes._util.printable import printable
from gpn_bayes.cli import screen
from gpn_bayes.cli.folder import find_posterior

if TYPE_CHECKING:
    from gpn_bayes.posterior import Estimate
    from gpn_bayes.posterior.questions import Question


def answer(
    posterior: Annotated[Path, typer.Argument(help="posterior.nc, or the folder it is in.")],
    questions: Annotated[
        list[str],
        typer.Argument(
            help="'a -> b' (edge), 'a ~> b' (path), 'a - b' (edge either way), 'a < b < c' (order).",
            show_default=False,
        ),
    ],
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Print the posterior probability of each edge, path or order asked for, with its standard error.

    The error is the standard error.
    Behind it stands how many independent draws would be as precise.
    """
    with screen.plain_messages():
        from gpn_bayes.posterior import load
        from gpn_bayes.posterior.questions import read_question

        post = load(find_posterior(posterior))
        asked = [read_question(text, post.names) for text in questions]
        answers = [(question, post.probability(question)) for question in asked]
        if as_json:
            typer.echo(json.dumps([_record(*pair) for pair in answers], indent=1, ensure_ascii=False))
            return
        width = max(len(str(question)) for question in asked)
        for question, estimate in answers:
            typer.echo(printable(f"{question!s:<{width}}  {_formatted(estimate)}"))
        for note in dict.fromkeys(estimate.note for _, estimate in answers if estimate.note):
            asked_so = ", ".join(str(question) for question, estimate in answers if estimate.note == note)
            screen.tell("note", f"{asked_so}: {note}")


def _formatted(estimate: "Estimate") -> str:
    value = f"{estimate.value:.4f}"
    if estimate.mcse == 0:
        return f"{value}  exact"
    sign = screen.error_heading(screen.console())
    if math.isinf(estimate.ess):
        return f"{value}  {sign} {estimate.mcse:.4f}  error of the scores"
    ess = "-" if math.isnan(estimate.ess) else f"{estimate.ess:.0f}"
    error = "-     " if math.isnan(estimate.mcse) else f"{estimate.mcse:.4f}"
    return f"{value}  {sign} {error}  {ess} effective draws"


def _record(question: "Question", estimate: "Estimate") -> dict[str, object]:
    """Return an answer for JSON, which has neither NaN nor infinity."""
    return {
        "question": str(question),
        "probability": estimate.value,
        "mcse": estimate.mcse if math.isfinite(estimate.mcse) else None,
        "ess": estimate.ess if math.isfinite(estimate.ess) else None,
        "exact": estimate.mcse == 0,
        **({"note": estimate.note} if estimate.note else {}),
    }

"""``gpn-bayes compare``: two posteriors over the same variables, edge by edge, and by how well each predicts."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpn_bayes._util.files import new_file
from gpn_bayes.cli import screen
from gpn_bayes.cli.folder import find_posterior
from gpn_bayes.cli.screen import error_heading, error_text

if TYPE_CHECKING:
    import numpy as np
    import pandas as pd

    from gpn_bayes.posterior import Comparison, GraphPosterior


def compare_runs(
    first: Annotated[Path, typer.Argument(help="posterior.nc, or the folder it is in.")],
    second: Annotated[Path, typer.Argument(help="Another posterior, over the same variables.")],
    threshold: Annotated[float, typer.Option(help="Show the edges at least this probable in one of the two.")] = 0.1,
    top: Annotated[int, typer.Option(help="Show at most this many edges; 0 for all.")] = 20,
    prediction: Annotated[
        bool, typer.Option(help="Compare how well each predicts; takes a minute or more under Gaussian processes.")
    ] = True,
    report: Annotated[
        Path | None,
        typer.Option(help="Write the report of the first, with this comparison, to a new file."),
    ] = None,
) -> None:
    """Print the edges of two posteriors side by side, the largest differences first, and how well each predicts.

    The error of a difference joins the errors of both; that of predictions is the spread over rows, too.
    Differences of more than three errors are bold.
    """
    with screen.plain_messages():
        from gpn_bayes.posterior import load

        if not 0 <= threshold <= 1:
            raise ValueError(f"--threshold must lie between 0 and 1; received {threshold}")
        if top < 0:
            raise ValueError(f"--top must be 0 or more; received {top}")
        _check_report(report, prediction)
        one, two = (load(find_posterior(path)) for path in (first, second))
        _check_same_variables(one, two)
        table = difference_table(one, two)
        _show(table, threshold, top, str(first), str(second))
        _show_distances(one, two, table)
        comparison = _predictions(one, two) if prediction else None
        if report is not None:
            one.report(report, comparison=comparison)
            screen.console().print(f"\nThe report is {report}", soft_wrap=True)


def _check_report(report: Path | None, prediction: bool) -> None:
    """Refuse a report that couldn't be written, before anything is computed."""
    if report is None:
        return
    if not prediction:
        raise ValueError("--report needs the predictions; received --no-prediction with it")
    from gpn_bayes.report.page import PAGES

    new_file(report, endings=PAGES)


def _check_same_variables(one: "GraphPosterior", two: "GraphPosterior") -> None:
    alone = sorted(set(one.names) ^ set(two.names))
    if alone:
        which = "first" if alone[0] in one.names else "second"
        raise ValueError(f"both posteriors must be over the same variables; {alone[0]!r} is only in the {which}")
    prints = {str(post.record.data_fingerprint) for post in (one, two)}
    if len(prints) > 1:
        screen.note("the two posteriors are based on different data")


def difference_table(one: "GraphPosterior", two: "GraphPosterior") -> "pd.DataFrame":
    """Return every edge's two probabilities, their difference and its standard error; largest differences first.

    Returns
    -------
    DataFrame
        Columns `edge`, `first`, `second`, `difference` (second minus first) and `mcse`, the errors of both
        joined. An edge that a posterior always or never drew counts with one over its effective draws; the
        error is unknown where chains disagree.
    """
    import numpy as np
    import pandas as pd

    one_side, two_side = (_with_errors(post) for post in (one, two))
    two_side = two_side.reindex(one_side.index)
    table = pd.DataFrame(
        {
            "edge": one_side["edge"],
            "first": one_side["probability"],
            "second": two_side["probability"],
            "difference": two_side["probability"] - one_side["probability"],
            "mcse": np.hypot(one_side["error"], two_side["error"]),
        }
    ).sort_values("edge", ignore_index=True)
    order = table["difference"].abs().round(12).sort_values(ascending=False, kind="stable").index
    return table.loc[order].reset_index(drop=True)


def _with_errors(post: "GraphPosterior") -> "pd.DataFrame":
    summary = post.summary().set_index(["parent", "child"])
    constant = summary["status"].isin(["never", "always"])
    return summary.assign(error=summary["mcse"].where(~constant, 1 / summary["ess"]))


def _show(table: "pd.DataFrame", threshold: float, top: int, first: str, second: str) -> None:
    out = screen.console()
    out.print(f"\nfirst   {first}\nsecond  {second}\n", soft_wrap=True)
    chosen = table[table[["first", "second"]].max(axis=1) >= threshold]
    shown = chosen.head(top) if top else chosen
    grid = screen.plain_table()
    grid.add_column("edge", overflow="fold")
    for heading in ("first", "second", "difference", error_heading(out)):
        grid.add_column(heading, justify="right")
    for row in shown.to_dict("records"):
        clear = abs(row["difference"]) > 3 * row["mcse"]
        numbers = (f"{row['first']:.3f}", f"{row['second']:.3f}", f"{row['difference']:+.3f}")
        grid.add_row(row["edge"], *numbers, error_text(row["mcse"]), style="bold" if clear else None)
    out.print(grid)
    rest = table.drop(shown.index)
    if len(rest):
        noun, verb = ("edge", "differs") if len(rest) == 1 else ("edges", "differ")
        widest = rest["difference"].abs().max()
        summary = f"{len(rest):,} more {noun} {verb} by at most {widest:.3f}; --top 0 --threshold 0 shows all"
        out.print(summary, style="dim", soft_wrap=True)


def _show_distances(one: "GraphPosterior", two: "GraphPosterior", table: "pd.DataFrame") -> None:
    import numpy as np

    p = one.edge_probabilities()
    q = two.edge_probabilities().loc[p.index, p.columns]
    out = screen.console()
    off = ~np.eye(len(p), dtype=bool)
    varied = p.to_numpy()[off].std() > 0 and q.to_numpy()[off].std() > 0
    correlation = np.corrcoef(p.to_numpy()[off], q.to_numpy()[off])[0, 1] if varied else np.nan
    out.print(
        f"\nmean absolute difference {table['difference'].abs().mean():.4f}, correlation "
        f"{'-' if np.isnan(correlation) else f'{correlation:.4f}'}, over all {off.sum()} edges"
    )
    between, within_one, within_two = (
        expected_distance(a.to_numpy(), b.to_numpy()) for a, b in ((p, q), (p, p), (q, q))
    )
    out.print(
        f"A DAG of the first and one of the second differ in {between:.2f} edges on average;\n"
        f"two of the first in {within_one:.2f}, two of the second in {within_two:.2f}."
    )


def _predictions(one: "GraphPosterior", two: "GraphPosterior") -> "Comparison | None":
    """Print how well each posterior predicts a row from all others; or why that can't be compared."""
    from gpn_bayes.posterior import compare

    titles = [post.record.score_title() for post in (one, two)]
    first, second = titles if titles[0] != titles[1] else ("first", "second")
    try:
        found = compare({first: one, second: two})
    except ValueError as problem:
        screen.note(f"predictions weren't compared: {problem}")
        return None
    out = screen.console()
    out.print(f"\nLog densities of all {found.rows:,} rows, each predicted from all others, in nats\n")
    grid = screen.plain_table()
    grid.add_column("variable", overflow="fold")
    for heading in ("first", "second", "difference", error_heading(out)):
        grid.add_column(heading, justify="right")
    for name, values, difference, error in _predicted(found, first, second):
        numbers = (*(f"{value:,.1f}" for value in values), f"{difference:+,.1f}", f"{error:,.1f}")
        grid.add_row(name, *numbers, style="bold" if abs(difference) > 3 * error else None)
    out.print(grid)
    out.print(f"\n{found}.")
    return found


def _predicted(found: "Comparison", first: str, second: str) -> Iterator[tuple[str, tuple[float, float], float, float]]:
    """Return the log densities of each variable, then of whole rows: both, second minus first, and its error."""
    import numpy as np

    for name, own in found.by_variable.groupby("variable", sort=False):
        table = own.set_index("model")
        one, two = table["elpd"].loc[[first, second]].tolist()
        # The best one differs from itself by nothing, without error.
        yield str(name), (one, two), two - one, float(np.hypot(table["dse"], table["mcse"]).max())
    one, two = found.table["elpd"].loc[[first, second]].tolist()
    error = np.hypot(found.table["dse"].max(), np.hypot(*found.table["mcse"]))
    yield "whole rows", (one, two), two - one, float(error)


def expected_distance(p: "np.ndarray", q: "np.ndarray") -> float:
    """Return the mean structural Hamming distance between independent draws from two posteriors.

    A reversal counts once, so a pair counts unless both draws agree on it: a sum over pairs of one minus
    the chance that both have it in one direction, in the other, or not at all.

    Parameters
    ----------
    p, q : ndarray of shape (n, n)
        Edge probabilities.

    Examples
    --------
    >>> import numpy as np
    >>> float(expected_distance(np.array([[0, 1.0], [0, 0]]), np.array([[0, 0.25], [0.75, 0]])))
    0.75
    """
    import numpy as np

    upper = np.triu_indices(len(p), 1)
    there, back = (p * q)[upper], (p * q).T[upper]
    neither = ((1 - p - p.T) * (1 - q - q.T))[upper]
    return float((1 - there - back - neither).sum())

"""``gpn-bayes estimate``: from a table to one graph, by any of the learners."""

import json
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpn_bayes._util.files import write_whole
from gpn_bayes._util.options import KNOWLEDGE
from gpn_bayes.cli import inputs, methods, screen
from gpn_bayes.cli.folder import check_free, csv_of_edges
from gpn_bayes.cli.options import Quiet, TableFile, folder_option, reads_table, takes_options
from gpn_bayes.cli.retyping import retyped
from gpn_bayes.cli.run import INTERRUPTED

if TYPE_CHECKING:
    import pandas as pd
    from rich.table import Table

    from gpn_bayes.data import Dataset, SufficientStatistics
    from gpn_bayes.estimators.base import GraphEstimator

FORMAT = "gpn_bayes estimate 1"
_EDGES = ("required", "forbidden")


@reads_table(draws=False)
@takes_options("required", "forbidden", "tiers", "max_parents")
def estimate_file(
    context: typer.Context,
    data: TableFile,
    method: Annotated[str, typer.Option(help=f"How to learn: {', '.join(methods.METHODS)}.")],
    out: Annotated[Path, folder_option("Folder for the results; nothing in it is overwritten.")],
    score: Annotated[
        str | None,
        typer.Option(
            help="Score to maximise: bic, bdeu, k2, bge, cg or gp; by default k2 for k2, else bic. pc and the notears "
            "family maximise no score; their graphs are only evaluated by it.",
            show_default=False,
        ),
    ] = None,
    seed: Annotated[int | None, typer.Option(help="The same seed gives the same results.", show_default="1")] = None,
    further: Annotated[
        list[str] | None,
        typer.Option("--set", help="A setting of the method, 'restarts=20' or 'lambda1=bic'; repeatable."),
    ] = None,
    order: Annotated[
        str | None,
        typer.Option(
            help="For k2: the variables, parents first, 'a,b,c' or a CSV file of names; by default several orders.",
            show_default=False,
            rich_help_panel=KNOWLEDGE,
        ),
    ] = None,
    quiet: Quiet = False,
    *,
    asked: dict[str, Any],
    table: dict[str, str],
) -> None:
    """Learn one graph from a table, and write its edges.

    Writes report.html, edges.csv, and estimate.json with the method, its settings and the score.
    Edges that pc can't direct are one row each, of type undirected.
    """
    with screen.plain_messages():
        from gpn_bayes import scores

        methods.find_method(method)
        score = None if score is None else inputs.read_score(score)
        check_free(out, [_report_file(out), _edges_file(out), _identity_file(out)])
        if seed is not None and seed < 0:
            raise ValueError(f"--seed must be 0 or more; received {seed}")
        dataset = inputs.read_table(data, table)
        names = dataset.names
        given = {
            "score": score,
            "order": inputs.read_order(order, names),
            "max_parents": asked["max_parents"],
            **{name: inputs.read_edges(asked[name], names, f"--{name}") if asked[name] else None for name in _EDGES},
            "tiers": inputs.read_tiers(asked["tiers"], names),
            "random_state": seed,
        }
        learner = methods.build(method, given, further or [], {"random_state": 1, "progressbar": not quiet})
        if score is not None:
            scores.by_name(score).bind(dataset)  # data it can't handle are reported before the search
        fitted = _learn(learner, dataset, score)
        _show(fitted)
        _write(fitted, method, out, retyped(context))
        screen.show_files(out, [_report_file(out), _edges_file(out), _identity_file(out)])
        if fitted.interrupted:
            screen.note("interrupted; this is the best graph found so far")
            raise typer.Exit(INTERRUPTED)


@dataclass(frozen=True)
class _Fitted:
    """A fitted learner, with what is shown of it."""

    learner: "GraphEstimator"
    data: "Dataset | SufficientStatistics"
    score: Any
    log_score: float | None
    seconds: float

    @property
    def maximised(self) -> bool:
        """Whether the learner maximised the score, so that weights are differences of it."""
        return hasattr(self.learner, "log_score_")

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended the search."""
        return bool(getattr(self.learner, "interrupted_", False))

    @property
    def gap(self) -> float | None:
        """Bound on the distance to the best score, where the learner knows one."""
        return getattr(self.learner, "gap_", None)


def _learn(learner: "GraphEstimator", dataset: "Dataset | SufficientStatistics", score: str | None) -> _Fitted:
    started = perf_counter()
    try:
        learner.fit(dataset)
    except KeyboardInterrupt:
        screen.note("interrupted before a graph was found; nothing was written")
        raise typer.Exit(INTERRUPTED) from None
    seconds = perf_counter() - started
    if hasattr(learner, "log_score_"):
        return _Fitted(learner, dataset, learner.get_params()["score"], learner.log_score_, seconds)
    log_score = None
    if score is not None:
        try:
            log_score = learner.log_score(score)
        except ValueError as error:  # no DAG represents this graph; its edges are still useful
            screen.tell("warning", str(error))
    return _Fitted(learner, dataset, score, log_score, seconds)


def _report_file(out: Path) -> Path:
    return out / "report.html"


def _edges_file(out: Path) -> Path:
    return out / "edges.csv"


def _identity_file(out: Path) -> Path:
    return out / "estimate.json"


def _write(fitted: _Fitted, method: str, out: Path, command: str) -> None:
    from gpn_bayes import __version__
    from gpn_bayes.estimators.describing import describe
    from gpn_bayes.estimators.edge_tables import edge_table
    from gpn_bayes.report import write_estimate_report

    edges = edge_table(fitted.learner)
    settings = {name: value for name, value in fitted.learner.get_params().items() if name != "progressbar"}
    content = {
        "format": FORMAT,
        "version": __version__,
        "method": method.lower(),
        "settings": settings,
        "variables": list(fitted.learner.feature_names_in_),
        "rows": fitted.data.n_rows,
        "rows_dropped": getattr(fitted.data, "rows_dropped", 0),
        "data_fingerprint": fitted.data.fingerprint,
        "score": fitted.score,
        "log_score": fitted.log_score,
        "gap": fitted.gap,
        "edges": len(edges),
        "undirected": int((edges["type"] == "undirected").sum()),
        "seconds": round(fitted.seconds, 3),
        "interrupted": fitted.interrupted,
    }
    out.mkdir(parents=True, exist_ok=True)
    write_whole(_identity_file(out), json.dumps(content, indent=1, ensure_ascii=False, default=str) + "\n")
    write_whole(_edges_file(out), csv_of_edges(edges, float_format="%.6f"))
    described = describe(fitted.learner, fitted.score, fitted.log_score)
    write_estimate_report(described, _report_file(out), command=command)


def _show(fitted: _Fitted) -> None:
    """Print what was learnt: the strongest edges, their number, and the score."""
    from gpn_bayes import scores
    from gpn_bayes.estimators.describing import limit_of, proof_in_words
    from gpn_bayes.estimators.edge_tables import edge_table

    out = screen.console()
    out.print(f"\n{fitted.learner.n_features_in_} variables, {fitted.data.n_rows} rows", style="bold", end="")
    score = "" if fitted.score is None else f", score {type(scores.by_name(fitted.score)).__name__}"
    out.print(f"  {type(fitted.learner).__name__}{score}\n")
    edges = edge_table(fitted.learner)
    lines = _lines(edges, fitted.maximised)
    if lines:
        out.print(_grid(lines[: screen.SHOWN_EDGES], "weight" in edges, fitted.maximised))
        more = len(lines) - screen.SHOWN_EDGES
        out.print(f"{more} more in edges.csv\n" if more > 0 else "", style="dim")
    total = "" if fitted.log_score is None else f"score {fitted.log_score:.3f}, "
    undirected = int((edges["type"] == "undirected").sum())
    split = f" ({len(edges) - undirected} directed, {undirected} undirected)" if undirected else ""
    out.print(f"{total}{len(edges)} edge{'s' * (len(edges) != 1)}{split}, {fitted.seconds:.1f} seconds")
    if fitted.gap is not None:
        up_to = getattr(fitted.learner, "searched_up_to_", None)
        out.print(proof_in_words(fitted.gap, up_to, limit_of(fitted.learner)))
    if fitted.maximised and lines:
        out.print("The worth of an edge is the loss in score without it.")


def _lines(edges: "pd.DataFrame", maximised: bool) -> list[list[str]]:
    """Return the rows of the table on screen."""
    from gpn_bayes.graphs import metrics

    lines = []
    for row in edges.to_dict("records"):
        line = [f"{row['parent']} {'-' if row['type'] == 'undirected' else '->'} {row['child']}"]
        if "weight" in row:
            line.append(f"{row['weight']:.3f}")
        if maximised:
            line.append(metrics.evidence(row["weight"]))
        lines.append(line)
    return lines


def _grid(lines: list[list[str]], weighted: bool, maximised: bool) -> "Table":
    grid = screen.plain_table()
    grid.add_column("edge", overflow="fold")
    if weighted:
        grid.add_column("worth" if maximised else "weight", justify="right")
    if maximised:
        grid.add_column("evidence")
    for line in lines:
        grid.add_row(*line)
    return grid

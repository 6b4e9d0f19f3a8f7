"""``gpn-bayes run`` and ``gpn-bayes demo``: from a table to the folder of its results."""

from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from gpn_bayes._util.files import UnwritableError
from gpn_bayes.cli import inputs, screen
from gpn_bayes.cli.cluster import Cluster, read_cluster
from gpn_bayes.cli.folder import ResultFolder
from gpn_bayes.cli.options import Quiet, TableFile, folder_option, reads_table, takes_options
from gpn_bayes.cli.retyping import retyped
from gpn_bayes.sampling.options import RunOptions, all_options, nested

if TYPE_CHECKING:
    from gpn_bayes.data import Dataset, SufficientStatistics
    from gpn_bayes.posterior import GraphPosterior
    from gpn_bayes.sampling.preparing import PreparedRun

INTERRUPTED = 130
# A run can only go on where it stopped if it has a seed.
_SEED = 1
_GOES_ON = "; what is finished is kept, and the same command goes on from there"

_CLUSTER = "More than one machine"


@dataclass(frozen=True)
class _Job:
    """A table and what to do with it."""

    data: "Dataset | SufficientStatistics"
    options: RunOptions
    out: Path
    quiet: bool
    command: str
    cluster: Cluster | None = None
    save_data: bool = True


@reads_table(draws=True)
@takes_options(random_seed=_SEED)
def run_file(
    context: typer.Context,
    data: TableFile,
    out: Annotated[Path, folder_option("Folder for the results; a killed run goes on there.")],
    dask: Annotated[
        str | None,
        typer.Option(
            help="Address of a dask scheduler, tcp://host:8786, whose workers compute the scores.",
            show_default=False,
            rich_help_panel=_CLUSTER,
        ),
    ] = None,
    tls_ca: Annotated[
        Path | None,
        typer.Option(help="Whose signature makes a certificate valid there (PEM).", rich_help_panel=_CLUSTER),
    ] = None,
    tls_cert: Annotated[
        Path | None, typer.Option(help="The certificate to show there.", rich_help_panel=_CLUSTER)
    ] = None,
    tls_key: Annotated[Path | None, typer.Option(help="Its private key.", rich_help_panel=_CLUSTER)] = None,
    save_data: Annotated[
        bool,
        typer.Option("--save-data/--no-save-data", help="Whether posterior.nc holds the table too."),
    ] = True,
    quiet: Quiet = False,
    *,
    asked: dict[str, Any],
    table: dict[str, str],
) -> None:
    """Draw networks from the posterior given a table, and write the probability of every edge.

    Writes report.html, posterior.nc, edges.csv, run.json and run.sqlite.
    The same command goes on where a killed run stopped, to the same result.
    """
    with screen.plain_messages():
        cluster = read_cluster(dask, tls_ca, tls_cert, tls_key)
        dataset = inputs.read_table(data, table)
        options = _run_options(asked, dataset.names)
        _carry_out(_Job(dataset, options, out, quiet, retyped(context), cluster, save_data))


@takes_options(
    "score", "sampler", "draws", "tune", "chains", "cores", "random_seed", "thin", "max_parents",
    score="gp", random_seed=_SEED,
)  # fmt: skip
def run_demo(
    context: typer.Context,
    out: Annotated[Path, folder_option("Folder for the results.")] = Path("gpn-bayes-demo"),
    quiet: Quiet = False,
    *,
    asked: dict[str, Any],
) -> None:
    """Do a run on the bundled data: 11 proteins in 853 human T cells (Sachs et al. 2005), log2.

    At the end stands the question that was once put to these cells:
    does erk act on akt, and does it reach pka?
    The Gaussian-process scores take some minutes; --score bge takes seconds.
    """
    with screen.plain_messages():
        from gpn_bayes import datasets
        from gpn_bayes.data import Dataset

        options = _run_options(asked, ())
        cells = Dataset.read(datasets.sachs(transform="log2"))
        post = _carry_out(_Job(cells, options, out, quiet, retyped(context)))
        answers = ", ".join(f"P({asked}) = {post.probability(asked)}" for asked in ("erk -> akt", "erk ~> pka"))
        screen.console().print(f"\nPaper's question: {answers}", soft_wrap=True)


def _carry_out(job: _Job) -> "GraphPosterior":
    """Do the run, or what is left of it, and show its summary."""
    from gpn_bayes.sampling.preparing import prepare
    from gpn_bayes.sampling.warned import warn_of_impossible_pairs

    run = prepare(job.data, job.options)
    folder = ResultFolder(job.out)
    ours = folder.check(run)
    if run.space.not_named is not None:
        screen.note(f"--candidates: {run.space.not_named}")
    if folder.finished:
        screen.note(f"{job.out} holds this run, finished; nothing was computed again")
    elif ours:
        screen.note(f"{job.out} holds this run, unfinished; going on")
    if run.kinds:
        screen.note(run.kinds)
    if run.either:
        screen.tell("note", run.either)
    if not folder.drawn:
        warn_of_impossible_pairs(run)
    # In time to stop and mend the table, not after hours.
    noted = [] if folder.drawn else [flag.message for flag in run.data_flags or ()]
    for text in noted:
        screen.tell("note", text)
    try:
        with nullcontext() if job.cluster is None or folder.drawn else job.cluster.executor() as executor:
            if not ours:
                folder.claim(run, job.data.n_rows)
            post = _finish(folder, run, executor, job)
    except UnwritableError as error:
        raise ValueError(f"{error}{_GOES_ON if folder.identity.exists() else ''}") from None
    except KeyboardInterrupt:
        _say_interrupted("after the last draw" if folder.drawn else "before the first draw")
        raise typer.Exit(INTERRUPTED) from None
    stopped = _stopped(post, run)
    if stopped:
        _say_interrupted(stopped)
    screen.show_run(post, job.data.n_rows, noted)
    if stopped:
        raise typer.Exit(INTERRUPTED)
    screen.show_files(folder.path, [folder.report, folder.posterior, folder.edges, folder.store, folder.identity])
    return post


def _finish(folder: ResultFolder, run: "PreparedRun", executor: Executor | None, job: _Job) -> "GraphPosterior":
    """Draw and write whatever isn't there yet; only the draws when Ctrl-C cut them short."""
    from gpn_bayes.posterior import load
    from gpn_bayes.report import write_report
    from gpn_bayes.sampling.checkpoint import CheckpointStore
    from gpn_bayes.sampling.sample import draw

    if folder.drawn:
        post = load(folder.posterior)
    else:
        # The draws stay in the store till they are safe in the posterior's own file.
        post = draw(run, cache=folder.store, executor=executor, progressbar=not job.quiet, keep_checkpoints=True)
        if _stopped(post, run):
            return post
        post.save(folder.posterior, data=job.save_data)
    if not folder.edges.exists():
        with CheckpointStore(folder.store) as store:
            store.forget(run.key)
        folder.write_edges(post)
    if not folder.report.exists():
        write_report(post, folder.report, data=job.data, command=job.command)
    return post


def _stopped(post: "GraphPosterior", run: "PreparedRun") -> str:
    """Return in words where Ctrl-C stopped a run; nothing if it didn't."""
    if post.record.interrupted:
        return f"after {post.log_score.shape[1]} of {run.plan.draws} draws of each chain"
    return "while weighting the draws" if post.record.reweight == "interrupted" else ""


def _say_interrupted(when: str) -> None:
    screen.note(f"interrupted {when}; the same command goes on from here")


def _run_options(asked: dict[str, Any], names: Sequence[str]) -> RunOptions:
    """Return the options of a run from what was typed, or stands there by default."""
    defaults = {name: default for name, (_, default) in all_options().items()}
    given = {name: defaults[name] if value is None else _read(name, value, names) for name, value in asked.items()}
    return RunOptions(**nested(given))


def _read(name: str, value: Any, names: Sequence[str]) -> Any:
    """Return the value of an option that was typed as Python takes it."""
    readers: dict[str, Callable[[], Any]] = {
        "score": lambda: inputs.read_score(value),
        "prior": lambda: inputs.read_prior(value, names),
        "required": lambda: inputs.read_edges(value, names, "--required"),
        "forbidden": lambda: inputs.read_edges(value, names, "--forbidden"),
        "tiers": lambda: inputs.read_tiers(value, names),
        "candidates": lambda: inputs.read_candidates(value, names),
        "expand": lambda: value or False,
    }
    if name in readers:
        return readers[name]()
    if not isinstance(value, str):
        return value
    return int(value) if inputs.is_whole(value) else None if value.lower() == "none" else value

"""``gpn-bayes run`` and ``gpn-bayes demo``: from a table to the folder of its results."""

from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from gpn_bayes._util.files import UnwritableError
from gpn_bayes.cli import inputs, screen
from gpn_bayes.cli.cluster import Cluster, read_cluster
from gpn_bayes.cli.folder import ResultFolder
from gpn_bayes.cli.options import (
    KNOWLEDGE,
    Forbidden,
    MaxParents,
    Quiet,
    Required,
    TableFile,
    Tiers,
    folder_option,
    reads_table,
)
from gpn_bayes.cli.retyping import retyped
from gpn_bayes.sampling.options import DEFAULTS, RunOptions

if TYPE_CHECKING:
    from gpn_bayes.data import Dataset, SufficientStatistics
    from gpn_bayes.posterior import GraphPosterior
    from gpn_bayes.sampling.prepared_run import PreparedRun

INTERRUPTED = 130
# A run can only go on where it stopped if it has a seed.
_SEED = 1
_GOES_ON = "; what is finished is kept, and the same command goes on from there"

_SAMPLING, _CLUSTER = "Sampling", "More than one machine"
Score = Annotated[
    str,
    typer.Option(
        help="How to score a variable given its parents: bge (linear relations), gp (unknown smooth ones, of numbers "
        "and categories), bdeu or k2 (categories), cg (numbers and categories, linear), or bic (any of these, as the "
        "data are)."
    ),
]
Sampler = Annotated[
    str,
    typer.Option(
        help="exact (up to 17 variables), partition or order; auto is exact up to 16, else partition.",
        rich_help_panel=_SAMPLING,
    ),
]
Draws = Annotated[int, typer.Option(help="DAGs to keep of each chain.", rich_help_panel=_SAMPLING)]
Tune = Annotated[int, typer.Option(help="DAGs to drop before, of each chain.", rich_help_panel=_SAMPLING)]
Chains = Annotated[int, typer.Option(help="Independent chains.", rich_help_panel=_SAMPLING)]
Cores = Annotated[
    int | None,
    typer.Option(help="Threads; all processors by default.", show_default=False, rich_help_panel=_SAMPLING),
]
Seed = Annotated[int, typer.Option(help="The same seed gives the same results.", rich_help_panel=_SAMPLING)]
Thin = Annotated[str, typer.Option(help="Steps before each draw; auto is ten per variable.", rich_help_panel=_SAMPLING)]
Until = Annotated[
    str | None,
    typer.Option(
        help="converged stops early if the chains agree, and goes on, thinner and longer, if they don't.",
        show_default=False,
        rich_help_panel=_SAMPLING,
    ),
]


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


@reads_table
def run_file(
    context: typer.Context,
    data: TableFile,
    out: Annotated[Path, folder_option("Folder for the results; a killed run goes on there.")],
    score: Score = DEFAULTS.score,
    sampler: Sampler = DEFAULTS.sampler,
    draws: Draws = DEFAULTS.draws,
    tune: Tune = DEFAULTS.tune,
    chains: Chains = DEFAULTS.chains,
    cores: Cores = DEFAULTS.cores,
    seed: Seed = _SEED,
    thin: Thin = str(DEFAULTS.thin),
    until: Until = DEFAULTS.until,
    temperatures: Annotated[
        int,
        typer.Option(help="Coupled copies of each chain, to cross what it can't.", rich_help_panel=_SAMPLING),
    ] = DEFAULTS.temperatures,
    prior: Annotated[
        str,
        typer.Option(
            help="uniform, fair, or a CSV file of edge probabilities: a square table, rows parents, or the "
            "columns parent, child, probability.",
            rich_help_panel=KNOWLEDGE,
        ),
    ] = DEFAULTS.prior,
    required: Required = None,
    forbidden: Forbidden = None,
    tiers: Tiers = None,
    max_parents: MaxParents = DEFAULTS.max_parents,
    candidates: Annotated[
        str | None,
        typer.Option(
            help="CSV file parent,child: the candidates of each child it names, at most 20, none if the parent is left "
            "empty; or how to find them: pc, dual-pc, greedy, correlation, distance-correlation, joined by +; or how "
            "many.",
            show_default=False,
            rich_help_panel=KNOWLEDGE,
        ),
    ] = None,
    plus_one: Annotated[
        bool | None,
        typer.Option(
            "--plus-one/--no-plus-one",
            help="Whether a variable may have one parent from outside its candidates; by default if these were found.",
            show_default=False,
            rich_help_panel=KNOWLEDGE,
        ),
    ] = None,
    expand: Annotated[
        float | None,
        typer.Option(
            help="Probability at which such a parent becomes a candidate, 0.05 by default; 0 for never.",
            show_default=False,
            rich_help_panel=KNOWLEDGE,
        ),
    ] = None,
    reweight: Annotated[
        str,
        typer.Option(
            help="auto draws under a quicker score where there is one (gp) and weights the draws; none doesn't.",
            rich_help_panel=_SAMPLING,
        ),
    ] = str(DEFAULTS.reweight),
    order_bias: Annotated[
        str,
        typer.Option(
            help="keep or correct the bias of the order sampler towards DAGs with many orders.",
            rich_help_panel=_SAMPLING,
        ),
    ] = DEFAULTS.order_bias,
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
    table: dict[str, str],
) -> None:
    """Draw networks from the posterior given a table, and write the probability of every edge.

    Writes report.html, posterior.nc, edges.csv, run.json and run.sqlite.
    The same command goes on where a killed run stopped, to the same result.
    """
    with screen.plain_messages():
        cluster = read_cluster(dask, tls_ca, tls_cert, tls_key)
        dataset = inputs.read_table(data, table)
        names = dataset.names
        options = RunOptions(
            inputs.read_score(score),
            sampler=sampler,
            draws=draws,
            tune=tune,
            chains=chains,
            cores=cores,
            random_seed=seed,
            thin=_read_thin(thin),
            until=until,
            temperatures=temperatures,
            prior=inputs.read_prior(prior, names),
            required=inputs.read_edges(required or [], names, "--required"),
            forbidden=inputs.read_edges(forbidden or [], names, "--forbidden"),
            tiers=inputs.read_tiers(tiers, names),
            max_parents=max_parents,
            candidates=inputs.read_candidates(candidates, names),
            plus_one=DEFAULTS.plus_one if plus_one is None else plus_one,
            expand=DEFAULTS.expand if expand is None else expand or False,
            reweight=None if reweight.lower() == "none" else reweight,
            order_bias=order_bias,
        )
        _carry_out(_Job(dataset, options, out, quiet, retyped(context), cluster, save_data))


def run_demo(
    context: typer.Context,
    out: Annotated[Path, folder_option("Folder for the results.")] = Path("gpn-bayes-demo"),
    score: Score = "gp",
    sampler: Sampler = DEFAULTS.sampler,
    draws: Draws = DEFAULTS.draws,
    tune: Tune = DEFAULTS.tune,
    chains: Chains = DEFAULTS.chains,
    cores: Cores = DEFAULTS.cores,
    seed: Seed = _SEED,
    thin: Thin = str(DEFAULTS.thin),
    max_parents: MaxParents = DEFAULTS.max_parents,
    quiet: Quiet = False,
) -> None:
    """Do a run on the bundled data: 11 proteins in 853 human T cells (Sachs et al. 2005), log2.

    At the end stands the question that was once put to these cells:
    does erk act on akt, and does it reach pka?
    The Gaussian-process scores take some minutes; --score bge takes seconds.
    """
    with screen.plain_messages():
        from gpn_bayes import datasets
        from gpn_bayes.data import Dataset

        options = RunOptions(
            inputs.read_score(score),
            sampler=sampler,
            draws=draws,
            tune=tune,
            chains=chains,
            cores=cores,
            random_seed=seed,
            thin=_read_thin(thin),
            max_parents=max_parents,
        )
        cells = Dataset.read(datasets.sachs(transform="log2"))
        post = _carry_out(_Job(cells, options, out, quiet, retyped(context)))
        answers = ", ".join(f"P({asked}) = {post.probability(asked)}" for asked in ("erk -> akt", "erk ~> pka"))
        screen.console().print(f"\nPaper's question: {answers}", soft_wrap=True)


def _carry_out(job: _Job) -> "GraphPosterior":
    """Do the run, or what is left of it, and show its summary."""
    from gpn_bayes.sampling.prepared_run import prepare
    from gpn_bayes.sampling.unjoinable import warn_of_impossible_pairs

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
    if post.settings.get("interrupted"):
        return f"after {post.log_score.shape[1]} of {run.plan.draws} draws of each chain"
    return "while weighting the draws" if post.settings["reweight"] == "interrupted" else ""


def _say_interrupted(when: str) -> None:
    screen.note(f"interrupted {when}; the same command goes on from here")


def _read_thin(text: str) -> int | str:
    return int(text) if inputs.is_whole(text) else text

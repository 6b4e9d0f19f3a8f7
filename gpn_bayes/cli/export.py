"""``gpn-bayes export``: the graph of a posterior as a file for other programs."""

from pathlib import Path
from typing import Annotated

import typer

from gpn_bayes.cli import screen
from gpn_bayes.cli.folder import find_posterior


def export_graph(
    posterior: Annotated[Path, typer.Argument(help="posterior.nc, or the folder it is in.")],
    file: Annotated[
        Path, typer.Argument(help="Where to write: network.graphml, .dot, .bif, .bnlearn, .dagitty or .csv.")
    ],
    which: Annotated[
        str, typer.Option(help="median: the edges of a probability above the threshold. map: the best DAG drawn.")
    ] = "median",
    threshold: Annotated[
        float | None, typer.Option(help="For median: a probability, 0.5 by default.", show_default=False)
    ] = None,
) -> None:
    """Write the graph of a posterior as a file for another program; its ending says which.

    GraphML and DOT hold the probabilities of the edges.
    BIF holds the fitted tables of categories.
    bnlearn and dagitty are text for these programs, CSV the adjacency matrix.
    """
    with screen.plain_messages():
        from gpn_bayes.posterior import load

        if file.exists():
            raise ValueError(f"nothing is overwritten; {str(file)!r} exists: choose another name")
        written = load(find_posterior(posterior)).export(file, which=which, threshold=threshold)
        screen.show_files(written.parent, [written])

"""What ``gpn-bayes private-k2`` shows and writes at the end: the network, the same for both parties, and its cost."""

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpn_bayes._util.files import write_whole
from gpn_bayes.cli import screen
from gpn_bayes.cli.folder import csv_of_edges

if TYPE_CHECKING:
    import pandas as pd

    from gpn_bayes.private.protocol import Learned

FORMAT = "gpn_bayes private-k2 1"


def result_files(out: Path) -> list[Path]:
    """Return the files of a run: the edges, and settings with costs."""
    return [out / "edges.csv", out / "private_k2.json"]


def edge_table(found: "Learned") -> "pd.DataFrame":
    """Return the edges by name: columns `parent` and `child`."""
    import numpy as np
    import pandas as pd

    names = np.array(found.variables, dtype=object)
    parents, children = np.nonzero(found.adjacency)
    table = pd.DataFrame({"parent": names[parents], "child": names[children]}, dtype=object)
    return table.sort_values(["parent", "child"], ignore_index=True)


def show_network(found: "Learned", seconds: float) -> None:
    """Print the network, and what it took since the parties met."""
    out = screen.console()
    out.print(f"\n{len(found.variables)} variables, {found.rows} rows", style="bold", end="")
    out.print("  private K2\n")
    edges = edge_table(found)
    for parent, child in edges.itertuples(index=False):
        out.print(f"{parent} -> {child}")
    sent = sum(cost.bytes_sent for cost in found.costs.values()) / 1e6
    received = sum(cost.bytes_received for cost in found.costs.values()) / 1e6
    number = f"{len(edges)} edge{'s' * (len(edges) != 1)}"
    out.print(f"\n{number}, {seconds:.1f} seconds, {sent:.1f} MB sent, {received:.1f} MB received")


def write_network(out: Path, found: "Learned", own: Mapping[str, Any], seconds: float) -> None:
    """Write the files of a run.

    Parameters
    ----------
    out : path
        The folder.
    found : Learned
        What was learnt.
    own : mapping
        What else to write down of this party.
    seconds : float
        In all, with the generation of the key and the wait for the other party.
    """
    from gpn_bayes import __version__

    edges = edge_table(found)
    content = {
        "format": FORMAT,
        "version": __version__,
        **own,
        "variables": list(found.variables),
        "rows": found.rows,
        "edges": len(edges),
        "seconds": round(seconds, 3),
        "costs": {name: asdict(cost) for name, cost in found.costs.items()},
    }
    edges_file, settings_file = result_files(out)
    out.mkdir(parents=True, exist_ok=True)
    write_whole(settings_file, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    write_whole(edges_file, csv_of_edges(edges))

"""The folder of a run's results: which run it belongs to, what it holds, and atomic writes."""

import json
import os
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from gpn_bayes._util.files import write_whole
from gpn_bayes._util.printable import no_formulas

if TYPE_CHECKING:
    import pandas as pd

    from gpn_bayes.posterior import GraphPosterior
    from gpn_bayes.sampling.preparing import PreparedRun

FORMAT = "gpn_bayes run 1"
# How each column of edges.csv is written, so that equal results are equal files.
_DECIMALS = {"probability": 6, "mcse": 6, "ess": 1, "r_hat": 4}


class ResultFolder:
    """The results of one run: ``run.json``, ``run.sqlite``, ``posterior.nc``, ``edges.csv`` and ``report.html``.

    ``run.json`` is written first and says whose folder it is; ``posterior.nc`` appears when all is drawn, then
    ``edges.csv``, and ``report.html`` last.

    Parameters
    ----------
    path : path
        The folder; it need not exist yet.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.identity = path / "run.json"
        self.store = path / "run.sqlite"
        self.posterior = path / "posterior.nc"
        self.edges = path / "edges.csv"
        self.report = path / "report.html"

    @property
    def drawn(self) -> bool:
        """Whether all draws are in ``posterior.nc``."""
        return self.posterior.exists()

    @property
    def finished(self) -> bool:
        """Whether nothing is left to do."""
        return self.drawn and self.edges.exists() and self.report.exists()

    def check(self, run: "PreparedRun") -> bool:
        """Return whether the folder already belongs to this run; refuse that of another run.

        Raises
        ------
        ValueError
            If the folder holds another run, or files that would be overwritten and aren't ours.
        """
        if self.path.exists() and not self.path.is_dir():
            raise ValueError(f"--out must be a folder; {str(self.path)!r} is a file")
        if not self.identity.exists():
            for file in (self.posterior, self.edges, self.report, self.store):
                if file.exists():
                    raise ValueError(
                        f"nothing is overwritten; {str(file)!r} exists without the run.json of its run: "
                        "choose another --out"
                    )
            return False
        known = self._read_identity()
        if known.get("key") == run.key:
            return True
        try:
            differences = _differences(known, run)
        except (KeyError, TypeError, AttributeError, ValueError):  # somebody has changed the file
            differences = "with other settings"
        raise ValueError(
            f"nothing is overwritten; {str(self.path)!r} holds another run, {differences}: choose another --out"
        )

    def claim(self, run: "PreparedRun", rows: int) -> None:
        """Make the folder, and record which run it belongs to."""
        self.path.mkdir(parents=True, exist_ok=True)
        content = {
            "format": FORMAT,
            "key": run.key,
            "variables": list(run.scorer.names),
            "rows": rows,
            "settings": run.settings,
            "candidates": run.space.parameters,
        }
        write_whole(self.identity, json.dumps(content, indent=1, ensure_ascii=False) + "\n")

    def write_edges(self, post: "GraphPosterior") -> None:
        """Write ``edges.csv``."""
        write_whole(self.edges, edges_csv(post.summary()))

    def _read_identity(self) -> dict[str, Any]:
        try:
            content = json.loads(self.identity.read_text(encoding="utf-8"))
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise ValueError(
                f"nothing is overwritten; {str(self.identity)!r} was not written by gpn-bayes: choose another --out"
            )
        return content


def edges_csv(summary: "pd.DataFrame") -> str:
    """Return the edges of a summary as CSV, by descending probability, then by name; see `csv_of_edges`."""
    table = summary.drop(columns="edge")
    for column, decimals in _DECIMALS.items():
        table[column] = ["" if value != value else f"{value:.{decimals}f}" for value in table[column]]
    # Sorted as written: what differs by less than that must not change the order.
    table = table.sort_values(["parent", "child"]).sort_values(
        "probability", ascending=False, kind="stable", key=lambda column: column.astype(float)
    )
    return csv_of_edges(table)


def csv_of_edges(table: "pd.DataFrame", **how: Any) -> str:
    """Return a table of edges as CSV; names that a spreadsheet would take for formulas after an apostrophe."""
    named = table.assign(**{end: no_formulas(table[end]) for end in ("parent", "child")})
    text: str = named.to_csv(index=False, lineterminator="\n", **how)
    return text


def check_free(out: Path, files: Iterable[Path]) -> None:
    """Refuse a folder that can't be written, or holds some of the files, before any work is done."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"--out must be a folder; {str(out)!r} is a file")
    for file in files:
        if os.path.lexists(file):
            raise ValueError(f"nothing is overwritten; {str(file)!r} exists: choose another --out")
    above = next(folder for folder in (out, *out.absolute().parents) if folder.exists())
    if not above.is_dir():
        raise ValueError(f"--out must be a folder; {str(above)!r} above it is a file")
    if not os.access(above, os.W_OK | os.X_OK):
        raise ValueError(f"--out must be a folder to write in; {str(above)!r} isn't")


def find_posterior(path: Path) -> Path:
    """Return the file of a posterior given by its own path or by its folder's."""
    if path.is_dir():
        folder = ResultFolder(path)
        if not folder.drawn:
            state = "its run isn't finished" if folder.identity.exists() else "there is none"
            raise ValueError(f"a folder of results must hold posterior.nc; in {str(path)!r} {state}")
        return folder.posterior
    return path


def _differences(known: dict[str, Any], run: "PreparedRun") -> str:
    """Return what sets a known run apart from this one, in options as they are typed."""
    from gpn_bayes.posterior.run_record import RunRecord

    theirs, ours = known["settings"], json.loads(json.dumps(run.settings, default=str))
    score = RunRecord.read(theirs).score
    theirs = {**theirs, "score": None if score is None else asdict(score)}
    names = {name for name in {*theirs, *ours} if theirs.get(name) != ours.get(name)}
    if "data_fingerprint" in names:
        return f"on other data, {len(known['variables'])} variables and {known['rows']} rows"
    other_space = known["candidates"] != json.loads(json.dumps(run.space.parameters))
    in_knowledge = _prior_differences(theirs["prior"], ours["prior"]) if "prior" in names else []
    # Candidates that are named leave out what the prior forbids.
    if other_space and not (in_knowledge and isinstance(known["candidates"], list)):
        in_knowledge.append("other --candidates")
    names -= {"prior"} | _consequences(names, theirs, ours, other_space, run.scorer.default_max_parents)
    first = ("version", "score", "sampler")
    ordered = [name for name in first if name in names] + sorted(names.difference(first))
    differences = [_described(name, theirs.get(name), ours.get(name)) for name in ordered] + in_knowledge
    return f"with {', '.join(differences) or 'other settings'}"


def _consequences(
    names: set[str], theirs: dict[str, Any], ours: dict[str, Any], other_space: bool, usual_max_parents: int | None
) -> set[str]:
    """Return the settings that differ only as a consequence of another one."""
    follow = set()
    if "sampler" in names:
        # What only one of two samplers has.
        follow |= {"independent", "order_bias", "temperatures"}
        if theirs.get("independent") or ours.get("independent"):
            follow |= {"tune", "thin"}
            # Exact samplers take no parents from outside the candidates.
            if "plus_one" in names:
                follow.add("sampler")
    if "score" in names:
        follow.add("reweight")
        if ours["max_parents"] == usual_max_parents:
            follow.add("max_parents")
    if other_space:
        follow.add("plus_one")
    if other_space or "plus_one" in names:
        follow.add("expand")
    return follow


def _prior_differences(theirs: dict[str, Any], ours: dict[str, Any]) -> list[str]:
    differences = []
    if theirs["kind"] != ours["kind"]:
        differences.append(f"--prior {theirs['kind']} instead of {ours['kind']}")
    if theirs["log_odds"] != ours["log_odds"]:
        differences.append("other edge probabilities in --prior")
    if theirs["required"] != ours["required"]:
        differences.append("other --required edges")
    if theirs["forbidden"] != ours["forbidden"]:
        differences.append("other --forbidden edges or --tiers")
    return differences


def _described(name: str, theirs: Any, ours: Any) -> str:
    """Return a setting of a known run, and what it is in this one, in words of the command line."""
    if name == "version":
        return f"gpn_bayes {theirs} instead of {ours}"
    if name == "plus_one":
        return f"{_plus_one(theirs)} instead of {_plus_one(ours)}"
    if name == "score" and _score(theirs) == _score(ours):
        return f"other settings of --score {_score(theirs)}"
    if theirs is None and name in ("max_parents", "until"):
        return f"no --{name.replace('_', '-')} instead of {ours}"
    readers: dict[str, Callable[[Any], str]] = {"score": _score, "expand": _expand}
    read = readers.get(name, _plain)
    option = "--seed" if name == "random_seed" else f"--{name.replace('_', '-')}"
    return f"{option} {read(theirs)} instead of {read(ours)}"


def _plus_one(allowed: bool) -> str:
    return "--plus-one" if allowed else "--no-plus-one"


def _score(setting: dict[str, Any]) -> str:
    return str(setting["name"])


def _expand(threshold: float | None) -> str:
    return "0" if threshold is None else str(threshold)


def _plain(value: Any) -> str:
    return "none" if value is None else str(value)

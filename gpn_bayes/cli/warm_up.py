"""``gpn-bayes warm-up``: compile beforehand what a first run would compile, for images, clusters and demonstrations."""

import time
import warnings
from collections.abc import Callable
from typing import Any

from gpn_bayes.cli import screen

_QUICK: dict[str, Any] = {"draws": 20, "tune": 20, "chains": 2, "random_seed": 1, "progressbar": False}


def warm_up() -> None:
    """Compile what the first run of each kind would compile: about two minutes, once per installation.

    The result is kept beside the package, or in numba's cache directory where that can't be written.
    """
    with screen.plain_messages():
        from gpn_bayes._util.progress import progress_bar

        started = time.monotonic()
        jobs = _jobs()
        with warnings.catch_warnings(), progress_bar("Compiling", len(jobs), True) as advance:
            warnings.simplefilter("ignore", UserWarning)  # runs this short can't converge
            for job in jobs:
                job()
                advance(1)
        screen.note(f"compiled in {time.monotonic() - started:.0f} s; later runs need not")


def _jobs() -> list[Callable[[], Any]]:
    """Return short runs of every sampler and of the scores, on small tables."""
    import gpn_bayes as gpn

    def table(n: int, rows: int = 40) -> Any:
        dag = gpn.simulate.random_dag(n, edges_per_node=1.0, random_seed=1)
        return gpn.simulate.linear(dag, n_rows=rows, random_seed=1)

    few, many = table(4), table(18)
    categories = gpn.simulate.discrete(gpn.simulate.random_dag(4, edges_per_node=1.0, random_seed=1), 60, random_seed=1)
    mixed = categories.join(table(4, 60).add_prefix("number "))
    gaps = mixed.assign(gaps=mixed.iloc[:, -1].where(mixed.index > 0))
    return [
        lambda: gpn.sample(few, "bge", **_QUICK),
        lambda: gpn.sample(many, "bge", space=gpn.Space(candidates=3), **_QUICK),
        lambda: gpn.sample(few, "bge", sampler="order", **_QUICK),
        lambda: gpn.sample(categories, "bdeu", **_QUICK),
        lambda: gpn.sample(mixed, "cg", **_QUICK),
        lambda: gpn.sample(gaps, "cg", missing="impute", **_QUICK),
        lambda: gpn.sample(few, "gp", space=gpn.Space(max_parents=2), **_QUICK),
        lambda: gpn.scores.GP().bind(mixed).local(mixed.columns[0], mixed.columns[-1:]),
    ]

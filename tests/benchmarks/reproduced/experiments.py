"""What is measured of the papers again: for each experiment its settings, its seeds, and what runs once.

The functions are those of the slow benchmarks, which assert what must hold of the same figures. Experiments stand in
the order in which each seed is run, cheap ones first.
"""

from collections.abc import Callable, Container, Iterator, Mapping
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

from gpn_bayes import metrics
from tests.benchmarks import (
    test_federated,
    test_learners,
    test_notears,
    test_paper_figure1,
    test_paper_figure3,
    test_paper_table1,
    test_private_k2,
)
from tests.federated import REFERENCES, reference
from tests.notears_reference import CASES

Measures = Mapping[str, float]


class Experiment(NamedTuple):
    """Something that is measured with every setting and every seed.

    `measure` takes a setting's value, a seed, and a folder for files that units of the same run may share. A measure
    "error of x" is the standard error of the measure x, where one unit has one of its own.
    """

    settings: Mapping[str, Any]
    seeds: tuple[int, ...]
    measure: Callable[[Any, int, Path], Measures]
    prepare: Callable[[], None] | None = None
    # Settings in which nothing is random, so that the first seed does.
    once: Container[str] = ()

    def rounds(self) -> Iterator[list[tuple[str, int]]]:
        """Yield what is run with each seed: settings and the seed."""
        for seed in self.seeds:
            yield [(name, seed) for name in self.settings if seed == self.seeds[0] or name not in self.once]


def named(template: str, *values: Any) -> dict[str, Any]:
    """Return all combinations of values by the name of each."""
    return {template.format(*chosen): chosen for chosen in product(*values)}


def _seeds(count: int) -> tuple[int, ...]:
    return tuple(range(count))


# Gaussian-process networks


def table1(setting: tuple[str, str], seed: int, folder: Path) -> Measures:
    found = test_paper_table1.answers(test_paper_table1.posterior(*setting, folder / "sachs.sqlite"))
    asked = ("SHD", "TP", "FP", "erk -> akt", "no erk -> pka")
    return {name: found[name] for name in (*asked, *(f"error of {name}" for name in asked))}


def figure1(lam: float, seed: int, folder: Path) -> Measures:
    rows = test_paper_figure1.one_network(seed, lam, folder)
    return {f"{row['method']}|{row['setting']}|{truth}": row[truth] for row in rows for truth in ("DAG", "CPDAG")}


def figure3(draws: None, seed: int, folder: Path) -> Measures:
    table = test_paper_figure3.divergences(test_paper_figure3.data_set(seed), folder / f"figure3_{seed}.sqlite")
    return {f"{kind}|{count}": table.loc[count, kind] for count in table.index for kind in table}


# NOTEARS

METHODS = {"search over orders": "auto", "augmented Lagrangian": "augmented-lagrangian"}


def minimum(setting: tuple[str, int, float], seed: int, folder: Path) -> Measures:
    found = test_notears.beside_the_minimum(*setting, seed, methods=METHODS.values())
    return {"least": found["least"]} | {
        f"excess, {name}": found[method] / found["least"] - 1 for name, method in METHODS.items()
    }


def accuracy(setting: tuple[str, int, str, int], seed: int, folder: Path) -> Measures:
    kind, d, noise, n_rows = setting
    values, truth = test_notears.simulated(kind, d, n_rows, seed, noise)
    found = {name: test_notears.errors(graph, truth) for name, graph in test_notears.own_graphs(values).items()}
    return {f"SHD {name}": shd for name, (shd, _, _) in found.items()} | {"FDR NOTEARS": found["NOTEARS"][2]}


def proteins(setting: tuple[str, Any, Any, str], seed: int, folder: Path) -> Measures:
    scale, lambda1, threshold, method = setting
    found = test_notears.proteins("all", scale, lambda1, threshold, method=method)
    return {name: found[name] for name in ("edges", "SHD 20", "lambda", "threshold")}


PENALTIES = {"lambda 0.1": (0.1, 0.3), "lambda by BIC": ("bic", "auto")}
PROTEINS = {
    f"{scale}, {penalty}, {method}": (scale, *PENALTIES[penalty], METHODS[method])
    for scale, penalty, method in product(test_notears.SCALES, PENALTIES, METHODS)
    if (penalty, method) != ("lambda by BIC", "augmented Lagrangian")
}


# NOTEARS-ADMM


def reached(run: Mapping[str, Mapping[str, Any]]) -> Measures:
    """Return SHD and TPR of every method, and what ADMM took."""
    both = {f"{name} {method}": found[name] for method, found in run.items() for name in ("SHD", "TPR")}
    return both | {"rounds": run["ADMM"]["rounds"], "CPU s ADMM": run["ADMM"]["CPU s"]}


def reference_clients(count: int, seed: int, folder: Path) -> Measures:
    tables, truth, _, theirs = reference(count)
    found = test_federated.linear().fit(tables).adjacency_
    distances = {"SHD original": (theirs, truth), "SHD": (found, truth), "to the original": (found, theirs)}
    return {name: metrics.shd(*pair) for name, pair in distances.items()}


def original(setting: tuple[int, int], seed: int, folder: Path) -> Measures:
    found = test_federated.beside_the_original(*setting, seed)
    names = ("SHD original", "SHD", "to the original", "original again", "CPU s original", "CPU s")
    return {name: found[name] for name in names}


def clients(setting: tuple[int, int], seed: int, folder: Path) -> Measures:
    d, count = setting
    return reached(test_federated.linear_run(d, 256, count, seed))


def few_rows(setting: tuple[int], seed: int, folder: Path) -> Measures:
    [d] = setting
    return reached(test_federated.linear_run(d, 3 * d, 10, seed))


# RBNets and private K2

NETWORKS = ("asia", "child", "alarm", "60 variables")


def learner(setting: tuple[str, str], seed: int, folder: Path) -> Measures:
    network, name = setting
    data, score = test_learners.NETWORKS[network]()
    bic, seconds, proved = test_learners.measured(test_learners.LEARNERS[name](score, seed), data)
    return {"BIC": bic, "CPU s": seconds} | ({"proved": proved} if proved is not None else {})


def private_costs(setting: tuple[str, int, int, int], seed: int, folder: Path) -> Measures:
    name, n, rows, cut = setting
    codes, order = test_private_k2.asia_table() if name == "asia" else test_private_k2.dense_table(n, rows)
    found = test_private_k2.measure(codes, order, cut)
    row = test_private_k2.line(found)
    return {"megabytes": row["megabytes"], "wall s": row["seconds"], "edges": row["edges"]}


PRIVATE = {
    "asia, 4 and 4 columns": ("asia", 8, 1000, 4),
    "asia, 1 and 7 columns": ("asia", 8, 1000, 1),
    "dense, 1 and 7 columns": ("dense", 8, 1000, 1),
    **{f"dense, 8 variables, {rows:,} rows": ("dense", 8, rows, 4) for rows in test_private_k2.ROWS},
    **{f"dense, {n} variables, 1,000 rows": ("dense", n, 1000, n // 2) for n in test_private_k2.VARIABLES},
}


EXPERIMENTS: dict[str, Experiment] = {
    "notears-reference": Experiment(
        dict(zip(CASES, CASES, strict=True)),
        (0,),
        lambda case, seed, folder: test_notears.reference_case(case),
        test_notears.compile_first,
    ),
    "admm-reference": Experiment({f"{count} clients": count for count in REFERENCES}, (0,), reference_clients),
    "notears-sachs": Experiment(PROTEINS, (0,), proteins, test_notears.compile_first),
    "private-k2-score": Experiment(
        {f"{rows:,} rows": rows for rows in (100, 1000, 10_000)},
        _seeds(20),
        lambda rows, seed, folder: test_private_k2.changed_by_the_papers_score(rows, seed),
    ),
    "notears-minimum": Experiment(
        {f"{kind}, n = {n}, lambda {lam:g}": (kind, n, lam) for kind, n, lam in test_notears.SMALL_PROBLEMS},
        _seeds(10),
        minimum,
        test_notears.compile_first,
    ),
    "private-k2-costs": Experiment(PRIVATE, (0,), private_costs),
    "rbnets": Experiment(
        named("{}, {}", NETWORKS, test_learners.LEARNERS),
        test_learners.SEEDS,
        learner,
        test_learners.compile_first,
        once=[f"{network}, Exact" for network in NETWORKS],
    ),
    "gpn-table1": Experiment(named("{}, {}", test_paper_table1.SCORES, test_paper_table1.SAMPLERS), (1,), table1),
    "gpn-figure3": Experiment({"four nodes": None}, _seeds(test_paper_figure3.DATA_SETS), figure3),
    "admm-original": Experiment(named("d = {}, {} clients", (10,), (2, 8)), _seeds(10), original),
    "admm-clients": Experiment(named("d = {}, {} clients", (10, 20), test_federated.CLIENTS), _seeds(10), clients),
    "admm-few-rows": Experiment(named("d = {}", (10, 20, 50)), _seeds(10), few_rows),
    "admm-sachs": Experiment(
        {f"{count} clients": count for count in test_federated.CLIENTS},
        _seeds(10),
        lambda count, seed, folder: reached(test_federated.protein_run(count, seed)),
    ),
    "notears-accuracy": Experiment(
        named("{}, d = {}, {}, n = {}", ("ER2", "SF4"), (10, 20), ("gaussian", "exponential", "gumbel"), (20, 1000)),
        _seeds(10),
        accuracy,
        test_notears.compile_first,
    ),
    "gpn-figure1": Experiment(
        {f"lambda {lam:g}": lam for lam in test_paper_figure1.LAMBDAS}, _seeds(test_paper_figure1.NETWORKS), figure1
    ),
    "admm-curved": Experiment(
        {f"{count} clients": count for count in (2, 8)},
        _seeds(3),
        lambda count, seed, folder: reached(test_federated.curved_run(count, seed)),
    ),
}

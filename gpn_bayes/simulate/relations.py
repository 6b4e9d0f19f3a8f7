"""Data drawn from a DAG: linear, Fourier, neural-network and discrete relations."""

import math
from collections.abc import Callable, Hashable, Mapping
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

from gpn_bayes import graphs
from gpn_bayes._util.checks import check_choice, check_count, check_positive, shown
from gpn_bayes._util.seeds import generator
from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.simulate.discrete_networks import DiscreteNetwork, check_table_size
from gpn_bayes.simulate.experiments import (
    Values,
    add_targets,
    draw_rows,
    number_change,
    observed_rows,
    read_experiments,
)
from gpn_bayes.simulate.random_dags import Seed, read_dag

_NOISES = ("gaussian", "exponential", "gumbel")
_WEIGHT_RANGE = (0.5, 2.0)
# The wave number of each Fourier weight: w_0, then v_k (sine) and w_k (cosine) for k = 1..6.
_WAVES = np.array([0, *np.repeat(np.arange(1, 7), 2)])


def linear(
    dag: Any,
    n_rows: int | Mapping[Any, int],
    noise: str = "gaussian",
    weight_range: tuple[float, float] = _WEIGHT_RANGE,
    noise_scale: float = 1.0,
    random_seed: Seed = None,
    *,
    interventions: Mapping[Any, Any] | None = None,
) -> pd.DataFrame:
    """Return data where each variable is a weighted sum of its parents plus noise.

    Parameters
    ----------
    dag : networkx.DiGraph, DataFrame or array
        The DAG; the nodes of an array are named v1, v2, ….
    n_rows : int or mapping of names to int
        Number of rows; with interventions, of observed rows and of each experiment, or by the keys of `interventions`
        and "" for observed rows.
    noise : {"gaussian", "exponential", "gumbel"}
        Distribution of the noise. The last two are not centred: their means are 1 and 0.577 times the scale.
    weight_range : pair of float
        Weights have magnitudes uniform in this range, and random signs.
    noise_scale : float
        Scale parameter of the noise (the standard deviation of the first two).
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.
    interventions : mapping of names to float, {"shift", "noise"} or callable, optional
        Experiments whose rows follow the observed ones: the target, a variable or several joined by ";", and what is
        done to it. A number: the variable is set to it. "noise": it is normal, whatever its parents, with the mean and
        the standard deviation that it has in the observed rows. "shift": one such standard deviation is added to what
        its mechanism gives. A function ``f(values, rng)``: it becomes what the function returns, given the values that
        it would have had in these rows (an array) and a numpy Generator. All other variables keep their mechanisms.

    Returns
    -------
    DataFrame
        ``attrs["weights"]`` holds the true weights as nested lists: ``[i][j]`` is that of i -> j, 0 for none. With
        interventions there is a last column ``target``: the targets of each row, empty in the observed ones, as
        `gpn.sample` reads them by ``targets="target"`` (and ``intervention="soft"`` if they are shifted). The observed
        rows are those that the same seed gives without interventions.

    Examples
    --------
    >>> dag = nx.DiGraph([("raf", "mek")])
    >>> df = linear(dag, n_rows=100, random_seed=1)
    >>> df.shape, round(df.attrs["weights"][0][1], 2)
    ((100, 2), -1.93)
    >>> done = {"raf": 3, "mek": "noise"}
    >>> df = linear(dag, n_rows={"": 100, "raf": 100, "mek": 50}, random_seed=1, interventions=done)
    >>> df["target"].value_counts(sort=False).to_dict()
    {'': 100, 'raf': 100, 'mek': 50}
    >>> df[df["target"] == "raf"].mean(numeric_only=True).round(1).to_dict()
    {'raf': 3.0, 'mek': -5.8}
    """
    check_choice("noise", noise, _NOISES)
    check_positive("noise_scale", noise_scale)
    simulation = _Simulation(dag, n_rows, random_seed, interventions)
    rng, matrix = simulation.rng, simulation.matrix
    weights = np.where(matrix, signed_uniform(rng, matrix.shape, weight_range), 0.0)
    return simulation.table(
        lambda shape: noise_scale * _standard_noise(rng, noise, shape),
        lambda child, parents, x: x @ weights[parents, child],
        weights,
    )


def _standard_noise(rng: np.random.Generator, noise: str, shape: tuple[int, int]) -> Floats:
    if noise == "gaussian":
        return rng.standard_normal(shape)
    return rng.standard_exponential(shape) if noise == "exponential" else rng.gumbel(size=shape)


def fourier(
    dag: Any,
    n_rows: int | Mapping[Any, int],
    lam: float,
    random_seed: Seed = None,
    *,
    interventions: Mapping[Any, Any] | None = None,
) -> pd.DataFrame:
    """Return data with smooth non-linear relations: a random Fourier series for every edge.

    Each edge j -> i adds beta {w_0 x_j + sum_k [v_k sin(k x_j) + w_k cos(k x_j)]} with k = 1..6 to x_i, and
    the noise is standard normal. The magnitudes of beta are uniform in (0.5, 2), with random signs; the
    weights w and v are drawn from a Dirichlet distribution with concentrations exp(-k / lam).

    Parameters
    ----------
    dag : networkx.DiGraph, DataFrame or array
        The DAG; the nodes of an array are named v1, v2, ….
    n_rows : int or mapping of names to int
        Number of rows; with interventions as in `linear`.
    lam : float
        Degree of non-linearity; 0 is linear.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.
    interventions : mapping, optional
        Experiments whose rows follow the observed ones, as in `linear`.

    Returns
    -------
    DataFrame
        ``attrs["weights"]`` holds the betas as nested lists: ``[j][i]`` is that of j -> i, 0 for none.

    Examples
    --------
    >>> from gpn_bayes.simulate import random_dag
    >>> dag = random_dag(5, p=0.5, random_seed=1)
    >>> fourier(dag, n_rows=100, lam=1.0, random_seed=1).shape
    (100, 5)
    >>> fourier(dag, n_rows=100, lam=1.0, random_seed=1, interventions={"v3": "shift"}).shape
    (200, 6)
    """
    if not 0 <= lam < math.inf:
        raise ValueError(f"lam must be finite and not negative; received {lam}")
    simulation = _Simulation(dag, n_rows, random_seed, interventions)
    rng, matrix = simulation.rng, simulation.matrix
    beta = np.where(matrix, signed_uniform(rng, matrix.shape, _WEIGHT_RANGE), 0.0)
    mixing = _fourier_weights(rng, matrix.shape, lam)

    def effect(child: int, parents: Ints, x: Floats) -> Floats:
        total: Floats = np.einsum("rpk,pk,p->r", _fourier_basis(x), mixing[parents, child], beta[parents, child])
        return total

    return simulation.table(rng.standard_normal, effect, beta)


def _fourier_weights(rng: np.random.Generator, shape: tuple[int, ...], lam: float) -> Floats:
    """Return Dirichlet weights of shape (*shape, 13), in the order of `_WAVES`.

    They are normalised gammas: tiny concentrations give zeros, while w_0, whose concentration is one,
    keeps the sum positive.
    """
    concentrations = np.exp(-_WAVES / lam) if lam > 0 else (_WAVES == 0).astype(float)
    gammas = rng.standard_gamma(concentrations, size=(*shape, len(_WAVES)))
    return gammas / gammas.sum(axis=-1, keepdims=True)


def _fourier_basis(x: Floats) -> Floats:
    """Return x, sin(x), cos(x), …, sin(6 x), cos(6 x) along a new last axis."""
    angles = x[..., None] * _WAVES
    basis: Floats = np.cos(angles)
    basis[..., 0] = x
    basis[..., 1::2] = np.sin(angles[..., 1::2])
    return basis


def mlp(
    dag: Any,
    n_rows: int | Mapping[Any, int],
    hidden: int = 100,
    random_seed: Seed = None,
    *,
    interventions: Mapping[Any, Any] | None = None,
) -> pd.DataFrame:
    """Return data where each variable is a random neural network of its parents plus standard normal noise.

    The network has one hidden layer of sigmoids; the magnitudes of its weights are uniform in (0.5, 2),
    with random signs.

    Parameters
    ----------
    dag : networkx.DiGraph, DataFrame or array
        The DAG; the nodes of an array are named v1, v2, ….
    n_rows : int or mapping of names to int
        Number of rows; with interventions as in `linear`.
    hidden : int
        Number of hidden units.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.
    interventions : mapping, optional
        Experiments whose rows follow the observed ones, as in `linear`.

    Examples
    --------
    >>> dag = nx.DiGraph([("raf", "mek")])
    >>> mlp(dag, n_rows=100, random_seed=1).columns.tolist()
    ['raf', 'mek']
    >>> halved = {"raf": lambda values, rng: values / 2}
    >>> mlp(dag, n_rows=100, random_seed=1, interventions=halved).columns.tolist()
    ['raf', 'mek', 'target']
    """
    check_count("hidden", hidden, 1)
    simulation = _Simulation(dag, n_rows, random_seed, interventions)
    rng = simulation.rng

    # Drawn for the observed rows, and the same ones in every experiment.
    @cache
    def weights(child: int, n_parents: int) -> tuple[Floats, Floats]:
        return signed_uniform(rng, (n_parents, hidden), _WEIGHT_RANGE), signed_uniform(rng, (hidden,), _WEIGHT_RANGE)

    def effect(child: int, parents: Ints, x: Floats) -> Floats:
        inner, outer = weights(child, len(parents))
        return expit(x @ inner) @ outer

    return simulation.table(rng.standard_normal, effect)


def random_network(
    dag: Any, levels: int | Mapping[Hashable, int] = 2, concentration: float = 1.0, random_seed: Seed = None
) -> DiscreteNetwork:
    """Return a network of discrete variables with random tables: Dirichlet probabilities, all concentrations alike.

    Parameters
    ----------
    dag : networkx.DiGraph, DataFrame or array
        The DAG; the nodes of an array are named v1, v2, ….
    levels : int or mapping of names to int
        How many levels a variable has, two or more; 2 where a mapping doesn't say. They are named s1, s2, ….
    concentration : float
        Far below 1 most probabilities are near 0 or 1, far above it all levels are about equally likely.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.

    Examples
    --------
    >>> network = random_network(nx.DiGraph([("raf", "mek")]), levels={"mek": 3}, random_seed=1)
    >>> network.tables["mek"].shape
    (2, 3)
    """
    check_positive("concentration", concentration)
    matrix, names = read_dag(dag)
    given = levels if isinstance(levels, Mapping) else dict.fromkeys(names, levels)
    if unknown := [name for name in given if name not in names]:
        raise ValueError(f"levels must be given for variables; {unknown[0]!r} is not one")
    counts = [given.get(name, 2) for name in names]
    for name, count in zip(names, counts, strict=True):
        check_count(f"the number of levels of {name!r}", count, 2)
    rng = generator("random_seed", random_seed)
    parents, tables = {}, {}
    for child, name in enumerate(map(str, names)):
        above = np.flatnonzero(matrix[:, child]).tolist()
        shape = [counts[parent] for parent in above]
        check_table_size(name, [*shape, counts[child]])
        parents[name] = [str(names[parent]) for parent in above]
        tables[name] = rng.dirichlet(np.full(counts[child], concentration), size=shape)
    labels = {str(name): [f"s{k + 1}" for k in range(count)] for name, count in zip(names, counts, strict=True)}
    return DiscreteNetwork(labels, parents, tables)


def discrete(
    dag: Any,
    n_rows: int | Mapping[Any, int],
    levels: int | Mapping[Hashable, int] = 2,
    concentration: float = 1.0,
    random_seed: Seed = None,
    *,
    interventions: Mapping[Any, Any] | None = None,
) -> pd.DataFrame:
    """Return data of discrete variables with random conditional probabilities; see `random_network`.

    Parameters
    ----------
    dag : networkx.DiGraph, DataFrame or array
        The DAG; the nodes of an array are named v1, v2, ….
    n_rows : int or mapping of names to int
        Number of rows; with interventions as in `linear`.
    levels : int or mapping of names to int
        How many levels a variable has, two or more; 2 where a mapping doesn't say. They are named s1, s2, ….
    concentration : float
        Concentration of the Dirichlet distribution of the probabilities.
    random_seed : int, SeedSequence or Generator, optional
        Source of randomness.
    interventions : mapping, optional
        Experiments whose rows follow the observed ones, as in `DiscreteNetwork.sample`.

    Returns
    -------
    DataFrame of categoricals
        All levels are kept, drawn or not.

    Examples
    --------
    >>> dag = nx.DiGraph([("raf", "mek")])
    >>> df = discrete(dag, n_rows=100, levels=3, random_seed=1)
    >>> df.shape, df["mek"].cat.categories.tolist()
    ((100, 2), ['s1', 's2', 's3'])
    >>> df = discrete(dag, n_rows={"": 100, "raf": 20}, levels=3, random_seed=1, interventions={"raf": "s3"})
    >>> df[df["target"] == "raf"]["raf"].value_counts().to_dict()
    {'s3': 20, 's1': 0, 's2': 0}
    """
    rng = generator("random_seed", random_seed)
    network = random_network(dag, levels, concentration, rng)
    return network.sample(n_rows, rng, interventions=interventions)


class _Simulation:
    """What every simulator of numbers needs: the DAG, the experiments and the source of randomness."""

    def __init__(
        self,
        dag: Any,
        n_rows: int | Mapping[Any, int],
        random_seed: Seed,
        interventions: Mapping[Any, Any] | None,
    ) -> None:
        self.matrix, self.names = read_dag(dag)
        self.rng = generator("random_seed", random_seed)
        self.n_rows = observed_rows(n_rows, interventions)
        self.experiments = read_experiments(
            self.names,
            n_rows,
            interventions,
            lambda place, done: number_change(self.names[place], self.n_rows, done),
        )

    def table(
        self,
        errors: Callable[[tuple[int, int]], Floats],
        effect: Callable[[int, Ints, Floats], Floats],
        weights: Floats | None = None,
    ) -> pd.DataFrame:
        """Add to errors of a shape, parents first, what `effect(child, parents, their values)` gives."""
        order = graphs.topological_order(self.matrix).tolist()

        def draw(rows: int, changed: Callable[[int, Values], Values]) -> Floats:
            values = errors((rows, len(self.names)))
            for child in order:
                parents = np.flatnonzero(self.matrix[:, child])
                if len(parents):
                    values[:, child] += effect(child, parents, values[:, parents])
                values[:, child] = changed(child, values[:, child])
            return values

        values = draw_rows(draw, self.n_rows, self.experiments, self.rng)
        frame = add_targets(pd.DataFrame(values, columns=pd.Index(self.names)), self.n_rows, self.experiments)
        if weights is not None:
            # Plain lists: pandas compares attrs with == when frames are joined, which arrays don't survive.
            frame.attrs["weights"] = weights.tolist()
        return frame


def signed_uniform(
    rng: np.random.Generator, shape: tuple[int, ...], magnitudes: tuple[float, float], name: str = "weight_range"
) -> Floats:
    """Return numbers with uniform magnitudes and random signs; `name` is what an error calls the magnitudes.

    Examples
    --------
    >>> np.abs(signed_uniform(np.random.default_rng(1), (3,), (2.0, 2.0))).tolist()
    [2.0, 2.0, 2.0]
    """
    low, high = magnitudes
    if not 0 <= low <= high < math.inf:
        raise ValueError(f"{name} must be (low, high) with 0 <= low <= high; received {shown(magnitudes)}")
    return rng.uniform(low, high, size=shape) * rng.choice([-1.0, 1.0], size=shape)

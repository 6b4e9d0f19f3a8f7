"""A Bayesian network of discrete variables: its tables, rows drawn from it, and how likely it makes given rows."""

from collections.abc import Callable, Iterable, Mapping
from math import prod
from typing import Any

import numpy as np
import pandas as pd

from gpn_bayes import graphs
from gpn_bayes._util.seeds import generator
from gpn_bayes._util.types import DiGraph, Floats, Ints
from gpn_bayes.simulate.experiments import (
    Change,
    Values,
    add_targets,
    draw_rows,
    level_change,
    observed_rows,
    read_experiments,
)

# Tables written with two or three decimals may miss 1 by this much; what is missing is shared out.
SUM_TOLERANCE = 0.01 + 1e-9
MAX_TABLE = 10_000_000
_ROUNDING = 1e-12


class DiscreteNetwork:
    """A DAG with a conditional probability table for every variable.

    Parameters
    ----------
    levels : mapping of str to sequence
        The levels of each variable, which are read as text; it also gives the order of the variables.
    parents : mapping of str to sequence of str
        The parents of each variable that has any.
    tables : mapping of str to array
        P(variable | parents): an axis for each parent, in the order of `parents`, then one for the variable. Along the
        last axis the probabilities sum to 1 within 0.01, and are divided by their sum.

    Attributes
    ----------
    names : tuple of str
        The variables.
    levels, parents : dict
        As given, tuples of str, for every variable.
    tables : dict of str to ndarray
        As given, for every variable.

    Examples
    --------
    >>> network = DiscreteNetwork(
    ...     levels={"smoke": ["yes", "no"], "cough": ["yes", "no"]},
    ...     parents={"cough": ["smoke"]},
    ...     tables={"smoke": [0.4, 0.6], "cough": [[0.6, 0.4], [0.1, 0.9]]},
    ... )
    >>> network
    DiscreteNetwork(2 variables, 1 edge)
    >>> df = network.sample(1000, random_seed=1)
    >>> df["cough"].cat.categories.tolist(), float(round((df["cough"] == "yes").mean(), 1))
    (['yes', 'no'], 0.3)
    >>> list(network.graph.edges), round(network.log_likelihood(df[:10]), 2)
    ([('smoke', 'cough')], -9.0)
    """

    def __init__(
        self,
        levels: Mapping[str, Iterable[Any]],
        parents: Mapping[str, Iterable[str]],
        tables: Mapping[str, Any],
    ) -> None:
        self.names = tuple(str(name) for name in levels)
        self.levels = {str(name): _read_levels(str(name), given) for name, given in levels.items()}
        for kind, given in (("parents", parents), ("tables", tables)):
            if unknown := [name for name in given if name not in self.levels]:
                raise ValueError(f"{kind} must be those of variables with levels; {unknown[0]!r} has none")
        if missing := [name for name in self.names if name not in tables]:
            raise ValueError(f"every variable must have a table; {missing[0]!r} has none")
        self.parents = {name: tuple(parents.get(name, ())) for name in self.names}
        edges = [(parent, name) for name, known in self.parents.items() for parent in known]
        if len(set(edges)) < len(edges):
            twice = next(edge for place, edge in enumerate(edges) if edge in edges[:place])
            raise ValueError(f"the parents of a variable must differ; {twice[1]!r} has {twice[0]!r} twice")
        self._adjacency = graphs.as_adjacency(edges, self.names)
        self.tables = {name: self._read_table(name, tables[name]) for name in self.names}

    def _read_table(self, name: str, given: Any) -> Floats:
        table = np.array(given, dtype=float)
        shape = tuple(len(self.levels[variable]) for variable in (*self.parents[name], name))
        if table.shape != shape:
            raise ValueError(f"the table of {name!r} must have shape {shape}; received {table.shape}")
        if not (table >= 0).all():
            raise ValueError(f"probabilities must be 0 or more; the table of {name!r} holds {table[~(table >= 0)][0]}")
        sums = table.sum(axis=-1, keepdims=True)
        off = np.abs(sums - 1)
        if not (off <= SUM_TOLERANCE).all():
            worst = sums.flat[off.argmax()]
            raise ValueError(f"probabilities must sum to 1; in the table of {name!r} some sum to {worst:g}")
        # Sums that only rounding keeps from 1 are left, so that a table comes back as it was written.
        return table / np.where(off > _ROUNDING, sums, 1.0)

    @property
    def graph(self) -> DiGraph:
        """The DAG."""
        return graphs.to_networkx(self._adjacency, self.names)

    def sample(
        self,
        n_rows: int | Mapping[Any, int],
        random_seed: Any = None,
        *,
        interventions: Mapping[Any, Any] | None = None,
    ) -> pd.DataFrame:
        """Draw rows by logic sampling: every variable given its parents, parents first.

        Parameters
        ----------
        n_rows : int or mapping of str to int
            Number of rows; with interventions, of observed rows and of each experiment, or by the keys of
            `interventions` and "" for observed rows.
        random_seed : int, SeedSequence or Generator, optional
            Source of randomness.
        interventions : mapping of str to level, "noise" or callable, optional
            Experiments whose rows follow the observed ones: the target, a variable or several joined by ";", and what
            is done to it. A level: the variable is set to it. "noise": it is drawn from all its levels with equal
            probability, whatever its parents. A function ``f(values, rng)``: it becomes what the function returns,
            given the levels that it would have had in these rows (an array of str) and a numpy Generator. A level named
            "noise" is taken as the level. All other variables keep their tables.

        Returns
        -------
        DataFrame of categoricals
            All levels are kept, drawn or not. With interventions there is a last column ``target``, text: the targets
            of each row, empty in the observed ones, as `gpn.sample` reads them by ``targets="target"``.

        Examples
        --------
        >>> network = DiscreteNetwork(
        ...     levels={"smoke": ["yes", "no"], "cough": ["yes", "no"]},
        ...     parents={"cough": ["smoke"]},
        ...     tables={"smoke": [0.4, 0.6], "cough": [[0.6, 0.4], [0.1, 0.9]]},
        ... )
        >>> done = {"cough": "no", "smoke": "noise"}
        >>> df = network.sample({"": 100, "cough": 50, "smoke": 50}, random_seed=1, interventions=done)
        >>> df["target"].value_counts(sort=False).to_dict()
        {'': 100, 'cough': 50, 'smoke': 50}
        >>> df.groupby("target")["cough"].nunique().to_dict()
        {'': 2, 'cough': 1, 'smoke': 2}
        """

        def read_change(place: int, done: Any) -> Change:
            return level_change(self.names[place], self.levels[self.names[place]], done)

        observed = observed_rows(n_rows, interventions)
        experiments = read_experiments(self.names, n_rows, interventions, read_change)
        rng = generator("random_seed", random_seed)
        order = graphs.topological_order(self._adjacency).tolist()

        def draw(rows: int, changed: Callable[[int, Values], Values]) -> Ints:
            values = np.zeros((rows, len(self.names)), dtype=np.int64)
            codes = {name: values[:, place] for place, name in enumerate(self.names)}
            for place in order:
                name = self.names[place]
                cumulative = np.cumsum(self._rows(name), axis=1)
                # So that a last level of probability zero is never drawn, whatever rounding did to the sum.
                cumulative /= cumulative[:, -1:]
                configuration = self._configuration(name, codes, rows)
                uniform = rng.random(rows)
                drawn = np.zeros(rows, dtype=np.int64)
                for level in range(cumulative.shape[1] - 1):
                    drawn += uniform >= cumulative[configuration, level]
                values[:, place] = changed(place, drawn)
            return values

        codes = draw_rows(draw, observed, experiments, rng)
        columns = {
            name: pd.Categorical.from_codes(codes[:, place], pd.Index(self.levels[name]))
            for place, name in enumerate(self.names)
        }
        return add_targets(pd.DataFrame(columns), observed, experiments)

    def log_likelihood(self, data: pd.DataFrame) -> float:
        """Return the natural log of the probability of the rows; minus infinity where one is impossible.

        Parameters
        ----------
        data : DataFrame
            A column for each variable; others are ignored. Values are compared with levels as text.

        Raises
        ------
        ValueError
            For a variable without a column, or a value that is no level.
        """
        codes = {name: self._codes(name, data) for name in self.names}
        total = 0.0
        for name in self.names:
            configuration = self._configuration(name, codes, len(data))
            with np.errstate(divide="ignore"):
                total += float(np.log(self._rows(name)[configuration, codes[name]]).sum())
        return total

    def _rows(self, name: str) -> Floats:
        """Return a table with one row for each configuration of the parents."""
        return self.tables[name].reshape(-1, len(self.levels[name]))

    def _configuration(self, name: str, codes: dict[str, Ints], n_rows: int) -> Ints:
        """Return which configuration the parents of a variable have in each row."""
        place = np.zeros(n_rows, dtype=np.int64)
        for parent in self.parents[name]:
            place = place * len(self.levels[parent]) + codes[parent]
        return place

    def _codes(self, name: str, data: pd.DataFrame) -> Ints:
        if name not in data:
            raise ValueError(f"the data must have a column for each variable; {name!r} has none")
        column, levels = data[name], list(self.levels[name])
        texts = column.astype(str)
        if pd.api.types.is_bool_dtype(column.dtype):
            # Files of TRUE and FALSE are read as truth values.
            texts, levels = texts.str.lower(), [level.lower() for level in levels]
        codes = pd.Index(levels).get_indexer(pd.Index(texts))
        codes[column.isna().to_numpy()] = -1
        if (codes < 0).any():
            odd = column[codes < 0].iloc[0]
            raise ValueError(f"every value must be a level of its variable; {name!r} has no level {str(odd)!r}")
        return codes.astype(np.int64)

    def __repr__(self) -> str:
        """Show the size of the network."""
        variables, edges = len(self.names), int(self._adjacency.sum())
        return f"DiscreteNetwork({variables} variable{'s' * (variables != 1)}, {edges} edge{'s' * (edges != 1)})"


def check_table_size(name: str, shape: Iterable[int]) -> None:
    """Refuse a table that would take too much memory."""
    size = prod(shape)
    if size > MAX_TABLE:
        raise ValueError(f"a table may hold {MAX_TABLE:,} probabilities; that of {name!r} would hold {size:.3g}")


def _read_levels(name: str, given: Iterable[Any]) -> tuple[str, ...]:
    levels = tuple(str(level) for level in given)
    if not levels:
        raise ValueError(f"every variable must have a level; {name!r} has none")
    if len(set(levels)) < len(levels):
        twice = next(level for place, level in enumerate(levels) if level in levels[:place])
        raise ValueError(f"the levels of a variable must differ; {name!r} has {twice!r} twice")
    return levels

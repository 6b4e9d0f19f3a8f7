"""Random networks of numbers and categories, and tables drawn from them: not from the model of any score.

A number is a sum of functions of its parents plus normal noise. A category of two to four levels has a utility for each
level, a sum of functions of its parents, and takes that level whose utility plus Gumbel noise is largest. A function of
a number is a random slope, or a random sum of sines; one of a category is a random value for each level.
"""

import networkx as nx
import numpy as np
import pandas as pd

import gpn_bayes as gpn


def mixed_network(n, rows, curved, seed, edges_per_node=1.5):
    """Return a table, in which every second variable on average is a category, and the DAG behind it."""
    rng = np.random.default_rng([seed, n, rows, curved])
    dag = gpn.simulate.random_dag(n, edges_per_node=edges_per_node, random_seed=rng)
    names = list(dag.nodes)
    levels = dict.fromkeys(names, 0)
    for name in rng.permutation(names)[: n // 2]:
        levels[str(name)] = int(rng.integers(2, 5))
    values = {}
    for node in nx.topological_sort(dag):
        parents = list(dag.predecessors(node))
        size = max(levels[node], 1)
        signal = np.zeros((rows, size))
        for parent in parents:
            signal += np.column_stack([_function(values[parent], levels[parent], curved, rng) for _ in range(size)])
        if levels[node]:
            utilities = 2.0 * signal / np.sqrt(max(len(parents), 1)) + rng.gumbel(size=(rows, size))
            values[node] = utilities.argmax(axis=1)
        else:
            own = signal[:, 0] / np.sqrt(max(len(parents), 1)) + rng.uniform(0.4, 0.8) * rng.standard_normal(rows)
            values[node] = (own - own.mean()) / own.std()
    columns = {name: [f"level {k}" for k in values[name]] if levels[name] else values[name] for name in names}
    return pd.DataFrame(columns), dag


def _function(values, levels, curved, rng):
    """Return a random function of a column, of about unit variance."""
    if levels:
        own = rng.standard_normal(levels)[values]
    elif curved:
        own = sum(rng.normal() * np.sin(f * values + rng.uniform(0, 2 * np.pi)) for f in (0.8, 1.6, 2.4))
    else:
        own = rng.choice([-1, 1]) * values
    spread = own.std()
    return rng.uniform(0.6, 1.2) * (own - own.mean()) / spread if spread > 0 else np.zeros(len(values))

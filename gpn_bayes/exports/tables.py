"""Networks of categories with their fitted tables, for other programs: the posterior means of the probabilities."""

from typing import TYPE_CHECKING, Any

from gpn_bayes import graphs
from gpn_bayes._util.extras import installed_by
from gpn_bayes._util.types import DiGraph
from gpn_bayes.scores.base import Scorer
from gpn_bayes.scores.equations import TableEquation

if TYPE_CHECKING:
    from gpn_bayes.simulate.discrete_networks import DiscreteNetwork


def fitted_network(scorer: Scorer, graph: DiGraph) -> "DiscreteNetwork":
    """Return a DAG with the table of each variable given its parents, the mean of its Dirichlet posterior.

    Parameters
    ----------
    scorer : Scorer
        A score of categories, bound to the data.
    graph : networkx.DiGraph
        The DAG.

    Examples
    --------
    >>> from gpn_bayes import scores
    >>> table = pd.DataFrame({"rain": ["no", "yes", "yes", "no"], "wet": ["no", "yes", "yes", "yes"]})
    >>> network = fitted_network(scores.K2().bind(table), nx.DiGraph([("rain", "wet")]))
    >>> network.tables["wet"].tolist()
    [[0.5, 0.5], [0.25, 0.75]]
    """
    from gpn_bayes.simulate.discrete_networks import DiscreteNetwork, check_table_size

    if not scorer.discrete:
        some = "some " if scorer.categories.any() else ""
        raise ValueError(f"tables are those of categories; the score {scorer.label} takes {some}columns as numbers")
    names = scorer.names
    matrix = graphs.as_adjacency(graph, names)
    parents = {name: tuple(matrix[:, i].nonzero()[0].tolist()) for i, name in enumerate(names)}
    tables = {}
    for i, name in enumerate(names):
        check_table_size(name, [len(scorer.levels[k]) for k in (*parents[name], i)])
        equation = scorer.equation(i, parents[name])
        assert isinstance(equation, TableEquation)  # as the scores of categories have
        tables[name] = equation.mean
    levels = dict(zip(names, scorer.levels, strict=True))
    return DiscreteNetwork(levels, {name: [names[k] for k in own] for name, own in parents.items()}, tables)


def to_pgmpy(network: "DiscreteNetwork") -> Any:
    """Return a network as one of pgmpy, which other packages need not have."""
    with installed_by("export"):
        from pgmpy.factors.discrete import TabularCPD
        from pgmpy.models import DiscreteBayesianNetwork

    model = DiscreteBayesianNetwork()
    model.add_nodes_from(network.names)
    model.add_edges_from((parent, name) for name, own in network.parents.items() for parent in own)
    for name, own in network.parents.items():
        count = len(network.levels[name])
        cpd = TabularCPD(
            name,
            count,
            network.tables[name].reshape(-1, count).T,
            evidence=list(own) or None,
            evidence_card=[len(network.levels[parent]) for parent in own] or None,
            state_names={variable: list(network.levels[variable]) for variable in (name, *own)},
        )
        model.add_cpds(cpd)
    return model


def to_pyagrum(network: "DiscreteNetwork") -> Any:
    """Return a network as one of pyAgrum."""
    import numpy as np

    with installed_by("export"):
        import pyagrum

    model = pyagrum.BayesNet()
    for name, levels in network.levels.items():
        model.add(pyagrum.LabelizedVariable(name, name, list(levels)))
    for name, own in network.parents.items():
        for parent in own:
            model.addArc(parent, name)
    for name, own in network.parents.items():
        table = network.tables[name]
        for place in np.ndindex(table.shape[:-1]):
            model.cpt(name)[dict(zip(own, place, strict=True))] = table[place].tolist()
    return model

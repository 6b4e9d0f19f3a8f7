"""How well an estimate predicts rows that it wasn't fitted to, its parameters integrated out."""

from collections.abc import Iterable
from typing import Any

from gpn_bayes import graphs, scores
from gpn_bayes._util.types import DiGraph
from gpn_bayes.data import Data
from gpn_bayes.scores.categories import is_discrete
from gpn_bayes.scores.densities import log_densities, read_rows, values_of


def predictive_scorer(score: Any, data: Data) -> scores.Scorer:
    """Return a score with equations, bound to data: the given one, else BGe for numbers and BDeu for categories.

    Parameters
    ----------
    score : Score, str or None
        A learner's own score; None where it has none. One without equations, such as the lasso score, counts as none.
    data : Dataset or SufficientStatistics
        What the learner was fitted to.

    Examples
    --------
    >>> from gpn_bayes import Dataset
    >>> table = Dataset.read(pd.DataFrame({"rain": ["no", "yes", "no"], "wet": [0, 1, 1]}))
    >>> predictive_scorer("k2", table).score.name, predictive_scorer(None, table).score.name
    ('k2', 'bdeu')
    """
    if score is not None:
        scorer = scores.by_name(score).bind(data)
        if type(scorer).equation is not scores.Scorer.equation:
            return scorer
    return scores.by_name("bdeu" if is_discrete(data) else "bge").bind(data)


def mean_log_density(score: Any, data: Data, graph: DiGraph, rows: Any, nodes: Iterable[str] | None = None) -> float:
    """Return the mean over new rows of their log density given others and a DAG, in units of the table.

    Parameters
    ----------
    score : Score, str or None
        See `predictive_scorer`.
    data : Dataset or SufficientStatistics
        What is known.
    graph : networkx.DiGraph
        The DAG.
    rows : DataFrame
        The new rows.
    nodes : iterable of str, optional
        The nodes whose densities given their parents are multiplied; all by default.

    Examples
    --------
    >>> from gpn_bayes import Dataset
    >>> table = Dataset.read(pd.DataFrame({"rain": ["no", "yes", "no"], "wet": [0, 1, 1]}))
    >>> rows = pd.DataFrame({"rain": ["yes"], "wet": [1]})
    >>> round(float(np.exp(mean_log_density("k2", table, nx.DiGraph(), rows))), 2)  # 2 / 5 times 3 / 5
    0.24
    """
    scorer = predictive_scorer(score, data)
    matrix = graphs.as_adjacency(graph, scorer.names)
    places = range(len(scorer.names)) if nodes is None else [scorer.index(node) for node in nodes]
    families = [(i, tuple(matrix[:, i].nonzero()[0].tolist())) for i in places]
    values = values_of(read_rows(rows, scorer.names), scorer)
    return float(log_densities(scorer, data, families, values).sum(axis=0).mean())

"""Point estimates: learners that return one graph, with the interface of scikit-learn.

Every learner has ``fit(X)``, then ``graph_``, ``adjacency_`` and ``log_score(score)``; those that maximise a score take
any that `gpn_bayes.scores` has.

Examples
--------
>>> from gpn_bayes import datasets, estimators
>>> est = estimators.Exact(score="bge", max_parents=2).fit(datasets.sachs(transform="log2"))
>>> est.graph_.has_edge("raf", "mek") or est.graph_.has_edge("mek", "raf"), est.proved_
(True, True)
"""

from gpn_bayes._util.lazy import lazily

_NAMES = {
    "DYNOTEARS": "gpn_bayes.estimators.dynotears",
    "Exact": "gpn_bayes.estimators.exact",
    "HillClimbing": "gpn_bayes.estimators.hill_climbing",
    "K2": "gpn_bayes.estimators.k2",
    "NOTEARS": "gpn_bayes.estimators.notears",
    "NOTEARSMLP": "gpn_bayes.estimators.notears_mlp",
    "OrderingSearch": "gpn_bayes.estimators.ordering",
    "PC": "gpn_bayes.estimators.pc",
    "RBNets": "gpn_bayes.estimators.rbnets",
}
__all__ = list(_NAMES)
__getattr__, __dir__ = lazily(__name__, _NAMES)

"""Pictures of posteriors, on matplotlib: each function takes axes to draw in, or makes them, and returns them.

A posterior has them as methods, such as ``post.plot_network()``.

Examples
--------
>>> import gpn_bayes as gpn
>>> data = gpn.simulate.linear([[0, 1, 0], [0, 0, 1], [0, 0, 0]], 100, random_seed=1)
>>> post = gpn.sample(data, score="bge", draws=50, random_seed=1, progressbar=False)
>>> ax = gpn.plots.plot_edges(post)
>>> [label.get_text() for label in ax.get_yticklabels()]
['v1', 'v2', 'v3']
"""

from typing import TYPE_CHECKING

from gpn_bayes._util.lazy import lazily

if TYPE_CHECKING:
    from gpn_bayes.plots.chains import plot_rank, plot_running, plot_trace
    from gpn_bayes.plots.comparing import plot_comparison, plot_runs
    from gpn_bayes.plots.effects import plot_effect
    from gpn_bayes.plots.functions import plot_curves
    from gpn_bayes.plots.matrices import plot_edges, plot_parent_counts
    from gpn_bayes.plots.missing import plot_missing
    from gpn_bayes.plots.network import plot_network
    from gpn_bayes.plots.posterior_effects import plot_effects
    from gpn_bayes.plots.predictive import plot_elpd
    from gpn_bayes.plots.predictive_checks import plot_ppc

__all__ = [
    "plot_comparison",
    "plot_curves",
    "plot_edges",
    "plot_effect",
    "plot_effects",
    "plot_elpd",
    "plot_missing",
    "plot_network",
    "plot_parent_counts",
    "plot_ppc",
    "plot_rank",
    "plot_running",
    "plot_runs",
    "plot_trace",
]

# The axes of matplotlib take long to load, and reports do without them.
_HOMES = {
    "plot_comparison": "gpn_bayes.plots.comparing",
    "plot_curves": "gpn_bayes.plots.functions",
    "plot_edges": "gpn_bayes.plots.matrices",
    "plot_effect": "gpn_bayes.plots.effects",
    "plot_effects": "gpn_bayes.plots.posterior_effects",
    "plot_elpd": "gpn_bayes.plots.predictive",
    "plot_missing": "gpn_bayes.plots.missing",
    "plot_network": "gpn_bayes.plots.network",
    "plot_parent_counts": "gpn_bayes.plots.matrices",
    "plot_ppc": "gpn_bayes.plots.predictive_checks",
    "plot_rank": "gpn_bayes.plots.chains",
    "plot_running": "gpn_bayes.plots.chains",
    "plot_runs": "gpn_bayes.plots.comparing",
    "plot_trace": "gpn_bayes.plots.chains",
}
__getattr__, __dir__ = lazily(__name__, _HOMES)

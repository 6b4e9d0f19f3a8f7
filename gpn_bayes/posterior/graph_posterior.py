"""GraphPosterior: weighted draws of DAGs, and the table of what can be asked of them.

A question is a plain function of a posterior, in the file of its formula and with its docstring there. The classes here
list them, a line each; its module is loaded when a question is first asked.
"""

from typing import TYPE_CHECKING

from gpn_bayes._util.cells import safe_html
from gpn_bayes._util.lazy import Shelf
from gpn_bayes._util.types import DiGraph
from gpn_bayes.posterior.draws import Draws, GraphCollection

if TYPE_CHECKING:
    from gpn_bayes import plots
    from gpn_bayes import report as reports
    from gpn_bayes.exports import writing
    from gpn_bayes.plots import posterior_effects as effect_plots
    from gpn_bayes.posterior import adjustment, equations, imputed_tables, networks, outcomes, predictions, queries
    from gpn_bayes.posterior import curves as fitting
    from gpn_bayes.posterior import diagnostics as trust
    from gpn_bayes.posterior import effects as setting
    from gpn_bayes.posterior import export as files
    from gpn_bayes.posterior import target_answers as targets
else:
    plots = Shelf("gpn_bayes.plots")
    effect_plots = Shelf("gpn_bayes.plots.posterior_effects")
    reports = Shelf("gpn_bayes.report")
    writing = Shelf("gpn_bayes.exports.writing")
    adjustment = Shelf("gpn_bayes.posterior.adjustment")
    equations = Shelf("gpn_bayes.posterior.equations")
    imputed_tables = Shelf("gpn_bayes.posterior.imputed_tables")
    networks = Shelf("gpn_bayes.posterior.networks")
    outcomes = Shelf("gpn_bayes.posterior.outcomes")
    predictions = Shelf("gpn_bayes.posterior.predictions")
    queries = Shelf("gpn_bayes.posterior.queries")
    fitting = Shelf("gpn_bayes.posterior.curves")
    trust = Shelf("gpn_bayes.posterior.diagnostics")
    setting = Shelf("gpn_bayes.posterior.effects")
    files = Shelf("gpn_bayes.posterior.export")
    targets = Shelf("gpn_bayes.posterior.target_answers")


class GraphQuestions(GraphCollection):
    """What can be asked of DAGs, whether drawn from a posterior or fitted to resampled rows."""

    edge_probabilities = queries.edge_probabilities
    edge_probability = queries.edge_probability
    path_probabilities = queries.path_probabilities
    path_probability = queries.path_probability
    order_probability = queries.order_probability
    probability = queries.probability
    markov_blanket = queries.markov_blanket
    cpdag_edges = queries.cpdag_edges

    median_graph = networks.median_graph
    expected_shd = networks.expected_shd
    expected_tp = networks.expected_tp
    expected_fp = networks.expected_fp

    export = writing.export
    to_text = writing.to_text
    to_networkx = writing.to_networkx
    to_pandas = writing.to_pandas
    to_pgmpy = writing.to_pgmpy
    to_pyagrum = writing.to_pyagrum
    _graph_to_export = networks.graph_to_export
    _dag_to_export = networks.graph_to_export
    _instead_of_cycles = networks.instead_of_cycles

    plot_network = plots.plot_network
    plot_edges = plots.plot_edges
    plot_runs = plots.plot_runs
    plot_comparison = plots.plot_comparison


class GraphPosterior(Draws, GraphQuestions):
    """Draws of DAGs from a posterior, and everything one can ask of them.

    Made by `gpn_bayes.sample` and `gpn_bayes.load`. A function of your own that takes a posterior is a question like
    these; one that takes a DAG is asked by `probability`.

    Attributes
    ----------
    names : tuple of str
        The variables.
    parents : ndarray of uint64, shape (chain, draw, node, words)
        The DAGs as parent bits; see `gpn_bayes.graphs.pack`.
    log_score : ndarray of shape (chain, draw)
        Log score of each DAG, prior included.
    log_weights : ndarray of shape (chain, draw), optional
        Log importance weights; None where all draws weigh the same.
    score_errors : ndarray of shape (chain, draw, node), optional
        Standard error of the score of each node given its parents; NaN where unknown, None where all are exact.
    stats : dict of ndarray, each of shape (chain, draw)
        What the sampler reports of each draw.
    settings : dict
        How the draws were made, JSON-able; `record` has them by name.
    exact : ExactAnswers, optional
        Exact probabilities, from the exact sampler; None where its draws were weighted to another score.
    scorer : callable, optional
        Takes an adjacency matrix and returns the log score of that DAG, prior included; None where a file doesn't say
        which score it was.
    data : Dataset or SufficientStatistics, optional
        What the posterior is given; None where it was saved without.
    completed : ndarray of shape (tables, missing entries), optional
        What was drawn for missing entries, row by row, at some of the draws; see `imputed`.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> print(post.edge_probability("raf", "akt"))
    0.023 (exact)
    >>> best = post.map()
    >>> best.number_of_edges(), round(best.graph["log_score"], 1)
    (2, -4117.2)
    >>> post.log_weights is None, float(post.weights.mean())
    (True, 1.0)
    """

    summary = queries.summary
    parent_set_probabilities = queries.parent_set_probabilities
    target_probabilities = targets.target_probabilities
    target_probability = targets.target_probability

    map = networks.map_graph
    graphs = networks.drawn_graphs
    log_score_gap = networks.log_score_gap
    _table_scorer = equations.table_scorer

    effect = setting.effect
    effects = setting.effects
    do = outcomes.do
    counterfactual = outcomes.counterfactual
    adjustment_sets = adjustment.adjustment_sets
    is_adjustment_set = adjustment.is_adjustment_set

    log_predictive = predictions.log_predictive
    predict = predictions.predict
    sample_predictive = predictions.sample_predictive
    curves = fitting.curves
    imputed = imputed_tables.imputed

    diagnostics = trust.diagnose
    to_arviz = files.to_arviz
    save = files.save
    report = reports.write_report
    explore = reports.explore

    plot_trace = plots.plot_trace
    plot_rank = plots.plot_rank
    plot_running = plots.plot_running
    plot_parent_counts = plots.plot_parent_counts
    plot_missing = plots.plot_missing
    plot_curves = plots.plot_curves
    plot_effect = effect_plots.plot_effect_of
    plot_effects = plots.plot_effects
    plot_ppc = plots.plot_ppc

    def _best_dag(self) -> DiGraph:
        return self.map()

    def __repr__(self) -> str:
        """Say in one line what was drawn, and what the columns of a mixed table were taken for."""
        chains, draws = self.log_score.shape
        kinds = "".join(f"; {text}" for text in self.record.kinds_in_words)
        return (
            f"<GraphPosterior: {len(self.names)} variables, {chains} x {draws} DAGs, {self.record.sampler} sampler, "
            f"score {self.record.score_text()}{kinds}>"
        )

    @safe_html
    def _repr_html_(self) -> str:
        from gpn_bayes.report.summaries import posterior_cell

        return posterior_cell(self)

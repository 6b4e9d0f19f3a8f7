"""Whether sampling has converged, and what the answers rest on besides: in numbers and in plain words."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from gpn_bayes import graphs
from gpn_bayes._util import cells
from gpn_bayes._util.effective_size import WEIGHT_ESS_LIMIT, effective_size
from gpn_bayes._util.types import Floats
from gpn_bayes.data.flagging import Flag
from gpn_bayes.posterior.directions import direction_sentences
from gpn_bayes.posterior.draws import Draws
from gpn_bayes.posterior.estimate import MIN_DRAWS, binary_r_hats, ess_of, mean_errors, r_hat_of
from gpn_bayes.posterior.impossible_pairs import assumption
from gpn_bayes.posterior.run_record import INTERRUPTED, RunRecord

# Beyond these a run is called unreliable; the usual values for R-hat and ESS (Vehtari et al. 2021).
R_HAT_POOR = 1.05
ESS_LIMIT = 400
# Of edges: with fewer independent draws, the time in which a chain forgets an edge is itself too uncertain to base an
# error on. Edges that are rarer, or more certain, than this don't count: a few draws in a row don't make them slow.
EDGE_ESS_LIMIT = 200
EDGE_SHARES = 0.05, 0.95
GAP_LIMIT = 0.05
# With this many effective draws of each chain, chance can excuse a gap.
EXCUSED_FROM = 800
NEGLECTED_LIMIT = 0.01
PARETO_K_LIMIT = 0.7

REWEIGHTING_INTERRUPTED = (
    "Reweighting was interrupted: all answers are those of the proposal score that the DAGs were drawn under. "
    "Run it again, with the same cache and seed, to finish."
)
# What every network of causes takes for granted; scores add to it.
NETWORK_ASSUMPTIONS = (
    "No hidden common causes: nothing that acts on two of the variables was left out.",
    "No cycles: no variable acts on itself, directly or by way of others.",
    "Rows are independent of each other.",
)
NOT_EXAMINED = "The data were not examined."
# A green light for assumptions would claim more than checks can show.
DATA_LIGHTS = {"clear": "neutral", "unknown": "neutral", "flagged": "caution"}
WITH_GAPS = "The data were not examined: some of their values are missing."
WITHOUT_ROWS = "The data were not examined: only their means and covariances were given, without rows."


@dataclass(frozen=True)
class Diagnostics:
    """Diagnostics of a `GraphPosterior`; print it for plain words.

    There are two verdicts. `ok`, `verdict`, `heading`, `summary` and `warnings` judge the sampling alone: whether
    another run would give the same probabilities. Whether these are right depends on what the answers assume
    (`assumptions`), which no number of draws can show, and on the data; what is odd about these is in `data_flags`.

    Attributes
    ----------
    chains, draws : int
        What was drawn.
    r_hat, ess : float
        R-hat and bulk effective size of the log score.
    largest_gap : float
        The largest difference between two chains in the probability of an edge.
    largest_gap_edge : str
        Which edge that is.
    edge_ess, edge_ess_edge : float and str
        The smallest number of independent draws that the draws are worth for an edge, and which edge that is; of edges
        that 5 to 95 % of the draws have, without weights. NaN where there are none.
    pareto_k : float
        Shape of the tail of the importance weights; NaN where nothing was weighted, or so few distinct DAGs were drawn
        that the largest weights repeat and have no tail whose shape could be fitted.
    weight_ess : float
        How many draws of equal weight would be worth as much; all of them where nothing was weighted.
    sampler : str
        What drew, by its name.
    order_bias : bool
        Whether the draws carry the bias of order MCMC towards DAGs with many orders.
    reweighted : str
        "no", "yes" for draws weighted from the proposal score to the target score, or "interrupted" for draws still
        under the proposal score.
    score_error : float
        What the standard errors of 95 % of the scores behind the draws are below; NaN where one is unknown.
    poor_scores : int
        How many scores of drawn parent sets aren't as precise as they were meant to be.
    converged : bool or None
        Whether a run with until="converged" ended because its chains agreed; None for other runs.
    conceivable_sets, scored_sets, audited_sets : int
        Where scores are slow and not all are computed: the parent sets there are, those that have a score, and those
        among them that a random sample of the rest added; 0 where all have one.
    neglected_mass, neglected_mass_error : float
        About what share of the posterior of a node's parents the sets without a score would have, by that sample, on
        average over the nodes, and its standard error.
    assumptions : tuple of str
        What the answers take for granted, of the network and of the score.
    independent : bool
        Whether draws don't depend on each other, so that there are no chains to compare.
    exact : bool
        Whether edge probabilities are known without Monte Carlo error.
    directions : tuple of str
        What decides the clear directions of the pairs that are joined with a probability of 0.9 or more: conditional
        independences in the data; the shape of relations; or tiers, the score, experiments and the like.
    data_flags : tuple of Flag
        What deserves a look in the data: see `gpn_bayes.data.Flag`.
    unexamined : str
        Why nobody had a look at the data; empty where somebody had.
    tables : int
        Completed tables on which chains were run, where missing values were imputed for scores without a closed form;
        R-hat and gaps are then the largest within a table.
    table_gap, table_gap_edge : float and str
        The largest difference between completed tables in the probability of an edge, and which edge that is.
    impossible_pairs : tuple of (str, str)
        Pairs that the score and the constraints together leave without an edge in either direction; see `assumptions`.
    temperatures : int
        Coupled copies of each chain.
    imputed : bool
        Whether missing values were drawn along.
    estimator : str
        How scores without a closed form were estimated: see `gpn_bayes.scores.GP`; empty for others.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> post.diagnostics().ok
    True
    >>> chains = Diagnostics(
    ...     chains=4, draws=400, r_hat=1.21, ess=35.0, largest_gap=0.62, largest_gap_edge="raf -> mek",
    ...     pareto_k=float("nan"), weight_ess=100.0, sampler="partition", order_bias=False,
    ... )
    >>> chains.ok, chains.verdict, chains["r_hat"], chains.weight_share, round(chains.gap_limit, 2)
    (False, 'poor', 1.21, 0.25, 0.96)
    >>> chains.heading
    'Sampling has not converged.'
    >>> chains.summary
    "4 chains don't agree; largest gap 0.62 (raf -> mek); R-hat 1.210, 35 effective draws of the log score."
    >>> chains.data_verdict, chains.data_heading
    ('clear', 'Checks of the data found nothing unusual.')
    >>> for warning in chains.warnings():
    ...     print(warning)
    The chains disagree on the log score (R-hat 1.21; largest gap 0.62 for raf -> mek): run with until='converged',
    which goes on, with more thinning, until they agree, or with sampler=gpn.samplers.Partition(temperatures=4), coupled
    copies of each chain that cross what it can't.
    Only 35 effective draws of the log score, of 400 at least: until='converged' goes on until there are enough.
    """

    chains: int
    draws: int
    r_hat: float
    ess: float
    largest_gap: float
    largest_gap_edge: str
    pareto_k: float
    weight_ess: float
    sampler: str
    order_bias: bool
    reweighted: str = "no"
    score_error: float = 0.0
    poor_scores: int = 0
    converged: bool | None = None
    conceivable_sets: int = 0
    scored_sets: int = 0
    audited_sets: int = 0
    neglected_mass: float = 0.0
    neglected_mass_error: float = 0.0
    assumptions: tuple[str, ...] = ()
    data_flags: tuple[Flag, ...] = ()
    unexamined: str = ""
    tables: int = 1
    table_gap: float = 0.0
    table_gap_edge: str = ""
    impossible_pairs: tuple[tuple[str, str], ...] = ()
    temperatures: int = 1
    imputed: bool = False
    estimator: str = ""
    edge_ess: float = float("nan")
    edge_ess_edge: str = ""
    independent: bool = False
    exact: bool = False
    directions: tuple[str, ...] = ()

    def __getitem__(self, key: str) -> object:
        """Return a number by its name."""
        if key not in {field.name for field in fields(self)} | {"weight_share"}:
            raise KeyError(key)
        return getattr(self, key)

    @property
    def ok(self) -> bool:
        """Whether nothing speaks against the sampling; says nothing of assumptions and data."""
        return not self.warnings()

    @property
    def weight_share(self) -> float:
        """The share of the draws that is effective after weighting, between 0 and 1."""
        return self.weight_ess / self.draws

    @property
    def verdict(self) -> str:
        """The sampling in one word: "good", "caution", or "poor" where another run may answer quite differently."""
        if self.ok:
            return "good"
        wrong = (not self.independent and self._disagree) or self.reweighted == INTERRUPTED
        return "poor" if wrong or self._weights_fail else "caution"

    @property
    def heading(self) -> str:
        """The verdict on the sampling, as a sentence."""
        if self.reweighted == INTERRUPTED:
            return "Sampling was interrupted."
        if self.verdict == "poor":
            return "Sampling has not converged."
        if self.exact:
            return (
                "Computed exactly, without sampling error." if self.ok else "Computed exactly, from imprecise scores."
            )
        if not self.independent and (self.chains == 1 or self.ess < ESS_LIMIT or self.converged is False):
            return "Sampling may not have converged."
        return "Sampling has converged." if self.ok else "Sampling has converged, with reservations."

    @property
    def data_verdict(self) -> str:
        """The data in one word: "unknown" where they weren't examined, "flagged" or "clear"; mild flags don't count."""
        return data_verdict(self.data_flags, self.unexamined)

    @property
    def data_heading(self) -> str:
        """The verdict on the data, as a sentence."""
        return data_heading(self.data_flags, self.unexamined)

    @property
    def gap_limit(self) -> float:
        """The smallest gap between chains at which they are said to disagree."""
        return gap_limit(self.ess, self.weight_ess, self.chains)

    @property
    def _disagree(self) -> bool:
        return self.chains > 1 and not agree(self.largest_gap, self.gap_limit, self.r_hat)

    @property
    def _weights_fail(self) -> bool:
        if self.reweighted == "yes":
            return bool(weight_warnings(self.pareto_k, self.weight_ess, self.draws))
        return self.weight_share < WEIGHT_ESS_LIMIT

    def warnings(self) -> list[str]:
        """Return what speaks against the sampling, each with what to do about it."""
        notes = []
        if not self.independent:
            if self.chains == 1:
                notes.append("One chain can't be compared with others; run at least two.")
            if self._disagree:
                notes.append(f"{self._told_disagreement()}: {self._to_agree()}.")
            if np.isfinite(self.ess) and self.ess < ESS_LIMIT:
                few = f"Only {self.ess:.0f} effective draws of the log score, of {ESS_LIMIT} at least"
                notes.append(f"{few}: {self._for_more()}.")
            if self.edge_ess < EDGE_ESS_LIMIT:
                few = f"Only {self.edge_ess:.0f} effective draws of {self.edge_ess_edge}, too few to rely on its error"
                notes.append(f"{few}: run with {self._more_draws()}, or a larger thin.")
            if self.converged is False:
                longer = "" if self._disagree else f": {self._to_agree()}"
                notes.append(
                    "The run reached its greatest length before its chains agreed as closely as it was to wait for"
                    f"{longer}."
                )
        if self.neglected_mass > NEGLECTED_LIMIT:
            notes.append(
                f"Parent sets without a score may hold {self._told_neglected()} of the posterior of a node's parents: "
                "name candidates or lower max_parents, so that fewer sets are conceivable."
            )
        return [*notes, *self._weight_warnings()]

    def _told_disagreement(self) -> str:
        """Say how chains disagree: by their edges, which count, before the log score, which may hide it."""
        if self.largest_gap <= self.gap_limit:
            gap = f"largest gap {self.largest_gap:.2f} for {self.largest_gap_edge}"
            return f"The chains disagree on the log score (R-hat {self.r_hat:.2f}; {gap})"
        of_score = ""
        if self.r_hat > R_HAT_POOR:
            of_score = f" (R-hat of the log score {self.r_hat:.2f})"
        elif np.isfinite(self.r_hat):
            of_score = ", although their log scores are alike"
        edge = f"the probability of {self.largest_gap_edge}"
        return f"The chains disagree by {self.largest_gap:.2f} on {edge}{of_score}"

    def _to_agree(self) -> str:
        """Say what may make chains agree that wasn't asked for yet."""
        ways = []
        if self.converged is None:
            ways.append("until='converged', which goes on, with more thinning, until they agree")
        if self.temperatures == 1 and not self.imputed:
            tempered = "sampler=gpn.samplers.Partition(temperatures=4)"
            ways.append(f"{tempered}, coupled copies of each chain that cross what it can't")
        if not ways:
            return f"run with {self._more_draws()}, a larger tune and thin, or fewer candidates"
        return f"run with {', or with '.join(ways)}"

    def _for_more(self) -> str:
        """Say what gives more effective draws."""
        if self.converged is None:
            return "until='converged' goes on until there are enough"
        return f"run with {self._more_draws()}, or a larger thin"

    def _more_draws(self) -> str:
        return f"draws={4 * self.draws // self.chains}"

    def _weight_warnings(self) -> list[str]:
        notes = []
        if self.reweighted == "yes":
            notes += weight_warnings(self.pareto_k, self.weight_ess, self.draws, self.sampler)
        elif self.weight_share < WEIGHT_ESS_LIMIT:
            notes.append(
                f"Few draws carry the weight ({self.weight_share:.0%} effective): draw more, or use "
                "sampler='partition', whose draws need no weights."
            )
        if self.reweighted == INTERRUPTED:
            notes.append(REWEIGHTING_INTERRUPTED)
        if self.poor_scores:
            notes.append(
                f"{self.poor_scores} scores are less precise than they were meant to be (95% have errors of up to "
                f"{self.score_error:.2f}): reported errors include this{self._another_estimator()}."
            )
        if self.order_bias:
            notes.append(
                "Drawn by order MCMC without correction: DAGs that fit many orders are over-weighted. "
                "Use sampler='partition', or sampler=gpn.samplers.Order(bias='correct') for up to 20 variables."
            )
        return notes

    def _another_estimator(self) -> str:
        """Say how scores can be estimated otherwise, where they can."""
        if not self.estimator:
            return ""
        other = "bridge" if self.estimator == "importance" else "importance"
        return f"; score=gpn.scores.GP(estimator={other!r}), in Python, estimates them in another way"

    def __str__(self) -> str:
        """Say it in plain words: the sampling, the assumptions, the data."""
        lines = [f"{self.heading} {self.summary}", *self.warnings()]
        if self.assumptions:
            lines += ["The answers assume:", *(f"- {text}" for text in self.assumptions)]
        if self.directions:
            lines += ["What decides directions:", *(f"- {text}" for text in self.directions)]
        if self.unexamined or self.assumptions:
            lines += [self.data_heading, *(f"- {flag.message}" for flag in self.data_flags)]
        return "\n".join(lines)

    def _verdicts(self) -> list[str]:
        """Return both verdicts, on the sampling and on the data, as HTML."""
        return [
            cells.verdict(self.verdict, self.heading),
            cells.verdict(DATA_LIGHTS[self.data_verdict], self.data_heading),
        ]

    @cells.safe_html
    def _repr_html_(self) -> str:
        sampling, data = self._verdicts()
        flags = cells.listed([flag.message for flag in self.data_flags])
        assumed = cells.listed(self.assumptions, "What the answers assume")
        decided = cells.listed(self.directions, "What decides directions")
        return cells.cell(
            sampling, cells.note(self.summary), cells.listed(self.warnings()), data, flags, assumed, decided
        )

    @property
    def summary(self) -> str:
        """The figures of the sampling, in one sentence."""
        noise = self._told_noise() + self._told_sets() + self._told_tables()
        if self.exact:
            scored = " of scored parent sets" if self.conceivable_sets else ""
            return f"Edge probabilities sum over all networks{scored}; {self.draws} independent draws{noise}."
        if self.independent:
            return f"{self.draws} independent draws{self._told_weights()}{noise}."
        if self.chains == 1:
            return f"1 chain of {self.draws} draws; {self._told_log_score()}{self._told_weights()}{noise}."
        agreement = "don't agree" if self._disagree else "agree"
        return (
            f"{self.chains} chains {agreement}; largest gap {self.largest_gap:.2f} "
            f"({self.largest_gap_edge}); {self._told_log_score()}{self._told_weights()}{noise}."
        )

    def _told_log_score(self) -> str:
        if np.isnan(self.ess):
            return "R-hat and effective draws of the log score can't be computed"
        agreement = "" if np.isnan(self.r_hat) else f"R-hat {self.r_hat:.3f}, "
        return f"{agreement}{self.ess:.0f} effective draws of the log score"

    def _told_noise(self) -> str:
        if np.isnan(self.score_error):
            return "; scores are approximations of unknown error"
        return f"; 95% of the scores have errors of up to {self.score_error:.2g}" if self.score_error > 0 else ""

    def _told_sets(self) -> str:
        if not self.conceivable_sets:
            return ""
        return (
            f"; {self.scored_sets:,} of {self.conceivable_sets:,} parent sets were scored, and the others hold "
            f"{self._told_neglected()} of the posterior of a node's parents"
        )

    def _told_tables(self) -> str:
        if self.tables == 1:
            return ""
        return (
            f"; {self.tables} completed tables, between which the probability of an edge differs by up to "
            f"{self.table_gap:.2f} ({self.table_gap_edge}), as all errors take into account"
        )

    def _told_neglected(self) -> str:
        return f"about {100 * self.neglected_mass:.2f}% (± {100 * self.neglected_mass_error:.2f})"

    def _told_weights(self) -> str:
        if self.reweighted != "yes":
            return ""
        tail = "too few distinct draws for a Pareto k" if np.isnan(self.pareto_k) else f"Pareto k {self.pareto_k:.2f}"
        return f"; weighted from the proposal score to the target score, worth {self.weight_ess:.0f} draws ({tail})"


def data_verdict(flags: Sequence[Flag], unexamined: str = "") -> str:
    """Return the data in one word: "unknown" where they weren't examined, "flagged" or "clear"; mild flags don't count.

    Examples
    --------
    >>> data_verdict([]), data_verdict([Flag("outliers", ("a",), "a: one value far out.")])
    ('clear', 'flagged')
    """
    if unexamined:
        return "unknown"
    return "flagged" if any(not flag.mild for flag in flags) else "clear"


def data_heading(flags: Sequence[Flag], unexamined: str = "") -> str:
    """Return the verdict on the data as a sentence, or why they weren't examined.

    Examples
    --------
    >>> data_heading([]), data_heading([], "The data were not examined.")
    ('Checks of the data found nothing unusual.', 'The data were not examined.')
    >>> data_heading([Flag("outliers", ("a",), "a: one value far out."), Flag("binary", ("b",), "b: two values.")])
    'Checks of the data raised 1 flag and 1 note.'
    """
    if unexamined:
        return unexamined
    count = sum(not flag.mild for flag in flags)
    mild = len(flags) - count
    notes = f"{mild} note{'s' if mild > 1 else ''}"
    if not count:
        return f"Checks of the data found nothing unusual{f', and made {notes}' if mild else ''}."
    return f"Checks of the data raised {count} flag{'s' if count > 1 else ''}{f' and {notes}' if mild else ''}."


def diagnose(post: Draws) -> Diagnostics:
    """Return whether sampling has converged, what the answers assume, and what is odd in the data; print it.

    Returns
    -------
    Diagnostics
        `Diagnostics.ok` is True where nothing speaks against the sampling. That says nothing of the assumptions
        and the data, which `Diagnostics.assumptions` and `Diagnostics.data_flags` are about.

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
    >>> post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    >>> diagnostics = post.diagnostics()
    >>> diagnostics.ok, diagnostics.heading, diagnostics.assumptions[3]
    (True, 'Computed exactly, without sampling error.',
     'Every variable is a linear function of its parents plus normal noise.')
    >>> diagnostics.data_heading, [(flag.kind, flag.columns) for flag in diagnostics.data_flags]
    ('Checks of the data raised 2 flags.', [('outliers', ('akt',)), ('heavy tails', ('raf', 'mek', 'erk'))])
    """
    tables = post.record.tables
    shares = np.split(graphs.edge_shares(post.parents, post.weights), tables)
    gap, edge = max(largest_gap(own, post.names) for own in shares)
    table_gap, table_gap_edge = 0.0, ""
    if tables > 1:
        # The chains of a table one after the other.
        joined = (post.parents.reshape(tables, -1, *post.parents.shape[2:]), post.weights.reshape(tables, -1))
        table_gap, table_gap_edge = largest_gap(graphs.edge_shares(*joined), post.names)
    log_scores = np.split(post.log_score, tables)
    edge_ess, edge_ess_edge = slowest_edge(post)
    chains, draws = post.log_score.shape
    record, sets = post.record, post.record.candidates.sets
    return Diagnostics(
        chains=chains,
        draws=chains * draws,
        r_hat=max(float(r_hat_of(own)) for own in log_scores),
        ess=sum(map(ess_of, log_scores)),
        largest_gap=gap,
        largest_gap_edge=edge,
        pareto_k=float("nan") if record.pareto_k is None else float(record.pareto_k),
        weight_ess=effective_size(post.weights),
        sampler=record.sampler,
        order_bias=record.has_order_bias,
        independent=record.independent,
        exact=post.exact is not None,
        reweighted="no" if record.reweight is None else INTERRUPTED if record.reweight == INTERRUPTED else "yes",
        score_error=0.0 if post.score_errors is None else _most_errors(post.score_errors),
        poor_scores=record.poor_scores,
        converged=record.converged,
        conceivable_sets=sets.conceivable,
        scored_sets=sets.scored,
        audited_sets=sets.audited,
        neglected_mass=sets.neglected_mass,
        neglected_mass_error=sets.error,
        assumptions=(*NETWORK_ASSUMPTIONS, *_score_assumptions(record), *assumption(record, post.names)),
        directions=direction_sentences(post),
        impossible_pairs=tuple((post.names[i], post.names[j]) for i, j in record.impossible_pairs),
        data_flags=tuple(map(Flag.read, record.data_flags or ())),
        unexamined=_unexamined(record),
        tables=tables,
        table_gap=table_gap,
        table_gap_edge=table_gap_edge,
        # Chains of slow scores that didn't agree were coupled without being asked to.
        temperatures=len(record.betas) or record.temperatures,
        imputed=record.is_imputed,
        estimator=str(record.score_parameters.get("estimator", "")),
        edge_ess=edge_ess,
        edge_ess_edge=edge_ess_edge,
    )


def _score_assumptions(record: RunRecord) -> tuple[str, ...]:
    """Return what the score assumes, in words; that it is unknown, of draws that weren't sampled."""
    if record.assumptions is None:
        return (f"What the score {record.score_title('that was used')} assumes was not recorded.",)
    return record.assumptions


def _unexamined(record: RunRecord) -> str:
    """Return why the data weren't examined: draws that weren't sampled, or for want of rows; nothing if they were."""
    if not record.examined:
        return NOT_EXAMINED
    if record.data_flags is not None:
        return ""
    return WITH_GAPS if record.is_imputed else WITHOUT_ROWS


def _most_errors(errors: np.ndarray) -> float:
    return float(np.nan if np.isnan(errors).any() else np.quantile(errors, 0.95, method="inverted_cdf"))


def edge_r_hats(post: Draws, varies: np.ndarray) -> np.ndarray:
    """Return R-hat of every edge that varies, by its place in the flattened adjacency matrix; NaN for the others."""
    n = len(post.names)
    result = np.full((n, n), np.nan)
    parent, child = np.divmod(varies, n)
    for node in np.unique(child):
        chosen = parent[child == node]
        traces = np.moveaxis(graphs.parents_of(post.parents, node), -1, 0)[chosen]
        within = [binary_r_hats(own) for own in np.split(traces, post.record.tables, axis=1)]
        result[chosen, node] = np.fmax.reduce(within)
    return result.ravel()


def slowest_edge(post: Draws) -> tuple[float, str]:
    """Return the fewest independent draws that the draws are worth for an edge, and the edge; NaN where none varies."""
    chains, draws = post.log_score.shape
    tables = post.record.tables
    shares = graphs.edge_shares(post.parents, np.ones((chains, draws))).mean(axis=0)
    low, high = EDGE_SHARES
    counted = (shares > low) & (shares < high)
    fewest, edge = float("nan"), ""
    if draws < MIN_DRAWS:
        return fewest, edge
    for node in np.flatnonzero(counted.any(axis=0)):
        parents = np.flatnonzero(counted[:, node])
        traces = np.moveaxis(graphs.parents_of(post.parents, int(node)), -1, 0)[parents]
        worth = sum(_independent_draws(own) for own in np.split(traces, tables, axis=1))
        if not fewest <= np.min(worth):
            fewest, edge = float(np.min(worth)), f"{post.names[parents[np.argmin(worth)]]} -> {post.names[node]}"
    return fewest, edge


def _independent_draws(traces: Any) -> Floats:
    """Return how many independent draws traces (trace, chain, draw) are worth; 0 for one that never changes."""
    variance = traces.var(axis=(1, 2))
    with np.errstate(divide="ignore", invalid="ignore"):
        worth: Floats = np.where(variance > 0, variance / mean_errors(traces) ** 2, 0.0)
    return worth


def pareto_k_limit(draws: int) -> float:
    """Return the largest shape of the weights' tail to rely on: with few draws a smaller one (Vehtari et al. 2024).

    Examples
    --------
    >>> round(pareto_k_limit(100), 2), pareto_k_limit(8000)
    (0.5, 0.7)
    """
    return min(PARETO_K_LIMIT, 1 - 1 / float(np.log10(max(draws, 2))))


def weight_warnings(pareto_k: float, effective: float, draws: int, sampler: str = "auto") -> list[str]:
    """Return in words, with what to do, whether weights from one score to another are poor.

    Parameters
    ----------
    pareto_k : float
        The shape of their tail; NaN where it can't be computed.
    effective : float
        How many draws of equal weight they are worth.
    draws : int
        How many draws there are.
    sampler : str
        What drew them.
    """
    from gpn_bayes import samplers

    limit = pareto_k_limit(draws)
    if not pareto_k > limit and effective >= WEIGHT_ESS_LIMIT * draws:
        return []
    tail = "" if np.isnan(pareto_k) else f"; Pareto k {pareto_k:.2f}, should be below {limit:.2f}"
    kind = samplers.BUILT_IN.get(sampler)
    directly = (
        "your sampler with reweight=None" if kind is None else f"sampler=gpn.samplers.{kind.__name__}(reweight=None)"
    )
    return [
        f"The draws' weights can't be relied on (worth {effective:.0f} of {draws} draws{tail}): the score they were "
        f"drawn under is too far from the target. Use {directly} to draw under the target score itself, or draw more."
    ]


def chance_gap(effective: float) -> float:
    """Return how far chance alone parts two chains in the probability of an edge, at most: four standard errors.

    That of a gap is sqrt(2 p (1 - p) / effective), largest for p = 1/2.

    Parameters
    ----------
    effective : float
        The effective draws of each chain.

    Examples
    --------
    >>> round(chance_gap(800), 3)
    0.1
    """
    return 4 * float(np.sqrt(0.5 / effective))


def gap_limit(ess: float, worth: float, chains: int) -> float:
    """Return the smallest gap at which chains are said to disagree: 0.05, or what chance alone explains.

    Parameters
    ----------
    ess : float
        The effective draws of the log score in all chains; NaN where it never changes.
    worth : float
        How many draws of equal weight all draws are worth.
    chains : int
        How many there are.

    Examples
    --------
    >>> gap_limit(20_000.0, 20_000.0, 4), round(gap_limit(np.nan, 3_200.0, 4), 3)
    (0.05, 0.1)
    """
    return max(GAP_LIMIT, chance_gap(float(np.fmin(ess, worth)) / chains))


def agree(gap: float, limit: float, r_hat: float) -> bool:
    """Tell whether chains agree: on every edge, up to a limit, and on the log score, unless it never changes."""
    return gap <= limit and not r_hat > R_HAT_POOR


def have_converged(parents: np.ndarray, log_scores: np.ndarray, planned: int | None = None) -> bool:
    """Tell whether chains agree on the log score and on every edge, and have drawn enough.

    On the log score: R-hat up to 1.05 and 400 effective draws in all. On every edge: no two chains are farther apart
    than 0.05; or, once each chain has 800 effective draws of the log score, than chance alone would part them if all
    draws that were asked for were independent (`chance_gap`). That is 0.1 for 800 draws, and 0.05 from 3,200 on: only
    what longer strides can't mend is excused. With fewer draws chance explains so much that it would hide chains that
    do differ, and is no excuse. So a true gap of 0.15 is two standard errors or more beyond what passes.

    Parameters
    ----------
    parents : ndarray of uint64, shape (chain, draw, n, words)
        The DAGs, by parent bits.
    log_scores : ndarray of shape (chain, draw)
        Their log scores.
    planned : int, optional
        How many draws each chain was asked for, where it has made fewer.
    """
    chains, draws = log_scores.shape
    if draws < 4:
        return False
    gap = chain_gap(parents)
    excused = max(GAP_LIMIT, chance_gap(draws if planned is None else planned))
    # Where the log score never changes it has neither R-hat nor effective draws: then the edges alone tell.
    changes = np.ptp(log_scores) > 0
    ess = ess_of(log_scores) if changes else float("nan")
    # The log score may be worth more than its draws, where a high one follows a low one; edges needn't be.
    limit = excused if np.fmin(ess / chains, draws) >= EXCUSED_FROM else GAP_LIMIT
    r_hat = float(r_hat_of(log_scores))
    enough = not changes or (ess >= ESS_LIMIT and not np.isnan(r_hat))
    return bool(enough and agree(gap, limit, r_hat))


def chain_gap(parents: np.ndarray) -> float:
    """Return the largest difference between chains in the share of their DAGs, by parent bits, that have an edge."""
    return float(np.ptp(graphs.edge_shares(parents, np.ones(parents.shape[:2])), axis=0).max())


def largest_gap(edge_by_chain: np.ndarray, names: tuple[str, ...]) -> tuple[float, str]:
    """Return the largest difference between chains in an edge's probability, and the edge."""
    gaps = np.ptp(edge_by_chain, axis=0)
    np.fill_diagonal(gaps, -1)
    parent, child = np.unravel_index(int(gaps.argmax()), gaps.shape)
    return float(gaps[parent, child]), f"{names[parent]} -> {names[child]}"

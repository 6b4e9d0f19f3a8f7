"""NOTEARS between parties that don't share their rows: the learner, with all parties in one process."""

import warnings
from collections.abc import Iterable
from dataclasses import fields
from typing import Any, Self

import pandas as pd

from gpn_bayes._util.progress import progress_bar
from gpn_bayes._util.types import DiGraph, Floats
from gpn_bayes.estimators.base import GraphEstimator
from gpn_bayes.estimators.lagged_data import lagged_graph
from gpn_bayes.estimators.notears.dags import removed_table
from gpn_bayes.federated.channel import MemoryChannel
from gpn_bayes.federated.notears.building import participant, schedule, shared_model
from gpn_bayes.federated.notears.clients import read_clients
from gpn_bayes.federated.notears.consensus import Round, consensus_rounds, expected_rounds
from gpn_bayes.federated.notears.estimate import Estimate, estimate, history
from gpn_bayes.federated.notears.settings import Settings
from gpn_bayes.federated.plan import warn_of_few


class FederatedNOTEARS(GraphEstimator):
    r"""Learn one DAG from the rows of several clients that don't share them (NOTEARS-ADMM, Ng & Zhang 2022).

    In every round each client fits its own parameters to its own rows, near the shared ones; a coordinator gets the sum
    of what they found, and moves the shared parameters there, with a penalty and less and less room for cycles. At the
    end all agree, on a DAG.

    .. warning::

       **This hides rows; it doesn't hide covariances.** With ``secure=False`` every answer of a client reveals its
       covariance: :math:`S_k = [\rho_2 (W - B_k) - \beta_k] (B_k - I)^{-1}`, from the first message alone. With
       ``secure=True`` only sums over all clients are ever seen; but a linear run opens about eighty of them, and in
       small networks these sums together still determine every client's covariance, by least squares. A coordinator
       that deviates from the algorithm needs fewer. **For linear
       models use** `gpn_bayes.federated.secure_statistics` **instead**: one sum is opened, the total, and any learner
       fitted to it, ``NOTEARS(...).fit(stats)``, gives exactly the answer of the pooled table. ADMM is for models that
       have no such statistics (``model="mlp"``), and to compare with. What the sums of its rounds reveal about
       single clients isn't known; nothing is proved.

    Parameters
    ----------
    model : {"linear", "mlp", "dynamic"}
        Linear equations; a small neural network per variable; or linear equations of a time series with its past, where
        every client has one series or a list of them.
    secure : bool, default True
        Whether the clients' answers are masked so that only their sums can be read.
    lambda1 : float, optional
        Weight of absolute values; by default 0.01, or 0.001 for networks, of their first layer.
    threshold : float, default 0.3
        Magnitudes below it become zero.
    lambda2 : float
        Weight of half the squared weights of networks.
    hidden : int
        Number of hidden units of each network.
    lags : int
        How many earlier times act on a time, in a time series.
    lagged_threshold : float
        The threshold of weights of the past.
    rho : float, optional
        Strength of both constraints in the first round; by default 0.001, or 0.1 for networks. That of acyclicity grows
        by 1.75 a round, that of consensus by 1.25.
    intercepts : {"client", "shared"}
        "client": every client centres its columns, so their means may differ. "shared": the same for all clients, which
        centre their columns about the means of all rows; the sum of these is opened for that.
    diagonal : {"auto", "free", "masked"}
        Whether variables may act on themselves on the way to a DAG. "free" is the published algorithm, and gives its
        graphs; "masked" never lets them. "auto" is "free" for linear models of independent rows, else "masked".
    required, forbidden : iterable of (parent, child)
        Required and forbidden edges. Required ones have no penalty.
    tiers : optional
        No edge leads from a later tier to an earlier one; as in `gpn_bayes.sample`.
    tolerance : float
        A run has converged once h and the sum over the clients of ||B_k - W||^2 are below it.
    max_rounds : int
        Maximum number of rounds.
    random_state : int
        Source of randomness for the first parameters of networks.
    progressbar : bool
        Whether to show progress.

    Attributes
    ----------
    graph_, adjacency_
        As in every learner; always a DAG.
    weights_ : ndarray, shape (d, d)
        Entry (i, j) is the weight of i -> j, or the norm of the weights of i in the network of j; zero below the
        threshold.
    raw_weights_ : ndarray, shape (d, d)
        The same before the threshold.
    lagged_weights_, raw_lagged_weights_ : ndarray, shape (lags, d, d)
        Those of the past: entry (k, i, j) is the weight of i, k + 1 times before, on j.
    lagged_graph_ : networkx.DiGraph
        For time series, all edges over names such as "x[t]" and "x[t-1]".
    intercepts_ : ndarray, shape (d,)
        Those of linear models with ``intercepts="shared"``.
    h_ : float
        tr exp(W * W) - d of the raw weights.
    consensus_ : float
        The sum over the clients of ||B_k - W||^2 after the last round.
    rounds_ : int
        Number of rounds.
    history_ : DataFrame
        h, consensus and both strengths after every round.
    state_ : {"converged", "stalled", "out of rounds", "interrupted"}
        Why the run ended. It is stalled where the strongest constraint no longer brings h below the tolerance.
    interrupted_ : bool
        Whether Ctrl-C ended it; what the last round had is kept.
    removed_ : DataFrame
        Parent, child and weight of entries above the threshold that were dropped to break cycles.

    See Also
    --------
    gpn_bayes.federated.secure_statistics : The private way for linear models.

    Examples
    --------
    >>> import networkx as nx
    >>> from gpn_bayes import simulate
    >>> table = simulate.linear(nx.DiGraph([("raf", "mek"), ("mek", "erk")]), n_rows=300, random_seed=1)
    >>> learner = FederatedNOTEARS().fit([table[:150], table[150:200], table[200:]])
    >>> sorted(learner.graph_.edges), learner.state_
    ([('mek', 'erk'), ('raf', 'mek')], 'converged')
    """

    weights_: Floats
    raw_weights_: Floats
    lagged_weights_: Floats
    raw_lagged_weights_: Floats
    lagged_graph_: DiGraph
    intercepts_: Floats
    h_: float
    consensus_: float
    rounds_: int
    history_: pd.DataFrame
    state_: str
    interrupted_: bool
    removed_: pd.DataFrame

    def __init__(
        self,
        model: str = "linear",
        secure: bool = True,
        lambda1: float | None = None,
        threshold: float = 0.3,
        *,
        lambda2: float = 0.0,
        hidden: int = 10,
        lags: int = 1,
        lagged_threshold: float = 0.2,
        rho: float | None = None,
        intercepts: str = "client",
        diagonal: str = "auto",
        required: Any = (),
        forbidden: Any = (),
        tiers: Any = None,
        tolerance: float = 1e-8,
        max_rounds: int = 200,
        random_state: int = 0,
        progressbar: bool = False,
    ) -> None:
        self.model = model
        self.secure = secure
        self.lambda1 = lambda1
        self.threshold = threshold
        self.lambda2 = lambda2
        self.hidden = hidden
        self.lags = lags
        self.lagged_threshold = lagged_threshold
        self.rho = rho
        self.intercepts = intercepts
        self.diagonal = diagonal
        self.required = required
        self.forbidden = forbidden
        self.tiers = tiers
        self.tolerance = tolerance
        self.max_rounds = max_rounds
        self.random_state = random_state
        self.progressbar = progressbar

    def fit(self, X: Iterable[Any], y: None = None) -> Self:  # noqa: N803 (scikit-learn's name)
        """Learn the graph.

        Parameters
        ----------
        X : list of DataFrames, arrays or paths
            One per client; the same columns in the same order, any number of rows. For ``model="dynamic"`` a client has
            a series, or a list of series.
        y : None
            Ignored; for compatibility with scikit-learn.
        """
        settings = Settings(**{field.name: getattr(self, field.name) for field in fields(Settings)})
        parts = read_clients(X, settings)
        names = parts[0].names
        if self.secure:
            warn_of_few(len(parts))
        channel = MemoryChannel([participant(part, settings) for part in parts], secure=self.secure)
        rounds: list[Round] = []
        try:
            self.interrupted_ = False
            planned = schedule(settings)
            with progress_bar("Rounds", expected_rounds(planned), self.progressbar) as advance:
                for latest in consensus_rounds(channel, shared_model(names, settings), planned):
                    rounds.append(latest)
                    advance(1)
        except KeyboardInterrupt:
            if not rounds:
                raise
            self.interrupted_ = True
        self._keep(rounds, estimate(rounds[-1], names, settings), names)
        return self

    def _keep(self, rounds: list[Round], found: Estimate, names: tuple[str, ...]) -> None:
        last = rounds[-1]
        self.raw_weights_, self.weights_ = found.raw_weights, found.weights
        self.raw_lagged_weights_, self.lagged_weights_ = found.raw_lagged_weights, found.lagged_weights
        self.intercepts_, self.h_ = found.intercepts, found.h
        self.consensus_, self.rounds_, self.history_ = last.consensus, last.number, history(rounds)
        self.state_ = "interrupted" if self.interrupted_ else last.state
        self.removed_ = removed_table(found.removed, names)
        if self.model == "dynamic":
            self.lagged_graph_ = lagged_graph(names, found.adjacency, found.weights, found.lagged_weights)
        self._keep_graph(found.adjacency, names, None)
        if self.state_ == "out of rounds":
            warnings.warn(
                f"the clients must agree on a DAG; after {last.number} rounds h is {last.h:.2g} and the sum of "
                f"squared distances {last.consensus:.2g}: raise max_rounds",
                UserWarning,
                stacklevel=3,
            )

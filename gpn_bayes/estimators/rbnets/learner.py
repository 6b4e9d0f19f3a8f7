"""The learner: repeated walks through the order graph, and the best DAG found on them."""

from collections.abc import Sequence
from numbers import Real
from typing import Any

import numpy as np

from gpn_bayes._util.blas_threads import one_blas_thread
from gpn_bayes._util.checks import check_choice, check_count, shown
from gpn_bayes._util.progress import progress_bar
from gpn_bayes._util.seeds import generator
from gpn_bayes._util.types import Adjacency, Floats
from gpn_bayes.estimators.base import ScoreBasedEstimator
from gpn_bayes.estimators.problem import Problem
from gpn_bayes.estimators.rbnets.agent import Agent, LearningSettings, Player, RandomPlayer
from gpn_bayes.estimators.rbnets.exploration import EpsilonGreedy, Explorer, UpperConfidence
from gpn_bayes.estimators.rbnets.order_graph import OrderGraph
from gpn_bayes.estimators.set_search import searched_sets

EXPLORATIONS = ("ucb", "epsilon-greedy", "random")


class RBNets(ScoreBasedEstimator):
    """Reinforcement learning of an order (Zheng et al. 2023): a double deep Q-network on the order graph.

    In an episode the variables are placed one after the other. Each brings a reward, the score of its best parents
    among those already placed, and the network learns what each choice is worth with all that follows it: after every
    placement it takes one gradient step on a batch of remembered ones. The best order of any episode is the answer.

    Rewards are gains over the least parent set (the empty one, or the required parents), standardised: each variable's
    highest gain is taken off, which is the same for all orders, and the rest divided by the mean of the highest gains.
    So a reward of 0 is the best, -1 a loss as high as what a variable can gain on average. `c` is in this unit.

    Searches over orders, such as `OrderingSearch`, are quicker and better; this one is here to be compared with.

    Parameters
    ----------
    score : Score or str, default "bic"
        What to maximise.
    max_parents : int, optional
        Maximum number of parents per node; by default there is none. Where parent sets are too many to search them all,
        those up to some size are, and of larger ones those that a climb over DAGs meets; a warning says so.
    episodes : int, default 300
        Number of orders to try.
    exploration : {"ucb", "epsilon-greedy", "random"}
        How to choose the next variable. "ucb": the highest Q(s, a) + c sqrt(2 ln(1 + tau(s)) / (1 + tau(s, a))), where
        tau counts how often a choice was made; in a new state Q decides. "epsilon-greedy": the highest Q, or any with
        the probability epsilon. "random": any, nothing is learned.
    c : float, default 0.5
        The weight of choices not yet tried; "ucb" only.
    epsilon : pair of float, default (1.0, 0.05)
        The probability of a random choice in the first episode, and from the middle of the episodes on; it falls along
        a line in between. "epsilon-greedy" only.
    hidden : sequence of int, default (128, 128)
        Units of the hidden layers.
    buffer : int, default 2000
        How many placements are remembered.
    batch : int, default 200
        How many of them, drawn at random, a gradient step looks at; learning begins when there are this many.
    refresh : int, default 300
        Number of gradient steps after which the second network, the one that values choices, becomes a copy of the
        first.
    learning_rate : float, default 0.001
        The step length of RMSprop.
    gamma : float, default 1.0
        The weight of what follows a choice, from 0 to 1; with 1, values are scores of whole orders.
    required, forbidden : iterable of (parent, child)
        Required and forbidden edges.
    tiers : optional
        No edge leads from a later tier to an earlier one; as in `gpn_bayes.sample`.
    random_state : int, Generator or None
        Source of randomness for weights, batches and random choices.
    progressbar : bool
        Whether to show progress.

    Attributes
    ----------
    graph_, adjacency_, weights_, log_score_, max_parents_
        As in every score-based learner.
    searched_up_to_ : int or None
        Up to this many parents, all sets were searched, and not all of the larger ones; None where none was left out
        that can be in a best DAG.
    order_ : list of str
        The order of the estimate, parents before their children.
    episode_scores_ : ndarray of float
        The score of each episode's order.
    trace_ : ndarray of float
        The best score after each episode.
    interrupted_ : bool
        Whether Ctrl-C ended the learning; the best order so far is kept.

    Examples
    --------
    >>> from gpn_bayes import datasets
    >>> from gpn_bayes.estimators import RBNets
    >>> proteins = datasets.sachs(transform="log2")[["raf", "mek", "plcg", "pip2", "pip3"]]
    >>> learner = RBNets(score="bge", episodes=20, random_state=1).fit(proteins)
    >>> len(learner.order_), bool(learner.trace_[-1] == learner.episode_scores_.max())
    (5, True)
    """

    order_: list[str]
    episode_scores_: Floats
    trace_: Floats
    interrupted_: bool

    def __init__(
        self,
        score: Any = "bic",
        *,
        max_parents: int | None = None,
        episodes: int = 300,
        exploration: str = "ucb",
        c: float = 0.5,
        epsilon: tuple[float, float] = (1.0, 0.05),
        hidden: Sequence[int] = (128, 128),
        buffer: int = 2000,
        batch: int = 200,
        refresh: int = 300,
        learning_rate: float = 0.001,
        gamma: float = 1.0,
        required: Any = (),
        forbidden: Any = (),
        tiers: Any = None,
        random_state: Any = None,
        progressbar: bool = False,
    ) -> None:
        self.score = score
        self.max_parents = max_parents
        self.episodes = episodes
        self.exploration = exploration
        self.c = c
        self.epsilon = epsilon
        self.hidden = hidden
        self.buffer = buffer
        self.batch = batch
        self.refresh = refresh
        self.learning_rate = learning_rate
        self.gamma = gamma
        self.required = required
        self.forbidden = forbidden
        self.tiers = tiers
        self.random_state = random_state
        self.progressbar = progressbar

    def _search(self, problem: Problem) -> Adjacency:
        self._check()
        sets, up_to, _ = searched_sets(problem, self.progressbar)
        self._note_searched(up_to)
        graph = OrderGraph(sets, problem.prior.required)
        orders, scores = self._play(graph)
        self.episode_scores_ = np.array(scores)
        self.trace_ = np.maximum.accumulate(self.episode_scores_)
        best = orders[int(self.episode_scores_.argmax())]
        self.order_ = [problem.names[node] for node in best]
        return graph.adjacency(best)

    def _play(self, graph: OrderGraph) -> tuple[list[list[int]], list[float]]:
        """Return the order of every episode, and its score."""
        player = self._player(graph.n, generator("random_state", self.random_state))
        orders: list[list[int]] = []
        scores: list[float] = []
        self.interrupted_ = False
        try:
            # Matrices are too small for several threads, which could also round differently from run to run.
            with one_blas_thread, progress_bar("Learning", self.episodes, self.progressbar) as advance:
                for _ in range(self.episodes):
                    orders.append(player.play(graph))
                    scores.append(graph.score(orders[-1]))
                    advance(1)
        except KeyboardInterrupt:
            if not scores:
                raise
            self.interrupted_ = True
        return orders, scores

    def _player(self, n: int, rng: np.random.Generator) -> Player:
        if self.exploration == "random":
            return RandomPlayer(rng)
        explorer: Explorer = UpperConfidence(self.c)
        if self.exploration == "epsilon-greedy":
            explorer = EpsilonGreedy(*self.epsilon, self.episodes, rng)
        hidden = tuple(self.hidden)
        settings = LearningSettings(hidden, self.buffer, self.batch, self.refresh, self.learning_rate, self.gamma)
        return Agent(n, explorer, settings, rng)

    def _check(self) -> None:
        check_choice("exploration", self.exploration, EXPLORATIONS)
        for name in ("episodes", "buffer", "batch", "refresh"):
            check_count(name, getattr(self, name), 1)
        if isinstance(self.hidden, str) or not isinstance(self.hidden, Sequence):
            raise ValueError(f"hidden must be a sequence of numbers of units; received {shown(self.hidden)}")
        for units in self.hidden:
            check_count("each of the hidden layers", units, 1)
        if np.shape(self.epsilon) != (2,):
            raise ValueError(f"epsilon must be two probabilities, first and last; received {shown(self.epsilon)}")
        for name, value, most in (
            ("c", self.c, np.inf),
            ("gamma", self.gamma, 1),
            ("learning_rate", self.learning_rate, np.inf),
            *(("epsilon", value, 1) for value in self.epsilon),
        ):
            _check_range(name, value, most)


def _check_range(name: str, value: Any, most: float) -> None:
    if isinstance(value, bool) or not isinstance(value, Real) or not 0 <= float(value) <= most or value == np.inf:
        rule = "finite and 0 or more" if most == np.inf else f"from 0 to {most}"
        raise ValueError(f"{name} must be {rule}; received {shown(value)}")

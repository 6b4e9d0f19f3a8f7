"""Causal questions of a posterior: effects, interventions, counterfactuals, and what to adjust for."""

import warnings
from collections import defaultdict
from collections.abc import Hashable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from gpn_bayes import graphs
from gpn_bayes._util.checks import check_count, shown
from gpn_bayes.posterior.estimate import Estimate
from gpn_bayes.posterior.impossible_pairs import assumption, note_on_effect, pairs_of
from gpn_bayes.posterior.protocols import DrawnPosterior

if TYPE_CHECKING:
    from gpn_bayes.posterior.effect import Effect

_PACKAGE = (str(Path(__file__).parents[1]),)
# Adjustment sets are looked for in this many DAGs, the likeliest; their probabilities are those over all.
_DAGS_FOR_SETS = 300


class CausalQueries(DrawnPosterior):
    """What happens to Y if X is set, averaged over DAGs and over the parameters of their equations.

    All of it holds under the posterior's own assumptions: no unmeasured common causes, no cycles, and equations as the
    score has them.
    """

    def effect(
        self,
        cause: Hashable,
        outcome: Hashable,
        *,
        to: Any = None,
        versus: Any = None,
        points: int = 25,
        draws: int | None = None,
        random_seed: int = 0,
        progressbar: bool = True,
    ) -> "Effect":
        """Return the effect of setting one variable on another, averaged over DAGs and their parameters.

        Linear scores (BGe, Gaussian BIC): the total effect, the change of the outcome for each unit of the cause.
        Gaussian processes: the curve of the expected outcome over values of the cause, and its average slope. Scores of
        categories: the probabilities of the outcome's levels for each level of the cause. Tables of both (CG, BIC): of
        a number on a number the total effect, averaged over categories; of a category on a number the mean of the
        outcome at each level of the cause; on a category probabilities of its levels.

        Parameters
        ----------
        cause, outcome : str or int
            The variable that is set, and the one that is looked at.
        to, versus : float or level, optional
            Two values of the cause, in units of the table: the answer is then the change of the outcome from `versus`
            to `to`.
        points : int, default 25
            Of a curve: at how many values of the cause, from its smallest to its largest.
        draws : int, optional
            Over how many DAGs to average; all by default, and 500 for curves and for tables of numbers and categories.
        random_seed : int, default 0
            Where the parameters come from.
        progressbar : bool, default True
            Whether curves show their progress.

        Returns
        -------
        Effect
            `Effect.mean`, `Effect.sd`, `Effect.interval`, `Effect.draws`, and `Effect.probability` of any effect.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=500, random_seed=1, progressbar=False)
        >>> effect = post.effect("erk", "akt")
        >>> round(effect.probability, 1), round(effect.mean, 1)
        (0.5, 0.4)
        >>> round(post.effect("erk", "akt", to=6.0, versus=4.0).mean / effect.mean, 6)
        2.0
        """
        from gpn_bayes.posterior.effects import effect

        return effect(
            self, cause, outcome, to=to, versus=versus, points=points, draws=draws, random_seed=random_seed,
            progressbar=progressbar,
        )  # fmt: skip

    def effects(
        self, *, probability: float = 0.9, draws: int | None = None, random_seed: int = 0, progressbar: bool = True
    ) -> pd.DataFrame:
        """Return the effects of all variables on all others, the largest first, in standard deviations of both.

        Of linear scores the total effects, of Gaussian processes the average slopes. Of a category on a number, the
        change of the mean from the cause's first level to each other; effects on categories are left out.

        Parameters
        ----------
        probability : float, default 0.9
            That an effect lies between `lower` and `upper`.
        draws, random_seed, progressbar
            As for `effect`.

        Returns
        -------
        DataFrame
            Columns `cause`, `outcome`, `mean`, `sd`, `lower`, `upper`, `probability` (of an effect of the mean's sign),
            `path_probability` (of any effect), `mcse` (of the mean), and `mean_given_path`, `lower_given_path` and
            `upper_given_path`, the same without the point mass at zero, in units of the table; and `standardised`,
            the mean in standard deviations of both, or of the outcome where the cause is a category. Tables with
            categories also have `to` and `versus`, the levels compared.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=500, random_seed=1, progressbar=False)
        >>> post.effects()[["cause", "outcome", "mean", "path_probability"]].round(1).head(2)
          cause outcome  mean  path_probability
        0   erk     akt   0.4               0.5
        1   akt     erk   0.5               0.5
        """
        from gpn_bayes.posterior.effects import effects

        found = effects(self, probability=probability, draws=draws, random_seed=random_seed, progressbar=progressbar)
        for text in assumption(self.settings, self.names):
            warnings.warn(text, UserWarning, skip_file_prefixes=_PACKAGE)
        return found

    def do(
        self,
        interventions: Mapping[Hashable, Any],
        *,
        draws: int = 1000,
        random_seed: int = 0,
        progressbar: bool = True,
    ) -> pd.DataFrame:
        """Return draws of all variables under interventions: each row from another DAG and its parameters.

        Parameters
        ----------
        interventions : mapping
            What is done to variables, by name: a number or level that one is set to, whatever its parents are;
            ``("shift", amount)`` or a function of its values for a change of what its equation gives; None for nothing.
        draws : int, default 1000
            How many rows.
        random_seed : int, default 0
            For all randomness.
        progressbar : bool, default True
            Whether Gaussian processes, whose functions take long to draw, show their progress.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=500, random_seed=1, progressbar=False)
        >>> rows = post.do({"erk": 6.0, "raf": ("shift", 1.0)}, draws=200)
        >>> rows.shape, rows["erk"].unique().tolist()
        ((200, 4), [6.0])
        """
        from gpn_bayes.posterior.outcomes import do

        return do(self, interventions, draws=draws, random_seed=random_seed, progressbar=progressbar)

    def counterfactual(
        self,
        row: Any,
        interventions: Mapping[Hashable, Any],
        *,
        draws: int = 1000,
        random_seed: int = 0,
        progressbar: bool = True,
    ) -> pd.DataFrame:
        """Return what a row would have been under interventions: its own noise, kept, run through changed equations.

        This takes more for granted than `do`: that the noise of each equation belongs to the row and stays what it was
        whatever is done, which no experiment can show for a single row. A row doesn't tell the noise of a category: one
        that depends on what is changed has to be set too.

        Parameters
        ----------
        row : mapping, Series or sequence
            A value for every variable, in units of the table.
        interventions : mapping
            As for `do`.
        draws : int, default 1000
            How many DAGs, each with its parameters, to answer by: one row each.
        random_seed : int, default 0
            For all randomness.
        progressbar : bool, default True
            As for `do`.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=500, random_seed=1, progressbar=False)
        >>> unchanged = post.counterfactual(data.iloc[0], {"raf": data["raf"].iloc[0]}, draws=50)
        >>> bool(np.allclose(unchanged, data.iloc[[0]]))
        True
        """
        from gpn_bayes.posterior.outcomes import counterfactual

        return counterfactual(self, row, interventions, draws=draws, random_seed=random_seed, progressbar=progressbar)

    def adjustment_sets(self, cause: Hashable, outcome: Hashable, most: int = 10) -> pd.DataFrame:
        """Return the sets of variables that are most probably enough to adjust for, and no larger than they must be.

        A regression of the outcome on the cause and a back-door set (Pearl 1995) has the effect as the cause's
        coefficient, if relations are linear. The sets are minimal ones of drawn DAGs: of the parents of the cause, and
        of all variables that don't come after it.

        Parameters
        ----------
        cause, outcome : str or int
            The effect.
        most : int, default 10
            How many sets to return: those that are found most often.

        Returns
        -------
        DataFrame
            Columns `adjustment_set`, a tuple of names; `probability`, that it is a back-door set; and `mcse`. By
            falling probability. Where pairs with the cause or the outcome can't be joined under the score and the
            constraints of the run, the sets can't hold them for want of an edge: a warning says so, and the column
            `unexamined` names these variables.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=500, random_seed=1, progressbar=False)
        >>> post.adjustment_sets("erk", "akt").round(2).to_numpy().tolist()
        [[(), 0.5, 0.0]]
        """
        i, j = graphs.node_pair(cause, outcome, self.names)
        check_count("most", most, 1)
        distinct, _, inverse = self._distinct
        share = np.bincount(inverse, self.weights.ravel()) / self.weights.sum()
        found: defaultdict[tuple[int, ...], float] = defaultdict(float)
        likeliest = np.argsort(-share, kind="stable")[:_DAGS_FOR_SETS]
        for k in likeliest:
            for members in graphs.minimal_back_door_sets(graphs.unpack(distinct[k], len(self.names)), i, j):
                found[members] += float(share[k])
        rows = []
        for members in sorted(found, key=found.__getitem__, reverse=True)[:most]:
            answer = self.is_adjustment_set(cause, outcome, members)
            rows.append((tuple(self.names[v] for v in members), answer.value, answer.mcse))
        table = pd.DataFrame(rows, columns=["adjustment_set", "probability", "mcse"])
        self._warn_of_unexamined(table, i, j)
        return table.sort_values("probability", ascending=False, kind="stable", ignore_index=True)

    def _warn_of_unexamined(self, table: pd.DataFrame, cause: int, outcome: int) -> None:
        """Say, also in the table, with which variables neither the cause nor the outcome could be joined."""
        note = note_on_effect(self.settings, self.names, cause, outcome)
        if not note:
            return
        asked = {cause, outcome}
        others = sorted({v for pair in pairs_of(self.settings) if asked & set(pair) for v in set(pair) - asked})
        table["unexamined"] = [tuple(self.names[v] for v in others)] * len(table)
        warnings.warn(f"sets are found {note}", UserWarning, skip_file_prefixes=_PACKAGE)

    def is_adjustment_set(self, cause: Hashable, outcome: Hashable, variables: Sequence[Hashable]) -> Estimate:
        """Return the probability that a set of variables satisfies the back-door criterion, with its error.

        Parameters
        ----------
        cause, outcome : str or int
            The effect.
        variables : sequence of str or int
            The set; it may be empty.

        Examples
        --------
        >>> import gpn_bayes as gpn
        >>> data = gpn.datasets.sachs(transform="log2")[["raf", "mek", "erk", "akt"]]
        >>> post = gpn.sample(data, score="bge", draws=500, random_seed=1, progressbar=False)
        >>> post.is_adjustment_set("erk", "akt", ["raf"]).value < post.is_adjustment_set("erk", "akt", []).value
        True
        """
        i, j = graphs.node_pair(cause, outcome, self.names)
        note = note_on_effect(self.settings, self.names, i, j)
        if isinstance(variables, str):
            raise ValueError(f"variables must be a list of variables; received {shown(variables)}")
        given = [graphs.node_index(name, self.names) for name in variables]
        moments = self._moments(
            lambda dags: np.array([graphs.is_back_door_set(dag, i, j, given) for dag in dags], dtype=float)
        )
        return Estimate(float(moments.value[0]), float(moments.mcse[0]), float(moments.ess[0])).with_note(note)

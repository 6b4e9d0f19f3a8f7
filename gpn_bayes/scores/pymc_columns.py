"""A column of the table as a variable of a PyMC model, in units of the table."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import pymc as pm

from gpn_bayes._util.types import Floats
from gpn_bayes.data import Dataset
from gpn_bayes.scores.base import Scorer

ROW = "row"
# Between a column's name and that of a parameter of its equation, as in PyMC's own names of nested models.
BETWEEN = "::"


class Column(NamedTuple):
    """A continuous column: its name, its rows, and the zero and the unit in which the score takes it."""

    name: str
    values: Floats
    centre: float
    scale: float

    @property
    def standardised(self) -> Floats:
        """The rows as the score takes them."""
        values: Floats = (self.values - self.centre) / self.scale
        return values

    @property
    def variable(self) -> Any:
        """The column as a variable of the model being built, in the score's units; `pm.do` replaces it."""
        return (pm.modelcontext(None)[self.name] - self.centre) / self.scale

    def label(self, part: str) -> str:
        """Return the name of a part of the column's equation."""
        return f"{self.name}{BETWEEN}{part}"

    def data(self) -> Any:
        """Add the rows to the model, as what is observed."""
        return pm.Data(self.label("data"), self.values, dims=ROW)

    def observe(self, mean: Any, sigma: Any) -> None:
        """Add the column to the model, normal around a mean, which is given in the score's units, as sigma is."""
        noise = pm.Deterministic(self.label("noise"), self.scale * sigma)
        pm.Normal(self.name, mu=self.centre + self.scale * mean, sigma=noise, observed=self.data(), dims=ROW)


def columns(scorer: Scorer, table: Dataset, nodes: Sequence[int]) -> list[Column]:
    """Return some columns of the table that a score is bound to.

    Parameters
    ----------
    scorer : Scorer
        The score.
    table : Dataset
        The table.
    nodes : sequence of int
        Which columns.
    """
    centre, scale = scorer.units(table)
    return [Column(table.names[i], table.values[:, i].astype(float), float(centre[i]), float(scale[i])) for i in nodes]

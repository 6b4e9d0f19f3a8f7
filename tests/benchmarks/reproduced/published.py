"""What the papers state, as far as this repository knows it: `published.csv`.

A row has the experiment, setting and measure of our figure, the published value, the paper, where it stands there, and
how it was read. "original program" means that no number of the paper is compared, but what its program, or its
algorithm as first run, gives on the same data. Only printed numbers have a value.
"""

from pathlib import Path

import pandas as pd

PUBLISHED = Path(__file__).parent / "published.csv"
COLUMNS = ("experiment", "setting", "measure", "value", "paper", "place", "read")
# How values can be read, and how the page says it.
READINGS = {
    "printed": "as printed",
    "plot": "a plot, whose values weren't read off",
    "original program": "run on the same data",
    "not recorded": "we have no number of it to put beside ours",
}


def sources(experiment: str) -> pd.DataFrame:
    """Return all rows of an experiment."""
    table = read_published()
    return table[table["experiment"] == experiment]


def read_published() -> pd.DataFrame:
    """Return the file."""
    return pd.read_csv(PUBLISHED, keep_default_na=False, na_values={"value": ""})


def published(experiment: str) -> pd.Series:
    """Return the printed numbers of an experiment by setting and measure, in the order of the file."""
    known = sources(experiment).dropna(subset="value")
    return known.set_index(["setting", "measure"])["value"]

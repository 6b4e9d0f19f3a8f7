"""Simulation-based calibration: whether probabilities are true as often as they say, from the table to the answer.

DAGs, parameters and rows are drawn from the very model that a score assumes; `gpn.sample` draws from the posterior
given the rows; and what it says is compared with the truth. Probabilities of edges, directed paths and adjacent pairs
must come true as often as they say; the truth must have a uniform rank among the draws; intervals must hold as many
true effects as they say. `calibration/variants.py` lists scores, samplers and kinds of rows. In five of them the score
is wrong on purpose, which the tests must notice.

The score `cg` and categories under `gp` aren't among them: their priors take the units of the columns from the data, so
that no prior generates both.

Run with ``pytest -m slow -n 0 -s tests/benchmarks/test_calibration.py``, or a part of it, such as ``-k K2``; all of it
takes about an hour and a half on one core. With ``CALIBRATION=folder`` claims are kept there as they come, so that a
run that was stopped goes on, and ``python -m tests.benchmarks.calibration.what_held folder`` keeps what they show for
the guide. With ``CALIBRATION_PICTURES=folder`` each variant has a picture there.
"""

import os
from pathlib import Path

import pandas as pd
import pytest

from tests.benchmarks.calibration.pictures import draw_claims
from tests.benchmarks.calibration.running import claims_of_variant
from tests.benchmarks.calibration.uniformity import nats_per_edge, p_values
from tests.benchmarks.calibration.variants import VARIANTS
from tests.benchmarks.paper import show

pytestmark = pytest.mark.slow

# Of some 500 tests, each has p-values below this by chance once in a thousand times.
LEAST_P, CAUGHT = 0.001, 1e-6


def folder_of(variable: str) -> Path | None:
    value = os.environ.get(variable)
    if not value:
        return None
    folder = Path(value)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.parametrize("name", VARIANTS)
def test_answers_are_calibrated(name: str) -> None:
    variant = VARIANTS[name]
    claims = claims_of_variant(name, variant, folder_of("CALIBRATION"))
    found = p_values(claims)
    wide = found.pivot(index="kind", columns="test", values="p_value").loc[found["kind"].unique()]
    title = f"{name}: p-values of {variant.networks} networks; nats that edges lack: {nats_per_edge(claims)}"
    show(title, wide.map(lambda p: "" if pd.isna(p) else f"{p:.2g}"))
    pictures = folder_of("CALIBRATION_PICTURES")
    if pictures is not None:
        draw_claims(name, claims, pictures / f"{name}.png")
    if variant.wrong:
        assert found["p_value"].min() < CAUGHT
    else:
        assert found["p_value"].min() > LEAST_P

"""How far to trust edge probabilities where the model is wrong: 300 networks of four variables of every family.

A last test asks whether the directions of straight lines, which nothing tells, stay open.

Run with ``pytest -m slow -n 0 -s tests/benchmarks/test_wrong_models.py``, or a part of it, such as ``-k "outliers and
BGe"``. A network takes about two CPU seconds under GP, six with amplitudes. With ``CALIBRATION=folder`` claims are kept
there as they come, so that a run that was stopped goes on, and a row of ``wrong_models.csv`` sums them up.
"""

import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from tests.benchmarks.calibration.running import claims_of_variant
from tests.benchmarks.calibration.wrong_models import FAMILIES, RESULTS, SCORES, WrongModel, summary
from tests.benchmarks.field.measures import as_table
from tests.benchmarks.paper import show
from tests.benchmarks.test_calibration import folder_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("score", SCORES)
def test_probabilities_say_more_than_the_base_rate(family: str, score: str) -> None:
    folder = folder_of("CALIBRATION")
    found = summary(claims_of_variant(f"{family}, {score}", WrongModel(family, score), folder))
    diagram = pd.DataFrame(as_table(found["reliability"]), columns=["stated", "held", "error"])
    show(f"{family}, {score}: {found}", diagram, 3)
    if folder is not None:
        file = folder / RESULTS.name
        row = pd.DataFrame([{"family": family, "score": score, **found}])
        others = pd.read_csv(file).query("family != @family or score != @score") if file.exists() else None
        pd.concat([others, row]).to_csv(file, index=False, float_format="%.4g")
    assert found["brier"] < found["brier_base"]
    assert found["log_score"] > found["log_score_base"]


@pytest.mark.parametrize("correlation", [0.5, 0.8, 0.95])
def test_directions_of_lines_stay_open(correlation: float) -> None:
    """Two variables on a line: either direction is as probable, and by how much posteriors favour one is chance."""
    favoured = {}
    for equations in ("curved", "linear or curved"):
        rng, found = np.random.default_rng(7), []
        for _ in range(60):
            x, noise = rng.normal(size=(2, 100))
            rows = np.column_stack([x, correlation * x + np.sqrt(1 - correlation**2) * noise])
            scorer = gpn.scores.GP(estimator="laplace", equations=equations).bind(rows)
            gap = scorer.local(1, [0]) + scorer.local(0) - scorer.local(0, [1]) - scorer.local(1)
            found.append(1 / (1 + np.exp(-abs(gap))))
        favoured[equations] = np.mean(found)
    show(f"correlation {correlation}: probability of the likelier direction", pd.Series(favoured).to_frame().T, 2)
    assert favoured["linear or curved"] < min(0.6, favoured["curved"])

"""How far to trust edge probabilities where the model is wrong: 300 networks of four variables of every family.

Run with ``pytest -m slow -n 0 -s tests/benchmarks/test_wrong_models.py``, or a part of it, such as ``-k "outliers and
BGe"``. A network takes about two CPU seconds under GP, six with amplitudes. With ``CALIBRATION=folder`` claims are kept
there as they come, so that a run that was stopped goes on, and a row of ``wrong_models.csv`` sums them up.
"""

import pandas as pd
import pytest

from tests.benchmarks.calibration.running import claims_of_variant
from tests.benchmarks.calibration.uniformity import nats_per_edge, reliability
from tests.benchmarks.calibration.wrong_models import FAMILIES, NETWORKS, SCORES, WrongModel, summary
from tests.benchmarks.paper import show
from tests.benchmarks.test_calibration import folder_of

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("score", SCORES)
def test_probabilities_say_more_than_the_base_rate(family: str, score: str) -> None:
    folder = folder_of("CALIBRATION")
    claims = claims_of_variant(f"{family}, {score}", WrongModel(family, score), folder)
    found = summary(claims)
    points = reliability(claims, "edge")
    lacking = nats_per_edge(claims)
    show(f"{family}, {score}: {NETWORKS} networks; nats that edges lack: {lacking}; {found}", points, 3)
    if folder is not None:
        file = folder / "wrong_models.csv"
        row = {"family": family, "score": score, "networks": NETWORKS, **found, "nats": lacking.value}
        row |= {"nats_error": lacking.error, "reliability": as_text(points)}
        others = pd.read_csv(file).query("family != @family or score != @score") if file.exists() else None
        pd.concat([others, pd.DataFrame([row])]).to_csv(file, index=False, float_format="%.4g")
    assert found["brier"] < found["brier_base"]
    assert found["log_score"] > found["log_score_base"]


def as_text(points: pd.DataFrame) -> str:
    """Return a reliability diagram as text: what was stated, how often it held, and its error, bin by bin."""
    rows = points[["stated", "held", "error"]].to_numpy()
    return ";".join(":".join(f"{value:.3f}" for value in row) for row in rows)

"""Classes of evidence by differences of scores."""

import numpy as np
import pandas as pd
import pytest

from gpn_bayes import metrics

pytestmark = pytest.mark.more("statistics that take long")


@pytest.mark.parametrize(
    ("delta", "expected"),
    [
        (0, "neutral"),
        (-0.0, "neutral"),
        (2, "neutral"),
        (2.0001, "positive"),
        (6, "positive"),
        (6.0001, "strong"),
        (10, "strong"),
        (10.0001, "very strong"),
        (np.inf, "very strong"),
        (-2, "neutral"),
        (-2.0001, "positive against"),
        (-6.5, "strong against"),
        (-1e6, "very strong against"),
        (-np.inf, "very strong against"),
    ],
)
def test_limits_belong_to_the_weaker_class(delta, expected):
    found = metrics.evidence(delta)
    assert found == expected and type(found) is str


def test_arrays_keep_their_shape():
    delta = np.array([[0.0, 3.0, 7.0], [11.0, -3.0, -11.0]])
    found = metrics.evidence(delta)
    assert found.shape == (2, 3)
    assert found.tolist() == [[metrics.evidence(d) for d in row] for row in delta.tolist()]
    assert metrics.evidence([]).tolist() == []


def test_series_keep_their_index_and_are_ordered():
    delta = pd.Series([12.0, -3.0, 1.0], index=["x", "y", "z"], name="gap")
    found = metrics.evidence(delta)
    assert found.index.tolist() == ["x", "y", "z"] and found.name == "gap"
    assert found.tolist() == ["very strong", "positive against", "neutral"]
    assert found.sort_values().index.tolist() == delta.sort_values().index.tolist()
    assert len(found.cat.categories) == 7


def test_what_is_no_number_is_refused():
    with pytest.raises(ValueError, match="^differences of scores must be numbers; received NaN$"):
        metrics.evidence([1.0, np.nan])

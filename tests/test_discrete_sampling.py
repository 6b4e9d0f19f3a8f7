"""Posteriors of discrete networks: samplers agree, and what can't be sampled is refused."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes import graphs
from gpn_bayes.scores import BDeu
from tests.draws import assert_edges_agree, quick

pytestmark = pytest.mark.more("statistics that take long")

REFERENCE = Path(__file__).parent / "reference" / "discrete"


def codes(network):
    return pd.read_csv(REFERENCE / f"{network}_1000_codes.csv")


@pytest.fixture(scope="module")
def exact_asia():
    return quick(REFERENCE / "asia_1000.csv", score="bdeu").edge_probabilities().to_numpy()


def test_partition_sampler_agrees_with_the_exact_posterior_under_bdeu(exact_asia):
    post = quick(REFERENCE / "asia_1000.csv", score="bdeu", sampler="partition", draws=2500, tune=500, chains=4)
    assert_edges_agree(post, exact_asia)
    # Negative control: another score has another posterior, and the comparison tells.
    other = quick(REFERENCE / "asia_1000.csv", score="k2").edge_probabilities().to_numpy()
    with pytest.raises(AssertionError):
        assert_edges_agree(post, other)


def test_exact_posterior_under_bdeu_is_that_of_all_dags():
    frame = codes("asia").iloc[:200, 4:]
    scorer = BDeu(ess=2.0).bind(frame)
    dags = graphs.enumerate_dags(4)
    totals = np.array([scorer.total(dag) for dag in dags])
    shares = np.exp(totals - totals.max())
    expected = np.tensordot(shares / shares.sum(), dags, axes=1)
    found = quick(frame, score=BDeu(ess=2.0)).edge_probabilities().to_numpy()
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-9)


def test_sampling_many_discrete_variables_finds_candidates_by_the_score():
    post = quick(
        REFERENCE / "alarm_1000.csv", score="bdeu", space=gpn.Space(max_parents=3, plus_one=False), draws=20, tune=200
    )
    assert post.settings["candidates"]["method"] == "greedy"
    edges = post.edge_probabilities()
    assert edges.loc["LVFAILURE", "HISTORY"] + edges.loc["HISTORY", "LVFAILURE"] > 0.9


@pytest.mark.parametrize("method", ["pc", "dual-pc", "correlation", "distance-correlation"])
def test_methods_that_need_numbers_are_refused_in_one_line(method):
    message = (
        f"the method '{method}' needs numbers; K2(cardinalities=None, form='exact') takes categories: use 'greedy'"
    )
    with pytest.raises(ValueError) as error:
        quick(codes("asia"), score="k2", space=gpn.Space(candidates=method))
    assert str(error.value) == message


def test_sampling_a_mixed_table_names_its_columns():
    frame = codes("asia").assign(dose=np.linspace(0, 1, 1000))
    with pytest.raises(ValueError, match="^discrete scores need categories; column 'dose' is continuous: gpn.Table"):
        quick(frame, score="bdeu")

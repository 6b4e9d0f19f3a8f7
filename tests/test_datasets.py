import networkx as nx
import numpy as np
import pytest

from gpn_bayes import datasets

COLUMNS = ["raf", "mek", "plcg", "pip2", "pip3", "erk", "akt", "pka", "pkc", "p38", "jnk"]


def test_sachs_has_its_rows_and_columns():
    some, every = datasets.sachs(), datasets.sachs(rows="all")
    assert some.shape == (853, 11) and every.shape == (7466, 11)
    assert list(some.columns) == list(every.columns) == COLUMNS
    assert set(some.dtypes) == set(every.dtypes) == {np.dtype(float)}
    assert some.iloc[0].tolist() == [26.4, 13.2, 8.82, 18.3, 58.8, 6.61, 17.0, 414.0, 17.0, 44.9, 40.0]
    np.testing.assert_array_equal(some, every.iloc[:853])
    assert (every > 0).all(axis=None)


def test_log2_adds_a_half_first():
    raw, logs = datasets.sachs(), datasets.sachs(transform="log2")
    assert list(logs.columns) == COLUMNS
    np.testing.assert_allclose(2**logs - 0.5, raw, rtol=1e-12)


def test_every_call_returns_its_own_frame():
    mine = datasets.sachs()
    mine.iloc[0, 0] = -1.0
    assert datasets.sachs().iloc[0, 0] == 26.4


def test_consensus_networks():
    short, long = datasets.sachs_consensus(17), datasets.sachs_consensus(20)
    assert short.number_of_edges() == 17 and long.number_of_edges() == 20
    for graph in (short, long):
        assert list(graph.nodes) == COLUMNS
        assert nx.is_directed_acyclic_graph(graph)
    assert set(short.edges) - set(long.edges) == {("plcg", "pip3")}
    assert set(long.edges) - set(short.edges) == {
        ("pip2", "pkc"),
        ("pip3", "akt"),
        ("plcg", "pkc"),
        ("pip3", "plcg"),
    }


def test_unknown_choices_are_refused():
    with pytest.raises(ValueError, match="'observational' or 'all'; received 'some'"):
        datasets.sachs(rows="some")
    with pytest.raises(ValueError, match="None or 'log2'; received 'log'"):
        datasets.sachs(transform="log")
    with pytest.raises(ValueError, match="17 or 20 edges; received 18"):
        datasets.sachs_consensus(18)

"""The ways out of a posterior: to ArviZ, to a file and back."""

import arviz
import networkx as nx
import numpy as np
import pytest
import xarray as xr

import gpn_bayes as gpn
from gpn_bayes.posterior import load
from tests.draws import NAMES, drawn_posterior, exact_posterior, make, sticky_picks


@pytest.fixture(scope="module", params=[False, True], ids=["equal", "weighted"])
def drawn(request):
    return drawn_posterior(request.param)


@pytest.fixture(scope="module")
def exact():
    return exact_posterior()


def test_to_arviz(drawn):
    post, _ = drawn
    tree = post.to_arviz()
    edge = tree["posterior"]["edge"]
    assert edge.dtype == np.int8
    assert edge.dims == ("chain", "draw", "parent", "child")
    assert edge.coords["parent"].values.tolist() == edge.coords["child"].values.tolist() == list(NAMES)
    np.testing.assert_array_equal(edge.sel(parent="b", child="d"), post.adjacency[..., 1, 3])
    np.testing.assert_array_equal(tree["sample_stats"]["lp"], post.log_score)
    assert ("log_weights" in tree) == (post.log_weights is not None)


def test_arviz_takes_the_tree_without_warnings(drawn, tmp_path):
    post, _ = drawn
    tree = post.to_arviz()
    # Self-loops never vary, so that ArviZ is asked about one edge and about the log score.
    table = arviz.summary(tree, var_names=["edge"], coords={"parent": ["a"], "child": ["b"]})
    assert len(table) == 1
    arviz.summary(tree, group="sample_stats", var_names=["lp"])
    assert float(arviz.ess(tree, group="sample_stats", var_names=["lp"])["lp"]) > 0
    found = arviz.rhat(tree["posterior"]["edge"].sel(parent="a", child="b"))
    expected = post.summary().set_index("edge").loc["a -> b", "r_hat"]
    assert float(found) == pytest.approx(expected)
    tree.to_netcdf(tmp_path / "tree.nc", engine="h5netcdf")
    with xr.open_datatree(tmp_path / "tree.nc", engine="h5netcdf") as back:
        assert back["posterior"]["edge"].dtype == np.int8
        xr.testing.assert_equal(back["posterior"].to_dataset(), tree["posterior"].to_dataset())


def test_arviz_summarises_the_edges_that_vary_without_a_warning(drawn):
    post, _ = drawn
    table = arviz.summary(post.to_arviz(varying_only=True), var_names=["edge"])
    sampled = post.summary().query("status == 'sampled'")
    assert set(table.index) == {f"edge[{edge}]" for edge in sampled["edge"]}
    assert table["r_hat"].astype(float).notna().all()


def test_plots_of_arviz_take_the_tree():
    import matplotlib

    matplotlib.use("agg")
    tree = make(sticky_picks(np.random.default_rng(2), (2, 50))).to_arviz()
    assert arviz.plot_forest(tree, var_names=["edge"], coords={"parent": ["a"], "child": ["b", "c"]}) is not None
    matplotlib.pyplot.close("all")


def assert_same(one, other):
    assert one.names == other.names
    np.testing.assert_array_equal(one.parents, other.parents)
    np.testing.assert_array_equal(one.log_score, other.log_score)
    assert one.settings == other.settings
    assert one.stats.keys() == other.stats.keys()
    for name in one.stats:
        np.testing.assert_array_equal(one.stats[name], other.stats[name])
    np.testing.assert_array_equal(one.weights, other.weights)
    assert repr(one) == repr(other)
    assert one.edge_probabilities().equals(other.edge_probabilities())
    assert one.path_probabilities().equals(other.path_probabilities())
    assert one.summary().equals(other.summary())


def test_save_and_load(drawn, tmp_path):
    post, _ = drawn
    post.save(tmp_path / "run.nc")
    assert_same(load(tmp_path / "run.nc"), post)
    assert [path.name for path in tmp_path.iterdir()] == ["run.nc"]


def test_save_and_load_exact_answers(exact, tmp_path):
    data, post = exact
    post.save(tmp_path / "run.nc")
    back = gpn.load(str(tmp_path / "run.nc"))
    assert_same(back, post)
    assert str(back.diagnostics()) == str(post.diagnostics())
    assert back.probability(lambda g: g.number_of_edges() == 0) == post.probability(lambda g: g.number_of_edges() == 0)
    assert back.parent_set_probabilities("c").equals(post.parent_set_probabilities("c"))
    assert back.exact.log_z == post.exact.log_z
    with pytest.raises(ValueError, match="^a loaded posterior has no scores to compare with"):
        back.log_score_gap(nx.DiGraph())


def test_many_variables_survive_the_file(tmp_path):
    rng = np.random.default_rng(9)
    dags = np.triu(rng.random((4, 70, 70)) < 0.05, 1).astype(np.int8)
    post = make([[0, 1, 2], [3, 0, 1]], dags=dags, names=tuple(f"gene {i} (α)" for i in range(70)))
    post.save(tmp_path / "run.nc")
    back = load(tmp_path / "run.nc")
    np.testing.assert_array_equal(back.parents, post.parents)
    assert back.names == post.names


def test_save_refuses_to_overwrite(tmp_path):
    post, other = make([[0, 1], [2, 3]]), make([[4, 5], [6, 7]])
    post.save(tmp_path / "run.nc")
    with pytest.raises(ValueError, match="^an existing file is only replaced with overwrite=True; '.*' exists$"):
        other.save(tmp_path / "run.nc")
    np.testing.assert_array_equal(load(tmp_path / "run.nc").parents, post.parents)
    other.save(tmp_path / "run.nc", overwrite=True)
    np.testing.assert_array_equal(load(tmp_path / "run.nc").parents, other.parents)
    with pytest.raises(ValueError, match="^the folder must exist; '.*absent' doesn't$"):
        post.save(tmp_path / "absent" / "run.nc")


def test_load_refuses_other_files(tmp_path):
    with pytest.raises(ValueError, match="^the posterior's file must exist; '.*' is not a file$"):
        load(tmp_path / "absent.nc")
    (tmp_path / "text.nc").write_text("no netCDF")
    with pytest.raises(ValueError, match="^'text.nc' can't be read as a netCDF file: [^\n]+$"):
        load(tmp_path / "text.nc")
    (tmp_path / "empty.nc").write_bytes(b"")
    with pytest.raises(ValueError, match="^'empty.nc' can't be read as a netCDF file: [^\n]+$"):
        load(tmp_path / "empty.nc")
    xr.Dataset({"x": ("t", [1.0, 2.0])}).to_netcdf(tmp_path / "other.nc", engine="h5netcdf")
    with pytest.raises(ValueError, match="^'other.nc' must be a posterior saved by gpn_bayes; it isn't$"):
        load(tmp_path / "other.nc")
    arviz.from_dict({"posterior": {"edge": np.zeros((2, 5, 3, 3))}}).to_netcdf(
        tmp_path / "foreign.nc", engine="h5netcdf"
    )
    with pytest.raises(ValueError, match="^'foreign.nc' must be a posterior saved by gpn_bayes; it isn't$"):
        load(tmp_path / "foreign.nc")
    make([[0, 1], [2, 3]]).save(tmp_path / "whole.nc")
    (tmp_path / "cut.nc").write_bytes((tmp_path / "whole.nc").read_bytes()[:2000])
    with pytest.raises(ValueError, match="^'cut.nc' can't be read as a netCDF file: [^\n]+$"):
        load(tmp_path / "cut.nc")

"""The ways out of a posterior: to ArviZ, to a file and back."""

import copy
import json
import pickle
import shutil
import subprocess
import sys
from pathlib import Path

import arviz
import h5py
import networkx as nx
import numpy as np
import pandas as pd
import pytest
import xarray as xr

import gpn_bayes as gpn
from gpn_bayes.posterior import load
from gpn_bayes.posterior.draws import resampled_draws
from gpn_bayes.scores import GP, Score, ScoreBatch, Scorer, registry
from tests.draws import DAGS, NAMES, drawn_posterior, exact_posterior, make, quick, sticky_picks

pytestmark = pytest.mark.more("opens every file in a process of its own")

ROOT = Path(__file__).resolve().parents[1]


class Sparse(Score):
    """A score of a user's own: every parent costs one."""

    name, parameters = "sparse", {}

    def _bind(self, data):
        return SparseScorer(self, data.names, data.fingerprint)


class SparseScorer(Scorer):
    def score_sets(self, node, parent_sets):
        values = np.array([-1.0 * len(parents) for parents in parent_sets])
        return ScoreBatch(values, 0 * values, np.nan * values, ["exact"] * len(values))


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
    raw = post.to_arviz(resample=False)
    np.testing.assert_array_equal(raw["posterior"]["edge"].sel(parent="b", child="d"), post.adjacency[..., 1, 3])
    np.testing.assert_array_equal(raw["sample_stats"]["lp"], post.log_score)
    assert ("log_weights" in raw) == (post.log_weights is not None)
    assert "log_weights" not in tree
    if post.log_weights is None:
        xr.testing.assert_equal(tree, raw)


def summary_means(tree):
    """Return the means that ArviZ reports of the edges that vary, and their errors, by edge."""
    table = arviz.summary(tree, var_names=["edge"], round_to="none")
    return {name[5:-1]: (row["mean"], row["mcse_mean"]) for name, row in table.astype(float).iterrows()}


def weighted_draws(rng, draws=4000):
    """Return independent draws of DAGs from one distribution, weighted to another, and that one's edges."""
    log_q, log_p = rng.normal(0, 0.7, (2, len(DAGS)))
    p, q = (np.exp(own) / np.exp(own).sum() for own in (log_p, log_q))
    picks = rng.choice(len(DAGS), (4, draws), p=q)
    return make(picks, (log_p - log_q)[picks]), np.einsum("k,kij->ij", p, DAGS)


def test_arviz_reports_the_weighted_posterior():
    """By exact enumeration; the draws before weighting are a negative control."""
    post, edges = weighted_draws(np.random.default_rng(3))
    own = post.summary().set_index("edge")

    def distances(tree):
        for edge, (mean, error) in summary_means(tree).items():
            i, j = (NAMES.index(name) for name in edge.split(" -> "))
            assert own.loc[edge, "probability"] == pytest.approx(edges[i, j], abs=4 * own.loc[edge, "mcse"])
            yield abs(mean - edges[i, j]) / error

    found = list(distances(post.to_arviz(varying_only=True)))
    assert len(found) == 12 and max(found) < 4
    assert max(distances(post.to_arviz(varying_only=True, resample=False))) > 10


def test_resampling_keeps_each_draw_as_often_as_its_weight_says():
    post, _ = weighted_draws(np.random.default_rng(4), draws=300)
    kept = resampled_draws(post.weights, random_seed=7)
    for chain, own in enumerate(kept):
        expected = 300 * post.weights[chain] / post.weights[chain].sum()
        times = np.bincount(own, minlength=300)
        assert (np.abs(times - expected) < 1).all()
        assert (np.diff(own) >= 0).all()
    np.testing.assert_array_equal(kept, resampled_draws(post.weights, random_seed=7))
    assert (kept != resampled_draws(post.weights, random_seed=8)).any()
    tree = post.to_arviz(random_seed=7)
    np.testing.assert_array_equal(tree["sample_stats"]["lp"], np.take_along_axis(post.log_score, kept, axis=1))
    attributes = tree["posterior"].attrs
    assert attributes["weight_ess"] == pytest.approx(post.diagnostics().weight_ess)
    assert attributes["distinct_draws"] == sum(len(set(own)) for own in kept.tolist())


def test_a_draw_of_weight_zero_is_never_kept():
    weights = np.array([[0.0, 1.0, 0.0, 3.0, 0.0]])
    for seed in range(50):
        assert set(resampled_draws(weights, seed).ravel()) <= {1, 3}


def test_arviz_agrees_with_a_reweighted_run():
    """Gaussian processes drawn under Laplace's approximation, against the exact sampler under the score itself."""
    rng = np.random.default_rng(1)
    a, d = rng.normal(size=(2, 60))
    b = np.sin(2 * a) + 0.5 * rng.normal(size=60)
    data = pd.DataFrame({"a": a, "b": b, "c": 0.6 * b * d + rng.normal(size=60), "d": d})
    score = GP(target_error=0.05)
    exact = gpn.sample(
        data, score=score, sampler=gpn.samplers.Auto(reweight=None), draws=50, random_seed=1, progressbar=False
    )
    post = gpn.sample(data, score=score, draws=3000, random_seed=2, progressbar=False)
    truth = exact.edge_probabilities()
    for edge, (mean, error) in summary_means(post.to_arviz(varying_only=True)).items():
        parent, child = edge.split(" -> ")
        scores = exact.edge_probability(parent, child).mcse
        assert abs(mean - truth.loc[parent, child]) < 4 * np.hypot(error, scores) + 4 / 3000, edge


def test_arviz_takes_the_tree_without_warnings(drawn, tmp_path):
    post, _ = drawn
    tree = post.to_arviz()
    # Self-loops never vary, so that ArviZ is asked about one edge and about the log score.
    table = arviz.summary(tree, var_names=["edge"], coords={"parent": ["a"], "child": ["b"]})
    assert len(table) == 1
    arviz.summary(tree, group="sample_stats", var_names=["lp"])
    assert float(arviz.ess(tree, group="sample_stats", var_names=["lp"])["lp"]) > 0
    found = arviz.rhat(tree["posterior"]["edge"].sel(parent="a", child="b"))
    if post.log_weights is None:
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
    assert back.log_score_gap(nx.DiGraph()) == pytest.approx(post.log_score_gap(nx.DiGraph()), abs=1e-9)
    np.testing.assert_array_equal(back.data.values, post.data.values)
    post.save(tmp_path / "private.nc", data=False)
    without = gpn.load(tmp_path / "private.nc")
    assert_same(without, post)
    assert without.data is None
    cell = data.to_numpy()[0, 0].tobytes()
    assert cell in (tmp_path / "run.nc").read_bytes()
    assert cell not in (tmp_path / "private.nc").read_bytes()
    with pytest.raises(ValueError, match="^scores need the data, and this posterior was saved without them; sample"):
        without.log_score_gap(nx.DiGraph())


SCORES = {
    "bge": gpn.scores.BGe(alpha_mu=0.5),
    "gp": GP(estimator="laplace", theta=(3.0, 2.0)),
    "bic": gpn.scores.BIC(kind="gaussian"),
    "lasso": gpn.scores.Lasso(lambda1=0.2),
    "bdeu": gpn.scores.BDeu(ess=3),
    "k2": gpn.scores.K2(),
}


def table_for(score):
    rng = np.random.default_rng(6)
    if score in ("bdeu", "k2"):
        return pd.DataFrame(
            {"x": rng.choice(["low", "high"], 40), "y": rng.integers(3, size=40), "z": rng.random(40) < 0.4}
        )
    return pd.DataFrame(rng.normal(size=(40, 3)), columns=["x", "y", "z"])


PRIORS = {
    "uniform": {},
    "knowledge": {"prior": "fair", "required": [("x", "y")], "forbidden": [("z", "x")]},
    "tiers": {"tiers": [["y"], ["x", "z"]]},
    "table": {"prior": np.array([[0, 0.9, 0.3], [0.2, 0, 0.4], [0.1, 0.6, 0]])},
}


@pytest.mark.parametrize("score", SCORES)
@pytest.mark.parametrize("prior", PRIORS)
def test_files_and_pickles_keep_data_and_scores(score, prior, tmp_path):
    post = quick(table_for(score), score=SCORES[score], sampler=gpn.samplers.Auto(reweight=None), **PRIORS[prior])
    post.save(tmp_path / "run.nc")
    graph = [("x", "y"), ("x", "z")]
    for back in (load(tmp_path / "run.nc"), pickle.loads(pickle.dumps(post)), copy.deepcopy(post)):
        assert_same(back, post)
        assert back.data.fingerprint == post.data.fingerprint
        assert [list(map(str, own or ())) for own in back.data.levels] == [
            list(map(str, own or ())) for own in post.data.levels
        ]
        assert back.log_score_gap(graph) == pytest.approx(post.log_score_gap(graph), abs=1e-9)
        assert repr(back.scorer.score) == repr(SCORES[score])
        assert back.scorer.prior.parameters == post.scorer.prior.parameters


def test_statistics_survive_the_file(tmp_path):
    statistics = gpn.SufficientStatistics.of(table_for("bge"))
    post = quick(statistics)
    post.save(tmp_path / "run.nc")
    back = load(tmp_path / "run.nc")
    assert back.data.fingerprint == statistics.fingerprint
    assert back.log_score_gap([("x", "y")]) == pytest.approx(post.log_score_gap([("x", "y")]), abs=1e-9)


def test_a_score_of_ones_own_is_filed_by_its_name_alone(tmp_path, monkeypatch):
    post = quick(table_for("bge"), score=Sparse())
    post.save(tmp_path / "run.nc")
    assert load(tmp_path / "run.nc").log_score_gap([]) == post.log_score_gap([])
    monkeypatch.delitem(registry._registered, "sparse")
    back = load(tmp_path / "run.nc")
    assert back.scorer is None and back.data is not None
    with pytest.raises(ValueError, match="^this posterior has no score to compare a DAG by; sample again$"):
        back.log_score_gap([])
    assert pickle.loads(pickle.dumps(post)).log_score_gap([]) == post.log_score_gap([])


def test_files_with_other_data_are_refused(tmp_path):
    post = quick(table_for("bge"))
    post.save(tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.nc", "r+") as file:
        file["observed_data/value"][0, 0] += 1.0
    with pytest.raises(
        ValueError,
        match="^'run.nc' must be .*: a posterior's file must hold the data it was drawn from; this one",
    ):
        load(tmp_path / "run.nc")


def test_a_full_disk_is_reported_in_one_line(tmp_path):
    """HDF5 crashes the process when it can't write: the file is made in memory first."""
    code = f"""
import resource, signal
import numpy as np
from tests.draws import make
post = make(np.arange(400).reshape(2, 200))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))
try:
    post.save({str(tmp_path / "run.nc")!r})
except ValueError as error:
    print(error)
"""
    ended = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout == f"a file must be writable; '{tmp_path / 'run.nc'}' isn't: File too large\n"
    assert not list(tmp_path.iterdir())


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


def test_save_refuses_names_of_other_formats(tmp_path):
    post = make([[0, 1], [2, 3]])
    for name in ("run.csv", "run.json", "run.nc.gz"):
        with pytest.raises(ValueError, match=f"^the file's name must end with .nc; received '{name}'$"):
            post.save(tmp_path / name)
    assert not list(tmp_path.iterdir())
    for name in ("run.NC", "run"):
        post.save(tmp_path / name)
    assert load(tmp_path / "run").names == post.names


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
    with pytest.raises(ValueError, match="^'other.nc' must be a posterior written by GraphPosterior.save; it isn't$"):
        load(tmp_path / "other.nc")
    arviz.from_dict({"posterior": {"edge": np.zeros((2, 5, 3, 3))}}).to_netcdf(
        tmp_path / "foreign.nc", engine="h5netcdf"
    )
    with pytest.raises(ValueError, match="^'foreign.nc' must be a posterior written by GraphPosterior.save; it isn't$"):
        load(tmp_path / "foreign.nc")
    make([[0, 1], [2, 3]]).save(tmp_path / "whole.nc")
    (tmp_path / "cut.nc").write_bytes((tmp_path / "whole.nc").read_bytes()[:2000])
    with pytest.raises(ValueError, match="^'cut.nc' can't be read as a netCDF file: [^\n]+$"):
        load(tmp_path / "cut.nc")


def put(name, place, value):
    def change(file):
        file[name][place] = value

    return change


def rename_first(file):
    for dim in ("posterior/parent", "posterior/child"):
        file[dim][0] = file[dim][1]


DAMAGES = {
    "cycle": (lambda file: put("posterior/edge", (0, 0), ~np.eye(4, dtype=bool))(file), "a DAG has a cycle"),
    "other numbers": (put("posterior/edge", (0, 0, 0, 1), 5), "edges are neither 0 nor 1"),
    "NaN": (put("sample_stats/lp", (0, 0), np.nan), "log scores are infinite or NaN"),
    "weights": (put("log_weights/log_weight", (0, 0), np.inf), "log weights are infinite or NaN"),
    "repeated names": (rename_first, "."),
    "other children": (put("posterior/child", 0, "someone"), "parents and children have different names"),
    "no scores": (lambda file: file.__delitem__("sample_stats/lp"), "parts are missing"),
    "no edges": (lambda file: file.__delitem__("posterior/edge"), "parts are missing"),
    "settings": (lambda file: file["posterior"].attrs.__setitem__("settings", "[" * 100_000), "."),
    "settings of another kind": (lambda file: file["posterior"].attrs.__setitem__("settings", "[1]"), "its settings"),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_files_that_somebody_has_changed_are_refused(damage, tmp_path):
    change, reason = DAMAGES[damage]
    post, _ = drawn_posterior(True)
    post.save(tmp_path / "run.nc")
    load(tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.nc", "r+") as file:
        change(file)
    with pytest.raises(
        ValueError, match=f"^'run.nc' must be as GraphPosterior.save wrote it; it isn't: {reason}"
    ) as refusal:
        load(tmp_path / "run.nc")
    assert "\n" not in str(refusal.value)


def with_attribute(group, name, change):
    """Return what changes an attribute that holds JSON."""

    def damage(file):
        content = json.loads(file[group].attrs[name])
        content = change(content) or content
        file[group].attrs[name] = json.dumps(content)

    return damage


def with_prior(**changes):
    return with_attribute("posterior", "settings", lambda settings: settings["prior"].update(changes))


CANDIDATES = "exact candidates aren't"
EXACT_DAMAGES = {
    "NaN of an edge": (put("exact/edge_probability", (0, 1), np.nan), "exact probabilities don't lie between 0 and 1"),
    "NaN of a set": (put("exact/set_probability", 0, np.nan), "exact probabilities don't lie between 0 and 1"),
    "a set's beyond one": (put("exact/set_probability", 0, 1.5), "exact probabilities don't lie between 0 and 1"),
    "a set's score": (put("exact/set_log_score", 0, np.nan), "exact log scores are infinite or NaN"),
    "the sum": (lambda file: file["exact"].attrs.__setitem__("log_z", np.nan), "exact log scores are infinite or NaN"),
    "too few lists": (with_attribute("exact", "candidates", lambda lists: lists[:-1]), CANDIDATES),
    "no such variable": (with_attribute("exact", "candidates", lambda lists: [[1, 9], *lists[1:]]), CANDIDATES),
    "a negative one": (with_attribute("exact", "candidates", lambda lists: [[1, -1], *lists[1:]]), CANDIDATES),
    "itself": (with_attribute("exact", "candidates", lambda lists: [[0, 1], *lists[1:]]), CANDIDATES),
    "one twice": (with_attribute("exact", "candidates", lambda lists: [[1, 1], *lists[1:]]), CANDIDATES),
    "a text": (with_attribute("exact", "candidates", lambda lists: ["12", *lists[1:]]), CANDIDATES),
    "another number": (with_attribute("exact", "candidates", lambda lists: [[1], *lists[1:]]), "set_log_score"),
    "a prior's kind": (with_prior(kind="flat"), "its prior isn't one"),
    "a prior's penalty": (with_prior(edge_penalty=float("nan")), "its prior isn't one"),
    "a prior's odds": (with_prior(log_odds=[[0, float("nan"), 0]] * 3), "its prior isn't one"),
    "a prior's edges": (with_prior(required=[[0, 7]]), "its prior isn't one"),
    "a prior's edges counted back": (with_prior(required=[[-1, 0]]), "its prior isn't one"),
    "a prior that is a number": (
        with_attribute("posterior", "settings", lambda settings: settings | {"prior": 3}), "its prior isn't one",
    ),
}  # fmt: skip


@pytest.fixture(scope="module")
def whole_exact(tmp_path_factory):
    """Return the file of a posterior that is exact, which loads."""
    rows = pd.DataFrame(np.random.default_rng(1).normal(size=(30, 3)), columns=["a", "b", "c"])
    post = gpn.sample(rows, "bge", sampler="exact", draws=10, chains=1, random_seed=1, progressbar=False)
    path = tmp_path_factory.mktemp("exact") / "run.nc"
    post.save(path)
    load(path)
    return path


@pytest.mark.parametrize("damage", EXACT_DAMAGES)
def test_exact_answers_that_somebody_has_changed_are_refused(damage, whole_exact, tmp_path):
    change, reason = EXACT_DAMAGES[damage]
    shutil.copy(whole_exact, tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.nc", "r+") as file:
        change(file)
    with pytest.raises(ValueError, match=f"^'run.nc' must be as GraphPosterior.save wrote it; it isn't: {reason}") as e:
        load(tmp_path / "run.nc")
    assert "\n" not in str(e.value)


@pytest.mark.parametrize("several", [False, True])
def test_a_file_cannot_call_its_values_missing(several, drawn, tmp_path):
    """Xarray would make NaN of them, with a warning if the file names more than one."""
    drawn[0].save(tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.nc", "r+") as file:
        values = file["sample_stats/lp"]
        marked = values[0, :2] if several else values[0, 0]
        values.attrs["_FillValue"] = marked
    assert_same(load(tmp_path / "run.nc"), drawn[0])


def test_a_file_in_which_hdf5_never_ends_is_refused(tmp_path, monkeypatch):
    """A free object of size 0 in a heap of texts: HDF5 looks for the next one at the same place, forever."""
    monkeypatch.setattr("gpn_bayes.posterior.file_reading._SECONDS", 1)
    quick(table_for("bge")).save(tmp_path / "run.nc")
    content = bytearray((tmp_path / "run.nc").read_bytes())
    heap = content.index(b"GCOL")
    content[heap + 16 : heap + 32] = bytes(16)
    (tmp_path / "run.nc").write_bytes(content)
    with pytest.raises(ValueError, match="^'run.nc' can't be read as a netCDF file: its parts have no end"):
        load(tmp_path / "run.nc")


def test_a_file_that_ends_its_reader_is_refused(tmp_path, monkeypatch):
    make([[0, 1], [2, 3]]).save(tmp_path / "run.nc")
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    with pytest.raises(ValueError, match="^'run.nc' can't be read .*: its parts .* end the program that reads them$"):
        load(tmp_path / "run.nc")


def test_files_are_opened_by_another_process_only(tmp_path):
    """HDF5 may write where it should not, given a damaged file."""
    make([[0, 1], [2, 3]]).save(tmp_path / "run.nc")
    program = "import sys, gpn_bayes; print(gpn_bayes.load(sys.argv[1]).log_score.shape, 'h5py' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "run.nc"], capture_output=True, text=True, check=True
    )
    assert done.stdout == "(2, 2) False\n"


def huge(file):
    del file["sample_stats/lp"]
    file.create_dataset("sample_stats/lp", (1 << 20, 1 << 20), "f4", chunks=(100, 100), compression="gzip")


def long_texts(file):
    """Many entries that are the same text."""
    del file["posterior/parent"]
    texts = file.create_dataset("posterior/parent", (200_000,), h5py.string_dtype())
    texts[0] = "x" * 100_000
    raw = texts.id.get_offset()
    assert raw is not None
    return raw


def linked(link):
    def change(file):
        del file["sample_stats/lp"]
        file["sample_stats/lp"] = link

    return change


def circular(file):
    file["posterior/again"] = file["/"]


def packed_by_another(file):
    values = file["sample_stats/lp"][()]
    del file["sample_stats/lp"]
    file.create_dataset("sample_stats/lp", data=values, chunks=values.shape, compression="lzf")


HARMFUL = {
    "huge": (huge, "its arrays must fit into memory; they take "),
    "external": (linked(h5py.ExternalLink("/etc/hostname", "/x")), "it refers to other places or files"),
    "soft": (linked(h5py.SoftLink("/sample_stats")), "it refers to other places or files"),
    "circular": (circular, "its groups are nested too deeply"),
    "packed": (packed_by_another, "an array is packed in an unknown way"),
    "incomplete": (
        lambda file: file.create_dataset("sample_stats/more", (3, 60), "f4", chunks=(3, 60), compression="gzip"),
        "an array isn't complete",
    ),
    "many": (lambda file: [file.create_group(f"g{i}") for i in range(1001)], "it has too many parts"),
}


@pytest.mark.parametrize("harm", HARMFUL)
def test_files_that_would_do_harm_are_refused_before_they_are_read(harm, tmp_path, monkeypatch):
    change, reason = HARMFUL[harm]
    make([[0, 1], [2, 3]]).save(tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.nc", "r+") as file:
        change(file)
    # This process doesn't open the file.
    monkeypatch.setattr(h5py, "File", None)
    with pytest.raises(ValueError, match=f"^'run.nc' can't be read as a netCDF file: {reason}") as refusal:
        load(tmp_path / "run.nc")
    assert "\n" not in str(refusal.value)


def test_many_entries_that_share_one_text_are_refused(tmp_path):
    """Their sum would not fit into memory, though the file is small."""
    make([[0, 1], [2, 3]]).save(tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.nc", "r+") as file:
        place = long_texts(file)
    content = bytearray((tmp_path / "run.nc").read_bytes())
    content[place : place + 200_000 * 16] = bytes(content[place : place + 16]) * 200_000
    (tmp_path / "run.nc").write_bytes(content)
    with pytest.raises(ValueError, match="^'run.nc' can't be read as a netCDF file: its texts are longer than "):
        load(tmp_path / "run.nc")


def test_complex_data_are_refused(tmp_path):
    quick(table_for("bge")).save(tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.nc", "r+") as file:
        values = file["observed_data/value"][()]
        del file["observed_data/value"]
        file["observed_data/value"] = values + 0j
    with pytest.raises(ValueError, match="^'run.nc' can't be read as .*: an array holds neither numbers nor texts$"):
        load(tmp_path / "run.nc")


def test_without_an_interpreter_to_start_files_are_looked_at_here(tmp_path, monkeypatch):
    """As in a program that holds an interpreter."""
    monkeypatch.setattr("sys.executable", "")
    make([[0, 1], [2, 3]]).save(tmp_path / "run.nc")
    load(tmp_path / "run.nc")
    with h5py.File(tmp_path / "run.nc", "r+") as file:
        circular(file)
    with pytest.raises(ValueError, match="its groups are nested too deeply"):
        load(tmp_path / "run.nc")

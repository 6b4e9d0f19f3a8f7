import networkx as nx
import numpy as np
import pandas as pd
import pytest

from gpn_bayes import graphs, simulate
from gpn_bayes.simulate import relations

DIAMOND = nx.DiGraph([("d", "b"), ("d", "a"), ("b", "c"), ("a", "c")])
EDGE = nx.DiGraph([("x", "y")])


def regress(frame, dag, child):
    """Least squares of a variable on its parents: coefficients, their standard errors, residual variance."""
    parents = list(dag.predecessors(child))
    design = np.column_stack([np.ones(len(frame)), frame[parents]])
    return least_squares(design, frame[child].to_numpy())


def least_squares(design, target):
    coefficients = np.linalg.lstsq(design, target, rcond=None)[0]
    residuals = target - design @ coefficients
    variance = residuals @ residuals / (len(target) - design.shape[1])
    return coefficients, variance * np.linalg.inv(design.T @ design), variance


@pytest.mark.parametrize("kind", ["er", "sf"])
def test_random_dags_are_acyclic_named_and_repeatable(kind):
    first = simulate.random_dag(12, kind, edges_per_node=2, random_seed=3)
    assert list(first.nodes) == [f"v{i + 1}" for i in range(12)]
    assert nx.is_directed_acyclic_graph(first)
    assert set(first.edges) == set(simulate.random_dag(12, kind, edges_per_node=2, random_seed=3).edges)
    assert set(first.edges) != set(simulate.random_dag(12, kind, edges_per_node=2, random_seed=4).edges)
    assert list(simulate.random_dag(3, kind, edges_per_node=1, names=["a", "b", "c"]).nodes) == [
        "a",
        "b",
        "c",
    ]


@pytest.mark.parametrize(("given", "p"), [({"p": 0.2}, 0.2), ({"edges_per_node": 2}, 4 / 9), ({"p": 1}, 1.0)])
def test_er_edges_have_the_same_probability_both_ways(given, p):
    rng = np.random.default_rng(1)
    draws = [nx.to_numpy_array(simulate.random_dag(10, random_seed=rng, **given)) for _ in range(300)]
    found = sum(draws)
    pairs = 45 * 300
    assert abs(found.sum() - p * pairs) <= 4 * np.sqrt(pairs * p * (1 - p))
    # The order is random, so each ordered pair has probability p / 2.
    off = ~np.eye(10, dtype=bool)
    assert np.abs(found[off] / 300 - p / 2).max() < 5 * np.sqrt(p / 2 * (1 - p / 2) / 300)


def test_scale_free_graphs_have_the_edges_they_should_and_hubs():
    rng = np.random.default_rng(2)
    hubs = {"sf": [], "er": []}
    for _ in range(20):
        dag = simulate.random_dag(100, "sf", edges_per_node=2, random_seed=rng)
        assert dag.number_of_edges() == 2 * 100 - 3
        assert sorted(degree for _, degree in dag.out_degree) == [0, 1] + [2] * 98
        hubs["sf"].append(max(degree for _, degree in dag.degree))
        dag = simulate.random_dag(100, "er", edges_per_node=197 / 100, random_seed=rng)
        hubs["er"].append(max(degree for _, degree in dag.degree))
    # Hub degrees grow like the root of n (about 20 here), those of an ER graph like its logarithm.
    assert np.mean(hubs["sf"]) > 1.5 * np.mean(hubs["er"])
    assert min(hubs["sf"]) > 12


def test_scale_free_attachment_follows_degrees():
    # With one edge per node the third node finds degrees (1, 1), the fourth (2, 1, 1).
    rng = np.random.default_rng(3)
    degrees = []
    for _ in range(2000):
        tree = simulate.random_dag(4, "sf", edges_per_node=1, random_seed=rng)
        degrees.append(max(degree for _, degree in tree.degree))
    # A star (degree 3) comes when the fourth node joins the third's choice: probability 2 / 4.
    assert abs(np.mean(np.array(degrees) == 3) - 0.5) < 4 * np.sqrt(0.25 / 2000)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"n": 0, "p": 0.5}, "n must be a whole number, 1 or more; received 0"),
        ({"n": 5.0, "p": 0.5}, "n must be a whole number"),
        ({"n": 5}, "one of edges_per_node and p; received None and None"),
        ({"n": 5, "p": 0.5, "edges_per_node": 1}, "one of edges_per_node and p"),
        ({"n": 5, "p": 1.5}, "p must be a probability; received 1.5"),
        ({"n": 5, "edges_per_node": 3}, "5 nodes have 0 to 2 edges per node; received 3"),
        ({"n": 5, "p": 0.5, "kind": "ws"}, "'er' or 'sf'; received 'ws'"),
        ({"n": 5, "p": 0.5, "kind": "sf"}, "edges_per_node alone"),
        ({"n": 5, "edges_per_node": 1.5, "kind": "sf"}, "whole number from 1 to 4; received 1.5"),
        ({"n": 5, "edges_per_node": 5, "kind": "sf"}, "whole number from 1 to 4; received 5"),
        ({"n": 3, "p": 0.5, "names": ["a", "b", "a"]}, "3 different names"),
    ],
)
def test_bad_random_dags_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        simulate.random_dag(**given)


@pytest.mark.parametrize(
    ("noise", "mean", "variance"),
    [("gaussian", 0, 1), ("exponential", 1, 1), ("gumbel", np.euler_gamma, np.pi**2 / 6)],
)
def test_linear_data_have_the_weights_and_noise_they_say(noise, mean, variance):
    frame = simulate.linear(DIAMOND, 20_000, noise=noise, noise_scale=1.5, random_seed=1)
    assert list(frame.columns) == ["d", "b", "a", "c"]
    weights = pd.DataFrame(frame.attrs["weights"], index=frame.columns, columns=frame.columns)
    assert (weights.to_numpy() != 0).tolist() == (nx.to_numpy_array(DIAMOND) != 0).tolist()
    for child in DIAMOND:
        found, covariance, residual = regress(frame, DIAMOND, child)
        expected = [1.5 * mean, *weights.loc[list(DIAMOND.predecessors(child)), child]]
        assert (np.abs(found - expected) < 5 * np.sqrt(np.diag(covariance))).all()
        # Kurtosis up to 9 (exponential) makes the variance of a squared residual 8 times its square.
        assert abs(residual / (1.5**2 * variance) - 1) < 5 * np.sqrt(8 / 20_000)


def test_noise_shapes_differ():
    rng = np.random.default_rng(2)
    skews = []
    for noise in ("gaussian", "exponential", "gumbel"):
        x = simulate.linear(np.zeros((1, 1)), 20_000, noise=noise, random_seed=rng)["v1"]
        skews.append(((x - x.mean()) ** 3).mean() / x.std() ** 3)
    np.testing.assert_allclose(skews, [0, 2, 1.14], atol=0.25)


def test_weights_are_uniform_on_both_sides():
    full = np.triu(np.ones((60, 60)), 1)
    frame = simulate.linear(full, 1, weight_range=(0.01, 0.02), random_seed=1)
    weights = np.array(frame.attrs["weights"])[full == 1]
    assert np.abs(weights).min() >= 0.01 and np.abs(weights).max() <= 0.02
    assert abs((weights > 0).mean() - 0.5) < 4 * np.sqrt(0.25 / len(weights))
    assert abs(np.abs(weights).mean() - 0.015) < 4 * 0.01 / np.sqrt(12 * len(weights))


def test_weights_survive_joining_frames():
    frames = [simulate.linear(EDGE, 5, random_seed=1) for _ in range(2)]
    assert pd.concat(frames).attrs["weights"] == frames[0].attrs["weights"]


def test_fourier_without_curvature_is_linear():
    frame = simulate.fourier(DIAMOND, 5000, lam=0, random_seed=1)
    beta = pd.DataFrame(frame.attrs["weights"], index=frame.columns, columns=frame.columns)
    for child in DIAMOND:
        found, covariance, residual = regress(frame, DIAMOND, child)
        expected = [0, *beta.loc[list(DIAMOND.predecessors(child)), child]]
        assert (np.abs(found - expected) < 5 * np.sqrt(np.diag(covariance))).all()
        assert abs(residual - 1) < 5 * np.sqrt(2 / 5000)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_fourier_edges_are_series_whose_weights_sum_to_beta(seed):
    frame = simulate.fourier(EDGE, 40_000, lam=2.0, random_seed=seed)
    x, y = frame["x"].to_numpy(), frame["y"].to_numpy()
    waves = [wave(k * x) for k in range(1, 7) for wave in (np.sin, np.cos)]
    coefficients, covariance, residual = least_squares(np.column_stack([x, *waves]), y)
    beta = frame.attrs["weights"][0][1]
    ones = np.ones(13)
    assert 0.5 <= abs(beta) <= 2
    assert abs(coefficients.sum() - beta) < 5 * np.sqrt(ones @ covariance @ ones)
    assert abs(residual - 1) < 5 * np.sqrt(2 / 40_000)
    # All weights are positive, so every coefficient has the sign of beta.
    assert (coefficients * np.sign(beta) > -5 * np.sqrt(np.diag(covariance))).all()
    assert least_squares(x[:, None], y)[2] > 1.01


def test_every_fourier_edge_has_its_own_weights():
    frame = simulate.fourier(nx.DiGraph([("x", "y"), ("x", "z")]), 20_000, lam=2.0, random_seed=1)
    x = frame["x"].to_numpy()
    design = np.column_stack([x, *(wave(k * x) for k in range(1, 7) for wave in (np.sin, np.cos))])
    shapes, variances = [], []
    for place, child in enumerate(["y", "z"], start=1):
        coefficients, covariance, _ = least_squares(design, frame[child].to_numpy())
        beta = frame.attrs["weights"][0][place]
        shapes.append(coefficients / beta)
        variances.append(np.diag(covariance) / beta**2)
    assert (np.abs(shapes[0] - shapes[1]) / np.sqrt(variances[0] + variances[1])).max() > 6


def test_fourier_weights_follow_their_dirichlet():
    lam, draws = 2.0, 20_000
    weights = relations._fourier_weights(np.random.default_rng(1), (draws,), lam)
    concentrations = np.exp(-np.array([0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6]) / lam)
    total = concentrations.sum()
    mean = concentrations / total
    error = np.sqrt(mean * (1 - mean) / (total + 1) / draws)
    assert weights.shape == (draws, 13)
    np.testing.assert_allclose(weights.sum(axis=1), 1, rtol=1e-12)
    assert (np.abs(weights.mean(axis=0) - mean) < 4.5 * error).all()


@pytest.mark.parametrize("lam", [1e-3, 0.05, 0.3, 1, 100])
def test_fourier_data_are_finite_at_any_curvature(lam):
    dag = simulate.random_dag(10, edges_per_node=2, random_seed=1)
    frame = simulate.fourier(dag, 200, lam=lam, random_seed=1)
    assert np.isfinite(frame).all(axis=None)


def test_fourier_basis_has_the_order_of_the_weights():
    x = np.array([[0.3, -1.2]])
    basis = relations._fourier_basis(x)
    expected = [0.3] + [wave(k * 0.3) for k in range(1, 7) for wave in (np.sin, np.cos)]
    np.testing.assert_allclose(basis[0, 0], expected)


def test_mlp_noise_is_standard_normal_about_a_smooth_function():
    frame = simulate.mlp(EDGE, 20_000, random_seed=2).sort_values("x")
    x, y = frame["x"].to_numpy(), frame["y"].to_numpy()
    assert abs(x.var() - 1) < 5 * np.sqrt(2 / 20_000)
    # Neighbours in x share the function's value, so their differences are noise of variance two.
    steps = np.diff(y)[500:-500:2]
    assert abs((steps**2).mean() / 2 - 1) < 5 * np.sqrt(2 / len(steps)) + 0.01
    assert y.var() > 1.2


def test_mlp_is_the_network_it_says():
    frame = simulate.mlp(np.array([[0, 0, 1], [0, 0, 1], [0, 0, 0]]), 30_000, hidden=1, random_seed=3)
    values = frame.to_numpy()
    assert list(frame.columns) == ["v1", "v2", "v3"]
    # One sigmoid of a linear form, then one weight: fit those three numbers and look at what is left.
    from scipy.optimize import least_squares as fit

    def residuals(theta):
        return values[:, 2] - theta[2] / (1 + np.exp(-values[:, :2] @ theta[:2]))

    fits = [fit(residuals, [a, b, c]) for a in (-1, 1) for b in (-1, 1) for c in (-1, 1)]
    best = min(fits, key=lambda found: found.cost)
    errors = 5 * np.sqrt(np.diag(np.linalg.inv(best.jac.T @ best.jac)))
    assert ((np.abs(best.x) > 0.5 - errors) & (np.abs(best.x) < 2 + errors)).all()
    assert abs(2 * best.cost / 30_000 - 1) < 5 * np.sqrt(2 / 30_000)


@pytest.mark.parametrize(
    "draw",
    [
        lambda dag, seed: simulate.linear(dag, 20, random_seed=seed),
        lambda dag, seed: simulate.fourier(dag, 20, lam=1, random_seed=seed),
        lambda dag, seed: simulate.mlp(dag, 20, hidden=5, random_seed=seed),
    ],
)
def test_the_same_seed_gives_the_same_data(draw):
    pd.testing.assert_frame_equal(draw(DIAMOND, 7), draw(DIAMOND, 7))
    assert not np.allclose(draw(DIAMOND, 7), draw(DIAMOND, 8))
    # The order in which edges were added says nothing.
    rebuilt = graphs.to_networkx(nx.to_numpy_array(DIAMOND), list(DIAMOND))
    np.testing.assert_array_equal(draw(rebuilt, 7), draw(DIAMOND, 7))
    with pytest.raises(ValueError, match="acyclic; it contains a -> b -> a"):
        draw(nx.DiGraph([("a", "b"), ("b", "a")]), 7)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate.linear(EDGE, 0), "n_rows must be a whole number, 1 or more; received 0"),
        (lambda: simulate.linear(EDGE, 5, noise="cauchy"), "noise must be one of .*; received 'cauchy'"),
        (lambda: simulate.linear(EDGE, 5, noise_scale=0), "noise_scale must be positive"),
        (lambda: simulate.linear(EDGE, 5, weight_range=(2, 1)), "weight_range must be"),
        (lambda: simulate.fourier(EDGE, 5, lam=-1), "lam must be finite and not negative; received -1"),
        (lambda: simulate.fourier(EDGE, 5, lam=np.nan), "lam must be finite"),
        (lambda: simulate.mlp(EDGE, 5, hidden=0), "hidden must be a whole number, 1 or more"),
    ],
)
def test_bad_simulations_are_refused(call, message):
    with pytest.raises(ValueError, match=message):
        call()

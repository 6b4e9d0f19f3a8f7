"""PyMC models of whole networks: their log density against the scores', what pm.do does, and what is refused."""

import itertools

import networkx as nx
import numpy as np
import pandas as pd
import pytest
from scipy import stats

import gpn_bayes as gpn
from gpn_bayes import scores
from gpn_bayes.scores.gp.dense import DensePosterior

EDGES = [("raf", "mek"), ("raf", "erk"), ("mek", "erk"), ("pka", "erk")]
TOLERANCE = 1e-8
ROWS = 60


@pytest.fixture(scope="module")
def pm():
    import pymc

    return pymc


@pytest.fixture(scope="module")
def table():
    """Columns in an order that isn't causal, in units far from standard ones."""
    cells = gpn.datasets.sachs(transform="log2")[["erk", "raf", "pka", "mek"]].iloc[:ROWS]
    return 7.0 * cells + 100.0


@pytest.fixture(scope="module")
def linear(table):
    return gpn.pymc_network(table, EDGES, score="bge")


def parents_in(names):
    return {name: [p for p in names if (p, name) in EDGES] for name in names}


def log_units(table):
    """Return by how much the log density of standardised columns is higher than that of the columns as they are."""
    return len(table) * np.log(table.std(ddof=1)).sum()


def log_density(model):
    """Return the log density of the model's variables as a function of their own values."""
    return model.compile_logp(mode="FAST_COMPILE", jacobian=False)


def log_normal_inverse_gamma(line, sigma2, intercept, coefficient):
    """Return the log density of an equation's parameters by scipy."""
    level = line.level - coefficient @ line.centre
    value = stats.invgamma.logpdf(sigma2, line.df / 2, scale=line.residual / 2)
    value += stats.norm.logpdf(intercept, level, np.sqrt(sigma2 / line.rows))
    if len(coefficient):
        value += stats.multivariate_normal.logpdf(coefficient, line.mean, sigma2 * line.spread)
    return value


@pytest.mark.parametrize("score", [scores.BGe(), scores.BGe(alpha_mu=0.3, alpha_w=9.0, t0=0.8)], ids=["default", "set"])
def test_likelihood_times_prior_over_posterior_is_the_bge_score(table, score):
    """At any parameters: so the priors are those that the score integrates over."""
    scorer, rng = score.bind(table), np.random.default_rng(1)
    logp = log_density(gpn.pymc_network(table, EDGES, score=score))
    for _ in range(3):
        point, posterior = {}, 0.0
        for name, parents in parents_in(table.columns).items():
            sigma2, intercept = rng.uniform(0.2, 2.0), rng.normal()
            coefficient = rng.normal(size=len(parents))
            point |= {f"{name}::sigma2_log__": np.array(np.log(sigma2)), f"{name}::intercept": np.array(intercept)}
            if parents:
                point[f"{name}::coefficient"] = coefficient
            line = scorer.equation(scorer.index(name), tuple(scorer.index(p) for p in parents))
            posterior += log_normal_inverse_gamma(line, sigma2, intercept, coefficient)
        total = scorer.total(nx.DiGraph(EDGES)) - log_units(table)
        assert float(logp(point)) - posterior == pytest.approx(total, rel=0, abs=TOLERANCE)


def gp_log_posterior(values, node, parents, phi, score):
    mean, sd = score.priors.mu
    priors = score.priors.for_parents(len(parents), score.kernel)
    posterior = DensePosterior(values[:, node] - mean, values[:, parents], priors, score.kernel, sd)
    return posterior.log_density(phi)


@pytest.mark.more("samples by PyMC")
@pytest.mark.parametrize(
    "settings", [{}, {"kernel": "interaction"}, {"sigma": (3, 2), "theta": (4, 5), "mu": (0.2, 2.0)}], ids=str
)
def test_functions_integrated_out_leave_the_score_s_log_density(table, settings):
    score, rng = scores.GP(**settings), np.random.default_rng(2)
    model = gpn.pymc_network(table, EDGES, score=score, functions="marginal")
    # In the logarithms of the hyperparameters, as the package has them.
    logp = model.compile_logp(mode="FAST_COMPILE")
    names = list(table.columns)
    values = ((table - table.mean()) / table.std(ddof=1)).to_numpy()
    for _ in range(3):
        point, ours = {}, -log_units(table)
        for name, parents in parents_in(names).items():
            taus = 2 if score.kernel == "interaction" and len(parents) > 1 else 0
            phi = np.log(np.concatenate([rng.uniform(0.3, 2.0, 1), rng.uniform(0.3, 5.0, len(parents) + taus)]))
            point[f"{name}::sigma_log__"] = np.array(phi[0])
            if parents:
                point[f"{name}::theta_log__"] = phi[1 : len(parents) + 1]
            for k in range(taus):
                point[f"{name}::tau{k + 1}_log__"] = np.array(phi[len(parents) + 1 + k])
            ours += gp_log_posterior(values, names.index(name), [names.index(p) for p in parents], phi, score)
        assert float(logp(point)) == pytest.approx(ours, rel=0, abs=TOLERANCE)


def test_priors_from_pymc_are_those_of_the_score(pm, table):
    score = scores.GP(theta=pm.LogNormal.dist(0.5, 0.75))
    for functions in ("drawn", "marginal"):
        model = gpn.pymc_network(table, EDGES, score=score, functions=functions)
        assert model["erk::theta"].owner.op.name == "lognormal"


@pytest.fixture(scope="module")
def wave():
    rng = np.random.default_rng(3)
    x = rng.uniform(-3, 3, size=150)
    return pd.DataFrame({"y": 5 * np.sin(x) + 0.5 * rng.normal(size=150), "x": 10 * x + 50})


@pytest.fixture(scope="module")
def curved(wave):
    return gpn.pymc_network(wave, [("x", "y")], score="gp")


def at_hyperparameters(coordinates, sigma, theta):
    """Return a point of the model of a wave; of its weights in the sampler's coordinates."""
    y = {"y::sigma_log__": np.log(sigma), "y::theta_log__": np.log([theta]), "y::weights_whitened__": coordinates}
    return {"x::sigma_log__": np.array(0.0), "x::mean": np.array(0.0)} | y


@pytest.mark.more("samples by PyMC")
@pytest.mark.parametrize(("theta", "gap"), [(0.1, None), (0.4, 0.1), (1.0, 0.001), (8.0, 0.1)])
def test_drawn_functions_have_the_score_s_likelihood_on_average(wave, curved, theta, gap):
    """In the sampler's coordinates, weights are standard normal given the rows, and the rest is the likelihood."""
    sigma, rng, size = 0.3, np.random.default_rng(4), len(curved.coords["y::weight"])
    logp = curved.compile_logp(vars=[curved["y"], curved["y::weights"]], mode="FAST_COMPILE")
    drawn = rng.normal(size=(5, size))
    found = np.array([float(logp(at_hyperparameters(v, sigma, theta))) - stats.norm.logpdf(v).sum() for v in drawn])
    assert np.ptp(found) < 1e-5
    y, x = ((wave - wave.mean()) / wave.std(ddof=1)).to_numpy().T
    covariance = np.exp(-0.5 * (np.subtract.outer(x, x) / theta) ** 2) + 1 + sigma**2 * np.eye(len(y))
    ours = stats.multivariate_normal.logpdf(y, np.zeros(len(y)), covariance) - len(y) * np.log(wave["y"].std(ddof=1))
    # Functions of length scales that are short beside the distance of points are smoother than the process.
    if gap is not None:
        assert found[0] == pytest.approx(ours, abs=gap)


@pytest.mark.more("samples by PyMC")
def test_setting_a_cause_moves_a_curve_s_outcome(pm, wave, curved):
    """Weights given the rows and near hyperparameters, then pm.do: the outcome is that of the true curve."""
    rng = np.random.default_rng(5)
    names = [variable.name for variable in curved.unobserved_value_vars]
    values_of = curved.compile_fn(curved.unobserved_value_vars, mode="FAST_COMPILE")
    size = len(curved.coords["y::weight"])
    points = [values_of(at_hyperparameters(rng.normal(size=size), 0.13, 1.0)) for _ in range(100)]
    drawn = {name: np.array([point[k] for point in points])[None] for k, name in enumerate(names)}
    trace = as_trace(curved, {name: drawn[name] for name in (v.name for v in curved.free_RVs)})
    for cause in (30.0, 50.0, 66.0):
        done = pm.do(curved, {"x": np.full(len(wave), cause)})
        mean = predicted(pm, done, trace, ["y"])["y"].mean("row")
        assert float(mean.mean()) == pytest.approx(5 * np.sin((cause - 50) / 10), abs=4 * float(mean.std()))
        assert float(mean.std()) < 0.3


def as_trace(model, posterior):
    """Return draws as PyMC itself returns them, with the coordinates of the model."""
    import arviz as az

    dims = {name: list(model.named_vars_to_dims.get(name, ())) for name in posterior}
    coords = {dim: list(model.coords[dim]) for own in dims.values() for dim in own}
    return az.from_dict({"posterior": posterior}, dims=dims, coords=coords)


def predicted(pm, model, trace, names):
    found = pm.sample_posterior_predictive(
        trace, model=model, var_names=names, predictions=True, progressbar=False, random_seed=1,
        compile_kwargs={"mode": "FAST_COMPILE"},
    )  # fmt: skip
    return found["predictions"]


@pytest.fixture(scope="module")
def drawn_lines(table):
    """Parameters of all equations given the rows, drawn by the package, as PyMC would have sampled them."""
    scorer, rng, posterior = scores.BGe().bind(table), np.random.default_rng(6), {}
    for name, parents in parents_in(table.columns).items():
        line = scorer.equation(scorer.index(name), tuple(scorer.index(p) for p in parents))
        drawn = line.draw(400, rng)
        posterior |= {f"{name}::sigma2": drawn.sigma[None] ** 2, f"{name}::intercept": drawn.intercept[None]}
        if parents:
            posterior[f"{name}::coefficient"] = drawn.coefficients[None]
    return posterior


@pytest.mark.more("samples by PyMC")
def test_setting_a_cause_moves_all_that_follows_in_units_of_the_table(pm, table, linear, drawn_lines):
    trace = as_trace(linear, drawn_lines)
    low, high = (
        predicted(pm, pm.do(linear, {"raf": np.full(ROWS, value)}), trace, ["mek", "erk", "pka"])
        for value in (120.0, 150.0)
    )
    units = table.std(ddof=1)
    to_mek = drawn_lines["mek::coefficient"][0, :, 0] * units["mek"] / units["raf"]
    from_raf, _, from_mek = (
        drawn_lines["erk::coefficient"][0] * units["erk"] / units[["raf", "pka", "mek"]].to_numpy()
    ).T
    total = from_raf + from_mek * to_mek
    for name, slope in (("mek", to_mek), ("erk", total), ("pka", np.zeros(400))):
        change = ((high[name] - low[name]).mean("row") / 30).to_numpy()[0]
        # Both have the same seed, and so the same noise.
        assert change == pytest.approx(slope, abs=1e-9)


@pytest.mark.more("samples by PyMC")
def test_without_intervention_rows_are_drawn_as_they_were_observed(pm, table, linear, drawn_lines):
    found = predicted(pm, linear, as_trace(linear, drawn_lines), list(table.columns))
    for name in table:
        assert float(found[name].mean()) == pytest.approx(table[name].mean(), abs=0.5 * table[name].std())
        assert float(found[name].std()) == pytest.approx(table[name].std(), rel=0.25)


@pytest.mark.more("samples by PyMC")
def test_other_rows_can_be_observed(pm, table, linear):
    """By pm.observe, and by pm.set_data where their number differs: as in a model that was built around them."""
    few = (table[::-1] + 1.0)[:20]
    point = linear.initial_point()
    model = gpn.pymc_network(table, EDGES, score="bge")
    with model:
        pm.set_data({f"{name}::data": few[name].to_numpy() for name in few}, coords={"row": np.arange(20)})
    twice = pd.concat([few] * 3)
    whole = pm.observe(linear, {name: twice[name].to_numpy() for name in twice})
    alone = {name: float(log_density(m)(point)) for name, m in (("few", model), ("whole", whole))}
    prior = float(linear.compile_logp(vars=linear.free_RVs, mode="FAST_COMPILE", jacobian=False)(point))
    assert alone["whole"] - prior == pytest.approx(3 * (alone["few"] - prior))


@pytest.mark.more("samples by PyMC")
def test_the_prior_draws_whole_tables(pm, curved):
    drawn = pm.sample_prior_predictive(50, model=curved, random_seed=1, compile_kwargs={"mode": "FAST_COMPILE"})
    weights = drawn["prior"]["y::weights"].to_numpy()
    assert weights.std() == pytest.approx(1.0, abs=4 / np.sqrt(2 * weights.size))


def test_slopes_and_noise_are_in_units_of_the_table(table, linear):
    point = linear.initial_point() | {"erk::coefficient": np.array([1.0, 2.0, 3.0]), "erk::sigma2_log__": np.log(4.0)}
    wanted = ["erk::slope", "erk::noise"]
    outputs = [v for v in linear.unobserved_value_vars if v.name in wanted]
    values_of = linear.compile_fn(outputs, inputs=linear.value_vars, mode="FAST_COMPILE", on_unused_input="ignore")
    found = dict(zip((v.name for v in outputs), values_of(point), strict=True))
    units = table.std(ddof=1)
    assert linear.coords["erk::parent"] == ("raf", "pka", "mek")
    assert found["erk::slope"] == pytest.approx(np.array([1, 2, 3]) * units["erk"] / units[["raf", "pka", "mek"]])
    assert found["erk::noise"] == pytest.approx(2 * units["erk"])


# Categories


@pytest.fixture(scope="module")
def weather():
    rng = np.random.default_rng(7)
    rain = rng.integers(0, 2, 80)
    wet = np.where(rng.random(80) < 0.9, rain, 1 - rain)
    table = pd.DataFrame({"wet": wet * 2, "rain": np.array(["no", "yes"])[rain], "shoes": rng.integers(0, 3, 80)})
    return table


@pytest.mark.parametrize("score", [scores.BDeu(ess=3), scores.K2(), scores.BDeu(cardinalities={"shoes": 4})], ids=repr)
def test_likelihood_times_prior_over_posterior_is_the_score_of_categories(weather, score):
    edges, rng = [("rain", "wet"), ("shoes", "wet")], np.random.default_rng(8)
    scorer, model = score.bind(weather), gpn.pymc_network(weather, edges, score=score)
    tables, posterior = {}, 0.0
    for name, parents in (("rain", ()), ("shoes", ()), ("wet", ("rain", "shoes"))):
        own = scorer.equation(scorer.index(name), tuple(scorer.index(p) for p in parents)).concentrations
        table = rng.dirichlet(np.ones(own.shape[-1]), size=own.shape[:-1])
        tables[f"{name}::probability"] = table
        for cell in itertools.product(*map(range, own.shape[:-1])):
            posterior += stats.dirichlet.logpdf(table[cell], own[cell])
    point = {}
    for variable in model.free_RVs:
        transform = model.rvs_to_transforms[variable]
        value = transform.forward(tables[variable.name], *variable.owner.inputs).eval(mode="FAST_COMPILE")
        point[model.rvs_to_values[variable].name] = value
    found = float(log_density(model)(point)) - posterior
    assert found == pytest.approx(scorer.total(nx.DiGraph(edges)), rel=0, abs=TOLERANCE)
    assert model.coords["wet::level"] == (0, 2) and model.coords["rain::level"] == ("no", "yes")


@pytest.mark.more("samples by PyMC")
def test_setting_a_category_moves_what_follows(pm, weather):
    model = gpn.pymc_network(weather, [("rain", "wet")], score="k2")
    rng = np.random.default_rng(9)
    scorer = scores.K2().bind(weather)
    drawn = {
        "wet::probability": scorer.equation(0, (1,)).draw(200, rng).probabilities[None],
        "rain::probability": scorer.equation(1, ()).draw(200, rng).probabilities[None],
        "shoes::probability": scorer.equation(2, ()).draw(200, rng).probabilities[None],
    }
    for code, share in ((0, 0.1), (1, 0.9)):
        done = pm.do(model, {"rain": np.full(len(weather), code)})
        assert float(predicted(pm, done, as_trace(model, drawn), ["wet"])["wet"].mean()) == pytest.approx(
            share, abs=0.1
        )


# Graphs and posteriors


def test_a_graph_may_come_in_any_form(table):
    names = list(table.columns)
    frame = pd.DataFrame(0, names, names)
    for parent, child in EDGES:
        frame.loc[parent, child] = 1
    fitted = gpn.estimators.HillClimbing(score="bge").fit(table)
    for graph in (nx.DiGraph(EDGES), frame, frame.to_numpy(), EDGES):
        assert gpn.pymc_network(table, graph, score="bge").coords["erk::parent"] == ("raf", "pka", "mek")
    model = gpn.pymc_network(table, fitted, score="bge")
    found = {(parent, name) for name in names for parent in model.coords.get(f"{name}::parent", ())}
    assert found == set(fitted.graph_.edges)


def test_the_most_probable_dags_have_their_weights(table):
    table = table[["raf", "mek", "erk"]]
    post = gpn.sample(table, score=scores.BGe(alpha_mu=0.5), draws=50, random_seed=1, progressbar=False)
    rng = np.random.default_rng(1)
    post.log_weights = rng.normal(size=post.log_score.shape)
    found = gpn.pymc_networks(post, k=3)
    weights = np.exp(post.log_weights).ravel()
    edges = [frozenset(graph.edges) for graph in post.graphs()]
    shares = {one: weights[[own == one for own in edges]].sum() / weights.sum() for one in set(edges)}
    assert [one.weight for one in found] == pytest.approx(sorted(shares.values(), reverse=True)[:3])
    for model, weight, graph in found:
        assert weight == pytest.approx(shares[frozenset(graph.edges)])
        point = model.initial_point()
        expected = log_density(gpn.pymc_network(table, graph, score=scores.BGe(alpha_mu=0.5)))
        assert float(log_density(model)(point)) == pytest.approx(float(expected(point)))
    assert len(gpn.pymc_networks(post, k=10_000)) == len(shares)


# What is refused


def test_mistakes_are_told_in_one_line(table, weather):
    def refusal(*arguments, **settings):
        with pytest.raises(ValueError) as caught:
            gpn.pymc_network(*arguments, **settings)
        assert "\n" not in str(caught.value)
        return str(caught.value)

    assert refusal(table, [*EDGES, ("erk", "raf")]).startswith("the graph must be acyclic; it contains ")
    assert refusal(table, [("raf", "meck")]) == (
        "every node must be one of the variables; 'meck' is not: did you mean 'mek'?"
    )
    needed = "a PyMC network needs the method `pymc_node`, which bic doesn't have"
    assert refusal(table, EDGES, score="bic") == needed
    assert refusal(weather, [], score="bic") == needed
    assert refusal(table, EDGES, score="ridge").startswith("score must be a Score or one of bge, gp, ")
    assert refusal(table, EDGES, functions="drawing") == (
        "functions must be one of drawn, marginal; received 'drawing': did you mean 'drawn'?"
    )
    assert refusal(table, EDGES, score=scores.GP(kernel="interaction")) == (
        'the interaction kernel needs functions="marginal"; received functions="drawn"'
    )
    statistics = gpn.SufficientStatistics.of(gpn.Dataset.read(table))
    assert refusal(statistics, EDGES) == "a PyMC network needs the rows; received SufficientStatistics"
    changed = gpn.Dataset.read(table.assign(target=["", "raf"] * (ROWS // 2)), targets="target")
    assert refusal(changed, EDGES).startswith("a PyMC network takes rows that were only observed; ")
    for name in ("row", "draw", "a/b", "raf::mek", "mek_log__"):
        assert refusal(table.rename(columns={"mek": name}), []) == (
            "columns of a PyMC network can't be named 'row', 'chain', 'draw', hold '::' or '/' or end in '__'; "
            f"rename {name!r}"
        )


def test_k_must_be_a_number(table):
    post = gpn.sample(table, score="bge", draws=10, random_seed=1, progressbar=False)
    with pytest.raises(ValueError, match="^k must be a whole number, 1 or more; received 0$"):
        gpn.pymc_networks(post, k=0)
    post.scorer.data = None
    with pytest.raises(ValueError, match="^PyMC networks need the data, and this posterior was saved without them; "):
        gpn.pymc_networks(post)


@pytest.mark.more("samples by PyMC")
def test_names_may_hold_anything_else(pm, table):
    odd = dict(zip(table.columns, ["a 'quoted' \"name\"", "<b>", "größe", "x y"], strict=True))
    renamed = table.rename(columns=odd)
    edges = [(odd[parent], odd[child]) for parent, child in EDGES]
    model = gpn.pymc_network(renamed, edges, score="bge")
    prior = pm.sample_prior_predictive(3, model=model, random_seed=1, compile_kwargs={"mode": "FAST_COMPILE"})
    assert set(odd.values()) <= set(prior["prior_predictive"])


# Sampling, which compiles for a minute or more


def sampled(pm, model):
    return pm.sample(
        model=model, nuts_sampler="nutpie", draws=500, tune=500, chains=4, progressbar=False, random_seed=1
    )


@pytest.mark.slow
def test_nutpie_samples_the_best_network_of_the_proteins(pm):
    """All parameters against their exact posterior, in standard errors of the mean."""
    cells = gpn.datasets.sachs(transform="log2")
    post = gpn.sample(cells, score="bge", draws=200, random_seed=1, progressbar=False)
    best, scorer = post.map(), scores.BGe().bind(cells)
    trace = sampled(pm, gpn.pymc_network(cells, best, score="bge"))
    assert int(trace["sample_stats"]["diverging"].sum()) == 0
    worst = 0.0
    for name in cells:
        parents = [p for p in cells if best.has_edge(p, name)]
        line = scorer.equation(scorer.index(name), tuple(scorer.index(p) for p in parents))
        for parent, mean, scale in zip(parents, line.mean, line.scale, strict=True):
            own = trace["posterior"][f"{name}::coefficient"].sel({f"{name}::parent": parent})
            worst = max(worst, abs(float(own.mean()) - mean) / scale)
            assert float(own.std()) == pytest.approx(scale, rel=0.15)
    assert worst < 4 / np.sqrt(400)


@pytest.mark.slow
def test_nutpie_samples_drawn_functions_without_divergences(pm):
    """And their hyperparameters are those of functions that are integrated out."""
    cells = gpn.datasets.sachs(transform="log2")[["raf", "mek", "pka"]].iloc[:100]
    edges = [("pka", "raf"), ("raf", "mek")]
    traces = {
        functions: sampled(pm, gpn.pymc_network(cells, edges, functions=functions))
        for functions in ("drawn", "marginal")
    }
    for trace in traces.values():
        assert int(trace["sample_stats"]["diverging"].sum()) == 0
    for name in ("raf::sigma", "mek::sigma", "mek::theta"):
        drawn, marginal = (np.log(trace["posterior"][name].to_numpy()).ravel() for trace in traces.values())
        assert drawn.mean() == pytest.approx(marginal.mean(), abs=4 * marginal.std() / np.sqrt(200))

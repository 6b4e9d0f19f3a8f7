"""Missing values drawn along with the DAGs: sums and integrals over all completions, and independent code."""

import time
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln, logsumexp

import gpn_bayes as gpn
from gpn_bayes import Dataset, graphs
from gpn_bayes.posterior.estimate import Moments, with_spread_between
from gpn_bayes.sampling.missing_values.imputing_chains import imputing_chains
from gpn_bayes.sampling.options import RunOptions
from gpn_bayes.sampling.preparing import prepare
from gpn_bayes.sampling.tables import Tabulator
from gpn_bayes.scores import CG, K2, BDeu, BGe, ScoreCache
from gpn_bayes.scores.discrete import distinct_rows

pytestmark = pytest.mark.more("repeats whole runs for every score and setting")

REFERENCE = Path(__file__).parent / "reference" / "mixed"
QUIET = {"missing": "impute", "progressbar": False}


def all_dags(n):
    """Return all DAGs of n nodes."""
    pairs = [(i, j) for i in range(n) for j in range(n) if i != j]
    bits = np.array(list(product([0, 1], repeat=len(pairs))), dtype=np.int8)
    stack = np.zeros((len(bits), n, n), dtype=np.int8)
    for k, (i, j) in enumerate(pairs):
        stack[:, i, j] = bits[:, k]
    return stack[graphs.is_acyclic(stack)]


def edge_probabilities(log_local, n):
    """Return exact edge probabilities; log_local[node][parents] are log likelihoods over completions, with weights."""
    dags = all_dags(n)
    totals = []
    for dag in dags:
        terms = sum(log_local[i][tuple(np.flatnonzero(dag[:, i]).tolist())] for i in range(n))
        totals.append(logsumexp(terms))
    weights = np.exp(np.array(totals) - max(totals))
    return np.einsum("d,dij->ij", weights / weights.sum(), dags)


def parent_sets(node, n):
    others = [j for j in range(n) if j != node]
    return [
        tuple(j for j, chosen in zip(others, bits, strict=True) if chosen) for bits in product([0, 1], repeat=n - 1)
    ]


def assert_agree(post, exact, expected=True):
    """Compare the edges of a posterior with exact probabilities, by four of the posterior's own errors."""
    edges = post.summary()
    parent, child = ([post.names.index(name) for name in edges[end]] for end in ("parent", "child"))
    apart = np.abs(edges["probability"] - exact[parent, child])
    # The error of an edge that was never drawn, or always, isn't known.
    bound = np.where(edges["mcse"] > 0, 4 * edges["mcse"], 4 / edges["ess"])
    assert (apart <= bound).all() == expected, edges.assign(apart=apart, bound=bound)


# Categories: the sum over all completions


def bd_local(codes, levels, node, parents, k2=False):
    """Return the log marginal likelihood of a category, ess 1 or one row in each cell, by plain counting."""
    r, q = levels[node], int(np.prod([levels[p] for p in parents]))
    a = 1.0 if k2 else 1 / (r * q)
    total = 0.0
    for configuration in product(*(range(levels[p]) for p in parents)):
        rows = np.all(codes[:, list(parents)] == configuration, axis=1)
        counts = np.array([np.sum(codes[rows, node] == level) for level in range(r)])
        total += gammaln(r * a) - gammaln(r * a + counts.sum()) + (gammaln(a + counts) - gammaln(a)).sum()
    return total


def categories(rows=30, seed=3):
    rng = np.random.default_rng(seed)
    a = rng.choice(2, rows)
    b = np.where(rng.random(rows) < 0.85, a, 1 - a)
    c = np.where(rng.random(rows) < 0.75, b, rng.choice(3, rows))
    codes = np.column_stack([a, b, c]).astype(float)
    for row, column in [(0, 0), (1, 0), (2, 1), (3, 1), (3, 0), (4, 2), (5, 2), (6, 1)]:
        codes[row, column] = np.nan
    return codes, (2, 2, 3)


@pytest.mark.parametrize("score", [BDeu(), K2()])
def test_categories_sum_over_all_completions(score):
    codes, levels = categories()
    gaps = np.argwhere(np.isnan(codes))
    local = [{parents: [] for parents in parent_sets(i, 3)} for i in range(3)]
    for filled in product(*(range(levels[column]) for _, column in gaps)):
        table = codes.copy()
        table[tuple(gaps.T)] = filled
        for i in range(3):
            for parents, values in local[i].items():
                values.append(bd_local(table, levels, i, parents, isinstance(score, K2)))
    exact = edge_probabilities([{p: np.array(v) for p, v in own.items()} for own in local], 3)
    names = np.array(["no", "yes"]), np.array(["f", "m"]), np.array(["low", "mid", "high"])
    texts = {
        name: [None if np.isnan(code) else known[int(code)] for code in column]
        for name, known, column in zip("abc", names, codes.T, strict=True)
    }
    # In a fixed order of the levels, so that they are those of the reference.
    table = pd.DataFrame(
        {name: pd.Categorical(column, known) for (name, column), known in zip(texts.items(), names, strict=True)}
    )
    post = gpn.sample(table, score, draws=1000, tune=100, random_seed=1, **QUIET)
    assert_agree(post, exact)
    # A negative control: the most frequent level in every gap.
    mode = table.apply(lambda column: column.fillna(column.mode()[0]))
    assert_agree(post, gpn.sample(mode, score, draws=50, progressbar=False).edge_probabilities().to_numpy(), False)
    for completed in post.imputed(3):
        assert completed.notna().all().all() and (completed[table.notna()] == table[table.notna()]).sum().sum() == 82
        assert [list(column.cat.categories) for _, column in completed.items()] == [list(own) for own in names]


# Numbers: integrals over the missing entries


def normal_local(moments, node, parents, prior_rows, prior_df, squares):
    """Return the log marginal likelihood of a number given others, from the sizes and moments of tables of rows.

    The ratio of two multivariate marginal likelihoods: Geiger & Heckerman (2002), corrected by Kuipers et al. (2014).
    """
    n, mean, scatter = moments
    family = [*parents, node]

    def log_joint(chosen):
        size = len(chosen)
        if not size:
            return 0.0
        a = prior_df + size - 1  # of the joint distribution of these
        matrix = scatter[..., chosen, :][..., chosen] + squares * np.eye(size)
        m = mean[..., chosen]
        matrix = matrix + (n * prior_rows / (n + prior_rows)) * m[..., :, None] * m[..., None, :]
        gammas = sum(gammaln((a + n - k) / 2) - gammaln((a - k) / 2) for k in range(size))
        return (
            -0.5 * n * size * np.log(np.pi) + 0.5 * size * np.log(prior_rows / (n + prior_rows)) + gammas
            + 0.5 * a * size * np.log(squares) - 0.5 * (a + n) * np.linalg.slogdet(matrix)[1]
        )  # fmt: skip

    return log_joint(family) - log_joint(list(parents))


def moments_of(tables):
    """Return the size, means and scatter of a stack of tables (table, row, column)."""
    mean = tables.mean(axis=1)
    apart = tables - mean[:, None]
    return tables.shape[1], mean, np.einsum("tra,trb->tab", apart, apart)


def numbers(rows=25, seed=5):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, 3))
    x[:, 1] += 0.8 * x[:, 0]
    x[:, 2] += 0.6 * x[:, 1]
    return x * [1.0, 5.0, 0.1] + [3.0, 0.0, -1.0]


def test_bge_integrates_over_the_missing_entries():
    table = numbers()
    table[[0, 1], [1, 2]] = np.nan
    # An outlying neighbour, so that a guess at the mean would be a bad one.
    table[0, 2] += 0.3
    observed = (table - np.nanmean(table, axis=0)) / np.nanstd(table, axis=0, ddof=1)
    grid = np.linspace(-9, 9, 181)
    tables = np.tile(observed, (len(grid) ** 2, 1, 1))
    tables[:, 0, 1], tables[:, 1, 2] = (axis.ravel() for axis in np.meshgrid(grid, grid))
    moments = moments_of(tables)
    local = [{p: normal_local(moments, i, list(p), 1.0, 3.0, 0.5) for p in parent_sets(i, 3)} for i in range(3)]
    exact = edge_probabilities(local, 3)
    # The reference itself: on a complete table it is BGe.
    complete = numbers()
    own = moments_of(((complete - complete.mean(axis=0)) / complete.std(axis=0, ddof=1))[None])
    assert normal_local(own, 1, [0, 2], 1.0, 3.0, 0.5)[0] == pytest.approx(BGe().bind(complete).local(1, [0, 2]))
    post = gpn.sample(table, "bge", draws=1000, tune=100, random_seed=1, **QUIET)
    assert_agree(post, exact)


def one_variance_local(tables, groups, node, parents):
    """Return the log marginal likelihood of a number in stacked tables: levels and slopes by group, one variance."""
    rows, nu = tables.shape[1], 1 / len(groups)
    own = np.column_stack(groups).astype(float)
    products = [own * tables[..., p, None] for p in parents]
    design = np.concatenate([np.broadcast_to(own, (len(tables), *own.shape)), *products], axis=-1)
    prior = np.repeat([nu, *[0.5 * nu] * len(parents)], len(groups))
    precision = np.swapaxes(design, 1, 2) @ design + np.diag(prior)
    y = tables[..., node]
    right = np.einsum("tra,tr->ta", design, y)
    squares = (
        0.5 + (y**2).sum(axis=1) - np.einsum("ta,ta->t", right, np.linalg.solve(precision, right[..., None])[..., 0])
    )
    df = 1 + len(parents)
    return (
        -0.5 * rows * np.log(np.pi) + gammaln((df + rows) / 2) - gammaln(df / 2) + 0.5 * df * np.log(0.5)
        + 0.5 * (np.log(prior).sum() - np.linalg.slogdet(precision)[1]) - 0.5 * (df + rows) * np.log(squares)
    )  # fmt: skip


@pytest.mark.parametrize("variances", ["each", "one"])
def test_cg_sums_and_integrates(variances):
    rng = np.random.default_rng(2)
    s = rng.choice(2, 40)
    x = 1.2 * s + rng.normal(size=40)
    y = np.where(s == 1, 1.0, -0.5) * x + rng.normal(size=40)
    gaps = [(0, 0), (1, 0), (2, 0), (3, 0)]
    frame = pd.DataFrame({"s": np.array(["f", "m"])[s], "x": 10 * x, "y": y})
    frame.loc[[0, 1, 2, 3], "s"] = None
    frame.loc[[3, 4], "x"] = np.nan, frame.loc[4, "x"]
    units = [(frame[c] - frame[c].mean()) / frame[c].std(ddof=0) for c in ("x", "y")]
    grid = np.linspace(-9, 9, 361)
    local = [{parents: [] for parents in parent_sets(i, 3)} for i in range(3)]
    for filled in product([0, 1], repeat=len(gaps)):
        codes = s.copy()
        codes[:4] = filled
        tables = np.tile(np.column_stack([codes, *units]), (len(grid), 1, 1))
        tables[:, 3, 1] = grid
        for i in range(3):
            for parents, values in local[i].items():
                if i == 0:
                    one = bd_local(codes[:, None], (2,), 0, ()) if not parents else -np.inf
                    values.append(np.full(len(grid), one))
                    continue
                groups = [codes == level for level in (0, 1)] if 0 in parents else [np.ones(40, bool)]
                nu = 1 / len(groups)
                others = [p - 1 for p in parents if p > 0]
                if variances == "one":
                    values.append(one_variance_local(tables, groups, i, [p for p in parents if p > 0]))
                    continue
                values.append(
                    sum(
                        normal_local(moments_of(tables[:, rows, 1:]), i - 1, others, nu, nu, 0.5 * nu)
                        for rows in groups
                    )
                )
    exact = edge_probabilities([{p: np.concatenate(v) for p, v in own.items()} for own in local], 3)
    post = gpn.sample(frame, CG(variances=variances), draws=1000, tune=100, random_seed=1, **QUIET)
    assert_agree(post, exact)
    # A negative control: the same table without the rows concerned.
    dropped = gpn.sample(frame, CG(variances=variances), missing="drop", draws=50, progressbar=False)
    assert_agree(post, dropped.edge_probabilities().to_numpy(), False)


# Independent code: a plain Gibbs sampler over all 543 DAGs of four nodes


def plain_gibbs(table, sweeps, seed):
    """Return the edge probabilities of every sweep, given its completed table, under BGe's default prior."""
    rng = np.random.default_rng(seed)
    n = table.shape[1]
    gaps = np.isnan(table)
    x = (table - np.nanmean(table, axis=0)) / np.nanstd(table, axis=0, ddof=1)
    x[gaps] = 0.0
    dags = all_dags(n)
    sets = [parent_sets(i, n) for i in range(n)]
    place = [{own: k for k, own in enumerate(known)} for known in sets]
    which = np.array([[place[i][tuple(np.flatnonzero(dag[:, i]).tolist())] for i in range(n)] for dag in dags])
    traces = []
    for _ in range(sweeps):
        moments = moments_of(x[None])
        local = [[float(normal_local(moments, i, list(p), 1.0, 3.0, 0.5)[0]) for p in sets[i]] for i in range(n)]
        totals = sum(np.array(local[i])[which[:, i]] for i in range(n))
        weights = np.exp(totals - totals.max())
        weights /= weights.sum()
        traces.append(np.einsum("d,dij->ij", weights, dags))
        dag = dags[rng.choice(len(dags), p=weights)]
        # The covariance of the DAG, from regressions with normal-inverse-gamma posteriors.
        rows, mean, scatter = len(x), x.mean(axis=0), moments[2][0]
        matrix = scatter + 0.5 * np.eye(n) + rows / (rows + 1) * np.outer(mean, mean)
        shrunk, b, variances, level = rows / (rows + 1) * mean, np.zeros((n, n)), np.empty(n), np.empty(n)
        for i in range(n):
            p = np.flatnonzero(dag[:, i])
            precision = matrix[np.ix_(p, p)]
            centre = np.linalg.solve(precision, matrix[p, i])
            squares = matrix[i, i] - matrix[i, p] @ centre
            variances[i] = squares / rng.chisquare(rows + 3 + len(p))
            b[p, i] = rng.multivariate_normal(centre, variances[i] * np.linalg.inv(precision)) if len(p) else []
            level[i] = rng.normal(shrunk[i] - b[p, i] @ shrunk[p], np.sqrt(variances[i] / (rows + 1)))
        inverse = np.linalg.inv(np.eye(n) - b)
        covariance = inverse.T @ np.diag(variances) @ inverse
        centre = level @ inverse
        for row, lacks in zip(x, gaps, strict=True):
            if lacks.any():
                known = covariance[np.ix_(lacks, ~lacks)] @ np.linalg.pinv(covariance[np.ix_(~lacks, ~lacks)])
                own = covariance[np.ix_(lacks, lacks)] - known @ covariance[np.ix_(~lacks, lacks)]
                row[lacks] = rng.multivariate_normal(centre[lacks] + known @ (row - centre)[~lacks], own)
    return np.array(traces)


@pytest.mark.slow
@pytest.mark.parametrize("share", [0.1, 0.4])
def test_bge_agrees_with_a_plain_gibbs_sampler(share):
    rng = np.random.default_rng(11)
    x = rng.normal(size=(45, 4))
    x[:, 1] += 0.9 * x[:, 0]
    x[:, 2] += 0.7 * x[:, 1]
    x[:, 3] += 0.5 * x[:, 0] - 0.5 * x[:, 2]
    table = np.where(rng.random(x.shape) < share, np.nan, x)
    traces = plain_gibbs(table, 12_000, 1)[500:]
    # Errors by the means of 23 stretches.
    means = traces.reshape(23, -1, 4, 4).mean(axis=1)
    exact, error = means.mean(axis=0), means.std(axis=0, ddof=1) / np.sqrt(len(means))
    post = gpn.sample(table, "bge", draws=4000, tune=500, random_seed=1, **QUIET)
    edges = post.summary()
    i, j = ([post.names.index(name) for name in edges[end]] for end in ("parent", "child"))
    apart = np.abs(edges["probability"] - exact[i, j]) / np.hypot(edges["mcse"], error[i, j])
    assert apart.max() < 4, edges.assign(exact=exact[i, j], apart=apart)
    # A negative control: means in the place of missing values.
    guessed = gpn.sample(
        np.where(np.isnan(table), np.nanmean(table, axis=0), table), "bge", draws=50, progressbar=False
    )
    wrong = np.abs(edges["probability"] - guessed.edge_probabilities().to_numpy()[i, j]) / edges["mcse"]
    assert wrong.max() > 4


def test_structural_em_finds_the_same_network():
    table = pd.read_csv(REFERENCE / "bnlearn_gaussian500_missing.csv.gz")
    # Noise is tiny beside the columns' variances, which the default t0 takes for that of parents that stand for others.
    post = gpn.sample(table, BGe(t0=0.01), draws=150, tune=50, random_seed=1, **QUIET)
    families = {"C": "AB", "D": "B", "F": "ADEG"}
    found = [(parent, child) for child, parents in families.items() for parent in parents]
    expected = graphs.cpdag(graphs.as_adjacency(found, post.names))
    assert np.array_equal(graphs.cpdag(graphs.as_adjacency(post.map(), post.names)), expected)


# The road after


@pytest.fixture(scope="module")
def mixed():
    rng = np.random.default_rng(4)
    s = rng.choice(2, 80)
    x = s + rng.normal(size=80)
    frame = pd.DataFrame(
        {"sex": np.array(["f", "m"])[s], "x": x, "visits": rng.poisson(20, 80), "y": 2 * x + rng.normal(size=80)}
    )
    return frame.mask(rng.random(frame.shape) < 0.1)


@pytest.fixture(scope="module")
def posterior(mixed):
    return gpn.sample(mixed, CG(), draws=60, tune=20, chains=2, random_seed=1, **QUIET)


@pytest.mark.parametrize("sampler", ["partition", "order"])
def test_draws_depend_on_the_seed_alone(mixed, sampler):
    settings = {"draws": 12, "tune": 5, "chains": 2, "sampler": sampler}
    first, second, other = (
        gpn.sample(mixed, CG(), cores=cores, random_seed=seed, **settings, **QUIET)
        for cores, seed in ((1, 1), (2, 1), (1, 2))
    )
    assert np.array_equal(first.parents, second.parents) and np.array_equal(first.completed, second.completed)
    assert np.array_equal(first.log_score, second.log_score)
    assert not np.array_equal(first.completed, other.completed)


def test_a_chain_goes_on_where_it_stopped(mixed):
    run = prepare(gpn.Table(mixed, missing="impute"), RunOptions(CG(), random_seed=1, draws=30))
    lists = [[j for j in range(4) if j != i and not run.prior.forbidden[j, i]] for i in range(4)]
    tables = Tabulator(ScoreCache(run.scorer), run.prior, None, False).tables(run.parent_space(lists))
    one, two = imputing_chains(run.imputation, run.plan, tables, run.prior, run.parent_space, 2)
    rng = np.random.default_rng(1)
    one.init(rng)
    one.step(rng, 13, 5, tuning=False)
    state, at = one.state(), rng.bit_generator.state
    whole = one.step(rng, 9, 5, tuning=False)
    two.restore(state)
    rng.bit_generator.state = at
    for mine, theirs in zip(whole, two.step(rng, 9, 5, tuning=False), strict=True):
        assert np.array_equal(mine, theirs)
    assert np.array_equal(one.info().completed, two.info().completed)
    damaged = state | {"entries": state["entries"] + 1e6}
    with pytest.raises(ValueError, match="damaged: the missing entries of a chain"):
        two.restore(damaged)


def test_completed_tables_are_as_the_table_is(mixed, posterior, tmp_path):
    posterior.save(tmp_path / "post.nc")
    again = gpn.load(tmp_path / "post.nc")
    for tables in (posterior.imputed(4), again.imputed(4)):
        assert len(tables) == 4
        for table in tables:
            assert list(table) == list(mixed) and not table.isna().any().any()
            for name, column in mixed.items():
                known = column.notna()
                assert (table[name][known].astype(column.dtype) == column[known]).all()
            assert set(table["sex"]) == {"f", "m"}
    every = posterior.imputed(10)
    assert all(few.equals(every[place]) for few, place in zip(posterior.imputed(4), (0, 2, 5, 7), strict=True))
    drawn = np.array([table["x"][mixed["x"].isna()] for table in every])
    assert (drawn.std(axis=0) > 0).all()
    with pytest.raises(ValueError, match="^this posterior kept 10 completed tables; received m=11$"):
        posterior.imputed(11)
    posterior.save(tmp_path / "bare.nc", data=False)
    with pytest.raises(ValueError, match="^completed tables need missing='impute' and the data; this posterior has "):
        gpn.load(tmp_path / "bare.nc").imputed()
    assert again.summary().equals(posterior.summary())


def test_the_network_drawn_most_often_has_the_average_of_its_scores(posterior):
    best = posterior.map()
    own = (posterior.adjacency == graphs.as_adjacency(best, posterior.names)).all(axis=(2, 3))
    *_, counts = np.unique(posterior.parents.reshape(-1, 4), axis=0, return_index=True, return_counts=True)
    assert own.sum() == counts.max() > 1
    assert best.graph["log_score"] == pytest.approx(posterior.log_score[own].mean())


def test_what_needs_one_complete_table_refuses(mixed, posterior):
    refusal = "^this needs a complete table, and .* of its values are missing; post.imputed.. gives completed tables: "
    asked = [
        lambda: posterior.effect("x", "y"),
        lambda: posterior.effects(),
        lambda: posterior.log_score_gap([("x", "y")]),
        lambda: posterior.log_predictive(mixed.dropna()),
        lambda: posterior.to_arviz(log_likelihood=True),
        lambda: posterior.plot_ppc(),
    ]
    for ask in asked:
        with pytest.raises(ValueError, match=refusal):
            ask()
    gaps = Dataset.read(mixed, missing="impute")
    for take in (CG().bind, gpn.estimators.HillClimbing(score="cg").fit, gpn.estimators.PC().fit):
        with pytest.raises(ValueError, match="this takes complete tables; received one with"):
            take(gaps)
    with pytest.raises(ValueError, match="this takes complete tables; received one with"):
        BDeu().bind(mixed[["sex", "visits"]], missing="impute")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"score": "bic"},
            "missing='impute' needs the method `complete`, which bic doesn't have: use ",
        ),
        ({"sampler": "exact"}, "with missing='impute', sampler must be 'partition' or 'order'; received 'exact'"),
        (
            {"sampler": gpn.samplers.Partition(temperatures=4)},
            "with missing='impute', temperatures must be 1; received temperatures=4",
        ),
        ({"space": gpn.Space(plus_one=True)}, "with missing='impute', plus_one must be False; received plus_one=True"),
        ({"targets": "sex"}, "missing='impute' takes rows that were merely observed; received targets: use missing='"),
    ],
)
def test_what_does_not_go_with_it_is_refused(mixed, settings, message):
    with pytest.raises(ValueError, match=f"^{message}"):
        gpn.sample(mixed, **({"score": CG()} | settings), **QUIET)


def test_reports_and_pictures_show_what_is_missing(mixed, posterior, tmp_path):
    page = posterior.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "missing at random" in page and 'class="gaps"' in page and "missing=&#x27;impute&#x27;" in page
    assert page.count('class="gap"') >= 4
    ax = posterior.plot_missing()
    assert sum(int(label.get_text().split()[0]) for label in ax.get_yticklabels()) == 80
    complete = gpn.sample(mixed.dropna(), CG(), draws=10, random_seed=1, progressbar=False)
    with pytest.raises(ValueError, match="^plot_missing needs a table with missing values; this posterior has none$"):
        complete.plot_missing()
    assert complete.settings.get("missing") is None


def test_gaussian_processes_have_a_run_for_each_completed_table():
    rng = np.random.default_rng(1)
    a = rng.normal(size=40)
    table = pd.DataFrame({"a": a, "b": np.sin(2 * a) + 0.5 * rng.normal(size=40)})
    table.iloc[:12, 0] = np.nan
    post = gpn.sample(table, "gp", draws=40, chains=2, random_seed=1, **QUIET)
    assert post.log_score.shape == (10, 40) and post.settings["missing"]["tables"] == 5
    assert len(post.imputed(5)) == 5
    # The tables are spread evenly over what both chains under a linear score have kept.
    linear = gpn.sample(table, "bge", draws=300, tune=300, chains=2, random_seed=1, **QUIET)
    np.testing.assert_array_equal(post.completed, linear.completed[::2])
    shares = np.split(post.weights[..., None] * post.adjacency[..., 0, 1, None], 5)
    means = np.array([own.mean() for own in shares])
    estimate = post.edge_probability("a", "b")
    assert estimate.value == pytest.approx(means.mean())
    # The spread between tables is part of the error, and R-hat doesn't take it for disagreement of chains.
    assert estimate.mcse >= means.std(ddof=1) / np.sqrt(5) > 0
    diagnostics = post.diagnostics()
    assert diagnostics.tables == 5 and diagnostics.table_gap == pytest.approx(np.ptp(means), abs=1e-9)
    assert "5 completed tables, between which" in diagnostics.summary
    # Fewer or more of them, as far as chains have kept some.
    three = gpn.sample(table, "gp", draws=40, chains=2, random_seed=1, imputations=3, **QUIET)
    assert three.log_score.shape == (6, 40) and three.diagnostics().tables == 3
    with pytest.raises(ValueError, match="^imputations must be at most 10, 5 from each chain; received 11$"):
        gpn.sample(table, "gp", chains=2, imputations=11, **QUIET)


def test_the_error_between_tables_is_that_of_their_mean():
    """Four tables, with shares 0.1, 0.3, 0.5 and 0.7 of the draws, whatever these weigh: sd over the root of 4."""
    which = (np.arange(100) % 10 < np.repeat([1, 3, 5, 7], 2)[:, None]).astype(int)
    weights = np.repeat([1.0, 5.0, 1.0, 2.0], 2)[:, None] * np.ones(100)
    known = Moments(np.array([0.4, 1.0]), np.array([0.01, np.nan]), np.array([100.0, 7.0]), np.array(["sampled"] * 2))
    found = with_spread_between(known, np.array([[0.0, 1.0], [1.0, 1.0]]), which, weights, 4)
    assert found.mcse[0] == pytest.approx(np.std([0.1, 0.3, 0.5, 0.7], ddof=1) / 2)
    assert np.isnan(found.mcse[1]) and found.ess[1] == 7
    assert found.ess[0] == pytest.approx(100 * (0.01 / found.mcse[0]) ** 2)
    precise = with_spread_between(known._replace(mcse=np.array([0.5, 0.5])), np.eye(2), which, weights, 4)
    assert precise.mcse.tolist() == [0.5, 0.5]


def test_whether_numbers_have_one_variance_is_drawn_by_how_probable_it_is():
    rng = np.random.default_rng(4)
    table = pd.DataFrame({"s": np.repeat(["f", "m"], 30), "x": rng.normal(size=60), "y": rng.normal(size=60)})
    table.loc[0, "x"] = np.nan
    completion = CG().complete(Dataset.read(table, missing="impute"))
    values = completion.begin(rng)
    dag = np.array([[0, 1, 0], [0, 0, 0], [0, 0, 0]])
    drawn = np.array([completion.draw_one_variance(rng, values, dag) for _ in range(1000)])
    share = completion.scorer(values).one_variance(1, (0,))
    assert 0.2 < share < 0.8 and not drawn[:, [0, 2]].any()
    assert abs(drawn[:, 1].mean() - share) < 4 * np.sqrt(share * (1 - share) / 1000)


# Rows that are alike


@pytest.mark.parametrize("levels", [[2, 3, 2], [9, 12, 11, 20], [2] * 63])
def test_distinct_rows_are_those_that_sorting_finds(levels):
    rng = np.random.default_rng(1)
    codes = np.array([rng.integers(0, own, 400) for own in levels])[:, rng.integers(0, 400, 900)]
    expected, counts = np.unique(codes, axis=1, return_counts=True)
    found, found_counts = distinct_rows(codes, np.array(levels))
    assert np.array_equal(found, expected) and np.array_equal(found_counts, counts)


def many_alike(rows, levels=(4, 2, 2, 2), share=0.1):
    """Return a table of few distinct rows, some entries of which are missing, as `Dataset` reads it."""
    rng = np.random.default_rng(3)
    first = rng.integers(0, levels[0], rows)
    table = {"v0": first}
    for j, own in enumerate(levels[1:], 1):
        table[f"v{j}"] = np.where(rng.random(rows) < 0.6, first % own, rng.integers(0, own, rows))
    frame = pd.DataFrame(table).astype(str)
    return Dataset.read(frame.mask(rng.random(frame.shape) < share), missing="impute")


def mean_counts(completion, adjacency, draws):
    """Return the mean counts of all distinct rows of completed tables, and their errors, by batches."""
    rng = np.random.default_rng(5)
    values = completion.begin(rng)
    levels = completion.variables.levels
    counts = np.zeros((20, np.prod(levels)))
    for batch in counts:
        for _ in range(draws // len(counts)):
            completion.draw(rng, values, adjacency)
            keys = np.ravel_multi_index(tuple(values.T.astype(int)), levels)
            batch += np.bincount(keys, minlength=len(batch)) / (draws // len(counts))
    return counts.mean(axis=0), counts.std(axis=0, ddof=1) / np.sqrt(len(counts))


@pytest.mark.parametrize("share", [0.1, 0.5])
def test_drawing_for_rows_alike_is_drawing_row_by_row(share):
    completion = BDeu().complete(many_alike(60, share=share))
    dag = np.array([[0, 1, 1, 0], [0, 0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0]], dtype=np.int8)
    together, error = mean_counts(completion, dag, 4000)
    by_row, error_by_row = mean_counts(replace(completion, alike=None), dag, 4000)
    # 32 cells of 20 batches each: t with 38 degrees of freedom is beyond 4 in one of 100 such comparisons.
    assert (np.abs(together - by_row) <= 4 * np.hypot(error, error_by_row) + 1e-9).all()
    # Negative control: another DAG completes the table otherwise.
    other, error_of_other = mean_counts(completion, np.zeros((4, 4), dtype=np.int8), 4000)
    assert (np.abs(together - other) > 4 * np.hypot(error, error_of_other)).any()


def test_rows_that_are_alike_are_put_together_once():
    data = many_alike(2000)
    completion = BDeu().complete(data)
    starts, rows = completion.alike
    assert sorted(rows) == np.flatnonzero(data.missing.any(axis=1)).tolist()
    assert len(starts) - 1 < 0.2 * len(rows)
    observed = np.where(data.missing, -1, data.values)
    for first, end in zip(starts[:-1], starts[1:], strict=True):
        assert (observed[rows[first:end]] == observed[rows[first]]).all()
    mixed = pd.DataFrame({"a": ["x", "y", None] * 10, "b": np.random.default_rng(1).normal(size=30)})
    assert CG().complete(Dataset.read(mixed, missing="impute")).alike is None


def test_a_completed_table_of_few_distinct_rows_is_scored_in_a_fraction_of_the_time_of_sorting_it():
    completion = BDeu().complete(many_alike(2200))
    values = completion.begin(np.random.default_rng(1))
    codes = values.T.astype(np.uint16)

    def seconds(act):
        began = time.process_time()
        for _ in range(100):
            act()
        return time.process_time() - began

    # About a thirtieth.
    assert 5 * seconds(lambda: completion.scorer(values)) < seconds(lambda: np.unique(codes, axis=1))

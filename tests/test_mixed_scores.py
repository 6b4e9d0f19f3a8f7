"""Scores of tables that mix numbers and categories: other programs, plain formulas, enumeration, and the road after."""

import json
import pickle
import re
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import expit

import gpn_bayes as gpn
from gpn_bayes import graphs
from gpn_bayes.data import Dataset
from gpn_bayes.scores import BIC, CG, BDeu, BGe
from gpn_bayes.scores.mixed import categories_among
from gpn_bayes.scores.residuals import residual_flags

REFERENCE = Path(__file__).parent / "reference" / "mixed"
QUIET = {"random_seed": 1, "progressbar": False}


def mixed_table(rows=120, seed=1):
    """Return s -> t, (s, t) -> x with coefficients of their own, x -> y; s and t categories."""
    rng = np.random.default_rng(seed)
    s = rng.choice(2, rows)
    t = np.where(rng.random(rows) < 0.8, s, rng.choice(3, rows))
    x = np.array([[0.0, 1.0, -1.0], [2.0, 0.0, 1.0]])[s, t] + rng.normal(size=rows)
    y = np.array([1.0, -1.0])[s] * x + 0.5 * rng.normal(size=rows)
    names = np.array(["f", "m"])[s], np.array(["low", "mid", "high"])[t]
    return pd.DataFrame({"s": names[0], "x": 10 * x + 50, "t": names[1], "y": y})


# Other programs


@pytest.fixture(scope="module")
def references():
    return json.loads((REFERENCE / "values.json").read_text())


def test_rats_score_as_in_deal(references):
    rats = pd.read_csv(REFERENCE / "deal_rats.csv")
    scorer = CG(ess=references["deal"]["imaginary_sample_size"]).bind(rats)
    for name, value in references["deal"]["empty"].items():
        assert scorer.local(name) == pytest.approx(value, abs=1e-9)


def test_bic_is_that_of_bnlearn(references):
    table, known = pd.read_csv(REFERENCE / "bnlearn_mixed_5000.csv.gz"), references["bic_cg"]
    families = re.findall(r"\[(\w)(?:\|([^\]]*))?\]", known["graph"])
    edges = [(parent, child) for child, parents in families for parent in parents.split(":") if parent]
    scorer = BIC().bind(table)
    assert scorer.total(edges) == pytest.approx(known["bic_total"], abs=1e-6)
    # A negative control.
    assert scorer.total(edges[1:]) < known["bic_total"] - 100


# Plain formulas


def evidence(y, x, nu, variances):
    """Return the log marginal likelihood of a regression under the prior of `CG`: a multivariate t density."""
    n, k = x.shape
    # Coefficients of standardised parents, imagined rows being centred and independent.
    design = np.column_stack([np.ones(n), x])
    precision = np.diag([nu, *(0.5 * nu * variances[1:])])
    shape, rate = 0.5 * (nu + k), 0.25 * nu * variances[0]
    covariance = (rate / shape) * (np.eye(n) + design @ np.linalg.solve(precision, design.T))
    return stats.multivariate_t(np.zeros(n), covariance, 2 * shape).logpdf(y)


@pytest.mark.parametrize("parents", [(), ("x",), ("s",), ("s", "t"), ("s", "x"), ("s", "t", "x")])
def test_numbers_have_a_regression_in_each_combination(parents):
    table = mixed_table(40)
    scorer = CG(ess=3.0, variances="each").bind(table)
    numbers = [p for p in parents if p == "x"]
    categories = [p for p in parents if p != "x"]
    cells = np.prod([table[p].nunique() for p in categories], dtype=int)
    centred = table[["x", "y"]] - table[["x", "y"]].mean()
    variances = centred[["y", *numbers]].var(ddof=0).to_numpy()
    groups = [rows for _, rows in table.groupby(categories)] if categories else [table]
    expected = sum(
        evidence(
            centred.loc[rows.index, "y"].to_numpy(), centred.loc[rows.index, numbers].to_numpy(), 3.0 / cells, variances
        )
        for rows in groups
    )
    assert scorer.local("y", parents) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("parents", [(), ("x",), ("s",), ("s", "t"), ("s", "x"), ("s", "t", "x")])
def test_all_combinations_may_have_the_same_variance(parents):
    """The score is then that of one conjugate regression on dummies and their products: a multivariate t density."""
    table = mixed_table(40)
    z = (table[["x", "y"]] - table[["x", "y"]].mean()) / table[["x", "y"]].std(ddof=0)
    categories = [p for p in parents if p != "x"]
    cells = np.prod([table[p].nunique() for p in categories], dtype=int)
    group = table.groupby(categories).ngroup() if categories else np.zeros(40)
    own = np.eye(int(max(group)) + 1)[np.asarray(group, dtype=int)]
    design, precision = own, np.full(own.shape[1], 3.0 / cells)
    if "x" in parents:
        design = np.hstack([own, own * z["x"].to_numpy()[:, None]])
        precision = np.concatenate([precision, 0.5 * precision])
    df, squares = 3.0 + ("x" in parents), 0.5 * 3.0
    covariance = squares / df * (np.eye(40) + design @ np.diag(1 / precision) @ design.T)
    expected = stats.multivariate_t(np.zeros(40), covariance, df).logpdf(z["y"]) - 40 * np.log(table["y"].std(ddof=0))
    assert CG(ess=3.0, variances="one").bind(table).local("y", parents) == pytest.approx(expected, abs=1e-8)


@pytest.mark.parametrize("parents", [("s",), ("s", "t"), ("s", "x"), ("s", "t", "x")])
def test_differing_variances_count_less_where_noise_has_tails(parents):
    """Their log likelihood ratio is divided by 1 + kappa / 2, kappa being the residuals' excess kurtosis."""
    noise = np.random.default_rng(2).standard_t(3, 300)
    table = mixed_table(300).assign(y=lambda own: own["y"] + np.where(own["s"] == "f", 1.0, 3.0) * noise)
    ess = 0.01  # so that the prior adds hardly anything to squares and rows
    both, one, each = (CG(ess, variances=own).bind(table).local("y", parents) for own in ("one or each", "one", "each"))
    left, sizes = [], []
    for _, rows in table.groupby([p for p in parents if p != "x"]):
        design = np.column_stack([np.ones(len(rows)), *([rows["x"]] if "x" in parents else [])])
        left.append(rows["y"] - design @ np.linalg.lstsq(design, rows["y"], rcond=None)[0])
        sizes.append(len(rows))
    pooled = np.concatenate(left)
    factor = 1 + 0.5 * stats.kurtosis(pooled)
    assert factor > 2
    n = np.array(sizes)
    squares = np.array([(own**2).sum() for own in left])
    ratio = 0.5 * (n.sum() * np.log(squares.sum() / n.sum()) - (n * np.log(squares / n)).sum())
    expected = np.logaddexp(one, each - ratio * (1 - 1 / factor)) - np.log(2)
    assert both == pytest.approx(expected, abs=0.05)
    # A negative control: uncorrected, it would be another score.
    assert abs(np.logaddexp(one, each) - np.log(2) - expected) > 0.5


def test_a_permuted_category_seldom_seems_to_act_on_a_skewed_number():
    """The two networks of a category and a number are as probable as their scores say."""
    rng = np.random.default_rng(1)
    table = pd.DataFrame({"y": np.exp(1.5 * rng.normal(size=250))})
    stated = {"one or each": [], "each": []}
    for _ in range(200):
        table["trt"] = rng.permutation(np.repeat(["a", "b"], 125))
        for variances, probabilities in stated.items():
            scorer = CG(variances=variances).bind(table)
            probabilities.append(expit(scorer.local("y", ["trt"]) - scorer.local("y")))
    assert np.mean(np.array(stated["one or each"]) > 0.9) < 0.03
    # A negative control: with a variance for each level for certain, it often does.
    assert np.mean(np.array(stated["each"]) > 0.9) > 0.3


def test_variances_that_differ_are_still_found():
    rng = np.random.default_rng(1)
    trt = np.repeat(["a", "b"], 100)
    table = pd.DataFrame({"trt": trt, "y": np.where(trt == "a", 1.0, 2.0) * rng.normal(size=200)})
    assert gpn.sample(table, "cg", draws=1, chains=1, **QUIET).edge_probability("trt", "y").value > 0.99
    assert gpn.sample(table, CG(variances="one"), draws=1, chains=1, **QUIET).edge_probability("trt", "y").value < 0.5


def test_numbers_alone_score_as_bge_and_categories_alone_as_bdeu():
    table = mixed_table()
    numbers = table[["x", "y"]]
    standard = (numbers - numbers.mean()) / numbers.std(ddof=0)
    bge = BGe(alpha_mu=3.0, alpha_w=4.0, t0=1.5, standardise=False).bind(standard)
    units = len(table) * np.log(numbers["y"].std(ddof=0))
    assert CG(ess=3.0).bind(numbers).local("y", ["x"]) == pytest.approx(bge.local("y", ["x"]) - units, abs=1e-9)
    bdeu = BDeu(ess=3.0).bind(table[["s", "t"]])
    for scorer in (CG(ess=3.0).bind(table), CG(ess=3.0).bind(table[["s", "t"]])):
        assert scorer.local("t", ["s"]) == pytest.approx(bdeu.local("t", ["s"]), abs=1e-9)


def test_bic_is_the_likelihood_less_a_charge_for_every_parameter():
    table = mixed_table()
    expected = 0.0
    for _, rows in table.groupby(["s", "t"]):
        design = np.column_stack([np.ones(len(rows)), rows["x"]])
        left = rows["y"] - design @ np.linalg.lstsq(design, rows["y"], rcond=None)[0]
        variance = (left**2).sum() / (len(rows) - 2)
        expected += stats.norm.logpdf(left, scale=np.sqrt(variance)).sum()
    # Three parameters in each of 2 x 3 combinations.
    expected -= 0.5 * np.log(len(table)) * 18
    assert BIC().bind(table).local("y", ["s", "t", "x"]) == pytest.approx(expected, abs=1e-9)


def test_combinations_with_as_many_coefficients_as_rows_have_no_bic():
    table = mixed_table(30)
    table.loc[0, "t"] = "rare"
    scorer = BIC().bind(table)
    assert scorer.local("y", ["t"]) == -np.inf and np.isfinite(scorer.local("y", ["s"]))
    assert np.isfinite(CG().bind(table).local("y", ["t", "x"]))


@pytest.mark.parametrize("score", [CG(), BIC()], ids=["cg", "bic"])
@pytest.mark.parametrize("node", ["s", "x", "t", "y"])
def test_tables_hold_the_scores_of_sets(score, node):
    table = mixed_table()
    scorer = score.bind(table)
    candidates = [name for name in table if name != node]
    for limit in (3, 2, 0):
        found = scorer.table(node, candidates, limit)
        for mask in range(8):
            parents = [name for bit, name in enumerate(candidates) if mask >> bit & 1]
            expected = scorer.local(node, parents) if len(parents) <= limit else -np.inf
            assert found[mask] == pytest.approx(expected, abs=1e-9) or found[mask] == expected
    sets = scorer.scores_up_to(scorer.index(node), [scorer.index(name) for name in candidates], 2)
    assert len(sets[1]) == 7


@pytest.mark.parametrize("score", [CG(ess=5.0, variances="each"), CG(variances="each"), CG()])
def test_equivalent_networks_score_alike(score):
    """Of those that have scores at all: x and y may change places, s and t likewise, but not s and x."""
    scorer = score.bind(mixed_table())
    assert scorer.total([("x", "y")]) == pytest.approx(scorer.total([("y", "x")]), abs=1e-9)
    both = [("s", "x"), ("s", "y")]
    if score.variances == "each":
        assert scorer.total([*both, ("x", "y")]) == pytest.approx(scorer.total([*both, ("y", "x")]), abs=1e-9)
    assert scorer.total([("s", "t"), ("s", "x")]) == pytest.approx(scorer.total([("t", "s"), ("s", "x")]), abs=1e-9)
    assert scorer.total([("x", "s")]) == -np.inf


def test_units_of_numbers_change_scores_by_a_constant():
    table = mixed_table()
    other = table.assign(x=1000 * table["x"] - 7)
    for score in (CG(), BIC()):
        one, two = score.bind(table), score.bind(other)
        assert one.local("x", ["s"]) - two.local("x", ["s"]) == pytest.approx(120 * np.log(1000), abs=1e-6)
        assert one.local("y", ["x", "s"]) == pytest.approx(two.local("y", ["x", "s"]), abs=1e-6)


# Which columns are what


def test_text_and_whole_numbers_of_two_values_are_categories():
    table = mixed_table(20).assign(ill=[0, 1] * 10, visits=range(3, 23), flag=[True, False] * 10)
    assert categories_among(Dataset.read(table)).tolist() == [True, False, True, False, True, False, True]
    grades = mixed_table(20).assign(grade=[1, 2, 3, 4] * 5)
    assert not categories_among(Dataset.read(grades))[-1]
    assert categories_among(Dataset.read(grades, categories="grade"))[-1]


# The road after


def all_dags(n):
    """Return all DAGs of n nodes, as matrices."""
    pairs = list(combinations(range(n), 2))
    for picks in product((0, 1, 2), repeat=len(pairs)):
        dag = np.zeros((n, n), dtype=np.int8)
        for (i, j), pick in zip(pairs, picks, strict=True):
            if pick:
                dag[(i, j) if pick == 1 else (j, i)] = 1
        if graphs.is_acyclic(dag):
            yield dag


@pytest.mark.parametrize("score", [CG(), BIC()], ids=["cg", "bic"])
def test_edge_probabilities_are_those_of_enumeration(score):
    table = mixed_table(60)
    scorer = score.bind(table)
    dags = [dag for dag in all_dags(4) if not (dag & scorer.impossible).any()]
    weights = np.array([scorer.total(dag) for dag in dags])
    weights = np.exp(weights - weights.max())
    expected = np.einsum("d,dij->ij", weights / weights.sum(), np.array(dags))
    exact = gpn.sample(table, score=score, draws=100, **QUIET)
    np.testing.assert_allclose(exact.edge_probabilities(), expected, atol=1e-9)
    drawn = gpn.sample(table, score=score, sampler="partition", draws=2000, **QUIET)
    summary = drawn.summary().set_index(["parent", "child"])
    for (parent, child), row in summary.iterrows():
        own = expected[list(table).index(parent), list(table).index(child)]
        assert abs(row["probability"] - own) < 4 * max(np.nan_to_num(row["mcse"]), 1 / 2000)


def test_edges_from_numbers_to_categories_are_never_drawn_and_cannot_be_required():
    table = mixed_table()
    post = gpn.sample(table, score="cg", sampler="order", draws=50, **QUIET)
    assert (post.edge_probabilities().loc[["x", "y"], ["s", "t"]].to_numpy() == 0).all()
    with pytest.raises(ValueError, match="^an edge can't be required and impossible under the score; x -> s is both$"):
        gpn.sample(table, score="cg", required=[("x", "s")], **QUIET)
    assert any("between a number and a category" in text for text in post.diagnostics().assumptions)


@pytest.mark.parametrize("learner", [gpn.estimators.HillClimbing, gpn.estimators.Exact, gpn.estimators.OrderingSearch])
def test_learners_take_mixed_tables(learner):
    table = mixed_table(400)
    for score in ("cg", "bic"):
        found = learner(score=score).fit(table)
        assert set(map(frozenset, found.graph_.edges)) == {
            frozenset(e) for e in (["s", "t"], ["s", "x"], ["t", "x"], ["s", "y"], ["x", "y"])
        }


def test_more_variables_than_the_exact_sampler_takes():
    rng = np.random.default_rng(1)
    columns = {}
    for k in range(10):
        kind = rng.choice(3, 200)
        columns[f"c{k}"] = np.array(["a", "b", "c"])[kind]
        columns[f"n{k}"] = kind + rng.normal(size=200)
    post = gpn.sample(pd.DataFrame(columns), score="cg", draws=300, **QUIET)
    found = post.edge_probabilities()
    assert all(found.loc[f"c{k}", f"n{k}"] > 0.95 for k in range(10))
    # Of 360 others, some seem to be there.
    assert found.to_numpy().sum() < 40


def test_a_posterior_of_a_mixed_table_is_saved_reported_and_drawn(tmp_path):
    post = gpn.sample(mixed_table(), score="cg", draws=100, **QUIET)
    post.save(tmp_path / "run.nc")
    again = gpn.load(tmp_path / "run.nc")
    np.testing.assert_array_equal(again.edge_probabilities(), post.edge_probabilities())
    assert again.log_score_gap(again.map()) <= 1e-9
    page = post.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "between a number and a category, the direction is assumed" in page
    post.plot_network()
    assert post.to_arviz()["posterior"].sizes["parent"] == 4


def test_columns_that_determine_each_other_or_do_not_vary_in_a_level_have_finite_scores():
    table = mixed_table().assign(z=lambda own: 3 * own["x"] + 1)
    table["dose"] = np.where(table["s"] == "f", 0.0, table["y"])
    for score in (CG(), BIC()):
        scorer = score.bind(table)
        for node, parents in (
            ("z", ["x"]),
            ("x", ["s", "z"]),
            ("dose", ["s"]),
            ("y", ["x", "z"]),
            ("y", ["dose", "s"]),
        ):
            assert np.isfinite(scorer.local(node, list(parents)))


def test_residuals_of_the_right_model_raise_no_flags():
    """Though levels have variances of their own."""
    rng = np.random.default_rng(1)
    s = rng.choice(["a", "b"], 400)
    data = Dataset.read(pd.DataFrame({"s": s, "x": np.where(s == "a", 1.0, 6.0) * rng.normal(size=400)}))
    assert residual_flags(CG().bind(data), data, [(), (0,)]) == ()
    x = rng.normal(size=400)
    data = Dataset.read(pd.DataFrame({"s": s, "x": x, "y": x**2 + rng.normal(size=400)}))
    (flag,) = residual_flags(CG().bind(data), data, [(), (), (1,)])
    assert flag.kind == "leftover dependence" and flag.message.endswith("transform columns, or add one of squares.")


def test_scorers_travel_to_other_processes():
    scorer = CG().bind(mixed_table())
    value = scorer.local("y", ["s", "x"])
    assert pickle.loads(pickle.dumps(scorer)).local("y", ["s", "x"]) == value


def test_experiments_and_statistics_are_refused():
    table = mixed_table().assign(target=["x"] * 20 + [""] * 100)
    for score in (CG(), BIC()):
        with pytest.raises(ValueError, match="takes rows that were merely observed; received some of experiments$"):
            gpn.sample(table, score=score, targets="target", **QUIET)
    statistics = gpn.SufficientStatistics.of(mixed_table()[["x", "y"]])
    with pytest.raises(ValueError, match="^the score 'cg' needs the rows; received SufficientStatistics$"):
        CG().bind(statistics)


def test_scores_of_numbers_name_the_scores_that_take_both():
    message = "needs numbers; .* hold text such as 'f': .*, or score='cg' and score='gp' take both"
    with pytest.raises(ValueError, match=message):
        gpn.sample(mixed_table(), score="bge", **QUIET)


@pytest.mark.parametrize("setting", ["ess", "scale"])
@pytest.mark.parametrize("value", [0, -1.0, np.inf, True, "1"])
def test_settings_that_cannot_be(setting, value):
    with pytest.raises(ValueError, match=f"^{setting} must be positive and finite; received {re.escape(repr(value))}$"):
        CG(**{setting: value})


@pytest.mark.parametrize("score", [CG(), BIC()], ids=["cg", "bic"])
def test_residuals_of_small_and_large_groups_are_on_one_scale(score):
    """Five coefficients are fitted in each group, which matters in one of 16 rows and hardly in one of 300."""
    rng = np.random.default_rng(1)
    numbers = pd.DataFrame(rng.normal(size=(316, 4)), columns=list("abcd"))
    group = np.repeat([0, 1], [16, 300])
    y = numbers.sum(axis=1) + np.array([9.0, 0.2])[group] * rng.normal(size=316)
    data = Dataset.read(numbers.assign(s=np.array(["f", "m"])[group], y=y))
    left = score.bind(data).residuals(data, 5, (0, 1, 2, 3, 4))
    variances = [(left[group == k] ** 2).sum() / ((group == k).sum() - 5) for k in (0, 1)]
    np.testing.assert_allclose(variances, y.var(ddof=0))

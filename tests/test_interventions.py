"""Rows of experiments: targets are read, and every score is a product over groups of rows."""

import json
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.special import gammaln, multigammaln

import gpn_bayes as gpn
from gpn_bayes import Dataset, estimators, graphs, scores
from gpn_bayes.posterior.curves import fitted_curves
from gpn_bayes.scores import GraphPrior
from tests.command_line import call

pytestmark = pytest.mark.more("repeats whole runs for every score and setting")

REFERENCE = Path(__file__).parent / "reference" / "interventions"
KINDS = ("perfect", "soft")
NAMES = ("a", "b", "c", "d")


def experiments(seed=1, rows=60):
    """Return a table of four variables, and the targets of its rows: none, one or two."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(size=(rows, 4))
    a = noise[:, 0]
    b = np.sin(a) + 0.5 * noise[:, 1]
    c = 0.8 * a - 0.5 * b + 0.5 * noise[:, 2]
    d = c**2 / 2 + 0.5 * noise[:, 3]
    table = pd.DataFrame(np.column_stack([a, b, c, d]), columns=list(NAMES))
    targets = ["", "b", "c;d", "", "d", ""] * (rows // 6)
    return table, targets


def levels_of(table):
    return table.apply(lambda column: pd.cut(column, 3, labels=["low", "middle", "high"]).astype(str))


# Plain statements of the formulas, for one group of rows


def bge(values, node, parents, alpha_mu=1.0):
    """Return log p(node, parents) - log p(parents), each by Kuipers, Moffa & Heckerman (2014), eq. A.18."""

    def evidence(places):
        rows, n, size = len(values), values.shape[1], len(places)
        if size == 0:
            return 0.0
        alpha_w = n + 2.0
        t0 = alpha_mu * (alpha_w - n - 1) / (alpha_mu + 1)
        own = values[:, places]
        mean = own.mean(axis=0)
        centred = own - mean
        r = t0 * np.eye(size) + centred.T @ centred + rows * alpha_mu / (rows + alpha_mu) * np.outer(mean, mean)
        df = alpha_w - n + size
        return (
            -0.5 * rows * size * np.log(np.pi)
            + 0.5 * size * np.log(alpha_mu / (rows + alpha_mu))
            + multigammaln(0.5 * (rows + df), size)
            - multigammaln(0.5 * df, size)
            + 0.5 * df * size * np.log(t0)
            - 0.5 * (rows + df) * np.linalg.slogdet(r)[1]
        )

    return evidence([*parents, node]) - evidence([*parents])


def gaussian_bic(values, node, parents):
    rows = len(values)
    design = np.column_stack([np.ones(rows), values[:, parents]])
    left = values[:, node] - design @ np.linalg.lstsq(design, values[:, node])[0]
    return -0.5 * rows * (np.log(2 * np.pi * np.mean(left**2)) + 1) - 0.5 * np.log(rows) * (len(parents) + 2)


def dirichlet(codes, node, parents, imagined):
    """Return the Dirichlet score of three levels each, with `imagined` rows in each cell."""
    total, r = 0.0, 3
    cell = imagined(r, r ** len(parents))
    for configuration in np.ndindex(*(3,) * len(parents)):
        own = codes[(codes[:, parents] == configuration).all(axis=1), node]
        counts = np.bincount(own, minlength=r)
        total += gammaln(r * cell) - gammaln(r * cell + counts.sum()) + (gammaln(cell + counts) - gammaln(cell)).sum()
    return total


def discrete_bic(codes, node, parents):
    total = -0.5 * np.log(len(codes)) * 2 * 3 ** len(parents)
    for configuration in np.ndindex(*(3,) * len(parents)):
        counts = np.bincount(codes[(codes[:, parents] == configuration).all(axis=1), node], minlength=3)
        total += sum(count * np.log(count / counts.sum()) for count in counts if count)
    return total


STATEMENTS = {
    "bge": (scores.BGe(), bge),
    "bge, as they are": (scores.BGe(alpha_mu=0.5, standardise=False), lambda *given: bge(*given, alpha_mu=0.5)),
    "bic": (scores.BIC(), gaussian_bic),
    "bdeu": (scores.BDeu(ess=2.0), lambda *given: dirichlet(*given, lambda r, q: 2.0 / (r * q))),
    "k2": (scores.K2(), lambda *given: dirichlet(*given, lambda r, q: 1.0)),
    "discrete bic": (scores.BIC(), discrete_bic),
}


def as_taken(name, table):
    """Return a table for the score of a statement, and the values that its formula takes."""
    if name in ("bdeu", "k2", "discrete bic"):
        levels = levels_of(table)
        return levels, levels.apply(lambda column: pd.Categorical(column).codes).to_numpy(dtype=np.int64)
    values = table.to_numpy()
    if name != "bge, as they are":
        values = (values - values.mean(axis=0)) / values.std(axis=0, ddof=1)
    return table, values


def check_tables(scorer):
    """Check that whole tables of four variables hold the scores of single sets."""
    for node in range(4):
        others = [p for p in range(4) if p != node]
        table_of = scorer.table(node, others)
        one_by_one = [scorer.local(node, [p for b, p in enumerate(others) if m >> b & 1]) for m in range(8)]
        np.testing.assert_allclose(table_of, one_by_one, atol=1e-9)
        np.testing.assert_allclose(scorer.table_with(node, others[:2], others[2], 3), table_of[4:], atol=1e-9)
        sets, values_of = scorer.scores_up_to(node, others, 2)
        for own, value in zip(sets, values_of, strict=True):
            assert value == pytest.approx(scorer.local(node, [int(p) for p in own if p >= 0]), abs=1e-9)


def all_families():
    return [
        (node, parents)
        for node in range(4)
        for size in range(4)
        for parents in combinations([p for p in range(4) if p != node], size)
    ]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", STATEMENTS)
def test_a_score_is_the_sum_over_groups(name, kind):
    """Against each formula as it is printed, for every family of four variables."""
    score, formula = STATEMENTS[name]
    table, targets = experiments(rows=120)
    table, values = as_taken(name, table)
    scorer = score.bind(table, targets=targets, intervention=kind)
    for node, parents in all_families():
        changed = np.array([NAMES[node] in target.split(";") for target in targets])
        groups = [values[~changed]] + ([values[changed]] if kind == "soft" and changed.any() else [])
        expected = sum(formula(rows, node, list(parents)) for rows in groups)
        assert scorer.local(node, parents) == pytest.approx(expected, abs=1e-8), (node, parents)
    check_tables(scorer)


@pytest.mark.parametrize("estimator", ["laplace", "importance"])
def test_gp_of_a_perfect_intervention_is_gp_of_the_other_rows(estimator):
    """At the standardisation of all rows."""
    table, targets = experiments()
    values = table.to_numpy()
    standardised = (values - values.mean(axis=0)) / values.std(axis=0, ddof=1)
    score = scores.GP(estimator=estimator)
    perfect = score.bind(table, targets=targets)
    soft = score.bind(table, targets=targets, intervention="soft")
    as_is = scores.GP(estimator=estimator, standardise=False)
    for node, parents in [(0, ()), (1, ()), (1, (0,)), (2, (0, 1)), (3, (2,))]:
        changed = np.array([NAMES[node] in target.split(";") for target in targets])
        observed = as_is.bind(standardised[~changed]).local(node, parents)
        assert perfect.local(node, parents) == pytest.approx(observed, abs=1e-8)
        rest = as_is.bind(standardised[changed]).local(node, parents) if changed.any() else 0.0
        assert soft.local(node, parents) == pytest.approx(observed + rest, abs=1e-8)
    assert score.bind(table).local(1, [0]) == pytest.approx(as_is.bind(standardised).local(1, [0]), abs=1e-8)


def test_errors_of_groups_add_up():
    table, targets = experiments()
    score = scores.GP(target_error=0.1)
    soft = score.bind(table, targets=targets, intervention="soft")
    (term,) = soft.interventions.terms(3)
    parts = [soft.part(group).score_sets(3, [(2,)]) for group in term.groups]
    batch = soft.score_sets(3, [(2,)])
    assert len(parts) == 2
    assert batch.errors[0] == pytest.approx(np.hypot(parts[0].errors[0], parts[1].errors[0]))
    assert batch.k_hats[0] == max(part.k_hats[0] for part in parts)
    assert batch.statuses == ["ok"]


# Numbers of other programs


def sachs_5846():
    cells = gpn.datasets.sachs_interventional()[:5846]
    return np.log(cells.drop(columns=["condition", "target"]) + 0.5), cells["target"], cells["condition"]


def test_local_bge_scores_of_another_program():
    """Of Sachs's first seven experiments, by the program of the interventional BGe paper."""
    table, targets, _ = sachs_5846()
    given = pd.read_csv(REFERENCE / "sachs5846_bge_local_scores.csv", keep_default_na=False)
    for (am, aw), own in given.groupby(["am", "aw"]):
        score = scores.BGe(alpha_mu=am, alpha_w=aw, standardise=False)
        bound = {"pooled": score.bind(table)}
        bound |= {kind: score.bind(table, targets=targets, intervention=kind) for kind in KINDS}
        for row in own.itertuples():
            parents = [parent for parent in row.parents.split("+") if parent]
            for kind, scorer in bound.items():
                assert scorer.local(row.node, parents) == pytest.approx(getattr(row, kind), abs=1e-6)


@pytest.mark.parametrize("kind", ["pooled", *KINDS, "unknown"])
def test_exact_edge_probabilities_of_another_program(kind):
    table, targets, experiments_of = sachs_5846()
    given = json.loads((REFERENCE / "sachs5846_exact_edges_am0.1_pf6.0.json").read_text())
    score = scores.BGe(alpha_mu=given["am"], alpha_w=len(given["names"]) + given["am"] + 1, standardise=False)
    prior = GraphPrior(given["names"], edge_penalty=given["pf"] * np.log(2))
    reading = {
        "pooled": {},
        "unknown": {"contexts": experiments_of, "target_penalty": given["pf"] * np.log(2)},
    }.get(kind, {"targets": targets, "intervention": kind})
    post = gpn.sample(table, score, prior=prior, draws=10, random_seed=1, progressbar=False, **reading)
    np.testing.assert_allclose(post.edge_probabilities(), given["edge_probability"][kind], atol=1e-5)


def test_discrete_scores_of_another_program():
    """The mbde and bde of bnlearn, of a graph over discretised cells."""
    table = pd.read_csv(REFERENCE / "sachs5400_discrete.csv.gz", keep_default_na=False)
    given = json.loads((REFERENCE / "sachs5400_bdeu.json").read_text())
    edges = [
        (parent, node)
        for node, _, parents in (part.partition("|") for part in given["graph"].strip("[]").split("]["))
        for parent in parents.split(":")
        if parent
    ]
    scorer = scores.BDeu(ess=given["ess"]).bind(table, targets="target")
    adjacency = graphs.as_adjacency(edges, scorer.names)
    ours = {name: scorer.local(name, np.flatnonzero(adjacency[:, place])) for place, name in enumerate(scorer.names)}
    # Its loop over the rows of experiments reads one entry beyond their list (version 5.2.1), by which it lost one of
    # the 2,515 rows in which pkc has level 2 here.
    lost = np.log(2514 + 1 / 3)
    assert (table["pkc"][table["target"] != "pkc"] == 2).sum() == 2515
    ours["pkc"] -= lost
    assert ours == pytest.approx(given["perfect_by_node"], abs=1e-6)
    assert scorer.total(edges) - lost == pytest.approx(given["perfect_total"], abs=1e-6)
    assert scorer.total([]) - lost == pytest.approx(given["empty_graph_perfect_total"], abs=1e-6)
    pooled = scores.BDeu(ess=given["ess"]).bind(table.drop(columns="target"))
    assert pooled.total(edges) == pytest.approx(given["pooled_total"], abs=1e-6)


# Equivalence


def classes_of(targets):
    """Return the DAGs of four variables by what an interventional class has in common, as its definition says."""
    classes = {}
    for dag in graphs.enumerate_dags(4):
        joined = dag | dag.T
        colliders = tuple(
            (i, k, j)
            for k in range(4)
            for i in range(4)
            for j in range(i)
            if dag[i, k] and dag[j, k] and not joined[i, j]
        )
        told = tuple((i, j) for i, j in np.argwhere(dag).tolist() if any((i in own) != (j in own) for own in targets))
        classes.setdefault((joined.tobytes(), colliders, told), []).append(dag)
    return list(classes.values())


@pytest.mark.parametrize(
    "targets", [[], [[0]], [[1], [2]], [[0, 1]], [[0, 1], [2]], [[0, 1, 2, 3]], [[0], [1], [2], [3]]]
)
def test_essential_graphs_are_those_of_whole_classes(targets):
    for members in classes_of(targets):
        union = np.bitwise_or.reduce(np.array(members), axis=0)
        found = graphs.interventional_cpdag(np.array(members), targets)
        assert (found == union).all()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("score", ["bge", "bdeu"])
def test_members_of_a_class_score_alike_and_others_do_not(score, kind):
    table, targets = experiments(rows=120)
    scorer = scores.by_name(score).bind(
        levels_of(table) if score == "bdeu" else table, targets=targets, intervention=kind
    )
    classes = classes_of(scorer.interventions.target_sets())
    spread = [np.ptp([scorer.total(dag) for dag in members]) for members in classes]
    assert max(spread) < 1e-8
    assert len({round(scorer.total(members[0]), 6) for members in classes}) == len(classes)


def test_experiments_direct_edges_of_the_posterior():
    table, targets = experiments()
    settings = {"draws": 50, "random_seed": 1, "progressbar": False}
    pooled = gpn.sample(table, "bge", **settings).cpdag_edges()
    told = gpn.sample(table, "bge", targets=targets, **settings)
    assert pooled["undirected"].sum() > 0.5
    # b is a target without any other, d once without c; so all edges at b and d are told.
    edges = told.cpdag_edges().set_index(["parent", "child"])
    assert edges.loc[[pair for pair in edges.index if set(pair) & {"b", "d"}], "undirected"].max() == 0
    text = str(told.diagnostics())
    assert "Directions within an interventional equivalence class" in text and "Markov equivalence class" not in text


# Posteriors


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("score", ["bge", "gp", "bic"])
def test_posteriors_are_those_of_all_dags(score, kind):
    """By enumeration of the 543 DAGs of four variables."""
    table, targets = experiments()
    scorer = scores.by_name(score).bind(table, targets=targets, intervention=kind)
    dags = graphs.enumerate_dags(4)
    log_scores = np.array([scorer.total(dag) for dag in dags])
    weights = np.exp(log_scores - log_scores.max())
    expected = np.einsum("g,gij->ij", weights / weights.sum(), dags)
    post = gpn.sample(
        table,
        score,
        targets=targets,
        intervention=kind,
        sampler=gpn.samplers.Auto(reweight=None),
        draws=20,
        random_seed=1,
        progressbar=False,
    )
    np.testing.assert_allclose(post.edge_probabilities(), expected, atol=1e-8)
    assert post.settings["interventions"] == {
        "kind": kind,
        "experiments": [
            {"targets": ["b"], "rows": 10},
            {"targets": ["c", "d"], "rows": 10},
            {"targets": ["d"], "rows": 10},
        ],
    }


def test_mcmc_and_reweighting_take_groups_too():
    table, targets = experiments()
    exact = gpn.sample(
        table,
        "gp",
        targets=targets,
        sampler=gpn.samplers.Auto(reweight=None),
        draws=20,
        random_seed=1,
        progressbar=False,
    ).edge_probabilities()
    drawn = gpn.sample(table, "gp", sampler="partition", targets=targets, random_seed=1, progressbar=False)
    found = drawn.summary().set_index(["parent", "child"])
    for (parent, child), row in found.iterrows():
        assert abs(row["probability"] - exact.loc[parent, child]) < 4 * row["mcse"] + 0.01, (parent, child)


def test_an_intervention_tells_what_observation_cannot():
    """The edges a -> b and b -> a are equivalent, until b is set and a doesn't follow."""
    rng = np.random.default_rng(1)
    a = rng.normal(size=200)
    b = 0.7 * a + rng.normal(size=200)
    b[150:] = rng.normal(size=50) * 2
    targets = [""] * 150 + ["b"] * 50
    table = pd.DataFrame({"a": a, "b": b})
    settings = {"draws": 20, "random_seed": 1, "progressbar": False}
    observed = gpn.sample(table[:150], "bge", **settings).edge_probabilities()
    assert observed.loc["a", "b"] == pytest.approx(observed.loc["b", "a"])
    assert gpn.sample(table, "bge", targets=targets, **settings).edge_probabilities().loc["a", "b"] > 0.99


def test_groups_of_a_run_are_kept_in_files(tmp_path):
    table, targets = experiments()
    post = gpn.sample(table, "gp", targets=targets, draws=20, random_seed=1, progressbar=False)
    post.save(tmp_path / "post.nc")
    loaded = gpn.load(tmp_path / "post.nc")
    assert loaded.data.fingerprint == post.data.fingerprint
    assert (loaded.data.interventions.targets == post.data.interventions.targets).all()
    assert loaded.scorer(post.adjacency[0, 0]) == pytest.approx(post.scorer(post.adjacency[0, 0]))
    assert "Experiments set their targets" in str(loaded.diagnostics())
    curves = fitted_curves(loaded, "d")
    assert set(curves.points["y"]) == set(table["d"][[target in ("", "b") for target in targets]])


def test_learners_of_one_graph_take_them(tmp_path):
    table, targets = experiments()
    data = Dataset.read(table, targets=targets)
    scorer = scores.BGe().bind(data)
    best = max(graphs.enumerate_dags(4), key=scorer.total)
    for learner in (estimators.Exact("bge"), estimators.HillClimbing("bge"), estimators.OrderingSearch("bge")):
        assert scorer.total(learner.fit(data).adjacency_) == pytest.approx(scorer.total(best))


def test_screening_of_many_variables_pools_the_rows():
    truth = gpn.simulate.random_dag(24, p=0.1, random_seed=1)
    table = gpn.simulate.linear(truth, 200, random_seed=1)
    targets = [""] * 150 + ["v3"] * 50
    post = gpn.sample(table, "bge", targets=targets, draws=50, tune=50, random_seed=1, progressbar=False)
    assert post.log_score.shape == (4, 50)


# Reading


def test_targets_may_be_a_column_a_sequence_or_lists(tmp_path):
    table, targets = experiments()
    expected = Dataset.read(table, targets=targets)
    with_column = table.assign(target=targets)
    with_column.to_csv(tmp_path / "rows.csv", index=False)
    lists = [target.split(";") if target else None for target in targets]
    for data, given in (
        (with_column, "target"),
        (with_column.replace({"target": {"": None}}), "target"),
        (tmp_path / "rows.csv", "target"),
        (table, lists),
        (table, np.array(targets)),
        (table, pd.Series(targets, index=range(5, 65))),
    ):
        read = Dataset.read(data, targets=given)
        assert read.names == NAMES
        assert read.fingerprint == expected.fingerprint
    assert expected.fingerprint != Dataset.read(table).fingerprint
    assert expected.fingerprint != Dataset.read(table, targets=targets, intervention="soft").fingerprint


def test_targets_of_dropped_rows_are_dropped():
    table, targets = experiments()
    table.iloc[1, 0] = np.nan
    data = Dataset.read(table, targets=targets, missing="drop")
    kept = [target for row, target in enumerate(targets) if row != 1]
    assert (data.interventions.targets == Dataset.read(table.drop(index=1), targets=kept).interventions.targets).all()


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"targets": ["", "e"] * 30}, "targets must be variables; received 'e', not one of 'a', 'b', 'c', 'd'"),
        ({"targets": ["b"] * 59}, "targets must be as many as there are rows, 60; received 59"),
        ({"targets": ["b"] * 60}, "a variable must not be a target in every row, where nothing can be learnt of its "),
        (
            {"targets": ["b", "c"] * 30},
            "some rows must have no target, being only observed; received one in all 60 rows",
        ),
        ({"targets": [""] * 60}, "targets must name a variable in at least one row; received none"),
        ({"targets": "tar"}, "targets must be a column of the table, or a sequence as long as it; received 'tar', "),
        ({"targets": 3}, "targets must be a column of the table, or a sequence; received 3"),
        ({"targets": "d"}, "targets must be variables; received "),
        ({"targets": "d", "columns": ["a", "b", "d"]}, "the column of targets is no variable; columns has 'd'"),
        ({"targets": ["b"] + [""] * 59, "intervention": "hard"}, "intervention must be one of perfect, soft; received"),
        ({"intervention": "soft"}, "intervention needs targets; received 'soft' without them"),
        ({"target_probability": 0.2}, "target_probability needs contexts; received 0.2 without them"),
        ({"target_penalty": 2}, "target_penalty needs contexts; received 2 without them"),
        (
            {"contexts": ["x"] * 60},
            "contexts must be 1 to 12 besides the reference, the rows without one or the first ",
        ),
        ({"contexts": [str(k % 14) for k in range(60)]}, "contexts must be 1 to 12 besides the reference, the rows "),
        ({"contexts": ["x"] * 59}, "contexts must be as many as there are rows, 60; received 59"),
        ({"contexts": "con"}, "contexts must be a column of the table, or a sequence as long as it; received 'con', "),
        ({"contexts": ["x", "y"] * 30, "targets": ["b", ""] * 30}, "targets are known, or contexts name experiments "),
        ({"contexts": ["x", "y"] * 30, "intervention": "perfect"}, "unknown targets are soft changes, since nothing "),
        ({"contexts": ["x", "y"] * 30, "target_probability": 1.0}, "target_probability must lie between 0 and 1; "),
        ({"contexts": ["x", "y"] * 30, "target_penalty": -1}, "target_penalty must be a number, 0 or more; received "),
        (
            {"contexts": ["x", "y"] * 30, "target_probability": 0.1, "target_penalty": 1.0},
            "target_probability and target_penalty say the same; received both",
        ),
    ],
)
def test_bad_targets_are_one_line(given, message):
    table, _ = experiments()
    with pytest.raises(ValueError) as refused:
        Dataset.read(table, **given)
    assert str(refused.value).startswith(message) and "\n" not in str(refused.value)
    if "columns" not in given:
        with pytest.raises(ValueError):
            gpn.sample(table, "bge", progressbar=False, **given)


def test_what_takes_all_rows_as_alike_refuses(tmp_path):
    table, targets = experiments()
    data = Dataset.read(table, targets=targets)
    refused = "takes rows that were only observed; received targets of interventions"
    for call_it in (
        lambda: estimators.PC().fit(data),
        lambda: estimators.NOTEARS().fit(data),
        lambda: estimators.NOTEARSMLP().fit(data),
        lambda: gpn.bootstrap(estimators.HillClimbing("bge"), data, n=2),
        lambda: scores.Lasso().bind(data),
        lambda: gpn.federated.secure_statistics([data, data, data]),
    ):
        with pytest.raises(ValueError, match=refused):
            call_it()


def test_the_command_line_takes_a_column_of_targets(tmp_path, capsys):
    table, targets = experiments()
    table.assign(target=targets).to_csv(tmp_path / "rows.csv", index=False)
    out = tmp_path / "out"
    given = ("--targets", "target", "--intervention", "soft", "--out", out, "-q")
    code, _, errors = call(capsys, "run", tmp_path / "rows.csv", *given)
    assert code == 0, errors
    assert json.loads((out / "run.json").read_text())["settings"]["interventions"]["kind"] == "soft"
    report = (out / "report.html").read_text()
    assert "Experiments changed how their targets depend on their parents" in report

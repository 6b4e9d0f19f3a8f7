"""Scores of discrete data against reference numbers, other statements of their formulas, and bad tables."""

import json
import time
from itertools import combinations, product
from math import lgamma, log, pi, prod
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes import SufficientStatistics, graphs
from gpn_bayes.scores import BIC, K2, BDeu
from gpn_bayes.scores.categories import MAX_LEVELS
from gpn_bayes.scores.discrete import _MAX_ROW_VISITS, affordable_parents

REFERENCE = Path(__file__).parent / "reference" / "discrete"
SCORES = {"BIC": BIC, "K2": K2, "BDeu": BDeu}


def results(network):
    return json.loads((REFERENCE / f"{network}_results.json").read_text())


def codes(network):
    return pd.read_csv(REFERENCE / f"{network}_1000_codes.csv")


# The formulas, in plain Python


def log_factorial(x):
    return lgamma(x + 1)


def stirling(x):
    return 0.5 * log(2 * pi) + (x + 0.5) * log(x) - x if x else 0.0


def bic_of(counts, m, r, q):
    fit = sum(n * log(n / sum(row)) for row in counts for n in row if n)
    return fit - 0.5 * log(m) * (r - 1) * q


def k2_of(counts, m, r, q, factorial=log_factorial):
    return sum(lgamma(r) - factorial(sum(row) + r - 1) + sum(map(factorial, row)) for row in counts)


def stirling_k2_of(counts, m, r, q):
    return k2_of([row for row in counts if sum(row)], m, r, q, stirling)


def bdeu_of(counts, m, r, q, ess=1.0):
    total = 0.0
    for row in counts:
        total += lgamma(ess / q) - lgamma(sum(row) + ess / q)
        total += sum(lgamma(n + ess / (q * r)) - lgamma(ess / (q * r)) for n in row)
    return total


FORMULAS = {
    "bic": (BIC(), bic_of),
    "k2": (K2(), k2_of),
    "k2 stirling": (K2(form="stirling"), stirling_k2_of),
    "bdeu": (BDeu(), bdeu_of),
    "bdeu 7.5": (BDeu(ess=7.5), lambda *counts: bdeu_of(*counts, ess=7.5)),
}


def plain_score(table, cardinalities, node, parents, formula):
    """Count every configuration, observed or not."""
    r, levels = cardinalities[node], [cardinalities[p] for p in parents]
    counts = {configuration: [0] * r for configuration in product(*map(range, levels))}
    for row in table:
        counts[tuple(int(row[p]) for p in parents)][int(row[node])] += 1
    return formula(list(counts.values()), len(table), r, prod(levels))


@pytest.fixture(scope="module")
def mixed():
    """Return 90 rows of 5 dependent columns, and cardinalities with levels that never occur."""
    rng = np.random.default_rng(21)
    a, b = rng.integers(3, size=90), rng.integers(2, size=90)
    c = (a + b + (rng.random(90) < 0.2)) % 4
    table = np.column_stack([a, b, c, rng.integers(4, size=90), (c > 1) ^ (rng.random(90) < 0.1)])
    return table, [3, 2, 5, 4, 3]


@pytest.mark.parametrize("name", FORMULAS)
def test_scores_follow_their_formulas(mixed, name):
    score, formula = FORMULAS[name]
    table, cardinalities = mixed
    frame = pd.DataFrame({f"x{i}": pd.Categorical(table[:, i], range(r)) for i, r in enumerate(cardinalities)})
    scorer = score.bind(frame)
    assert scorer.cardinalities.tolist() == cardinalities
    for node in range(5):
        others = [i for i in range(5) if i != node]
        for size in range(5):
            for parents in combinations(others, size):
                expected = plain_score(table, cardinalities, node, parents, formula)
                assert scorer.local(node, parents) == pytest.approx(expected, abs=1e-9)


def test_stirlings_form_is_close_to_the_exact_one():
    exact, close = (K2(form=form).bind(codes("asia")) for form in ("exact", "stirling"))
    for node in range(8):
        others = [i for i in range(8) if i != node]
        gaps = np.abs(exact.table(node, others) - close.table(node, others))
        # ln 1! comes out 0.08 too low, and larger factorials closer.
        assert 0 < gaps[0] < 0.2
        assert 0 < gaps.max() < 5


# Reference numbers


@pytest.mark.parametrize("name", ["BIC", "K2"])
@pytest.mark.parametrize("table", ["codes", "text"])
def test_all_local_scores_of_asia(name, table):
    known = json.loads((REFERENCE / "asia_1000_local_scores.json").read_text())
    assert len(known) == 512
    if table == "codes":
        scorer = SCORES[name](cardinalities=results("asia")["card"]).bind(codes("asia"))
    else:
        scorer = SCORES[name]().bind(REFERENCE / "asia_1000.csv")
    for entry in known:
        assert scorer.local(entry["child"], entry["parents"]) == pytest.approx(entry[name], abs=1e-8)


@pytest.mark.parametrize("name", ["BIC", "K2"])
@pytest.mark.parametrize("network", ["asia", "child", "alarm"])
def test_totals_of_the_true_networks(network, name):
    known = results(network)
    scorer = SCORES[name](cardinalities=known["card"]).bind(codes(network))
    edges = [(parent, child) for child, parents in known["true"]["parents"].items() for parent in parents]
    assert scorer.total(edges) == pytest.approx(known["true"][name], abs=1e-7)
    assert scorer.total(np.zeros((known["n"], known["n"]))) == pytest.approx(known["empty"][name], abs=1e-7)


def test_text_with_a_level_named_none_scores_as_its_codes():
    known = results("child")
    text, coded = BIC().bind(REFERENCE / "child_1000.csv"), BIC(cardinalities=known["card"]).bind(codes("child"))
    assert text.cardinalities.tolist() == list(known["card"].values())
    assert text.local("CardiacMixing", ["Disease"]) == pytest.approx(
        coded.local("CardiacMixing", ["Disease"]), abs=1e-9
    )


def test_bdeu_scores_equivalent_dags_alike():
    frame = codes("asia").iloc[:300, 4:]
    scorer = BDeu(ess=4.0).bind(frame)
    dags = graphs.enumerate_dags(4)
    classes = {}
    for dag, pattern in zip(dags, graphs.cpdag(dags), strict=True):
        classes.setdefault(pattern.tobytes(), []).append(scorer.total(dag))
    assert max(np.ptp(totals) for totals in classes.values()) < 1e-8
    # Negative control: K2 isn't score equivalent.
    k2 = K2().bind(frame)
    assert abs(k2.total([("either", "dysp")]) - k2.total([("dysp", "either")])) > 0.1


# Large tables


def random_table(n, rows, levels, seed=5):
    return pd.DataFrame(
        np.random.default_rng(seed).integers(levels, size=(rows, n)), columns=[f"x{i}" for i in range(n)]
    )


@pytest.mark.parametrize("name", SCORES)
def test_twenty_parents_and_fifty_thousand_rows(name):
    frame = random_table(21, 50_000, 4)
    scorer = SCORES[name]().bind(frame)
    scorer.local(0, [1])  # compiles
    began = time.process_time()
    value = scorer.local(0, range(1, 21))
    assert np.isfinite(value)
    assert time.process_time() - began < 3
    if name == "BIC":
        assert value == pytest.approx(-0.5 * np.log(50_000) * 3 * 4.0**20, rel=1e-9)
    else:
        # Every row is alone in its configuration, about which K2 and BDeu know nothing but the number of levels.
        assert value == pytest.approx(-50_000 * np.log(4), rel=1e-9)


@pytest.mark.parametrize("name", SCORES)
def test_configurations_without_number_stay_finite(name):
    """200 variables of 60 levels have more configurations than a float can count."""
    frame = random_table(200, 130, 60)
    scorer = SCORES[name](cardinalities={"x0": 60}).bind(frame)
    value = scorer.local(0, range(1, 200))
    if name == "BIC":
        assert -np.inf < value < -1e200
    else:
        assert value == pytest.approx(-130 * np.log(60), rel=1e-9)


@pytest.mark.parametrize("name", FORMULAS)
def test_columns_of_500_levels(name):
    score, formula = FORMULAS[name]
    rng = np.random.default_rng(8)
    many, few = rng.integers(500, size=3000), rng.integers(3, size=3000)
    other = np.where(rng.random(3000) < 0.7, many, rng.integers(500, size=3000))
    frame = pd.DataFrame({"many": many, "few": few, "other": other}).astype("category")
    r = [len(frame[column].cat.categories) for column in frame]
    table = np.column_stack([frame[column].cat.codes for column in frame])
    scorer = score.bind(frame)
    for node, parents in [(0, (2,)), (2, (0, 1)), (1, (0, 2)), (0, (1, 2))]:
        expected = plain_score_of_observed(table, r, node, parents, formula)
        assert scorer.local(node, parents) == pytest.approx(expected, rel=1e-10)
        np.testing.assert_allclose(scorer.table(node, parents)[-1], expected, rtol=1e-10)


def plain_score_of_observed(table, cardinalities, node, parents, formula):
    """As `plain_score`, where configurations that don't occur are too many to list: they add nothing."""
    counts = {}
    for row in table:
        counts.setdefault(tuple(row[list(parents)]), [0] * cardinalities[node])[row[node]] += 1
    q = prod(cardinalities[p] for p in parents)
    return formula(list(counts.values()), len(table), cardinalities[node], q)


def test_rows_that_repeat_count_as_often_as_they_occur(mixed):
    table, cardinalities = mixed
    frame = pd.DataFrame(np.repeat(table, 3, axis=0), columns=list("abcde"))
    scorer = K2(cardinalities=dict(zip("abcde", cardinalities, strict=True))).bind(frame)
    assert scorer.counted.codes.shape[1] < len(table) and scorer.n_rows == 270
    expected = plain_score(frame.to_numpy(), cardinalities, 2, (0, 1, 3), k2_of)
    assert scorer.local("c", ["a", "b", "d"]) == pytest.approx(expected, abs=1e-9)


def test_single_sets_tables_and_lists_agree_where_groups_are_counted_either_way():
    """Levels from 2 to 40 make both ways of counting take part."""
    rng = np.random.default_rng(4)
    frame = pd.DataFrame({f"x{r}": rng.integers(r, size=400) for r in (2, 3, 9, 25, 40)})
    for name in SCORES:
        scorer = SCORES[name]().bind(frame)
        for node in range(5):
            others = [i for i in range(5) if i != node]
            table = scorer.table(node, others)
            one_by_one = [
                scorer.local(node, [others[bit] for bit in range(4) if mask >> bit & 1]) for mask in range(16)
            ]
            np.testing.assert_allclose(table, one_by_one, rtol=1e-12)
            backwards = scorer.table(node, others[::-1])
            reverse = [int(f"{mask:04b}"[::-1], 2) for mask in range(16)]
            np.testing.assert_allclose(backwards[reverse], table, rtol=1e-12)


def test_affordable_parents():
    assert affordable_parents(8, 250) is None
    assert affordable_parents(20, 1000) is None
    assert affordable_parents(20, 5000) == 8
    # Never below 3, however long that takes.
    assert affordable_parents(200, 10**6) == 3
    few = gpn.scores.BDeu().bind(codes("asia"))
    assert few.default_max_parents is None
    sets = sum(20 * 5000 * len(list(combinations(range(19), size))) for size in range(9))
    assert sets <= _MAX_ROW_VISITS < sets + 20 * 5000 * len(list(combinations(range(19), 9)))


# What a table must be


@pytest.fixture
def frame():
    return pd.DataFrame({"site": ["b", "a", "c", "a"] * 5, "count": [0, 2, 2, 1, 0] * 4, "sick": [True, False] * 10})


def test_levels_of_all_kinds(frame):
    frame["grade"] = pd.Categorical(["low", "high"] * 10, categories=["low", "mid", "high"])
    assert BDeu().bind(frame).cardinalities.tolist() == [3, 3, 2, 3]
    given = BDeu(cardinalities={"site": 4, "count": 5, "sick": 2, "grade": 3})
    assert given.bind(frame).cardinalities.tolist() == [4, 5, 2, 3]
    sparse = frame.assign(count=frame["count"] * 10 + 7)
    assert K2().bind(sparse).local("count", ["site"]) == K2().bind(frame).local("count", ["site"])


def test_whole_numbers_with_a_cardinality_may_have_many_values():
    frame = pd.DataFrame({"x": np.arange(200) % 100, "y": [0, 1] * 100})
    scorer = K2(cardinalities={"x": 120}).bind(frame)
    assert scorer.cardinalities.tolist() == [120, 2]


BAD_TABLES = {
    "mixed": (
        lambda f: BDeu().bind(f.assign(x=0.5 * np.arange(20), y=np.arange(20) / 3)),
        "discrete scores need categories; columns 'x', 'y' are continuous: gpn.Table(data, discretise=3) "
        "cuts them into levels",
    ),
    "one continuous": (
        lambda f: K2().bind(f.assign(x=0.5 * np.arange(20))),
        "discrete scores need categories; column 'x' is continuous: gpn.Table(data, discretise=3) cuts it into levels",
    ),
    "many whole numbers": (
        lambda f: BDeu().bind(pd.concat([f] * 5).assign(age=20 + np.arange(100))),
        "whole numbers must have at most 64 values to be categories; column 'age' has more: gpn.Table(data, "
        "discretise=3) cuts it into levels, or give the cardinality",
    ),
    "unknown column": (
        lambda f: BIC(cardinalities={"cite": 3}).bind(f),
        "cardinalities must be given for columns; 'cite' is not one",
    ),
    "fewer than observed": (
        lambda f: BIC(cardinalities={"site": 2}).bind(f),
        "a cardinality must count every level; column 'site' has 3, received 2",
    ),
    "code out of range": (
        lambda f: K2(cardinalities={"count": 2}).bind(f),
        "whole numbers with a cardinality must be codes 0 to 1; column 'count' holds 2",
    ),
    "negative code": (
        lambda f: K2(cardinalities={"count": 3}).bind(f.assign(count=f["count"] - 1)),
        "whole numbers with a cardinality must be codes 0 to 2; column 'count' holds -1",
    ),
    "statistics": (
        lambda f: BDeu().bind(SufficientStatistics(9, [0, 0], np.eye(2), ["x", "y"])),
        "discrete scores need the rows; received SufficientStatistics",
    ),
    "one level": (
        lambda f: BDeu().bind(f.assign(site="a")),
        "every column must vary; column 'site' is constant: gpn.Table(data, drop=['site']) leaves it out",
    ),
    "missing": (
        lambda f: BDeu().bind(f.assign(site=f["site"].where(f["site"] != "c"))),
        "every value must be present; 5 are missing, in 5 of 20 rows and 1 of 3 columns ('site' in rows 2, 6, 10, 14 "
        "and 18): gpn.Table(data, missing='drop') drops the rows; for sampling, "
        "gpn.Table(data, missing='impute') draws the values along with the networks",
    ),
    "ess": (lambda f: BDeu(ess=0), "ess must be positive and finite; received 0"),
    "ess nan": (lambda f: BDeu(ess=np.nan), "ess must be positive and finite; received nan"),
    "ess infinite": (lambda f: BDeu(ess=np.inf), "ess must be positive and finite; received inf"),
    "form": (lambda f: K2(form="gamma"), "form must be 'exact' or 'stirling'; received 'gamma'"),
    "kind": (lambda f: BIC(kind="linear"), "kind must be one of auto, discrete, gaussian, mixed; received 'linear'"),
    "gaussian text": (
        lambda f: BIC(kind="gaussian").bind(f),
        "the Gaussian BIC score needs numbers; column 'site' holds text such as 'a': gpn.Table(data, "
        "drop=['site']) leaves it out",
    ),
    "gaussian cardinalities": (
        lambda f: BIC(cardinalities={"site": 3}, kind="gaussian"),
        "cardinalities are those of discrete columns; received some with kind='gaussian'",
    ),
    "no mapping": (
        lambda f: BDeu(cardinalities=[2, 3]),
        "cardinalities must map column names to numbers of levels; received list",
    ),
    "one": (
        lambda f: BDeu(cardinalities={"site": 1}),
        f"a cardinality must be a whole number from 2 to {MAX_LEVELS}; received 1 for 'site'",
    ),
    "no number": (
        lambda f: BDeu(cardinalities={"site": 2.5}),
        f"a cardinality must be a whole number from 2 to {MAX_LEVELS}; received 2.5 for 'site'",
    ),
    "too many levels": (
        lambda f: BDeu().bind(f.assign(site=pd.Categorical(f["site"], ["a", "b", "c", *range(MAX_LEVELS)]))),
        f"a column can have at most {MAX_LEVELS} levels; column 'site' has {MAX_LEVELS + 3}",
    ),
}


@pytest.mark.parametrize(("make", "message"), BAD_TABLES.values(), ids=BAD_TABLES)
def test_bad_tables_and_settings_are_refused_in_one_line(frame, make, message):
    with pytest.raises(ValueError) as error:
        make(frame)
    assert str(error.value) == message


def test_columns_of_names_are_warned_of(frame):
    frame = pd.concat([frame] * 2).assign(patient=[f"p{i}" for i in range(40)])
    with pytest.warns(UserWarning, match="^column 'patient' has 40 levels in 40 rows: few values repeat, so"):
        scorer = BDeu().bind(frame, kinds={"patient": "category"})
    # Every patient is a configuration of one row.
    assert scorer.local("site", ["patient"]) == pytest.approx(-40 * np.log(3), rel=1e-9)


def test_settings_are_shown_and_told_apart():
    assert repr(BDeu(ess=2, cardinalities={"a": 3})) == "BDeu(ess=2.0, cardinalities={'a': 3})"
    assert repr(K2()) == "K2(cardinalities=None, form='exact')"
    made = [BIC(), BIC(kind="discrete"), BDeu(), BDeu(ess=2), BDeu(cardinalities={"a": 2}), K2(), K2(form="stirling")]
    assert len({score.fingerprint for score in made}) == len(made)

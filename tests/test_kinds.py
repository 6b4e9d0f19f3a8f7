"""What columns are: inferred or stated, in order or not; in scores, fingerprints, files, reports and on the screen."""

import html

import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes import Dataset, scores
from gpn_bayes.cli.inputs import read_kinds
from gpn_bayes.data.identifiers import named_so, numbers_rows
from gpn_bayes.scores.mixed import categories_among, either_in_words, kinds_in_words
from tests.command_line import call

LEVELS = ["low", "mid", "high"]


@pytest.fixture
def frame():
    rng = np.random.default_rng(4)
    sex, grade = rng.choice(["f", "m"], 60), rng.choice(LEVELS, 60)
    age = rng.normal(50, 9, 60)
    return pd.DataFrame(
        {
            "sex": sex,
            "grade": grade,
            "age": age,
            "ill": rng.integers(0, 2, 60),
            "visits": rng.integers(2, 9, 60),
            "bmi": 0.1 * age + 2 * (sex == "f") + rng.normal(size=60),
        }
    )


def refusal(data, **settings) -> str:
    with pytest.raises(ValueError) as error:
        Dataset.read(data, **settings)
    assert "\n" not in str(error.value)
    return str(error.value)


# As a table has them


def test_kinds_are_inferred_unless_they_are_stated(frame):
    assert Dataset.read(frame).kinds == (
        "categorical", "categorical", "continuous", "integer", "integer", "continuous"
    )  # fmt: skip
    stated = {"sex": "binary", "grade": LEVELS, "ill": "number", "visits": "ordered", "age": "number"}
    data = Dataset.read(frame, kinds=stated)
    assert data.kinds == ("categorical", "ordered", "continuous", "continuous", "ordered", "continuous")
    assert data.levels[1] == tuple(LEVELS) and data.levels[3] is None
    assert [LEVELS[int(code)] for code in data.values[:, 1]] == frame["grade"].tolist()
    assert data.levels[4] == tuple(range(2, 9))
    assert (np.array(data.levels[4])[data.values[:, 4].astype(int)] == frame["visits"]).all()


def test_pandas_categories_are_ordered_if_pandas_says_so(frame):
    ordered = frame.assign(grade=pd.Categorical(frame["grade"], LEVELS, ordered=True))
    data = Dataset.read(ordered)
    assert data.kinds[1] == "ordered" and data.levels[1] == tuple(LEVELS)
    assert data.fingerprint == Dataset.read(frame, kinds={"grade": LEVELS}).fingerprint
    assert Dataset.read(ordered, kinds={"grade": "category"}).kinds[1] == "categorical"
    assert Dataset.read(ordered, kinds={"grade": LEVELS[::-1]}).levels[1] == tuple(LEVELS[::-1])
    coded = frame.assign(visits=frame["visits"].astype("category"))
    assert Dataset.read(coded, kinds={"visits": "ordered"}).levels[4] == tuple(range(2, 9))
    assert Dataset.read(coded, kinds={"visits": "number"}).fingerprint == (
        Dataset.read(frame, kinds={"visits": "number"}).fingerprint
    )


def test_numbers_of_any_type_have_the_levels_that_are_listed(frame):
    for visits in (frame["visits"], frame["visits"].astype(float), frame["visits"].astype(str)):
        data = Dataset.read(frame.assign(visits=visits), kinds={"visits": [8, 7, 6, 5, 4, 3, 2]})
        assert data.levels[4] == tuple("8765432")
        assert (8 - data.values[:, 4] == frame["visits"]).all()


WHOLE = {
    "int8": np.array([0, 1, 1, 0, 1], dtype=np.int8),
    "int64": np.array([0, 1, 1, 0, 1]),
    "unsigned": np.array([0, 1, 1, 0, 1], dtype=np.uint8),
    "float": np.array([0.0, 1.0, 1.0, 0.0, 1.0]),
    "float32": np.array([0, 1, 1, 0, 1], dtype=np.float32),
    "nullable": pd.array([0, 1, 1, 0, 1], dtype="Int64"),
    "nullable float": pd.array([0, 1, 1, 0, 1], dtype="Float64"),
    "objects": np.array([0, 1.0, 1, 0.0, 1], dtype=object),
}


@pytest.mark.parametrize("treat", WHOLE.values(), ids=WHOLE)
def test_the_values_of_a_column_decide_not_how_they_are_stored(treat):
    table = pd.DataFrame({"treat": treat, "x": [0.5, 1.5, 1.0, 2.5, 0.0]})
    data = Dataset.read(table)
    assert data.kinds == ("integer", "continuous") and data.levels[0] == (0, 1)
    assert data.fingerprint == Dataset.read(table.assign(treat=WHOLE["int8"])).fingerprint
    assert categories_among(data).tolist() == [True, False]
    # A fraction makes it a measurement; stating what it is comes before all that.
    assert Dataset.read(table.assign(treat=data.values[:, 0] * 0.5)).kinds[0] == "continuous"
    number, category = (Dataset.read(table, kinds={"treat": kind}) for kind in ("number", "category"))
    assert number.kinds[0] == "continuous" and category.kinds[0] == "categorical" and category.levels[0] == ("0", "1")


def test_truth_values_and_numbers_have_the_same_kind():
    table = pd.DataFrame({"treat": [0, 1, 1, 0, 1], "x": [0.5, 1.5, 1.0, 2.5, 0.0]})
    for treat in (
        table["treat"].astype(bool),
        table["treat"].astype("boolean"),
        table["treat"].astype(bool).astype(object),
    ):
        data = Dataset.read(table.assign(treat=treat))
        assert data.kinds[0] == "integer" and categories_among(data)[0]


@pytest.mark.parametrize("missing", ["drop", "impute"])
def test_missing_values_leave_whole_numbers_what_they_are(missing, tmp_path):
    """They are floats to pandas then."""
    table = pd.DataFrame({"treat": [0, 1, None, 0, 1], "x": [0.5, 1.5, 1.0, None, 0.0]})
    assert table["treat"].dtype == float
    table.to_csv(tmp_path / "floats.csv", index=False)
    table.astype({"treat": "Int64"}).to_csv(tmp_path / "whole.csv", index=False)
    assert "1.0" in (tmp_path / "floats.csv").read_text() and "1.0," not in (tmp_path / "whole.csv").read_text()
    read = [Dataset.read(given, missing=missing) for given in (table, tmp_path / "floats.csv", tmp_path / "whole.csv")]
    assert [data.kinds for data in read] == [("integer", "continuous")] * 3
    assert len({data.fingerprint for data in read}) == 1


def test_beyond_what_floats_hold_exactly_all_of_them_are_whole():
    """So that it says nothing: they are measurements."""
    table = pd.DataFrame({"large": [1e90, 2e90, 1e90], "x": [0.5, 1.5, 1.0]})
    assert Dataset.read(table).kinds[0] == "continuous"


def test_posteriors_don_t_depend_on_how_numbers_are_stored(frame):
    """As floats, `ill` was a number, which no category may have as its cause."""
    posts = [
        gpn.sample(frame.astype({"ill": kind}), "cg", draws=50, random_seed=1, progressbar=False)
        for kind in ("int8", float, bool)
    ]
    for post in posts[1:]:
        assert post.settings["kinds"] == posts[0].settings["kinds"]
        np.testing.assert_array_equal(post.edge_probabilities(), posts[0].edge_probabilities())


def test_numbers_that_are_given_as_text_become_numbers_if_it_is_stated(frame):
    texts = frame.assign(age=frame["age"].map("{:.17g}".format))
    assert "pandas.to_numeric converts it" in refusal(texts)
    np.testing.assert_allclose(Dataset.read(texts, kinds={"age": "number"}).values[:, 2], frame["age"])


def test_the_fingerprint_changes_with_the_kinds_alone(frame):
    stated = [
        None, {"grade": LEVELS}, {"grade": LEVELS[::-1]}, {"ill": "number"}, {"ill": "category"}, {"ill": "ordered"},
        {"visits": "number"},
    ]  # fmt: skip
    assert len({Dataset.read(frame, kinds=kinds).fingerprint for kinds in stated}) == len(stated)
    same = Dataset.read(frame, kinds={"age": "number", "sex": "category", "grade": "category"})
    assert same.fingerprint == Dataset.read(frame).fingerprint
    assert Dataset.read(frame, kinds={"visits": "category"}).fingerprint == (
        Dataset.read(frame, categories="visits").fingerprint
    )


REFUSED = {
    "unknown column": ({"grde": "category"}, "kinds must name columns of the table; received 'grde', not one of 'sex'"),
    "unknown kind": (
        {"grade": "categorical"},
        "the kind of 'grade' must be one of number, category, ordered, binary; received 'categorical'",
    ),
    "text as number": (
        {"sex": "number"},
        "a column of kind 'number' must hold numbers; column 'sex' holds texts such as ",
    ),
    "three levels": ({"grade": "binary"}, "a column of kind 'binary' must have two values; column 'grade' has 3"),
    "text without order": (
        {"grade": "ordered"},
        "the order of texts must be stated; column 'grade' holds texts such as ",
    ),
    "fractions": ({"age": "ordered"}, "an ordered column must hold whole numbers, or levels whose order is stated; "),
    "level too many": (
        {"grade": [*LEVELS, "worst"]},
        "the levels of an ordered column must be those that occur; column 'grade' never holds 'worst'",
    ),
    "level too few": (
        {"grade": LEVELS[:2]},
        "the levels of an ordered column must be all that occur; column 'grade' also holds 'high' in rows ",
    ),
    "level twice": (
        {"grade": ["low", "low"]},
        "an ordered column needs two or more different levels; received ['low', 'low'] for 'grade'",
    ),
    "no mapping": ("grade", "kinds must map column names to kinds; received str"),
}


@pytest.mark.parametrize(("kinds", "message"), REFUSED.values(), ids=REFUSED)
def test_what_contradicts_the_table_is_refused_in_one_line(frame, kinds, message):
    assert refusal(frame, kinds=kinds).startswith(message)


def test_kinds_are_stated_once_and_for_tables(frame):
    twice = refusal(frame, kinds={"grade": LEVELS}, categories="grade")
    assert twice == "a column's kind must be given once; 'grade' is in both categories and kinds"
    read = refusal(Dataset.read(frame), kinds={"grade": LEVELS})
    assert read == "kinds is for tables that aren't read yet; received a Dataset"


def test_more_levels_than_a_category_may_have_are_refused(frame):
    table = pd.concat([frame] * 3, ignore_index=True).assign(age=np.arange(180) % 90)
    assert refusal(table, kinds={"age": "ordered"}) == (
        "an ordered column must have at most 64 levels; column 'age' has 90: gpn.Table(data, kinds={'age': "
        "'number'}) takes it as a number"
    )


# In scores


def test_mixed_scores_take_columns_for_what_they_are_stated_to_be(frame):
    assert categories_among(Dataset.read(frame)).tolist() == [True, True, False, True, False, False]
    stated = Dataset.read(frame, kinds={"ill": "number", "visits": "category", "grade": LEVELS})
    assert categories_among(stated).tolist() == [True, True, False, False, True, False]


def test_an_order_changes_no_score_of_categories(frame):
    """Levels have other codes then; the counts are the same."""
    plain, ordered = (scores.CG().bind(frame, kinds=kinds) for kinds in (None, {"grade": LEVELS}))
    for parents in ([], ["grade"], ["sex", "grade", "age"]):
        assert ordered.local("bmi", parents) == pytest.approx(plain.local("bmi", parents), rel=1e-12)
    assert ordered.local("grade", ["sex"]) == pytest.approx(plain.local("grade", ["sex"]), rel=1e-12)
    only = frame[["sex", "grade", "ill"]]
    for score in (scores.BDeu(), scores.K2(), scores.BIC()):
        plain, ordered = (score.bind(only, kinds=kinds) for kinds in (None, {"grade": LEVELS}))
        assert ordered.local("grade", ["sex"]) == pytest.approx(plain.local("grade", ["sex"]), rel=1e-12)
        assert ordered.levels[1] == tuple(LEVELS)


def test_scores_of_numbers_refuse_ordered_columns_by_name(frame):
    with pytest.raises(ValueError, match="^the BGe score needs numbers; column 'visits' holds categories such as 2: "):
        scores.BGe().bind(frame.drop(columns=["sex", "grade"]), kinds={"visits": "ordered"})
    numbers = frame.drop(columns=["sex", "grade"])
    assert scores.BGe().bind(numbers, kinds={"visits": "number"}).names == tuple(numbers)


def test_a_number_of_two_values_is_none_of_the_levels_of_bic(frame):
    table = frame[["sex", "ill"]]
    assert scores.BIC().bind(table).discrete
    assert not scores.BIC().bind(table, kinds={"ill": "number"}).discrete


@pytest.mark.parametrize("score", [scores.BIC, scores.BDeu, scores.K2])
def test_a_column_may_be_constant_where_its_cardinality_is_given(frame, score):
    """As a parent it adds configurations that are never seen; as a child it has the score of its two levels."""
    table = frame[["ill", "visits"]].assign(theft=0)
    with pytest.raises(ValueError, match="^every column must vary; column 'theft' is constant"):
        score().bind(table)
    scorer = score(cardinalities={"theft": 2}).bind(table)
    as_category = pd.DataFrame({"ill": frame["ill"], "theft": [0] * 59 + [1], "visits": frame["visits"]})
    assert scorer.cardinalities.tolist() == [2, 7, 2]
    assert np.isfinite(scorer.local("theft", ["ill"])) and np.isfinite(scorer.local("ill", ["theft"]))
    # Without parents: n rows of one level out of two.
    n = len(table)
    expected = {
        "bic": -0.5 * np.log(n),
        "bdeu": sum(np.log((0.5 + k) / (1 + k)) for k in range(n)),
        "k2": -np.log(n + 1),
    }[scorer.score.name]
    assert scorer.local("theft", []) == pytest.approx(expected, rel=1e-10)
    assert scorer.local("theft", []) > score().bind(as_category).local("theft", [])
    given = score(cardinalities={"theft": 2})
    post = gpn.sample(table, given, draws=20, random_seed=1, progressbar=False, kinds={"ill": "binary"})
    assert post.names == ("ill", "visits", "theft")
    assert "theft" in gpn.estimators.HillClimbing(score=given).fit(table).graph_
    assert gpn.sample(table, given, draws=20, random_seed=1, progressbar=False).log_score.shape == (4, 20)


# In posteriors, reports and on the screen


def test_posteriors_keep_kinds_and_say_them(frame, tmp_path):
    kinds = {"grade": LEVELS, "ill": "number"}
    post = gpn.sample(frame, "cg", kinds=kinds, draws=50, random_seed=1, progressbar=False)
    text = "4 numbers, 1 category (sex), 1 ordered (grade)"
    assert post.settings["kinds"] == text
    post.save(tmp_path / "run.nc")
    again = gpn.load(tmp_path / "run.nc")
    assert again.data.kinds == post.data.kinds and again.data.levels[1] == tuple(LEVELS)
    again.report(tmp_path / "report.html", curves=0)
    assert f"<p>The table has {text}.</p>" in (tmp_path / "report.html").read_text(encoding="utf-8")


EITHER = (
    "whole numbers that could be either: visits (here a number), ill (here a category); gpn.Table(data, "
    "kinds={'visits': 'category', 'ill': 'number'}) says otherwise"
)


def test_posteriors_name_columns_that_could_be_either(frame, tmp_path, capsys):
    """In repr, in the notebook's cell, in the report and before the run."""
    settings = {"draws": 50, "random_seed": 1}
    post = gpn.sample(frame, "cg", **settings)
    text = "3 numbers, 3 categories (sex, grade, ill)"
    assert capsys.readouterr().err.splitlines()[:2] == [text, EITHER]
    post.save(tmp_path / "run.nc")
    for own in (post, gpn.load(tmp_path / "run.nc")):
        assert f"; {text}; {EITHER}>" in repr(own)
        cell = html.unescape(own._repr_html_())
        assert text in cell and EITHER in cell
    post.report(tmp_path / "report.html", curves=0)
    page = html.unescape((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert "W" + EITHER[1:].split("; gpn.Table")[0] in page and "--kinds visits=category" in page
    stated = gpn.sample(frame, "cg", kinds={"visits": "number", "ill": "binary"}, progressbar=False, **settings)
    assert repr(stated).endswith(f"; {text}>")


def test_truth_values_and_long_scales_are_not_asked_about(frame):
    table = frame.assign(ill=frame["ill"] == 1, visits=np.arange(60) // 2)
    assert either_in_words(scores.CG().bind(table), Dataset.read(table)) == ""


def test_scores_of_one_kind_leave_no_choice(frame):
    """Under them a column is a number, or a category, whatever could be said of it."""
    numbers, levels = frame[["age", "ill", "bmi"]], frame[["sex", "ill", "visits"]]
    for score, table in (("bge", numbers), ("bdeu", levels), ("k2", levels)):
        assert either_in_words(scores.by_name(score).bind(table), Dataset.read(table)) == ""
        assert " variables, " in repr(post := gpn.sample(table, score, draws=20, random_seed=1, progressbar=False))
        assert "either" not in repr(post) and " number" not in repr(post)


def test_processes_say_that_whole_numbers_of_two_values_are_categories(frame):
    """Also where no column is text."""
    table = Dataset.read(frame[["age", "ill", "bmi"]])
    assert kinds_in_words(scores.GP().bind(table), table) == "2 numbers, 1 category (ill)"
    assert "ill (here a category)" in either_in_words(scores.GP().bind(table), table)
    # The Gaussian BIC takes all of them as numbers.
    assert kinds_in_words(scores.BIC().bind(table), table) == ""
    assert "ill (here a number)" in either_in_words(scores.BIC().bind(table), table)


def test_reports_of_learners_say_kinds(frame, tmp_path):
    mixed = gpn.estimators.HillClimbing(score="cg").fit(frame).report(tmp_path / "mixed.html")
    assert "<p>The table has 3 numbers, 3 categories (sex, grade, ill).</p>" in mixed.read_text(encoding="utf-8")
    numbers = gpn.estimators.HillClimbing(score="bge").fit(frame[["age", "bmi"]]).report(tmp_path / "numbers.html")
    assert "The table has" not in numbers.read_text(encoding="utf-8")


def test_other_tables_have_nothing_to_say(frame):
    numbers = gpn.sample(frame[["age", "ill", "bmi"]], draws=20, random_seed=1, progressbar=False)
    levels = gpn.sample(frame[["sex", "ill", "visits"]], "bdeu", draws=20, random_seed=1, progressbar=False)
    assert "kinds" not in numbers.settings and "kinds" not in levels.settings


def test_the_command_line_takes_kinds_from_a_file_or_as_they_are(frame, tmp_path, capsys):
    frame.to_csv(tmp_path / "table.csv", index=False)
    (tmp_path / "kinds.csv").write_text("name,kind,levels\ngrade,ordered,low < mid < high\nill,Number,\n")
    listed = "grade=low|mid|high,ill=number"
    assert read_kinds(str(tmp_path / "kinds.csv")) == read_kinds(listed) == {"grade": LEVELS, "ill": "number"}
    said = []
    for out, kinds in (("a", tmp_path / "kinds.csv"), ("b", listed), ("c", "ill=category")):
        code, _, messages = call(
            capsys, "run", tmp_path / "table.csv", "--score", "cg", "--kinds", kinds, "--out", tmp_path / out,
            "--draws", 20, "--quiet",
        )  # fmt: skip
        assert code == 0, messages
        said.append((messages.splitlines()[0], gpn.load(tmp_path / out / "posterior.nc").data.fingerprint))
    assert said[0] == said[1]
    assert said[0][0] == "4 numbers, 1 category (sex), 1 ordered (grade)"
    assert said[2][0] == "3 numbers, 3 categories (sex, grade, ill)" and said[2][1] != said[1][1]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("name,sort\nill,number\n", "a file of kinds has the columns name, kind and perhaps levels; it has name, sort"),
        ("name,kind\nill,number\nill,binary\n", "a column's kind must be given once; 'ill' is listed twice"),
        ("name,kind,levels\nill,number,0<1\n", "only ordered columns have levels in order; 'ill' is 'number' and has"),
        ("", "the file must hold a table; it is empty"),
    ],
)
def test_files_of_kinds_that_are_wrong_are_named(content, message, tmp_path):
    path = tmp_path / "kinds.csv"
    path.write_text(content)
    with pytest.raises(ValueError) as error:
        read_kinds(str(path))
    assert str(error.value).startswith(f"--kinds {path}: {message}")
    with pytest.raises(ValueError, match="^--kinds: the file must exist; 'nowhere.csv' is not a file$"):
        read_kinds("nowhere.csv")


# Identifiers


def test_identifiers_are_refused_all_at_once_and_kept_if_it_is_stated(frame):
    table = frame.assign(row=range(1, 61), code=[f"P{n:02}" for n in range(60)], a=1, b="x")
    with pytest.raises(ValueError) as error:
        Dataset.read(table)
    assert str(error.value).splitlines()[1:] == [
        "  columns 'a', 'b' are constant: gpn.Table(data, drop=['a', 'b']) leaves them out",
        "  columns 'code', 'row' hold a different text or whole number in every row: gpn.Table(data, drop=['code', "
        "'row']) leaves them out, gpn.Table(data, kinds={'code': 'category', 'row': 'number'}) keeps them",
    ]
    kept = Dataset.read(table, drop=["a", "b"], kinds={"code": "category", "row": "number"})
    assert kept.kinds[-2:] == ("continuous", "categorical")
    assert Dataset.read(table, drop=["a", "b", "code", "row"]).fingerprint == Dataset.read(frame).fingerprint


def test_rows_that_are_dropped_leave_an_identifier_what_it_is(frame):
    table = frame.assign(n=range(60))
    table.loc[[3, 30], "age"] = None
    assert "column 'n' holds a different whole number in every row" in refusal(table, missing="drop")


@pytest.mark.parametrize(
    ("name", "values", "refused"),
    [
        ("n", range(20), True),
        ("n", range(1, 21), True),
        ("n", range(1, 9), False),  # in few rows all values may well differ
        ("year", range(1990, 2010), False),
        ("dose", range(0, 100, 5), False),
        ("weight", [71, 64, 88, 90, 55, 61, 77, 80, 102, 69], False),
        ("sample", [71, 64, 88, 90, 55, 61, 77, 80, 102, 69], True),
        ("sample", [71, 64, 88, 90, 55, 61, 77, 80, 102, 71], False),
        ("Patient-ID", [171, 64, 88, 90, 55, 61, 77, 80, 102, 71], True),
        ("acid", [171, 64, 88, 90, 55, 61, 77, 80, 102, 71], False),
        ("body mass index", [31, 24, 28, 20, 25, 21, 27, 30, 32, 29], False),
    ],
)
def test_whole_numbers_that_differ_are_identifiers_by_their_order_or_name(name, values, refused):
    assert numbers_rows(name, pd.Series(list(values))) == refused
    rng = np.random.default_rng(1)
    table = pd.DataFrame({name: list(values), "x": rng.normal(size=len(values)), "y": rng.normal(size=len(values))})
    if refused:
        assert repr(name) in refusal(table)
    else:
        assert Dataset.read(table).kinds[0] == "integer"
    # With a decimal point they are the same numbers.
    as_floats = table.astype(float)
    assert numbers_rows(name, as_floats[name]) == refused
    if not refused:
        assert Dataset.read(as_floats).fingerprint == Dataset.read(table).fingerprint
    # Half of a unit farther they number nothing.
    assert not numbers_rows(name, as_floats[name] + 0.5)


def test_names_of_identifiers():
    named = ["id", "ID", "patient_id", "patientId", "Subject No.", "sample", "index", "record number", "UUID", "mrn"]
    others = ["acid", "lipid", "index of mass", "particle number", "NO", "cases", "Sid", "valid", "pH", "sampled"]
    assert all(map(named_so, named)) and not any(map(named_so, others))

"""The reports of learners and bootstraps: what they hold and leave out, and that they work in a real browser."""

import json
import re
from pathlib import Path

import networkx as nx
import numpy as np
import pytest

import gpn_bayes as gpn
from gpn_bayes.cli import main
from gpn_bayes.estimators.bootstrapping import BootstrapResult
from gpn_bayes.estimators.edge_tables import edge_table
from tests import browser as browsers
from tests.reports import AWKWARD, awkward_posterior, read_numbers

pytestmark = pytest.mark.more("repeats whole searches for every learner and setting")

DATA = gpn.simulate.linear(nx.DiGraph([("a", "b"), ("c", "b"), ("b", "d"), ("e", "f")]), 200, random_seed=1)
POSTERIOR_ONLY = ('id="what-if"', 'id="sampling"', 'id="trace"', "R-hat", "Effective draws")


@pytest.fixture(scope="module")
def reports(tmp_path_factory) -> dict[str, Path]:
    """Return the report of every kind of estimate."""
    folder = tmp_path_factory.mktemp("reports")
    bootstrap = gpn.bootstrap(gpn.estimators.PC(alpha=0.01), DATA, n=20, random_seed=1, progressbar=False)
    rows = gpn.simulate.linear(np.triu(np.ones((6, 6)), 1), 60, random_seed=1).set_axis(list(AWKWARD), axis=1)
    found = {
        "hc": gpn.estimators.HillClimbing(score="bge", random_state=1).fit(DATA),
        "pc": gpn.estimators.PC(alpha=0.01).fit(DATA),
        "notears": gpn.estimators.NOTEARS(lambda1=0.05, random_state=1).fit(DATA / DATA.std()),
        "bootstrap": bootstrap,
        "awkward": gpn.estimators.HillClimbing(score="bge").fit(rows),
        "awkward bootstrap": BootstrapResult(AWKWARD, awkward_posterior().parents[:1], "PC(alpha='<i>')"),
    }
    return {name: own.report(folder / f"{name}.html") for name, own in found.items()}


def visible(path: Path) -> str:
    """Return the text of a page without its scripts and styles."""
    text = path.read_text(encoding="utf-8")
    return re.sub(r"<[^>]*>", " ", re.sub(r"<(script|style).*?</\1>", " ", text, flags=re.S))


@pytest.mark.parametrize("name", ["hc", "pc", "notears", "bootstrap"])
def test_what_only_posteriors_have_is_left_out(reports, name):
    text = reports[name].read_text(encoding="utf-8")
    body = re.sub(r"<(script|style).*?</\1>", " ", text, flags=re.S)
    assert not [part for part in POSTERIOR_ONLY if part in body]
    assert "<!-- only" not in text and "$" not in visible(reports[name])
    assert ('id="ask"' in body) == (name == "bootstrap") and ('id="threshold"' in body) == (name == "bootstrap")


def test_a_posterior_has_all_of_it(tmp_path):
    """Negative control."""
    post = gpn.sample(DATA, score="bge", draws=20, random_seed=1, progressbar=False)
    body = post.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert all(part in body for part in POSTERIOR_ONLY) and 'id="caveats"' not in body


def test_edges_weights_and_score_are_there(reports):
    learner = gpn.estimators.HillClimbing(score="bge", random_state=1).fit(DATA)
    listed = read_numbers(reports["hc"])["listed"]
    table = edge_table(learner)
    assert [(row["parent"], row["child"]) for row in listed] == list(zip(table["parent"], table["child"], strict=True))
    assert [row["weight"] for row in listed] == table["weight"].tolist() and len(listed) > 2
    text = visible(reports["hc"])
    assert f"Its log score (BGe) is {learner.log_score_:,.3f}." in text
    assert "est = gpn.estimators.HillClimbing(score=&#x27;bge&#x27;, random_state=1).fit(df)" in text
    assert "without a seed" not in text and "200 rows · HillClimbing · BGe score" in text
    assert "leaves open the direction of" in text


def test_undirected_edges_are_called_so(reports):
    numbers = read_numbers(reports["pc"])
    kinds = {link["direction"] for link in numbers["network"]["links"]}
    undirected = sum(row["type"] == "undirected" for row in numbers["listed"])
    assert undirected > 0 and "open" in kinds and f"{undirected} of them without a direction." in visible(reports["pc"])
    assert numbers["columns"]["further"] == ["type"] and "log score" not in visible(reports["pc"])


def test_frequencies_are_never_called_probabilities(reports):
    boot = gpn.bootstrap(gpn.estimators.PC(alpha=0.01), DATA, n=20, random_seed=1, progressbar=False)
    for name in ("bootstrap", "awkward bootstrap"):
        text = visible(reports[name]).lower()
        assert "probabilit" not in text and "frequency" in text and "resamples" in text
        numbers = read_numbers(reports[name])
        words = json.dumps(numbers["words"]) + json.dumps(numbers["trust"])
        assert "probabilit" not in words.replace("order_probability", "")  # the method's name
    edges = read_numbers(reports["bootstrap"])["edges"]
    expected = boot.edge_probabilities().to_numpy().ravel()
    assert edges["probability"] == pytest.approx(expected, abs=1e-6) and expected.max() > 0.5


def test_awkward_names_stay_text(reports):
    for name in ("awkward", "awkward bootstrap"):
        text = reports[name].read_text(encoding="utf-8")
        assert "<script>alert" not in text and "<b>raf" not in text and "<i>" not in text


def test_nothing_is_overwritten_and_unfitted_learners_are_refused(reports, tmp_path):
    learner = gpn.estimators.PC(alpha=0.01)
    with pytest.raises(ValueError, match="^a learner must be fitted before it is reported; PC isn't: call fit first$"):
        learner.report(tmp_path / "report.html")
    learner.fit(DATA)
    with pytest.raises(ValueError, match="only replaced with overwrite=True"):
        learner.report(reports["pc"])
    assert learner.report(reports["pc"], overwrite=True) == reports["pc"]


def test_a_series_shows_its_lags(tmp_path):
    series = gpn.simulate.svar(nx.DiGraph([("rain", "flow")]), [[[1, 0], [0, 1]]], 200, random_seed=1)
    path = gpn.estimators.DYNOTEARS(random_state=1).fit(series).report(tmp_path / "report.html")
    assert "flow[t-1]" in read_numbers(path)["names"] and "Rows are independent" not in visible(path)


def test_the_command_line_writes_it_beside_the_others(tmp_path):
    DATA.to_csv(tmp_path / "data.csv", index=False)
    with pytest.raises(SystemExit) as end:
        out = str(tmp_path / "out")
        main(["estimate", str(tmp_path / "data.csv"), "--method", "pc", "--score", "bge", "--out", out, "-q"])
    assert not end.value.code
    assert {file.name for file in (tmp_path / "out").iterdir()} == {"report.html", "edges.csv", "estimate.json"}
    text = visible(tmp_path / "out" / "report.html")
    score = json.loads((tmp_path / "out" / "estimate.json").read_text())["log_score"]
    assert f"Its log score (BGe) is {score:,.3f}." in text and "estimate" in text and "--method pc" in text


# In a browser


@pytest.fixture(scope="module")
def browser():
    with browsers.chromium() as found:
        yield found


@pytest.mark.parametrize("scheme", [browsers.LIGHT, browsers.DARK])
@pytest.mark.parametrize("width", [1400, 390])
@pytest.mark.parametrize("name", ["hc", "pc", "notears", "bootstrap", "awkward", "awkward bootstrap"])
def test_pages_are_alive(browser, reports, name, width, scheme):
    browsers.resize(browser, width)
    browsers.prefer(browser, scheme)
    browser.get("about:blank")
    browsers.requests(browser)
    browser.get_log("browser")
    browser.get(reports[name].as_uri())
    numbers = read_numbers(reports[name])

    def texts(selector):
        return [element.text for element in browser.find_elements("css selector", selector)]

    assert len(texts("#network .node")) == 6 and len(texts("#network .link")) == len(numbers["network"]["links"]) > 0
    assert browser.execute_script("return document.documentElement.scrollWidth") <= width
    assert browser.execute_script(browsers.CONTRAST)[0] >= 4.5
    rows = len(numbers["listed"]) if "listed" in numbers else 25
    assert len(texts("#edges tbody tr")) == rows
    browser.find_element("css selector", "#as-list").click()
    assert len(texts("#list li")) > 0
    browser.find_element("css selector", "#as-drawing").click()
    browser.execute_script("const s = arguments[0]; s.value = '1'; s.dispatchEvent(new Event('change'))",
                           browser.find_element("css selector", "#variable"))  # fmt: skip
    shown = texts("#details h3")
    assert shown[:2] == ["Parents", "Children"] or shown[:1] == ["Parents"]
    assert ("Most frequent parent sets" in shown) == ("bootstrap" in name)
    if "bootstrap" in name:
        assert "There is an edge" in texts("#answer")[0]
        assert "probabilit" not in browser.find_element("css selector", "body").text.lower()
    csv = browser.execute_script("return document.querySelector('#edges thead').textContent")
    assert ("Frequency" in csv) == ("bootstrap" in name)
    assert browsers.requests(browser) == [reports[name].as_uri()] and browser.get_log("browser") == []

"""The demo's report in a real browser without a network: it works, on screens and phones, light and dark."""

import csv
import io
import re
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes.cli import main
from gpn_bayes.cli.folder import edges_csv
from tests import browser as browsers
from tests.reports import AWKWARD, awkward_posterior, made_posterior

pytestmark = pytest.mark.more("needs a browser")


@pytest.fixture(scope="module")
def browser():
    with browsers.chromium() as found:
        yield found


@pytest.fixture(scope="module")
def demo(browser, tmp_path_factory) -> Path:
    """Return the folder of the demo, under the score that takes seconds."""
    out = tmp_path_factory.mktemp("demo") / "out"
    with pytest.raises(SystemExit) as end:
        main(["demo", "--score", "bge", "--out", str(out), "--quiet"])
    assert not end.value.code
    return out


@pytest.fixture
def page(browser, demo):
    """Open the demo's report anew, on a screen, light."""
    return opened(browser, demo / "report.html")


def opened(browser, path: Path, scheme: str = browsers.LIGHT, width: int = 1400):
    browsers.resize(browser, width)
    browsers.prefer(browser, scheme)
    browser.get("about:blank")
    browsers.requests(browser)
    browser.get_log("browser")
    browser.get(path.as_uri())
    return browser


def one(page, selector: str):
    return page.find_element("css selector", selector)


def texts(page, selector: str) -> list[str]:
    return [element.text for element in page.find_elements("css selector", selector)]


def set_slider(page, value: float) -> int:
    """Move the slider, and return how many pairs are said to be shown."""
    page.execute_script(
        "const s = arguments[0]; s.value = arguments[1]; s.dispatchEvent(new Event('input'));",
        one(page, "#threshold"), value,
    )  # fmt: skip
    return int(re.match(r"(\d+) of [\d,]+ pairs shown", one(page, "#shown").text)[1])


def ask(page, sign: str, first: str, second: str) -> str:
    """Choose a question as a reader does, and return the answer."""
    from selenium.webdriver.support.select import Select

    Select(one(page, "#sign")).select_by_value(sign)
    for selector, name in (("#first", first), ("#second", second)):
        Select(one(page, selector)).select_by_visible_text(name)
    return one(page, "#answer").text


def test_nothing_is_asked_for_and_nothing_complains(page, demo):
    set_slider(page, 0.3)
    ask(page, "->", "erk", "akt")
    one(page, "#theme").click()
    assert browsers.requests(page) == [(demo / "report.html").as_uri()]
    assert page.get_log("browser") == []


def test_the_browser_would_have_told(browser, tmp_path):
    """Negative control: a page that asks for something, and one with an error, are noticed."""
    path = tmp_path / "bad.html"
    path.write_text("<img src='https://example.org/x.png'><script>nothing.at.all</script>", encoding="utf-8")
    opened(browser, path)
    assert "https://example.org/x.png" in browsers.requests(browser)
    assert any("nothing is not defined" in entry["message"] for entry in browser.get_log("browser"))


def test_the_slider_changes_the_number_of_edges(page, demo):
    p = gpn.load(demo / "posterior.nc").edge_probabilities().to_numpy()
    joined = [p[i, j] + p[j, i] for i in range(11) for j in range(i)]
    shown = {threshold: set_slider(page, threshold) for threshold in (0.01, 0.1, 0.5, 1.0)}
    assert shown == {threshold: sum(value >= threshold - 1e-6 for value in joined) for threshold in shown}
    assert len(set(shown.values())) > 2
    assert one(page, "#threshold-value").text == "1.00"


def test_choices_answer_edges_and_paths(page, demo):
    post = gpn.load(demo / "posterior.nc")
    edge, path = post.edge_probability("erk", "akt"), post.path_probability("erk", "akt")
    answer = ask(page, "->", "erk", "akt")
    assert "There is an edge erk → akt" in answer and f"{edge.value:.3f}" in answer and "exact" in answer
    answer = ask(page, "~>", "erk", "akt")
    assert "A directed path leads from erk to akt" in answer
    assert f"{path.value:.3f} ± {path.mcse:.3f}" in " ".join(answer.split())
    p = post.edge_probabilities()
    a, b = next((a, b) for a in p.index for b in p.columns if a < b and 0.05 < p.loc[a, b] + p.loc[b, a] < 0.9)
    assert f"{p.loc[a, b] + p.loc[b, a]:.3f} exact" in " ".join(ask(page, "-", a, b).split())
    assert f"{1 - post.path_probability('akt', 'erk').value:.3f}" in ask(page, "<", "erk", "akt")


def test_examples_set_the_choices_and_two_variables_must_differ(page):
    def chosen():
        return [one(page, f"#{choice}").get_attribute("value") for choice in ("sign", "first", "second")]

    answers = []
    for example, own in zip(page.find_elements("css selector", "#examples button"), read_numbers_of(page), strict=True):
        example.click()
        assert (example.text, chosen()) == (own["text"], [own["sign"], *map(str, own["pair"])])
        answers.append(one(page, "#answer").text)
    assert len(set(answers)) == 4
    assert ask(page, "->", "erk", "erk") == "Choose two different variables."
    labels = page.execute_script(
        "return [...document.querySelectorAll('#question select')].map((s) => s.labels[0].textContent)"
    )
    assert labels == ["How probable is", "with a =", "and b ="]


def read_numbers_of(page) -> list[dict]:
    """Return the example questions that Python gave the page."""
    return page.execute_script("return JSON.parse(document.getElementById('numbers').textContent).questions")


def test_the_table_sorts_and_searches(page):
    def column(k):
        return texts(page, f"#edges tbody td:nth-child({k})")

    assert column(3) == sorted(column(3), reverse=True)
    one(page, "#edges th[data-key=probability] button").click()
    assert column(3) == sorted(column(3)) and column(3)[0] < "0.1"
    one(page, "#edges th[data-key=parent] button").click()
    assert column(1)[0] == "akt" and one(page, "#edges th[data-key=parent]").get_attribute("aria-sort") == "ascending"
    one(page, "#search").send_keys("ERK ak")
    assert list(zip(column(1), column(2), strict=True)) == [("akt", "erk"), ("erk", "akt")]


def test_the_table_grows(page):
    assert one(page, "#count").text == "25 of 110 edges shown"
    one(page, "#more").click()
    assert len(texts(page, "#edges tbody tr")) == 110 and not one(page, "#more").is_displayed()


def downloaded(page) -> str:
    """Return what the button would save."""
    page.execute_script(
        "window.saved = null;"
        "URL.createObjectURL = (blob) => { blob.text().then((t) => { window.saved = t; }); return '#'; };"
        "URL.revokeObjectURL = () => {}; HTMLAnchorElement.prototype.click = () => {};"
    )
    one(page, "#csv").click()
    return page.execute_async_script(
        "const done = arguments[0]; (function wait() { window.saved ? done(window.saved) : setTimeout(wait, 10); })();"
    )


def test_the_download_is_the_file_of_the_run(page, demo):
    assert downloaded(page) == (demo / "edges.csv").read_text(encoding="utf-8")


def test_a_chosen_variable_shows_its_parents(page, demo):
    post = gpn.load(demo / "posterior.nc")
    page.execute_script(
        "const s = arguments[0]; s.value = '6'; s.dispatchEvent(new Event('change'));", one(page, "#variable")
    )
    column = post.edge_probabilities()[post.names[6]].sort_values(ascending=False)
    assert one(page, "#details ul button").text == column.index[0]
    assert f"{column.iloc[0]:.3f}" in one(page, "#details").text
    assert "Gaussian-process score" in one(page, "#details").text
    one(page, "#details ul button").click()
    assert one(page, "#variable").get_attribute("value") == str(post.names.index(column.index[0]))


def test_what_the_reader_zoomed_to_stays_while_the_width_does(page):
    def zoom():
        return page.execute_script("return document.getElementById('drawn').getCTM().a")

    fitted = zoom()
    one(page, "#zoom-in").click()
    zoomed = zoom()
    assert zoomed > fitted
    browsers.resize(page, 1400, 700)
    assert zoom() == zoomed
    browsers.resize(page, 600, 700)
    assert zoom() < zoomed


def test_long_numbers_of_a_chart_are_whole(browser, tmp_path):
    post = made_posterior("abc", [(0, 1, 0.5)])
    post.log_score -= 1_334_666
    page = opened(browser, post.report(tmp_path / "report.html"))
    ends = page.execute_script("return [...document.querySelectorAll('#trace text')].map((t) => t.getBBox().x)")
    assert len(ends) > 2 and min(ends) >= 0
    assert "-1334766" in texts(page, "#trace text")


def test_names_are_sorted_as_in_the_file(browser, tmp_path):
    """Beyond the first plane of Unicode, browsers and Python would compare them otherwise."""
    post = made_posterior(("ﬁ", "𝛼", "b", "bc"), [])
    page = opened(browser, post.report(tmp_path / "report.html"))
    assert downloaded(page) == edges_csv(post.summary())


def test_an_error_that_is_unknown_is_given_no_reason(browser, tmp_path):
    post = made_posterior("abc", [(0, 1, 0.5)], shape=(2, 3))
    assert 0 < post.edge_probability("a", "b").value < 1 and np.isnan(post.edge_probability("a", "b").mcse)
    page = opened(browser, post.report(tmp_path / "report.html"))
    assert " ".join(ask(page, "->", "a", "b").splitlines()[1].split()).endswith("no error known")


@pytest.mark.parametrize("scheme", [browsers.LIGHT, browsers.DARK])
@pytest.mark.parametrize("width", [1400, 390])
def test_text_is_legible_and_nothing_sticks_out(browser, demo, scheme, width):
    page = opened(browser, demo / "report.html", scheme, width)
    for toggled in (False, True):
        if toggled:
            one(page, "#theme").click()
        dark = (scheme == browsers.DARK) != toggled
        background = page.execute_script("return getComputedStyle(document.body).backgroundColor")
        assert (sum(map(int, re.findall(r"\d+", background))) < 150) == dark
        ratio, where = page.execute_script(browsers.CONTRAST)
        assert ratio >= 4.5, where
    assert page.execute_script("return document.documentElement.scrollWidth") <= width


def test_hovering_tells_the_numbers(page, demo):
    """Point at the middle of every line's box until one is hit."""
    from selenium.webdriver import ActionChains

    canvas = one(page, "#network")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", canvas)
    width, height = canvas.size["width"], canvas.size["height"]
    for share in range(-45, 46, 2):
        ActionChains(page, duration=0).move_to_element_with_offset(
            canvas, int(share / 100 * width), int(-0.12 * height)
        ).perform()
        if one(page, "#tip").is_displayed():
            break
    assert re.match(
        r".+ – .+ joined: \d\.\d{3} \((exact|± \d\.\d{3}|in all draws)\)\n.+ → .+: ", one(page, "#tip").text
    )


def test_awkward_names_do_no_harm(browser, tmp_path):
    post = awkward_posterior()
    page = opened(browser, post.report(tmp_path / "report.html"))
    assert page.get_log("browser") == []
    assert sorted(set(texts(page, "#edges tbody td:nth-child(1)"))) == sorted(AWKWARD)
    answer = ask(page, "->", *AWKWARD[:2])
    assert "There is an edge <b>raf</b> → mek & co" in answer and "1.000 in all draws" in answer
    one(page, "#more").click()
    rows = list(csv.DictReader(io.StringIO(downloaded(page))))
    assert {(row["parent"], row["child"]) for row in rows} == {(a, b) for a in AWKWARD for b in AWKWARD if a != b}


def choose(page, selector: str, value: int) -> None:
    page.execute_script(
        "const s = arguments[0]; s.value = arguments[1]; s.dispatchEvent(new Event('change'));",
        one(page, selector), str(value),
    )  # fmt: skip


@pytest.fixture
def curved_page(browser, tmp_path):
    """Open the report on a sine curve; the name of its cause could be taken for HTML."""
    rng = np.random.default_rng(1)
    x = rng.uniform(-3, 3, 60)
    data = pd.DataFrame({"<i>x</i>": x, "y": np.sin(x) + 0.2 * rng.normal(size=60)})
    post = gpn.sample(data, score="gp", draws=50, chains=2, random_seed=1, progressbar=False)
    return opened(browser, post.report(tmp_path / "report.html"))


def test_curves_are_drawn(curved_page):
    """Under a Gaussian-process score a chosen variable shows one chart a parent."""
    choose(curved_page, "#variable", 1)
    assert texts(curved_page, "#details figcaption") == ["y (upwards) against <i>x</i>"]
    assert len(curved_page.find_elements("css selector", "#details circle")) == 60
    assert curved_page.get_log("browser") == []


def test_effects_can_be_chosen(page, demo):
    post = gpn.load(demo / "posterior.nc")
    erk, akt = post.names.index("erk"), post.names.index("akt")
    choose(page, "#cause", erk)
    choose(page, "#outcome", akt)
    effect = post.effect("erk", "akt")
    lower, upper = effect.interval(0.9)
    assert one(page, "#effect p").text == (
        f"If erk is raised by one unit, akt changes by {effect.mean:.2f} (90% between {lower:.2f} and {upper:.2f}). "
        f"Probability of any effect: {effect.probability:.2f}."
    )
    assert len(page.find_elements("css selector", "#effect svg[role=img] .none")) == 1
    assert f"no effect: probability {1 - effect.probability:.2f}" in one(page, "#effect").text
    # Another cause keeps the outcome.
    choose(page, "#cause", post.names.index("pka"))
    assert one(page, "#outcome").get_attribute("value") == str(akt)
    assert one(page, "#effect p").text.startswith("If pka is raised by one unit, akt changes by")


def test_an_effect_that_is_a_curve_has_two_bands(curved_page):
    assert one(curved_page, "#effect figcaption").text == "y (upwards) if <i>x</i> is set"
    assert len(curved_page.find_elements("css selector", "#effect svg[role=img] .band")) == 2
    assert len(texts(curved_page, "#effect tbody tr")) == 5
    assert curved_page.get_log("browser") == []


@pytest.mark.parametrize("width", [1400, 390])
def test_an_effect_on_levels_is_a_table(browser, tmp_path, width):
    rng = np.random.default_rng(2)
    a = rng.integers(0, 2, 200)
    levels = np.array(["<b>no</b>", "</script>"])
    data = pd.DataFrame({"a": levels[a], "b": levels[(rng.random(200) < 0.2 + 0.6 * a).astype(int)]})
    post = gpn.sample(data, score="bdeu", required=[("a", "b")], draws=50, chains=2, random_seed=1, progressbar=False)
    page = opened(browser, post.report(tmp_path / "report.html"), width=width)
    assert sorted(texts(page, "#effect thead th")[1:]) == sorted(levels)
    assert len(texts(page, "#effect tbody td")) == 4
    effect = post.effect("a", "b", draws=200)
    assert f"{float(effect.mean[0, 0]):.2f}" in one(page, "#effect tbody td").text
    assert page.execute_script("return document.documentElement.scrollWidth") <= width
    assert page.get_log("browser") == []


def test_effects_in_a_mixed_table_are_lines_means_or_tables(browser, tmp_path):
    rng = np.random.default_rng(1)
    dose = rng.choice(["high", "low"], 200)
    sex = np.where(rng.random(200) < 0.8, np.where(dose == "low", "f", "m"), "f")
    x = 3.0 * (dose == "low") + rng.normal(size=200)
    table = pd.DataFrame({"dose": dose, "sex": sex, "x": x, "y": x + rng.normal(size=200)})
    required = [("dose", "sex"), ("dose", "x"), ("x", "y")]
    post = gpn.sample(table, score="cg", required=required, draws=200, random_seed=1, progressbar=False)
    page = opened(browser, post.report(tmp_path / "report.html"))
    choose(page, "#cause", 0)
    choose(page, "#outcome", 2)
    shown = one(page, "#effect").text
    assert "The mean of x is " in shown and "if dose is set to high, and " in shown and "90% of outcomes" in shown
    choose(page, "#outcome", 1)
    assert "Probability of each level of sex if dose is set" in one(page, "#effect").text
    choose(page, "#cause", 2)
    assert "If x is raised by one unit, y changes by" in one(page, "#effect").text
    assert page.get_log("browser") == []


def test_why_there_are_no_effects_is_told(browser, tmp_path):
    page = opened(browser, awkward_posterior().report(tmp_path / "report.html"))
    assert one(page, "#effect").text.startswith("This report has no effects: effects need the score")
    assert not one(page, "#effect-choice").is_displayed()


def test_a_hundred_variables_are_usable(browser, tmp_path):
    rng = np.random.default_rng(4)
    edges = [(i, j, p) for i in range(100) for j in range(i + 1, 100) if (p := rng.beta(0.05, 2)) > 1e-3]
    post = made_posterior([f"gene {k}" for k in range(100)], edges, shape=(2, 60))
    page = opened(browser, post.report(tmp_path / "report.html"))
    assert one(page, "#count").text == "25 of 9,900 edges shown"
    assert set_slider(page, 0.01) > set_slider(page, 0.5) > 0
    assert (
        page.execute_script(
            "const t = performance.now(); const s = document.getElementById('search'); s.value = 'gene 7';"
            "s.dispatchEvent(new Event('input')); return performance.now() - t;"
        )
        < 1000
    )
    assert page.get_log("browser") == []

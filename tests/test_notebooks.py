"""What notebooks show: small, quick, escaped, readable on any background; in a real kernel and page."""

import re
import subprocess
import sys
import time
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import sklearn

import gpn_bayes as gpn
from gpn_bayes._util import cells
from gpn_bayes.estimators.bootstrapping import BootstrapResult
from gpn_bayes.posterior.diagnostics import Diagnostics
from gpn_bayes.posterior.estimate import Estimate
from gpn_bayes.report import Explorer, picture
from tests import browser as browsers
from tests.reports import AWKWARD, awkward_posterior, made_posterior

pytestmark = pytest.mark.more("runs notebooks")

QUIET = {"random_seed": 1, "progressbar": False}
MOST_BYTES, MOST_SECONDS = 60_000, 2.0
DATA = gpn.simulate.linear([[0, 1, 0], [0, 0, 1], [0, 0, 0]], 100, random_seed=1)


@pytest.fixture(scope="module")
def post():
    return gpn.sample(DATA, score="bge", draws=50, **QUIET)


class Elements(HTMLParser):
    """The elements of a text, and whether all that are opened are closed."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.names: list[str] = []
        self.open: list[str] = []
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.names.append(tag)
        self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.names.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


def awkward_bootstrap() -> BootstrapResult:
    return BootstrapResult(AWKWARD, awkward_posterior().parents[:1], "PC(alpha='<i>')")


def awkward_learner():
    rows = gpn.simulate.linear(np.triu(np.ones((6, 6)), 1), 60, random_seed=1).set_axis(list(AWKWARD), axis=1)
    return gpn.estimators.HillClimbing(score="bge").fit(rows)


@pytest.mark.parametrize("make", [awkward_posterior, awkward_bootstrap, awkward_learner])
def test_names_of_any_kind_stay_text(make):
    found = make()
    html = found._network_html() if hasattr(found, "_network_html") else found._repr_html_()
    elements = Elements(html)
    assert "script" not in elements.names and "b" not in elements.names and "i" not in elements.names
    assert "&lt;b&gt;raf&lt;/b&gt;" in html and elements.names.count("svg") >= 1
    assert not re.search(r"(src|href)=|url\(", html), "nothing is fetched"


def test_a_posterior_shows_verdicts_network_and_edges(post):
    html = post._repr_html_()
    found = post.diagnostics()
    assert found.heading in html and found.data_heading in html
    assert html.count('class="node"') == 3 and len(html) < MOST_BYTES
    best = post.summary().iloc[0]
    assert f"{best['parent']} → {best['child']}" in html and f"{best['probability']:.3f}" in html


def test_diagnostics_estimates_and_effects_are_shown(post):
    poor = Diagnostics(
        chains=4, draws=400, r_hat=1.21, ess=35.0, largest_gap=0.62, largest_gap_edge="<a> -> b",
        pareto_k=float("nan"), weight_ess=400.0, sampler="partition", order_bias=False, assumptions=("No cycles.",),
    )  # fmt: skip
    html = poor._repr_html_()
    Elements(html)
    assert "Sampling has not converged." in html and "&lt;a&gt; -&gt; b" in html and "No cycles." in html
    assert cells.LIGHTS["poor"] in html
    assert "0.314 ± 0.012" in Estimate(0.314, 0.012, 1496.0)._repr_html_()
    assert "1,496" in Estimate(0.314, 0.012, 1496.0)._repr_html_()
    assert "(exact)" in Estimate(0.5, 0.0, np.inf)._repr_html_()
    assert "never changed" in Estimate(0.0, np.nan, 100.0)._repr_html_()


@pytest.mark.parametrize("colour", [cells.BLUE, cells.VERMILION, *cells.LIGHTS.values()])
def test_colours_can_be_seen_on_light_and_dark(colour):
    def luminance(text):
        values = np.array([int(text[k : k + 2], 16) for k in (1, 3, 5)]) / 255
        linear = np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    # White, and the backgrounds of JupyterLab's and VS Code's dark themes.
    for background in ("#ffffff", "#111111", "#1f1f1f"):
        low, high = sorted([luminance(colour), luminance(background)])
        assert (high + 0.05) / (low + 0.05) >= 3, background


def large(n=200):
    rng = np.random.default_rng(1)
    edges = [(i, j, float(rng.random())) for i in range(n) for j in range(i + 1, n) if rng.random() < 6 / n]
    return made_posterior([f"gene number {k}" for k in range(n)], edges, shape=(4, 1000))


def test_two_hundred_variables_take_little_time_and_room():
    post = large()
    Estimate(0.5, 0.1, 9.0)._repr_html_()
    post.diagnostics()  # loads what a sampled posterior has loaded long before
    started = time.process_time()
    html = post._repr_html_()
    assert time.process_time() - started < MOST_SECONDS
    assert len(html) < MOST_BYTES
    assert html.count('class="link') == 30
    p = post.edge_probabilities().to_numpy()
    joined = (p + p.T)[np.triu_indices(200, 1)]
    assert f"{int((joined >= 0.1).sum()) - 30:,} more pairs joined with a probability of 0.1+" in html
    drawn = html.count('class="node"')
    assert f"{200 - drawn} more variables" in html
    top = post.summary().iloc[0]
    assert f"{top['parent']} → {top['child']}" in html


def test_the_most_probable_pairs_are_drawn():
    p = np.zeros((40, 40))
    strengths = np.linspace(0.11, 0.99, 39)
    p[np.arange(39), np.arange(1, 40)] = strengths
    drawn = picture.picture_of([f"x{k}" for k in range(40)], p)
    assert f"of {strengths[-1]:.3f}<" in drawn.svg and f"of {strengths[9]:.3f}<" in drawn.svg
    assert f"of {strengths[8]:.3f}<" not in drawn.svg and (drawn.pairs, drawn.variables) == (9, 9)
    empty = picture.picture_of([f"x{k}" for k in range(40)], np.zeros((40, 40)))
    assert empty.svg == "" and empty.left_out() == "Not drawn: 40 more variables."


def test_a_learner_shows_a_diagram_and_then_its_network_too():
    learner = gpn.estimators.PC(alpha=0.01)
    before = learner._repr_html_()
    assert "sk-top-container" in before and "<svg" not in before.split("</style>")[-1].split("sk-top-container")[0]
    assert 'class="gpn-bayes"' not in before
    learner.fit(DATA)
    for html in (learner._repr_html_(), learner._repr_mimebundle_()["text/html"]):
        assert "sk-top-container" in html and html.count('class="node"') == 3 and "est.report" in html
    with sklearn.config_context(display="text"):
        assert not hasattr(learner, "_repr_html_") and set(learner._repr_mimebundle_()) == {"text/plain"}


def test_a_cell_that_fails_warns_and_shows_text(post, monkeypatch):
    broken = gpn.sample(DATA, score="bge", draws=20, **QUIET)
    monkeypatch.setattr("gpn_bayes.report.summaries.picture_of", lambda *given: 1 / 0)
    with pytest.warns(RuntimeWarning, match="GraphPosterior can't be shown as HTML: ZeroDivisionError"):
        html = broken._repr_html_()
    assert html.startswith("<pre>&lt;GraphPosterior")


def test_exploring_holds_the_report_in_a_frame(post):
    frame = post.explore(height=500)
    assert isinstance(frame, Explorer) and "post.report('report.html')" in repr(frame)
    html = frame._repr_html_()
    assert Elements(html).names == ["iframe"]
    assert 'sandbox="allow-scripts"' in html and "height:500px" in html and "Network of 3 variables" in html
    with pytest.raises(ValueError, match="^height must be"):
        post.explore(height=5)


# In a kernel and a browser

NOTEBOOK = """
import gpn_bayes as gpn
data = gpn.datasets.sachs(transform="log2")
post = gpn.sample(data, score="bge", draws=200, sampler="partition", random_seed=1)
post
# %%
post.diagnostics()
# %%
post.edge_probability("erk", "akt")
# %%
post.effect("erk", "akt")
# %%
est = gpn.estimators.HillClimbing(score="bge")
est
# %%
est.fit(data)
# %%
gpn.bootstrap(est, data, n=10, random_seed=1)
# %%
post.explore(height=700)
"""
RENDER = """
import sys, nbformat
from nbclient import NotebookClient
from nbconvert import HTMLExporter
folder = sys.argv[1]
cells = open(f"{folder}/cells.py", encoding="utf-8").read().split("# %%")
notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell.strip()) for cell in cells])
NotebookClient(notebook, timeout=300, kernel_name="python3").execute()
nbformat.write(notebook, f"{folder}/notebook.ipynb")
notebook.metadata.pop("widgets", None)  # where ipywidgets is installed: pages would fetch what draws its bars
for theme in ("light", "dark"):
    exporter = HTMLExporter(theme=theme, mathjax_url="", require_js_url="", jquery_url="", widget_renderer_url="")
    with open(f"{folder}/{theme}.html", "w", encoding="utf-8") as file:
        file.write(exporter.from_notebook_node(notebook)[0])
"""


@pytest.fixture(scope="module")
def rendered(tmp_path_factory) -> Path:
    """Return the folder of a notebook that was run, and its pages."""
    for name in ("nbclient", "nbconvert", "ipykernel"):
        pytest.importorskip(name, reason=f"needs {name}, which comes with the extra test")
    folder = tmp_path_factory.mktemp("notebook")
    (folder / "cells.py").write_text(NOTEBOOK, encoding="utf-8")
    # Once for what it compiles: a run that takes long for that says so in a line.
    subprocess.run([sys.executable, str(folder / "cells.py")], check=True, capture_output=True, timeout=400)
    subprocess.run([sys.executable, "-c", RENDER, str(folder)], check=True, capture_output=True, timeout=400)
    return folder


def test_a_kernel_runs_it_without_noise(rendered):
    """Every cell has one output, and progress at most a line per stage."""
    import nbformat

    notebook = nbformat.read(rendered / "notebook.ipynb", as_version=4)
    for cell in notebook.cells:
        kinds = [output["output_type"] for output in cell.outputs]
        assert kinds.count("execute_result") == 1 and "error" not in kinds and "stream" not in kinds
        assert kinds.count("display_data") <= 4
        assert "text/html" in cell.outputs[-1]["data"] and "text/plain" in cell.outputs[-1]["data"]


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_page_of_a_notebook_is_alive(rendered, theme):
    with browsers.chromium(1200) as page:
        browsers.prefer(page, theme)
        page.get((rendered / f"{theme}.html").as_uri())
        assert [entry for entry in page.get_log("browser") if entry["level"] == "SEVERE"] == []
        assert [url for url in browsers.requests(page) if url.startswith("http")] == []
        pictures = page.find_elements("css selector", "div.gpn-bayes svg[role=img]")
        assert len(pictures) >= 3 and all(own.size["height"] > 100 for own in pictures)
        # Letters in nodes have the colour that the theme writes in.
        lightness = page.execute_script(
            "return getComputedStyle(document.querySelector('.gpn-bayes .node text')).fill.match(/\\d+/g)[0]"
        )
        assert (int(lightness) > 128) == (theme == "dark")
        frame = page.find_element("css selector", "iframe.gpn-bayes")
        page.execute_script("arguments[0].scrollIntoView()", frame)
        page.switch_to.frame(frame)
        # The frame has its width some time after it came on screen: until then there is a list, and no drawing.
        nodes = browsers.wait_for(page, "#network .node")
        page.find_element("css selector", "#first").send_keys("erk")
        page.find_element("css selector", "#second").send_keys("akt")
        assert "There is an edge erk → akt" in page.find_element("css selector", "#answer").text
        assert len(nodes) == 11
        assert not page.find_element("css selector", "#csv").is_displayed()
        page.find_element("css selector", "a[href='#assumptions']").click()
        assert page.execute_script("return document.getElementById('assumptions').getBoundingClientRect().top") < 700
        assert page.find_elements("css selector", "#question"), "the link leads to a place in the same page"
        assert [entry for entry in page.get_log("browser") if entry["level"] == "SEVERE"] == []


def test_tables_of_one_column_are_shown():
    """A graph without edges has neither table nor lines, and says so."""
    from gpn_bayes.report.summaries import graph_cell

    html = graph_cell("Graph of PC", ["a", "b"], pd.DataFrame(columns=["parent", "child", "type"]), "weight")
    assert "2 variables, 0 edges" in html and "<table" not in html and html.count('class="node"') == 2

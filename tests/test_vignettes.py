"""The vignettes: each is a story with a title and a question, and is listed; the quickest ones run as plain scripts."""

import ast
import base64
import io
import os
import re
import subprocess

import numpy as np
import pytest
from matplotlib import image

from tests import browser as browsers
from tests.running import ROOT, STRICT_PYTHON, load

FOLDER = ROOT / "vignettes"
STORIES = sorted(FOLDER.glob("[0-9]*.py"))
# Those that take seconds, once compiled; the build runs all.
QUICK = ("4_prior_knowledge",)
# Only a script that hangs reaches this.
TIME_LIMIT = 1800


@pytest.fixture(scope="module")
def builder():
    return load(FOLDER / "build.py")


def test_there_are_stories():
    assert len(STORIES) >= 6
    assert set(QUICK) <= {path.stem for path in STORIES}


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_every_story_has_a_title_a_question_and_a_place(path, builder):
    story = builder.read_story(path)
    assert 5 < len(story.title) < 80
    assert story.question.endswith(("?", "."))
    assert f"({path.name})" in (FOLDER / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_every_story_checks_its_claims(path):
    text = path.read_text(encoding="utf-8")
    assert "# Claims of the text, checked whenever this page is built.\n" in text
    assert isinstance(ast.parse(text).body[-1], ast.Assert)
    assert "# %%" in text


@pytest.mark.parametrize("path", STORIES, ids=lambda path: path.stem)
def test_stories_link_to_stories(path):
    for line in path.read_text(encoding="utf-8").splitlines():
        for part in line.split("](")[1:]:
            target = part.split(")")[0]
            assert target.startswith("http") or (FOLDER / target.replace(".html", ".py")).exists(), target


def test_the_list_names_no_story_that_is_gone():
    text = (FOLDER / "README.md").read_text(encoding="utf-8")
    for part in text.split("](")[1:]:
        assert (FOLDER / part.split(")")[0]).exists()


@pytest.mark.more("runs a vignette")
@pytest.mark.parametrize(
    "name", [path.stem if path.stem in QUICK else pytest.param(path.stem, marks=pytest.mark.slow) for path in STORIES]
)
def test_stories_run(name, tmp_path):
    environment = os.environ | {"PYTHONPATH": str(ROOT), "MPLBACKEND": "Agg"}
    command = [*STRICT_PYTHON, str(FOLDER / f"{name}.py")]
    ran = subprocess.run(
        command, env=environment, cwd=tmp_path, capture_output=True, text=True, timeout=TIME_LIMIT, check=False
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize(
    "text",
    ["print(1)\n", "# %% [markdown]\n# No title.\n\n", "# %% [markdown]\n# # A title without a text\n\n"],
)
def test_a_file_that_is_no_story_is_refused(text, tmp_path, builder):
    path = tmp_path / "9_none.py"
    path.write_text(text)
    rule = "^a story must begin with a markdown cell of a title and a paragraph; 9_none.py doesn't$"
    with pytest.raises(ValueError, match=rule):
        builder.read_story(path)


def test_stories_are_chosen_by_the_beginning_of_their_name(builder):
    assert [story.path.stem for story in builder.chosen(["4", "1_getting"])] == [
        "4_prior_knowledge",
        "1_getting_started",
    ]
    assert len(builder.chosen([])) == len(STORIES)
    with pytest.raises(SystemExit, match="^a story must be one of 1_getting_started, .*; received 77$"):
        builder.chosen(["77"])


def test_pictures_wider_than_a_page_are_scrolled(builder):
    body = '<img width="300"/><img width="2832"/>'
    assert builder.scroll_wide(body) == '<img width="300"/><img width="2832" class="wide"/>'


@pytest.fixture
def tools():
    for name in ("jupytext", "nbconvert", "ipykernel"):
        pytest.importorskip(name, reason='building needs more: pip install "gpn_bayes[vignettes]"')


@pytest.fixture
def story(tmp_path, builder):
    def write(code):
        path = tmp_path / "9_tiny.py"
        path.write_text(f"# %% [markdown]\n# # Tiny\n#\n# Does it run? It should.\n\n# %%\n{code}\n")
        return builder.read_story(path)

    return write


def test_a_story_becomes_a_page_with_its_picture(story, builder, tools, tmp_path, monkeypatch):
    code = "import matplotlib.pyplot as plt\nopen('left.txt', 'w').close()\nline = plt.plot([1, 2])\nprint(6 * 7)"
    code += "\nimport time\nwhile time.process_time() < 2:\n    pass"
    monkeypatch.setattr(builder, "OUT", tmp_path / "html")
    monkeypatch.setattr(builder, "HERE", tmp_path)
    (tmp_path / "page.css").write_text("p { color: black; }")
    page = builder.build(story(code)).read_text(encoding="utf-8")
    assert "<title>Tiny</title>" in page
    assert 'alt="Picture: Tiny"' in page
    assert "42" in page
    used = re.search(r"(\d+) s of CPU time", page)
    assert used is not None and int(used[1]) >= 2
    assert "InlineBackend" not in page
    assert 'src="http' not in page
    assert not list(tmp_path.rglob("left.txt"))


# From the page's and the picture's box: how far each can be scrolled sideways.
SCROLLED = """
const page = document.documentElement, box = document.querySelector("img.wide").closest(".output_area");
return [page.scrollWidth, box.scrollWidth, box.clientWidth];
"""


def wide_notebook():
    """Return a page of what doesn't fit: a picture, a table, code, a printed line, and a name in the text."""
    import nbformat

    picture = io.BytesIO()
    image.imsave(picture, np.zeros((100, 3000)))
    name = "gpn.estimators.a_name_without_a_place_to_break_it_that_is_longer_than_a_phone_is_wide()"
    shown = {
        "image/png": base64.b64encode(picture.getvalue()).decode(),
        "text/html": f"<table><tr>{'<td>0.1234</td>' * 60}</tr></table>",
    }
    sizes = {"image/png": {"width": 3000, "height": 100}}
    outputs = [
        *(nbformat.v4.new_output("display_data", {kind: own}, metadata=sizes) for kind, own in shown.items()),
        nbformat.v4.new_output("stream", name="stdout", text="x" * 400),
    ]
    code = nbformat.v4.new_code_cell("x = '" + 300 * "y" + "'", outputs=outputs)
    return nbformat.v4.new_notebook(cells=[nbformat.v4.new_markdown_cell(f"# Wide\n\nIt is `{name}`."), code])


def test_what_is_wider_than_the_page_is_scrolled_in_a_box_of_its_own(builder, tools, tmp_path):
    path = tmp_path / "wide.html"
    path.write_text(builder.page("Wide", builder.rendered(wide_notebook()), "foot"), encoding="utf-8")
    with browsers.chromium() as browser:
        for width in (1400, 390):
            browsers.resize(browser, width)
            browser.get(path.as_uri())
            page, inside, box = browser.execute_script(SCROLLED)
            assert page <= width
            assert box < width and inside >= 3000


def test_a_failing_cell_fails_the_build_with_its_message(story, builder, tools):
    with pytest.raises(
        builder.StoryFailed, match="(?s)^9_tiny.py failed: .*1 / 0.*ZeroDivisionError: division by zero"
    ):
        builder.execute(story("1 / 0"))

"""The report's network in a real browser: legible letters, nothing clipped or broken, on screens and phones."""

import re

import pytest

from tests import browser as browsers
from tests.reports import LONG, crowded_posterior, made_posterior
from tests.test_report_browser import one, opened, set_slider, texts

pytestmark = pytest.mark.more("needs a browser")

TIERS = [1 + k // 8 for k in range(30)]
SACHS = ["raf", "mek", "plcg", "pip2", "pip3", "erk", "akt", "pka", "pkc", "p38", "jnk"]


@pytest.fixture(scope="module")
def browser():
    with browsers.chromium() as found:
        yield found


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    """Return the reports of networks that differ in size, names and tiers."""
    folder = tmp_path_factory.mktemp("reports")
    posts = {
        "30": crowded_posterior(),
        "30 in tiers": crowded_posterior(tiers=TIERS),
        "11": crowded_posterior(SACHS),
        "4": crowded_posterior(LONG[2:6]),
        "100": crowded_posterior([f"gene {k}" for k in range(100)]),
        "endless": crowded_posterior(["x" * 80, "<b>" + "y" * 60, "a_" * 40, "plain"]),
    }
    return {name: post.report(folder / f"{k}.html") for k, (name, post) in enumerate(posts.items())}


# What is seen of every node: the size of its letters in pixels, the box of its text, and its own.
NODES = """
const box = (r) => [r.left, r.top, r.right, r.bottom];
return [...document.querySelectorAll("#network .node")].map((node) => {
  const [text, rect] = [node.querySelector("text"), node.querySelector("rect")];
  return {
    font: parseFloat(getComputedStyle(text).fontSize) * text.getScreenCTM().a,
    text: box(text.getBoundingClientRect()), node: box(rect.getBoundingClientRect()),
  };
});
"""
FRAME = (
    "const r = document.getElementById('network').getBoundingClientRect(); return [r.left, r.top, r.right, r.bottom];"
)
SCALE = "return document.getElementById('drawn').transform.baseVal.consolidate().matrix;"

# Words that are shown in two lines.
BROKEN = """
const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
const broken = [];
while (walker.nextNode()) {
  const text = walker.currentNode;
  if (!text.parentElement.getClientRects().length || text.parentElement.closest("script, style, svg, option")) continue;
  for (const word of text.textContent.matchAll(/[\\p{L}\\p{N}]+/gu)) {
    const range = document.createRange();
    range.setStart(text, word.index);
    range.setEnd(text, word.index + word[0].length);
    if (new Set([...range.getClientRects()].map((r) => Math.round(r.top / 8))).size > 1) broken.push(word[0]);
  }
}
return broken;
"""


def inside(inner, outer, slack=1.0):
    return all(a >= b - slack for a, b in zip(inner[:2], outer[:2], strict=True)) and all(
        a <= b + slack for a, b in zip(inner[2:], outer[2:], strict=True)
    )


def apart(one_box, other):
    return one_box[2] <= other[0] or other[2] <= one_box[0] or one_box[3] <= other[1] or other[3] <= one_box[1]


def choose(page, selector, value):
    page.execute_script(
        "arguments[0].value = arguments[1]; arguments[0].dispatchEvent(new Event('change'));",
        one(page, selector),
        value,
    )


@pytest.mark.parametrize(("name", "least"), [("30", 11), ("30 in tiers", 11), ("11", 13), ("4", 13), ("100", 7)])
def test_letters_can_be_read_on_a_screen_and_nothing_is_clipped(browser, pages, name, least):
    page = opened(browser, pages[name])
    nodes, frame = page.execute_script(NODES), page.execute_script(FRAME)
    assert min(node["font"] for node in nodes) >= least
    for k, node in enumerate(nodes):
        assert inside(node["text"], node["node"]) and inside(node["node"], frame)
        assert all(apart(node["node"], other["node"]) for other in nodes[:k])


@pytest.mark.parametrize("name", ["30", "30 in tiers", "100"])
def test_the_network_uses_its_box(browser, pages, name):
    page = opened(browser, pages[name])
    boxes, frame = [node["node"] for node in page.execute_script(NODES)], page.execute_script(FRAME)
    width, height = (max(b[k + 2] for b in boxes) - min(b[k] for b in boxes) for k in (0, 1))
    assert width > 0.75 * (frame[2] - frame[0]) and height > 0.85 * (frame[3] - frame[1])
    assert frame[2] - frame[0] > 1000


def test_tiers_are_labelled_bands(browser, pages):
    page = opened(browser, pages["30 in tiers"])
    assert texts(page, "#network .tier") == ["tier 1", "tier 2", "tier 3", "tier 4"]
    bands = [band.rect for band in page.find_elements("css selector", "#network .band")]
    for node, tier in zip(page.execute_script(NODES), TIERS, strict=True):
        band = bands[tier - 1]
        assert band["y"] - 1 <= node["node"][1] and node["node"][3] <= band["y"] + band["height"] + 1
    assert texts(opened(browser, pages["30"]), "#network .tier") == []


def test_the_reader_zooms_and_moves(browser, pages):
    from selenium.webdriver import ActionChains

    page = opened(browser, pages["30"])
    network = one(page, "#network")
    page.execute_script("arguments[0].scrollIntoView({block: 'center'})", network)
    fitted = page.execute_script(SCALE)
    one(page, "#zoom-in").click()
    zoomed = page.execute_script(SCALE)
    assert zoomed["a"] > 1.2 * fitted["a"]
    ActionChains(page, duration=50).move_to_element(network).click_and_hold().move_by_offset(
        -60, 40
    ).release().perform()
    moved = page.execute_script(SCALE)
    assert (moved["a"], moved["e"] - zoomed["e"]) == (zoomed["a"], pytest.approx(-60, abs=3))
    assert not page.find_elements("css selector", "#network .chosen"), "who drags doesn't choose"
    wheel = (
        "arguments[0].dispatchEvent(new WheelEvent('wheel',"
        " {deltaY: -300, ctrlKey: arguments[1], clientX: 400, clientY: 400, cancelable: true}))"
    )
    page.execute_script(wheel, network, False)
    assert page.execute_script(SCALE)["a"] == moved["a"], "the wheel alone scrolls the page"
    page.execute_script(wheel, network, True)
    assert page.execute_script(SCALE)["a"] > 1.2 * moved["a"]
    one(page, "#zoom-fit").click()
    assert page.execute_script(SCALE)["a"] == fitted["a"]


def test_a_node_that_is_clicked_is_chosen(browser, pages):
    page = opened(browser, pages["11"])
    page.execute_script("document.querySelectorAll('#network .node')[5].dispatchEvent(new Event('click'))")
    assert one(page, "#variable").get_attribute("value") == "5"
    assert one(page, "#network .node.chosen text").text == "erk"
    assert texts(page, "#details h3")[:3] == ["Parents", "Children", "Most probable parent sets"]


@pytest.mark.parametrize(("name", "listed"), [("30", True), ("100", True), ("11", False), ("4", False)])
def test_phones_see_a_list_where_letters_would_be_too_small(browser, pages, name, listed):
    page = opened(browser, pages[name], width=390)
    assert one(page, "#links").is_displayed() == listed
    assert one(page, "#network").is_displayed() == (not listed)
    if not listed:
        assert min(node["font"] for node in page.execute_script(NODES)) >= 9
    one(page, "#as-drawing" if listed else "#as-list").click()
    assert one(page, "#links").is_displayed() == (not listed)
    assert page.get_log("browser") == []


def test_the_list_holds_what_the_drawing_shows(browser, pages):
    page = opened(browser, pages["30"], width=390)
    shown = set_slider(page, 0.5)
    rows = texts(page, "#list li")
    assert len(rows) == shown > 30
    numbers = [float(re.search(r"\d\.\d{3}$", row)[0]) for row in rows]
    assert numbers == sorted(numbers, reverse=True) and min(numbers) >= 0.5
    assert len(texts(page, "#list li")) == set_slider(page, 0.9)
    shown = set_slider(page, 0.5)
    choose(page, "#list-order", "child")
    undetermined = len(page.find_elements("css selector", "#list li.open"))
    assert len(texts(page, "#list li")) == shown + undetermined / 2
    headings = texts(page, "#list h3")
    assert headings == [name for name in LONG if name in headings] and len(headings) > 10
    one(page, "#list li button").click()
    assert one(page, "#variable").get_attribute("value") != ""


@pytest.mark.parametrize("width", [1400, 800, 390])
@pytest.mark.parametrize("name", ["30", "30 in tiers", "11", "100", "endless"])
def test_no_word_is_broken_and_the_page_is_no_wider_than_the_screen(browser, pages, name, width):
    page = opened(browser, pages[name], width=width)
    choose(page, "#variable", "3")
    for view in ("#as-list", "#as-drawing"):
        one(page, view).click()
        assert page.execute_script("return document.documentElement.scrollWidth") <= width
        if name != "endless":
            assert page.execute_script(BROKEN) == []


def test_broken_words_would_be_noticed(browser, tmp_path):
    """Negative control."""
    path = tmp_path / "narrow.html"
    path.write_text("<p style='width: 3em; overflow-wrap: anywhere'>creatinine</p>", encoding="utf-8")
    assert opened(browser, path).execute_script(BROKEN) == ["creatinine"]


def test_long_words_are_cut_and_told_whole_when_pointed_at(browser, pages):
    page = opened(browser, pages["endless"], width=390)
    name = one(page, "#edges .name")
    assert name.get_attribute("title") == name.get_attribute("textContent")
    assert page.execute_script("const n = arguments[0]; return n.scrollWidth > n.clientWidth;", name)
    assert {"x" * 80, "<b>" + "y" * 60} <= set(
        page.execute_script("return [...document.querySelectorAll('#network title')].map((t) => t.textContent)")
    )


def test_a_variable_without_pairs_is_drawn_too(browser, tmp_path):
    page = opened(browser, made_posterior("abcd", [(0, 1, 0.05)]).report(tmp_path / "report.html"))
    assert len(page.execute_script(NODES)) == 4
    assert set_slider(page, 0.01) == 1
    line, frame = one(page, "#network .link").rect, page.execute_script(FRAME)
    assert frame[1] <= line["y"] and line["y"] + line["height"] <= frame[3]

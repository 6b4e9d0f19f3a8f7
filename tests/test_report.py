"""The report: its numbers, its curves, its file."""

import json
import re
import tomllib
from html.parser import HTMLParser
from importlib.resources import files
from itertools import combinations
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes.plots.lines import line_of
from gpn_bayes.plots.links import Link, links
from gpn_bayes.plots.placing import Placed
from gpn_bayes.posterior import GraphPosterior
from gpn_bayes.posterior.questions import Question
from gpn_bayes.report import content, drawing, svg
from gpn_bayes.report.compact import compact_places
from gpn_bayes.report.functions import functions_of
from gpn_bayes.report.page import script_json
from gpn_bayes.report.prediction import section_of
from tests.draws import exact_posterior, quick
from tests.reports import AWKWARD, LONG, awkward_posterior, crowded_posterior, made_posterior, read_numbers


@pytest.fixture(scope="module")
def post() -> GraphPosterior:
    return awkward_posterior()


@pytest.fixture(scope="module")
def found(post) -> dict:
    return content.content_of(post)


def test_how_well_it_predicts_is_shown_with_names_escaped():
    row = {"variable": "<v>", "model": "<b>", "difference": -3.0, "error": 0.5}
    shown = section_of({"best": "<a>", "others": ["<b>", "c"], "sentences": ["<a> predicts <b>"], "rows": [row]})
    assert not re.search("<[abv]>", shown) and shown.count("&lt;b&gt;") == 2 and "&lt;v&gt;" in shown
    assert '<tr class="clear">' in shown
    assert '<tr class="clear">' not in section_of(
        {"best": "a", "others": ["b"], "sentences": [], "rows": [row | {"error": 2}]}
    )


# Numbers


def test_edges_are_those_of_the_summary(post, found):
    n = len(post.names)
    for row in post.summary().itertuples():
        at = post.names.index(row.parent) * n + post.names.index(row.child)
        edges = found["edges"]
        assert edges["probability"][at] == pytest.approx(row.probability, abs=5e-7)
        assert edges["statuses"][edges["status"][at]] == row.status
        for name, decimals in (("mcse", 6), ("ess", 1), ("r_hat", 4)):
            value = getattr(row, name)
            assert edges[name][at] == (None if np.isnan(value) else pytest.approx(value, abs=0.6 * 10**-decimals))


def test_paths_and_pairs_are_those_of_the_posterior(post, found):
    n = len(post.names)
    np.testing.assert_allclose(
        np.reshape(found["paths"]["probability"], (n, n)), post.path_probabilities().to_numpy(), atol=1e-6
    )
    for at, (i, j) in enumerate(zip(*np.triu_indices(n, 1), strict=True)):
        expected = post.probability(lambda g, a=post.names[i], b=post.names[j]: g.has_edge(a, b) or g.has_edge(b, a))
        assert found["joined"]["probability"][at] == pytest.approx(expected.value, abs=1e-6)
        error = found["joined"]["mcse"][at]
        assert error is None if np.isnan(expected.mcse) else error == pytest.approx(expected.mcse, abs=1e-6)


@pytest.mark.parametrize("kind", ["drawn", "weighted", "exact"])
def test_parent_sets_are_the_most_probable(kind, post):
    own = post if kind == "drawn" else exact_posterior()[1]
    if kind == "weighted":
        weights = np.random.default_rng(2).normal(size=post.log_score.shape)
        own = GraphPosterior(post.names, post.parents, post.log_score, weights, settings=post.settings)
    listed = content.content_of(own)["sets"]
    for node, name in enumerate(own.names):
        expected = own.parent_set_probabilities(name).set_index("parents")["probability"]
        assert len(listed[node]) == min(4, len(expected))
        assert [p for _, p in listed[node]] == pytest.approx(expected.iloc[:4].tolist(), abs=1e-4)
        for parents, p in listed[node]:
            assert expected[tuple(own.names[k] for k in parents)] == pytest.approx(p, abs=1e-4)


def test_exact_posteriors_have_no_errors():
    _, post = exact_posterior()
    found = content.content_of(post)
    off = ~np.eye(4, dtype=bool).ravel()
    assert all(error == 0 for error, kept in zip(found["edges"]["mcse"], off, strict=True) if kept)
    assert set(found["joined"]["mcse"]) == {0} and found["trust"]["trace"] is None
    assert found["trust"]["verdict"] == "good" and found["edges"]["statuses"] == ["exact"]


def test_exact_pairs_are_exact_where_only_edges_are_summed():
    """From six variables on, the exact sampler sums edges alone, and all else is drawn."""
    data = gpn.datasets.sachs(transform="log2").iloc[:150, :7]
    post = gpn.sample(data, score="bge", draws=100, random_seed=1, progressbar=False)
    found = content.content_of(post)["joined"]
    asked = [post.probability(Question("-", (a, b))) for a, b in combinations(post.names, 2)]
    assert found["mcse"] == [0.0] * 21
    assert found["probability"] == pytest.approx([answer.value for answer in asked], abs=1e-6)
    drawn = post.probability(lambda graph: graph.has_edge("raf", "plcg") or graph.has_edge("plcg", "raf")).value
    place = list(combinations(post.names, 2)).index(("raf", "plcg"))
    assert abs(found["probability"][place] - drawn) > 0.001  # the draws alone would have said otherwise


def test_a_small_error_is_not_told_as_exact():
    assert content.errors([0.0, 2e-8, np.nan, 0.1234567]) == [0.0, 1e-7, None, 0.123457]


def test_the_content_is_plain_json(found):
    assert json.loads(json.dumps(found, allow_nan=False)) == json.loads(script_json(found))


# Where the network stands


def test_links_are_those_of_the_picture(post, found):
    expected = {(own.parent, own.child): own for own in links(post.edge_probabilities().to_numpy(), drawing.SHOWN_FROM)}
    drawn = found["network"]["links"]
    assert {(own["parent"], own["child"]) for own in drawn} == set(expected)
    for own in drawn:
        assert own["direction"] == expected[own["parent"], own["child"]].direction
    assert [own["probability"] for own in drawn] == sorted(own["probability"] for own in drawn)


@pytest.mark.parametrize("tiered", [False, True])
@pytest.mark.parametrize("n", [2, 11, 30, 100])
def test_nodes_do_not_overlap_and_stay_inside(n, tiered):
    names = [f"a rather long name of a variable {k}" if k % 7 == 0 else f"v{k}" for k in range(n)]
    tiers = [1 + 3 * k // n for k in range(n)] if tiered else None
    for own in drawing.drawing_of(crowded_posterior(names, tiers, seed=n)).layouts:
        centre, sizes = own.centre, own.sizes
        for k, (place, size) in enumerate(zip(centre, sizes, strict=True)):
            apart = (np.abs(centre - place) >= (sizes + size) / 2 - 0.2).any(axis=1)
            assert apart.sum() == n - 1, names[k]
        assert (centre - sizes / 2).min() >= 0
        assert (centre + sizes / 2 <= own.size).all()
        assert [band.tier for band in own.bands] == (sorted(set(tiers)) if tiered else [])
        for place, size, tier in zip(centre, sizes, tiers or [], strict=False):
            band = next(band for band in own.bands if band.tier == tier)
            assert band.top <= place[1] - size[1] / 2 and place[1] + size[1] / 2 <= band.bottom


def test_the_largest_drawing_has_letters_that_can_be_read():
    """On a screen of 1400 pixels, 30 long names have letters of 11 pixels or more, tiers or not."""
    for tiers in (None, [1 + k // 8 for k in range(30)]):
        own = drawing.drawing_of(crowded_posterior(tiers=tiers)).layouts[0]
        assert svg.FONT * own.scale((1158, 860)) >= 11


def test_small_networks_have_a_drawing_for_phones():
    few, many = (drawing.drawing_of(crowded_posterior(LONG[:n])).layouts for n in (8, 30))
    assert min(own.size[0] for own in few) <= 430 < min(own.size[0] for own in many)
    assert many[0].size[0] > many[0].size[1]


def test_names_in_nodes_are_broken_between_words_alone():
    for name in LONG:
        lines = svg.name_lines(name)
        assert "".join(lines).replace(" ", "") == name.replace(" ", "")
        assert all(line[-1] in "_-./" or name[name.index(line) + len(line)] == " " for line in lines[:-1]), name
    assert svg.name_lines("x" * 80) == ["x" * 25 + "…"]
    assert svg.name_lines("one two three four five six seven eight nine ten eleven twelve")[-1].endswith(" …")


def test_lines_pass_beside_nodes():
    names = ["a", "b", "c"]
    own = drawing.drawing_of(made_posterior(names, [(0, 1, 1.0), (1, 2, 1.0), (0, 2, 1.0)])).layouts[0]
    first, passing, last = own.courses[0, 2]
    (x, y), (width, height) = own.centre[1], own.sizes[1]
    assert abs(passing[0] - x) > width / 2 and passing[1] <= y - height / 2 and passing[2] >= y + height / 2
    assert first[1] == pytest.approx(own.centre[0, 1] + own.sizes[0, 1] / 2)
    assert last[2] == pytest.approx(own.centre[2, 1] - own.sizes[2, 1] / 2)


def test_the_page_holds_every_layout_as_python_drew_it(post, found, tmp_path):
    """A line and a node each, by number; what is written is what `line_of` says."""
    drawn, text = drawing.drawing_of(post), post.report(tmp_path / "report.html").read_text(encoding="utf-8")
    templates = re.findall(r'<template class="layout".*?</template>', text)
    assert len(templates) == len(found["layouts"]) == len(drawn.layouts) > 1
    for own, placed in zip(templates, drawn.layouts, strict=True):
        assert re.findall(r'data-link="(\d+)"', own) == [str(k) for k in range(len(drawn.links))]
        assert re.findall(r'data-node="(\d+)"', own) == [str(k) for k in range(len(post.names))]
        for written, link in zip(re.findall(r'class="line" d="([^"]*)"', own), drawn.links, strict=True):
            places, points = re.findall(r"[\d.]+", written), line_of(placed, link, 1.25, drawn.thinner).points
            np.testing.assert_allclose([*map(float, places[:2])], points[0], atol=0.051)
            assert float(places[-1]) == pytest.approx(points[-1, 1], abs=0.051)


def test_a_line_goes_from_parent_to_child_whichever_is_above():
    sizes = np.full((3, 2), [40.0, 20.0])
    centre = np.array([[50.0, 20.0], [150.0, 100.0], [250.0, 20.0]])
    placed = Placed(centre, sizes, {(0, 1): np.array([[45.0, 30.0, 40.0], [155.0, 80.0, 90.0]])}, [], (300, 120), 30.0)
    for parent, child in ((0, 1), (1, 0), (2, 1), (1, 2), (0, 2), (2, 0)):
        for direction in ("clear", "open"):
            points, head, width = line_of(placed, Link(parent, child, 1.0, direction), 1.0, 1.0)
            end = points[-1] if head is None else head[0]
            assert len(points) % 3 == 1 and (head is None) == (direction == "open") and width == pytest.approx(4)
            # Its ends lie outside both nodes, and next to them.
            for node, place in ((parent, points[0]), (child, end)):
                assert abs(place[0] - centre[node, 0]) <= 5 and 10 < abs(place[1] - centre[node, 1]) < 12
            if head is not None:
                towards = np.sign(centre[child, 1] - end[1])
                assert (head[1:, 1] == points[-1, 1]).all() and towards * (end[1] - points[-1, 1]) > 5
                assert (towards * (points[-1, 1] - points[1:, 1]) >= 0).all() or parent + child == 2


def test_a_deep_network_is_drawn_in_rows():
    """Eighty layers of one node each would have letters of three pixels."""
    names = [f"variable {k}" for k in range(80)]
    tiers = [1 + k // 40 for k in range(80)]
    own = drawing.drawing_of(
        made_posterior(names, [(k, k + 1, 1.0) for k in range(79)], shape=(1, 8), prior={"tiers": tiers})
    ).layouts[0]
    assert own.courses == {} and svg.FONT * own.scale((1158, 860)) > 8
    heights = own.centre[:, 1]
    assert heights[:40].max() < own.bands[1].top < heights[40:].min()


def test_a_crowded_network_starts_with_what_is_certain():
    n = 12
    edges = [(i, j, 0.95 if j == i + 1 else 0.3) for i in range(n) for j in range(i + 1, n)]
    found = drawing.drawing_of(made_posterior([f"v{k}" for k in range(n)], edges))
    assert found.start == 0.5


def test_causes_stand_above_effects_in_large_networks():
    order = np.random.default_rng(1).permutation(60)
    x, y = compact_places([(0, 1)], order, 70.0, 90.0)
    places = np.argsort(order)
    assert np.corrcoef(places, y)[0, 1] > 0.95
    assert np.ptp(x) / np.ptp(y) == pytest.approx(1, abs=0.35)


# Curves


@pytest.fixture(scope="module")
def curved() -> tuple[pd.DataFrame, GraphPosterior]:
    rng = np.random.default_rng(1)
    x = rng.uniform(-3, 3, 60)
    data = pd.DataFrame({"x": x, "y": np.sin(x) + 0.2 * rng.normal(size=60)})
    return data, gpn.sample(data, score="gp", draws=50, chains=2, random_seed=1, progressbar=False)


def test_curves_are_those_of_the_posterior(curved):
    data, post = curved
    found = functions_of(post, None, 24)
    own = found["of"]["1"][0]
    expected = post.curves("y", points=60)
    assert own["parent"] == 0 and found["missing"] == ""
    for name in ("mean", "lower", "upper"):
        assert own[name] == pytest.approx(expected[name].tolist(), rel=1e-3, abs=1e-3)
    assert found["rows"]["0"] == pytest.approx(data["x"].tolist(), rel=1e-3)
    assert (found["shown"], found["all"], len(own["dots"])) == (60, 60, 60)


def test_curves_that_are_left_out_are_told(curved):
    _, post = curved
    none = functions_of(post, None, 0)
    assert none["of"] == {} and 1 in none["left"]


def test_a_loaded_posterior_has_curves_if_given_the_rows(curved, tmp_path):
    data, post = curved
    post.save(tmp_path / "whole.nc")
    whole = gpn.load(tmp_path / "whole.nc").report(tmp_path / "whole.html")
    assert read_numbers(whole)["curves"] == functions_of(post, None, 24)
    post.save(tmp_path / "gp.nc", data=False)
    loaded = gpn.load(tmp_path / "gp.nc")
    without = loaded.report(tmp_path / "without.html")
    assert "give them to report as data" in read_numbers(without)["curves"]["missing"]
    with_rows = loaded.report(tmp_path / "with.html", data=data)
    assert read_numbers(with_rows)["curves"] == functions_of(post, None, 24)
    assert read_numbers(with_rows)["subtitle"].startswith("60 rows · GP score")
    with pytest.raises(
        ValueError, match="^data must be the table that the posterior was drawn from; received another$"
    ):
        loaded.report(tmp_path / "other.html", data=data + 1)
    assert not (tmp_path / "other.html").exists()


def test_rows_of_another_table_are_refused_without_curves_too():
    data, _ = exact_posterior()
    with pytest.raises(
        ValueError, match="^data must be the table that the posterior was drawn from; received another$"
    ):
        content.content_of(quick(data), data.iloc[:-1])


def test_other_scores_say_why_there_are_no_curves(found):
    assert found["curves"]["missing"].startswith("Curves come with the Gaussian-process score")


def test_many_rows_are_thinned():
    from gpn_bayes.report.functions import _some_rows

    rows = _some_rows(5000)
    assert len(rows) == 300 and len(set(rows)) == 300 and rows.max() > 4000


# The file


class _Page(HTMLParser):
    """Collects the elements of a page, where they lead, and the text outside scripts."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.links: list[str] = []
        self.text = ""

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.links += [value for name, value in attrs if name in ("src", "href", "action", "data") and value]

    def handle_data(self, data):
        if self.tags[-1:] not in (["script"], ["style"]):
            self.text += data


def test_names_are_escaped_everywhere(post, tmp_path):
    path = post.report(tmp_path / "report.html")
    page = _Page()
    page.feed(path.read_text(encoding="utf-8"))
    assert page.tags.count("script") == 3 and "b" not in page.tags
    assert "<b>raf</b> → mek & co 1.00" in page.text
    assert read_numbers(path)["names"] == list(AWKWARD)
    assert page.links == [link for link in page.links if link.startswith("#")]


def test_nothing_is_loaded_from_elsewhere(post, tmp_path):
    text = post.report(tmp_path / "report.html").read_text(encoding="utf-8")
    assert "default-src 'none'" in text
    assert not re.search(r"<(script|link|img|iframe)[^>]*(src|href)=", text)
    assert not re.search(r"@import|url\(", text[: text.index("</style>")])


def test_an_existing_file_is_kept(post, tmp_path):
    path = tmp_path / "report.html"
    path.write_text("mine", encoding="utf-8")
    with pytest.raises(ValueError, match="^an existing file is only replaced with overwrite=True; '.*' exists$"):
        post.report(path)
    assert path.read_text(encoding="utf-8") == "mine"
    assert post.report(str(path), overwrite=True) == path
    assert path.read_text(encoding="utf-8").startswith("<!doctype html>")
    assert [file.name for file in tmp_path.iterdir()] == ["report.html"]


def test_impossible_paths_are_refused(post, tmp_path):
    with pytest.raises(ValueError, match=r"^the file's name must end with \.html or \.htm; received 'report\.pdf'$"):
        post.report(tmp_path / "report.pdf")
    with pytest.raises(ValueError, match="^the folder must exist; '.*nowhere' doesn't$"):
        post.report(tmp_path / "nowhere" / "report.html")
    with pytest.raises(ValueError, match="^the path must be that of a file; '.*' is a folder$"):
        post.report(tmp_path, overwrite=True)
    with pytest.raises(ValueError, match="^the path must be a text or a Path; received None$"):
        post.report(None)
    # Where the system refuses: the name of what is not complete yet is taken.
    (tmp_path / ".report.html.part").mkdir()
    with pytest.raises(ValueError, match=r"^a file must be writable; '.*report.html' isn't: .+$"):
        post.report(tmp_path / "report.html", overwrite=True)
    with pytest.raises(ValueError, match="^curves must be a whole number, 0 or more; received -1$"):
        post.report(tmp_path / "r.html", curves=-1)


def test_the_same_posterior_gives_the_same_file(post, tmp_path):
    one, two = (post.report(tmp_path / name).read_bytes() for name in ("a.html", "b.html"))
    assert one == two


def test_a_loaded_posterior_gives_the_same_file(post, tmp_path):
    post.save(tmp_path / "post.nc")
    loaded = gpn.load(tmp_path / "post.nc").report(tmp_path / "loaded.html")
    assert loaded.read_bytes() == post.report(tmp_path / "own.html").read_bytes()


def test_scripts_do_not_end_early():
    for asset in (files("gpn_bayes.report") / "assets").iterdir():
        assert "</script" not in asset.read_text(encoding="utf-8") or asset.name == "page.html"


def test_a_report_of_a_hundred_variables_is_small(tmp_path):
    rng = np.random.default_rng(4)
    n = 100
    edges = [(i, j, p) for i in range(n) for j in range(i + 1, n) if (p := rng.beta(0.05, 2)) > 1e-3]
    path = made_posterior([f"gene {k}" for k in range(n)], edges, shape=(4, 100)).report(tmp_path / "large.html")
    assert path.stat().st_size < 1.1e6
    assert len(read_numbers(path)["network"]["links"]) > 100


def test_the_assets_are_packaged():
    settings = tomllib.loads((Path(__file__).parents[1] / "pyproject.toml").read_text(encoding="utf-8"))
    assert settings["tool"]["setuptools"]["package-data"]["gpn_bayes.report"] == ["assets/*"]

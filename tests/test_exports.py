"""Learned graphs for other programs: what is written is what those programs read, whatever the names are."""

import re
import sys

import networkx as nx
import numpy as np
import pandas as pd
import pytest

import gpn_bayes as gpn
from gpn_bayes import estimators, graphs, simulate
from gpn_bayes._util.extras import MissingPackage
from gpn_bayes.estimators.bootstrapping import BootstrapResult
from gpn_bayes.posterior import GraphPosterior
from tests.command_line import call

HOSTILE = ('a"b', "a\\", "x y", "é ≤ 5", "<b>&amp;'", "a\nb", "=1+1", "digraph", "a -> b;", '\\"', "#|:[]{}", " ")
CONTROL = "bell\x07"
# Three draws over a, b, c: each edge of the cycle a -> b -> c -> a is in two of them.
CYCLE = np.array(
    [
        [[0, 1, 0], [0, 0, 1], [0, 0, 0]],
        [[0, 0, 0], [0, 0, 1], [1, 0, 0]],
        [[0, 1, 0], [0, 0, 0], [1, 0, 0]],
    ]
)


def chain_of(names):
    """Return a posterior whose draws all hold names[0] -> names[1] -> …, and half of them names[0] -> names[-1]."""
    dags = np.stack([np.eye(len(names), k=1, dtype=np.int8)] * 4)
    dags[:2, 0, -1] = 1
    return GraphPosterior(tuple(names), graphs.pack(dags)[None], np.array([[0.0, 1.0, 2.0, 3.0]]))


def cyclic(kind=GraphPosterior):
    parents = graphs.pack(CYCLE)[None]
    if kind is BootstrapResult:
        return BootstrapResult(("a", "b", "c"), parents, "PC()")
    return GraphPosterior(("a", "b", "c"), parents, np.array([[0.0, 2.0, 1.0]]))


def truth():
    return simulate.DiscreteNetwork(
        levels={"cloud cover": ["low", "high"], "rain": ["no", "yes"], "wet": ["0", "1", "2"]},
        parents={"rain": ["cloud cover"], "wet": ["cloud cover", "rain"]},
        tables={
            "cloud cover": [0.3, 0.7],
            "rain": [[0.9, 0.1], [0.25, 0.75]],
            "wet": [[[0.7, 0.2, 0.1], [0.1, 0.3, 0.6]], [[0.5, 0.25, 0.25], [0.05, 0.05, 0.9]]],
        },
    )


@pytest.fixture(scope="module")
def table():
    return truth().sample(400, random_seed=1)


@pytest.fixture(scope="module")
def k2(table):
    return estimators.K2(order=list(table)).fit(table)


@pytest.fixture(scope="module")
def plain(table):
    """Return a learner of plain names: those are all that the BIF readers of pgmpy and pyAgrum take."""
    return estimators.K2(order=["sky", "rain", "wet"]).fit(table.set_axis(["sky", "rain", "wet"], axis=1))


@pytest.fixture(scope="module")
def post(table):
    required = list(truth().graph.edges)
    return gpn.sample(table, score="bdeu", required=required, draws=100, random_seed=1, progressbar=False)


# What is in which format


def test_graphml_comes_back_from_networkx(tmp_path):
    source = chain_of(HOSTILE)
    back = nx.read_graphml(source.export(tmp_path / "network.graphml", threshold=0.4))
    expected = source.to_networkx(threshold=0.4)
    assert list(back.nodes) == list(HOSTILE)
    assert dict(back.edges) == dict(expected.edges)
    assert back.edges[HOSTILE[0], HOSTILE[-1]] == {"probability": 0.5}
    # Line separators of Unicode stay as they are.
    assert list(nx.parse_graphml(chain_of(["a\u2028b", "c\x85"]).to_text("graphml"))) == ["a\u2028b", "c\x85"]


def test_dot_comes_back_from_pydot(tmp_path):
    pydot = pytest.importorskip("pydot")
    source = chain_of(HOSTILE)
    text = source.export(tmp_path / "network.gv", threshold=0.4).read_text(encoding="utf-8")
    [back] = pydot.graph_from_dot_data(text)

    def name_of(quoted):
        marks = {"n": "\n", '"': '"', "\\": "\\"}
        return re.sub(r"\\(.)", lambda found: marks[found[1]], quoted[1:-1])

    assert [name_of(node.get_name()) for node in back.get_nodes()] == list(HOSTILE)
    edges = {
        (name_of(edge.get_source()), name_of(edge.get_destination())): float(edge.get_attributes()["probability"])
        for edge in back.get_edges()
    }
    assert edges == nx.get_edge_attributes(source.to_networkx(threshold=0.4), "probability")


def read_dagitty(text):
    """Return the kind, nodes and edges of dagitty code, by the grammar of its parser; written for this test."""
    kind, body = re.fullmatch(r"(dag|pdag) \{\n(.*)\}\n", text, re.DOTALL).groups()
    tokens = re.findall(r'"(?:[^"\\\x00-\x1f\x7f]|\\"|\\)*?(?<!\\)"|-?[0-9a-zA-Z_.]+|->|--|\S', body)
    words = [re.sub(r'\\"', '"', token[1:-1]) if token[0] == '"' else token for token in tokens]
    nodes, edges, place = [], [], 0
    while place < len(tokens):
        if place + 1 < len(tokens) and tokens[place + 1] in ("->", "--"):
            edges.append((words[place], tokens[place + 1], words[place + 2]))
            place += 3
        else:
            nodes.append(words[place])
            place += 1
    return kind, nodes, edges


def test_dagitty_code_is_read_by_its_grammar(tmp_path):
    names = [name for name in HOSTILE if "\n" not in name and not name.endswith("\\")]
    text = chain_of(names).export(tmp_path / "network.dagitty").read_text(encoding="utf-8")
    pairs = zip(names, names[1:], strict=False)
    assert read_dagitty(text) == ("dag", names, [(parent, "->", child) for parent, child in pairs])


def read_model_string(text):
    """Return the parents of each variable of a model string."""
    assert re.fullmatch(r"(\[[^|:\[\]]+(\|[^|:\[\]]+(:[^|:\[\]]+)*)?\])+\n", text)
    parts = [part.partition("|") for part in text.strip("\n")[1:-1].split("][")]
    return {name: own.split(":") if own else [] for name, _, own in parts}


def test_model_strings_name_the_parents(tmp_path, post):
    names = [name for name in HOSTILE if not set(name) & set("|:[]\n")]
    text = chain_of(names).export(tmp_path / "network.bnlearn", which="map").read_text(encoding="utf-8")
    assert read_model_string(text) == {name: names[max(i - 1, 0) : i] for i, name in enumerate(names)}
    assert post.to_text("bnlearn") == "[cloud cover][rain|cloud cover][wet|cloud cover:rain]\n"


def test_the_matrix_comes_back_from_pandas(tmp_path):
    source = chain_of(HOSTILE)
    back = pd.read_csv(source.export(tmp_path / "network.csv"), index_col=0, keep_default_na=False)
    names = ["'=1+1" if name == "=1+1" else name for name in HOSTILE]  # as a spreadsheet takes it for text
    np.testing.assert_array_equal(graphs.as_adjacency(back, names), np.eye(len(names), k=1))


FORBIDDEN = {
    "graphml": (CONTROL, "GraphML can hold no control characters"),
    "dot": ("nul\0", "DOT can hold no null character"),
    "dagitty": ("a\\", "dagitty takes no control characters, nor \\ at the end"),
    "bnlearn": ("a:b", "model strings can hold none of | : [ ] in a name, nor control characters"),
    "csv": ("\udc80", "names must be text that UTF-8 can hold"),
}


@pytest.mark.parametrize(("form", "name", "rule"), [(form, *known) for form, known in FORBIDDEN.items()])
def test_names_that_a_format_cannot_hold_are_refused(form, name, rule, tmp_path):
    with pytest.raises(ValueError) as refused:
        chain_of([name, "z"]).export(tmp_path / f"network.{form}")
    assert str(refused.value).startswith(f"{rule}; received") and "\n" not in str(refused.value)
    assert not list(tmp_path.iterdir())


# Tables


@pytest.mark.parametrize("learnt", ["k2", "post"])
def test_bif_holds_the_fitted_tables(learnt, request, table, tmp_path):
    source = request.getfixturevalue(learnt)
    back = simulate.read_bif(source.export(tmp_path / "network.bif"))
    assert back.levels == truth().levels and back.parents == truth().parents
    for name, own in back.parents.items():
        shape = [len(back.levels[variable]) for variable in (*own, name)]
        cells = table.groupby([*own, name], observed=False).size().to_numpy().reshape(shape)
        imagined = 1.0 if learnt == "k2" else 1.0 / np.prod(shape)  # BDeu with one imagined row
        expected = (cells + imagined) / (cells + imagined).sum(axis=-1, keepdims=True)
        np.testing.assert_allclose(back.tables[name], expected, rtol=1e-12)


def test_bif_with_hostile_names_comes_back(tmp_path):
    rows = [["<5%", "a|b"], ["5, or more", "{c}"]] * 10
    data = pd.DataFrame(rows, columns=["low O₂ (x;y)", "a\\|:[]=' <b>"])
    learner = estimators.HillClimbing(score="bdeu", random_state=1).fit(data)
    back = simulate.read_bif(learner.export(tmp_path / "network.bif"))
    assert list(back.graph.nodes) == list(data) and back.graph.edges == learner.graph_.edges
    assert back.levels == {name: tuple(sorted(set(data[name]))) for name in data}
    with pytest.raises(ValueError, match="^a name in a BIF file may hold no quotation mark and no line break; rec"):
        estimators.K2().fit(data.rename(columns={data.columns[0]: 'a"b'})).to_text("bif")


def check_same(network, probability, error=1e-12):
    """Check P(level | parents) of every cell of a network, as another program has it."""
    for name, own in network.parents.items():
        for place in np.ndindex(network.tables[name].shape):
            cell = {variable: network.levels[variable][k] for variable, k in zip((*own, name), place, strict=True)}
            assert probability(name, cell) == pytest.approx(network.tables[name][place], abs=error)


@pytest.mark.more("loads other packages")
def test_pgmpy_has_the_same_network(k2, plain, tmp_path):
    pytest.importorskip("pgmpy")
    from pgmpy.inference import VariableElimination
    from pgmpy.readwrite import BIFReader

    own = simulate.read_bif(k2.export(tmp_path / "network.bif"))
    model = k2.to_pgmpy()
    assert model.check_model() and set(model.edges) == set(k2.graph_.edges)
    check_same(own, lambda name, cell: model.get_cpds(name).get_value(**cell))
    asked = VariableElimination(model).query(["wet"], evidence={"rain": "yes"}, show_progress=False)
    assert asked.get_value(wet="2") == pytest.approx(posterior_of_wet(own), abs=1e-9)
    plain.export(tmp_path / "plain.bif")
    read = BIFReader(str(tmp_path / "plain.bif")).get_model()
    assert set(read.edges) == set(plain.graph_.edges)
    check_same(simulate.read_bif(tmp_path / "plain.bif"), lambda name, cell: read.get_cpds(name).get_value(**cell))


def posterior_of_wet(network):
    """Return P(wet = 2 | rain = yes)."""
    joint = network.tables["cloud cover"] * network.tables["rain"][:, 1]
    return float(joint @ network.tables["wet"][:, 1, 2] / joint.sum())


@pytest.mark.more("loads other packages")
def test_pyagrum_has_the_same_network(k2, plain, tmp_path):
    pyagrum = pytest.importorskip("pyagrum")
    own = simulate.read_bif(k2.export(tmp_path / "network.bif"))
    model = k2.to_pyagrum()
    assert {(model.variable(a).name(), model.variable(b).name()) for a, b in model.arcs()} == set(k2.graph_.edges)
    check_same(own, lambda name, cell: model.cpt(name)[cell])
    inference = pyagrum.LazyPropagation(model)
    inference.setEvidence({"rain": "yes"})
    assert inference.posterior("wet")[{"wet": "2"}] == pytest.approx(posterior_of_wet(own), abs=1e-9)
    read = pyagrum.loadBN(str(plain.export(tmp_path / "plain.bif")))
    # It reads numbers in single precision.
    check_same(simulate.read_bif(tmp_path / "plain.bif"), lambda name, cell: read.cpt(name)[cell], 1e-7)


@pytest.mark.parametrize("package", ["pgmpy", "pyagrum"])
def test_missing_packages_name_their_extra(package, k2, monkeypatch):
    for name in [name for name in sys.modules if name.partition(".")[0] == package]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(MissingPackage, match=rf'^{package} must be installed; use pip install "gpn_bayes\[export\]"$'):
        getattr(k2, f"to_{package}")()


def test_tables_need_categories_and_data(tmp_path):
    numbers = simulate.linear(nx.DiGraph([("a", "b")]), 100, random_seed=1)
    learner = estimators.HillClimbing(score="bge", random_state=1).fit(numbers)
    with pytest.raises(ValueError, match="^tables are those of categories; the score BGe.* takes columns as numbers$"):
        learner.export(tmp_path / "network.bif")
    with pytest.raises(ValueError, match="^tables are fitted to the data; a bootstrap keeps none: export a fitted le"):
        cyclic(BootstrapResult).to_text("bif", which="mode")
    with pytest.raises(ValueError, match="^tables need the score, and this posterior doesn't have it; sample again$"):
        cyclic().to_text("bif", which="map")


# Which graph


@pytest.mark.parametrize(("kind", "best"), [(GraphPosterior, "map"), (BootstrapResult, "mode")])
@pytest.mark.parametrize("form", ["bnlearn", "dagitty"])
def test_cycles_are_refused_where_a_dag_is_needed(kind, best, form):
    source = cyclic(kind)
    message = f"^this format needs a DAG; the graph has the cycle a -> b -> c -> a: use which='{best}'$"
    with pytest.raises(ValueError, match=message):
        source.to_text(form)
    assert nx.parse_graphml(source.to_text("graphml")).number_of_edges() == 3
    assert source.to_text(form, which=best)


def test_a_posterior_exports_its_median_or_its_best_graph():
    source = cyclic()
    assert source.to_text("bnlearn", which="map") == "[a|c][b][c|b]\n"
    assert {edge["probability"] for *_, edge in source.to_networkx(which="map").edges(data=True)} == {2 / 3}
    assert source.to_networkx(threshold=0.7).number_of_edges() == 0
    assert list(source.to_pandas(threshold=0.7)) == ["parent", "child"]
    assert cyclic(BootstrapResult).to_pandas()["frequency"].tolist() == pytest.approx([2 / 3] * 3)
    with pytest.raises(ValueError, match="^which must be one of median, map; received 'mode'$"):
        source.to_networkx(which="mode")
    with pytest.raises(ValueError, match="^a threshold is that of which='median'; received 0.1 with which='map'$"):
        source.to_networkx(which="map", threshold=0.1)
    with pytest.raises(ValueError, match="^threshold must lie between 0 and 1; received 2$"):
        source.to_networkx(threshold=2)


def test_learners_export_weights_and_undirected_edges():
    chain = simulate.linear(nx.DiGraph([("a", "b"), ("b", "c")]), 300, random_seed=1)
    found = estimators.NOTEARS(check_scale=False, random_state=1).fit(chain)
    pairs = found.to_networkx().edges(data="weight")
    assert {(a, b): weight for a, b, weight in pairs} == {
        (a, b): found.weights_[list("abc").index(a), list("abc").index(b)] for a, b in found.graph_.edges
    }
    classes = estimators.PC(alpha=0.01).fit(chain)
    assert classes.to_pandas()["undirected"].all()
    kind, _, edges = read_dagitty(classes.to_text("dagitty"))
    assert (kind, edges) == ("pdag", [("a", "--", "b"), ("b", "--", "c")])
    assert classes.to_text("dot").count("dir=none") == 2
    parents = read_model_string(classes.to_text("bnlearn"))
    assert {(parent, child) for child, own in parents.items() for parent in own} == set(classes.dag_.edges)
    for setting in ({"which": "map"}, {"threshold": 0.5}):
        with pytest.raises(ValueError, match="^a learner has one graph to export; received "):
            classes.to_networkx(**setting)
    with pytest.raises(ValueError, match="^a learner must be fitted before it is exported; PC isn't: call fit first$"):
        estimators.PC().to_text("dot")


def test_edges_of_the_past_are_exported_too():
    series = simulate.svar(nx.DiGraph([("rain", "flow")]), [[[1, 0], [0, 1]]], 300, random_seed=1)
    learner = estimators.DYNOTEARS(random_state=1).fit(series)
    back = nx.parse_graphml(learner.to_text("graphml"))
    assert dict(back.edges) == dict(learner.lagged_graph_.edges) and back.has_edge("flow[t-1]", "flow[t]")


# Files and the command line


def test_files_are_not_overwritten_unless_asked(tmp_path):
    file, source = tmp_path / "network.DOT", chain_of(["a", "b"])
    assert source.export(str(file)) == file
    with pytest.raises(ValueError, match="^an existing file is only replaced with overwrite=True; "):
        chain_of(["c", "d"]).export(file)
    assert file.read_text() == source.to_text("dot")
    chain_of(["c", "d"]).export(file, overwrite=True)
    assert '"c" -> "d"' in file.read_text()
    message = "^the file must end with one of .graphml, .dot, .*, .bif, .gv; received 'network.txt'$"
    with pytest.raises(ValueError, match=message):
        source.export(tmp_path / "network.txt")
    with pytest.raises(ValueError, match="^form must be one of graphml, dot, dagitty, bnlearn, csv, bif; rec"):
        source.to_text("xml")


def test_the_command_line_writes_the_same_files(post, tmp_path, capsys):
    post.save(tmp_path / "posterior.nc")
    for form in ("graphml", "bif"):
        code, shown, _ = call(capsys, "export", tmp_path, tmp_path / f"network.{form}", "--which", "map")
        assert code == 0 and f"network.{form}" in shown
        assert (tmp_path / f"network.{form}").read_text(encoding="utf-8") == post.to_text(form, which="map")
    code, _, messages = call(capsys, "export", tmp_path / "posterior.nc", tmp_path / "network.bif")
    assert code == 2
    assert messages.startswith("error: nothing is overwritten; ") and messages.count("\n") == 1


def test_the_command_line_names_the_option_that_helps(tmp_path, capsys):
    cyclic().save(tmp_path / "posterior.nc")
    code, _, messages = call(capsys, "export", tmp_path, tmp_path / "network.bnlearn")
    assert code == 2 and messages.endswith("the graph has the cycle a -> b -> c -> a: use --which map\n")
    assert call(capsys, "export", tmp_path, tmp_path / "network.dot", "--threshold", "0.7")[0] == 0
    assert "->" not in (tmp_path / "network.dot").read_text()

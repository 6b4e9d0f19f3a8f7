"""BIF files: what is read, what is written, and that a broken one is refused with its line."""

import gzip
import time
from pathlib import Path

import numpy as np
import pytest

from gpn_bayes import simulate
from gpn_bayes.simulate import DiscreteNetwork, read_bif, write_bif

ASIA = Path(__file__).parent / "reference" / "discrete" / "asia.bif"
GOOD = """network two {
}
variable a {
  type discrete [ 2 ] { yes, no };
}
variable b {
  type discrete [ 3 ] { x, y, z };
}
probability ( a ) {
  table 0.3, 0.7;
}
probability ( b | a ) {
  (yes) 0.1, 0.2, 0.7;
  (no) 0.5, 0.25, 0.25;
}
"""
TABLE_B = [[0.1, 0.2, 0.7], [0.5, 0.25, 0.25]]


def read(tmp_path: Path, text: str) -> DiscreteNetwork:
    path = tmp_path / "net.bif"
    path.write_text(text, encoding="utf-8")
    return read_bif(path)


def test_asia_is_read():
    network = read_bif(ASIA)
    assert network.names == ("asia", "tub", "smoke", "lung", "bronc", "either", "xray", "dysp")
    assert set(network.levels.values()) == {("yes", "no")}
    assert network.parents["either"] == ("tub", "lung") and network.parents["dysp"] == ("bronc", "either")
    # The default stands for every configuration that isn't listed.
    assert network.tables["either"].tolist() == [[[1, 0], [1, 0]], [[1, 0], [0, 1]]]
    assert network.tables["dysp"].tolist() == [[[0.9, 0.1], [0.8, 0.2]], [[0.7, 0.3], [0.1, 0.9]]]
    assert network.graph.number_of_edges() == 8


def test_configurations_come_in_any_order(tmp_path):
    lines = GOOD.splitlines()
    lines[12], lines[13] = lines[13], lines[12]
    assert read(tmp_path, "\n".join(lines)).tables["b"].tolist() == TABLE_B


def test_a_table_counts_its_last_parent_fastest(tmp_path):
    """As the format has it: first the first level under all configurations."""
    text = GOOD.replace("  (yes) 0.1, 0.2, 0.7;\n  (no) 0.5, 0.25, 0.25;", "  table 0.1, 0.5, 0.2, 0.25, 0.7, 0.25;")
    assert read(tmp_path, text).tables["b"].tolist() == TABLE_B


def test_early_files_are_read(tmp_path):
    """Quotes around names, neither commas nor bars, comments and properties everywhere."""
    text = """// made by hand
    network "Dog Problem" { //5 variables
        property "version 1.0" ;
        property credits = (nobody; }
    /* between; the "blocks" { */
    variable "light on" { //2 values
        type discrete[2] { "true"  "false" };
        property "position = (218, 195)" ;
    }
    variable out { property x; type discrete[2] { "in house" out}; }
    probability ( "light on" out ) { //2 variables and 4 values
        property drawn = "by hand";
        table 0.6 0.05 0.4 0.95 ;
    }
    probability(out){table 15e-2 .85;}"""
    network = read(tmp_path, text)
    assert network.levels == {"light on": ("true", "false"), "out": ("in house", "out")}
    assert network.parents == {"light on": ("out",), "out": ()}
    assert network.tables["light on"].tolist() == [[0.6, 0.4], [0.05, 0.95]]
    assert network.tables["out"].tolist() == [0.15, 0.85]


def test_odd_names_are_read(tmp_path):
    levels = [
        "5-12",
        "<7.5",
        ">=7.5",
        "0-3_days",
        "True",
        "12+",
        "Asy/Patch",
        "Transp.",
        "None",
        "TNF-α",
        "table",
        "1e-3",
    ]
    declared = f"type discrete [ {len(levels)} ] {{ {', '.join(levels)} }};"
    text = GOOD.replace("type discrete [ 2 ] { yes, no };", declared)
    text = text.replace("table 0.3, 0.7", "table 0.12" + ", 0.08" * 11)
    rows = "".join(f"  ({level}) 0.1, 0.2, 0.7;\n" for level in levels)
    text = text.replace("  (yes) 0.1, 0.2, 0.7;\n  (no) 0.5, 0.25, 0.25;\n", rows)
    assert read(tmp_path, text).levels["a"] == tuple(levels)


def test_a_variable_may_have_one_level(tmp_path):
    text = GOOD.replace("[ 2 ] { yes, no }", "[ 1 ] { yes }").replace("0.3, 0.7", "1.0").replace("(no)", "//")
    assert read(tmp_path, text).tables["b"].tolist() == TABLE_B[:1]


def test_rounded_probabilities_are_filled_up(tmp_path):
    network = read(tmp_path, GOOD.replace("0.5, 0.25, 0.25", "0.33, 0.33, 0.33"))
    assert network.tables["b"][1].tolist() == pytest.approx([1 / 3] * 3, abs=1e-15)
    assert network.tables["b"][0].tolist() == TABLE_B[0]


def test_compressed_files_and_marks_of_byte_order(tmp_path):
    (tmp_path / "net.bif.gz").write_bytes(gzip.compress(GOOD.encode()))
    assert read_bif(str(tmp_path / "net.bif.gz")).tables["b"].tolist() == TABLE_B
    (tmp_path / "bom.bif").write_text(GOOD.replace("\n", "\r\n"), encoding="utf-8-sig", newline="")
    assert read_bif(tmp_path / "bom.bif").tables["b"].tolist() == TABLE_B


def same(one: DiscreteNetwork, two: DiscreteNetwork) -> bool:
    return (
        one.levels == two.levels
        and one.parents == two.parents
        and all(np.array_equal(one.tables[name], two.tables[name]) for name in one.names)
    )


@pytest.mark.parametrize("seed", range(5))
def test_what_is_written_is_read_again(seed, tmp_path):
    dag = simulate.random_dag(8, p=0.4, random_seed=seed)
    network = simulate.random_network(dag, levels={"v1": 4, "v3": 3}, concentration=0.5, random_seed=seed)
    write_bif(network, tmp_path / "net.bif")
    with pytest.raises(ValueError, match=r"nothing is overwritten; '.*net\.bif' exists"):
        write_bif(network, tmp_path / "net.bif")
    assert same(read_bif(tmp_path / "net.bif"), network)
    assert not same(simulate.random_network(dag, levels={"v1": 4, "v3": 3}, random_seed=seed + 9), network)


def test_odd_names_are_written_in_quotes(tmp_path):
    levels = {"IL 6 (a|b)": ["", "//", "a/*b", "x;y", "5-12", "table", "[1]"], "probability": ["{", ","]}
    tables = {"IL 6 (a|b)": [1 / 7] * 7, "probability": np.tile([0.25, 0.75], (7, 1))}
    network = DiscreteNetwork(levels, {"probability": ["IL 6 (a|b)"]}, tables)
    write_bif(network, tmp_path / "odd.bif", name="odd names")
    assert same(read_bif(tmp_path / "odd.bif"), network)
    with pytest.raises(ValueError, match="may hold no quotation mark and no line break; received 'a\"b'$"):
        write_bif(DiscreteNetwork({"x": ['a"b']}, {}, {"x": [1]}), tmp_path / "bad.bif")
    assert not (tmp_path / "bad.bif").exists()


BROKEN = {
    "unknown parent": ("( b | a )", "( b | c )", 12, "every name must be a variable declared before; 'c' is not"),
    "unknown child": ("( a ) {", "( q ) {", 9, "every name must be a variable declared before; 'q' is not"),
    "its own parent": ("( b | a )", "( b | a, b )", 12, "each parent once; received ['b', 'a', 'b']"),
    "nobody's": ("( a )", "( )", 9, "names its variable and each parent once; received []"),
    "too few": ("0.1, 0.2, 0.7", "0.3, 0.7", 13, "3 probabilities of 'b' must stand here; received 2"),
    "too many": ("0.3, 0.7", "0.3, 0.6, 0.1", 10, "2 probabilities of 'a' must stand here; received 3"),
    "short table": (
        "(yes) 0.1, 0.2, 0.7",
        "table 0.1, 0.2, 0.7",
        13,
        "6 probabilities of 'b' must stand here; received 3",
    ),
    "sum": ("0.5, 0.25, 0.25", "0.5, 0.3, 0.25", 14, "probabilities must sum to 1; those of 'b' sum to 1.05"),
    "sum in a table": ("table 0.3, 0.7", "table 0.3, 0.6", 10, "probabilities must sum to 1; those of 'a' sum to 0.9"),
    "no number": ("0.3, 0.7", "0.3, lots", 10, "a probability must be a number from 0 to 1; received 'lots'"),
    "negative": ("0.3, 0.7", "1.3, -0.3", 10, "a probability must be a number from 0 to 1; received '1.3'"),
    "not a number": ("0.3, 0.7", "nan, 0.7", 10, "a probability must be a number from 0 to 1; received 'nan'"),
    "missing row": (
        "  (no) 0.5, 0.25, 0.25;\n",
        "",
        12,
        "every configuration must have probabilities; 'b' has none for (no)",
    ),
    "empty block": ("  table 0.3, 0.7;\n", "", 9, "every configuration must have probabilities; 'a' has none for ()"),
    "row twice": ("(no)", "(yes)", 14, "every configuration is given once; one of 'b' is repeated"),
    "unknown level": ("(no)", "(maybe)", 14, "every value must be a level of its variable; 'a' has no 'maybe'"),
    "long configuration": ("(no)", "(no, x)", 14, "a configuration has a level for each of 1 parents; received 2"),
    "wrong count": ("[ 2 ]", "[ 3 ]", 4, "'a' must have as many levels as it says, 3; it has 2"),
    "odd count": ("[ 2 ]", "[ two ]", 4, "'a' must have as many levels as it says, two; it has 2"),
    "no levels": ("[ 2 ] { yes, no }", "[ 0 ] { }", 4, "'a' must have as many levels as it says, 0; it has 0"),
    "level twice": ("yes, no", "yes, yes", 4, "the levels of a variable must differ; 'a' has 'yes' twice"),
    "continuous": ("discrete [ 2 ]", "continuous [ 2 ]", 4, "variables must be discrete; 'a' is 'continuous'"),
    "no type": ("  type discrete [ 2 ] { yes, no };\n", "", 3, "every variable must have one type; 'a' has 0"),
    "declared twice": ("variable b", "variable a", 6, "every variable is declared once; 'a' is declared again"),
    "nameless": ("variable b", "variable", 6, "a variable's name must follow here; received '{'"),
    "block twice": ("( b | a )", "( a )", 12, "every variable has one probability block; 'a' has another"),
    "no block": (
        "probability ( b | a ) {\n  (yes) 0.1, 0.2, 0.7;\n  (no) 0.5, 0.25, 0.25;\n}\n",
        "",
        11,
        "every variable must have a probability block; 'b' has none",
    ),
    "cycle": (
        "( a ) {\n  table 0.3, 0.7;",
        "( a | b ) {\n  default 0.3, 0.7;",
        12,
        "the graph must be acyclic; it contains",
    ),
    "lost semicolon": ("0.3, 0.7;", "0.3, 0.7", 11, "';' must follow here; received '}'"),
    "lost bracket": ("[ 2 ]", "2", 4, "'[' must follow here; received '2'"),
    "lost brace": ("( a ) {", "( a )", 10, "'{' must follow here; received 'table'"),
    "word out of place": (
        "  table 0.3",
        "  tables 0.3",
        10,
        "a probability block holds (, table, default, property; received 'tables'",
    ),
    "unknown block": ("variable b", "node b", 6, "a block begins with network, variable, probability; received 'node'"),
    "brace too many": ("  table 0.3, 0.7;\n}", "  table 0.3, 0.7;\n}}", 11, "a block begins with network"),
    "network": ("network two {", "network two (", 1, "'{' must follow here; received '('"),
    "network's mark": ("network two {", "network ; {", 1, "the network's name must follow here; received ';'"),
    "network's content": (
        "network two {",
        "network two { author me;",
        1,
        "a network block holds property; received 'author'",
    ),
    "open comment": ("probability ( b", "/* probability ( b", 12, "a comment /* must end with */; it doesn't"),
    "open quote": ("variable b", 'variable "b', 6, 'a name in " must end with "; it doesn\'t'),
}


@pytest.mark.parametrize("case", BROKEN)
def test_broken_files_are_refused_with_their_line(case, tmp_path):
    old, new, line, expected = BROKEN[case]
    assert old in GOOD
    with pytest.raises(ValueError) as caught:
        read(tmp_path, GOOD.replace(old, new, 1))
    message = str(caught.value)
    assert message.startswith(f"net.bif, line {line}: ") and expected in message and "\n" not in message


def test_a_file_cut_short_anywhere_is_refused(tmp_path):
    """Also nothing hangs: every beginning of a file that isn't whole blocks, or lacks some, is told in one line."""
    started = time.perf_counter()
    whole = GOOD.rstrip()
    for end in range(len(whole)):
        with pytest.raises(ValueError) as caught:
            read(tmp_path, whole[:end])
        assert str(caught.value).startswith("net.bif, line ") and "\n" not in str(caught.value)
    with pytest.raises(ValueError, match="^net.bif, line 13: the file must be complete; it ends within a block$"):
        read(tmp_path, "\n".join(GOOD.splitlines()[:13]))
    assert time.perf_counter() - started < 20


def test_a_table_beyond_memory_is_refused(tmp_path):
    names = [f"v{i}" for i in range(40)]
    declared = "".join(f"variable {name} {{ type discrete [ 2 ] {{ a, b }}; }}\n" for name in names)
    with pytest.raises(ValueError, match="^net.bif, line 42: a table may hold 10,000,000 probabilities; that of 'v0'"):
        read(
            tmp_path, f"network n {{ }}\n{declared}probability ( v0 | {', '.join(names[1:])} ) {{ default 0.5, 0.5; }}"
        )


def test_files_of_other_kinds_are_refused(tmp_path):
    with pytest.raises(ValueError, match="^the file of a network must exist; .*nowhere.bif' is not a file$"):
        read_bif(tmp_path / "nowhere.bif")
    (tmp_path / "bytes.bif").write_bytes(b"network \xff {}")
    with pytest.raises(ValueError, match="^bytes.bif must be text in UTF-8; byte 9 isn't$"):
        read_bif(tmp_path / "bytes.bif")
    packed = gzip.compress(GOOD.encode())
    for content in (b"plain", packed[:-30], packed[:40] + b"\0\0\0\0" + packed[44:]):
        (tmp_path / "part.bif.gz").write_bytes(content)
        with pytest.raises(ValueError, match="^part.bif.gz must be a complete gzip file; it isn't$"):
            read_bif(tmp_path / "part.bif.gz")
    with pytest.raises(ValueError, match="^net.bif, line 1: a network must have variables; there is none$"):
        read(tmp_path, "")


def test_a_small_file_that_holds_too_much_is_refused(tmp_path):
    (tmp_path / "bomb.bif.gz").write_bytes(gzip.compress(b" " * (60 << 20)))
    with pytest.raises(ValueError, match="^the file of a network must hold 50 MB at most; bomb.bif.gz holds more$"):
        read_bif(tmp_path / "bomb.bif.gz")


def test_many_levels_are_compared_at_once(tmp_path):
    levels = " ".join(f"l{i}" for i in range(30_000)) + " l29999"
    text = f"network x {{ }} variable a {{ type discrete [ 30001 ] {{ {levels} }}; }}"
    (tmp_path / "many.bif").write_text(text)
    began = time.process_time()
    with pytest.raises(ValueError, match="the levels of a variable must differ; 'a' has 'l29999' twice"):
        read_bif(tmp_path / "many.bif")
    assert time.process_time() - began < 5

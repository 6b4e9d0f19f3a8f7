"""Networks of discrete variables in the Bayesian interchange format (BIF 0.15): reading and writing."""

import gzip
import os
import re
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, NoReturn

import networkx as nx
import numpy as np

from gpn_bayes._util.files import write_whole
from gpn_bayes._util.types import Floats
from gpn_bayes.simulate.discrete_networks import SUM_TOLERANCE, DiscreteNetwork, check_table_size

# A word ends at a space, at a mark, and where a comment begins; commas are spaces, as the format has it.
_WORD = r'(?:[^\s{}()\[\]|,;"/]|/(?![/*]))+'
_TOKEN = re.compile(
    rf'(?P<space>[\s,]+|//[^\n]*|/\*.*?\*/)|(?P<word>{_WORD})|(?P<mark>[{{}}()\[\]|;])|"(?P<quoted>[^"\n]*)"', re.DOTALL
)

# The largest networks in use take 5 MB.
_MAX_BYTES = 50 << 20


def read_bif(path: str | Path) -> DiscreteNetwork:
    """Read a network from a BIF file, such as those of the bnlearn repository; it may be compressed (``.gz``).

    Probabilities that sum to 1 within 0.01 are taken for rounded ones and divided by their sum. Properties are skipped.

    Parameters
    ----------
    path : str or Path
        The file.

    Raises
    ------
    ValueError
        In one line, with the number of the line where the file is wrong.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> text = '''network coins { }
    ... variable coin { type discrete [ 2 ] { head, tail }; }
    ... variable report { type discrete [ 2 ] { head, tail }; }
    ... probability ( coin ) { table 0.5, 0.5; }
    ... probability ( report | coin ) { (head) 0.9, 0.1; (tail) 0.2, 0.8; }'''
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "coins.bif"
    ...     size = file.write_text(text)
    ...     network = read_bif(file)
    >>> network.parents["report"], network.tables["report"].tolist()
    (('coin',), [[0.9, 0.1], [0.2, 0.8]])
    """
    path = Path(path)
    return _Parser(_Tokens(path.name, _read_text(path))).network()


def _read_text(path: Path) -> str:
    if not path.is_file():
        raise ValueError(f"the file of a network must exist; {str(path)!r} is not a file")
    try:
        # A small compressed file may hold any amount of text.
        with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as file:
            content = file.read(_MAX_BYTES + 1)
        if len(content) > _MAX_BYTES:
            raise ValueError(f"the file of a network must hold {_MAX_BYTES >> 20} MB at most; {path.name} holds more")
        return content.decode("utf-8-sig")
    except (OSError, EOFError, zlib.error):
        raise ValueError(f"{path.name} must be a complete gzip file; it isn't") from None
    except UnicodeDecodeError as error:
        raise ValueError(f"{path.name} must be text in UTF-8; byte {error.start + 1} isn't") from None


class _Token(NamedTuple):
    text: str
    line: int
    is_mark: bool

    def closes(self, mark: str) -> bool:
        return self.is_mark and self.text == mark


class _Tokens:
    """The words and marks of a file, one after the other; errors name the line."""

    def __init__(self, source: str, text: str) -> None:
        self.source = source
        self.last_line = text.count("\n") + (not text.endswith("\n"))
        self.stream = self._split(text)

    def fail(self, line: int, message: str) -> NoReturn:
        raise ValueError(f"{self.source}, line {line}: {message}")

    def _split(self, text: str) -> Iterator[_Token]:
        line, place = 1, 0
        while place < len(text):
            token = _TOKEN.match(text, place)
            if token is None:
                what = (
                    "a comment /* must end with */" if text.startswith("/*", place) else 'a name in " must end with "'
                )
                self.fail(line, f"{what}; it doesn't")
            kind = str(token.lastgroup)
            if kind == "space":
                line += token[kind].count("\n")
            else:
                yield _Token(token[kind], line, kind == "mark")
            place = token.end()

    def next(self) -> _Token:
        for token in self.stream:
            return token
        self.fail(self.last_line, "the file must be complete; it ends within a block")

    def mark(self, expected: str) -> _Token:
        token = self.next()
        if not token.closes(expected):
            self.fail(token.line, f"{expected!r} must follow here; received {token.text!r}")
        return token

    def word(self, what: str) -> _Token:
        token = self.next()
        if token.is_mark:
            self.fail(token.line, f"{what} must follow here; received {token.text!r}")
        return token

    def words_until(self, end: str, between: str = "") -> list[_Token]:
        """Return the words before a closing mark; the mark between them may be left out."""
        words = []
        while not (token := self.next()).closes(end):
            if not token.is_mark:
                words.append(token)
            elif token.text != between:
                self.fail(token.line, f"{end!r} must follow here; received {token.text!r}")
        return words

    def statements(self, what: str, *keywords: str) -> Iterator[_Token]:
        """Yield the first token of each statement of a block but for properties, which are skipped."""
        while not (token := self.next()).closes("}"):
            if not token.is_mark and token.text == "property":
                while not self.next().closes(";"):
                    pass
            elif token.text in keywords:
                yield token
            else:
                self.fail(
                    token.line, f"a {what} block holds {', '.join([*keywords, 'property'])}; received {token.text!r}"
                )


class _Parser:
    """Reads one file from its first token to its last."""

    def __init__(self, tokens: _Tokens) -> None:
        self.tokens = tokens
        self.fail = tokens.fail
        self.levels: dict[str, list[str]] = {}
        self.parents: dict[str, list[str]] = {}
        self.tables: dict[str, Floats] = {}
        self.lines: dict[str, int] = {}

    def network(self) -> DiscreteNetwork:
        readers = {"network": self._read_network, "variable": self._read_variable, "probability": self._read_table}
        for token in self.tokens.stream:
            if token.text not in readers:
                self.fail(token.line, f"a block begins with {', '.join(readers)}; received {token.text!r}")
            readers[token.text]()
        if not self.levels:
            self.fail(self.tokens.last_line, "a network must have variables; there is none")
        for name in self.levels:
            if name not in self.tables:
                self.fail(self.tokens.last_line, f"every variable must have a probability block; {name!r} has none")
        self._check_cycles()
        return DiscreteNetwork(self.levels, self.parents, self.tables)

    def _check_cycles(self) -> None:
        edges = [(parent, name) for name, known in self.parents.items() for parent in known]
        try:
            cycle = [edge[0] for edge in nx.find_cycle(nx.DiGraph(edges))]
        except nx.NetworkXNoCycle:
            return
        path = " -> ".join([*cycle, cycle[0]])
        self.fail(max(self.lines[name] for name in cycle), f"the graph must be acyclic; it contains {path}")

    def _read_network(self) -> None:
        if not (token := self.tokens.next()).is_mark:
            self.tokens.mark("{")
        elif token.text != "{":
            self.fail(token.line, f"the network's name must follow here; received {token.text!r}")
        for _ in self.tokens.statements("network"):
            pass

    def _read_variable(self) -> None:
        name = self.tokens.word("a variable's name")
        if name.text in self.levels:
            self.fail(name.line, f"every variable is declared once; {name.text!r} is declared again")
        self.tokens.mark("{")
        types = [self._read_type(name.text) for _ in self.tokens.statements("variable", "type")]
        if len(types) != 1:
            self.fail(name.line, f"every variable must have one type; {name.text!r} has {len(types)}")
        self.levels[name.text] = types[0]

    def _read_type(self, name: str) -> list[str]:
        kind = self.tokens.word("a variable's type")
        if kind.text != "discrete":
            self.fail(kind.line, f"variables must be discrete; {name!r} is {kind.text!r}")
        self.tokens.mark("[")
        count = self.tokens.word("the number of levels")
        self.tokens.mark("]")
        self.tokens.mark("{")
        levels = [token.text for token in self.tokens.words_until("}")]
        self.tokens.mark(";")
        if not levels or count.text != str(len(levels)):
            self.fail(count.line, f"{name!r} must have as many levels as it says, {count.text}; it has {len(levels)}")
        if len(set(levels)) < len(levels):
            twice = next(level for level, times in Counter(levels).items() if times > 1)
            self.fail(count.line, f"the levels of a variable must differ; {name!r} has {twice!r} twice")
        return levels

    def _read_table(self) -> None:
        line = self.tokens.mark("(").line
        tokens = self.tokens.words_until(")", between="|")
        self.tokens.mark("{")
        for token in tokens:
            if token.text not in self.levels:
                self.fail(token.line, f"every name must be a variable declared before; {token.text!r} is not")
        names = [token.text for token in tokens]
        if not names or len(set(names)) < len(names):
            self.fail(line, f"a probability block names its variable and each parent once; received {names}")
        name, *parents = names
        if name in self.tables:
            self.fail(line, f"every variable has one probability block; {name!r} has another")
        self.parents[name], self.lines[name] = parents, line
        self.tables[name] = self._read_probabilities(name, parents, line)

    def _read_probabilities(self, name: str, parents: list[str], line: int) -> Floats:
        shape = [len(self.levels[variable]) for variable in (*parents, name)]
        try:
            check_table_size(name, shape)
        except ValueError as error:
            self.fail(line, str(error))
        table = np.full(shape, np.nan)
        default: list[float] | None = None
        for token in self.tokens.statements("probability", "(", "table", "default"):
            if token.text == "(":
                place = self._configuration(parents, token.line)
                if not np.isnan(table[place]).all():
                    self.fail(token.line, f"every configuration is given once; one of {name!r} is repeated")
                table[place] = self._distributions(name, shape[-1:], token.line)
            elif token.text == "table":
                # It begins with the first level under every configuration: the variable counts slowest.
                whole = self._distributions(name, [shape[-1], *shape[:-1]], token.line)
                table[...] = np.moveaxis(whole, 0, -1)
            else:
                default = self._distributions(name, shape[-1:], token.line).tolist()
        missing = np.isnan(table[..., 0])
        if default is not None:
            table[missing] = default
        elif missing.any():
            levels = ", ".join(
                self.levels[p][k] for p, k in zip(parents, np.argwhere(missing)[0].tolist(), strict=True)
            )
            self.fail(line, f"every configuration must have probabilities; {name!r} has none for ({levels})")
        return table

    def _configuration(self, parents: list[str], line: int) -> tuple[int, ...]:
        tokens = self.tokens.words_until(")")
        if len(tokens) != len(parents):
            self.fail(line, f"a configuration has a level for each of {len(parents)} parents; received {len(tokens)}")
        for parent, token in zip(parents, tokens, strict=True):
            if token.text not in self.levels[parent]:
                self.fail(token.line, f"every value must be a level of its variable; {parent!r} has no {token.text!r}")
        return tuple(self.levels[parent].index(token.text) for parent, token in zip(parents, tokens, strict=True))

    def _distributions(self, name: str, shape: list[int], line: int) -> Floats:
        """Return the probabilities up to a semicolon; along the first axis they sum to 1."""
        values = [self._probability(token) for token in self.tokens.words_until(";")]
        if len(values) != np.prod(shape):
            self.fail(line, f"{np.prod(shape)} probabilities of {name!r} must stand here; received {len(values)}")
        table = np.reshape(values, shape)
        sums = np.atleast_1d(table.sum(axis=0))
        off = np.abs(sums - 1)
        if off.max() > SUM_TOLERANCE:
            self.fail(line, f"probabilities must sum to 1; those of {name!r} sum to {sums.flat[off.argmax()]:g}")
        return table

    def _probability(self, token: _Token) -> float:
        try:
            value = float(token.text)
        except ValueError:
            value = np.nan
        if not 0 <= value <= 1 + SUM_TOLERANCE:
            self.fail(token.line, f"a probability must be a number from 0 to 1; received {token.text!r}")
        return value


def write_bif(network: DiscreteNetwork, path: str | Path, name: str = "unknown") -> None:
    """Write a network as a BIF file, so that `read_bif` returns the same one.

    Parameters
    ----------
    network : DiscreteNetwork
        The network.
    path : str or Path
        The file, which must not be there yet.
    name : str
        The network's name.

    Raises
    ------
    ValueError
        For a file that exists, or a name or level with a quotation mark or a line break, which the format can't hold.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> network = DiscreteNetwork({"low O2": ["<5", "5-12"]}, {}, {"low O2": [0.1, 0.9]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_bif(network, Path(folder) / "child.bif")
    ...     print((Path(folder) / "child.bif").read_text())
    network unknown {
    }
    variable "low O2" {
      type discrete [ 2 ] { <5, 5-12 };
    }
    probability ( "low O2" ) {
      table 0.1, 0.9;
    }
    <BLANKLINE>
    """
    text = bif_text(network, name)
    if os.path.lexists(path):
        raise ValueError(f"nothing is overwritten; {str(path)!r} exists: choose another name")
    write_whole(Path(path), text)


def bif_text(network: DiscreteNetwork, name: str = "unknown") -> str:
    """Return a network as the text of a BIF file; see `write_bif`."""
    lines = [f"network {_quoted(name)} {{", "}"]
    for variable, levels in network.levels.items():
        lines += [
            f"variable {_quoted(variable)} {{",
            f"  type discrete [ {len(levels)} ] {{ {_joined(levels)} }};",
            "}",
        ]
    for variable, parents in network.parents.items():
        above = f" | {_joined(parents)}" if parents else ""
        lines.append(f"probability ( {_quoted(variable)}{above} ) {{")
        table = network.tables[variable]
        for place in np.ndindex(table.shape[:-1]):
            given = _joined(network.levels[parent][k] for parent, k in zip(parents, place, strict=True))
            start = f"({given})" if parents else "table"
            lines.append(f"  {start} {', '.join(map(repr, table[place].tolist()))};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _joined(names: Iterable[str]) -> str:
    return ", ".join(map(_quoted, names))


def _quoted(name: str) -> str:
    """Return a name as it is written: in quotes unless it is a plain word."""
    if '"' in name or "\n" in name:
        raise ValueError(f"a name in a BIF file may hold no quotation mark and no line break; received {name!r}")
    return name if re.fullmatch(_WORD, name) else f'"{name}"'

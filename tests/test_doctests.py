"""The examples in the docstrings run, and say what they say; every public name has one."""

import ast
import builtins
import doctest
import importlib
import inspect
import pkgutil
from types import ModuleType
from typing import Any

import matplotlib as mpl
import networkx as nx
import numpy as np
import pandas as pd
import pytest
from matplotlib import pyplot as plt

import gpn_bayes
from gpn_bayes.data import Dataset
from tests.documented import Public, load_builder, members, public_names

mpl.use("Agg")

# What the front page of the reference says that examples take for granted, beside the names of their own page.
GRANTED = {"np": np, "nx": nx, "pd": pd}
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
MODULES = [
    "gpn_bayes",
    *(
        module.name
        for module in pkgutil.walk_packages(gpn_bayes.__path__, "gpn_bayes.")
        if not module.name.endswith("__main__")
    ),
]


@pytest.fixture(scope="module")
def reference() -> list[ModuleType]:
    return load_builder().public_modules()


def examples_in(docstring: str) -> list[doctest.Example]:
    """Return the examples that are run."""
    return [
        example
        for example in doctest.DocTestParser().get_examples(inspect.cleandoc(docstring))
        if not example.options.get(doctest.SKIP)
    ]


def used_in(docstring: str) -> set[str]:
    """Return what the examples of a docstring look up or call of objects: x in ``post.x`` and ``post.x()``."""
    trees = (ast.parse(example.source) for example in examples_in(docstring))
    return {node.attr for tree in trees for node in ast.walk(tree) if isinstance(node, ast.Attribute)}


def undefined_in(docstring: str) -> set[str]:
    """Return the names that the examples of a docstring use, but neither define nor import."""
    used, known = set(), set(dir(builtins))
    for node in (node for example in examples_in(docstring) for node in ast.walk(ast.parse(example.source))):
        match node:
            case ast.Name(id=name, ctx=ast.Load()):
                used.add(name)
            case ast.Name(id=name) | ast.arg(arg=name) | ast.FunctionDef(name=name) | ast.ClassDef(name=name):
                known.add(name)
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                known |= {alias.asname or alias.name.partition(".")[0] for alias in aliases}
    return used - known


def has_example(public: Public) -> bool:
    """Tell whether a name has an example of its own, or its class has one that uses it, or one that the class is of."""
    if examples_in(public.docstring):
        return True
    member = public.name.rpartition(".")[2]
    classes = () if public.owner is None else public.owner.__mro__
    return any(member in used_in(kind.__doc__ or "") for kind in classes if kind.__module__ != "builtins")


def test_modules_are_found():
    assert {"gpn_bayes.sampling.sample", "gpn_bayes.kernels.linear.bge", "gpn_bayes.mcmc.tables"} <= set(MODULES)


@pytest.fixture(scope="module")
def drawn() -> dict[tuple[str, str], Any]:
    return {}


@pytest.fixture
def _shared_posteriors(drawn: dict[tuple[str, str], Any], monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw the posterior that most examples begin with only once."""
    sample = gpn_bayes.sample

    def sample_once(data: Any, score: Any = "bge", **others: Any) -> Any:
        settings = {"score": score} | others
        if not isinstance(score, str):
            return sample(data, **settings)
        table = Dataset.read(data, missing=settings.get("missing", "error"))
        key = (table.fingerprint, repr(sorted(settings.items())))
        if key not in drawn:
            drawn[key] = sample(data, **settings)
        return drawn[key]

    monkeypatch.setattr(gpn_bayes, "sample", sample_once)


@pytest.mark.more("runs the examples of every file")
@pytest.mark.usefixtures("_shared_posteriors")
@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    found = doctest.testmod(importlib.import_module(name), extraglobs=GRANTED, optionflags=FLAGS)
    plt.close("all")
    assert found.failed == 0, f"{found.failed} of {found.attempted} examples failed; see the output above"


def test_a_wrong_example_fails():
    """Negative control: the runner does notice."""
    example = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    assert doctest.DocTestRunner(verbose=False).run(example, out=lambda text: None).failed == 1


def test_every_public_name_has_an_example(reference):
    assert not [public.name for public in public_names(reference) if not has_example(public)]


def test_examples_can_be_copied(reference):
    """Run as part of their file, examples would also find what only that file imports."""
    for module in reference:
        shown = list(public_names([module]))
        page = {public.name.removeprefix(f"{module.__name__}.").partition(".")[0] for public in shown}
        for public in shown:
            assert undefined_in(public.docstring) <= GRANTED.keys() | page, public.name


def test_undefined_names_are_found():
    """Negative control."""
    text = """
    >>> import os.path, numpy as np
    >>> from json import loads as read
    >>> def double(x):
    ...     return [2 * item for item in x] + missing
    >>> table = double(np.ones(os.path.getsize(read(text))))
    >>> print(table, lambda y: y + lost)
    """
    assert undefined_in(text) == {"lost", "missing", "text"}


def test_the_walk_finds_methods_wherever_they_come_from(reference):
    found = {public.name for public in public_names(reference)}
    assert {
        "gpn_bayes.sample",
        "gpn_bayes.SufficientStatistics.of",  # a class method
        "gpn_bayes.GraphPosterior.weights",  # a cached property
        "gpn_bayes.GraphPosterior.plot_network",  # of a class without a page
        "gpn_bayes.estimators.bootstrapping.BootstrapResult.summary",
        "gpn_bayes.estimators.NOTEARS.log_score",
        "gpn_bayes.graphs.metrics.shd",  # of a module without a list of names
    } <= found
    # That of scikit-learn isn't ours to explain.
    assert "gpn_bayes.estimators.NOTEARS.set_params" not in found


def test_the_walk_finds_all_that_the_reference_shows(reference):
    doc = pytest.importorskip("pdoc.doc", reason='the reference needs pdoc: pip install "gpn_bayes[docs]"')
    shown = set()
    for member in (own for module in reference for own in doc.Module(module).own_members):
        if member.kind in ("class", "function") and not member.name.startswith("_"):
            shown.add(member.fullname)
        if member.kind == "class":
            inherited = [own for base, own in member.inherited_members.items() if base[0].startswith("gpn_bayes")]
            shown |= {f"{member.fullname}.{own.name}" for own in sum(inherited, member.own_members) if _is_told(own)}
    assert len(shown) > 200
    assert shown == {public.name for public in public_names(reference)}


def _is_told(member):
    """Tell whether the reference shows a method or attribute, as its template does."""
    is_field = member.docstring.startswith("Alias for field number")
    return not member.name.startswith("_") and (member.kind == "function" or (member.docstring and not is_field))


class Shelf:
    """A class of which the check below must find what is missing.

    Examples
    --------
    >>> Shelf().full
    False
    """

    @property
    def full(self):
        """Whether nothing more fits; the class's example uses it."""
        return False

    def put(self, thing):
        """Put something there; has an example.

        Examples
        --------
        >>> Shelf().put("book")
        """

    def take(self):
        """Take something; has none."""

    @classmethod
    def read(cls, path):
        """Read a shelf; has one that isn't run.

        Examples
        --------
        >>> Shelf.read("shelf.json")  # doctest: +SKIP
        """

    def _count(self):
        """Count; isn't public."""


def test_a_missing_example_is_found():
    """Negative control: a method without one, and a method whose example is never run."""
    lacking = [public.name for public in members(Shelf, "Shelf") if not has_example(public)]
    assert lacking == ["Shelf.read", "Shelf.take"]

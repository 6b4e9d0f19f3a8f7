"""The examples in the docstrings run, and say what they say."""

import doctest
import importlib
import pkgutil

import pytest

import gpn_bayes

MODULES = [
    "gpn_bayes",
    *(
        module.name
        for module in pkgutil.walk_packages(gpn_bayes.__path__, "gpn_bayes.")
        if not module.name.endswith("__main__")
    ),
]


def test_modules_are_found():
    assert {"gpn_bayes.sampling", "gpn_bayes.kernels.bge", "gpn_bayes.mcmc.tables"} <= set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name):
    found = doctest.testmod(importlib.import_module(name), optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
    assert found.failed == 0, f"{found.failed} of {found.attempted} examples failed; see the output above"


def test_a_wrong_example_fails():
    """Negative control: the runner does notice."""
    example = doctest.DocTestParser().get_doctest(">>> 1 + 1\n3\n", {}, "wrong", None, 0)
    assert doctest.DocTestRunner(verbose=False).run(example, out=lambda text: None).failed == 1


def test_user_facing_functions_have_examples():
    finder = doctest.DocTestFinder()
    for name in gpn_bayes.__all__:
        value = getattr(gpn_bayes, name)
        if not isinstance(value, str):
            assert any(test.examples for test in finder.find(value, name)), name

"""The rules of the house: what is packaged, who may import whom, how quick an import is."""

import ast
import importlib
import inspect
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import networkx as nx
import pytest

import gpn_bayes

ROOT = Path(__file__).resolve().parents[1]
IMPORT_SECONDS = 0.5
POSTERIOR_FILES = 40
HEAVY = ("pymc", "numba", "pandas", "arviz", "scipy", "networkx", "matplotlib", "rich")


def packages():
    """Return every package as its dotted name and folder, by way of the symlinks too."""
    found = {}
    for folder, inner, files in os.walk(ROOT / "gpn_bayes", followlinks=True):
        inner[:] = [name for name in inner if name != "__pycache__"]
        if "__init__.py" in files:
            found[".".join(Path(folder).relative_to(ROOT).parts)] = Path(folder)
    return found


def modules():
    """Return every module as its dotted name and file."""
    return {
        f"{package}.{path.stem}" if path.stem != "__init__" else package: path
        for package, folder in packages().items()
        for path in sorted(folder.glob("*.py"))
    }


MODULES = modules()


def imports(path, at_once=False):
    """Return the full name of everything a file imports, wherever in the file or only when it is loaded."""
    found = set()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in tree.body if at_once else ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path.name} must import absolutely"
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def inside(name, *homes):
    return any(name == home or name.startswith(f"{home}.") for home in homes)


def test_the_walk_finds_the_house():
    assert {"gpn_bayes", "gpn_bayes.kernels", "gpn_bayes.mcmc", "gpn_bayes.scores"} <= packages().keys()
    assert {"gpn_bayes.kernels.linear.bge", "gpn_bayes.mcmc.tables", "gpn_bayes.sampling.sample"} <= MODULES.keys()


def test_every_package_is_listed_for_the_build():
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    assert sorted(settings["packages"]) == sorted(packages())
    for name, folder in settings["package-dir"].items():
        assert packages()[name].resolve() == (ROOT / folder).resolve()


def test_compiled_packages_are_relative_symlinks():
    for name in ("kernels", "mcmc"):
        link = ROOT / "gpn_bayes" / name
        assert link.is_symlink()
        assert os.readlink(link) == f"../{name}"


def test_nobody_imports_the_compiled_packages_by_bare_names():
    for path in [*MODULES.values(), *sorted((ROOT / "tests").rglob("*.py"))]:
        assert not [name for name in imports(path) if inside(name, "kernels", "mcmc")], path


def test_nothing_stands_loose_beside_the_rooms():
    assert [path.name for path in (ROOT / "gpn_bayes").glob("*.py")] == ["__init__.py"]


# Every room, and the rooms it may use, or the files of a room. `posterior` uses plots and reports only when asked: see
# below; these know its draws and formulas, not the class that has them all as methods.
USES = {
    "_util": "kernels",
    "kernels": "",
    "mcmc": "kernels",
    "datasets": "_util",
    "data": "_util",
    "graphs": "_util kernels",
    "simulate": "_util data graphs",
    "scores": "_util data graphs kernels",
    "exports": "_util graphs scores simulate",
    "candidates": "_util data graphs kernels mcmc scores",
    "samplers": "_util candidates graphs mcmc",
    "posterior": "_util data exports graphs plots report samplers scores",
    "plots": "_util graphs posterior",
    "report": "_util data graphs plots posterior samplers sampling.flags",
    "sampling": "_util candidates data graphs kernels mcmc posterior samplers scores",
    "estimators": "_util candidates data exports graphs kernels posterior report scores",
    "network_models": "_util data graphs posterior scores",
    # Protocols don't know of connections, nor connections of protocols.
    "secure": "_util",
    "wire": "_util",
    "federated": "_util data estimators graphs kernels scores secure wire",
    "private": "_util estimators secure wire",
    "cli": "_util candidates data datasets estimators federated graphs posterior private report samplers "
    "sampling scores secure wire",
}


def test_arrows_go_one_way():
    assert USES.keys() == {name.split(".")[1] for name in MODULES if name != "gpn_bayes"}
    for name, path in MODULES.items():
        if name != "gpn_bayes":
            room = name.split(".")[1]
            # The version and the names of the package itself stand in no room.
            used = {x for x in imports(path) if x.startswith("gpn_bayes.")} - {"gpn_bayes.__version__"}
            homes = [f"gpn_bayes.{home}" for home in (room, *USES[room].split())]
            assert not [x for x in used if not inside(x, *homes)], name


def arrows(files):
    """Return which file imports which, given the files by their modules' names; lazily and for types count too."""
    graph = nx.DiGraph()
    graph.add_nodes_from(files)
    for name, path in files.items():
        for found in imports(path):
            # What a file imports is a module, or stands in one.
            module = found
            while module and module not in files:
                module = module.rpartition(".")[0]
            if module and module != name:
                graph.add_edge(name, module)
    return graph


def circles(files):
    """Return the groups of files that import each other, directly or by way of others."""
    return [sorted(group) for group in nx.strongly_connected_components(arrows(files)) if len(group) > 1]


def test_no_files_import_each_other_in_a_circle():
    assert arrows(MODULES).has_edge("gpn_bayes.posterior.graph_posterior", "gpn_bayes.report")
    assert not circles(MODULES)


@pytest.mark.parametrize(
    "closing",
    [
        "import house.first",
        "from house.first import begin",
        "from house import first",
        "def later():\n    from house.first import begin\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from house.first import begin\n",
    ],
)
def test_circles_are_found(tmp_path, closing):
    contents = {"house": "", "house.first": "import house.second", "house.second": "from house import third"}
    files = {name: tmp_path / f"{name}.py" for name in (*contents, "house.third")}
    for name, content in contents.items():
        files[name].write_text(content)
    files["house.third"].write_text("import math")
    assert not circles(files)
    files["house.third"].write_text(closing)
    assert circles(files) == [["house.first", "house.second", "house.third"]]


def test_posteriors_reach_pictures_only_when_asked():
    """The table of methods, and two answers that draw themselves, lead there; none is followed before it is called."""
    drawers = ("gpn_bayes.plots", "gpn_bayes.report")
    reaching = set()
    for name, path in MODULES.items():
        if inside(name, "gpn_bayes.posterior"):
            assert not [x for x in imports(path, at_once=True) if inside(x, *drawers)], name
            reaching |= {name} if [x for x in imports(path) if inside(x, *drawers)] else set()
    assert reaching == {f"gpn_bayes.posterior.{name}" for name in ("comparing", "effect", "graph_posterior")}


def test_a_posterior_loads_little():
    loaded = run_python("import sys, gpn_bayes.posterior; print(*sys.modules)").split()
    assert "gpn_bayes.posterior.graph_posterior" in loaded
    assert len([name for name in loaded if inside(name, "gpn_bayes")]) < POSTERIOR_FILES


def test_the_table_of_questions_is_what_type_checking_reads():
    """A line of the table is an attribute of a module: of the real one to mypy, of a shelf when it runs."""
    tree = ast.parse(MODULES["gpn_bayes.posterior.graph_posterior"].read_text(encoding="utf-8"))
    (choice,) = (node for node in tree.body if isinstance(node, ast.If))
    typed = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in choice.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    shelves = {node.targets[0].id: ast.literal_eval(node.value.args[0]) for node in choice.orelse}
    assert typed == shelves
    table = [node for part in tree.body if isinstance(part, ast.ClassDef) for node in part.body]
    lines = [node for node in table if isinstance(node, ast.Assign)]
    assert len(lines) > 50
    for line in lines:
        function = getattr(importlib.import_module(shelves[line.value.value.id]), line.value.attr)
        method = getattr(gpn_bayes.GraphPosterior, line.targets[0].id)
        assert method is function, line.targets[0].id
        assert next(iter(inspect.signature(method).parameters)) in ("post", "learned")
        assert method.__doc__.strip()


def test_a_posterior_has_few_ancestors():
    assert len(gpn_bayes.GraphPosterior.__mro__[1:-1]) <= 3


def test_only_the_command_line_imports_the_command_line():
    for name, path in MODULES.items():
        if not inside(name, "gpn_bayes.cli"):
            assert not [x for x in imports(path) if inside(x, "gpn_bayes.cli")], name


def run_python(code):
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", code]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


def test_import_is_quick():
    code = "import time; t = time.perf_counter(); import gpn_bayes; print(time.perf_counter() - t)"
    assert min(float(run_python(code)) for _ in range(3)) < IMPORT_SECONDS


def test_import_loads_nothing_heavy():
    loaded = run_python("import sys, gpn_bayes; print(*sys.modules)").split()
    assert "gpn_bayes" in loaded
    assert not [name for name in HEAVY if name in loaded]


def test_sampling_does_not_load_pymc():
    loaded = run_python("import sys, gpn_bayes; gpn_bayes.sample; print(*sys.modules)").split()
    assert "gpn_bayes.sampling.sample" in loaded
    assert "pymc" not in loaded
    assert "scipy.stats" not in loaded
    assert "matplotlib" not in loaded


@pytest.mark.parametrize("name", gpn_bayes.__all__)
def test_public_names_resolve_and_are_explained(name):
    assert name in dir(gpn_bayes)
    value = getattr(gpn_bayes, name)
    if not isinstance(value, str):
        assert value.__doc__
        assert value.__doc__.strip()


def test_unknown_names_are_told():
    with pytest.raises(AttributeError, match="^module 'gpn_bayes' has no attribute 'sampel'$"):
        gpn_bayes.sampel  # noqa: B018


def test_version_is_that_of_the_project():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert gpn_bayes.__version__ == project["version"]


def test_every_module_says_what_it_is_for():
    for name, path in MODULES.items():
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), name
        module = importlib.import_module(name) if not name.endswith("__main__") else None
        missing = [public for public in getattr(module, "__all__", ()) if not hasattr(module, public)]
        assert not missing, name

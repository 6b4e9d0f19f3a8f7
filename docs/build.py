"""Build the API reference: `python docs/build.py` writes docs/html/index.html; needs `pip install ".[docs]"`."""

import importlib
import shutil
import sys
from pathlib import Path
from types import ModuleType

HERE = Path(__file__).resolve().parent
OUT = HERE / "html"
# What users get in their hands without importing it by a short name.
FURTHER = (
    "gpn_bayes.estimators.bootstrapping",
    "gpn_bayes.network_models",
    "gpn_bayes.posterior.curves",
    "gpn_bayes.estimators.independence",
    "gpn_bayes.posterior",
    "gpn_bayes.report",
)


def public_modules() -> list[ModuleType]:
    """Return the package and its public modules, with all their public names loaded.

    Most names are loaded when they are first used, and so are methods. A documentation tool looks at what is there, so
    they are asked for.
    """
    package = importlib.import_module("gpn_bayes")
    values = [getattr(package, name) for name in package.__all__]
    named = [value.__name__ for value in values if isinstance(value, ModuleType)]
    modules = [package, *map(importlib.import_module, sorted([*named, *FURTHER]))]
    for module in modules:
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            setattr(module, name, value)
            for method in dir(value) if isinstance(value, type) else ():
                getattr(value, method, None)
    return modules


def build(out: Path) -> list[Path]:
    """Write a page for every public module, an index and a search; return the pages."""
    try:
        from pdoc import doc, render
    except ImportError:
        sys.exit('the reference needs pdoc: pip install "gpn_bayes[docs]"')
    shutil.rmtree(out, ignore_errors=True)
    render.configure(docformat="numpy", show_source=False, template_directory=HERE / "templates")
    documented = {module.__name__: doc.Module(module) for module in public_modules()}
    pages = []
    for name, module in documented.items():
        page = out / f"{name.replace('.', '/')}.html"
        page.parent.mkdir(parents=True, exist_ok=True)
        page.write_text(render.html_module(module, documented), encoding="utf-8")
        pages.append(page)
    (out / "index.html").write_text(render.html_index(documented), encoding="utf-8")
    (out / "search.js").write_text(render.search_index(documented), encoding="utf-8")
    return pages


if __name__ == "__main__":
    written = build(Path(sys.argv[1]) if len(sys.argv) > 1 else OUT)
    print(f"{len(written)} pages; open {written[0].parent / 'index.html'}")

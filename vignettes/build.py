"""Build the vignettes: `python vignettes/build.py [NAME ...]` runs the stories and writes vignettes/html/index.html.

It needs `pip install ".[vignettes]"`. A story is a py:percent script that also runs alone: `python vignettes/NAME.py`.
"""

import os
import re
import resource
import sys
import tempfile
from itertools import takewhile
from pathlib import Path
from typing import Any, NamedTuple

HERE = Path(__file__).resolve().parent
OUT = HERE / "html"
# Vignettes take less than a minute of CPU time. Only a cell that hangs reaches this, however busy the machine is.
TIME_LIMIT = 7200
# A figure wider than this, in pixels, isn't shrunk to the page.
WIDE = 1200
# Figures for screens of either pixel density; this cell is not shown.
SETUP = "%config InlineBackend.figure_formats = ['retina']"


class Story(NamedTuple):
    """A vignette: its file, its title, and the question it answers (the first sentence)."""

    path: Path
    title: str
    question: str

    @property
    def number(self) -> int:
        """Its number; some numbers may be unused."""
        return int(self.path.stem.split("_")[0])


class StoryFailed(Exception):
    """A cell of a story raised an error."""


def read_story(path: Path) -> Story:
    """Return a story by its file, which must begin with a title and a paragraph."""
    first, *rest = path.read_text(encoding="utf-8").splitlines()
    head = [line.removeprefix("#").strip() for line in takewhile(lambda line: line.startswith("#"), rest)]
    title, *text = [line for line in head if line] or [""]
    if first != "# %% [markdown]" or not title.startswith("# ") or not text:
        raise ValueError(f"a story must begin with a markdown cell of a title and a paragraph; {path.name} doesn't")
    question = re.match(r".+?[.?](?= |$)", " ".join(text))
    return Story(path, title.removeprefix("# "), question.group() if question else " ".join(text))


def stories() -> list[Story]:
    """Return all stories, in order."""
    return sorted(map(read_story, HERE.glob("[0-9]*.py")), key=lambda story: story.number)


def chosen(names: list[str]) -> list[Story]:
    """Return the stories asked for, by name or by its prefix; all if none is named."""
    known = stories()
    matches = []
    for name in names:
        # "1" is the first story, and not the tenth as well.
        prefix = f"{name}_" if name.isdigit() else Path(name).stem
        wanted = [story for story in known if story.path.stem.startswith(prefix)]
        if not wanted:
            sys.exit(f"a story must be one of {', '.join(story.path.stem for story in known)}; received {name}")
        matches += wanted
    return matches or known


def cpu_seconds() -> float:
    """Return the CPU time of all processes that this one started and that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def execute(story: Story) -> Any:
    """Run a story in a folder of its own that is thrown away, and return it as a notebook with its outputs."""
    import jupytext
    import nbformat
    from nbclient.exceptions import CellExecutionError
    from nbconvert.preprocessors import ExecutePreprocessor
    from traitlets.config import Config

    notebook = jupytext.read(story.path, fmt="py:percent")
    notebook.cells.insert(0, nbformat.v4.new_code_cell(SETUP))
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder, "work")
        work.mkdir()
        # Unix sockets of this user, not ports that others on the machine can reach.
        sockets = {"transport": "ipc", "connection_file": f"{folder}/kernel.json"}
        settings = {"timeout": TIME_LIMIT, "startup_timeout": TIME_LIMIT, "coalesce_streams": True}
        runner = ExecutePreprocessor(kernel_name="python3", config=Config(KernelManager=sockets), **settings)
        try:
            runner.preprocess(notebook, {"metadata": {"path": str(work)}})
        except CellExecutionError as error:
            message = re.sub(r"\x1b\[[0-9;]*m", "", str(error))  # without colours: escape codes in logs
            raise StoryFailed(f"{story.path.name} failed: {message}") from None
    del notebook.cells[0]
    return notebook


def describe_pictures(notebook: Any) -> None:
    """Give every figure an alternative text: the heading above it."""
    heading = ""
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            heading = next((line.lstrip("# ") for line in cell.source.splitlines() if line.startswith("#")), heading)
        for output in cell.get("outputs", ()):
            if "image/png" in output.get("data", {}):
                output.metadata["image/png"] = output.metadata.get("image/png", {}) | {"alt": f"Picture: {heading}"}


def scroll_wide(body: str) -> str:
    """Make figures that are far wider than the page scroll, since they would be illegible if shrunk."""
    wide = re.compile(r'width="(\d+)"(?=/?>)')
    return wide.sub(lambda match: match[0] + (' class="wide"' if int(match[1]) > WIDE else ""), body)


def page(title: str, body: str, foot: str) -> str:
    """Return a self-contained page."""
    from pygments.formatters import HtmlFormatter

    light = HtmlFormatter(style="default").get_style_defs(".highlight")
    dark = HtmlFormatter(style="github-dark").get_style_defs(".highlight")
    style = f"{light}\n@media (prefers-color-scheme: dark) {{ {dark} }}\n{(HERE / 'page.css').read_text('utf-8')}"
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{title}</title><style>{style}</style></head>"
        f"<body><main>{body}</main><footer>{foot}</footer></body></html>\n"
    )


def rendered(notebook: Any) -> str:
    """Return a notebook with its outputs as the body of a page."""
    from nbconvert import HTMLExporter

    describe_pictures(notebook)
    exporter = HTMLExporter(template_name="basic", exclude_input_prompt=True, exclude_output_prompt=True)
    exporter.exclude_anchor_links = True
    body, _ = exporter.from_notebook_node(notebook)
    return scroll_wide(body)


def build(story: Story) -> Path:
    """Run a story and write its page."""
    import gpn_bayes

    before = cpu_seconds()
    notebook = execute(story)
    seconds = cpu_seconds() - before
    foot = (
        f'<a href="index.html">All vignettes</a> · vignettes/{story.path.name} · '
        f"gpn_bayes {gpn_bayes.__version__}, {seconds:.0f} s of CPU time"
    )
    OUT.mkdir(exist_ok=True)
    written = OUT / f"{story.path.stem}.html"
    written.write_text(page(story.title, rendered(notebook), foot), encoding="utf-8")
    print(f"{written.relative_to(HERE.parent)}: {seconds:.0f} s of CPU time", flush=True)
    return written


def write_index() -> None:
    """Write the list of the stories that have a page."""
    built = [story for story in stories() if (OUT / f"{story.path.stem}.html").exists()]
    items = [f'<li value="{s.number}"><a href="{s.path.stem}.html">{s.title}</a><br>{s.question}</li>' for s in built]
    body = f"<h1>gpn_bayes by example</h1><ol>{''.join(items)}</ol>"
    (OUT / "index.html").write_text(page("gpn_bayes by example", body, "Each is a script that you can run."), "utf-8")


def main(names: list[str]) -> None:
    """Build the stories named, or all; continue after a failure, and fail at the end."""
    wanted = chosen(names)
    try:
        import ipykernel  # noqa: F401
        import jupytext  # noqa: F401
        import nbconvert  # noqa: F401
    except ImportError as error:
        sys.exit(f'vignettes need {error.name}: pip install "gpn_bayes[vignettes]"')
    # Vignettes that start programs, such as gpn-bayes, find those of this environment.
    os.environ["PATH"] = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    failures = []
    for story in wanted:
        try:
            build(story)
        except StoryFailed as error:
            failures.append(error)
            print(error, file=sys.stderr, flush=True)
    write_index()
    if failures:
        sys.exit(f"{len(failures)} of {len(wanted)} vignettes failed")


if __name__ == "__main__":
    main(sys.argv[1:])

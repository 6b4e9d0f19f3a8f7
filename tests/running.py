"""Scripts outside the package: loading one as a module, and the interpreter under the rules of all tests."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

ROOT = Path(__file__).resolve().parents[1]
# As in all tests: our warnings are errors, what other packages plan is for them to mend.
_PLANNED = ("DeprecationWarning", "PendingDeprecationWarning", "FutureWarning")
STRICT_PYTHON = [sys.executable, "-W", "error", *(part for kind in _PLANNED for part in ("-W", f"ignore::{kind}"))]


def load(path: Path) -> ModuleType:
    """Return a script as a module."""
    spec = importlib.util.spec_from_file_location(f"{path.parent.name}_{path.stem}", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module

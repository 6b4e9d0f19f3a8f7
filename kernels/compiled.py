"""How every compiled function of the package is compiled."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numba import njit

# cache: compiled once per machine, not once per run. nogil: chains and scores run in parallel threads.
# error_model: a division doesn't test for zero, which would also keep numba from dropping the reference
# counts of arrays passed from function to function; it halves the time of a sampler's step.
_usual: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
# For linear algebra: sums may be taken in any order, several terms at once. Infinities and NaNs keep their meaning.
_in_any_order: dict[str, Any] = {"fastmath": {"contract", "reassoc", "nsz"}}
# For functions that only compiled code calls: the entrances from Python would take longest to compile.
_no_entrance: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

# For calls between compiled functions: a plain 0 or True is a type of its own there, for which the function that is
# called, and all that it calls, would be compiled once more.
ZERO, ONE, NONE = cast(int, np.int64(0)), cast(int, np.int64(1)), cast(int, np.int64(-1))
FALSE, TRUE = cast(bool, np.bool_(False)), cast(bool, np.bool_(True))

if TYPE_CHECKING:
    # numba has no types; what it compiles is called as it is written.
    def _as_written[F: Callable[..., Any]](function: F) -> F: ...

    compiled = fused = inner = inner_fused = _as_written
else:
    compiled = njit(**_usual)
    fused = njit(**_usual, **_in_any_order)
    inner = njit(**_usual, **_no_entrance)
    inner_fused = njit(**_usual, **_in_any_order, **_no_entrance)

"""How every compiled function of the package is compiled."""

from typing import Any

from numba import njit

# cache: compiled once per machine, not once per run. nogil: chains and scores run in parallel threads.
# error_model: a division doesn't test for zero, which would also keep numba from dropping the reference
# counts of arrays passed from function to function; it halves the time of a sampler's step.
_usual: dict[str, Any] = {"cache": True, "nogil": True, "error_model": "numpy"}
# For linear algebra: sums may be taken in any order, several terms at once. Infinities and NaNs keep their meaning.
_in_any_order: dict[str, Any] = {"fastmath": {"contract", "reassoc", "nsz"}}
# For functions that only compiled code calls: the entrances from Python would take longest to compile.
_no_entrance: dict[str, Any] = {"no_cpython_wrapper": True, "no_cfunc_wrapper": True}

compiled = njit(**_usual)
fused = njit(**_usual, **_in_any_order)
inner = njit(**_usual, **_no_entrance)
inner_fused = njit(**_usual, **_in_any_order, **_no_entrance)

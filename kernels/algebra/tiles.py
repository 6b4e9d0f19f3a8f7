"""Linear algebra on matrices of some dozens of rows, a tile at a time.

What costs time is sum_k left[k, i] right[k, j]. A tile of such sums, four rows by eight columns, stays in the
processor's registers while k runs; compilers don't find this form in loops over arrays, so it is spelled out for LLVM.
Matrices must have room for whole tiles. What lies beyond their true size may hold any finite number, unless stated
otherwise.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from gpn_bayes.kernels.arrays import Floats
from gpn_bayes.kernels.compiled import inner_fused

# Half of the registers of a processor with vectors of four numbers, a quarter of those of one with eight.
TILE_ROWS, TILE_COLUMNS = 4, 8
_NUMBER = ir.DoubleType()
_VECTOR = ir.VectorType(_NUMBER, TILE_COLUMNS)
_ALL_FIRST = ir.Constant(ir.VectorType(ir.IntType(32), TILE_COLUMNS), [0] * TILE_COLUMNS)
_NOTHING = ir.Constant(_VECTOR, ir.Undefined)


def _emit_tile(subtract: bool) -> Callable[[Any, Any, Any, Any], Any]:
    """Return what writes the instructions of `write_tile` or `subtract_tile`."""

    def emit(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        kinds, (i, j, begin, end) = signature.args[:3], arguments[3:]
        out, left, right = (
            context.make_array(kind)(context, builder, a) for kind, a in zip(kinds, arguments[:3], strict=True)
        )

        def address(which: int, matrix: Any, row: Any, column: Any, kind: Any) -> Any:
            pointer = cgutils.get_item_pointer(context, builder, kinds[which], matrix, [row, column], False)
            return builder.bitcast(pointer, kind.as_pointer())

        def plus(index: Any, offset: int) -> Any:
            return builder.add(index, ir.Constant(index.type, offset))

        sums = [
            cgutils.alloca_once_value(builder, ir.Constant(_VECTOR, [0.0] * TILE_COLUMNS)) for _ in range(TILE_ROWS)
        ]
        with cgutils.for_range_slice(builder, begin, end, ir.Constant(end.type, 1), end.type) as (k, _):
            row = builder.load(address(2, right, k, j, _VECTOR), align=8)
            for r, total in enumerate(sums):
                share = builder.load(address(1, left, k, plus(i, r), _NUMBER), align=8)
                first = builder.insert_element(_NOTHING, share, ir.Constant(ir.IntType(32), 0))
                term = builder.fmul(builder.shuffle_vector(first, _NOTHING, _ALL_FIRST), row, flags=["contract"])
                builder.store(builder.fadd(builder.load(total), term, flags=["contract"]), total)
        for r, total in enumerate(sums):
            place = address(0, out, plus(i, r), j, _VECTOR)
            value = builder.load(total)
            if subtract:
                value = builder.fsub(builder.load(place, align=8), value)
            builder.store(value, place, align=8)
        return context.get_dummy_value()

    return emit


def _signature(*matrices: Any) -> Any:
    return types.void(*matrices, types.intp, types.intp, types.intp, types.intp)


@intrinsic
def _write_tile(typing: Any, out: Any, left: Any, right: Any, i: Any, j: Any, begin: Any, end: Any) -> Any:
    """Write sum_{begin <= k < end} left[k, a] right[k, c] to out[a, c], for the tile that begins at row i, column j."""
    return _signature(out, left, right), _emit_tile(subtract=False)


@intrinsic
def _subtract_tile(typing: Any, out: Any, left: Any, right: Any, i: Any, j: Any, begin: Any, end: Any) -> Any:
    """Subtract from `out` what `write_tile` writes."""
    return _signature(out, left, right), _emit_tile(subtract=True)


_Tile = Callable[[Floats, Floats, Floats, int, int, int, int], None]
write_tile: _Tile = _write_tile  # type: ignore[assignment]  # called with values, without numba's first argument
subtract_tile: _Tile = _subtract_tile  # type: ignore[assignment]  # as above


@inner_fused
def padded(size: int, tile: int) -> int:
    """Return the size rounded up to whole tiles."""
    return (size + tile - 1) // tile * tile


@inner_fused
def _solve_strip(strip: Floats, upper: Floats, roots: Floats, i: int, begin: int | np.int64, end: int) -> None:
    """Solve R_ii'x = b in place for the rows i to i + 3 of `strip`, with the tile R_ii on the diagonal of `upper`."""
    first, second, third, fourth = strip[i], strip[i + 1], strip[i + 2], strip[i + 3]
    a, b, c, d = roots[i], roots[i + 1], roots[i + 2], roots[i + 3]
    ab, ac, ad = upper[i, i + 1], upper[i, i + 2], upper[i, i + 3]
    bc, bd, cd = upper[i + 1, i + 2], upper[i + 1, i + 3], upper[i + 2, i + 3]
    # With R_ii' = L and roots 1 / L_kk: x_k = (b_k - sum_{l<k} L_kl x_l) / L_kk.
    for j in range(begin, end):
        w = a * first[j]
        x = b * (second[j] - ab * w)
        y = c * (third[j] - ac * w - bc * x)
        z = d * (fourth[j] - ad * w - bd * x - cd * y)
        first[j], second[j], third[j], fourth[j] = w, x, y, z


@inner_fused
def _factor_tile(system: Floats, roots: Floats, i: int) -> float:
    """Factor the tile on the diagonal at i, write 1 / R_kk, and return its determinant; NaN if there is none."""
    product = 1.0
    for k in range(i, i + TILE_ROWS):
        pivot = system[k, k]
        if not pivot > 0.0:
            return np.nan
        # The determinant is the product of the pivots R_kk^2; R_kj = S_kj / R_kk.
        product *= pivot
        roots[k] = 1.0 / np.sqrt(pivot)
        for j in range(k, i + TILE_ROWS):
            system[k, j] *= roots[k]
        # S_ij -= R_ki R_kj for what follows.
        for row in range(k + 1, i + TILE_ROWS):
            for j in range(row, i + TILE_ROWS):
                system[row, j] -= system[k, row] * system[k, j]
    return product


@inner_fused
def factor(system: Floats, roots: Floats, size: int, width: int) -> float:
    """Replace (S, b) by (R, R'^-1 b) with R'R = S, and return log |S|; NaN if there is none.

    Of S the upper triangle counts. Its size is whole tiles high, and `width`, that of (S, b), whole tiles wide.
    Writes 1 / R_kk to `roots`.
    """
    log_det = 0.0
    for i in range(0, size, TILE_ROWS):
        # S_ij - sum_{k<i} R_ki'R_kj by tiles, then R_ij = R_ii'^-1 of that; log |S| = sum_i log |R_ii|^2.
        for j in range(i // TILE_COLUMNS * TILE_COLUMNS, width, TILE_COLUMNS):
            subtract_tile(system, system, system, i, j, 0, i)
        determinant = _factor_tile(system, roots, i)
        if np.isnan(determinant):
            return np.nan
        log_det += np.log(determinant)
        _solve_strip(system, system, roots, i, i + TILE_ROWS, width)
    return log_det


@inner_fused
def invert_transposed(upper: Floats, roots: Floats, lower: Floats, size: int) -> None:
    """Write R'^-1, and zeros beyond its diagonal as far as the tiles that hold the diagonal reach."""
    for i in range(0, size, TILE_ROWS):
        end = padded(i + TILE_ROWS, TILE_COLUMNS)
        for k in range(i, i + TILE_ROWS):
            lower[k, :end] = 0.0
            lower[k, k] = 1.0
        for j in range(0, i, TILE_COLUMNS):
            # With L = R'^-1: L_ij = -R_ii'^-1 sum_{j<=k<i} R_ki'L_kj, and L_ii = R_ii'^-1. Row k of L ends at its
            # diagonal: those above j have nothing here.
            subtract_tile(lower, upper, lower, i, j, j, i)
        # A plain 0 would be a type of its own, for which the function is compiled anew.
        _solve_strip(lower, upper, roots, i, np.int64(0), end)


@inner_fused
def square_lower(lower: Floats, square: Floats, size: int) -> None:
    """Write L'L, given the lower triangular L as `invert_transposed` leaves it."""
    for i in range(0, size, TILE_ROWS):
        # sum_{k>=i} L_ki L_kj for j <= i, as L_ki = 0 for k < i.
        for j in range(0, i + TILE_ROWS, TILE_COLUMNS):
            write_tile(square, lower, lower, i, j, i, size)
        for k in range(i, i + TILE_ROWS):
            for j in range(i):
                square[j, k] = square[k, j]

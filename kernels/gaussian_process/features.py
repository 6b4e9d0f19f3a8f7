"""Gaussian processes that can't be integrated out exactly: features of the rows, and linear algebra on their weights.

Processes are Phi w with Phi = s (U_1 B_1, …, s_mu 1), as in `low_rank` beside this, and w standard normal; s is the
inverse of the scale of the noise, in whose units processes are. What is observed makes a log likelihood of each row's
processes (`links`, `student`); steps and distributions about its mode have the precision A = I + Phi'D Phi, on as many
unknowns as there are functions, whatever the number of rows.
"""

from typing import NamedTuple

import numpy as np

from gpn_bayes.kernels.algebra.tiles import TILE_COLUMNS, TILE_ROWS, factor, padded, write_tile
from gpn_bayes.kernels.arrays import Floats, Ints
from gpn_bayes.kernels.compiled import inner_fused
from gpn_bayes.kernels.gaussian_process.low_rank import write_factor


class RowFunctions(NamedTuple):
    """The functions of a node's parents at the rows.

    Attributes
    ----------
    cells, coefficients, starts : ndarray
        As of `gpn_bayes.kernels.gaussian_process.low_rank.Moments`.
    functions : ndarray of shape (functions, rows)
        U', zero beyond the last row, up to whole tiles.
    mean_sd : float
        The prior standard deviation s_mu of mu.
    """

    cells: Ints
    coefficients: Floats
    starts: Ints
    functions: Floats
    mean_sd: float


class LatentWorkspace(NamedTuple):
    """Scratch space of the likelihood, and where the last search for the mode of w ended.

    Attributes
    ----------
    spans : ndarray of int64, shape (parents + 1, 2)
        How many functions of each parent are in use, and where its columns of Phi begin; the mean's come last.
    factors, slopes_of_factors : ndarray of shape (parents, most functions, most functions)
        The matrices s B, and the derivatives of B in log theta.
    packed : ndarray of shape (2, packed length)
        One B and its derivative, packed row after row.
    features, weighted : ndarray of shape (rows, columns)
        Phi, and Phi times some weights of the rows.
    processes, slopes : ndarray of shape (processes, rows)
        Phi w, and the derivatives of the log likelihood in it.
    curvatures : ndarray of shape (processes, processes, rows)
        Minus its second derivatives.
    system : ndarray of shape (size, size + a tile)
        (A, b) with A = I + Phi'D Phi, then (R, R'^-1 b) with R'R = A.
    roots : ndarray of shape (size,)
        1 / R_kk.
    lower, inverse : ndarray of shape (size, size)
        R'^-1 and A^-1.
    mode, moved : ndarray of shape (processes, columns)
        The mode of w, and another w.
    known : ndarray of shape (processes, functions + 1)
        The last mode, by function: the next search starts there.
    """

    spans: Ints
    factors: Floats
    slopes_of_factors: Floats
    packed: Floats
    features: Floats
    weighted: Floats
    processes: Floats
    slopes: Floats
    curvatures: Floats
    system: Floats
    roots: Floats
    lower: Floats
    inverse: Floats
    mode: Floats
    moved: Floats
    known: Floats


def new_workspace(rows: RowFunctions, processes: int) -> LatentWorkspace:
    """Return scratch space that is large enough for all length scales, for this many processes."""
    parents, n_rows = len(rows.cells), rows.functions.shape[1]
    widest = int(np.diff(rows.starts).max(initial=0))
    side = -(-widest // TILE_COLUMNS) * TILE_COLUMNS
    # Room for the mean, and for tiles that reach over the edge.
    columns = -(-(int(rows.starts[-1]) + 1) // TILE_COLUMNS) * TILE_COLUMNS + TILE_COLUMNS
    size = processes * columns
    return LatentWorkspace(
        np.zeros((parents + 1, 2), np.int64),
        np.zeros((parents, side, side)),
        np.zeros((parents, side, side)),
        np.empty((2, widest * (widest + 1) // 2)),
        np.zeros((n_rows, columns)),
        np.zeros((n_rows, columns)),
        np.empty((processes, n_rows)),
        np.empty((processes, n_rows)),
        np.empty((processes, processes, n_rows)),
        np.empty((size, size + TILE_COLUMNS)),
        np.empty(size),
        np.empty((size, size + TILE_COLUMNS)),
        np.empty((size, size + TILE_COLUMNS)),
        np.empty((processes, columns)),
        np.empty((processes, columns)),
        np.zeros((processes, int(rows.starts[-1]) + 1)),
    )


@inner_fused
def write_features(scale: float, log_thetas: Floats, rows: RowFunctions, work: LatentWorkspace) -> int:
    """Write Phi for a scale s, with zeros up to whole tiles; return the number of its columns."""
    parents, n_rows = len(rows.cells), rows.functions.shape[1]
    begin = 0
    for i in range(parents):
        b = work.factors[i]
        m = write_factor(log_thetas[i], rows.cells[i], rows.coefficients, work.packed, b, work.slopes_of_factors[i])
        # s B_i.
        for a in range(m):
            b[a, :m] *= scale
        # Tiles reach beyond the last function: what follows is written later.
        out, functions = work.features[:, begin:], rows.functions[rows.starts[i] :]
        for n in range(0, n_rows, TILE_ROWS):
            for c in range(0, m, TILE_COLUMNS):
                # Phi_i = U_i (s B_i), and B is lower triangular.
                write_tile(out, functions, b, n, c, c, m)
        work.spans[i, 0] = m
        work.spans[i, 1] = begin
        begin += m
    work.spans[parents, 0] = 1
    work.spans[parents, 1] = begin
    columns = padded(begin + 1, TILE_COLUMNS)
    work.features[:, begin:columns] = 0.0
    # The last column is s s_mu 1.
    work.features[:, begin] = scale * rows.mean_sd
    return columns


@inner_fused
def write_processes(w: Floats, columns: int, work: LatentWorkspace) -> None:
    """Write Phi w of every process."""
    for p in range(len(w)):
        own = w[p, :columns]
        for n in range(work.features.shape[0]):
            total = 0.0
            row = work.features[n]
            for c in range(columns):
                total += row[c] * own[c]
            work.processes[p, n] = total


@inner_fused
def factor_system(w: Floats, columns: int, work: LatentWorkspace) -> float:
    """Write (R, R'^-1 b), R'R = A = I + Phi'D Phi and b the gradient of the log joint density; return log |A|.

    As |I + Phi'D Phi| = |I + D^1/2 K D^1/2| with K = Phi Phi', it is the |B| of Rasmussen & Williams (2006, eq. 3.26).
    """
    processes, n_rows = len(w), work.features.shape[0]
    size = processes * columns
    for p in range(processes):
        for q in range(p, processes):
            # A_pq = Phi'D_pq Phi, and the identity besides where p = q.
            for n in range(n_rows):
                share = work.curvatures[p, q, n]
                row, out = work.features[n], work.weighted[n]
                for c in range(columns):
                    out[c] = share * row[c]
            block = work.system[p * columns :, q * columns :]
            for c in range(0, columns, TILE_ROWS):
                for d in range(c // TILE_COLUMNS * TILE_COLUMNS if p == q else 0, columns, TILE_COLUMNS):
                    write_tile(block, work.features, work.weighted, c, d, 0, n_rows)
        for c in range(columns):
            work.system[p * columns + c, p * columns + c] += 1.0
            # b_p = Phi'g_p - w_p, with g the slopes of the log likelihood.
            work.system[p * columns + c, size : size + TILE_COLUMNS] = 0.0
            work.system[p * columns + c, size] = -w[p, c]
        for n in range(n_rows):
            share = work.slopes[p, n]
            row = work.features[n]
            for c in range(columns):
                work.system[p * columns + c, size] += share * row[c]
    return factor(work.system, work.roots, size, size + TILE_COLUMNS)


@inner_fused
def solve_upper(vector: Floats, size: int, work: LatentWorkspace) -> None:
    """Replace a vector x by R^-1 x."""
    for c in range(size - 1, -1, -1):
        # R z = x: z_c = (x_c - sum_{d>c} R_cd z_d) / R_cc.
        total = vector[c]
        row = work.system[c]
        for d in range(c + 1, size):
            total -= row[d] * vector[d]
        vector[c] = total * work.roots[c]


@inner_fused
def solve_system(vector: Floats, size: int, work: LatentWorkspace) -> None:
    """Replace a vector x by A^-1 x, given R."""
    for c in range(size):
        # z = R'^-1 x, z_c = (x_c - sum_{d<c} R_dc z_d) / R_cc; then R^-1 z.
        total = vector[c]
        for d in range(c):
            total -= work.system[d, c] * vector[d]
        vector[c] = total * work.roots[c]
    solve_upper(vector, size, work)


@inner_fused
def theta_slope(i: int, scale: float, rows: RowFunctions, work: LatentWorkspace) -> float:
    """Return the derivative in log theta_i, given in `weighted` what dPhi = s U dB is multiplied by."""
    m, begin = work.spans[i, 0], work.spans[i, 1]
    n_rows = work.features.shape[0]
    total = 0.0
    # s sum_n sum_a U_na sum_{c<=a} (dB / d log theta_i)_ac M_nc, M being `weighted`.
    for a in range(m):
        function, slopes = rows.functions[rows.starts[i] + a], work.slopes_of_factors[i, a]
        for n in range(n_rows):
            pull = work.weighted[n, begin : begin + a + 1]
            product = 0.0
            for c in range(a + 1):
                product += slopes[c] * pull[c]
            total += function[n] * product
    return scale * total


@inner_fused
def log_mean_weight(log_weights: Floats) -> float:
    """Return the log of the mean of weights, given their logs; minus infinity where all are zero."""
    highest = log_weights.max()
    if not highest > -np.inf:
        return -np.inf
    # log mean exp(l) = h + log mean exp(l - h), with h the highest l.
    total = 0.0
    for log_weight in log_weights:
        total += np.exp(log_weight - highest)
    mean: float = highest + np.log(total / len(log_weights))
    return mean

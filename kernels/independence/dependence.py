"""Dependence of two variables by centred similarity matrices: HSIC and distance covariance are both sums of products.

Either is sum_ij A_ij B_ij, where A and B hold how alike the rows are in one of the variables, centred so that every row
and column sums to zero: Gaussian kernels for the Hilbert-Schmidt independence criterion (Gretton et al. 2008), and
distances with their sign changed for the distance covariance (Székely, Rizzo & Bakirov 2007).
"""

import numpy as np

from gpn_bayes.kernels.arrays import Floats, Ints
from gpn_bayes.kernels.compiled import compiled, inner


@inner
def _centre(matrix: Floats) -> None:
    """Make all rows and columns of a symmetric matrix sum to zero."""
    n = matrix.shape[0]
    means = np.zeros(n)
    total = 0.0
    for i in range(n):
        for j in range(n):
            means[i] += matrix[i, j]
        means[i] /= n
        total += means[i] / n
    # H K H with H = I - 1 1' / n: K_ij - mean of row i - mean of row j + mean of all.
    for i in range(n):
        for j in range(n):
            matrix[i, j] += total - means[i] - means[j]


@compiled
def centred_distances(values: Floats) -> Floats:
    """Return the centred negative distances of all pairs of values."""
    n = len(values)
    # -|x_i - x_j|
    matrix = np.empty((n, n))
    for i in range(n):
        for j in range(n):
            matrix[i, j] = -abs(values[i] - values[j])
    _centre(matrix)
    return matrix


@compiled
def median_distance(points: Floats) -> float:
    """Return the median of the distances between rows of points [row, coordinate], those of zero left out.

    It is zero where all rows are the same.
    """
    n, dimensions = points.shape
    squares = np.empty(n * (n - 1) // 2)
    count = 0
    for i in range(n):
        for j in range(i):
            # ||x_i - x_j||^2
            square = 0.0
            for d in range(dimensions):
                square += (points[i, d] - points[j, d]) ** 2
            if square > 0:
                squares[count] = square
                count += 1
    # The upper of the two in the middle, where their number is even.
    return np.sqrt(np.partition(squares[:count], count // 2)[count // 2]) if count > 0 else 0.0


@compiled
def centred_gaussian(values: Floats) -> Floats:
    """Return the centred Gaussian kernel of all pairs of values, as wide as their median distance."""
    n = len(values)
    width = median_distance(values.reshape(n, 1))
    if width == 0:
        return np.zeros((n, n))
    matrix = np.empty((n, n))
    for i in range(n):
        # exp(-(x_i - x_j)^2 / (2 width^2))
        matrix[i, i] = 1.0
        for j in range(i):
            apart = (values[i] - values[j]) / width
            matrix[i, j] = matrix[j, i] = np.exp(-0.5 * apart * apart)
    _centre(matrix)
    return matrix


@compiled
def traces(matrix: Floats) -> tuple[float, float, float]:
    """Return the trace of a symmetric matrix, that of its square, and the sum of its squared diagonal.

    These are sum_i A_ii, sum_ij A_ij^2 and sum_i A_ii^2.
    """
    n = matrix.shape[0]
    trace, squared, diagonal = 0.0, 0.0, 0.0
    for i in range(n):
        trace += matrix[i, i]
        diagonal += matrix[i, i] ** 2
        for j in range(n):
            squared += matrix[i, j] ** 2
    return trace, squared, diagonal


@compiled
def product_sum(first: Floats, second: Floats) -> float:
    """Return the sum of the products of two matrices' entries, sum_ij A_ij B_ij."""
    total = 0.0
    for i in range(first.shape[0]):
        for j in range(first.shape[1]):
            total += first[i, j] * second[i, j]
    return total


@compiled
def permuted_sums(first: Floats, second: Floats, permutations: Ints) -> Floats:
    """Return `product_sum` with the rows and columns of the second, symmetric, matrix in each of some orders."""
    n = first.shape[0]
    sums = np.empty(len(permutations))
    for p in range(len(permutations)):
        # sum_ij A_ij B_{order i, order j} = sum_i of the diagonal + 2 sum over j < i, both matrices being symmetric.
        order = permutations[p]
        total = 0.0
        for i in range(n):
            row = second[order[i]]
            total += first[i, i] * row[order[i]]
            partial = 0.0
            for j in range(i):
                partial += first[i, j] * row[order[j]]
            total += 2 * partial
        sums[p] = total
    return sums

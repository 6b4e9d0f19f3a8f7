"""Names for the types of arrays, by what they hold."""

import numpy as np
from numpy.typing import NDArray

type Floats = NDArray[np.float64]
type Ints = NDArray[np.int64]
type Bools = NDArray[np.bool_]
# 64 bits each; mostly sets of nodes, a bit a node.
type Words = NDArray[np.uint64]
# adjacency[i, j] = 1 means i -> j.
type Adjacency = NDArray[np.int8]

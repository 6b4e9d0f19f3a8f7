"""Arrays as scikit-learn's users give them: what no learner takes is refused in the words that scikit-learn uses."""

from numbers import Number
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.utils import check_array


def check_array_input(data: Any, learner: str) -> Any:
    """Refuse arrays that are sparse, complex, too small or incomplete; return what isn't an array as it is.

    Parameters
    ----------
    data
        What `fit` was given.
    learner : str
        Its name, for the messages.

    Raises
    ------
    ValueError
        For such arrays.
    TypeError
        For arrays that hold objects other than numbers and text.

    Examples
    --------
    >>> check_array_input(np.ones((1, 3)), "HillClimbing")
    Traceback (most recent call last):
    ValueError: Found array with 1 sample(s) (shape=(1, 3)) while a minimum of 2 is required by HillClimbing.
    """
    if issparse(data):
        raise ValueError(f"{learner} needs a dense array; received a sparse one: use X.toarray()")
    if not isinstance(data, np.ndarray):
        return data
    if np.iscomplexobj(data):
        raise ValueError(f"Complex data not supported: values must be real numbers; received {data.dtype}")
    if data.dtype == object:
        _check_cells(data)
    elif np.issubdtype(data.dtype, np.floating) and np.isnan(data).any():
        raise ValueError(f"every value must be present; received an array with {np.isnan(data).sum()} NaN")
    # Whoever reads the data refuses other dimensions and infinite values.
    options = {"dtype": None, "ensure_2d": False, "allow_nd": True, "ensure_all_finite": False}
    return check_array(data, ensure_min_samples=2, ensure_min_features=2, estimator=learner, **options)


def _check_cells(data: np.ndarray) -> None:
    for value in data.flat:
        if value is not None and not isinstance(value, str | Number | np.bool_):
            raise TypeError(
                f"each entry of the argument must be a string or a number; received a {type(value).__name__}"
            )

"""`SufficientStatistics`, used in place of data by scores and learners that need no rows."""

import warnings
import zipfile
import zlib
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gpn_bayes._util.types import Floats
from gpn_bayes.data.dataset import Dataset, fingerprint_of
from gpn_bayes.data.interventions import refuse_interventions
from gpn_bayes.data.reading import ReadSettings, check_names

# What a file holds: the kind of each array's numbers, or texts, and its dimensions. A thousand variables take 8 MB.
_PARTS = {"n": ("iu", 0), "mean": ("iuf", 1), "cov": ("iuf", 2), "names": ("U", 1)}
# And, with noise, all of these.
_NOISE_PARTS = {"epsilon": ("f", 0), "delta": ("f", 0), "noise_sd": ("f", 2)}
_PACKAGE = (str(Path(__file__).parents[1]),)
_MAX_BYTES = 100 << 20
_BAD_FILES = (zipfile.BadZipFile, zlib.error, RuntimeError, SyntaxError)


@dataclass(frozen=True, eq=False)
class PrivacyNoise:
    """The noise that statistics carry for differential privacy.

    Parameters
    ----------
    epsilon, delta : float
        The guarantee that it gives.
    sd : array of shape (variables, variables)
        Standard deviation of the noise in each entry of the covariance.
    """

    epsilon: float
    delta: float
    sd: Floats

    def __post_init__(self) -> None:
        """Check the numbers."""
        object.__setattr__(self, "sd", np.array(self.sd, dtype=float))
        if not (0 < self.epsilon < np.inf and 0 < self.delta < 1):
            raise ValueError(
                f"epsilon must be positive, and delta between 0 and 1; received {self.epsilon!r} and {self.delta!r}"
            )
        if not (np.isfinite(self.sd).all() and (self.sd >= 0).all()):
            raise ValueError("standard deviations of noise must be numbers, 0 or more; received others")


@dataclass(frozen=True, eq=False)
class SufficientStatistics:
    """What a linear-Gaussian score needs of a table: its size, means and covariance (ddof = 1).

    They replace data in scores and learners that need no rows.

    Parameters
    ----------
    n : int
        Number of rows they are of.
    mean : array of shape (variables,)
        The means.
    cov : array of shape (variables, variables)
        The covariance, with divisor n - 1.
    names : sequence of str
        The variables.
    noise : PrivacyNoise, optional
        The noise that they carry, if any; see `gpn_bayes.federated.Privacy`.

    Attributes
    ----------
    fingerprint : str
        A hash of the content: equal statistics have equal fingerprints.

    Examples
    --------
    >>> import tempfile
    >>> stats = SufficientStatistics(100, [0.0, 1.0], [[1.0, 0.5], [0.5, 2.0]], ["x", "y"])
    >>> stats.n_rows, stats.correlation.round(3).tolist()
    (100, [[1.0, 0.354], [0.354, 1.0]])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     stats.save(f"{folder}/statistics.npz")
    ...     SufficientStatistics.load(f"{folder}/statistics.npz").names
    ('x', 'y')
    >>> SufficientStatistics.of(np.array([[1.0, 4.0], [3.0, 8.0], [5.0, 0.0]])).cov.tolist()
    [[4.0, -4.0], [-4.0, 16.0]]
    """

    n: int
    mean: Floats
    cov: Floats
    names: tuple[str, ...]
    noise: PrivacyNoise | None = None
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        """Check the statistics and compute the fingerprint."""
        object.__setattr__(self, "names", tuple(str(name) for name in self.names))
        object.__setattr__(self, "mean", np.array(self.mean, dtype=float))
        object.__setattr__(self, "cov", np.array(self.cov, dtype=float))
        check_names(self.names)
        d = len(self.names)
        if isinstance(self.n, bool) or not isinstance(self.n, int | np.integer):
            raise ValueError(f"n must be a whole number; received {self.n!r}")
        object.__setattr__(self, "n", int(self.n))
        if self.n < 2:
            raise ValueError(f"statistics need at least two rows; received n = {self.n}")
        if self.mean.shape != (d,) or self.cov.shape != (d, d):
            raise ValueError(
                f"mean and cov must have shapes ({d},) and ({d}, {d}) for {d} names; "
                f"received {self.mean.shape} and {self.cov.shape}"
            )
        if not (np.isfinite(self.mean).all() and np.isfinite(self.cov).all()):
            raise ValueError("mean and cov must be finite; received NaN or infinity")
        for name, variance in zip(self.names, np.diag(self.cov), strict=True):
            if variance <= 0:
                raise ValueError(f"every column must vary; column {name!r} has variance {variance}")
        if not np.allclose(self.correlation, self.correlation.T, rtol=0, atol=1e-10):
            raise ValueError("cov must be symmetric; received an asymmetric matrix")
        smallest = np.linalg.eigvalsh(self.correlation)[0]
        if smallest < -1e-8:
            raise ValueError(f"cov must be positive semi-definite; its correlations have the eigenvalue {smallest:.3g}")
        noise: list[Any] = []
        if self.noise is not None:
            if self.noise.sd.shape != (d, d):
                raise ValueError(f"noise must have the shape ({d}, {d}) of cov; received {self.noise.sd.shape}")
            noise = [self.noise.epsilon, self.noise.delta, self.noise.sd]
        object.__setattr__(self, "fingerprint", fingerprint_of(self.n, list(self.names), self.mean, self.cov, *noise))

    @property
    def n_rows(self) -> int:
        """Number of rows they were computed from, as in a `Dataset`."""
        return self.n

    @classmethod
    def of(cls, data: "Dataset | pd.DataFrame | NDArray[Any] | str | Path") -> "SufficientStatistics":
        """Return the statistics of a table of numbers: anything that `Dataset.read` takes."""
        table = Dataset.read(data)
        refuse_interventions(table, "one covariance")
        values = table.numeric("a covariance")
        return cls(len(values), values.mean(axis=0), np.cov(values, rowvar=False, ddof=1), table.names)

    def save(self, path: str | Path) -> None:
        """Write the statistics to an ``.npz`` file, which can be used in place of data."""
        arrays: dict[str, Any] = self.to_arrays()
        with Path(path).open("wb") as file:
            np.savez(file, **arrays)

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything as the named arrays of a file.

        Examples
        --------
        >>> list(SufficientStatistics(100, [0, 0], [[1, 0], [0, 1]], ["x", "y"]).to_arrays())
        ['n', 'mean', 'cov', 'names']
        """
        arrays = {"n": np.array(self.n), "mean": self.mean, "cov": self.cov, "names": np.array(self.names, dtype=str)}
        if self.noise is None:
            return arrays
        epsilon, delta = np.array(float(self.noise.epsilon)), np.array(float(self.noise.delta))
        return {**arrays, "epsilon": epsilon, "delta": delta, "noise_sd": self.noise.sd}

    @classmethod
    def load(cls, path: str | Path) -> "SufficientStatistics":
        """Read statistics that `save` wrote.

        Raises
        ------
        ValueError
            If the file is missing or holds something else.
        """
        if not Path(path).is_file():
            raise ValueError(f"the file of statistics must exist; {str(path)!r} is not a file")
        try:
            with zipfile.ZipFile(path) as file:
                if sum(part.file_size for part in file.infolist()) > _MAX_BYTES:
                    raise ValueError
            with np.load(path, allow_pickle=False) as content:
                expected = _PARTS | (_NOISE_PARTS if _NOISE_PARTS.keys() & set(content.files) else {})
                parts = {part: np.asarray(content[part]) for part in expected}
        except (OSError, TypeError, ValueError, KeyError, EOFError, MemoryError, NotImplementedError, *_BAD_FILES):
            raise ValueError(f"{Path(path).name} can't be read as statistics: n, mean, cov and names") from None
        for part, (kinds, dimensions) in expected.items():
            if parts[part].dtype.kind not in kinds or parts[part].ndim != dimensions:
                raise ValueError(
                    f"{Path(path).name} can't be read as statistics: {part} is {parts[part].dtype} of "
                    f"{parts[part].ndim} dimensions"
                )
        noise = None
        if "noise_sd" in parts:
            noise = PrivacyNoise(float(parts["epsilon"]), float(parts["delta"]), parts["noise_sd"])
        return cls(int(parts["n"]), parts["mean"], parts["cov"], tuple(str(name) for name in parts["names"]), noise)

    @property
    def largest_noise(self) -> float:
        """The largest standard deviation of noise in a correlation; 0 without noise.

        Examples
        --------
        >>> SufficientStatistics(400, [0, 0], [[4, 0], [0, 1]], ["x", "y"]).largest_noise
        0.0
        """
        if self.noise is None:
            return 0.0
        scale = np.sqrt(np.diag(self.cov))
        return float((self.noise.sd / np.outer(scale, scale))[~np.eye(len(scale), dtype=bool)].max())

    def discounted(self) -> "SufficientStatistics":
        """Return the same statistics with a smaller n, whose sampling error allows for the noise, approximately.

        Noise of standard deviation s in a correlation is treated as additional sampling error, which is about
        1 / sqrt(n): n becomes 1 / (1 / n + s^2), with the largest s of all pairs. Otherwise noise is taken for edges
        unless s is well below 1 / sqrt(n).

        Examples
        --------
        >>> from gpn_bayes.data import PrivacyNoise
        >>> noise = PrivacyNoise(1.0, 1e-6, [[0.2, 0.1], [0.1, 0.2]])
        >>> stats = SufficientStatistics(900, [0, 0], [[1, 0], [0, 1]], ["x", "y"], noise)
        >>> stats.largest_noise, stats.discounted().n, stats.discounted().noise is None
        (0.1, 89, True)
        """
        rows = max(2, int(1 / (1 / self.n + self.largest_noise**2)))
        return SufficientStatistics(rows, self.mean, self.cov, self.names)

    @property
    def correlation(self) -> Floats:
        """The covariance of the standardised variables."""
        scale = np.sqrt(np.diag(self.cov))
        correlation: Floats = self.cov / np.outer(scale, scale)
        return correlation


def read_data(data: Any, **settings: Any) -> "Dataset | SufficientStatistics":
    """Return statistics as they are or from their file, and any table as a `Dataset`, by settings of `Dataset.read`."""
    if isinstance(data, str | Path) and Path(data).suffix.lower() == ".npz":
        data = SufficientStatistics.load(data)
    if not isinstance(data, SufficientStatistics):
        return Dataset.read(data, **settings)
    given = [name for name in ReadSettings(**settings).given if name != "missing"]
    if given:
        raise ValueError(f"{given[0]} is a setting of tables; received SufficientStatistics")
    return data


def warn_of_noise(data: "Dataset | SufficientStatistics | None") -> None:
    """Say how large the noise in statistics is, if there is any, and that results ignore it."""
    if isinstance(data, SufficientStatistics) and data.noise is not None:
        warnings.warn(f"the statistics carry {noise_text(data)}", UserWarning, skip_file_prefixes=_PACKAGE)


def noise_text(data: SufficientStatistics) -> str:
    """Return in words how large the noise is in statistics that carry some.

    Examples
    --------
    >>> noise = PrivacyNoise(1.0, 1e-6, [[0.1, 0.1], [0.1, 0.1]])
    >>> noise_text(SufficientStatistics(400, [0, 0], [[4, 0], [0, 1]], ["x", "y"], noise))
    'noise for differential privacy (epsilon 1, delta 1e-06) of standard deviation up to 0.05 in a correlation, beside a
    sampling error of 0.05; results take it for part of the data, unless .discounted() statistics allow for it'
    """
    assert data.noise is not None
    return (
        f"noise for differential privacy (epsilon {data.noise.epsilon:g}, delta {data.noise.delta:g}) of standard "
        f"deviation up to {data.largest_noise:.2g} in a correlation, beside a sampling error of "
        f"{1 / np.sqrt(data.n):.2g}; results take it for part of the data, unless .discounted() statistics allow for it"
    )


def check_known(table: "Dataset | SufficientStatistics", names: tuple[str, ...], fingerprint: str | None) -> None:
    """Refuse any table but the one that the posterior was drawn from.

    Parameters
    ----------
    table : Dataset or SufficientStatistics
        What was given.
    names : tuple of str
        The posterior's variables.
    fingerprint : str or None
        That of the table it was drawn from, if it is known.
    """
    if table.names != names or table.fingerprint != (fingerprint or table.fingerprint):
        raise ValueError("data must be the table that the posterior was drawn from; received another")

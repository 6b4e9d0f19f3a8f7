"""`SufficientStatistics`, used in place of data by scores and learners that need no rows."""

import io
import warnings
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar, Unpack

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from gpn_bayes._util.checks import shown
from gpn_bayes._util.files import write_whole
from gpn_bayes._util.types import Floats, Ints
from gpn_bayes.data.dataset import Dataset, fingerprint_of
from gpn_bayes.data.interventions import Interventions, interventions_of
from gpn_bayes.data.keywords import Described, Keywords, given_names, settings_of
from gpn_bayes.data.reading import check_names, read_interventions, read_labels

# What a file holds: the kind of each array's numbers, or texts, and its dimensions. A thousand variables take 8 MB.
_PARTS = {"n": ("iu", 0), "mean": ("iuf", 1), "cov": ("iuf", 2), "names": ("U", 1)}
# And, with noise, all of these.
_NOISE_PARTS = {"epsilon": ("f", 0), "delta": ("f", 0), "noise_sd": ("f", 2)}
# And, of experiments, all of these and what was done in them.
_EXPERIMENT_PARTS = {"experiment_n": ("iu", 1), "experiment_mean": ("f", 2), "experiment_scatter": ("f", 3)}
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
                "epsilon must be positive, and delta between 0 and 1; received "
                f"{shown(self.epsilon)} and {shown(self.delta)}"
            )
        if not (np.isfinite(self.sd).all() and (self.sd >= 0).all()):
            raise ValueError("standard deviations of noise must be numbers, 0 or more; received others")


@dataclass(frozen=True, eq=False)
class RowMoments:
    """The size, means, and sums of squares and products of any rows; a column needn't vary in them.

    Attributes
    ----------
    n : int
        Number of rows.
    mean : ndarray of shape (variables,)
        The means.
    scatter : ndarray of shape (variables, variables)
        The sums of squares and products about the means.
    names : tuple of str
        The variables.
    fingerprint : str
        A hash of the rows.

    Examples
    --------
    >>> RowMoments.of(np.array([[1.0, 4.0], [3.0, 4.0]]), ("x", "y"), "").scatter.tolist()
    [[2.0, 0.0], [0.0, 0.0]]
    """

    n: int
    mean: Floats
    scatter: Floats
    names: tuple[str, ...]
    fingerprint: str

    @classmethod
    def of(
        cls, values: Floats, names: tuple[str, ...], fingerprint: str, weights: Floats | None = None
    ) -> "RowMoments":
        """Return the moments of rows of numbers, or of those that they stand for by their weights."""
        if weights is None:
            mean = values.mean(axis=0)
            return cls(len(values), mean, (values - mean).T @ (values - mean), names, fingerprint)
        mean = weights @ values / weights.sum()
        scatter = ((values - mean) * weights[:, None]).T @ (values - mean)
        return cls(round(float(weights.sum())), mean, scatter, names, fingerprint)

    @classmethod
    def joined(cls, n: Ints, mean: Floats, scatter: Floats, names: tuple[str, ...]) -> "RowMoments":
        """Return the moments of several tables' rows together, from their own."""
        total = n @ mean / n.sum()
        apart = mean - total
        about = scatter.sum(axis=0) + (n[:, None] * apart).T @ apart
        return cls(int(n.sum()), total, about, names, fingerprint_of(n, mean, scatter))


@dataclass(frozen=True, eq=False)
class ExperimentMoments:
    """The moments of every experiment behind statistics, and what was done in it.

    Attributes
    ----------
    n : ndarray of int, shape (experiments,)
        Their numbers of rows.
    mean : ndarray of shape (experiments, variables)
        Their means.
    scatter : ndarray of shape (experiments, variables, variables)
        Their sums of squares and products about these means.
    interventions : Interventions
        What was done, of which each experiment is a row.
    """

    n: Ints
    mean: Floats
    scatter: Floats
    interventions: Interventions


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
    experiments : ExperimentMoments, optional
        The moments of each experiment that the rows belong to; see `join`.

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

    They answer what a `Dataset` answers, but for what needs rows:

    >>> stats.kinds, stats.levels, stats.means().tolist(), stats.size
    (('continuous', 'continuous'), (None, None), [0.0, 1.0], 100)
    >>> stats.require_numbers("my score"), stats.refuse_gaps()
    (None, None)
    """

    n: int
    mean: Floats
    cov: Floats
    names: tuple[str, ...]
    noise: PrivacyNoise | None = None
    experiments: ExperimentMoments | None = None
    fingerprint: str = field(init=False)

    def __post_init__(self) -> None:
        """Check the statistics and compute the fingerprint."""
        object.__setattr__(self, "names", tuple(str(name) for name in self.names))
        with np.errstate(invalid="ignore"):  # NaN of a file may not survive the cast; they are refused below
            object.__setattr__(self, "mean", np.array(self.mean, dtype=float))
            object.__setattr__(self, "cov", np.array(self.cov, dtype=float))
        check_names(self.names)
        d = len(self.names)
        if isinstance(self.n, bool) or not isinstance(self.n, int | np.integer):
            raise ValueError(f"n must be a whole number; received {shown(self.n)}")
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
        further: list[Any] = []
        if self.noise is not None:
            if self.noise.sd.shape != (d, d):
                raise ValueError(f"noise must have the shape ({d}, {d}) of cov; received {self.noise.sd.shape}")
            further = [self.noise.epsilon, self.noise.delta, self.noise.sd]
        if self.experiments is not None:
            own = self.experiments
            if own.n.sum() != self.n or not (np.isfinite(own.mean).all() and np.isfinite(own.scatter).all()):
                raise ValueError("moments of experiments must be numbers, and of all n rows; received others")
            further += [own.n, own.mean, own.scatter, *own.interventions.parts()]
        object.__setattr__(self, "fingerprint", fingerprint_of(self.n, list(self.names), self.mean, self.cov, *further))

    @property
    def n_rows(self) -> int:
        """Number of rows they were computed from, as in a `Dataset`."""
        return self.n

    # As of a `Dataset`: every row counts once, and has all its values.
    missing: ClassVar[None] = None
    weights: ClassVar[None] = None
    table: ClassVar[None] = None
    repeated: ClassVar[bool] = False
    rows_dropped: ClassVar[int] = 0
    own_units: ClassVar[None] = None
    notes: ClassVar[tuple[str, ...]] = ()

    @property
    def size(self) -> int:
        """Number of rows, as of a `Dataset`."""
        return self.n

    @property
    def kinds(self) -> tuple[str, ...]:
        """What the variables are, as of a `Dataset`: numbers."""
        return ("continuous",) * len(self.names)

    @property
    def levels(self) -> tuple[None, ...]:
        """The levels of the variables, as of a `Dataset`: none."""
        return (None,) * len(self.names)

    def means(self) -> Floats:
        """Return the means, as of a `Dataset`."""
        return self.mean

    def spreads(self) -> Floats:
        """Return the standard deviations, as of a `Dataset`.

        Examples
        --------
        >>> SufficientStatistics(100, [0, 0], [[4, 0], [0, 1]], ["x", "y"]).spreads().tolist()
        [2.0, 1.0]
        """
        return np.sqrt(np.diag(self.cov))

    def require_numbers(self, purpose: str, instead: str = "") -> None:
        """Statistics are of numbers; see `Dataset.require_numbers`."""

    def with_rows(self, need: str) -> Dataset:
        """Refuse what needs rows.

        Examples
        --------
        >>> SufficientStatistics(100, [0, 0], [[1, 0], [0, 1]], ["x", "y"]).with_rows("a bootstrap needs the rows")
        Traceback (most recent call last):
        ValueError: a bootstrap needs the rows; received SufficientStatistics
        """
        raise ValueError(f"{need}; received {type(self).__name__}")

    def refuse_gaps(self) -> None:
        """Nothing is missing in statistics; see `Dataset.refuse_gaps`."""

    @property
    def interventions(self) -> Interventions | None:
        """What was done in the experiments that the rows belong to, each of them a row; None where there are none.

        Examples
        --------
        >>> SufficientStatistics(100, [0, 0], [[1, 0], [0, 1]], ["x", "y"]).interventions is None
        True
        """
        return None if self.experiments is None else self.experiments.interventions

    @property
    def scatter(self) -> Floats:
        """The sums of squares and products about the means.

        Examples
        --------
        >>> SufficientStatistics(101, [0, 0], [[1, 0], [0, 2]], ["x", "y"]).scatter.tolist()
        [[100.0, 0.0], [0.0, 200.0]]
        """
        return (self.n - 1) * self.cov

    @classmethod
    def of(cls, data: "Dataset | pd.DataFrame | NDArray[Any] | str | Path") -> "SufficientStatistics":
        """Return the statistics of a table of numbers: anything that `Dataset.read` takes.

        Those of a table with interventions hold the moments of every experiment; weights of rows count in.
        """
        table = Dataset.read(data)
        values = table.numeric("a covariance")
        if table.weights is not None:
            weighted = RowMoments.of(values, table.names, "", table.weights)
            return cls(weighted.n, weighted.mean, weighted.scatter / (weighted.n - 1), table.names)
        pooled = cls(len(values), values.mean(axis=0), np.cov(values, rowvar=False, ddof=1), table.names)
        if table.interventions is None:
            return pooled
        _, first, which = np.unique(table.interventions.experiment, return_index=True, return_inverse=True)
        parts = [RowMoments.of(values[which == k], table.names, "") for k in range(len(first))]
        return replace(pooled, experiments=ExperimentMoments(*_stacked(parts), table.interventions.at(first)))

    @classmethod
    def join(
        cls,
        parts: "Sequence[SufficientStatistics]",
        targets: Sequence[Any] | None = None,
        intervention: str | None = None,
        contexts: Sequence[Any] | None = None,
        target_probability: float | None = None,
        target_penalty: float | None = None,
    ) -> "SufficientStatistics":
        """Return the statistics of several tables' rows together, each of which may be an experiment.

        Sites that ran different experiments pool them so: each experiment is summed over the sites that ran it, by
        `gpn_bayes.federated.secure_statistics`, and the sums are joined.

        Parameters
        ----------
        parts : sequence of SufficientStatistics
            Of the same variables, without noise.
        targets, contexts : sequence, optional
            What was done in each of them, as in `Dataset.read` for every row.
        intervention, target_probability, target_penalty : optional
            As in `Dataset.read`.

        Examples
        --------
        >>> rng = np.random.default_rng(1)
        >>> observed, inhibited = (SufficientStatistics.of(rng.normal(size=(50, 2))) for _ in range(2))
        >>> both = SufficientStatistics.join([observed, inhibited], targets=["", "v2"])
        >>> both.n, both.interventions.target_sets()
        (100, [[1]])
        """
        settings = settings_of(
            {
                "targets": targets, "intervention": intervention, "contexts": contexts,
                "target_probability": target_probability, "target_penalty": target_penalty,
            }
        )  # fmt: skip
        if not parts:
            raise ValueError("statistics are joined of one table or more; received none")
        names = parts[0].names
        for part in parts:
            if part.names != names:
                raise ValueError(
                    f"statistics that are joined must be of the same variables in the same order; received "
                    f"{', '.join(names)} and {', '.join(part.names)}"
                )
            if part.noise is not None or part.experiments is not None:
                raise ValueError(
                    "statistics that are joined must have no noise and no experiments; received some that do"
                )
        moments = _stacked(parts)
        whole = RowMoments.joined(*moments, names)
        pooled = cls(whole.n, whole.mean, whole.scatter / (whole.n - 1), names)
        given = read_labels(len(parts), settings)
        if given is None:
            return pooled
        return replace(pooled, experiments=ExperimentMoments(*moments, read_interventions(given, names, settings)))

    def rows(self, places: NDArray[Any]) -> RowMoments:
        """Return the moments of some of the experiments together.

        Parameters
        ----------
        places : ndarray of int
            Which experiments.

        Examples
        --------
        >>> part = SufficientStatistics(100, [0, 0], [[1, 0], [0, 1]], ["x", "y"])
        >>> SufficientStatistics.join([part] * 3, targets=["", "", "y"]).rows(np.array([0, 2])).n
        200
        """
        assert self.experiments is not None
        own = self.experiments
        return RowMoments.joined(own.n[places], own.mean[places], own.scatter[places], self.names)

    def standardised(self) -> "SufficientStatistics":
        """Return the statistics of the variables less their means, divided by their standard deviations.

        Examples
        --------
        >>> SufficientStatistics(100, [5, 0], [[4, 1], [1, 1]], ["x", "y"]).standardised().cov.tolist()
        [[1.0, 0.5], [0.5, 1.0]]
        """
        scale = np.sqrt(np.diag(self.cov))
        own = self.experiments
        if own is not None:
            own = replace(own, mean=(own.mean - self.mean) / scale, scatter=own.scatter / np.outer(scale, scale))
        return SufficientStatistics(self.n, np.zeros_like(self.mean), self.correlation, self.names, experiments=own)

    def save(self, path: str | Path) -> None:
        """Write the statistics to an ``.npz`` file, which can be used in place of data."""
        arrays: dict[str, Any] = self.to_arrays()
        content = io.BytesIO()
        np.savez(content, **arrays)
        write_whole(Path(path), content.getvalue())

    def to_arrays(self) -> dict[str, NDArray[Any]]:
        """Return everything as the named arrays of a file.

        Examples
        --------
        >>> list(SufficientStatistics(100, [0, 0], [[1, 0], [0, 1]], ["x", "y"]).to_arrays())
        ['n', 'mean', 'cov', 'names']
        """
        arrays = {"n": np.array(self.n), "mean": self.mean, "cov": self.cov, "names": np.array(self.names, dtype=str)}
        if self.noise is not None:
            epsilon, delta = np.array(float(self.noise.epsilon)), np.array(float(self.noise.delta))
            arrays |= {"epsilon": epsilon, "delta": delta, "noise_sd": self.noise.sd}
        if self.experiments is not None:
            own = self.experiments
            arrays |= {"experiment_n": own.n, "experiment_mean": own.mean, "experiment_scatter": own.scatter}
            arrays |= own.interventions.to_arrays()
        return arrays

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> "SufficientStatistics":
        """Return the statistics that the named arrays of a file describe.

        Raises
        ------
        ValueError
            For arrays of other kinds or shapes.

        Examples
        --------
        >>> stats = SufficientStatistics(100, [0, 0], [[1, 0], [0, 1]], ["x", "y"])
        >>> SufficientStatistics.from_arrays(stats.to_arrays()).fingerprint == stats.fingerprint
        True
        """
        expected = dict(_PARTS)
        for optional in (_NOISE_PARTS, _EXPERIMENT_PARTS):
            expected |= optional if optional.keys() & arrays.keys() else {}
        for part, (kinds, dimensions) in expected.items():
            if part not in arrays:
                raise ValueError(f"{part} is missing")
            if arrays[part].dtype.kind not in kinds or arrays[part].ndim != dimensions:
                raise ValueError(f"{part} is {arrays[part].dtype} of {arrays[part].ndim} dimensions")
        noise, experiments = None, None
        if "noise_sd" in expected:
            noise = PrivacyNoise(float(arrays["epsilon"]), float(arrays["delta"]), arrays["noise_sd"])
        if "experiment_n" in expected:
            n, mean, scatter = (arrays[part] for part in _EXPERIMENT_PARTS)
            d = len(arrays["names"])
            if mean.shape != (len(n), d) or scatter.shape != (len(n), d, d) or (n < 1).any():
                raise ValueError("moments of experiments must be as many as experiments and variables; received others")
            interventions = interventions_of(arrays, mean.shape)
            if interventions is None:
                raise ValueError("target or context is missing")
            experiments = ExperimentMoments(
                n.astype(np.int64), mean.astype(float), scatter.astype(float), interventions
            )
        names = tuple(str(name) for name in arrays["names"])
        return cls(int(arrays["n"]), arrays["mean"], arrays["cov"], names, noise, experiments)

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
                arrays = {str(part): np.asarray(content[part]) for part in content.files}
        except (OSError, TypeError, ValueError, KeyError, EOFError, MemoryError, NotImplementedError, *_BAD_FILES):
            raise ValueError(f"{Path(path).name} can't be read as statistics: n, mean, cov and names") from None
        try:
            return cls.from_arrays(arrays)
        except ValueError as problem:
            raise ValueError(f"{Path(path).name} can't be read as statistics: {problem}") from None

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


Data = Dataset | SufficientStatistics


def standardised(data: Data, purpose: str) -> Data:
    """Return a table of numbers, or statistics, of standardised columns (ddof = 1).

    Parameters
    ----------
    data : Dataset or SufficientStatistics
        The table.
    purpose : str
        What needs numbers, for the error message.
    """
    if isinstance(data, SufficientStatistics):
        return data.standardised()
    return replace(data, values=data.standardised(purpose))


def statistics_of(data: Data, purpose: str, instead: str = "") -> SufficientStatistics:
    """Return statistics as they are, and those of a table of numbers.

    Parameters
    ----------
    data : Dataset or SufficientStatistics
        The data.
    purpose, instead : str
        As of `Dataset.numeric`.

    Examples
    --------
    >>> statistics_of(Dataset.read(np.array([[1.0, 4.0], [3.0, 8.0], [5.0, 0.0]])), "a test").n
    3
    """
    if isinstance(data, Dataset):
        data.numeric(purpose, instead)
        return SufficientStatistics.of(data)
    return data


def moments_of(data: Data | RowMoments, purpose: str, instead: str = "") -> SufficientStatistics | RowMoments:
    """Return moments as they are, and those of a table of numbers: its size, means and scatter.

    Parameters
    ----------
    data : Dataset, SufficientStatistics or RowMoments
        The data.
    purpose, instead : str
        As of `Dataset.numeric`.

    Examples
    --------
    >>> moments_of(Dataset.read(np.array([[1.0, 4.0], [3.0, 8.0], [5.0, 0.0]])), "a test").scatter.tolist()
    [[8.0, -8.0], [-8.0, 32.0]]
    """
    if isinstance(data, Dataset):
        return RowMoments.of(data.numeric(purpose, instead), data.names, data.fingerprint, data.weights)
    return data


def _stacked(parts: "Sequence[SufficientStatistics | RowMoments]") -> tuple[Ints, Floats, Floats]:
    """Return the sizes, means, and sums of squares and products of several tables."""
    n: Ints = np.array([part.n for part in parts], dtype=np.int64)
    return n, np.array([part.mean for part in parts]), np.array([part.scatter for part in parts])


def read_data(data: Any, *, declared: Sequence[str] = (), **keywords: Unpack[Keywords]) -> Data:
    """Return statistics as they are or from their file, and any table as a `Dataset`, perhaps with missing values.

    Parameters
    ----------
    data : DataFrame, ndarray, path, Table, Dataset or SufficientStatistics
        The data.
    declared : sequence of str
        Columns whose levels are known from elsewhere, so that they may be constant.
    **keywords
        Those of `gpn_bayes.Table`, but for those that a `Table` states already. A `Dataset` was read before; only
        ``imputations`` may differ.
    """
    given: Mapping[str, Any] = keywords
    if isinstance(data, Described):
        data, given = data.data, data.joined(keywords)
    if isinstance(data, str | Path) and Path(data).suffix.lower() == ".npz":
        data = SufficientStatistics.load(data)
    if isinstance(data, SufficientStatistics):
        of_tables = [name for name in given_names(settings_of(given)) if name not in ("missing", "imputations")]
        if of_tables:
            raise ValueError(f"{of_tables[0]} is a setting of tables; received SufficientStatistics")
        return data
    return Dataset._read(data, given, whole=True, declared=declared, gaps=True)


def read_complete(data: Any, *, declared: Sequence[str] = (), **keywords: Unpack[Keywords]) -> Data:
    """Return data as `read_data` does, but refuse missing values."""
    table = read_data(data, declared=declared, **keywords)
    table.refuse_gaps()
    return table


def warn_of_noise(data: Data | None) -> None:
    """Say how large the noise in statistics is, if there is any, and that results ignore it."""
    if data is not None and data.noise is not None:
        warnings.warn(f"the statistics carry {noise_text(data)}", UserWarning, skip_file_prefixes=_PACKAGE)


def noise_text(data: Data) -> str:
    """Return in words how large the noise is in statistics that carry some.

    Examples
    --------
    >>> noise = PrivacyNoise(1.0, 1e-6, [[0.1, 0.1], [0.1, 0.1]])
    >>> noise_text(SufficientStatistics(400, [0, 0], [[4, 0], [0, 1]], ["x", "y"], noise))
    'noise for differential privacy (epsilon 1, delta 1e-06) of standard deviation up to 0.05 in a correlation, beside a
    sampling error of 0.05; results take it for part of the data, unless .discounted() statistics allow for it'
    """
    statistics = statistics_of(data, "noise")
    noise = statistics.noise
    assert noise is not None
    return (
        f"noise for differential privacy (epsilon {noise.epsilon:g}, delta {noise.delta:g}) of standard "
        f"deviation up to {statistics.largest_noise:.2g} in a correlation, beside a sampling error of "
        f"{1 / np.sqrt(statistics.n):.2g}; results take it for part of the data, unless .discounted() statistics allow "
        "for it"
    )


def check_known(table: Data, names: tuple[str, ...], fingerprint: str | None) -> None:
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

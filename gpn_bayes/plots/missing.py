"""What is missing where in a table."""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import ListedColormap, to_hex, to_rgb

from gpn_bayes.plots import frames, lettering, palette
from gpn_bayes.posterior.draws import Draws
from gpn_bayes.posterior.imputed_tables import gap_patterns

_MOST_PATTERNS = 25
_NAME_WIDTH = 24


def plot_missing(post: Draws, ax: Axes | None = None) -> Axes:
    """Draw what is missing where: rows of the table that lack the same columns are one row of the picture.

    The most frequent ones come first, with the number of their rows beside them; below each column is how many of its
    values are missing.

    Parameters
    ----------
    post : GraphPosterior
        Of a table with missing values.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure. Give your own ``layout="constrained"``: that makes room for names.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.simulate.linear([[0, 1, 0], [0, 0, 1], [0, 0, 0]], 60, random_seed=1)
    >>> data.iloc[:7, 1] = float("nan")
    >>> post = gpn.sample(data, missing="impute", draws=20, tune=10, random_seed=1, progressbar=False)
    >>> [label.get_text() for label in post.plot_missing().get_yticklabels()]
    ['53 rows', '7 rows']
    """
    gaps = getattr(post.data, "missing", None)
    if gaps is None:
        raise ValueError("plot_missing needs a table with missing values; this posterior has none")
    found = gap_patterns(gaps, _MOST_PATTERNS)
    columns, patterns = gaps.shape[1], len(found.rows)
    labels = [f"{rows:,} row{'s' * (rows > 1)}" for rows in found.rows.tolist()]
    if found.left:
        labels.append(f"{found.left_rows:,} rows of {found.left:,} others")
    names = [lettering.wrapped(lettering.drawable(name), _NAME_WIDTH) for name in post.names]
    ax = frames.axes_of(ax, max(3.5, 1.6 + 0.32 * columns), max(2.2, 1.4 + 0.22 * len(labels)))
    cells = np.full((len(labels), columns), np.nan)
    cells[:patterns] = found.missing
    ground = np.array(to_rgb(ax.get_facecolor()))
    soft = 0.88 * ground + 0.12 * np.array(to_rgb(palette.GREY))
    colours = ListedColormap([to_hex(soft.tolist()), palette.VERMILION])
    ax.pcolormesh(cells, cmap=colours, vmin=0, vmax=1, edgecolor=to_hex(ground.tolist()), lw=1.2)
    ax.spines[:].set_visible(False)
    ax.invert_yaxis()
    ax.set_yticks(np.arange(len(labels)) + 0.5, labels, fontsize=frames.LEGEND)
    counts = gaps.sum(axis=0).tolist()
    texts = [f"{name} ({count:,})" if count else name for name, count in zip(names, counts, strict=True)]
    ax.set_xticks(np.arange(columns) + 0.5, texts, rotation=90, fontsize=frames.LEGEND)
    for label in ax.get_xticklabels():
        label.set_parse_math(False)
        label.set_fontfamily(lettering.families())
    ax.tick_params(length=0)
    ax.set_title(f"{gaps.sum():,} of {gaps.size:,} values are missing (coloured)", fontsize=frames.FONT)
    return ax

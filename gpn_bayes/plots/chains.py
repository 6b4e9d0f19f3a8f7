"""What chains did: the log score draw by draw, its ranks, and edge probabilities as they settle."""

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from gpn_bayes import graphs
from gpn_bayes._util.checks import shown
from gpn_bayes.plots import frames, palette
from gpn_bayes.posterior.draws import Draws

if TYPE_CHECKING:
    import xarray as xr

# ArviZ needs this many draws to split chains, and to rank them.
_LEAST_DRAWS = 4
_MOST_EDGES = 5
# How much farther than the farthest rank the axis of ranks reaches.
_ROOM = 1.1


def plot_trace(post: Draws, ax: Axes | None = None) -> Axes:
    """Draw the log score of every draw, by chain (ArviZ's `plot_trace`).

    Parameters
    ----------
    post : GraphPosterior
        The draws.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure. Give your own ``layout="constrained"``: that makes room for legends.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.simulate.linear(gpn.datasets.sachs_consensus(17), 100, random_seed=1)
    >>> post = gpn.sample(data, space=gpn.Space(max_parents=2), draws=50, random_seed=1, progressbar=False)
    >>> len(post.plot_trace().lines)
    4
    """
    import arviz_plots

    ax = frames.axes_of(ax, 8.0, 3.0)
    tree = _log_scores(post)
    visuals: Any = {"title": False, "xlabel": False, "trace": {"alpha": 0.7, "width": 0.8}}
    arviz_plots.plot_trace(
        tree, var_names="lp", group="sample_stats", plot_collection=_collection(tree, ax), visuals=visuals
    )
    ax.set(xlabel="draw", ylabel="log score")
    if post.log_score.shape[1] == 1:  # a line of one point isn't seen
        for line in ax.lines:
            line.set_marker(".")
    _list_chains(ax, post.log_score.shape[0])
    return ax


def plot_rank(post: Draws, ax: Axes | None = None) -> Axes:
    """Draw how the ranks of the log score are spread in each chain (ArviZ's `plot_rank`).

    Every line is how many of a chain's draws are among the lowest k of all draws, less what chance expects: where
    chains agree, lines stay near zero. ArviZ writes the p-value of the test that they do, and marks what speaks
    against it.

    Parameters
    ----------
    post : GraphPosterior
        The draws.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure. Give your own ``layout="constrained"``: that makes room for legends.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.simulate.linear(gpn.datasets.sachs_consensus(17), 100, random_seed=1)
    >>> post = gpn.sample(data, space=gpn.Space(max_parents=2), draws=50, random_seed=1, progressbar=False)
    >>> post.plot_rank().get_xlabel()
    'rank among all draws, as a share'
    """
    import arviz_plots

    ax = frames.axes_of(ax, 8.0, 3.0)
    ax.set(xlabel="rank among all draws, as a share", ylabel="excess of draws")
    chains, draws = post.log_score.shape
    if np.ptp(post.log_score) == 0:
        frames.note(ax, "The log score is the same in all draws: there is nothing to rank.")
        return ax
    if chains < 2 or draws < _LEAST_DRAWS:
        frames.note(ax, f"Ranks compare two chains or more, of {_LEAST_DRAWS} draws or more: {chains} x {draws} drawn.")
        return ax
    tree = _log_scores(post)
    visuals: Any = {"title": False, "xlabel": False, "remove_axis": False, "ecdf_lines": {"width": 1.2}}
    arviz_plots.plot_rank(
        tree, var_names="lp", group="sample_stats", plot_collection=_collection(tree, ax), visuals=visuals
    )
    ax.axhline(0.0, color=palette.GREY, linewidth=0.8, zorder=0)
    # ArviZ's limits are the farthest points themselves, whose marks would be cut in halves.
    low, high = ax.get_ylim()
    ax.set_ylim(_ROOM * low, _ROOM * high)
    # ArviZ writes the p-value where lines may run.
    for text in ax.texts:
        text.set(transform=ax.transAxes, position=(0.0, 1.02), verticalalignment="bottom", fontsize=frames.LEGEND)
    _list_chains(ax, chains)
    return ax


def plot_running(post: Draws, edges: Sequence[tuple[Hashable, Hashable]] | None = None, ax: Axes | None = None) -> Axes:
    """Draw edge probabilities as they settle, draw by draw: one line for every chain, one colour for every edge.

    Parameters
    ----------
    post : GraphPosterior
        The draws.
    edges : sequence of (parent, child), optional
        The edges; by default the five on which the chains differ most at the end, or, where they don't, those whose
        probability is nearest to 1/2.
    ax : matplotlib Axes, optional
        Where to draw; by default a new figure. Give your own ``layout="constrained"``: that makes room for legends.

    Returns
    -------
    matplotlib Axes

    Examples
    --------
    >>> import gpn_bayes as gpn
    >>> data = gpn.simulate.linear(gpn.datasets.sachs_consensus(17), 100, random_seed=1)
    >>> post = gpn.sample(data, space=gpn.Space(max_parents=2), draws=50, random_seed=1, progressbar=False)
    >>> len(post.plot_running(edges=[("raf", "mek")]).lines)
    4
    """
    chosen = _most_different(post) if edges is None else _pairs(post, edges)
    names = [frames.edge_label(post, i, j) for i, j in chosen]
    ax = frames.axes_of(ax, 6.2 + frames.width_beside(names), 3.4)
    ax.set(xlabel="draw", ylabel=f"edge {post.quantity} so far", ylim=(-0.03, 1.03))
    if not chosen:
        frames.note(ax, "Every edge is in all draws or in none: no probability has to settle.")
        return ax
    total = np.cumsum(post.weights, axis=1)
    handles = []
    draw = np.arange(1, total.shape[1] + 1)
    looks = zip(palette.series(len(chosen)), palette.dashes(len(chosen)), strict=True)
    for (i, j), name, (colour, dash) in zip(chosen, names, looks, strict=True):
        share = np.cumsum(post.weights * graphs.parents_of(post.parents, j)[..., i], axis=1) / total
        marker = "." if total.shape[1] == 1 else ""
        ax.plot(draw, share.T, color=colour, linestyle=dash, linewidth=1.1, alpha=0.85, marker=marker)
        handles.append(Line2D([], [], color=colour, linestyle=dash, label=name))
    frames.legend_beside(ax, handles)
    return ax


def _pairs(post: Draws, edges: Any) -> list[tuple[int, int]]:
    """Return the places of edges that a user named."""
    rule = "edges must be pairs (parent, child) of two variables, one pair or more"
    if isinstance(edges, str) or not len(edges):
        raise ValueError(f"{rule}; received {shown(edges)}")
    pairs = []
    for edge in edges:
        if isinstance(edge, str) or not isinstance(edge, Sequence) or len(edge) != 2:
            raise ValueError(f"{rule}; received {shown(edge)}")
        parent, child = (graphs.node_index(node, post.names) for node in edge)
        if parent == child:
            raise ValueError(f"{rule}; received {shown(edge)}")
        pairs.append((parent, child))
    return pairs


def _most_different(post: Draws) -> list[tuple[int, int]]:
    """Return the edges on which chains differ most, of those that not all draws agree on."""
    by_chain = graphs.edge_shares(post.parents, post.weights)
    gaps = by_chain.max(axis=0) - by_chain.min(axis=0)
    some, all_of_them = (reduce(post.parents, axis=(0, 1)) for reduce in (np.bitwise_or.reduce, np.bitwise_and.reduce))
    varies = graphs.unpack(some & ~all_of_them, len(post.names))
    open_by = np.abs(by_chain.mean(axis=0) - 0.5)
    places = [(int(i), int(j)) for i, j in np.argwhere(varies)]
    return sorted(places, key=lambda place: (-gaps[place], open_by[place]))[:_MOST_EDGES]


def _log_scores(post: Draws) -> "xr.DataTree":
    """Return the log scores as ArviZ takes them; without the edges, which are many."""
    import xarray as xr

    places = {dim: np.arange(size) for dim, size in zip(("chain", "draw"), post.log_score.shape, strict=True)}
    scores = xr.Dataset({"lp": (("chain", "draw"), post.log_score)}, coords=places)
    return xr.DataTree(children={"sample_stats": xr.DataTree(scores)})


def _collection(tree: "xr.DataTree", ax: Axes) -> Any:
    """Return what makes ArviZ draw into given axes, in our colours."""
    import xarray as xr
    from arviz_plots.plot_collection import PlotCollection

    box = np.empty((), dtype=object)
    box[()] = ax
    places = xr.DataTree(children={"plot": xr.DataTree(xr.Dataset({"lp": ((), box)}))})
    data = tree["sample_stats"].to_dataset()
    return PlotCollection(
        data,
        places,
        aes={"color": ["chain"], "linestyle": ["chain"], "overlay": ["chain"]},
        backend="matplotlib",
        color=palette.series(data.sizes["chain"]),
        linestyle=palette.dashes(data.sizes["chain"]),
    )


def _list_chains(ax: Axes, chains: int) -> None:
    looks = zip(palette.series(chains), palette.dashes(chains), strict=True)
    handles = [Line2D([], [], color=own, linestyle=dash, label=f"chain {k}") for k, (own, dash) in enumerate(looks)]
    frames.legend_beside(ax, handles)

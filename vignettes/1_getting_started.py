# %% [markdown]
# # Getting started: proteins in a T cell
#
# Which proteins act on which in a human T cell, and how sure can we be? We take 853 cells in which Sachs et al. (2005)
# measured 11 proteins and lipids, and ask for the probability of every edge of the network between them. The page takes
# about half a minute on two cores, and a minute more the first time, when the package compiles.

# %%
import networkx as nx

import gpn_bayes as gpn

cells = gpn.datasets.sachs(transform="log2")  # one row per cell; logarithms shorten the long tails
cells.describe().loc[["mean", "std", "min", "max"]].round(1)

# %% [markdown]
# ## Draw networks
#
# `sample` scores sets of parents for every variable and then draws networks (DAGs) in proportion to their posterior
# probability. The score `"gp"` lets every variable be a sum of smooth functions of its parents, of any shape, plus
# noise. We allow at most three parents, to save time. With only eleven variables the networks are drawn independently,
# not by a Markov chain.

# %%
post = gpn.sample(cells, score="gp", space=gpn.Space(max_parents=3), random_seed=1, progressbar=False)
print(post.diagnostics())

# %% [markdown]
# Read this first, every time. The first line is about sampling: the networks were drawn under a fast approximation (the
# proposal score) and got importance weights by the target score. Most of the 8,000 draws remain effective, and the
# Pareto k is far below 0.7, so sampling has converged. Then follow the assumptions, and what looks unusual in the data:
# here a few outlying cells, and noise with heavier tails than the normal distribution. The [third
# vignette](3_reading_diagnostics.html) shows what a bad report looks like.
#
# ## Ask
#
# An edge, a path of any length, or anything else that can be asked of a `networkx.DiGraph`:


# %%
def by_a_detour(graph: nx.DiGraph) -> bool:
    return nx.has_path(graph, "raf", "plcg") and not graph.has_edge("raf", "plcg")


print("erk -> akt                ", post.edge_probability("erk", "akt"))
print("erk -> pka                ", post.edge_probability("erk", "pka"))
print("pka -> erk                ", post.edge_probability("pka", "erk"))
print("raf ~> plcg, by any path  ", post.path_probability("raf", "plcg"))
print("raf ~> plcg, by a detour  ", post.probability(by_a_detour))

# %% [markdown]
# The number after ± is the standard error of the estimate: how much another 8,000 draws could change it. It is not the
# uncertainty about the edge; that is the probability itself. Where all draws have the edge, no standard error is
# reported: a probability of 1.000 from about 7,000 effective draws says that its complement is hardly above 3/7,000.
#
# `erk` and `pka` are certainly connected, but the data don't determine the direction.
#
# ## The network

# %%
ax = post.plot_network(threshold=0.1)

# %% [markdown]
# The wider a line, the more probable the edge. A filled arrowhead is a direction that the draws agree on; a line in the
# other colour has none.
# ## Every edge, compared with the literature
#
# Rows are parents, columns are children. Frames mark the 17 edges of the network that Sachs et al. validated.

# %%
known = gpn.datasets.sachs_consensus(17)
ax = post.plot_edges(truth=known)


# %%
def known_pairs(graph: nx.DiGraph) -> int:
    return sum(graph.has_edge(*edge) or graph.has_edge(*edge[::-1]) for edge in known.edges)


joined, directed = post.probability(known_pairs), post.expected_tp(known)
print("of the 17 known edges, a drawn network has on average")
print(f"{joined.value:.1f} pairs joined, {directed.value:.1f} of them in the known direction")

# %% [markdown]
# That is sobering. Most of the known edges were established by experiments that activate or inhibit a protein; in cells
# that were only observed, many of them leave no trace, whatever the method.
#
# ## The curve behind an edge
#
# A probability is easier to believe when you see what it is based on. For each parent of `akt`: the fitted function, a
# band that contains it with 90 % probability, and the cells, with the effects of the other parents subtracted.

# %%
panels = post.plot_curves("akt", threshold=0.2)

# %% [markdown]
# `erk` and `akt` rise together, over the whole range. The effect of `pka` is small, but with this many cells it is
# clearly not zero.
#
# Now an edge to distrust. The posterior is certain of `jnk -> pkc`; the known edge is `pkc -> jnk`.

# %%
panels = post.plot_curves("pkc", threshold=0.2)

# %% [markdown]
# There is certainly a relation, but a strange one: the cells form two groups. Either protein may drive the other, or an
# unmeasured variable may cause the groups. The *direction* follows from the model alone: `pkc` as a smooth function of
# `jnk` plus noise of constant variance fits better than the reverse. **From such data, believe which variables are
# connected, and take directions as hints**, unless interventions, time or other knowledge (the [fourth
# vignette](4_prior_knowledge.html)) supports them.
# ## Save it
#
# Tables for a paper, and a file that ArviZ reads too:

# %%
post.save("sachs.nc")
post.summary().query("probability > 0.1")[["edge", "probability", "mcse", "status"]].round(3)

# %% [markdown]
# ## What this page doesn't say
#
# All probabilities are conditional on the model: additive smooth effects, normal noise, no cycles, no unmeasured common
# causes, and a uniform prior over networks. Cells have feedback loops and unmeasured proteins. A probability of 0.99
# means that the data leave little doubt *within that model*.

# %%
# Claims of the text, checked whenever this page is built.
assert post.diagnostics().ok
assert post.edge_probability("erk", "akt").value > 0.99
assert 0.3 < post.edge_probability("erk", "pka").value < 0.7
assert post.edge_probability("jnk", "pkc").value > 0.99
assert directed.value < 7 < joined.value

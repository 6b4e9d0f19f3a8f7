# %% [markdown]
# # Experiments: what was changed, and what we only think was changed
#
# Which way do the arrows point, and can experiments tell? In 853 cells nothing was changed, and most directions stay
# open. Sachs et al. (2005) also inhibited single proteins, which should determine directions. It does, provided
# that nothing else was changed. The page takes about a minute on two cores.

# %%
import matplotlib.pyplot as plt
import pandas as pd

import gpn_bayes as gpn

cells = gpn.datasets.sachs_interventional(transform="log2")[:5846]  # seven experiments
proteins = list(cells.columns[:11])
known = gpn.datasets.sachs_consensus(17)
cells.groupby("condition", sort=False)["target"].agg(inhibited="first", cells="size")

# %% [markdown]
# The first two experiments stimulate the cells; each of the other five adds a drug that inhibits one protein.
#
# ## Four readings of one table
#
# We can use the first experiment alone; pool all cells, as if nothing had been done; believe the targets (in these
# cells the protein doesn't follow its parents); or let the data say what every experiment changed. In the last reading,
# `contexts=`, any experiment may have changed how any protein depends on its parents, and the posterior sums over all
# possibilities.

# %%
readings = {
    "one experiment": (cells.loc[cells["condition"] == "cd3cd28", proteins], {}),
    "pooled": (cells[proteins], {}),
    "targets believed": (cells[[*proteins, "target"]], {"targets": "target"}),
    "targets unknown": (cells[[*proteins, "condition"]], {"contexts": "condition"}),
}
posts = {
    name: gpn.sample(data, score="bge", random_seed=1, progressbar=False, **reading)
    for name, (data, reading) in readings.items()
}


def compared(post: gpn.GraphPosterior) -> dict[str, float]:
    pairs = post.cpdag_edges()
    return {
        "edges": post.edge_probabilities().to_numpy().sum(),
        "of them undirected": pairs["undirected"].sum() / 2,
        "as in the literature": post.expected_tp(known).value,
        "distance to it": post.expected_shd(known).value,
    }


pd.DataFrame({name: compared(post) for name, post in posts.items()}).T.round(1)

# %% [markdown]
# The distance is the expected structural Hamming distance to the network of 17 edges that Sachs et al. validated; a
# reversed edge counts once. With one experiment, more than half of the edges have no direction. Believing the targets,
# every edge has a direction and a probability near 1, and yet the distance more than doubles. Six thousand cells make
# the posterior certain, not right.
#
# ## What went wrong
#
# Take raf and mek. Raf activates mek; that is textbook knowledge. In the experiment `cd3cd28_u0126`, mek is inhibited.

# %%
fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained", sharex=True, sharey=True)
for ax, (name, shown) in zip(
    axes, {"nothing inhibited": "cd3cd28", "mek inhibited": "cd3cd28_u0126"}.items(), strict=True
):
    rows = cells[cells["condition"] == shown]
    ax.scatter(rows["raf"], rows["mek"], s=6, alpha=0.5, color="#0072B2", edgecolors="none")
    ax.set(title=name, xlabel="raf (log2)", ylabel="mek (log2)")

# %%
edges = pd.DataFrame(
    {
        name: {f"{a} -> {b}": post.edge_probability(a, b).value for a, b in (("raf", "mek"), ("mek", "raf"))}
        for name, post in posts.items()
    }
)
edges.round(2)

# %% [markdown]
# What was measured is phosphorylated mek. The drug keeps mek from acting on erk, but not raf from phosphorylating mek:
# in these cells there is more of both, and they go together more closely than before. A model in which the drug set
# mek, whatever raf did, can explain this only by mek -> raf. So the posterior is certain of it, and wrong.
#
# ## Let the data say what was changed

# %%
found = posts["targets unknown"].target_probabilities()
fig, ax = plt.subplots(figsize=(8, 3.4), layout="constrained")
picture = ax.imshow(found, cmap="Blues", vmin=0, vmax=1, aspect="auto")
ax.set_xticks(range(len(found.columns)), found.columns)
ax.set_yticks(range(len(found.index)), found.index)
meant = cells.groupby("condition")["target"].first()
for row, context in enumerate(found.index):
    if meant[context]:
        column = found.columns.get_loc(meant[context])
        ax.add_patch(plt.Rectangle((column - 0.5, row - 0.5), 1, 1, fill=False, edgecolor="#D55E00", linewidth=2))
bar = fig.colorbar(picture, label="probability that it was changed")

# %%
aimed = {context: found.loc[context, target] for context, target in meant.items() if target}
print("changed, as intended:", {context: round(float(value), 2) for context, value in aimed.items()})
print(f"changed besides, of {found.size - len(aimed)}: {found.to_numpy().sum() - sum(aimed.values()):.0f}")

# %% [markdown]
# Frames mark what each drug was meant to inhibit. Of the five intended changes, four are found. But the experiments
# differ in much more: most of the other proteins depend on their parents in another way too, since drugs act on more
# than their target, and batches of cells differ. The fifth, pip3 under the drug `cd3cd28_ly`, seems unchanged.
#
# Once the posterior may discard such changes, it keeps a smaller network, with directions that rest on how the
# experiments differ: the nearest of the four to the literature.

# %%
ax = posts["targets unknown"].plot_network(threshold=0.5)

# %% [markdown]
# ## Gaussian processes
#
# All of this works for curved relations too. With unknown targets, all groups of experiments share one low-rank form of
# the kernel, so that all seven experiments take minutes, not hours. Here we take three of them, and at most two
# parents, to save time:

# %%
three = cells[cells["condition"].isin(["cd3cd28", "cd3cd28_psitect", "cd3cd28_u0126"])]
settings = {"contexts": "condition", "space": gpn.Space(max_parents=2), "random_seed": 1, "progressbar": False}
both = {
    "BGe": gpn.sample(three[[*proteins, "condition"]], score="bge", **settings),
    "GP": gpn.sample(three[[*proteins, "condition"]], score=gpn.scores.GP(estimator="laplace"), **settings),
}
pd.DataFrame({name: compared(post) for name, post in both.items()}).T.round(1)

# %%
both["GP"].target_probabilities().round(2)

# %% [markdown]
# ## What to conclude
#
# **Name targets only where you know that an experiment changed them and nothing else**, as in a randomised trial. Where
# you are not sure, give `contexts=`, look at `target_probabilities()`, and believe directions that both readings find.
#
# The literature isn't the truth either: its 17 edges are those that were known, in other cells, when the network was
# drawn; it has no feedback; and some of its edges (pkc -> pka, pka -> raf) hardly show in the first experiment. Being
# near to it is good news, but no proof.

# %%
# Claims of the text, checked whenever this page is built.
distances = {name: post.expected_shd(known).value for name, post in posts.items()}
assert distances["targets believed"] > 2 * distances["one experiment"]
assert distances["targets unknown"] == min(distances.values())
assert compared(posts["one experiment"])["of them undirected"] > 0.5 * compared(posts["one experiment"])["edges"]
assert compared(posts["targets believed"])["of them undirected"] < 0.1
assert edges.loc["mek -> raf", "targets believed"] > 0.99 and edges.loc["raf -> mek", "targets unknown"] > 0.9
assert sorted(value > 0.9 for value in aimed.values()) == [False, True, True, True, True]
alone = posts["one experiment"]
assert max(alone.probability(pair).value for pair in ("pkc - pka", "pka - raf")) < 0.1
assert cells.loc[cells["condition"] == "cd3cd28_u0126", ["raf", "mek"]].corr().iloc[0, 1] > 0.95

# %% [markdown]
# # What happens to Y if I set X?
#
# An edge says that one variable acts on another. How much, and how sure can I be, if I know neither the network nor its
# equations? Simulated tables, whose truth we know, show what an answer means, and when it misleads. The page takes
# about a minute.

# %%
import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd

import gpn_bayes as gpn

BLUE, ORANGE = "#0072B2", "#D55E00"
quiet = {"prior": "fair", "random_seed": 1, "progressbar": False}


def noise(rows: int, columns: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(columns, rows))


# %% [markdown]
# ## A number, and a point mass
#
# In truth, one more of `dose` makes 0.8 more of `response`. Two columns alone can't tell cause from effect: linear
# relations fit equally well both ways. So the posterior has two parts. In half of the networks `dose` acts on
# `response`, by about 0.8; in the other half the arrow points the other way, and setting `dose` changes nothing: the
# effect is exactly zero.

# %%
e = noise(1000, 3, seed=1)
dose = e[0]
two = pd.DataFrame({"dose": dose, "response": 0.8 * dose + 0.6 * e[1]})
open_direction = gpn.sample(two, score="bge", **quiet).effect("dose", "response")
print(open_direction)
print("mean, given a path:", round(open_direction.given_path.mean, 2))
ax = open_direction.plot()

# %% [markdown]
# The mean of all this, about 0.4, is the effect in no network at all; it is the best bet under squared loss, and little
# else. Quote the two parts: *with probability one half there is an effect, and then it is about 0.8*. The interval
# covers both parts; `given_path` has the second one by itself.
#
# A third column can settle the direction. `genotype` acts on `response` and has nothing to do with `dose`. Only with
# arrows from both to `response` are the two independent, as the data say:

# %%
genotype = e[2]
three = two.assign(response=two["response"] + 0.7 * genotype, genotype=genotype)
settled = gpn.sample(three, score="bge", **quiet).effect("dose", "response")
print(settled)

# %% [markdown]
# ## A cause that nobody measured
#
# Now `severity` makes doctors prescribe more and patients recover less, and the treatment does nothing. We know
# which comes first, and say so by `tiers=`.

# %%
e = noise(300, 3, seed=2)
severity = e[0]
trial = pd.DataFrame(
    {"severity": severity, "treatment": 0.9 * severity + 0.6 * e[1], "recovery": -0.9 * severity + 0.6 * e[2]}
)
before = [["severity"], ["treatment"], ["recovery"]]
measured = gpn.sample(trial, score="bge", tiers=before, **quiet)
hidden = gpn.sample(trial[["treatment", "recovery"]], score="bge", tiers=before[1:], **quiet)
print("severity measured:", measured.effect("treatment", "recovery"))
print("severity unknown: ", hidden.effect("treatment", "recovery"))

# %% [markdown]
# Without `severity` the treatment seems to do harm, and the posterior is sure of it: all its networks assume that no
# common cause was left out. No number on this page can warn you; only knowledge of the subject can. Where a regression
# of your own is planned, ask what to adjust for:

# %%
measured.adjustment_sets("treatment", "recovery")

# %% [markdown]
# ## Feedback
#
# Networks here have no cycles. If two variables act on each other until they balance, the data show the balance only:

# %%
e = noise(300, 2, seed=3)
# x = 0.5 y + e_1 and y = 0.5 x + e_2, solved for both.
x, y = np.linalg.solve([[1.0, -0.5], [-0.5, 1.0]], e)
feedback = gpn.sample(pd.DataFrame({"x": x, "y": y}), score="bge", tiers=[["x"], ["y"]], **quiet).effect("x", "y")
print(feedback)

# %% [markdown]
# Holding `x` fixed from outside would raise `y` by 0.5 for each unit, since `y` can no longer push back. The posterior
# says 0.8: it takes for one arrow what two arrows made.
#
# ## Curves
#
# A linear score gives one slope for every relation. For this one, the slope is near zero, and the truth isn't:

# %%
e = noise(300, 2, seed=4)
temperature = np.random.default_rng(5).uniform(10, 40, 300)
growth = pd.DataFrame({"temperature": temperature, "growth": 9 - ((temperature - 25) / 6) ** 2 + e[0]})
tiers = [["temperature"], ["growth"]]
line = gpn.sample(growth, score="bge", tiers=tiers, **quiet).effect("temperature", "growth")
curved = gpn.sample(growth, score="gp", tiers=tiers, draws=200, **quiet)
curve = curved.effect("temperature", "growth", progressbar=False)
warmer = curved.effect("temperature", "growth", to=25, versus=15, progressbar=False)
print(line)
print(warmer)
ax = curve.plot()
ax.scatter(growth["temperature"], growth["growth"], s=5, color="grey", alpha=0.5)
truth = 9 - ((curve.mean["cause"] - 25) / 6) ** 2
_ = ax.plot(curve.mean["cause"], truth, color=ORANGE, linestyle="--")

# %% [markdown]
# The dashed line is the truth. The dark band is about the curve, the light one about single outcomes. A contrast of two
# values, `to=25, versus=15`, is the honest summary of such an effect; `curve.slope`, the average slope, is as near to
# zero as the linear one.
#
# ## A whole network
#
# Ten variables, linear relations, and all 90 effects against the truth:

# %%
dag = gpn.simulate.random_dag(10, edges_per_node=1.5, random_seed=6)
rows = gpn.simulate.linear(dag, 300, random_seed=7)
names = list(rows.columns)
totals = pd.DataFrame(np.linalg.inv(np.eye(10) - np.array(rows.attrs["weights"])).round(12), names, names)
effects = gpn.sample(rows, score="bge", **quiet).effects()
effects["truth"] = [totals.loc[cause, outcome] for cause, outcome in zip(effects.cause, effects.outcome, strict=True)]
held = effects["truth"].between(effects["lower"], effects["upper"])
fig, ax = plt.subplots(figsize=(5.4, 5), layout="constrained")
for inside, colour, label in ((True, BLUE, "truth inside the 90% interval"), (False, ORANGE, "outside")):
    own = effects[held == inside]
    ax.vlines(own["truth"], own["lower"], own["upper"], color=colour, linewidth=0.8)
    ax.scatter(own["truth"], own["mean"], s=9, color=colour, label=label)
ax.axline((0, 0), slope=1, color="grey", linewidth=0.8)
ax.set(xlabel="true effect", ylabel="posterior mean, 90% interval")
_ = ax.legend(frameon=False)

# %%
effects[["cause", "outcome", "truth", "mean", "lower", "upper", "path_probability"]].head(8).round(2)

# %% [markdown]
# Long bars that end at zero are effects whose direction is open. The guide on effects says how often intervals hold the
# truth, over hundreds of networks.
#
# With curves, too, the truth can be simulated. Here are five variables with waves for relations, and the effect of `v1`
# on `v3`, which it reaches in two ways:

# %%
chain = nx.DiGraph([("v1", "v2"), ("v2", "v3"), ("v1", "v4"), ("v4", "v3"), ("v3", "v5")])
waves = gpn.simulate.fourier(chain, 300, lam=0.6, random_seed=9)
wavy = gpn.sample(waves, score="gp", draws=200, **quiet)
found = wavy.effect("v1", "v3", points=9, progressbar=False)
grid = found.mean["cause"].to_numpy()
true_means = [
    gpn.simulate.fourier(
        chain, {"": 300, "v1": 20_000}, lam=0.6, random_seed=9, interventions={"v1": float(value)}
    ).loc[300:, "v3"].mean()
    for value in grid
]  # fmt: skip
ax = found.plot()
_ = ax.plot(grid, true_means, color=ORANGE, linestyle="--")

# %% [markdown]
# ## What to conclude
#
# Report the probability of an effect and its size where there is one. Ask for contrasts of values that matter, rather
# than slopes, unless you know that relations are straight. And before any of it: is there a common cause that nobody
# measured, or a loop? Then none of these numbers is an effect. [The next page](11_effects_in_a_cell.html) looks at
# proteins in a cell, where both are likely.

# %%
# Claims of the text, checked whenever this page is built.
assert abs(open_direction.probability - 0.5) < 0.05 and abs(open_direction.given_path.mean - 0.8) < 0.1
assert settled.probability > 0.85 and settled.interval(0.9)[0] < 0.8 < settled.interval(0.9)[1]
harm, none = (post.effect("treatment", "recovery") for post in (hidden, measured))
assert none.interval(0.9)[1] >= 0 > harm.interval(0.9)[1] and harm.probability > 0.99
assert abs(feedback.mean - 0.8) < 0.1
assert abs(line.mean) < 0.03 and abs(curve.slope.mean) < 0.06
assert abs(warmer.mean - 100 / 36) < 4 * warmer.sd
assert held.mean() > 0.85
lower, upper = found.interval(0.9)
assert ((lower < true_means) & (true_means < upper)).mean() >= 0.6

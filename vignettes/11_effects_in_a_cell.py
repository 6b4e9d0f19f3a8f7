# %% [markdown]
# # Effects in a cell: what would happen if a protein were set?
#
# How much does akt change if erk does, in the cells of Sachs et al. (2005), and what does the answer rest on? We ask one
# posterior with straight lines and one with curves, and hold what they say against cells that were in fact treated.
# The page takes about a minute.

# %%
import matplotlib.pyplot as plt
import pandas as pd

import gpn_bayes as gpn

quiet = {"random_seed": 1, "progressbar": False}
cells = gpn.datasets.sachs(transform="log2")
linear = gpn.sample(cells, score="bge", **quiet)
ax = linear.plot_effects()

# %% [markdown]
# Each cell of the picture is the mean effect of a protein (row) on another (column), in standard deviations of both,
# over all networks and their coefficients. Many come in pairs: raf on mek, and mek on raf. These aren't loops; the data
# leave the direction open, and each direction has about half of the probability:

# %%
linear.effects().head(8)[["cause", "outcome", "mean", "lower", "upper", "path_probability"]].round(2)

# %% [markdown]
# ## Knowledge that decides
#
# Biology says that raf activates mek, mek erk, and erk akt, and not the other way round. Given as forbidden edges, this
# removes the point mass at zero, and what is left is the size of the effect:

# %%
known = [("mek", "raf"), ("erk", "mek"), ("akt", "erk")]
informed = gpn.sample(cells, score="bge", forbidden=known, **quiet)
pd.DataFrame(
    {
        name: {"mean": e.mean, "sd": e.sd, "lower": e.interval(0.9)[0], "upper": e.interval(0.9)[1], "any": e.probability}
        for name, e in (
            ("directions open", linear.effect("erk", "akt")),
            ("directions known", informed.effect("erk", "akt")),
        )
    }
).T.round(2)

# %% [markdown]
# ## Curves
#
# Are relations straight? With Gaussian processes the effect is a curve, here on pka of setting pkc... and on akt of
# setting erk. (At most two parents and 200 drawn networks, to save time.)

# %%
curved = gpn.sample(
    cells, score=gpn.scores.GP(estimator="laplace"), forbidden=known, max_parents=2, draws=500, **quiet
)
curves = {cause: curved.effect(cause, "akt", points=13, draws=200, progressbar=False) for cause in ("erk", "pka")}
fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for ax, curve in zip(axes, curves.values(), strict=True):
    curve.plot(ax=ax)
for curve in curves.values():
    print(curve)

# %%
print(curved.effect("erk", "akt", to=6.0, versus=4.0, draws=200, progressbar=False))
print(informed.effect("erk", "akt", to=6.0, versus=4.0))

# %% [markdown]
# # Effects in a cell: what would happen if a protein were set?
#
# How much does akt change if erk does, in the cells of Sachs et al. (2005), and what does the answer rest on? We ask
# one posterior with straight lines and one with curves, and hold what they say against cells that were in fact treated.
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
        name: {
            "mean": e.mean,
            "sd": e.sd,
            "lower": e.interval(0.9)[0],
            "upper": e.interval(0.9)[1],
            "any": e.probability,
        }
        for name, e in (
            ("directions open", linear.effect("erk", "akt")),
            ("directions known", informed.effect("erk", "akt")),
        )
    }
).T.round(2)

# %% [markdown]
# ## Curves
#
# Are relations straight? With Gaussian processes an effect is a curve. Here are those of setting erk, and of setting
# pka, on akt, with at most two parents a protein and 200 drawn networks, to save time:

# %%
curved = gpn.sample(
    cells, score=gpn.scores.GP(estimator="laplace"), forbidden=known, space=gpn.Space(max_parents=2), draws=500, **quiet
)
curves = {cause: curved.effect(cause, "akt", points=13, draws=200, progressbar=False) for cause in ("erk", "pka")}
fig, axes = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
for ax, curve in zip(axes, curves.values(), strict=True):
    curve.plot(ax=ax)
    print(curve)

# %% [markdown]
# Akt rises with erk throughout, but not evenly: from 4 to 6 by more than the straight line says. Pka seems to matter
# above 9 only, where most cells are; below, the wide band says that the data say little.

# %%
bent = curved.effect("erk", "akt", to=6.0, versus=4.0, draws=200, progressbar=False)
straight = informed.effect("erk", "akt", to=6.0, versus=4.0)
print("curved:", bent)
print("linear:", straight)

# %% [markdown]
# ## Against an experiment
#
# In other cells of the same study, the drug U0126 inhibited mek, and erk fell. If all that happened to akt happened by
# way of erk, we could predict it: set erk to what it then was.

# %%
treated = gpn.datasets.sachs_interventional(transform="log2").query("condition == 'cd3cd28_u0126'")
before, after = cells["erk"].mean(), treated["erk"].mean()
predicted = curved.effect("erk", "akt", to=after, versus=before, draws=200, progressbar=False)
seen = treated["akt"].mean() - cells["akt"].mean()
print(f"erk: from {before:.2f} to {after:.2f}")
print("akt, predicted:", predicted)
print(f"akt, seen: {seen:+.2f}")

# %% [markdown]
# The prediction is clear, and wrong: akt didn't fall, it rose. Nothing in 853 untreated cells could have shown this.
# Inhibiting mek also removes a brake, by which erk holds back the receptors upstream of akt; such feedback takes time
# and runs in a circle, which no network here can express. Drugs do more than one thing as well, as
# [the page on experiments](9_experiments.html) shows. The numbers of this page are effects *if* there is no feedback
# and no common cause that wasn't measured, and in a cell there are both.
#
# ## What to conclude
#
# From one posterior you get sizes with their uncertainty, for straight lines and for curves, and it is explicit what
# they rest on: directions that the data leave open show as a point mass at zero, and regions without data as a wide
# band. What isn't in the table shows nowhere. So use effects to plan an experiment, not to replace it.

# %%
# Claims of the text, checked whenever this page is built.
shared = [linear.effect(*pair).probability for pair in (("raf", "mek"), ("mek", "raf"))]
assert all(0.3 < share < 0.7 for share in shared)
assert informed.effect("erk", "akt").probability > 0.99
assert (curves["erk"].mean.diff("cause") > 0).all()
assert bent.interval(0.9)[0] > straight.mean
lower, upper = curves["pka"].interval(0.9)
width = (upper - lower).to_series()
assert width[width.index < 7].min() > 2 * width[(width.index > 8) & (width.index < 10)].max()
assert ((cells["pka"] > 8).mean() > 0.5) and predicted.interval(0.9)[1] < 0 < seen

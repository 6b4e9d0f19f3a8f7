# %% [markdown]
# # From an edge probability to pm.do
#
# You have a posterior over networks, and want to go on in PyMC: look at the parameters, set a variable, predict. How do
# you get from one to the other, and do the two agree? On simulated tables, whose truth we know, they do. The page takes
# about a minute, and some minutes more the first time, when PyMC's models are compiled.

# %%
import numpy as np
import pandas as pd
import pymc as pm

import gpn_bayes as gpn

BLUE, ORANGE = "#0072B2", "#D55E00"
quiet = {"random_seed": 1, "progressbar": False}
nuts = {"nuts_sampler": "nutpie", "draws": 500, "tune": 500, "chains": 4, **quiet}
rng = np.random.default_rng(1)
dose, age = rng.uniform(0, 10, 150), rng.normal(50, 10, 150)
level = 2 + 0.6 * dose + rng.normal(size=150)
response = 20 + 1.5 * level - 0.2 * age + rng.normal(size=150)
table = pd.DataFrame({"age": age, "dose": dose, "level": level, "response": response})

# %% [markdown]
# ## The network
#
# In truth, one more of `dose` makes 0.6 more of `level`, and this makes 0.9 more of `response`. Nothing acts on `age`
# and on `dose`, which we know; everything else is for the data to say:

# %%
post = gpn.sample(table, score="bge", tiers=[["age", "dose"], ["level", "response"]], **quiet)
best = post.map()
print(sorted(best.edges))
post.edge_probabilities().round(2)

# %% [markdown]
# The most probable network is the true one. `gpn.pymc_network` writes it down as one PyMC model, with the priors over
# which the score integrates, so that it is the same statement about the data. Every column is an observed variable in
# the units of the table; the parameters of its equation have its name in front of theirs:

# %%
model = gpn.pymc_network(table, best, score="bge")
trace = pm.sample(model=model, **nuts)
slopes = trace["posterior"]["response::slope"]
slopes.mean(("chain", "draw")).to_series().round(2)

# %% [markdown]
# ## What if
#
# `pm.do` cuts a variable off from its causes and sets it. From what it returns, `pm.sample_posterior_predictive` draws
# everything that follows. Here is `response` with `dose` at 8 instead of 2, for each draw of the parameters:


# %%
def outcome(of, model, trace, cause, value):
    """Return the mean of one variable over all rows, for each draw, where another is set."""
    with pm.do(model, {cause: np.full(model.dim_lengths["row"].eval(), value)}):
        found = pm.sample_posterior_predictive(trace, var_names=[of], predictions=True, **quiet)
    return found["predictions"][of].mean("row")


change = outcome("response", model, trace, "dose", 8.0) - outcome("response", model, trace, "dose", 2.0)
averaged = post.effect("dose", "response", to=8, versus=2)
pd.DataFrame(
    {
        "truth": {"mean": 6 * 0.6 * 1.5},
        "pm.do in the best network": {"mean": float(change.mean()), "sd": float(change.std())},
        "post.effect, over all networks": {"mean": averaged.mean, "sd": averaged.sd},
    }
).T.round(2)

# %% [markdown]
# The second line is about one network, the third about all of them. They agree because the other networks of this
# posterior say nearly the same of `dose`. `gpn.pymc_networks` gives the models of the most probable ones, each with its
# probability, by which to weigh their answers; what the weights lack to one is left out:

# %%
likeliest = gpn.pymc_networks(post, k=3)
pd.DataFrame(
    {"probability": [one.weight for one in likeliest], "edges": [sorted(one.graph.edges) for one in likeliest]}
).round(2)

# %% [markdown]
# ## A curve
#
# Growth is best at 25 degrees. With the Gaussian-process score, the functions of a node's parents are variables of the
# model, so that `pm.do` sends a value through them:

# %%
degrees = np.random.default_rng(2).uniform(10, 40, 150)
plants = pd.DataFrame({"temperature": degrees, "growth": 9 - ((degrees - 25) / 6) ** 2 + 0.5 * rng.normal(size=150)})
curved = gpn.sample(plants, score="gp", required=[("temperature", "growth")], draws=200, **quiet)
process = gpn.pymc_network(plants, curved.map(), score="gp")
draws = pm.sample(model=process, **nuts)
print(int(draws["sample_stats"]["diverging"].sum()), "divergences")

# %%
at = [12.0, 18.0, 25.0, 36.0]
done = [outcome("growth", process, draws, "temperature", value) for value in at]
curve = curved.effect("temperature", "growth", progressbar=False)
ax = curve.plot()
truth = [9 - ((value - 25) / 6) ** 2 for value in at]
ax.scatter(at, truth, marker="x", color=ORANGE, zorder=3, label="truth")
means, errors = (np.array([float(getattr(one, part)()) for one in done]) for part in ("mean", "std"))
_ = ax.errorbar(at, means, 2 * errors, fmt="o", color=BLUE, capsize=3, label="pm.do")
_ = ax.legend(frameon=False)

# %% [markdown]
# The crosses are the truth, the dots what `pm.do` says, with two standard deviations, and the band is the posterior's
# own curve. Below 10 and above 40 degrees there are no rows, and neither is to be trusted.
#
# ## What to conclude
#
# Ask the posterior as long as the question is one it knows: its answers are averages over networks, and take no time.
# Go on in PyMC when you want to change the model: other noise, a hierarchy, another likelihood. Then you have chosen a
# network; how probable it is stands in the table above.

# %%
# Claims of the text, checked whenever this page is built.
assert sorted(best.edges) == [("age", "response"), ("dose", "level"), ("level", "response")]
assert int(trace["sample_stats"]["diverging"].sum()) + int(draws["sample_stats"]["diverging"].sum()) == 0
assert abs(float(change.mean()) - 5.4) < 4 * float(change.std())
assert abs(float(change.mean()) - averaged.mean) < 0.1 and 0.8 < float(change.std()) / averaged.sd < 1.25
assert 0 < likeliest[-1].weight < likeliest[0].weight < 1
assert (abs(means - truth) < 4 * errors).all()

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
def response_at(value):
    """Return the mean of all rows, for each draw, where dose is set."""
    with pm.do(model, {"dose": np.full(150, value)}):
        found = pm.sample_posterior_predictive(trace, var_names=["response"], predictions=True, **quiet)
    return found["predictions"]["response"].mean("row")


change = response_at(8.0) - response_at(2.0)
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
at = [12.0, 25.0, 36.0]
with pm.do(process, {"temperature": np.repeat(at, 50)}):  # a value for each row
    rows = pm.sample_posterior_predictive(draws, var_names=["growth"], predictions=True, **quiet)
growth = rows["predictions"]["growth"].to_numpy().reshape(-1, 3, 50).mean(axis=-1)
means, errors = growth.mean(axis=0), growth.std(axis=0)
curve = curved.effect("temperature", "growth", points=13, draws=100, progressbar=False)
ax = curve.plot()
truth = [9 - ((value - 25) / 6) ** 2 for value in at]
ax.scatter(at, truth, marker="x", color=ORANGE, zorder=3, label="truth")
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

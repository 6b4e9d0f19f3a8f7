# %% [markdown]
# # Reading the diagnostics
#
# The diagnostics answer two questions. Has sampling converged, so that another run would give the same numbers? And
# what do the answers assume, and does anything look wrong in the data? We begin with the first: we deliberately make a
# run that is too short, diagnose it, and fix it. The network is small enough for the exact sum, so we can also see how
# wrong the short run was. The page takes half a minute on two cores.

# %%
import matplotlib.pyplot as plt
import pandas as pd

import gpn_bayes as gpn

truth = gpn.simulate.random_dag(14, edges_per_node=1.5, random_seed=1)
data = gpn.simulate.linear(truth, n_rows=500, random_seed=1)

# %% [markdown]
# ## An impatient run
#
# For up to 16 variables `sample` needs no Markov chain. We ask for one anyway (`sampler="partition"`), as larger
# networks need one, and make it far too short: no tuning, three steps between draws.

# %%
impatient = gpn.sample(
    data, sampler=gpn.samplers.Partition(thin=3), draws=500, tune=0, random_seed=1, progressbar=False
)
print(impatient.diagnostics())

# %% [markdown]
# Sampling has not converged, and the lines below say what to do. The four chains started at different places; had they
# run long enough, they would agree. Instead they differ by more than 0.5 in the probability of one edge.
# ## Three plots
#
# **The trace** is the log score of every draw. A slope, a jump, or a chain at a level of its own is a bad sign. Here
# there is none: it looks like the "fuzzy caterpillar" of the textbooks.

# %%
ax = impatient.plot_trace()

# %% [markdown]
# **The ranks** are more sensitive. Each line shows how many of a chain's draws are among the lowest of all, minus the
# number expected by chance. Chains that agree stay near zero. One chain stands out, and ArviZ marks where chance can't
# explain it.

# %%
ax = impatient.plot_rank()

# %% [markdown]
# **The running probabilities** are what you want to know anyway: the edges on which chains differ most, one line per
# chain. Lines of one colour should meet, and stay together. These haven't met yet.

# %%
ax = impatient.plot_running()

# %% [markdown]
# Why did the trace look fine? Many networks have the same score, or nearly so: reverse an edge whose direction the data
# don't determine, and the score stays the same. A chain may stay among some of them, with perfectly ordinary scores,
# and never visit the others. **For networks, judge a run by its edges, not by its log score.** The `largest gap` in the
# diagnostics does.
# ## What to do
#
# More draws of the same kind would help slowly. Let the chains forget where they started (`tune`), and take many steps
# between draws (`thin`; by default ten per variable). With `until="converged"` the run checks its chains as it goes,
# and continues, with more thinning, until they agree on every edge to within 0.05, or as closely as chance allows.

# %%
patient = gpn.sample(data, sampler="partition", until="converged", random_seed=1, progressbar=False)
print(patient.diagnostics())
ax = patient.plot_running()

# %%
ax = patient.plot_rank()

# %% [markdown]
# If even that isn't enough: `sampler=gpn.samplers.Partition(temperatures=6)` couples every chain to copies at higher
# temperatures (parallel tempering), which cross valleys that it can't.
#
# ## A second opinion
#
# A run that only looks converged would give other answers with another seed. Check this before you publish a number.

# %%
again = gpn.sample(data, sampler="partition", until="converged", random_seed=2, progressbar=False)
ax = patient.plot_runs(again)

# %% [markdown]
# ## How wrong was it?
#
# Here we can compute it: the exact sampler sums over all networks of 14 variables.

# %%
exact = gpn.sample(data, sampler="exact", random_seed=1, progressbar=False)
right = exact.edge_probabilities().to_numpy()
fig, panels = plt.subplots(1, 2, figsize=(7.5, 3.7), sharey=True, layout="constrained")
for panel, post, title in zip(panels, [impatient, patient], ["impatient", "patient"], strict=True):
    panel.axline((0, 0), slope=1, color="grey", linewidth=0.8)
    panel.scatter(right, post.edge_probabilities(), s=14, color="#0072B2")
    panel.set(title=f"{title} run", xlabel="exact edge probability", ylabel="by the run", aspect="equal")

# %%
runs = {"impatient": impatient, "patient": patient}
worst = pd.DataFrame(
    {
        "largest error": {name: abs(post.edge_probabilities() - right).max(axis=None) for name, post in runs.items()},
        "largest gap between chains": {name: post.diagnostics().largest_gap for name, post in runs.items()},
        "R-hat of the log score": {name: post.diagnostics().r_hat for name, post in runs.items()},
    }
)
worst.round(3)

# %% [markdown]
# The impatient run was wrong by more than 0.5 about some edge. The largest gap between chains showed it, without
# knowing the answer.
#
# ## What to report
#
# The number of chains and draws, R-hat and effective draws of the log score, and the largest gap between chains. Give
# probabilities with no more digits than their standard error (`mcse`) allows. No diagnostic can show whether all chains
# missed the same part of the space, or whether the model is right.
# ## What convergence doesn't show
#
# A run on a table that makes no sense can converge, too. Here someone entered -999 where a value was missing, the
# numbers of the tubes are among the variables, and four regions are coded 0 to 3. (Row numbers that count from 0 or 1
# are refused when a table is read.)

# %%
careless = data.iloc[:, :6].copy()
careless.iloc[::40, 2] = -999
careless["tube"] = range(1001, 1501)
careless["region"] = [0, 3, 1, 0, 2] * 100
diagnostics = gpn.sample(careless, random_seed=1, progressbar=False).diagnostics()
print(diagnostics)

# %% [markdown]
# `diagnostics.ok` judges only the sampling, and is true. Below it are the assumptions, which no number of draws can
# check: among others that there is no hidden common cause and, with a linear score, that directions within a Markov
# equivalence class are not identifiable. The flags at the end come from checks of the data, and of the residuals of the
# best network drawn. On clean data few are raised, so take them seriously. The absence of flags doesn't mean that the
# assumptions hold.

# %%
{flag.kind: flag.columns for flag in diagnostics.data_flags}

# %%
# Claims of the text, checked whenever this page is built.
assert not impatient.diagnostics().ok
assert patient.diagnostics().ok
assert patient.diagnostics().data_flags == ()
assert diagnostics.ok
assert [flag.kind for flag in diagnostics.data_flags] == ["sentinel", "identifier", "codes"]
assert worst.loc["impatient", "largest error"] > 0.5
assert worst.loc["patient", "largest error"] < 0.05

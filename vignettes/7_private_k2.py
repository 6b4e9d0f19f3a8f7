# %% [markdown]
# # Two registries, one network
#
# Can two registries learn how their variables are related without showing each other a single entry? One knows who
# travelled, smoked, has tuberculosis or lung cancer; the other knows X-rays and symptoms. The rows are the same people.
# Wright & Yang (2004) showed how to run K2 on such tables, and this page does it, between two processes with real keys.
# It takes about ten seconds on two cores, and needs `pip install "gpn_bayes[private]"`.

# %%
import json
import os
import socket
import subprocess
from pathlib import Path

import matplotlib.pyplot as plt
import networkx as nx
import numpy as np
import pandas as pd

import gpn_bayes as gpn

rng = np.random.default_rng(1)
rows = 1000


def coin(probability) -> np.ndarray:
    return (rng.random(rows) < probability).astype(int)


asia, smoke = coin(0.1 * np.ones(rows)), coin(0.5 * np.ones(rows))
tub, lung = coin(np.where(asia, 0.3, 0.03)), coin(np.where(smoke, 0.2, 0.03))
xray, dysp = coin(np.where(tub | lung, 0.95, 0.06)), coin(np.where(lung, 0.8, 0.25))
people = pd.DataFrame({"asia": asia, "smoke": smoke, "tub": tub, "lung": lung, "xray": xray, "dysp": dysp})
people.insert(0, "id", [f"p{number}" for number in range(rows)])
people[["id", "asia", "smoke", "tub", "lung"]].to_csv("clinic.csv", index=False)
people[["id", "xray", "dysp"]].sample(frac=1, random_state=1).to_csv("radiology.csv", index=False)
people.drop(columns="id").agg(["mean", "sum"]).round(3)

# %% [markdown]
# ## Two terminals
#
# Both know the variables' names, their order (causes first), and the maximum number of parents. Each starts one
# command:
#
# ```
# gpn-bayes private-k2 listen  --data clinic.csv    --key id --order asia,smoke,tub,lung,xray,dysp --cert … --out clinic
# gpn-bayes private-k2 connect --data radiology.csv --key id --order … --address host:50052 --cert … --out radiology
# ```

# %%
ORDER = ",".join(people.columns[1:])
with socket.create_server(("127.0.0.1", 0)) as free:
    ADDRESS = f"127.0.0.1:{free.getsockname()[1]}"


def gpn_bayes(*arguments: str) -> subprocess.Popen:
    """Start a command, as you would in its own terminal."""
    return subprocess.Popen(
        ["gpn-bayes", "private-k2", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"NO_COLOR": "1"},
    )


gpn_bayes("certs", "--out", "certs").communicate()
common = ("--key", "id", "--order", ORDER, "--max-parents", "2", "--key-bits", "2048", "--quiet")
clinic = gpn_bayes(
    "listen", "--data", "clinic.csv", "--address", ADDRESS,
    "--cert", "certs/listen/certificate.pem", "--out", "clinic", *common,
)  # fmt: skip
radiology = gpn_bayes(
    "connect", "--data", "radiology.csv", "--address", ADDRESS,
    "--cert", "certs/connect/certificate.pem", "--out", "radiology", *common,
)  # fmt: skip
outputs = [process.communicate(timeout=240)[0] for process in (clinic, radiology)]
print(outputs[0])

# %% [markdown]
# Both have the same network, though neither has seen a value, a count or a score of the other. At every step they
# compared the scores of all candidate parents inside an encrypted circuit, and opened one number: which is best, or
# that none improves the score. The keys of the rows were compared by a digest; the order of the rows doesn't matter.

# %%
edges = {who: pd.read_csv(Path(who) / "edges.csv") for who in ("clinic", "radiology")}
network = nx.DiGraph(list(edges["clinic"][["parent", "child"]].itertuples(index=False, name=None)))
fig, panel = plt.subplots(figsize=(5, 3), layout="constrained")
places = {"asia": (0, 2), "smoke": (2, 2), "tub": (0, 1), "lung": (2, 1), "xray": (0.7, 0), "dysp": (2.3, 0)}
nx.draw_networkx(network, places, ax=panel, node_color="#cfe3f3", node_size=1400, font_size=9, arrowsize=16)
panel.set_axis_off()

# %% [markdown]
# ## The same as K2 on the joined table

# %%
plain = gpn.estimators.K2(score="k2", order=list(people.columns[1:]), max_parents=2).fit(
    people.drop(columns="id").astype("category")
)
same = set(network.edges) == set(plain.graph_.edges)
print("the network of plain K2 on the joined table:", "the same" if same else "different")

# %%
kept = json.loads((Path("clinic") / "private_k2.json").read_text(encoding="utf-8"))
costs = pd.DataFrame(kept["costs"]).T
costs.round(3)

# %% [markdown]
# Most of the time goes into encrypting the bits of the party with fewer columns; most of the bytes into look-ups of
# ln x!, each hidden in a table of 1,024 entries.

# %% [markdown]
# ## What it reveals
#
# The network, the order in which its edges were found, and the number of rows. With few rows, or one column against
# many, that can reveal a good deal about individuals: the parties should agree beforehand that both may know the
# result. And both must follow the protocol: a party that deviates from it could learn more. `SECURITY.md` in the
# repository lists every message and every assumption.

# %%
# Claims of the text, checked whenever this page is built.
assert edges["clinic"].equals(edges["radiology"])
assert same
assert clinic.returncode == radiology.returncode == 0
assert network.has_edge("smoke", "lung") and network.has_edge("lung", "dysp")

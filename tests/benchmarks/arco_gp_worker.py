"""Edge probabilities by ARCO-GP (Toth et al., 2025), as a JSON-in, JSON-out worker process; and data by its simulator.

Run it with the interpreter that its environment file describes, and with the folder of its sources in ARCO_GP_SOURCE.
The request on stdin: ``data`` (path of a comma-separated table with a header row) and ``max_parents``; all else is as
ARCO-GP has it by default. Or ``simulate`` (the number of variables), ``rows`` and ``seed``: rows from its own random
non-linear networks. The reply: edge probabilities and the CPU seconds of learning; or the rows and the true DAG.
"""

import os
import random
import sys
import time

import networkx as nx
import numpy as np
import pandas as pd
import torch
from answering import serve

sys.path.insert(0, os.environ["ARCO_GP_SOURCE"])

from src.abci_arco_gp import ABCIArCOGP  # noqa: E402
from src.config import ABCIArCOGPConfig, EnvironmentConfig  # noqa: E402
from src.environments.environment import Environment  # noqa: E402
from src.environments.generic_environments import ErdosRenyi  # noqa: E402


def seeded(seed):
    """Seed all three generators that ARCO-GP draws from."""
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    torch.manual_seed(seed)


def simulated(request):
    """Return rows of a random network, and its DAG."""
    seeded(request["seed"])
    config = EnvironmentConfig()
    config.generate_static_obs_dataset = False
    config.normalise_data = False
    network = ErdosRenyi(request["simulate"], config)
    names = [f"X{i}" for i in range(request["simulate"])]
    with torch.no_grad():
        drawn = network.sample({}, request["rows"], 1).data
    columns = [drawn[name].reshape(-1).tolist() for name in names]
    truth = nx.to_numpy_array(network.graph, nodelist=names)
    return {"rows": np.array(columns).T.tolist(), "truth": truth.astype(int).tolist()}


def answer(request):
    """Do what the request asks and return the reply."""
    torch.set_num_threads(1)
    if "simulate" in request:
        return simulated(request)
    table = pd.read_csv(request["data"])
    # It sorts variables by name: names of one length keep their order.
    names = [f"X{i:03d}" for i in range(table.shape[1])]
    table.columns = names
    # It reports its distance from a true graph; we don't give it one, so an empty graph stands in.
    graph = nx.DiGraph()
    graph.add_nodes_from(names)
    seeded(1)
    began = time.process_time()
    config = ABCIArCOGPConfig()
    config.max_ps_size = request["max_parents"]
    model = ABCIArCOGP(Environment.load_static_dataset(graph, table), config)
    model.experiments.extend(model.env.observational_train_data)
    model.update_co_model()
    orders, _ = model.sample_mc_cos(set_data=True)
    edges = model.compute_posterior_edge_probs(orders).cpu().numpy()
    return {"edges": edges.tolist(), "cpu_seconds": time.process_time() - began}


if __name__ == "__main__":
    serve(answer)

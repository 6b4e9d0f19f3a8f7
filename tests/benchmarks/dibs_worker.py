"""Edge probabilities by DiBS (Lorch et al., 2021), as a JSON-in, JSON-out worker process.

Run it with the interpreter that has dibs-lib 1.3.3. The request on stdin: ``data`` (path of a comma-separated table
with a header row), ``model`` ("bge": DAGs alone, with DiBS's BGe score; "nonlinear": DAGs and a neural network for
every variable), ``particles``, ``steps``, ``seeds``, and for "nonlinear" ``edges_per_node`` (of the Erdős-Rényi prior)
and ``obs_noise`` (the variance of the noise, which DiBS takes as known). BGe comes with the uniform prior. All else is
as DiBS has it by default. Or ``simulate`` (the number of variables), ``rows`` and ``seed``: rows from DiBS's own random
networks, and the true DAG.

The reply is one JSON object on stdout: for each seed the edge probabilities in the two ways in which DiBS weighs its
particles, by counting ("empirical") and by their posterior ("mixture", DiBS+ in the paper), the number of particles
without a cycle, which alone count (null stands for a run that has none), and the CPU seconds; those of the
first seed include compiling.
"""

import time
from importlib.metadata import version

import jax.numpy as jnp
import numpy as np
from answering import serve
from dibs.graph_utils import elwise_acyclic_constr_nograd
from dibs.inference import JointDiBS, MarginalDiBS
from dibs.models import BGe, DenseNonlinearGaussian
from dibs.models.graph import ErdosReniDAGDistribution, UniformDAGDistributionRejection
from dibs.target import make_nonlinear_gaussian_model
from jax import random

# As in DiBS's own simulator of such networks.
HIDDEN_LAYERS = (5,)


def build(request, values):
    """Return the inference that is asked for."""
    n = values.shape[1]
    if request["model"] == "bge":
        prior, model, inference = UniformDAGDistributionRejection(n), BGe(n_vars=n), MarginalDiBS
    else:
        prior = ErdosReniDAGDistribution(n, n_edges_per_node=request["edges_per_node"])
        model = DenseNonlinearGaussian(n_vars=n, hidden_layers=HIDDEN_LAYERS, obs_noise=request["obs_noise"])
        inference = JointDiBS
    return inference(x=jnp.array(values), graph_model=prior, likelihood_model=model)


def edge_probabilities(distribution):
    """Return the probability of each edge among the particles without a cycle; None where there are none."""
    graphs, weights = np.asarray(distribution.g), np.exp(np.asarray(distribution.logp, dtype=float))
    weights = weights * np.asarray(elwise_acyclic_constr_nograd(distribution.g, graphs.shape[-1]) == 0)
    if weights.sum() == 0:
        return None
    return np.einsum("p,pij->ij", weights / weights.sum(), graphs).tolist()


def run(dibs, request, seed):
    """Run one seed and return what it found."""
    began = time.process_time()
    drawn = dibs.sample(key=random.PRNGKey(seed), n_particles=request["particles"], steps=request["steps"])
    particles = drawn if isinstance(drawn, tuple) else (drawn,)
    acyclic = elwise_acyclic_constr_nograd(particles[0], particles[0].shape[-1]) == 0
    return {
        "empirical": edge_probabilities(dibs.get_empirical(*particles)),
        "mixture": edge_probabilities(dibs.get_mixture(*particles)),
        "acyclic": int(acyclic.sum()),
        "cpu_seconds": time.process_time() - began,
    }


def simulated(request):
    """Return rows of a network that DiBS draws: neural networks on an Erdős-Rényi DAG of two edges per variable."""
    drawn, *_ = make_nonlinear_gaussian_model(
        key=random.PRNGKey(request["seed"]), n_vars=request["simulate"], graph_prior_str="er",
        n_observations=request["rows"], n_ho_observations=1,
    )  # fmt: skip
    return {"rows": np.asarray(drawn.x, dtype=float).tolist(), "truth": np.asarray(drawn.g).astype(int).tolist()}


def answer(request):
    """Do what the request asks and return the reply."""
    if "simulate" in request:
        return simulated(request)
    dibs = build(request, np.loadtxt(request["data"], delimiter=",", skiprows=1))
    runs = [run(dibs, request, seed) for seed in request["seeds"]]
    return {"runs": runs, "version": version("dibs-lib"), "jax_version": version("jax")}


if __name__ == "__main__":
    serve(answer)

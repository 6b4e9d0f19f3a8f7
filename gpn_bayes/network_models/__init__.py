"""One PyMC model of a whole network, given a DAG; and several of them, given a posterior of DAGs."""

from gpn_bayes.network_models.building import pymc_network
from gpn_bayes.network_models.weighted import WeightedNetwork, pymc_networks

__all__ = ["WeightedNetwork", "pymc_network", "pymc_networks"]

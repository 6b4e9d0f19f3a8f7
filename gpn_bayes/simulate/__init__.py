"""Random DAGs, and data drawn from them: linear, Fourier, neural-network and discrete relations, and time series.

All but time series can include rows of experiments, in which some variables are changed.

Examples
--------
>>> dag = random_dag(4, edges_per_node=1, random_seed=1)
>>> linear(dag, n_rows=50, random_seed=1).shape
(50, 4)
"""

from gpn_bayes.data.discretising import discretise
from gpn_bayes.simulate.bif import read_bif, write_bif
from gpn_bayes.simulate.discrete_networks import DiscreteNetwork
from gpn_bayes.simulate.random_dags import random_dag
from gpn_bayes.simulate.relations import discrete, fourier, linear, mlp, random_network
from gpn_bayes.simulate.time_series import svar

__all__ = [
    "DiscreteNetwork", "discrete", "discretise", "fourier", "linear", "mlp", "random_dag", "random_network", "read_bif",
    "svar", "write_bif",
]  # fmt: skip

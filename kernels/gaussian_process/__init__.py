"""Compiled Gaussian processes: marginal likelihoods, their modes, and what isn't normal by features of the rows."""

"""Compiled questions about graphs, and sums over the subsets of a set."""

"""Scores: each answers log S(node | parents) for a bound data set; higher is better."""

"""Compiled samplers: score tables in, DAGs out. Nothing here knows where the scores come from."""

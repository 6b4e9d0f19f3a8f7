"""Compiled searches for one graph: over parent sets, orders and edges, and by penalised regressions."""

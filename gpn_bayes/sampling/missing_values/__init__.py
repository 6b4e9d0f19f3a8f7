"""Runs of tables with missing values, which are drawn along with the DAGs."""

"""Missing entries of a table, drawn."""

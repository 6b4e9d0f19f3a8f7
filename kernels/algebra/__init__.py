"""Linear algebra on small matrices, and the tail of importance weights."""

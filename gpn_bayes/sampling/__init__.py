"""A run from settings to posterior: score tables, chains, reweighting and the result."""

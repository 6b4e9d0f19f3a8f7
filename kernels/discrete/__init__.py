"""Compiled scores of categories, from counts."""

"""Compiled scores of normal variables with linear equations, and of numbers given categories."""

"""Shared by all packages: checks of arguments, files, SQLite, progress, wording, types.

The types of arrays are named in `gpn_bayes.kernels.arrays`, since compiled code may import nothing from here.
"""

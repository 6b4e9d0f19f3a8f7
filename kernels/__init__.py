"""Compiled arithmetic: arrays in, numbers out. Nothing here knows about data frames or graphs."""

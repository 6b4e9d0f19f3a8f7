"""Compiled statistics of tests of independence."""

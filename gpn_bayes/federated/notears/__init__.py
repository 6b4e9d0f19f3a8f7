"""NOTEARS between parties that do not share their rows: consensus by ADMM, and what to compare it with."""

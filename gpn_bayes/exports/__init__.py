"""Learned graphs for other programs: files, and the objects of other libraries."""

from gpn_bayes.exports.mixin import Exports

__all__ = ["Exports"]

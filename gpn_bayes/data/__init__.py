"""Data in: any table as a checked `Dataset`, or its `SufficientStatistics` where the rows can't be had."""

from gpn_bayes.data.columns import MAX_INTEGER_LEVELS
from gpn_bayes.data.dataset import Dataset, read_part
from gpn_bayes.data.statistics import SufficientStatistics, check_known, read_data

__all__ = ["MAX_INTEGER_LEVELS", "Dataset", "SufficientStatistics", "check_known", "read_data", "read_part"]

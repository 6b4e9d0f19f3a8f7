"""Data in: any table as a checked `Dataset`, or its `SufficientStatistics` where the rows aren't available."""

from gpn_bayes.data.columns import MAX_INTEGER_LEVELS
from gpn_bayes.data.dataset import Dataset, read_part
from gpn_bayes.data.flags import Flag, data_flags
from gpn_bayes.data.interventions import Interventions, KnownTargets, UnknownTargets, refuse_interventions
from gpn_bayes.data.statistics import (
    Data,
    PrivacyNoise,
    RowMoments,
    SufficientStatistics,
    check_known,
    noise_text,
    read_data,
    standardised,
    warn_of_noise,
)

__all__ = [
    "MAX_INTEGER_LEVELS", "Data", "Dataset", "Flag", "Interventions", "KnownTargets", "PrivacyNoise", "RowMoments",
    "SufficientStatistics", "UnknownTargets", "check_known", "data_flags", "noise_text", "read_data", "read_part",
    "refuse_interventions", "standardised", "warn_of_noise",
]  # fmt: skip

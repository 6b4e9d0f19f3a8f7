"""Data in: any table as a checked `Dataset`, or its `SufficientStatistics` where the rows aren't available."""

from gpn_bayes.data.columns import MAX_INTEGER_LEVELS
from gpn_bayes.data.dataset import Dataset, read_part
from gpn_bayes.data.flags import Flag, data_flags
from gpn_bayes.data.interventions import Interventions, KnownTargets, UnknownTargets, refuse_interventions
from gpn_bayes.data.statistics import (
    PrivacyNoise,
    SufficientStatistics,
    check_known,
    noise_text,
    read_data,
    warn_of_noise,
)

__all__ = [
    "MAX_INTEGER_LEVELS", "Dataset", "Flag", "Interventions", "KnownTargets", "PrivacyNoise", "SufficientStatistics",
    "UnknownTargets", "check_known", "data_flags", "noise_text", "read_data", "read_part", "refuse_interventions",
    "warn_of_noise",
]  # fmt: skip

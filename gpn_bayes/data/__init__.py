"""Data in: any table as a checked `Dataset`, or its `SufficientStatistics` where the rows aren't available."""

from gpn_bayes.data.columns import MAX_INTEGER_LEVELS
from gpn_bayes.data.dataset import Dataset, read_part
from gpn_bayes.data.flagging import Flag, checked
from gpn_bayes.data.flags import data_flags
from gpn_bayes.data.interventions import Interventions, KnownTargets, UnknownTargets, refuse_interventions
from gpn_bayes.data.kinds import CATEGORICAL
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
from gpn_bayes.data.tables import read_table
from gpn_bayes.data.weights import refuse_weights

__all__ = [
    "CATEGORICAL", "MAX_INTEGER_LEVELS", "Data", "Dataset", "Flag", "Interventions", "KnownTargets", "PrivacyNoise",
    "RowMoments", "SufficientStatistics", "UnknownTargets", "check_known", "checked", "data_flags", "noise_text",
    "read_data", "read_part", "read_table", "refuse_interventions", "refuse_weights", "standardised", "warn_of_noise",
]  # fmt: skip

"""Data in: any table as a checked `Dataset`, or its `SufficientStatistics` where the rows aren't available.

Names are loaded when they are first used: the command line takes its options from `keywords`, without all that reads
tables.
"""

from typing import TYPE_CHECKING

from gpn_bayes._util.lazy import lazily

if TYPE_CHECKING:
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
        moments_of,
        noise_text,
        read_complete,
        read_data,
        standardised,
        statistics_of,
        warn_of_noise,
    )
    from gpn_bayes.data.table import ReadingKeywords, Table, TableKeywords, described
    from gpn_bayes.data.tables import read_table
    from gpn_bayes.data.weights import refuse_weights

__all__ = [
    "CATEGORICAL", "Data", "Dataset", "Flag", "Interventions", "KnownTargets", "MAX_INTEGER_LEVELS", "PrivacyNoise",
    "ReadingKeywords", "RowMoments", "SufficientStatistics", "Table", "TableKeywords", "UnknownTargets",
    "check_known", "checked", "data_flags", "described", "moments_of", "noise_text", "read_complete", "read_data",
    "read_part", "read_table", "refuse_interventions", "refuse_weights", "standardised", "statistics_of",
    "warn_of_noise",
]  # fmt: skip
_HOMES = {
    "columns": "MAX_INTEGER_LEVELS",
    "dataset": "Dataset read_part",
    "flagging": "Flag checked",
    "flags": "data_flags",
    "interventions": "Interventions KnownTargets UnknownTargets refuse_interventions",
    "kinds": "CATEGORICAL",
    "statistics": "Data PrivacyNoise RowMoments SufficientStatistics "
    "check_known moments_of noise_text read_complete read_data standardised statistics_of warn_of_noise",
    "table": "ReadingKeywords Table TableKeywords described",
    "tables": "read_table",
    "weights": "refuse_weights",
}
__getattr__, __dir__ = lazily(
    __name__, {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names.split()}
)

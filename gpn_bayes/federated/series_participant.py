"""A client of time series: linear equations with the past among what predicts."""

from gpn_bayes.estimators.lagged_data import LaggedData
from gpn_bayes.federated.linear_participant import LinearParticipant


class SeriesParticipant(LinearParticipant):
    """A client that regresses its variables at a time on each other and on all of those before.

    Parameters
    ----------
    series : LaggedData
        Every time of this client's series with its past.
    shared_intercepts : bool
        Whether intercepts are the same for all clients; otherwise each client centres its columns.
    """

    def __init__(self, series: LaggedData, shared_intercepts: bool) -> None:
        super().__init__(series.values, len(series.names), shared_intercepts)

"""What a report says of a table: what looks odd in it, and what is assumed of it."""

from collections.abc import Sequence
from typing import Any

from gpn_bayes.data import Flag, checked, data_flags
from gpn_bayes.posterior.diagnostics import DATA_LIGHTS, NETWORK_ASSUMPTIONS, WITHOUT_ROWS, data_heading, data_verdict
from gpn_bayes.sampling.flags import in_both


def checked_data(
    data: Any, unexamined: str, assumptions: Sequence[str] = (), network: Sequence[str] = NETWORK_ASSUMPTIONS
) -> dict[str, Any]:
    """Return the part of a report on data and assumptions.

    Parameters
    ----------
    data : Dataset or SufficientStatistics, optional
        What was learnt from.
    unexamined : str
        What to say where there are no data.
    assumptions : sequence of str
        What is assumed besides what every network assumes.
    network : sequence of str
        The latter.

    Examples
    --------
    >>> checked_data(None, "The data were not examined.")["data_heading"]
    'The data were not examined.'
    """
    flags: tuple[Flag, ...] = ()
    if data is not None and data.table is not None:
        unexamined = ""
        flags = checked({"the table": lambda: data_flags(data, numbers="continuous" in data.kinds)})
    elif data is not None:
        unexamined = WITHOUT_ROWS
    return {
        "data_verdict": DATA_LIGHTS[data_verdict(flags, unexamined)],
        "data_heading": data_heading(flags, unexamined),
        "flags": [in_both(flag.message) for flag in flags],
        "assumptions": [*network, *assumptions],
    }

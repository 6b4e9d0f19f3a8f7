"""What describes a table, as keywords."""

from collections.abc import Mapping
from typing import Any, TypedDict


class TableKeywords(TypedDict, total=False):
    """The keywords that describe a table: what `gpn_bayes.sample` and others take beside the data."""

    kinds: Mapping[str, Any] | None
    missing: str
    imputations: int
    targets: Any
    intervention: str | None
    contexts: Any
    target_probability: float | None
    target_penalty: float | None
    weights: Any

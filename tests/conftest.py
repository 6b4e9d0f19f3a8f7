"""Fixtures that many tests share."""

import pytest


@pytest.fixture
def progress_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let quick work show its progress too, which logs leave out."""
    monkeypatch.setattr("gpn_bayes._util.progress._LOG_SECONDS", 0.0)

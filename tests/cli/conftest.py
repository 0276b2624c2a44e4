"""Commands in tests do not mention their progress: how long they take depends on the machine."""

import pytest


@pytest.fixture(autouse=True)
def _no_word_about_slowness(monkeypatch):
    monkeypatch.setattr("sequela.cli.output._SILENCE", 1e9)
    monkeypatch.setattr("sequela.support.progress._PATIENCE", 1e9)

"""Switch off the notices about slow work, because they depend on the speed of the machine."""

import pytest


@pytest.fixture(autouse=True)
def _no_word_about_slowness():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("sequela.cli.output._SILENCE", 1e9)
        patch.setattr("sequela.support.progress._PATIENCE", 1e9)
        yield

"""The browser in which the tests open reports."""

import pytest

from page.browser import launch


@pytest.fixture(scope="module")
def browser():
    manager, made = launch()
    yield made
    made.close()
    manager.stop()

"""Helpers for tests in a browser: start it, open a report, record its errors, save its files."""

import os
import shutil
from contextlib import contextmanager

import numpy as np
import pytest

from sequela import Model

CHROMIUM = os.environ.get("SEQUELA_CHROMIUM") or shutil.which("chromium") or shutil.which("chrome")
LOCAL = ("file:", "data:", "blob:", "about:")


def launch():
    """Start a browser, and return it with its manager; skip the test if there is no browser."""
    sync = pytest.importorskip(
        "playwright.sync_api", reason="the browser tests need playwright: pip install playwright"
    )
    if CHROMIUM is None:
        pytest.skip("the browser tests need Chromium: apt-get install chromium")
    manager = sync.sync_playwright().start()
    flags = ["--no-sandbox"]  # containers do not allow the sandbox of the browser
    return manager, manager.chromium.launch(executable_path=CHROMIUM, args=flags)


@contextmanager
def opened(browser, path, **options):
    """Open a report. Fail if it has errors, writes to the console, opens dialogs or requests URLs.

    Requests that begin with LOCAL are allowed.
    """
    context = browser.new_context(**{"viewport": {"width": 1440, "height": 1000}, **options})
    context.set_default_timeout(90_000)
    page = context.new_page()
    wrong = []
    page.on("console", lambda message: wrong.append(f"console: {message.text}"))
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda r: r.url.startswith(LOCAL) or wrong.append(f"request: {r.url}"))
    try:
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready=yes]")
        yield page
        assert wrong == []
    finally:
        context.close()


def show(page, name):
    """Scroll to a section of the page, and wait until the section is drawn."""
    page.locator(f"#{name}").scroll_into_view_if_needed()
    page.wait_for_selector(f"#{name}[data-drawn]")
    assert page.get_attribute(f"#{name}", "data-drawn") == "yes"
    return page.locator(f"#{name}")


def downloaded(page, button):
    """Return the path of the file that a button saves.

    A busy browser may lose a download, so the button is clicked up to four times.
    """
    from playwright.sync_api import TimeoutError as NoDownload

    for left in (3, 2, 1, 0):
        try:
            with page.expect_download(timeout=20_000) as saved:
                button.click()
            return saved.value.path()
        except NoDownload:
            if not left:
                raise
    return None


def some_model(n, interactions, seed=1, labels=None):
    rng = np.random.default_rng(seed)
    theta = np.zeros((n, n))
    for i, j in rng.integers(0, n, size=(interactions, 2)):
        theta[i, j] = rng.normal() * 1.3
    np.fill_diagonal(theta, np.log(rng.gamma(0.6, 3.0 / n, size=n) + 0.4 / n))
    return Model(theta, labels or [f"GENE{k}" for k in range(n)])

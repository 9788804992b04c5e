"""A real browser for tests: Debian's chromium, or whatever of its kind is there."""

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import patience
import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


def find_chromium() -> str:
    """Its path. Without one a test is skipped, or fails where a browser was promised."""
    found = next((path for name in NAMES if (path := shutil.which(name))), None)
    if found is None:
        if os.environ.get("MNEMOSCOPE_NEEDS_BROWSER"):
            pytest.fail("no chromium was found, and MNEMOSCOPE_NEEDS_BROWSER is set")
        pytest.skip("no chromium was found: apt-get install chromium")
    return found


@contextmanager
def open_browser() -> Iterator[Browser]:
    """A browser without a window."""
    with sync_playwright() as play:
        browser = play.chromium.launch(
            executable_path=find_chromium(),
            args=["--no-sandbox", "--disable-dev-shm-usage"],
            timeout=patience.MILLISECONDS,
        )
        yield browser
        browser.close()


def open_page(browser: Browser, **context: Any) -> Page:
    """A page that waits as long as all tests do."""
    page = browser.new_page(**context)
    page.set_default_timeout(patience.MILLISECONDS)
    return page


class Watched:
    """A page whose errors and requests are noted."""

    def __init__(self, browser: Browser, width: int = 1200, height: int = 900) -> None:
        self.page = open_page(browser, viewport={"width": width, "height": height})
        self.errors: list[str] = []
        self.requests: list[str] = []
        self.page.on("console", self._hear)
        self.page.on("pageerror", lambda one: self.errors.append(str(one)))
        self.page.on("request", lambda one: self.requests.append(one.url))

    def _hear(self, said: ConsoleMessage) -> None:
        if said.type == "error":
            self.errors.append(said.text)

    def left(self, *here: str) -> list[str]:
        """Requests that went elsewhere than here."""
        return [url for url in self.requests if not url.startswith(("data:", "blob:", *here))]

"""Chromium, headless, by Playwright: Debian's own, which `make test-tools` installs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, sync_playwright

from .missing import missing


@contextmanager
def browser() -> Iterator[Browser]:
    """A browser of one's own. Skips where there is none."""
    found = shutil.which("chromium")
    if found is None:
        missing("chromium is not there (Debian: apt-get install chromium)")
    with sync_playwright() as playwright:
        # Root, as in a container, has no sandbox; what it opens is our own page.
        running = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        try:
            yield running
        finally:
            running.close()

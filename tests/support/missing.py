"""What happens when a test's broker or client is not installed: a skip that says so, or in CI a failure."""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def missing(what: str) -> NoReturn:
    """Skip with the reason `what`; where CI=true, fail with it."""
    if os.environ.get("CI", "").lower() in ("1", "true"):
        pytest.fail(f"{what} (CI=true: nothing may be missing)", pytrace=False)
    pytest.skip(what)

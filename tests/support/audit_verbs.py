"""Verbs of `amqpgate audit` on DuckDB, in processes of their own: each closes the session of all tests."""

from __future__ import annotations

import subprocess
import sys


def audit_locally(*words: object) -> str:
    """What it writes. ``subprocess.CalledProcessError`` where it fails."""
    command = [sys.executable, "-m", "amqpgate", "audit", *map(str, words)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout

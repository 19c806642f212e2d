"""Runs of ``amqpgate conformance``, and what in them is not obeyed."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

#: A gateway before a broker on a port, with connections of a kind.
CONFIG = """
listeners: [{name: main, bind: "127.0.0.1:{port}"}]
upstreams: [{name: broker, host: 127.0.0.1, port: %d, connections: %s}]
admin: {bind: "127.0.0.1:{admin_port}"}
limits: {drainTimeout: 2s}
"""


def played(port: int, tmp_path: Path, *options: str) -> tuple[int, dict[tuple[str, str], str]]:
    """The exit code, and by version and id the verdict of each case that is not obeyed."""
    file = tmp_path / "report.json"
    command = [sys.executable, "-m", "amqpgate", "conformance", f"127.0.0.1:{port}", "--json", str(file)]
    # On a busy machine an answer may take its time.
    done = subprocess.run(
        [*command, "--patience", "15", *options], capture_output=True, text=True, timeout=280
    )
    assert file.exists(), done.stderr
    results = json.loads(file.read_text())["results"]
    found = {(one["version"], one["id"]): f"{one['verdict']}: {one['seen']}" for one in results}
    return done.returncode, {key: said for key, said in found.items() if not said.startswith("obeys")}


def deviations(found: dict[tuple[str, str], str]) -> dict[tuple[str, str], str]:
    return {key: said for key, said in found.items() if not said.startswith("as ")}

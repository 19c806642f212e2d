"""Descriptors for all connections are there before the first one comes: by what the kernel says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

#: Sets both limits, prepares for so many connections, tells limits and the size of the table.
SCRIPT = '''
import logging, pathlib, resource, sys
from amqpgate.app import descriptors
from amqpgate.config import parse

logging.basicConfig(level=logging.INFO)
soft, hard, connections = map(int, sys.argv[1:])
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
settings = """
listeners: [{name: a, bind: 127.0.0.1:0}]
upstreams: [{name: a, host: 127.0.0.1}]
limits: {maxConnections: %d}
"""
before = set(pathlib.Path("/proc/self/fd").iterdir())
descriptors.prepare(parse(settings % connections, {}))
assert set(pathlib.Path("/proc/self/fd").iterdir()) == before
print(*resource.getrlimit(resource.RLIMIT_NOFILE), pathlib.Path("/proc/self/status").read_text())
'''


def prepared(soft: int, hard: int, connections: int) -> tuple[int, int, int, str]:
    """Both limits afterwards, the size of the kernel's table, and what was logged."""
    command = [sys.executable, "-c", SCRIPT, str(soft), str(hard), str(connections)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    limits = done.stdout.split()[:2]
    size = re.search(r"^FDSize:\s+(\d+)$", done.stdout, re.MULTILINE)
    assert size is not None
    return int(limits[0]), int(limits[1]), int(size[1]), done.stderr


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the kernel does not say here")
@pytest.mark.parametrize(
    ("soft", "hard", "connections", "then", "size"),
    [
        pytest.param(256, 4096, 1000, 2064, 2304, id="the limit is raised as far as it is needed"),
        pytest.param(3000, 4096, 1000, 3000, 2304, id="it is never lowered"),
        pytest.param(1024, 1024, 10_000, 1024, 1024, id="no further than is allowed"),
        pytest.param(64, 4096, 1, 66, 256, id="few"),
    ],
)
def test_the_table_is_as_large_as_all_connections_need(
    soft: int, hard: int, connections: int, then: int, size: int
) -> None:
    found = prepared(soft, hard, connections)
    assert found[:2] == (then, hard)
    assert found[2] >= min(size, then)
    told = "open files: 1024 at most, and limits.maxConnections 10000 takes 20064" in found[3]
    assert told is (connections == 10_000)

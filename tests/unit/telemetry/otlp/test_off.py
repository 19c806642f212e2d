"""Who sends nothing by OTLP loads nothing for it."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import sys
import amqpgate.app.wiring
from amqpgate.config import parse
from amqpgate.gateway.server.assembly import build
from amqpgate.policy import PolicySet
text = "listeners: [{name: a, bind: 'localhost:0'}]\\nupstreams: [{name: b, host: b}]\\n" + MORE
build(parse(text, {}), PolicySet.empty(), "0").pump.close()
print(sorted({name.split(".")[0] for name in sys.modules} & {"opentelemetry", "google"}))
"""


def loaded(more: str) -> str:
    script = SCRIPT.replace("MORE", repr(more))
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=120
    ).stdout.strip()


def test_nothing_is_loaded_where_it_is_off() -> None:
    assert loaded("") == "[]"
    assert loaded("otlp: {metrics: 'http://localhost:1/'}\n") == "['google', 'opentelemetry']"

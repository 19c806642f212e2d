"""What the programs in Python share: the conversation of `../clients.py`, and values that JSON lacks.

Imported by scripts that run by themselves, one of them with the system's Python: nothing but the standard
library in here.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Mapping

ENV = os.environ
ADDRESS = f"{ENV['AMQP_HOST']}:{ENV['AMQP_PORT']}"
VHOST, USER, PASSWORD = ENV["AMQP_VHOST"], ENV["AMQP_USER"], ENV["AMQP_PASSWORD"]
PROPERTIES: Mapping[str, object] = json.loads(ENV["STEP_PROPERTIES"])
HEADERS: Mapping[str, object] = json.loads(ENV["STEP_HEADERS"])
BIG_BODY = bytes(range(256)) * (3 * 1024 * 1024 // 256)

#: So many requests are answered before a delivery that was to come counts as held back.
ROUND_TRIPS = 20


def ask(what: str) -> object:
    """Have the operator do something, and wait for the answer."""
    print("ask", what, flush=True)
    return json.loads(sys.stdin.readline())


def play(steps: Mapping[str, Callable[[], object]]) -> None:
    """The steps that the command line names, one after the other."""
    for name in sys.argv[1:]:
        print("step", name, flush=True)
        try:
            say_saw(steps[name]())
        except Exception as error:
            say_failed(error)


def say_saw(seen: object) -> None:
    print("saw", json.dumps(seen), flush=True)


def say_failed(error: Exception) -> None:
    print("failed", json.dumps(f"{type(error).__name__}: {error}"), flush=True)


def digest(body: bytes) -> list[object]:
    """Size and SHA-256 of a body."""
    return [len(body), hashlib.sha256(body).hexdigest()]

"""What RabbitMQ 3.10.8 answers to violations: run against one, frame by frame.

``answer`` is what it said, in the notation of ``playbook.lines``. Before tune-ok it says nothing, waits
three seconds and hangs up; "silence" then stands for that, and code, ids and text are those in its log.
Where this room answers otherwise on purpose, ``ours`` says what, and ``why``. RabbitMQ quotes frames that it
does not want, in which there may be a login; here they are not quoted (``unquoted``).
"""

from __future__ import annotations

from tests.unit.protocol.measured.case import Case, unquoted
from tests.unit.protocol.measured.closing import CLOSING_CHANNEL, CLOSING_CONNECTION
from tests.unit.protocol.measured.content import CONTENT
from tests.unit.protocol.measured.handshake import HANDSHAKE
from tests.unit.protocol.measured.running import OPEN_CHANNEL, OPEN_CONNECTION, TWO_CHANNELS

CASES: list[Case] = [
    *HANDSHAKE,
    *OPEN_CONNECTION,
    *OPEN_CHANNEL,
    *CONTENT,
    *CLOSING_CHANNEL,
    *CLOSING_CONNECTION,
    TWO_CHANNELS,
]

__all__ = ["CASES", "Case", "unquoted"]

"""What plain Python here reads of a frame that lies in a buffer (AMQP 0-9-1, sections 4.2.3 and 4.2.6)."""

from __future__ import annotations

from struct import Struct

Buffer = bytearray | memoryview

CHANNEL = Struct(">H")
#: class id and method id at the start of a method's payload.
METHOD = Struct(">I")
#: class id, weight, body size (section 4.2.6.1), then at least one word of property flags.
CONTENT = Struct(">HHQ")
CONTENT_MIN = CONTENT.size + 2

#: More than any disk holds; the compiled scanner counts with a sign.
MOST_BODY = (1 << 62) - 1

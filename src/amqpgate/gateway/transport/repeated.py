"""What each connection hears and says again while it is set up: kept as the frames that it is on the wire.

Of peers that speak AMQP 0-9-1 as RabbitMQ has it alone. There is no login in any of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, Generic, TypeVar

from amqpgate.bridge import NATIVE
from amqpgate.protocol.frames import FRAME_HEAD, FRAME_METHOD, FRAME_OVERHEAD, encode_frame
from amqpgate.wire.codec import is_repeated
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

K = TypeVar("K")
V = TypeVar("V")

#: How many are kept of each: peers choose them.
_MOST: Final = 64
#: Of what is received: of many virtual hosts, each has an open of its own.
_MOST_HEARD: Final = 256
_TUNE_OK: Final = amqp.ConnectionTuneOk.INDEX.to_bytes(4, "big")
_OPEN: Final = amqp.ConnectionOpen.INDEX.to_bytes(4, "big")

#: By all that was received at once: the method, and the bytes behind its frame.
HEARD: Final[dict[bytes, tuple[Method, bytes]]] = {}
#: By a method's class and its values.
_SAID: Final[dict[tuple[object, ...], bytes]] = {}


class Derived(Generic[K, V]):
    """What was made of objects that come again, as what repeats is read once. Asked by identity: to compare
    them would take as long as to make it."""

    def __init__(self, make: Callable[[K], V]) -> None:
        self._make = make
        #: By the object's id, which is its own while the object is kept.
        self._made: dict[int, tuple[K, V]] = {}

    def of(self, key: K) -> V:
        """What was made of it, or is now."""
        found = self._made.get(id(key))
        if found is not None:
            return found[1]
        made = self._make(key)
        if len(self._made) >= _MOST:
            self._made.clear()
        self._made[id(key)] = key, made
        return made


def keep(data: bytes, method: Method, payload: bytes) -> None:
    """What was received begins with the frame of ``payload``, which is ``method``."""
    rest = data[len(payload) + FRAME_OVERHEAD :]
    if is_repeated(payload) and (not rest or _opens(payload, rest)):
        if len(HEARD) >= _MOST_HEARD:
            HEARD.clear()
        HEARD[data] = method, rest


def _opens(payload: bytes, rest: bytes) -> bool:
    """Whether they are a tune-ok and one open: clients say both without waiting."""
    opening = rest[FRAME_HEAD.size : -1]
    return (
        payload[:4] == _TUNE_OK
        and opening[:4] == _OPEN
        and is_repeated(opening)
        and rest == encode_frame(FRAME_METHOD, 0, opening)
    )


def frame_of(cls: type[Method], *values: object) -> bytes:
    """The method frame on channel 0 that tells a peer the method of these values, which are hashable."""
    key = cls, *values
    frame = _SAID.get(key)
    if frame is None:
        frame = encode_frame(FRAME_METHOD, 0, NATIVE.from_canonical(cls(*values)))
        if len(_SAID) >= _MOST:
            _SAID.clear()
        _SAID[key] = frame
    return frame


#: The frame that tells a peer this start.
START_FRAMES: Final = Derived[amqp.ConnectionStart, bytes](
    lambda start: encode_frame(FRAME_METHOD, 0, NATIVE.from_canonical(start))
)

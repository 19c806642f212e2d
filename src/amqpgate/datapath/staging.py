"""Which bytes that the scanner passed of a client are in whole messages: only those go to a link."""

from __future__ import annotations

from amqpgate.datapath.engine import Bytes
from amqpgate.datapath.tables import HEADER_NEXT
from amqpgate.protocol.frames import FRAME_BODY, FRAME_HEAD, FRAME_HEADER, FRAME_METHOD, FRAME_OVERHEAD
from amqpgate.wire.generated import v0_9_1 as amqp


def quiet_end(buf: memoryview, spans: list[tuple[int, int]]) -> int:
    """Where in what was passed of a client no message was half way for the last time; none was at first."""
    half: dict[int, int] = {}
    quiet = 0
    for first, last in spans:
        at = first
        while at < last:
            kind, number, size = FRAME_HEAD.unpack_from(buf, at)
            if kind == FRAME_BODY:
                half[number] -= size
            elif kind == FRAME_HEADER:
                half[number] = int.from_bytes(buf[at + 11 : at + 19], "big")
            elif int.from_bytes(buf[at + 7 : at + 11], "big") == amqp.BasicPublish.INDEX:
                half[number] = HEADER_NEXT
            if not half.get(number, True):
                del half[number]
            at += size + FRAME_OVERHEAD
            if not half:
                quiet = at
    return quiet


def whole_only(frames: Bytes) -> bytes:
    """What a client's session sends, less the messages that do not end in it: their channels were closed."""
    kept: list[bytes] = []
    #: By channel: bytes that are due (None: the header), and where the message's frames are.
    half: dict[int, tuple[int | None, list[int]]] = {}
    at = 0
    while at < len(frames):
        kind, number, size = FRAME_HEAD.unpack_from(frames, at)
        kept.append(bytes(frames[at : at + size + FRAME_OVERHEAD]))
        at += size + FRAME_OVERHEAD
        due, places = half.pop(number, (None, []))
        if kind == FRAME_METHOD:
            for place in places:
                kept[place] = b""
            if int.from_bytes(kept[-1][7:11], "big") != amqp.BasicPublish.INDEX:
                continue
            due, places = None, []
        elif not places:
            kept[-1] = b""
            continue
        elif kind == FRAME_HEADER:
            due = int.from_bytes(kept[-1][11:19], "big")
        elif due is not None:
            due -= size
        places.append(len(kept) - 1)
        if due != 0:
            half[number] = due, places
    for _due, places in half.values():
        for place in places:
            kept[place] = b""
    return b"".join(kept)

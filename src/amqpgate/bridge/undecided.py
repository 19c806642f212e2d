"""A client behind the header ``AMQP 01 01 00 09``, which is sent by clients of 0-9 and of 0-9-1.

The two versions have the same bytes wherever both have a method, so nothing need be known until the client
does what only one of them does:

================================================================================  =======
the client sends                                                                  it is
================================================================================  =======
access.request                                                                    0-9
channel.resume, ping, pong, ok; basic.recover 60,102; exchange.bound              0-9
a method of class file, stream, dtx, tunnel or message                            0-9
start-ok with a table ``capabilities`` among its properties                       0-9-1
exchange.bind, unbind; confirm.select; basic.recover 60,110; connection.update-secret, basic.credit  0-9-1
================================================================================  =======

Of Qpid's clients exchange.bound says nothing, since theirs of 0-9-1 have it, too.

The first of these decides, for good: what the other version has is an error from then on. A basic.nack does
not decide, because it passes without being looked at; whoever sends it has asked for nothing by it.

Until then the client is told only what both versions have: methods of 0-9-1 that 0-9 lacks are not said
(they answer, or announce, what a client of 0-9-1 has asked for, and by that it has decided), reply codes are
those of both, and tables have only the types that old clients of 0-9 read, which every client of 0-9-1
reads, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import ClassVar, Final

from amqpgate.bridge.interpreter import Interpreter
from amqpgate.protocol.methods import Role
from amqpgate.wire.codec import ContentHeader, methods
from amqpgate.wire.dialects import Dialect, VersionNumbers
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.primitives import Buffer

_0_9: Final[VersionNumbers] = (0, 9, 0)
_0_9_1: Final[VersionNumbers] = (0, 9, 1)


@cache
def _telling(one: Dialect, other: Dialect) -> Mapping[int, VersionNumbers]:
    """What a method says of its sender, by ``INDEX``."""
    old, new = set(methods(one)), set(methods(other))
    told = dict.fromkeys(old - new, _0_9) | dict.fromkeys(new - old, _0_9_1)
    # RabbitMQ serves it to clients of 0-9-1, too, but none of them asks.
    return told | {amqp.AccessRequest.INDEX: _0_9}


class UndecidedInterpreter(Interpreter):
    """A client of 0-9 or of 0-9-1; see the module."""

    version: ClassVar[str] = "AMQP 0-9 or 0-9-1"

    def __init__(self, old: Interpreter, new: Interpreter) -> None:
        """``old`` is what the client has if it speaks 0-9, ``new`` if it speaks 0-9-1."""
        super().__init__(old.dialect)
        self.old = old
        self.new = new
        #: None until the client has told.
        self.decided: Interpreter | None = None

    def to_canonical(self, payload: Buffer, sender: Role) -> Method:
        if self.decided is None and len(payload) >= 4:
            told = _telling(self.old.dialect, self.new.dialect).get(int.from_bytes(payload[:4], "big"))
            if told is not None:
                self._decide(told)
        if self.decided is not None:
            return self.decided.to_canonical(payload, sender)
        method = self.new.to_canonical(payload, sender)
        if isinstance(method, amqp.ConnectionStartOk) and "capabilities" in method.client_properties:
            self._decide(_0_9_1)
        return method

    def _decide(self, version: VersionNumbers) -> None:
        self.decided = self.old if version == _0_9 else self.new
        self.dialect = self.decided.dialect
        self.is_native = self.decided.is_native

    def from_canonical(self, method: Method) -> bytes:
        return super().from_canonical(method) if self.decided is None else self.decided.from_canonical(method)

    def speaks(self, method: type[Method]) -> bool:
        return super().speaks(method) if self.decided is None else self.decided.speaks(method)

    def header_to_canonical(self, payload: Buffer) -> ContentHeader:
        return (self.decided or self.old).header_to_canonical(payload)

    def header_from_canonical(self, header: ContentHeader) -> bytes:
        return (self.decided or self.old).header_from_canonical(header)

    def reply_code(self, code: int) -> int:
        return super().reply_code(code) if self.decided is None else self.decided.reply_code(code)

    def _reply_codes(self) -> frozenset[int]:
        return self.old._reply_codes() & self.new._reply_codes()

    def _counterpart(self, method: type[Method]) -> type[Method] | None:
        return self.new._counterpart(method) if self.old.speaks(method) else None

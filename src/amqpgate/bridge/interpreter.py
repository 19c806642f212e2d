"""What every interpreter does: methods and content headers of one peer to the canonical model and back.

Most methods are the same but for their ids, or for the names of their fields ("ticket" and "reserved-1"):
they are carried over field by field. What differs more, each version's module says.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from functools import cache
from typing import ClassVar, Final, TypeVar

import attrs

from amqpgate.bridge import canonical
from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.methods import Role
from amqpgate.wire.codec import (
    ContentHeader,
    decode_header,
    decode_method,
    encode_header,
    methods,
    properties,
)
from amqpgate.wire.dialects import RABBITMQ_0_9_1, Dialect
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method, Properties
from amqpgate.wire.primitives import Buffer

V = TypeVar("V", bound=Method | Properties)

#: For a code that a version lacks, those that come nearest, the best first: of the same scope, channel or
#: connection, and for the same party to blame. A code that no version has is the peer's own, and stays.
_NEAREST: Final[Mapping[int, tuple[int, ...]]] = {
    310: (312, 313, 311),  # not delivered
    312: (310, 311),  # no route
    313: (310, 311),  # no consumers
    406: (405, 403),  # precondition failed
    505: (503, 501),  # unexpected frame
}


class UnsupportedInVersion(ProtocolViolation):
    """The peer's version has no such method: 540, with the ids of the canonical one."""

    def __init__(self, method: type[Method], version: str) -> None:
        super().__init__(
            540,
            f"'{method.NAME}' cannot be said in {version}",
            class_id=method.CLASS_ID,
            method_id=method.METHOD_ID,
        )


class Interpreter(ABC):
    """Of one connection: it may remember what its peer has said.

    Not for sharing: what a peer says can decide which of two dialects it speaks.
    """

    #: For people: "AMQP 0-8".
    version: ClassVar[str]
    #: Whether brokers of the version may answer connection.open with connection.redirect.
    redirects: ClassVar[bool] = False
    #: Whether what cannot be done for a client (540) ends its session, and the connection goes on.
    has_sessions: ClassVar[bool] = False

    #: Whether this peer speaks the canonical model itself: nothing need be translated.
    is_native: bool = False

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect

    @property
    def is_qpids(self) -> bool:
        """Whether this peer is Apache Qpid's."""
        return self.dialect.name.startswith("qpid")

    @property
    def answers_every_recover(self) -> bool:
        """Whether this broker answers a basic.recover-async, too."""
        return False

    def heartbeat(self, wanted: int, _proposed: int) -> int:
        """What this broker is told in connection.tune-ok, in seconds, where the settings want so many."""
        return wanted

    def to_canonical(self, payload: Buffer, sender: Role) -> Method:
        """The method in the payload of a method frame of the peer, who is ``sender``.

        Raises `ProtocolViolation` as `decode_method` does, with ids as the peer has them.
        """
        return self._heard(decode_method(payload, self.dialect), sender)

    def from_canonical(self, method: Method) -> bytes:
        """The payload of the method frame that tells the peer. Raises `UnsupportedInVersion`."""
        return self._said(method).encode(self.dialect)

    def speaks(self, method: type[Method]) -> bool:
        """Whether `from_canonical` has a method for this one."""
        return self._counterpart(method) is not None

    def header_to_canonical(self, payload: Buffer) -> ContentHeader:
        """The content header of the peer's; its properties are canonical if its class is basic.

        Raises `ProtocolViolation` as `decode_header` does.
        """
        header = decode_header(payload, self.dialect)
        if header.class_id != amqp.BasicProperties.CLASS_ID:
            return header
        return attrs.evolve(header, properties=carried(header.properties, amqp.BasicProperties))

    def header_from_canonical(self, header: ContentHeader) -> bytes:
        """The payload of the header frame that tells the peer; table types are those that it reads."""
        cls = properties(self.dialect).get(header.class_id)
        if cls is not None and not isinstance(header.properties, cls):
            header = attrs.evolve(header, properties=carried(header.properties, cls))
        return encode_header(header, self.dialect)

    def captured(self, channel: int, method: Method, header: ContentHeader | None) -> bytes | None:
        """A canonical method, and a content header, in frames that stand for them in a capture of this peer's
        conversation. None: the canonical ones do; empty: it has no word for them.
        """
        return None

    def reply_code(self, code: int) -> int:
        """The code itself, or the nearest that the version has."""
        known = self._reply_codes()
        if code in known:
            return code
        return next((near for near in _NEAREST.get(code, ()) if near in known), code)

    def reads_tables_of(self, other: Interpreter) -> bool:
        """Whether every table that ``other``'s peer may write can be read by this one's as it is."""
        return reads_all(self.dialect, other.dialect)

    # -- what the versions fill in -----------------------------------------------------------

    @abstractmethod
    def _reply_codes(self) -> frozenset[int]:
        """The reply codes of the version."""

    #: Ids of a method in the canonical model to those of the version, where they differ.
    _INDEXES: ClassVar[Mapping[int, int]] = {}

    def _heard(self, method: Method, _sender: Role) -> Method:
        """The canonical method for one of the version's."""
        cls = _canonical_methods().get(method.NAME)
        if cls is None or isinstance(method, cls):
            heard = method
        else:
            heard = carried(method, cls)
        if isinstance(heard, amqp.ConnectionClose | amqp.ChannelClose):
            return self._with_ids(heard, {theirs: ours for ours, theirs in self._INDEXES.items()})
        return heard

    def _said(self, method: Method) -> Method:
        """The version's method for a canonical one."""
        cls = self._counterpart(type(method))
        if cls is None:
            raise UnsupportedInVersion(type(method), self.version)
        if isinstance(method, amqp.ConnectionClose | amqp.ChannelClose):
            method = self._with_ids(method, self._INDEXES)
            method = attrs.evolve(method, reply_code=self.reply_code(method.reply_code))
        elif isinstance(method, amqp.BasicReturn):
            method = attrs.evolve(method, reply_code=self.reply_code(method.reply_code))
        return method if isinstance(method, cls) else carried(method, cls)

    def _counterpart(self, method: type[Method]) -> type[Method] | None:
        """The version's class for a canonical method."""
        return _by_name(self.dialect).get(method.NAME)

    @staticmethod
    def _with_ids(
        method: amqp.ConnectionClose | amqp.ChannelClose, indexes: Mapping[int, int]
    ) -> amqp.ConnectionClose | amqp.ChannelClose:
        """A close that names the method in question as its reader does."""
        index = indexes.get(method.class_id << 16 | method.method_id)
        if index is None:
            return method
        return attrs.evolve(method, class_id=index >> 16, method_id=index & 0xFFFF)


@cache
def reads_all(reader: Dialect, writer: Dialect) -> bool:
    """Whether ``reader`` gives every tag that ``writer`` writes the same meaning."""
    return all(reader.encodes.get(tag) is kind for tag, kind in writer.decodes.items())


@cache
def _by_name(dialect: Dialect) -> Mapping[str, type[Method]]:
    return {cls.NAME: cls for cls in methods(dialect).values()}


@cache
def _canonical_methods() -> Mapping[str, type[Method]]:
    extras = (
        canonical.ConnectionRedirect,
        canonical.ChannelAlert,
        canonical.ChannelResume,
        canonical.ChannelPing,
        canonical.ChannelPong,
        canonical.ChannelOk,
    )
    return dict(_by_name(RABBITMQ_0_9_1)) | {cls.NAME: cls for cls in extras}


def carried(value: Method | Properties, cls: type[V]) -> V:
    """The same values in an object of another version's class.

    Fields stand in the same order. Where one class has one more, it is the last: left out, or empty.
    """
    names = value.__match_args__[: len(cls.__match_args__)]
    return cls(*[getattr(value, name) for name in names])

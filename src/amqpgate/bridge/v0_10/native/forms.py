"""What transfers were found to be that came before: their forms, for those that came last."""

from __future__ import annotations

from typing import Final, NamedTuple

from amqpgate.bridge.v0_10.build import delivery_part
from amqpgate.bridge.v0_10.forms import keep

#: Bytes of a command and a header together that are kept; larger ones are decoded each time.
_LARGEST: Final = 512


class TransferKind(NamedTuple):
    """What a transfer's command says, apart from its header."""

    destination: bytes
    is_silent: bool


class MessageForm(NamedTuple):
    """A message without its body."""

    transfer: TransferKind
    #: Payload of the method frame, and where the delivery tag is in there.
    method: bytes
    tag_at: int
    #: Payload of the header frame, for an empty body.
    header: bytes


class KnownForms:
    """Those of one direction."""

    __slots__ = ("is_brief", "known")

    def __init__(self) -> None:
        #: By a command, and by what is read of the header behind it.
        self.known: dict[tuple[bytes, bytes | None], MessageForm] = {}
        self.is_brief = False

    def read_headers(self, is_read: bool) -> None:
        """Whether anybody looks at headers. While nobody does, copies have no properties of the message:
        what is new of it is mostly in there."""
        self.is_brief = not is_read

    def read(self, header: bytes | None) -> bytes | None:
        """What is read of a header."""
        return delivery_part(header) if self.is_brief and header is not None else header

    def keep(self, segment: bytes, read: bytes | None, form: MessageForm) -> None:
        """What a command is, with this that was read of its header; unless it is large."""
        if len(segment) + len(read or b"") <= _LARGEST:
            keep(self.known, (segment, read), form)

"""A protocol whose frames are not those of AMQP 0-8 to 0-9-1: its bytes to and from canonical frames.

An interpreter turns methods; the frames around them, channels, and what is answered are the same in all
versions that have one. Where even that differs, a translator stands between the peer's bytes and everything
else: whoever looks at that side sees a peer of AMQP 0-9-1.

::

    peer ── from_peer ─────────▶ ┌────────────┐ ── frames_for_gateway ──▶ gateway
                                 │ translator │
    peer ◀──── bytes_for_peer ── └────────────┘ ◀───── from_gateway ── gateway

It does no I/O and waits for nothing. What it is given it deals with at once, or keeps. It may answer either
side by itself, so after each call both sides are looked at.
"""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Translator(Protocol):
    """One connection of one peer, client or broker, from its protocol header on.

    What it keeps is bounded by what it says that it ``wants``: each side asks before each call, and gives a
    few KiB at a time, or one frame. It may not refuse both sides while it has nothing for either, for then
    nothing would ever happen again. Only one of the two sides changes its mind, never the time.
    """

    # -- the peer's side ---------------------------------------------------------------------

    @property
    def wants_bytes(self) -> bool:
        """Whether more of the peer may come. While it may not, the peer is not read; the last words of one
        that is gone come nonetheless."""

    def from_peer(self, data: bytes) -> None:
        """Take what the peer has sent, cut anywhere.

        Raises ``ProtocolViolation``: nothing more comes from the peer then. What came before it may still be
        taken, and the gateway goes on, for it closes the connection.
        """

    def peer_ended(self) -> None:
        """The peer sends nothing more."""

    def bytes_for_peer(self) -> bytes:
        """All that there is to be sent to the peer; it is not given again."""

    # -- the gateway's side --------------------------------------------------------------------

    @property
    def wants_frames(self) -> bool:
        """Whether more of the gateway may come. While it may not, its frames wait until the peer has said
        something. At the end of a session, what is left comes nonetheless, and then the close.

        That of a client takes all that comes: if both of a session waited for their peers, each might wait
        for words behind those that the other one's side has no room for.
        """

    def from_gateway(self, frames: bytes) -> None:
        """Take whole canonical frames. What the peer's protocol cannot say is answered, not raised.

        A heartbeat comes whether frames are wanted or not, and goes to the peer at once.
        """

    def gateway_ended(self) -> None:
        """The gateway sends nothing more."""

    @property
    def has_frames(self) -> bool:
        """Whether there are frames for the gateway. The peer gives nothing more until they are taken."""

    def frames_for_gateway(self, limit: int) -> bytes:
        """The next ``limit`` bytes of canonical frames at most, cut anywhere; none only if there are none.

        A heartbeat of the peer's is one of them.
        """


class RelayedTranslator(Translator, Protocol):
    """One that passes its peer's words on as they came, and shows copies of them to the gateway."""

    def read_headers(self, is_read: bool) -> None:
        """Whether anybody looks at the headers of this peer's messages; while nobody does, they need not be
        complete."""


class Relayed(NamedTuple):
    """What takes the place of two translators whose peers speak the same protocol: it passes as it came.

    Each with what its peer has sent and nobody has looked at. Both share what waits for the peers: whoever
    gives anything to one of them lets the other one send, too.
    """

    client: tuple[RelayedTranslator, bytes]
    broker: tuple[RelayedTranslator, bytes]
    #: The largest canonical frame on either side, in bytes.
    frame_max: int

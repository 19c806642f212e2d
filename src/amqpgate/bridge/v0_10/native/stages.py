"""How far both sides of a relayed connection are with a channel."""

from __future__ import annotations

from enum import Enum


class ClientStage(Enum):
    """How far the client is with a channel."""

    #: No session; what is said here goes to the broker, which answers as it likes.
    FREE = "free"
    #: attach waits for its copy, and what follows for it.
    ATTACHING = "attaching"
    ATTACHED = "attached"
    #: It has sent detach.
    DETACHING = "detaching"
    #: It was sent detach, by the broker or for a denial: its detached is waited for.
    TOLD = "told"
    #: Its session was ended here: its detached is waited for, and the gateway's close-ok.
    FAILED = "failed"


class BrokerStage(Enum):
    """How far the broker is with a channel."""

    FREE = "free"
    #: It was sent attach; whether it has answered is the client's business.
    ATTACHED = "attached"
    #: It was sent detach, by the client or for a denial.
    TOLD = "told"
    #: It has sent detach, or has ended the session by itself: the gateway's close-ok is waited for.
    OVER = "over"

"""How a session is attached to a channel and detached from it, as a table.

Chapter "Sessions", class "session". As in `connection`, one table serves both roles::

                      C: attach                 S: attached
       DETACHED ────────────────────▶ ATTACHING ──────────────▶ ATTACHED ⟲ C: attach, S: attached
          ▲  ▲  ▲                       │    │                   │  │  │
          │  │  └───── S: detached ─────┘    │                   │  │  │
          │  └──────── C, S: detached ───────┼───────────────────┘  │  │
          │                                  │                      │  │
          │         C: detach                ▼                      │  │
          ├─ S: detached ──────────── CLIENT_DETACHING ◀────────────┘  │ S: detach
          │                             ▲    ⟲ S: detach, attached; C: detached
          │                             │ C: detach                    ▼
          └─ C: detached ──────────── SERVER_DETACHING ◀───────────────┘

A client may go on before it is told ``attached``: qpid-python does. Where both detach at once the client
waits for the answer, so that it takes none for that to its next attach; the server does not. While a side
waits for the answer to its detach, all else is dropped.
"""

from __future__ import annotations

from enum import Enum
from typing import Final

from amqpgate.errors import ProtocolViolation
from amqpgate.protocol.methods import Role


class SessionState(Enum):
    """Where a session stands at its channel."""

    #: It is at no channel.
    DETACHED = "detached"
    #: The client has sent attach, the server owes attached or detached.
    ATTACHING = "attaching"
    #: Commands may be sent by both.
    ATTACHED = "attached"
    #: The client has sent detach, the server owes detached.
    CLIENT_DETACHING = "detaching"
    #: The server has sent detach, the client owes detached.
    SERVER_DETACHING = "detaching by server"


_S = SessionState
_C = Role.CLIENT
_B = Role.SERVER

#: Who may send what in which state, and which state follows: the controls that attach and detach.
TRANSITIONS: Final[dict[SessionState, dict[tuple[Role, str], SessionState]]] = {
    _S.DETACHED: {(_C, "session.attach"): _S.ATTACHING},
    _S.ATTACHING: {
        (_B, "session.attached"): _S.ATTACHED,
        (_B, "session.detached"): _S.DETACHED,
        (_C, "session.detach"): _S.CLIENT_DETACHING,
    },
    _S.ATTACHED: {
        (_C, "session.attach"): _S.ATTACHED,
        (_B, "session.attached"): _S.ATTACHED,
        (_C, "session.detach"): _S.CLIENT_DETACHING,
        (_B, "session.detach"): _S.SERVER_DETACHING,
        (_C, "session.detached"): _S.DETACHED,
        (_B, "session.detached"): _S.DETACHED,
    },
    _S.CLIENT_DETACHING: {
        (_B, "session.detached"): _S.DETACHED,
        (_B, "session.detach"): _S.CLIENT_DETACHING,
        (_C, "session.detached"): _S.CLIENT_DETACHING,
        (_B, "session.attached"): _S.CLIENT_DETACHING,
    },
    _S.SERVER_DETACHING: {
        (_C, "session.detached"): _S.DETACHED,
        (_C, "session.detach"): _S.CLIENT_DETACHING,
    },
}

#: Controls of the table above; all others are for those who may send commands.
ATTACHMENT: Final = frozenset({"session.attach", "session.attached", "session.detach", "session.detached"})

#: Who may send commands, and the controls about them, when.
SPEAKERS: Final[dict[SessionState, frozenset[Role]]] = {
    _S.DETACHED: frozenset(),
    _S.ATTACHING: frozenset({_C}),
    _S.ATTACHED: frozenset({_C, _B}),
    _S.CLIENT_DETACHING: frozenset(),
    _S.SERVER_DETACHING: frozenset(),
}

#: What is not legal is dropped in these states.
DETACHING_STATES: Final = frozenset({_S.CLIENT_DETACHING, _S.SERVER_DETACHING})


def step(state: SessionState, sender: Role, name: str) -> SessionState | None:
    """The state after ``sender`` has sent the control ``name``; None if it is dropped.

    Violation 503 if it is not legal. (On a channel without a session there are other rules: see `endpoint`.)
    """
    following = TRANSITIONS[state].get((sender, name))
    if following is None and state not in DETACHING_STATES:
        if name in ATTACHMENT or sender not in SPEAKERS[state]:
            raise ProtocolViolation(503, f"unexpected {name} while the session is {state.value}")
        following = state
    return following

"""The gateway's own login: by the strongest mechanism that a broker offers and the settings allow.

========================  ===============================================================================
mechanism                 how
========================  ===============================================================================
EXTERNAL                  by the gateway's certificate; only where the settings name it, for the broker
                          takes the user from there
SCRAM-SHA-512, -256       `scram`; the broker has to prove that it knows the password, too
PLAIN                     the password itself
AMQPLAIN                  likewise; the only one that can carry a NUL
========================  ===============================================================================
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from amqpgate.protocol.sasl import AMQPLAIN, EXTERNAL, PLAIN, Credentials, amqplain_response, plain_response
from amqpgate.protocol.scram import HASHES, SaslError, Scram

#: The strongest first.
BY_STRENGTH: Final = (EXTERNAL, *HASHES, PLAIN, AMQPLAIN)
#: What is used where the settings do not say otherwise.
USUAL: Final = (*HASHES, PLAIN, AMQPLAIN)


class OneResponse:
    """A login that is one response, and takes no challenge."""

    def __init__(self, mechanism: str, response: bytes) -> None:
        self.mechanism = mechanism
        self._response = response

    def first(self) -> bytes:
        """The response of start-ok."""
        return self._response

    def answer(self, _challenge: bytes) -> bytes:
        """There is none: raises `SaslError`."""
        raise SaslError(f"{self.mechanism}: the broker sent a challenge, and there is none in it")

    def finish(self) -> None:
        """Nothing is left to be proven."""


Exchange = OneResponse | Scram


def exchange(offered: Sequence[str], login: Credentials, allowed: Collection[str] = USUAL) -> Exchange:
    """The login by the strongest mechanism. Raises `SaslError` where there is none."""
    has_nul = "\0" in login.user or b"\0" in login.password
    for mechanism in BY_STRENGTH:
        if mechanism not in offered or mechanism not in allowed or (has_nul and mechanism != AMQPLAIN):
            continue
        if mechanism in HASHES:
            return Scram(mechanism, login.user, login.password)
        if mechanism == EXTERNAL:
            return OneResponse(mechanism, b"")
        response = plain_response if mechanism == PLAIN else amqplain_response
        return OneResponse(mechanism, response(login.user, login.password))
    ours = [mechanism for mechanism in BY_STRENGTH if mechanism in allowed]
    why = " (with a NUL in the login, only AMQPLAIN)" if has_nul else ""
    raise SaslError(
        f"no mechanism to log in with: the broker offers {_listed(offered)}, "
        f"and the gateway may use {_listed(ours)}{why}"
    )


def _listed(names: Sequence[str]) -> str:
    return ", ".join(name[:32] for name in names[:16]) or "none"

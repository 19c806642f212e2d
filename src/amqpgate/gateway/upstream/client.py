"""The client of a handshake, as far as the broker's half of it needs one."""

from __future__ import annotations

from typing import NoReturn, Protocol

from amqpgate.config import Listener
from amqpgate.errors import AmqpgateError, ProtocolViolation
from amqpgate.gateway.identity.tokens import VerifiedToken
from amqpgate.gateway.transport.caller import Caller
from amqpgate.gateway.transport.method_stream import MethodStream
from amqpgate.protocol.sasl import is_mechanism
from amqpgate.wire.generated import v0_9_1 as amqp


class RefusedError(AmqpgateError):
    """The session does not come about; the client has been told all that it will be told."""

    def __init__(self, why: str, *, code: int | None = None, of_login: bool = False) -> None:
        super().__init__(why)
        #: AMQP's reply code that the client was told; None: it was told none.
        self.code = code
        #: Whether its login is not accepted, or not in that virtual host: by the broker, or here, where its
        #: token is verified. Not: by a policy.
        self.of_login = of_login


class Client(Protocol):
    """A client that has sent its start-ok."""

    @property
    def caller(self) -> Caller:
        """Where it comes from."""

    @property
    def listener(self) -> Listener:
        """Where it has come in."""

    @property
    def hop(self) -> MethodStream:
        """The connection to it."""

    @property
    def start_ok(self) -> amqp.ConnectionStartOk:
        """How it logs in; a password is in there."""

    @property
    def token(self) -> VerifiedToken | None:
        """What it logs in by, verified; None: by something else."""

    @property
    def capabilities(self) -> frozenset[str]:
        """What it says that it understands, such as consumer_cancel_notify."""

    async def refuse(self, why: ProtocolViolation) -> NoReturn:
        """Tell it why, and raise ``RefusedError``."""

    async def pass_on(self, refusal: amqp.ConnectionClose, broker: MethodStream | None = None) -> NoReturn:
        """Tell it the broker's refusal, answer the broker, if there is one, and raise ``RefusedError``."""


def refusal_of_login(mechanism: str, why: str = "") -> ProtocolViolation:
    """In RabbitMQ's words, which name no method. A mechanism that nobody has is not repeated: what stands in
    its place may be anything."""
    name = mechanism if is_mechanism(mechanism) else "of another name"
    return ProtocolViolation(403, f"Login was refused using authentication mechanism {name}{why}")

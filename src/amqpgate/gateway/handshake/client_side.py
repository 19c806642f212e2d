"""The client's half of a set-up: what it is told and asked, in step with the connection's state table.

`passthrough` and `late_binding` differ in when the broker is there to say its half.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Final, NoReturn, TypeVar

import attrs

from amqpgate.bridge import NATIVE, for_product
from amqpgate.config import Listener, Upstream
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.handshake.admission import AdmissionStage
from amqpgate.gateway.handshake.agreements import settled
from amqpgate.gateway.handshake.context import HandshakeContext
from amqpgate.gateway.handshake.identities import TOKEN_MARK
from amqpgate.gateway.handshake.pending import PendingHandshake, Silence
from amqpgate.gateway.handshake.timing import HandshakeTiming
from amqpgate.gateway.identity.tokens import VerifiedToken
from amqpgate.gateway.session.session_token import SessionToken, applied
from amqpgate.gateway.transport.caller import Caller
from amqpgate.gateway.transport.conversation import await_close_ok, say_close
from amqpgate.gateway.transport.method_stream import MethodStream, StreamClosedError
from amqpgate.gateway.transport.repeated import START_FRAMES, Derived
from amqpgate.gateway.transport.waiting import move_on_after
from amqpgate.gateway.upstream.client import RefusedError
from amqpgate.gateway.upstream.redaction import without_login
from amqpgate.policy import Principal, SelectedPolicies
from amqpgate.protocol.handshake import SILENT_STATES, ConnectionState, Tune, step
from amqpgate.protocol.methods import Role
from amqpgate.protocol.sasl import AMQPLAIN, EXTERNAL, PLAIN, credentials
from amqpgate.values import define, frozen
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table

M = TypeVar("M", bound=Method)

# To look a member of an enum up takes Python 3.11 a Python-level detour each time.
_CLIENT: Final = Role.CLIENT
_SERVER: Final = Role.SERVER
_OPEN: Final = AdmissionStage.OPEN
_GREETED: Final = Silence.GREETED
_NAMED: Final = Silence.NAMED
#: By which brokers refuse a login, or its virtual host.
_OF_LOGINS: Final = frozenset({402, 403, 530})
#: Letters of the name that a client claims to have.
_LONGEST_NAME: Final = 255


@frozen
class ClientProperties:
    """What a client says of itself."""

    #: As far as it is text.
    texts: Mapping[str, str]
    #: What it says that it understands.
    capabilities: frozenset[str]
    #: Whether a client of AMQP 0-9-1 that says so of itself speaks it as RabbitMQ has it.
    is_native: bool


def _read(properties: Table) -> ClientProperties:
    plain = properties.to_python()
    can = plain.get("capabilities")
    names = [name for name, value in can.items() if value is True] if isinstance(can, dict) else []
    texts = {key: value for key, value in plain.items() if isinstance(value, str)}
    return ClientProperties(texts, frozenset(names), for_product(NATIVE, properties) is NATIVE)


#: What clients say of themselves, by their properties.
SAID: Final = Derived(_read)


@define
class ClientHandshake:
    """One client, from its protocol header to open-ok.

    All of it may raise ``StreamClosedError``, and what hears the client ``ProtocolViolation``.
    """

    context: HandshakeContext
    caller: Caller
    listener: Listener
    hop: MethodStream
    #: Among those that are not logged in yet.
    pending: PendingHandshake
    #: Where it is noted how far the handshake has come; None: nowhere.
    timing: HandshakeTiming | None = None
    #: Where the conversation stands.
    state: ConnectionState = attrs.field(default=ConnectionState.GREETED, init=False)
    #: Those that select it, since its virtual host may be opened.
    policies: SelectedPolicies = attrs.field(init=False)
    #: How it logs in; a password is in there.
    start_ok: amqp.ConnectionStartOk = attrs.field(init=False, repr=False)
    #: What the client says of itself, as far as it is text.
    said: Mapping[str, str] = attrs.field(factory=dict, init=False)
    #: What it says that it understands, such as consumer_cancel_notify.
    capabilities: frozenset[str] = attrs.field(default=frozenset(), init=False)
    #: What it logs in by, verified; None: by something else.
    token: VerifiedToken | None = attrs.field(default=None, init=False)

    @property
    def is_silent(self) -> bool:
        """Whether a refusal is told by hanging up now, as RabbitMQ does. Brokers of AMQP 0-10 say close."""
        return self.is_logging_in and self.hop.translated is None

    @property
    def is_logging_in(self) -> bool:
        """Whether a broker that hangs up now refuses the login."""
        return self.state in SILENT_STATES

    def hang_up(self, violation: ProtocolViolation) -> NoReturn:
        """Raise ``RefusedError`` for the violation where RabbitMQ hangs up, too; else raise it, to be
        answered."""
        if self.is_silent:
            raise RefusedError(str(violation)) from violation
        raise violation

    def principal(self, user: str | None, vhost: str, upstream_user: str | None = None) -> Principal:
        """Who it is, as far as it has said so."""
        principal = self.caller.principal(self.listener, user, vhost, self.said, upstream_user)
        return principal if self.token is None else applied(self.token, principal)

    def mark(self, stage: str) -> None:
        """A stage of the set-up is over."""
        if self.timing is not None:
            self.timing.mark(stage)

    # -- to and fro ---------------------------------------------------------------------------

    async def say(self, method: Method) -> None:
        self.state = step(self.state, _SERVER, type(method)) or self.state
        await self.hop.send_method(method)

    async def say_usual(self, method: type[Method], *values: object) -> None:
        """As `say`, of a method of which most connections have the same: `MethodStream.frame_with`."""
        self.state = step(self.state, _SERVER, method) or self.state
        await self.hop.send(self.hop.frame_with(method, *values))

    async def say_start(self, start: amqp.ConnectionStart) -> None:
        self.context.pending.awaits(self.pending, _GREETED)
        if self.hop.interpreter is not NATIVE:
            await self.say(start)
            return
        self.state = step(self.state, _SERVER, amqp.ConnectionStart) or self.state
        await self.hop.send(START_FRAMES.of(start))

    async def hear(self, expected: type[M]) -> M:
        """The client's next method. Raises ``RefusedError`` where it is connection.close."""
        method = await self.hop.next_method()
        if isinstance(method, amqp.ConnectionClose):
            with move_on_after(self.context.settings.limits.close_timeout):
                await self.hop.send_method(amqp.ConnectionCloseOk())
                await self.hop.linger()
            raise RefusedError("client closed while the connection opened")
        self.state = step(self.state, _CLIENT, type(method)) or self.state
        assert isinstance(method, expected), "the table leaves the client one method in each state"
        return method

    async def hear_start_ok(self) -> amqp.ConnectionStartOk:
        """With it the client says who it is.

        An empty response to PLAIN or AMQPLAIN asks for a challenge; RabbitMQ has none.
        """
        start_ok = await self.hear(amqp.ConnectionStartOk)
        if start_ok.mechanism in (PLAIN, AMQPLAIN) and not start_ok.response:
            answer = await self.challenge(amqp.ConnectionSecure())
            start_ok = attrs.evolve(start_ok, response=answer.response)
        else:
            self.context.pending.awaits(self.pending, None)
        self._introduce(start_ok)
        if self.context.identities is not None:
            self.token = await self.context.identities.token_of(self)
        elif TOKEN_MARK in start_ok.response:
            self.context.unverified.look(start_ok.response)
        if self.timing is not None:
            self.timing.mark("start-ok")
        return start_ok

    def _introduce(self, start_ok: amqp.ConnectionStartOk) -> None:
        """The client has said who it is."""
        properties = start_ok.client_properties
        # Those that are known are said again and again.
        said = _read(properties) if properties.encodings is None else SAID.of(properties)
        if self.hop.translated is None and not (said.is_native and self.hop.interpreter is NATIVE):
            found = for_product(self.hop.interpreter, properties)
            if found is not self.hop.interpreter:
                self.hop.speak(found)
        self.said, self.capabilities = said.texts, said.capabilities
        self.start_ok = start_ok

    async def challenge(self, secure: amqp.ConnectionSecure) -> amqp.ConnectionSecureOk:
        """What it answers."""
        self.context.pending.awaits(self.pending, _NAMED)
        await self.say(secure)
        answer = await self.hear(amqp.ConnectionSecureOk)
        self.context.pending.awaits(self.pending, None)
        return answer

    async def hear_open(self) -> amqp.ConnectionOpen:
        """What it asks for, behind its tune-ok."""
        request = await self.hear(amqp.ConnectionOpen)
        self.context.pending.awaits(self.pending, None)
        return request

    async def tune(self, offer: Tune, *, is_said: bool = False) -> Tune:
        """What holds on the client's hop. ``is_said``: it has heard the offer."""
        self.context.pending.awaits(self.pending, _NAMED)
        if not is_said:
            await self.say_usual(amqp.ConnectionTune, offer.channel_max, offer.frame_max, offer.heartbeat)
        answer = await self.hear(amqp.ConnectionTuneOk)
        if self.timing is not None:
            self.timing.mark("tune-ok")
        try:
            return settled(offer, answer)
        except ProtocolViolation as violation:
            # RabbitMQ hangs up here, too.
            raise RefusedError(str(violation)) from violation

    def resume(
        self,
        state: ConnectionState,
        start_ok: amqp.ConnectionStartOk | None,
        opening: tuple[amqp.ConnectionOpen, SelectedPolicies] | None,
    ) -> None:
        """The conversation stands there. It was led elsewhere so far."""
        self.state = state
        if start_ok is not None:
            self._introduce(start_ok)
        if opening is not None:
            self.policies = opening[1]

    # -- whether it may come in ---------------------------------------------------------------

    async def admit_login(self, user: str | None) -> None:
        """Wait until the client may log in as ``user``, or refuse it."""
        if self.context.policies.limit_strangers:
            await self.admit(AdmissionStage.LOGIN, self.principal(user, ""), amqp.ConnectionStartOk)

    async def admit(self, stage: AdmissionStage, principal: Principal, method: type[Method]) -> None:
        """Wait until the client may come in, or refuse it. ``method`` is what it asks with."""
        why_not = await self.why_not(stage, principal, method)
        if why_not is not None:
            await self.refuse(why_not)

    async def why_not(
        self, stage: AdmissionStage, principal: Principal, method: type[Method]
    ) -> ProtocolViolation | None:
        """Wait until the client may come in: None; or its refusal, of which it has not been told."""
        context, session = self.context, self.caller.session_id
        if stage is _OPEN:
            selected = self.policies = await context.policies.prepared(principal, session)
            denied = context.policies.why_not_open(selected)
            if denied is not None:
                return _refusal_of(method, 530, denied)
        else:
            stranger = context.policies.of_stranger(principal, session)
            if stranger is None:
                return None
            selected = stranger
        over = await context.admission.enter(stage, selected)
        return None if over is None else _refusal_of(method, over.code, over.text)

    async def refuse(self, why: ProtocolViolation) -> NoReturn:
        """Tell the client why, and raise ``RefusedError``."""
        with move_on_after(self.context.settings.limits.close_timeout):
            await say_close(self.hop, why)
        raise RefusedError(why.text, code=why.code)

    async def pass_on(self, refusal: amqp.ConnectionClose, broker: MethodStream | None = None) -> NoReturn:
        """The broker refuses: tell the client in its words, unless they may quote the login, and raise
        ``RefusedError``. ``broker``, if it is still to be answered."""
        refusal = without_login(refusal)
        with move_on_after(self.context.settings.limits.close_timeout):
            await self.hop.send_method(refusal)
            if broker is not None:
                with contextlib.suppress(StreamClosedError):
                    await broker.send_method(amqp.ConnectionCloseOk())
            await await_close_ok(self.hop)
            await self.hop.linger()
        why = f"upstream refused: {refusal.reply_code} {refusal.reply_text}"
        of_login = refusal.reply_code in _OF_LOGINS and getattr(self, "start_ok", None) is not None
        raise RefusedError(why, code=refusal.reply_code, of_login=of_login)


def claimed_by(client: ClientHandshake) -> Principal:
    """Who a client says it is, as far as it has: nobody need have verified that."""
    selected: SelectedPolicies | None = getattr(client, "policies", None)
    if selected is not None:
        return selected.principal
    start_ok: amqp.ConnectionStartOk | None = getattr(client, "start_ok", None)
    if start_ok is None:
        return client.principal(None, "")
    if client.token is not None:
        return client.principal(client.token.user, "")
    if start_ok.mechanism == EXTERNAL:
        return client.principal(client.caller.tls_name or None, "")
    try:
        login = credentials(start_ok.mechanism, start_ok.response)
    except ProtocolViolation:
        login = None
    return client.principal(None if login is None else login.user[:_LONGEST_NAME], "")


def session_token_of(client: ClientHandshake, settings: Upstream) -> SessionToken | None:
    """What a client's session goes by at a broker; None: by no token that was verified."""
    identities, token = client.context.identities, client.token
    if identities is None or token is None:
        return None
    return identities.session_token(client.listener, token, is_passed_on=not settings.has_login)


def upstream_user_of(client: ClientHandshake, settings: Upstream, user: str | None) -> str | None:
    """The user that the broker is told; None where it sees a certificate, or only it can tell."""
    if settings.user is not None:
        return settings.user
    return None if client.start_ok.mechanism == EXTERNAL else user


def _refusal_of(method: type[Method], code: int, text: str) -> ProtocolViolation:
    """A refusal that names what was asked for."""
    return ProtocolViolation(code, text, class_id=method.CLASS_ID, method_id=method.METHOD_ID)

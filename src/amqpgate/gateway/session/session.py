"""One established session's control plane: it answers the data path's upcalls.

Synchronous throughout: an upcall decides, queues what is to be sent, and returns. Set-up and
tear-down, which wait, are in ``registry`` and ``teardown``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import attrs

from amqpgate.bridge import Interpreter
from amqpgate.datapath.engine import BufferedSocket, End, HandedOverSocket, Pump
from amqpgate.datapath.relay import Relay
from amqpgate.datapath.tables import Side
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.limits.token_buckets import SessionLimits
from amqpgate.gateway.session.channel_close import SessionChannels, unheard
from amqpgate.gateway.session.channel_flow import ChannelFlows
from amqpgate.gateway.session.claiming import Claiming
from amqpgate.gateway.session.consumers import Consumers
from amqpgate.gateway.session.observer import Sees, SessionObserver
from amqpgate.gateway.session.publish import PublishHandler
from amqpgate.gateway.session.rewriter import Rewriter
from amqpgate.gateway.session.session_end import NOT_ENDED, CloseState, SessionEnd, SessionOutcome
from amqpgate.gateway.session.session_policies import SessionPolicies, changes_deliveries
from amqpgate.gateway.session.session_token import SessionToken
from amqpgate.gateway.session.upstream import OwnUpstream, SessionUpstream
from amqpgate.gateway.session.version_bridge import VersionBridge
from amqpgate.policy import Choice, Principal, SessionAccess
from amqpgate.values import define, frozen


@frozen(eq=False, weakref_slot=False)
class SessionFacts:
    """What is known of a session when it begins, and stays. Like sessions share it (`registry`)."""

    #: Of the client and of the broker, by ``Side``.
    interpreters: tuple[Interpreter, Interpreter]
    channel_max: int
    #: Whether the client understands basic.cancel.
    hears_cancels: bool = False
    #: The route that it was opened by; None: none.
    choice: Choice | None = None
    #: The name of the cluster that its broker is of.
    cluster: str = ""
    #: Whether channel.flow off is done here for a client of 0-9-1, too.
    keeps_deliveries: bool = False
    #: Whether commands are numbered by both peers, so that none can be left out: a denial ends its session.
    is_relayed: bool = False
    #: Whether the client understands connection.blocked.
    hears_blocked: bool = False

    @property
    def is_native(self) -> bool:
        """Whether both peers speak AMQP 0-9-1, and not what is translated to it."""
        are_native = all(interpreter.is_native for interpreter in self.interpreters)
        return are_native and not self.interpreters[Side.CLIENT].has_sessions

    def version(self, side: Side) -> str:
        """The version of AMQP that a peer speaks, such as "0-9-1"."""
        return self.interpreters[side].version.removeprefix("AMQP ")


@define(eq=False, weakref_slot=False)
class Session:
    """The handler of one relay."""

    id: str
    facts: SessionFacts
    session_policies: SessionPolicies
    #: Called once, when the session has left the data path. No task waits for that meanwhile.
    on_over: Callable[[Session], None]
    #: None: it has not logged in by a token that the gateway has verified.
    token: SessionToken | None = None
    #: None while nothing need be translated, or done in the broker's place.
    bridge: VersionBridge | None = attrs.field(default=None, init=False)
    #: Its way to the broker, and the relay that goes that way.
    upstream: SessionUpstream = attrs.field(init=False)
    relay: Relay = attrs.field(init=False)
    channels: SessionChannels = attrs.field(init=False)
    publishes: PublishHandler = attrs.field(init=False)
    end: SessionEnd = attrs.field(default=NOT_ENDED, init=False)

    @property
    def principal(self) -> Principal:
        return self.session_policies.principal

    @property
    def limits(self) -> SessionLimits:
        return self.session_policies.limits

    @property
    def rewriter(self) -> Rewriter | None:
        return self.session_policies.rewriter

    @property
    def claims(self) -> Claiming | None:
        """Bodies that go to an object store; None: no compatibility policy has had one for it yet."""
        return self.session_policies.claims

    @property
    def closing(self) -> CloseState:
        """How far an agreed close has come."""
        return self.end.state

    @property
    def outcome(self) -> SessionOutcome:
        """Why it left the data path."""
        return self.end.outcome

    @property
    def consumers(self) -> Consumers:
        """Made for each use, which is rare. What is remembered of consumers is their channels'."""
        return Consumers(self.relay, self.channels, self.facts.hears_cancels, self.session_policies)

    @property
    def reads_sent(self) -> bool:
        """Whether the headers of messages that the client gets are needed, too."""
        policies, bridge = self.session_policies, self.bridge
        if policies.claims is not None or changes_deliveries(policies):
            return True
        return bridge is not None and (bridge.maps(Side.UPSTREAM) or bool(bridge.channel_flows))

    def judge_by(self, access: SessionAccess, limits: SessionLimits) -> None:
        """From the next message on, other policies hold. A message under way ends as it began."""
        self.session_policies.judge_by(access, limits)
        self.publishes.follow_limits()
        self._set_flows()
        self.consumers.review_all()
        self.relay.pump.retry(self.relay)

    def observe(self, observers: tuple[SessionObserver, ...]) -> None:
        """These look on from now on: each message is looked at anew."""
        self.session_policies.observed_by(observers)
        self._set_flows()

    def _set_flows(self) -> None:
        """Flows where messages may have to be judged; those that there are were other policies'."""
        session_policies = self.session_policies
        to_broker, to_client = [endpoint.lane for endpoint in self.relay.endpoints]
        seen, shows_content = session_policies.sees, self.reads_sent
        up = session_policies.is_restricted or self.upstream.watches_publishes
        # What may change a delivery reads its header.
        down = shows_content or session_policies.judges_deliveries
        if self.bridge is not None:
            up = up or self.bridge.refuses_immediate or self.bridge.maps(Side.CLIENT)
        if session_policies.watchers:
            up, down = up or Sees.PUBLISHES in seen, down or Sees.DELIVERIES in seen
            shows_content = shows_content or Sees.CONTENT in seen
        if to_client.shows_content and not shows_content:
            unheard(self.channels)
        to_client.shows_content = shows_content
        if self.facts.is_relayed:
            _read_headers(self.relay, up, down or shows_content)
        for lane, has_flows in ((to_broker, up), (to_client, down)):
            lane.use_flows(has_flows)

    def enter(self, upstream: SessionUpstream, pump: Pump) -> None:
        """Put the session on the data path. It has its flows once it is observed."""
        self.upstream = upstream
        relay = self.relay = upstream.relay
        self.channels = SessionChannels(relay, relay.channels, upstream=upstream)
        self.publishes = PublishHandler(self.channels, self.session_policies, closes=self.facts.is_relayed)
        rewriter = self.session_policies.rewriter
        if rewriter is not None:
            rewriter.enter(relay)
        if not all(interpreter.is_native for interpreter in self.facts.interpreters):
            self.build_bridge()
        pump.add(relay)

    def move_to_own(self, hop: HandedOverSocket, channels: Iterable[int]) -> None:
        """Leave the upstream for a connection of the session's own, where these channels of the client's are
        open under its numbers, in confirm mode or not."""
        self.upstream.leave()
        self.relay.pump.exchange(self.relay, hop)
        self.upstream = OwnUpstream(self.relay)
        # The new connection numbers confirms anew.
        self.channels.move_to(self.upstream, channels)
        if self.claims is not None:
            self.claims.follow()
        for observer in self.session_policies.observers:
            observer.moved()

    def build_bridge(self) -> VersionBridge:
        """The bridge that there is, or a new one."""
        if self.bridge is None:
            channel_flows = ChannelFlows(
                self.channels,
                self._set_flows,
                lambda number: (
                    Sees.SETTLES in self.session_policies.sees
                    or (self.claims is not None and number in self.claims.deliveries.hidden)
                ),
                lambda number: None if self.claims is None else self.claims.deliveries.hidden.first(number),
            )
            self.bridge = VersionBridge(
                self.relay,
                self.facts.interpreters,
                self.publishes.publish_denial,
                channel_flows,
                self.consumers.is_sending,
                self.facts.keeps_deliveries,
            )
        return self.bridge

    def show_nacks(self) -> None:
        """Show what the client gives back, where the policies have it count (`requeue`)."""
        profile = self.session_policies.compatibility
        if profile is not None and profile.counts_nacks:
            self.relay.up.shows_nacks = True

    def asks_close(self, side: Side) -> None:
        """``side`` asks to close the connection."""
        self.end = self.end.asked(side)

    def close_answered(self, side: Side) -> None:
        """``side`` has its answer to that."""
        self.end = self.end.answered(side)

    def fail(self, why: ProtocolViolation, side: Side = Side.CLIENT) -> None:
        """End the session because of what ``side`` does."""
        self.end = self.end.failed(side, why)
        self.relay.finish()

    def left(self, end: End, side: Side | None, error: Exception | None) -> None:
        """It has left the data path."""
        self.end = self.end.left(end, side, error)
        for observer in self.session_policies.observers:
            observer.ended()
        if self.claims is not None:
            self.claims.end()
        try:
            # Now: until it has left its channels, what comes on them is nobody's.
            self.upstream.leave()
        finally:
            self.on_over(self)

    def release(self) -> None:
        """It is over, and its sockets are closed.

        What it was made of is no cycle any more, so all of it is gone when nobody has it: Python may not look
        for cycles for hours. What only some sessions have may still be one, so what grows with the routing
        keys that the client used is freed in any case.
        """
        self.session_policies.release()
        self.relay.up.use_flows(False)
        self.relay.down.use_flows(False)
        if self.bridge is not None:
            self.bridge.release()
            self.bridge = None
        if not self.upstream.is_transparent:
            # What it was to its pool leads back to it.
            self.upstream = OwnUpstream(self.relay)
            self.channels.move_to(self.upstream, ())
        self.relay.release()


def _read_headers(relay: Relay, *are_read: bool) -> None:
    """Whether anybody looks at the headers of messages, by the side that they come from."""
    for endpoint, is_read in zip(relay.endpoints, are_read, strict=True):
        if isinstance(endpoint.sock, BufferedSocket):
            endpoint.sock.read_headers(is_read)

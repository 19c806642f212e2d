"""Which policies hold for one session now, what they say of its operations, and who is told."""

from __future__ import annotations

from functools import partial
from typing import Final

import attrs

from amqpgate.datapath.scanner import Flow, HeaderRules
from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.limits.sampler import Sampler, Sampling
from amqpgate.gateway.limits.token_buckets import SessionLimits
from amqpgate.gateway.session.claiming import Claiming
from amqpgate.gateway.session.compatibility import Adapted, adapted
from amqpgate.gateway.session.delays import Delays
from amqpgate.gateway.session.durable_instead import DurableInstead
from amqpgate.gateway.session.header_rules import header_rules
from amqpgate.gateway.session.observer import Denial, Message, RuleKey, Sees, SessionObserver
from amqpgate.gateway.session.operation_limits import Happened
from amqpgate.gateway.session.rewriter import Rewriter, refusal_of
from amqpgate.policy import (
    Compatibility,
    Operation,
    Peek,
    Principal,
    SessionAccess,
    SharedLimit,
    Transform,
    Verdict,
)
from amqpgate.policy.engine.naming import NotTransformedError
from amqpgate.policy.kinds.access import ACCESS
from amqpgate.values import define
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

_NOTHING: Final = Sees.NOTHING


@define(eq=False, weakref_slot=False)
class SessionPolicies:
    """The policies and the observers of one session. What it holds changes in place when the policies do."""

    principal: Principal
    access: SessionAccess
    limits: SessionLimits
    #: None: no transform policy selects the session.
    rewriter: Rewriter | None = attrs.field(default=None, init=False)
    #: None: no compatibility policy holds for the session.
    compatibility: Compatibility | None = attrs.field(default=None, init=False)
    #: None: it has declared no queue under a compatibility policy.
    durable_instead: DurableInstead | None = attrs.field(default=None, init=False)
    #: None: no exchange delays messages for the session.
    delays: Delays | None = attrs.field(default=None, init=False)
    #: None: no compatibility policy has had an object store for it yet.
    claims: Claiming | None = attrs.field(default=None, init=False)
    #: Who looks on, in the order in which they are told.
    observers: tuple[SessionObserver, ...] = attrs.field(default=(), init=False)
    #: Those of them that see messages, and what of these.
    watchers: tuple[SessionObserver, ...] = attrs.field(default=(), init=False)
    sees: Sees = attrs.field(default=_NOTHING, init=False)
    #: None: nobody has chosen among its messages yet.
    sampling: Sampling | None = attrs.field(default=None, init=False)

    def judge_by(
        self, access: SessionAccess, limits: SessionLimits, principal: Principal | None = None
    ) -> None:
        """Other policies hold from now on; ``principal``: for another one than before."""
        self.access, self.limits = access, limits
        self.principal = principal or self.principal

    def observed_by(self, observers: tuple[SessionObserver, ...]) -> None:
        """These look on from now on, or need to see other messages than before."""
        self.observers = observers
        self.sees, watchers = _NOTHING, []
        for observer in observers:
            what = observer.sees() if "sees" in observer.hooks else _NOTHING
            # To join or to ask what an enum's flags are takes Python longer than all else here.
            if what is not _NOTHING:
                watchers.append(observer)
                self.sees |= what
        self.watchers = tuple(watchers)

    def release(self) -> None:
        """The session is over: what grows with its routing keys, or leads back to it, is not needed."""
        self.sampling, self.claims, self.observers, self.watchers = None, None, (), ()
        if self.rewriter is not None:
            self.rewriter.release()

    def transform_by(self, transform: Transform) -> Rewriter:
        """The session's messages are changed so, from now on."""
        self.rewriter = Rewriter(transform, self.principal, self.not_transformed, partial(tell_used, self))
        return self.rewriter

    def adapt_by(self, compatibility: Compatibility | None, claims: Claiming | None = None) -> None:
        """The session's requests are adapted so, from now on.

        ``claims``: its bodies may go to an object store, and come from there; None: as before.
        """
        self.compatibility = compatibility
        delaying = compatibility if compatibility is not None and compatibility.delayed_exchanges else None
        if delaying is None and (self.delays is None or not self.delays.is_holding):
            self.delays = None
        elif self.delays is None:
            self.delays = Delays(delaying)
        else:
            # A message that is under way to the client ends as it began.
            self.delays.follow(delaying)
        self.claims = claims or self.claims

    def change(self, channel: int, method: Method, last_queue: str) -> Method:
        """What the broker gets for a method, which is no publish. Raises `ProtocolViolation`."""
        changed = method
        if self.rewriter is not None:
            changed = self.rewriter.method(channel, method, last_queue)
        if self.compatibility is None:
            return changed
        try:
            result = adapted(self.compatibility, changed, self.principal.vhost)
        except NotTransformedError as error:
            self.not_transformed(channel, method, error)
            raise refusal_of(error, channel, method) from None
        if isinstance(method, amqp.QueueDeclare):
            self.durable_instead = self.durable_instead or DurableInstead()
            self.durable_instead.declared(channel, method, result.method)
        if result.items:
            tell_adapted(self, channel, method, result)
        return result.method

    @property
    def is_restricted(self) -> bool:
        """Whether there is any publish that may not pass, or not at once, or not unchanged."""
        if self.limits.limits_publishes or not self.access.is_unrestricted:
            return True
        changes = self.rewriter is not None and self.rewriter.transform.changes_messages
        return changes or changes_headers(self)

    @property
    def judges_deliveries(self) -> bool:
        """Whether there is any delivery that may have to wait. Who may have to change one is asked apart."""
        return self.limits.limits_deliveries

    def peek(self, message: Message, peek: Peek | None) -> Peek | None:
        """Which messages like this one must be shown; ``peek`` is what others want to see."""
        for observer in self.watchers:
            seen = observer.admits(message)
            if seen is not None:
                peek = (peek or Peek()) | seen
        return peek

    def meter(self, message: Message, flow: Flow) -> None:
        """The flow of messages like this one is about to be installed."""
        for observer in self.watchers:
            observer.meters(message, flow)
        if flow.samples >= 0 and not all(
            observer.part in (flow.notes or {})
            for observer in self.watchers
            if any(sampler.every for sampler in observer.samplers(message, flow))
        ):
            # Who chooses, and captures nothing, has to be shown them.
            flow.show_samples()
        samplers = self._samplers(message, flow)
        if samplers:
            self.sampling = self.sampling or Sampling()
            self.sampling.enlist(flow, samplers)

    def show(self, message: Message, flow: Flow, *, is_apart: bool = False) -> tuple[int, bool]:
        """A message is shown, ``is_apart`` where that is not because its flow says so.

        How many messages it stands for among which observers choose, and whether its header must be read.
        """
        samplers = self._samplers(message, flow)
        weight = int(bool(samplers))
        if samplers and not is_apart:
            weight = 0 if self.sampling is None else self.sampling.weigh(flow, samplers)
        is_read = False
        for observer in self.watchers:
            is_read |= observer.shows(message, flow, weight, samplers)
        return weight, is_read

    def _samplers(self, message: Message, flow: Flow) -> list[Sampler]:
        """Who chooses among the messages of a flow now."""
        return [
            sampler
            for observer in self.watchers
            for sampler in observer.samplers(message, flow)
            if sampler.every
        ]

    def judge(self, operation: Operation) -> Verdict:
        """What is decided of it. Observers are told of all but a denial, which is for ``denied``."""
        verdict = self.access.enforced.decide(operation)
        if verdict.allowed:
            self._allowed(operation, verdict)
        if self.access.shadow is not None:
            shadow = self.access.shadow.decide(operation)
            if shadow.effect != verdict.effect:
                for observer in self.observers:
                    observer.would_differ(operation, shadow)
        return verdict

    def admit(self, operation: Operation) -> tuple[Verdict, Peek | None, HeaderRules | None]:
        """Whether publishes with these arguments may pass, and which of them must be judged one by one.

        Those of them that surely pass the rules need not be shown, unless `ALWAYS_PEEKED` means them.
        """
        admission = self.access.enforced.admit(operation)
        verdict, peek, rules = admission.verdict, admission.peek, admission.rules
        if not verdict.allowed:
            return verdict, peek, None
        self._allowed(operation, verdict)
        if self.access.shadow is None:
            asked = None if rules is None else header_rules(rules, None, peek or Peek())
            return verdict, peek, asked
        # What would be denied, or only might be, is judged message by message, and so counted.
        shadow = self.access.shadow.admit(operation)
        peek = (peek or Peek()) | (shadow.peek or Peek(always=not shadow.verdict.allowed))
        if not shadow.verdict.allowed:
            return verdict, peek, None
        return verdict, peek, header_rules(rules, shadow.rules, peek)

    # -- what observers are told -------------------------------------------------------------

    def _allowed(self, operation: Operation, verdict: Verdict) -> None:
        for observer in self.observers:
            observer.allowed(operation, verdict)

    def holds_up(self, method: Method) -> bool:
        """Whether an observer has a client's method wait, until the session is retried."""
        holds_up = False
        for observer in self.watchers:
            if observer.may_hold_up:
                holds_up |= observer.holds_up(method)
        return holds_up

    def denied(self, denial: Denial) -> None:
        """A policy denies an operation, or a limit rejects it."""
        for observer in self.observers:
            if denial.is_limit:
                observer.rejected(denial)
            else:
                observer.denied(denial)

    @staticmethod
    def channel_error(denial: Denial, method: Method) -> ProtocolViolation:
        """What closes the channel of the client whose method is denied."""
        return ProtocolViolation(
            403,
            denial.text,
            class_id=method.CLASS_ID,
            method_id=method.METHOD_ID,
            channel=denial.channel,
        )

    def limited(self, limit: SharedLimit, happened: Happened) -> None:
        """A limit did something, or would have."""
        for observer in self.observers:
            observer.limited(limit, happened)

    def not_transformed(self, channel: int, method: Method, why: NotTransformedError) -> None:
        """A transform policy denies what it cannot, or may not, change."""
        for observer in self.observers:
            observer.not_transformed(channel, method, why)


def tell_used(policies: SessionPolicies, rule: RuleKey, flow: Flow | None = None) -> None:
    """A rule has decided about a request, or about all messages of ``flow``: its observers are told.

    An access policy's decisions are told by `SessionPolicies.judge`.
    """
    for observer in policies.observers:
        if rule[0] != ACCESS.name:
            observer.used(rule)
        if flow is not None:
            observer.carries(rule, flow)


def tell_adapted(policies: SessionPolicies, channel: int, method: Method, result: Adapted) -> None:
    """The compatibility policy changes a client's method: its observers are told."""
    assert policies.compatibility is not None
    for observer in policies.observers:
        observer.adapted(channel, method, policies.compatibility.policy, result)


def may_delay(policies: SessionPolicies, exchange: str) -> bool:
    """Whether messages for an exchange, by the client's name, may be delayed."""
    if policies.delays is None:
        return False
    naming = None if policies.rewriter is None else policies.rewriter.transform.naming
    return policies.delays.delays(exchange if naming is None else naming.exchange_up(exchange))


def changes_headers(policies: SessionPolicies) -> bool:
    """Whether headers of messages may have to be changed, to and fro, for a client of another broker."""
    compatibility = policies.compatibility
    return policies.delays is not None or (compatibility is not None and compatibility.counts_deaths)


def changes_deliveries(policies: SessionPolicies) -> bool:
    """Whether messages to the client may have to be changed."""
    rewriter = policies.rewriter
    return (rewriter is not None and rewriter.transform.naming is not None) or changes_headers(policies)

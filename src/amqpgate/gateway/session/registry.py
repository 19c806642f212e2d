"""The established sessions of a gateway: put on the data path, observed, judged anew, and forgotten."""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Iterable, Mapping, Sequence
from functools import partial
from typing import Final, Protocol

import attrs
import trio

from amqpgate.config import Settings
from amqpgate.datapath.engine import End, Pump, RelayEndpoint
from amqpgate.datapath.scanner import FlowTable
from amqpgate.datapath.tables import Side
from amqpgate.errors import Forced, ProtocolViolation
from amqpgate.gateway.limits.token_buckets import TokenBuckets
from amqpgate.gateway.session.claims import ClaimChecks
from amqpgate.gateway.session.close_session import ForcedCloses
from amqpgate.gateway.session.established import Established
from amqpgate.gateway.session.observer import SessionObserver
from amqpgate.gateway.session.policy_compiling import PolicyCompiler
from amqpgate.gateway.session.session import Session, SessionFacts
from amqpgate.gateway.session.session_policies import SessionPolicies
from amqpgate.gateway.session.teardown import Parting, outcome_of
from amqpgate.gateway.transport.fibers import Fibers
from amqpgate.gateway.transport.tasks import contained
from amqpgate.logs import log_failure
from amqpgate.policy import (
    PolicySet,
    Principal,
    SelectedPolicies,
    SessionAccess,
    SessionDeniedError,
)
from amqpgate.policy.kinds.compatibility import for_upstream
from amqpgate.telemetry.faults import FAULTS
from amqpgate.values import define, frozen

log = logging.getLogger(__name__)

# To look a member of an enum up takes Python 3.11 a detour each time.
_GONE: Final = End.GONE

#: So many kinds of sessions are known to be alike, those that were new last. Sessions keep their own.
MOST_KINDS: Final = 256

#: Characters that a client says of itself. Who says more shares nothing, so that `MOST_KINDS` take little.
LONGEST_CLIENT: Final = 1024


@define(eq=False)
class SharedFacts:
    """What sessions have in common, kept once.

    The connections of one application differ in their ids and ports: who they are and what their handshakes
    settled is equal. Of idle ones that was 0.6 KiB each.
    """

    _kinds: dict[Hashable, tuple[Principal, SessionFacts]] = attrs.field(factory=dict, init=False)
    #: The same by the ids of what they were made of, which is kept with them: to compare it takes as long as
    #: to make it.
    _again: dict[Hashable, tuple[tuple[Principal, SessionFacts], tuple[object, ...]]] = attrs.field(
        factory=dict, init=False
    )

    def opening(self, principal: Principal, established: Established) -> tuple[Principal, SessionFacts]:
        """Those of a session that is about to begin."""
        interpreters, choice = established.interpreters, established.choice
        capabilities = established.capabilities
        key = (
            id(principal),
            id(interpreters),
            id(capabilities),
            id(choice),
            established.channel_max,
            established.cluster,
            established.keeps_deliveries,
            established.is_relayed,
        )
        again = self._again.get(key)
        if again is not None:
            return again[0]
        facts = SessionFacts(
            interpreters,
            established.channel_max,
            "consumer_cancel_notify" in capabilities,
            choice,
            established.cluster,
            established.keeps_deliveries,
            established.is_relayed,
            "connection.blocked" in capabilities,
        )
        both = self.of(principal, facts)
        if both[1] is not facts:
            # There was one like it before: more may come.
            if len(self._again) >= MOST_KINDS:
                self._again.clear()
            self._again[key] = both, (principal, interpreters, capabilities, choice)
        return both

    def of(self, principal: Principal, facts: SessionFacts) -> tuple[Principal, SessionFacts]:
        """These, or those of an earlier session that is like this one in all."""
        both, said, choice = (principal, facts), principal.client, facts.choice
        if not all(interpreter.is_native for interpreter in facts.interpreters):
            # It remembers what its own peer said: no other session has it.
            return both
        if sum(map(len, (principal.user or "", *said, *said.values()))) > LONGEST_CLIENT:
            return both
        # Principals that differ in the user of the broker, or what the client says, may be equal or have one
        # hash. An id is one object's for as long as the facts are kept, which hold that object.
        key = (
            principal,
            principal.upstream_user,
            frozenset(said.items()),
            *map(id, facts.interpreters),
            facts.channel_max,
            facts.hears_cancels,
            facts.keeps_deliveries,
            facts.is_relayed,
            facts.cluster,
            facts.hears_blocked,
            None if choice is None else (choice.policy, choice.cluster, id(choice.route)),
        )
        known = self._kinds.get(key)
        if known is not None:
            return known
        if len(self._kinds) >= MOST_KINDS:
            del self._kinds[next(iter(self._kinds))]
        self._kinds[key] = both
        return both


class ObserverFactory(Protocol):
    """One per gateway and kind of observer."""

    @property
    def part(self) -> str:
        """That of its observers."""

    def looks_on(self, policies: PolicySet) -> bool:
        """Whether any session may have its observers under these policies.

        Asked when they come into force, and when the factory asks for that (`SessionRegistry.observe`). While
        it says no, new sessions do not ask it.
        """

    def observer_for(
        self, session: Session, policies: PolicySet, before: SessionObserver | None
    ) -> SessionObserver | None:
        """The observer of a session, which is on the data path, under these policies; None: none.

        Called when the session begins, when other policies come into force, and when the factory asks for it.
        ``before`` is the observer that it has given the session: it may be given again.
        """


@define(eq=False)
class ObserverFactories:
    """Those of one gateway, in the order in which their observers are told."""

    all: Sequence[ObserverFactory]
    #: Those that look on, and the policies that they were asked of.
    _looking: tuple[PolicySet | None, Sequence[ObserverFactory]] = attrs.field(default=(None, ()), init=False)

    def looking_on(self, policies: PolicySet) -> Sequence[ObserverFactory]:
        """Whom a session that begins under these policies asks."""
        asked, looking = self._looking
        if asked is not policies:
            looking = [factory for factory in self.all if self._looks_on(factory, policies)]
            self._looking = policies, looking
        return looking

    def ask_again(self) -> None:
        """One of them may look on that did not, or the other way round."""
        self._looking = None, ()

    @staticmethod
    def _looks_on(factory: ObserverFactory, policies: PolicySet) -> bool:
        try:
            return factory.looks_on(policies)
        except Exception:
            FAULTS.caught(factory.part, f"{type(factory).__name__}.looks_on")
            return True


@frozen(eq=False)
class SessionEnds:
    """Who is told of the ends of sessions."""

    #: Called with the outcome when a session and its sockets are gone.
    on_gone: Callable[[str], None]
    #: Called with a session whose broker is gone.
    on_lost: Callable[[Session], None]


@define(eq=False)
class SessionRegistry:
    """Of one gateway."""

    settings: Settings
    pump: Pump
    token_buckets: TokenBuckets
    ends: SessionEnds
    claim_checks: ClaimChecks
    #: By session id.
    live: dict[str, Session]
    #: Who makes the observers of each, in the order in which these are told.
    factories: ObserverFactories
    #: Where set-ups and tear-downs run. Once they are closed sockets close without a word.
    fibers: Fibers
    #: Where what operators ask for goes on; None while nothing may be started.
    tasks: trio.Nursery | None = attrs.field(default=None, init=False)
    _dismissing: ForcedCloses = attrs.field(init=False)
    _shared: SharedFacts = attrs.field(factory=SharedFacts, init=False)
    # A bound method is an object: this is made once, and not for each session.
    _on_over: Callable[[Session], None] = attrs.field(init=False)

    def __attrs_post_init__(self) -> None:
        self._on_over = self._left
        self._dismissing = ForcedCloses(self.settings.limits)

    def establish(self, session_id: str, established: Established, policies: SelectedPolicies) -> Session:
        """Put a session on the data path. Raises ``SessionDeniedError`` where its policies contradict."""
        principal, facts = self._shared.opening(policies.principal, established)
        transform = policies.transform
        session_policies = SessionPolicies(
            principal,
            policies.access,
            self.token_buckets.take(policies.limits, time.monotonic()),
        )
        if transform is not None:
            session_policies.transform_by(transform)
        compatibilities = policies.compatibilities
        if compatibilities and not facts.is_relayed:
            session_policies.adapt_by(for_upstream(compatibilities, facts.cluster))
        session = Session(session_id, facts, session_policies, self._on_over, established.token)
        largest = self.settings.largest_frame
        flows = FlowTable() if session_policies.is_restricted else None
        upstream = established.upstream.connect(session, established.client, flows, largest)
        client_end, _ = upstream.relay.endpoints
        client_end.lane.most_body = self.settings.limits.max_message_bytes
        self.live[session.id] = session
        try:
            session.enter(upstream, self.pump)
        except BaseException:
            del self.live[session.id]
            self.token_buckets.give_back(session.limits, time.monotonic())
            _close_all(upstream.relay.endpoints)
            raise
        if session.token is not None:
            session.token.begin(session_id)
        try:
            if session_policies.compatibility is not None:
                session.show_nacks()
                self._follow_claims(session)
            session.observe(
                observers_for(session, policies.policies, self.factories.looking_on(policies.policies))
            )
            for observer in session_policies.observers:
                if "opened" in observer.hooks:
                    observer.opened()
        except Exception as error:
            # It is on the data path, and ends as any session there.
            log_failure(log, "session %s failed as it began", session.id)
            self.pump.remove(session.relay, End.FAILED, None, error)
        return session

    def finish(self) -> None:
        """End all of them."""
        for session in list(self.live.values()):
            session.relay.finish()

    def dismiss(self, session: Session, why: Forced, *, now: bool) -> None:
        """An operator ends it: when it is owed nothing, or ``now``."""
        if not session.relay.active:
            return
        if now or self.tasks is None:
            session.fail(why)
        elif self._dismissing.dismiss(session, why):
            self.start(self._dismissing.run)

    def granted(self) -> None:
        """Who waits for a limit that is shared may look again."""
        for session in list(self.live.values()):
            if any(limit.shared for limit in session.limits.all):
                self.pump.retry(session.relay)

    def begin(self, tasks: trio.Nursery) -> None:
        """Tasks may be started from now on."""
        self.tasks = tasks

    def start(self, task: Callable[[], Awaitable[None]]) -> None:
        """Run a task beside all else; not any more where the gateway ends. What it raises ends it alone."""
        if self.tasks is not None:
            self.tasks.start_soon(contained, "the sessions", task)

    def end(self) -> None:
        """No task is started any more; all sessions end."""
        self.tasks = None
        self.finish()

    # -- other policies -----------------------------------------------------------------------

    async def prepare(self, policies: PolicySet, compiling: PolicyCompiler) -> dict[str, SessionAccess]:
        """Compile policies for each of them, off the data path's thread: who would judge them, by their ids.

        Of all that there are when it returns.
        """
        access: dict[str, SessionAccess] = {}
        while missing := {name: one.principal for name, one in self.live.items() if name not in access}:

            def compile_all(missing: dict[str, Principal] = missing) -> dict[str, SessionAccess]:
                return {name: policies.prepare(principal, name) for name, principal in missing.items()}

            access |= await compiling.run(compile_all)
        return access

    def judges_under(self, policies: PolicySet, prepared: Mapping[str, SessionAccess]) -> list[SessionAccess]:
        """Who would judge each of them. What may fail of putting other policies in force fails here."""
        return [
            prepared.get(session.id) or policies.access_of(session.principal, session.id)
            for session in self.live.values()
        ]

    def use(self, policies: PolicySet, access: list[SessionAccess]) -> None:
        """Put them in force; ``judges`` is what ``judges_under`` has just given."""
        sessions = list(self.live.values())
        for session, its_own in zip(sessions, access, strict=True):
            self._judge_by(session, policies, its_own)
        self._insist_on_ends(sessions)

    def judge_anew(
        self, session: Session, principal: Principal, policies: PolicySet, access: SessionAccess
    ) -> None:
        """A session has another principal from now on, whom ``access`` judges under these policies."""
        session.session_policies.judge_by(access, session.limits, principal)
        self._judge_by(session, policies, access)
        self._insist_on_ends([session])

    def _judge_by(self, session: Session, policies: PolicySet, access: SessionAccess) -> None:
        self._retransform(session, policies)
        if not session.facts.is_relayed:
            session.session_policies.adapt_by(
                policies.compatibility_for(session.principal, session.facts.cluster)
            )
        self._follow_claims(session)
        session.show_nacks()
        session.session_policies.observed_by(observers_for(session, policies, self.factories.all))
        before = session.limits
        limits = policies.limits_for(session.principal, session.id)
        session.judge_by(access, self.token_buckets.take(limits, time.monotonic()))
        self.token_buckets.give_back(before, time.monotonic())

    def _insist_on_ends(self, sessions: Iterable[Session]) -> None:
        waiting = [session for session in sessions if session.consumers.is_overdue]
        if waiting and self.tasks is not None:
            self.start(partial(self._insist, waiting))

    def _follow_claims(self, session: Session) -> None:
        """What its compatibility policy says of large bodies holds from now on."""
        policies = session.session_policies
        compatibility = policies.compatibility
        if policies.claims is None and compatibility is not None and compatibility.claim_check is not None:
            policies.adapt_by(compatibility, self.claim_checks.of(session))
        if policies.claims is not None:
            policies.claims.follow()

    def _retransform(self, session: Session, policies: PolicySet) -> None:
        try:
            transform = policies.transform_for(session.principal)
        except SessionDeniedError as error:
            log.warning("session %s keeps its transform: %s", session.id, error)
            return
        if session.rewriter is not None:
            session.rewriter.follow(transform)
        elif transform is not None:
            session.session_policies.transform_by(attrs.evolve(transform, naming=None)).enter(session.relay)

    def observe(self, part: str, policies: PolicySet) -> None:
        """The factory of a part has other observers than before; ``policies`` are those in force."""
        self.factories.ask_again()
        for session in list(self.live.values()):
            before = session.session_policies.observers
            changed = observers_for(session, policies, self.factories.all, part)
            if any(one.part == part for one in (*before, *changed)):
                session.observe(changed)

    async def _insist(self, sessions: list[Session]) -> None:
        """Who does not end the message that is under way cannot keep a consumer by that."""
        await trio.sleep(self.settings.limits.drain_timeout)
        for session in sessions:
            if session.relay.active and session.consumers.is_overdue:
                session.fail(
                    ProtocolViolation(320, "a consumer is not allowed any more, and a message not ended")
                )

    # -- the end ------------------------------------------------------------------------------

    def _left(self, session: Session) -> None:
        """The session has left the data path; its sockets are still open."""
        if session.outcome.end is _GONE and session.outcome.side is Side.UPSTREAM:
            self.ends.on_lost(session)
        if self.fibers.is_closed:
            self._forget(session)
            return
        farewells: list[Coroutine[None, None, None]] = []
        try:
            parting = Parting(session, partial(self._forget, session))
            farewells = parting.begin(self.settings.limits.close_timeout)
            while farewells:
                self.fibers.start_soon(farewells[0])
                del farewells[0]
        except Exception:
            log_failure(log, "session %s did not end well", session.id)
            for farewell in farewells:
                farewell.close()
            self._forget(session)

    def _forget(self, session: Session) -> None:
        if self.live.pop(session.id, None) is None:
            # Where memory ran out, its end is told twice.
            return
        why = "failed"
        try:
            self.token_buckets.give_back(session.limits, time.monotonic())
            why = outcome_of(session)
            for observer in session.session_policies.observers:
                observer.closed(why)
        finally:
            # Whatever memory is wanting for: it is not one of them any more.
            try:
                _close_all(session.relay.endpoints)
                session.release()
            finally:
                self.ends.on_gone(why)


def _close_all(endpoints: Iterable[RelayEndpoint]) -> None:
    for endpoint in endpoints:
        if endpoint.sock is not None:
            endpoint.sock.close()


def observers_for(
    session: Session, policies: PolicySet, factories: Sequence[ObserverFactory], part: str = ""
) -> tuple[SessionObserver, ...]:
    """In the order of the factories. Where one of them raises, the session has no observer of its part.

    Where ``part`` is given, the observers of other parts stay.
    """
    known = {observer.part: observer for observer in session.session_policies.observers}
    found = []
    for factory in factories:
        before = observer = known.get(factory.part)
        try:
            if part in ("", factory.part):
                observer = factory.observer_for(session, policies, before)
        except Exception:
            # What other policies keep from it must not be shown to it.
            observer = None
            FAULTS.caught(factory.part, f"{type(factory).__name__}.observer_for")
        if observer is not None:
            found.append(observer)
        if before is not None and before is not observer:
            before.ended()
    return tuple(found)

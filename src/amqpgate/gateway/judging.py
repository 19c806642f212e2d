"""Which policies hold for one session now, and what they say of its operations."""

from __future__ import annotations

from collections.abc import Callable

import attrs

from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.rewriting import Rewriter
from amqpgate.gateway.throttles import Throttle
from amqpgate.policy import Judges, Operation, Peek, Principal, Verdict, refusal
from amqpgate.wire.method import Method


@attrs.define(eq=False)
class Judging:
    """Of one session. What it holds changes in place when the policies do."""

    principal: Principal
    judges: Judges
    throttle: Throttle
    #: None: no transform policy selects the session.
    rewriter: Rewriter | None
    #: Told of every refusal.
    on_denied: Callable[[Verdict, Operation], None]
    #: Told where a policy that is not enforced would have decided otherwise: its verdict.
    on_shadow: Callable[[Verdict, Operation], None]

    @property
    def is_free(self) -> bool:
        """Whether no policy would refuse the session anything, not even for show."""
        return self.judges.enforced.unrestricted and self.judges.shadow is None

    @property
    def is_restricted(self) -> bool:
        """Whether there is any publish that may not pass, or not at once."""
        changes = self.rewriter is not None and self.rewriter.transform.changes_messages
        return self.throttle.limits_publishes or not self.is_free or changes

    @property
    def judges_deliveries(self) -> bool:
        """Whether there is any delivery that may have to wait, or to be changed."""
        renames = self.rewriter is not None and self.rewriter.transform.naming is not None
        return self.throttle.limits_deliveries or renames

    def judge(self, operation: Operation) -> Verdict:
        """What is decided of it; who is to hear of that is told."""
        verdict = self.judges.enforced.decide(operation)
        if not verdict.allowed:
            self.on_denied(verdict, operation)
        if self.judges.shadow is not None:
            shadow = self.judges.shadow.decide(operation)
            if shadow.effect != verdict.effect:
                self.on_shadow(shadow, operation)
        return verdict

    def admit(self, operation: Operation) -> tuple[Verdict, Peek | None]:
        """Whether publishes with these arguments may pass, and which of them must be judged one by one."""
        admission = self.judges.enforced.admit(operation)
        peek = admission.peek
        if admission.verdict.allowed and self.judges.shadow is not None:
            # What would be refused, or only might be, is judged message by message, and so counted.
            shadow = self.judges.shadow.admit(operation)
            peek = (peek or Peek()) | (shadow.peek or Peek(always=not shadow.verdict.allowed))
        return admission.verdict, peek


def denial(channel: int, method: Method, verdict: Verdict, operation: Operation) -> ProtocolViolation:
    """What a client hears whose operation is refused."""
    return ProtocolViolation(
        403,
        refusal(operation, verdict),
        class_id=method.CLASS_ID,
        method_id=method.METHOD_ID,
        channel=channel,
    )

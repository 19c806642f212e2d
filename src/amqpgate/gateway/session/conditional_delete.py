"""queue.delete if unused or if empty, of what may be a quorum queue: RabbitMQ ends the connection (540).

The gateway asks the broker first (`queue_question`), and where the conditions hold passes a delete without.

::

    client                    gateway                                broker
      │ queue.delete if-empty    │ how many messages and consumers?     │
      │ ───────────────────────▶ │ ───────────────────────────────────▶ │
      │                          │ ◀─────────────────────────────────── │
      │                          │ queue.delete ──────────────────────▶ │
      │ ◀─────────────────────────────────────────────────── delete-ok  │
      │ or channel.close 406     │

The client's methods wait meanwhile. What happens to the queue between the answer and the delete is not seen:
what is published then is deleted with it. Where the broker does not tell (there is no such queue, it is
another's, or is not allowed) the delete passes, and the broker says so. On a connection that closes nobody is
asked, and the delete passes as it came.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import attrs

from amqpgate.errors import ProtocolViolation
from amqpgate.gateway.session.compatibility import Adapted
from amqpgate.gateway.session.queue_question import QueueQuestion
from amqpgate.gateway.session.rewriter import refusal_of
from amqpgate.policy.engine.naming import NotTransformedError, precondition_failed
from amqpgate.policy.engine.operations import SERVER_NAMED
from amqpgate.policy.kinds.quorum import quorum_for
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method

if TYPE_CHECKING:
    from amqpgate.gateway.session.session import Session


def holds_up(session: Session, channel: int, method: Method) -> bool:
    """Whether a client's method waits for what the broker says of its queue.

    Raises `ProtocolViolation` where no channel is left to ask on.
    """
    queue = _asked_about(session, channel, method)
    if queue is None or session.end.closers:
        # Nobody answers on a connection that closes.
        return False
    question = session.channels.question
    if question is not None and not question.is_over:
        return True
    if question is not None and (question.channel, question.queue) == (channel, queue):
        return False
    question = QueueQuestion(channel, queue, session.relay)
    if session.upstream.ask(question, _free_channel(session)):
        session.channels.ask(question)
        return True
    raise ProtocolViolation(
        406,
        "no channel is left to ask whether the queue is unused or empty",
        class_id=method.CLASS_ID,
        method_id=method.METHOD_ID,
        channel=channel,
    )


def answered(session: Session, channel: int, method: Method) -> Method:
    """The client's method as it goes on, which is allowed. Raises `ProtocolViolation` where the queue is not
    as it must be."""
    policy = session.session_policies.compatibility
    if policy is None or not isinstance(method, amqp.QueueDelete) or not is_asked(session, channel, method):
        return method
    question = session.channels.question
    answer = None if question is None else question.answer
    session.channels.ask(None)
    if answer is None:
        # What it holds is not known: it is not deleted for that.
        return method
    if isinstance(answer, amqp.QueueDeclareOk):
        name = method.queue or session.channels.states[channel].last_queue
        which = f"queue '{name}' in vhost '{session.principal.vhost}'"
        why = None
        # RabbitMQ looks at the messages first.
        if method.if_empty and answer.message_count:
            why = precondition_failed(f"{which} not empty")
        elif method.if_unused and answer.consumer_count:
            why = precondition_failed(f"{which} in use")
        if why is not None:
            raise refusal_of(why, channel, method)
    passing = unconditional(method)
    for observer in session.session_policies.observers:
        observer.adapted(channel, method, policy.policy, Adapted(passing, ("conditional-delete",)))
    return passing


def is_asked(session: Session, channel: int, method: Method) -> bool:
    """Whether the broker is asked about the queue before the method passes."""
    return _asked_about(session, channel, method) is not None


def unconditional(method: amqp.QueueDelete) -> amqp.QueueDelete:
    """Whatever the queue holds, and whoever consumes from it."""
    return attrs.evolve(method, if_unused=False, if_empty=False)


def _asked_about(session: Session, channel: int, method: Method) -> str | None:
    """The queue of a delete with conditions, by the broker's name, where a rule makes it a quorum queue."""
    policy = session.session_policies.compatibility
    if policy is None or not policy.quorum_queues or not isinstance(method, amqp.QueueDelete):
        return None
    state = session.channels.states.remembered(channel) if channel in session.channels.states else None
    queue = method.queue or ("" if state is None else state.last_queue)
    if not (method.if_unused or method.if_empty) or queue in ("", SERVER_NAMED):
        return None
    naming = None if session.rewriter is None else session.rewriter.transform.naming
    try:
        queue = queue if naming is None else naming.queue_up(queue)
    except NotTransformedError:
        # It is denied, and no queue's.
        return None
    rule = quorum_for(policy.quorum_queues, queue)
    return queue if rule is not None and rule.is_quorum else None


def _free_channel(session: Session) -> int | None:
    """A channel that the client does not use, from the highest on; None: it uses as many as there may be."""
    channels, most = session.channels, session.facts.channel_max
    if len(session.relay.channels) >= most:
        return None
    late, behind = channels.late or {}, channels.behind or ()
    for number in range(most, 0, -1):
        if not session.relay.channels.state(number) and number not in late and number not in behind:
            return number
    return None

"""The embedded broker: AMQP 0-9-1 and 0-10 in memory, for demonstrations and fast tests only.

In come bytes from clients; out go answers, deliveries, and RabbitMQ's own error codes and words. A
differential suite (``tests/interop/broker_diff``) plays the same scenarios against this broker and against
RabbitMQ and compares what comes back, frame by frame.

What it does
    Direct, fanout, topic and headers exchanges, bindings between exchanges, alternate exchanges, CC and BCC
    headers; queues (exclusive, auto-delete, server-named); consumers with prefetch, priorities and cancel
    notifications; get, ack, nack, reject, recover; publisher confirms, mandatory returns, transactions;
    direct reply-to; PLAIN and AMQPLAIN; heartbeats.

AMQP 0-10
    A client of it is made one of 0-9-1 by ``bridge``, as the gateway does it for RabbitMQ. What that cannot
    say is refused with 540: browsing, selectors, last-value queues, distributed transactions, resuming of
    messages, classes file and stream. Sessions end with their connections, which do not know each other's
    names of sessions. There is no management by messages (QMF).

What it does not do
    Nothing is stored: a restart loses everything, ``durable`` and ``delivery-mode`` are only remembered.
    Messages do not expire and are not dead-lettered; queue lengths, message priorities and single active
    consumers have no effect (their arguments are checked, compared, and noted in the log: see
    ``arguments.UNHEEDED``). Quorum queues and streams are refused. There are no permissions and no policies.
    A peer that breaks off the handshake is hung up on at once, where RabbitMQ waits for three seconds.
    Clients are told by the server property ``lacks`` (``greeting.LACKS``).

What it keeps
    At most ``memory_limit`` bytes of messages (256 MiB unless told otherwise), with 1 KiB added per message
    and 200 bytes per header; publishes beyond it are refused with basic.nack in confirm mode, with
    channel.close 406 otherwise. Per connection besides: one unfinished message (128 MiB) and half a MiB of
    what the client has not read yet (plus the one message that passes the mark; up to 16 MiB of direct
    replies). The number of queues, exchanges and bindings is not limited.

What is where
    ``server``       sockets and tasks                 ``vhost``       exchanges, queues, bindings, routing
    ``translated``   streams of clients of 0-10        ``translating`` what their translators know
    ``session``      one connection, without I/O       ``exchanges``   which bindings a message matches
    ``channel``      which method goes where           ``queues``      order of messages, turns of consumers
    ``declaring``    classes exchange and queue        ``publishing``  publish, confirms, transactions
    ``consuming``    consumers, deliveries, acks       ``arguments``   arguments of declarations

Neighbours: uses ``bridge``, ``protocol``, ``wire`` and trio; only the command line starts it.
"""

from amqpgate.broker.server import VERSIONS, EmbeddedBroker

__all__ = ["VERSIONS", "EmbeddedBroker"]

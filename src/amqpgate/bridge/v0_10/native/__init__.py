"""AMQP 0-10 to AMQP 0-10: what a client says reaches the broker as it was said, and back.

Both sides have the same frames, and a denial ends its session, so no command is ever put into a session or
left out of one that goes on: ids are the same on both sides, and nothing need be written anew.

::

    client ── bytes ──▶ ClientEnd ── copies ──▶ gateway ── copies ──▶ BrokerEnd ── originals ──▶ broker
                            │                                             ▲
                            └──────────────── originals ──────────────────┘

The gateway judges, limits and counts **copies**: canonical methods and messages that say of a command what
0-9-1 has words for. The **original**, all frames of the assembly as they came, waits until its copy has come
out on the other side, and is sent then. What has no copy waits only for the copies before it on its channel.

What is where
    ``assemblies``  bytes to assemblies; each has its frames as they came; ``cutting`` does nearly all of it
    ``copies``      a command and the methods that stand for it; ``content``: a transfer and the message
    ``settling``    which deliveries an accept, a release or a reject means
    ``channels``    how far both sides are with a channel; ``queues``: what waits there
    ``relay``       what both ends share
    ``client_end``, ``broker_end``  the translators; ``end``, ``passing``: what they have in common
    ``build``       compiled or plain: cutting, queues; passing with ``end``
    ``amending``    an original whose copy the gateway has changed
"""

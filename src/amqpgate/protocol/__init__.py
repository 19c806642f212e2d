"""The protocol at codec level: frames, headers, handshake and logins, without any I/O.

What the room is for
    It knows how frames lie in a stream, which method may follow which, from whom, and what a peer that
    breaks the protocol is told: as the standard says it, and as RabbitMQ 3.10 was seen to do it where the
    two differ.

What comes in
    Bytes as they were received, in any split; time and limits where they matter, as arguments.

What goes out
    Frames, steps of a connection's and a channel's life, bytes to send, and
    :class:`~amqpgate.errors.ProtocolViolation` with the code, the ids and the words of RabbitMQ's reply.

What is where
    ``header``        the first eight bytes
    ``frames``        bytes to frames and back
    ``methods``       who may send which method, as data
    ``handshake``     the life of a connection as a table, and the tune negotiation
    ``channel``       the life of a channel as a table
    ``violations``    how frames that are not wanted are named
    ``heartbeat``     when to send one, when to give up
    ``sasl``          user names out of logins; ``login`` and ``scram``: logins that the gateway says itself
    ``proxy_header``  the PROXY protocol
    ``v0_10``         AMQP 0-10, which has sessions for channels: frames to commands with ids

Neighbours
    Called by the gateway, the bridge, the data path (which has its own scanner and borrows the tables) and
    the embedded broker. Calls ``wire`` for the insides of frames.
"""

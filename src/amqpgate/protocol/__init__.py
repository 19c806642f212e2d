"""Grammar: frames, handshake, channel and content state machines, without any I/O.

What the room is for
    It knows which frame may follow which, from whom, and what is answered if it does not: as the standard
    says it, and as RabbitMQ 3.10 was seen to do it where the two differ.

What comes in
    Bytes as they were received, in any split; methods that the owner wants to send; time and limits
    where they matter, as arguments.

What goes out
    Events (``events``), bytes to send, and :class:`~amqpgate.errors.ProtocolViolation` for a peer that
    breaks the protocol, with the code, the ids and the words of RabbitMQ's reply.

What is where
    ``connection``    a whole conversation in either role: start here
    ``handshake``     the life of a connection as a table, and the tune negotiation
    ``channel``       the life of a channel as a table; ``channels`` keeps all of one connection
    ``content``       method, header, bodies
    ``methods``       who may send which method, as data
    ``frames``        bytes to frames and back
    ``header``        the first eight bytes
    ``heartbeat``     when to send one, when to give up
    ``sasl``          user names out of logins
    ``proxy_header``  the PROXY protocol
    ``limits``        what one peer may make us keep

Neighbours
    Called by the gateway, the data path (which has its own scanner and borrows the tables) and the
    embedded broker. Calls ``wire`` for the insides of frames.
"""

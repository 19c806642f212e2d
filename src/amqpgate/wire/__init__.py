"""The alphabet: AMQP 0-8, 0-9 and 0-9-1 values to and from bytes, without any I/O.

What the room is for
    One byte string is one value, and the other way round. Everything above this room speaks of
    methods, properties and tables; everything below it is bytes.

What comes in
    Whole payloads of method and header frames (framing itself belongs to ``protocol``), and the
    :class:`~amqpgate.wire.dialects.Dialect` of the peer that wrote them.

What goes out
    Frozen attrs objects: one class per method (``generated/v0_8.py``, ``v0_9.py``, ``v0_9_1.py``),
    ``BasicProperties``, :class:`~amqpgate.wire.tables.Table`. Decoding and encoding again gives the same
    bytes, because table values keep their wire tag. Malformed input raises
    :class:`~amqpgate.errors.ProtocolViolation` with the reply code that RabbitMQ gives, and nothing else.

What is where
    ``primitives``  integers and strings at a position, never past the end
    ``dialects``    who writes which table types, as data, each with its source
    ``tables``      field tables and arrays as values
    ``table_codec`` the same in bytes: iterative, bounded by its ``Limits``
    ``mapping``     the nearest table type of a peer that has fewer of them
    ``method``      the base class of all methods and properties
    ``codec``       payload to method and back, payload to content header and back
    ``generated``   made from ``spec/amqp`` by ``python -m amqpgate.codegen``; do not edit
    ``v0_10``       AMQP 0-10, which has segments and typed values of its own, and no dialects

Exceptions to "the same bytes": bits that the standard leaves unused in a bit byte or in the property
flags come out as 0; a signalling NaN of 32 bits comes out quiet (RabbitMQ takes no NaN at all); Qpid's
``i``, which is ambiguous on the wire, comes out as ``I`` or ``l``.

Neighbours
    Called by ``protocol`` and by all rooms above. Imports ``errors`` only.
"""

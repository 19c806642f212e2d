"""AMQP 0-10 values to and from bytes, without any I/O.

What comes in
    Whole segments: controls, commands, headers (frames and assemblies belong to ``protocol``).

What goes out
    Frozen attrs objects: a class for each control, command and struct (``wire.generated.v0_10``), maps and
    arrays whose values keep the code of their type. Decoding and encoding again gives the same bytes, but for
    what ``types`` says. Malformed input raises :class:`~amqpgate.errors.ProtocolViolation`, and nothing else.

What is where
    ``primitives``  numbers and bytes at a position, never past the end
    ``sequences``   serial numbers, and sets of them: what is accepted, released, completed
    ``types``       maps, lists and arrays: bounded in depth and number
    ``structs``     the base classes of all controls, commands and structs
    ``codec``       segments to objects and back

Neighbours
    Called by ``protocol`` and by all rooms above. Imports ``errors`` and ``wire.generated``.
"""

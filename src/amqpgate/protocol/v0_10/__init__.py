"""AMQP 0-10 at codec level, in both roles, without any I/O: from bytes to commands with ids, and back.

What comes in
    Bytes as they were received, in any split; from the owner, commands to send and the ids of those it has
    finished.

What goes out
    Events (``events``), and bytes to send: ``endpoint.SessionConnection`` gives both. Violations are answered
    here, with an execution.exception and session.detach or with connection.close, and are events as well.

What is where, from bytes upwards
    ``frames``       bytes to frames and back
    ``segments``     frames to controls, commands, headers and pieces of bodies, by channel and track
    ``connection``   the life of a connection as a table, and the tune negotiation
    ``attachment``   how a session comes to a channel and leaves it, as a table
    ``receiving``    a session's incoming commands: ids, completion, what is owed
    ``sending``      its outgoing ones
    ``session``      one session: both of these, and the controls about them
    ``names``        names of sessions, for all connections to a broker
    ``attachments``  the sessions of a connection, by channel
    ``endpoint``     a connection as a whole: start here
    ``writer``       what is to be sent, and what is answered once for a read
    ``codes``        reply codes of 0-10 and of the other versions, both ways
    ``login``        mechanisms and properties that may pass

Who drives it
    An embedded broker, as a server; a bridge, as a server towards clients and as a client towards brokers.
    Each has a ``SessionConnection``, reads its events, sends and finishes on
    ``connection.sessions[channel]``, and takes the output once for each read.

Neighbours
    Calls ``wire.v0_10`` for the insides of segments, and shares roles and states of connections with
    ``protocol``. Chapters and rules that docstrings cite are the specification's
    (``spec/amqp/amqp0-10.xml`` has the rules by name).
"""

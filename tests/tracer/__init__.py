"""How far a request walks through the source: `python -m tests.tracer`.

A gateway runs in a thread of this process, between a client and a broker that are this process too. While a
scene plays, each call of a function of amqpgate's own on the gateway's thread is written down. The compiled
data path makes no such calls: what is counted is the control plane.

``record``   the calls of one thread, and what they come to
``scenes``   a denied publish, with audit and traces and without; a handshake
``figures``  what docs/architecture.md says of them, which a test holds
"""

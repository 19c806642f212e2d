"""Sockets, while the data path does not have them.

``listener``       accepts; ``reuseport`` says which process gets a connection
``tls``            TLS contexts, of ``certificates``
``method_stream``  talks in whole methods; ``conversation`` has the short exchanges
``translated_socket`` a peer of another protocol, as if it spoke AMQP 0-9-1; ``translation`` has its I/O
``caller``         who is at the other end
``memory_trim``    gives memory back to the system
"""

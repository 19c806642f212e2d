"""What is a translated socket's own: the rest is its translation's (`test_translation`)."""

from __future__ import annotations

import socket

from amqpgate.datapath.engine import BufferedSocket
from amqpgate.gateway.transport.translated_socket import TranslatedSocket, Translation
from tests.support.translators import Reframing


def test_it_is_a_translation_before_it_is_a_socket_with_buffers() -> None:
    far, near = socket.socketpair()
    with far:
        sock = TranslatedSocket(near, Reframing())
        assert isinstance(sock, BufferedSocket)
        assert type(sock).recv_into is Translation.recv_into
        assert (sock.fileno(), sock.is_tls, sock.unsent, sock.pending()) == (near.fileno(), False, 0, False)
        sock.close()
        assert near.fileno() == -1

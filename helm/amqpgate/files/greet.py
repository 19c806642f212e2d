"""greet.py HOST PORT [--tls] [--proxy-v1|--proxy-v2]: greet a gateway, and hear that it answers."""

import socket
import ssl
import sys

host, port, *options = sys.argv[1:]
with socket.create_connection((host, int(port)), timeout=10) as connection:
    if "--proxy-v1" in options:
        connection.sendall(b"PROXY UNKNOWN\r\n")
    if "--proxy-v2" in options:
        # LOCAL: on behalf of nobody else.
        connection.sendall(b"\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00")
    if "--tls" in options:
        # Whether the name is right is for clients to say: they know by which they come.
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        connection = context.wrap_socket(connection, server_hostname=host)
    connection.sendall(b"AMQP\x00\x00\x09\x01")
    answer = b""
    while len(answer) < 11 and (more := connection.recv(4096)):
        answer += more
# A frame of channel 0 with connection.start.
if answer[:3] != b"\x01\x00\x00" or answer[7:11] != b"\x00\x0a\x00\x0a":
    sys.exit(f"{host}:{port} does not speak AMQP 0-9-1: {answer!r}")
print(f"{host}:{port} speaks AMQP 0-9-1")

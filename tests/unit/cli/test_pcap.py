"""Captures: what Wireshark's own dissectors find in them."""

from __future__ import annotations

import io
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from amqpgate.bridge.v0_10 import capture as capture_0_10
from amqpgate.cli.pcap import DIALECTS, SEGMENT, Capture
from amqpgate.protocol.frames import encode_frame, method_frame
from amqpgate.wire.codec import ContentHeader, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import Table
from tests.support.missing import missing


def content(
    size: int,
    channel: int = 1,
    method: amqp.BasicPublish | amqp.BasicDeliver | None = None,
    **properties: str,
) -> bytes:
    header = ContentHeader(60, size, amqp.BasicProperties(**properties))  # type: ignore[arg-type]
    return method_frame(channel, method or amqp.BasicPublish(0, "orders", "created")) + encode_frame(
        amqp.FRAME_HEADER, channel, encode_header(header)
    )


def packets(data: bytes) -> list[tuple[bytes, int]]:
    """What is there of each, and how long it was."""
    found, at = [], 24
    while at < len(data):
        _, _, size, length = struct.unpack_from("<IIII", data, at)
        found.append((data[at + 16 : at + 16 + size], length))
        at += 16 + size
    return found


def test_a_body_that_is_not_shown_is_cut_off_and_counts() -> None:
    file = io.BytesIO()
    capture = Capture(file)
    capture.add("s", "10.0.0.7", 1.5, content(1000), 1, b"abc", 1000)
    capture.add("s", "10.0.0.7", 2.5, method_frame(1, amqp.TxSelect()))
    found = packets(file.getvalue())
    assert [length - 40 for _, length in found] == [0, 0, 0, 8, len(content(1000)), 1008, 12]
    body, _ = found[5]
    assert body[40:] == b"\x03\x00\x01\x00\x00\x03\xe8abc"
    # All that was sent before has been counted, what is not there included.
    last = found[6][0]
    first = found[0][0]
    sent = struct.unpack_from(">I", last, 24)[0] - struct.unpack_from(">I", first, 24)[0]
    assert sent == 1 + 8 + len(content(1000)) + 1008


@pytest.mark.parametrize("size", [SEGMENT - 8, SEGMENT - 7, 10 * SEGMENT])
def test_no_packet_is_longer_than_its_length_can_say(size: int) -> None:
    file = io.BytesIO()
    Capture(file).add("s", "10.0.0.7", 1.5, content(size), 1, b"", size)
    found = packets(file.getvalue())[5:]
    assert sum(length - 40 - 8 for _, length in found) == size
    assert all(length <= 65535 for _, length in found)


def tshark(file: Path, *options: str) -> list[str]:
    """What it says of the packets that it shows, a line each."""
    if shutil.which("tshark") is None:
        missing("Wireshark's tshark is not installed (Debian: apt-get install tshark)")
    command = ["tshark", "-n", "-r", str(file), "-o", "tcp.check_checksum:TRUE", *options]
    done = subprocess.run(command, capture_output=True, timeout=60, check=True)
    return done.stdout.decode().splitlines()


@pytest.mark.parametrize("client", ["10.0.0.7", "2001:db8::7", "nowhere"])
def test_wireshark_reads_it_from_the_start(tmp_path: Path, client: str) -> None:
    path = tmp_path / "tap.pcap"
    with path.open("wb") as file:
        capture = Capture(file)
        declare = amqp.QueueDeclare(0, "q", arguments=Table.of({"x-max-length": 5}))
        capture.add("s1", client, 1.5, method_frame(3, declare))
        capture.add("s1", client, 1.6, content(3, content_type="text/plain"), 1, b"abc", 3)
        capture.add("s2", client, 1.7, content(70000), 1, b"", 70000)
        capture.add("s2", client, 1.8, content(5), 1, b"12", 5)
        deliver = amqp.BasicDeliver("ctag", 7, False, "orders", "created")
        capture.add("s2", client, 1.9, content(4, 1, deliver), 1, b"", 4, is_sent=True)
        capture.add("s1", client, 2.0, method_frame(3, amqp.BasicQos(0, 10, False)))
    fields = ["tcp.stream", "_ws.col.Info", "amqp.header.body-size", "frame.len", "frame.cap_len"]
    options = [option for field in fields for option in ("-e", field)]
    head = 40 if client != "2001:db8::7" else 60
    assert tshark(path, "-Y", "amqp", "-T", "fields", "-E", "separator=|", *options) == [
        f"0|Queue.Declare q=q ||{head + 39}|{head + 39}",
        f"0|Basic.Publish x=orders rk=created Content-Header type=text/plain |3|{head + 63}|{head + 63}",
        f"0|Content-Body  (text/plain)||{head + 11}|{head + 11}",
        f"1|Basic.Publish x=orders rk=created Content-Header |70000|{head + 52}|{head + 52}",
        f"1|[Packet size limited during capture]||{head + SEGMENT}|{head + 7}",
        f"1|[Packet size limited during capture]||{head + 70000 - SEGMENT + 16}|{head + 7}",
        f"1|Basic.Publish x=orders rk=created Content-Header |5|{head + 52}|{head + 52}",
        f"1|[Packet size limited during capture]||{head + 13}|{head + 9}",
        f"1|Basic.Deliver x=orders rk=created Content-Header |4|{head + 63}|{head + 63}",
        f"1|[Packet size limited during capture]||{head + 12}|{head + 7}",
        f"0|Basic.Qos ||{head + 19}|{head + 19}",
    ]
    # Nothing is malformed, missing, sent twice, or has a wrong checksum.
    assert tshark(path, "-Y", "_ws.malformed || tcp.analysis.flags || tcp.checksum.status == 0") == []
    assert len(tshark(path, "-Y", "tcp.checksum.status == 1")) == 15


def test_wireshark_reads_operations_of_a_client_of_0_10(tmp_path: Path) -> None:
    path = tmp_path / "tap.pcap"

    def add(method: Method, size: int = 0, body: bytes = b"", *, is_sent: bool = False) -> None:
        header = ContentHeader(60, size, amqp.BasicProperties(content_type="text/plain")) if size else None
        frames = capture_0_10.frames_of(1, method, header)
        capture.add("s", "10.0.0.7", 1.5, frames, 1, body, size, is_sent=is_sent, dialect=DIALECTS["0-10"])

    with path.open("wb") as file:
        capture = Capture(file)
        add(amqp.QueueDeclare(0, "q", arguments=Table.of({"x-max-length": 5})))
        add(amqp.BasicPublish(0, "orders", "created"), 70000, b"abc")
        add(amqp.BasicPublish(0, "orders", "created"), 3, b"abc")
        add(amqp.BasicDeliver("ctag", 7, False, "orders", "created"), 4, b"abcd", is_sent=True)
    fields = ["ip.src", "_ws.col.Info", "frame.len", "frame.cap_len"]
    options = [option for field in fields for option in ("-e", field)]
    client, gateway = "10.0.0.7", "192.0.2.1"
    assert tshark(path, "-Y", "amqp", "-T", "fields", "-E", "separator=|", *options) == [
        f"{client}|Protocol-Header 0-10 |48|48",
        f"{gateway}|Protocol-Header 0-10 |48|48",
        f"{client}|queue.declare |112|112",
        f"{client}|message.transfer header |122|122",
        f"{client}|message-body |{40 + SEGMENT}|55",
        f"{client}|message-body |{40 + 70000 - SEGMENT + 24}|52",
        f"{client}|message.transfer header |122|122",
        f"{client}|message-body |55|55",
        f"{gateway}|message.transfer header |127|127",
        f"{gateway}|message-body |56|56",
    ]
    assert tshark(path, "-Y", "_ws.malformed || tcp.analysis.flags || tcp.checksum.status == 0") == []
    # What is in them is read, too.
    names = ["amqp.queue.declare.queue", "amqp.message.transfer.destination"]
    options = [option for name in names for option in ("-e", name)]
    assert [
        line.strip("|")
        for line in tshark(path, "-Y", "amqp", "-T", "fields", "-E", "separator=|", *options)
        if line != "|"
    ] == ["q", "orders", "orders", "ctag"]

"""A publisher that may be killed at any time.

    python -m tests.interop.durable_publisher PORT VHOST LANE COUNT FILE

publishes messages 0 to COUNT-1 of its lane to the queue of that name, and appends to FILE what the broker
has confirmed. When its connection ends, it makes a new one; when it is started again, it goes on. A message
that is not known to be confirmed is published again then, under a new epoch, so that every copy has a name.
"""

from __future__ import annotations

import functools
import os
import random
import struct
import sys
import time
from collections import OrderedDict
from pathlib import Path

from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.talker import Gone, Talker, Unexpected

#: One confirmed copy: epoch (nanoseconds), number.
RECORD = struct.Struct(">QI")

#: Messages that wait for their confirms, per connection.
WINDOW = 200

LARGEST = 3 << 20


@functools.cache
def _noise() -> bytes:
    return random.Random(0).randbytes(2 * LARGEST)


def size_of(number: int) -> int:
    """Bytes of a message's body: nothing to 3 MiB, 12 KB on average."""
    if number % 1000 == 17:
        return LARGEST
    if number % 25 == 3:
        return 131_060 + number % 9  # around one full frame
    if number % 4 == 1:
        return 4_000 + number % 8_000
    return number % 10 * 113


def body_of(number: int) -> bytes:
    start = number * 7919 % LARGEST
    return _noise()[start : start + size_of(number)]


def confirmed(file: Path) -> list[tuple[int, int]]:
    """(epoch, number) of each copy in the file; a record cut short by a kill does not count."""
    data = file.read_bytes() if file.exists() else b""
    return [RECORD.unpack_from(data, at) for at in range(0, len(data) - RECORD.size + 1, RECORD.size)]


def publish(client: Talker, lane: str, epoch: int, numbers: list[int], file: int) -> None:
    """All of them, until the last is confirmed."""
    client.ask(amqp.ConfirmSelect(), amqp.ConfirmSelectOk, 1)
    waiting: OrderedDict[int, int] = OrderedDict()
    tag = 0
    rest = iter(numbers)
    number = next(rest, None)
    while waiting or number is not None:
        while number is not None and len(waiting) < WINDOW:
            tag += 1
            properties = amqp.BasicProperties(delivery_mode=2, message_id=f"{lane}.{epoch}.{number}")
            client.publish(body_of(number), lane, properties=properties)
            waiting[tag] = number
            number = next(rest, None)
        _, method = client.hear()
        if not isinstance(method, amqp.BasicAck):
            raise Unexpected(str(method))
        if method.multiple:
            tags = [waited for waited in waiting if waited <= method.delivery_tag]
        else:
            tags = [method.delivery_tag]
        os.write(file, b"".join(RECORD.pack(epoch, waiting.pop(each)) for each in tags))


def main(port: int, vhost: str, lane: str, count: int, path: Path) -> None:
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    size = os.fstat(file).st_size
    os.ftruncate(file, size - size % RECORD.size)
    while True:
        done = {number for _, number in confirmed(path)}
        numbers = [number for number in range(count) if number not in done]
        if not numbers:
            return
        try:
            with Talker.dial(port, timeout=120) as client:
                client.open(vhost=vhost)
                publish(client, lane, time.time_ns(), numbers, file)
                client.bye()
        except (Gone, Unexpected, OSError) as error:
            print(f"{lane}: {error}", flush=True)
            time.sleep(0.2)


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], sys.argv[3], int(sys.argv[4]), Path(sys.argv[5]))

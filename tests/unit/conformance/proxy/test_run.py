"""A bare relay obeys all rules on proxies, and one that meddles is found out."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import partial

import pytest
import trio

from amqpgate.conformance.peer import PeerLogin
from amqpgate.conformance.proxy.between import ProxyCase
from amqpgate.conformance.proxy.cases import PROXY_SECTIONS
from amqpgate.conformance.proxy.run import ProxyPlan, play_through
from amqpgate.conformance.versions import ALL, Name

Change = Callable[[bytes], bytes]

CASES = {case.id: case for section in PROXY_SECTIONS for case in section.cases}

WHOLE_SUITE = [(case, version) for version in ALL for case in CASES.values() if version in case.versions]


async def relay(change: Change, port: Sequence[int], stream: trio.abc.Stream) -> None:
    """Both directions of a connection; either end takes the other with it."""
    broker = await trio.open_tcp_stream("127.0.0.1", port[0])
    async with stream, broker, trio.open_nursery() as nursery:

        async def one_way(source: trio.abc.Stream, target: trio.abc.Stream) -> None:
            try:
                while data := await source.receive_some(1 << 16):
                    await target.send_all(change(bytes(data)))
            except (trio.BrokenResourceError, trio.ClosedResourceError):
                pass
            nursery.cancel_scope.cancel()

        nursery.start_soon(one_way, stream, broker)
        nursery.start_soon(one_way, broker, stream)


async def played(
    cases: Sequence[tuple[ProxyCase, Name]], change: Change = bytes, patience: float = 5
) -> dict[tuple[str, Name], str]:
    """What is not obeyed."""
    listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
    target = PeerLogin("127.0.0.1", listeners[0].socket.getsockname()[1], "guest", "guest", "/")
    port: list[int] = []
    plan = ProxyPlan(target=target, host="127.0.0.1", port=0, cases=cases, patience=patience)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(trio.serve_listeners, partial(relay, change, port), listeners))
        results, _ = await play_through(plan, port.append, lambda _: None)
        nursery.cancel_scope.cancel()
    assert len(results) == len(cases)
    return {(one.case.id, one.version): one.said for one in results if one.verdict != "obeys"}


async def test_a_bare_relay_obeys() -> None:
    # Heartbeats take their seconds.
    assert await played([one for one in WHOLE_SUITE if "heartbeats" not in one[0].id]) == {}


@pytest.mark.slow
async def test_heartbeats_of_a_bare_relay() -> None:
    assert await played([one for one in WHOLE_SUITE if "heartbeats" in one[0].id]) == {}


MEDDLING: list[tuple[str, Change, str]] = [
    ("proxy.publish.properties", lambda data: data.replace(b"x-probe", b"X-PROBE"), "another header"),
    (
        "proxy.channel.close.broker",
        lambda data: data.replace(b"\0\x14\0\x28\x01\x94", b"\0\x14\0\x28\x01\x93"),
        "channel.close has another reply_code",
    ),
    (
        "proxy.connection.close.client",
        # Its method is 50, and 60 in 0-8.
        lambda data: re.sub(rb"(\0\x0a\0[\x32\x3c])\0\xc8", rb"\1\0\0", data),
        "the connection ends",
    ),
    (
        "proxy.queue.declare",
        lambda data: data.replace(b"\x04textS", b"\x04testS"),
        "queue.declare has another arguments",
    ),
]


@pytest.mark.parametrize("version", ALL)
@pytest.mark.parametrize(("path", "change", "said"), MEDDLING)
async def test_who_meddles_is_found_out(path: str, change: Change, said: str, version: Name) -> None:
    assert await played([(CASES[path], version)], change) == {(path, version): said}


async def test_what_is_never_answered_is_found_out() -> None:
    # basic.cancel of the client's is lost, by becoming a heartbeat.
    def change(data: bytes) -> bytes:
        at = data.find(b"\0\x3c\0\x1e")
        return data if at < 7 else b"\x08\0\0\0\0\0\0\xce"

    found = await played([(CASES["proxy.basic.cancel.client"], "0-9-1")], change, patience=0.5)
    assert found == {("proxy.basic.cancel.client", "0-9-1"): "basic.cancel does not come to the broker"}


def test_ids_are_told_apart() -> None:
    assert len(CASES) == sum(len(section.cases) for section in PROXY_SECTIONS)

"""The cases in which connections are set up: the load tool's part, and proxies that are started for them."""

from __future__ import annotations

import contextlib
import shlex
import socket
import ssl
import struct
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from rich.console import Console

from .build import Tools
from .cases import BY_NAME, QUICK
from .measure import Bench
from .peers import peers
from .rounds import Plan, Run
from .samples import Sample
from .targets import Certificates, Surroundings, TargetError
from .tools import Sink, load

HERE = Path(__file__).resolve().parent


def _frame(payload: bytes, *, on: int) -> bytes:
    return struct.pack(">BHI", 1, on, len(payload)) + payload + b"\xce"


# -- the load tool -----------------------------------------------------------------------------------------


def test_all_come_at_once(tools: Tools, sink: Sink) -> None:
    with load(tools.load, "idle", sink.address, "--connections", "300") as tool:
        assert tool.hear() == "ready"
        tool.say("storm 300")
        came = tool.hear_json()
        assert (came["connections"], came["again"], sink.counts().connections) == (300, 0, 300)
        latency = came["latency"]
        assert isinstance(latency, dict)
        assert latency["count"] == 300
        # They are as any others.
        tool.say("publish")
        tool.hear()
        assert sink.counts().published == 300
        tool.say("close")
        assert tool.hear_json()["connections"] == 0
        tool.say("open 2")
        tool.hear()
        assert (sink.counts().connections, sink.counts().errors) == (2, 0)
        tool.finish()


def test_who_is_cut_or_refused_comes_again(tools: Tools) -> None:
    """The first is cut before it hears anything, the second is refused, and the third time all goes well."""
    arguments = bytes((0, 9)) + struct.pack(">I", 0) + b"\0\0\0\x05PLAIN" + struct.pack(">I", 0)
    start = _frame(struct.pack(">HH", 10, 10) + arguments, on=0)
    refusal = _frame(struct.pack(">HHHB2sHH", 10, 50, 320, 2, b"no", 0, 0), on=0)
    welcome = [
        start,
        _frame(struct.pack(">HHHIH", 10, 30, 100, 4096, 0), on=0),
        _frame(struct.pack(">HHB", 10, 41, 0), on=0),
        _frame(struct.pack(">HHI", 20, 11, 0), on=1),
    ]
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        load(tools.load, "idle", f"127.0.0.1:{server.getsockname()[1]}", "--connections", "1") as tool,
    ):
        assert tool.hear() == "ready"
        tool.say("storm 1")
        server.accept()[0].close()
        with server.accept()[0] as second:
            second.recv(8)
            second.sendall(refusal)
            second.settimeout(10)
            with contextlib.suppress(ConnectionError):
                while second.recv(4096):
                    pass
        with server.accept()[0] as third:
            for answer in welcome:
                third.recv(4096)
                third.sendall(answer)
            came = tool.hear_json()
    assert (came["connections"], came["again"]) == (1, 2)


def _tls_listener(certificates: Certificates, sink: Sink, *, tickets: bool) -> Iterator[int]:
    """A relay that ends TLS, in a thread; the port."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificates.cert, certificates.key)
    context.num_tickets = 2 if tickets else 0
    server = socket.create_server(("127.0.0.1", 0))

    def pump(source: socket.socket, to: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                to.sendall(data)
        with contextlib.suppress(OSError):
            to.shutdown(socket.SHUT_RDWR)

    def serve() -> None:
        with contextlib.suppress(OSError):
            while True:
                client = context.wrap_socket(server.accept()[0], server_side=True)
                broker = socket.create_connection(("127.0.0.1", sink.port))
                back = threading.Thread(target=pump, args=(broker, client))
                back.start()
                pump(client, broker)
                back.join()
                client.close()
                broker.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    yield server.getsockname()[1]
    server.shutdown(socket.SHUT_RDWR)
    server.close()
    thread.join(10)


@pytest.mark.parametrize(
    ("options", "tickets", "resumed"), [((), True, 0), (("--resume",), True, 5), (("--resume",), False, 0)]
)
def test_tls_sessions_are_gone_on_with_where_that_is_asked_for(
    tools: Tools, sink: Sink, tmp_path: Path, options: tuple[str, ...], tickets: bool, resumed: int
) -> None:
    if not tools.tls:
        pytest.skip("OpenSSL's headers are missing")
    certificates = Certificates.make(tmp_path)
    with contextlib.contextmanager(_tls_listener)(certificates, sink, tickets=tickets) as port:
        limits = ("--messages", "5", "--seconds", "30", "--warmup", "0.05")
        with load(
            tools.load, "churn", f"127.0.0.1:{port}", "--tls-ca", str(certificates.ca), *limits, *options
        ) as tool:
            assert tool.hear() == "ready"
            tool.say("go")
            result = tool.hear_json()
            tool.finish()
    assert (result["messages"], result["resumed"]) == (5, resumed)
    assert str(result["tls"]).startswith("TLSv1.3 ")


# -- what is started ---------------------------------------------------------------------------------------

RELAY = """
import asyncio, sys
port, sink = int(sys.argv[1]), int(sys.argv[2])
async def pump(reader, writer):
    while data := await reader.read(65536):
        writer.write(data)
    writer.close()
async def met(reader, writer):
    there, back = await asyncio.open_connection("127.0.0.1", sink)
    await asyncio.gather(pump(reader, back), pump(there, writer), return_exceptions=True)
async def main():
    await (await asyncio.start_server(met, "127.0.0.1", port, backlog=4096)).serve_forever()
asyncio.run(main())
"""


def _around(folder: Path, tools: Tools, sink: Sink) -> Surroundings:
    return Surroundings(
        folder=folder,
        sink=sink.address,
        calm=sink.address,
        rabbitmq="127.0.0.1:1",
        certificates=Certificates.make(folder),
        policies=HERE / "policies",
        load=tools.load,
        max_connections=1000,
    )


def test_a_peer_is_started_and_measured(tools: Tools, sink: Sink, tmp_path: Path) -> None:
    (tmp_path / "relay.py").write_text(RELAY)
    command = f"relay={shlex.join([sys.executable, str(tmp_path / 'relay.py')])} {{port}} {{sink_port}}"
    (relay,) = peers(_around(tmp_path, tools, sink), [command], [])
    bench = Bench(tools.load, sink, QUICK, tmp_path / "ca.pem")
    relay.start()
    try:
        churn = bench.run(BY_NAME["churn"], relay, 0)
        storm = bench.run(BY_NAME["storm"], relay, 0)
        start = bench.run(BY_NAME["start"], relay, 0)
        assert bench.run(BY_NAME["churn-tls"], relay, 0) is None
    finally:
        relay.stop()
    assert churn is not None
    assert churn.messages > 0
    assert storm is not None
    assert storm.storm is not None
    assert storm.latency is not None
    assert (storm.messages, storm.latency.count) == (QUICK.idle[-1], QUICK.idle[-1])
    assert storm.storm.one_by_one_ns > 0
    assert storm.storm.beside_all.count > 0
    assert start is not None
    assert start.messages == 1
    assert start.cpu_ns


def test_what_peers_may_be(tools: Tools, sink: Sink, tmp_path: Path) -> None:
    around = _around(tmp_path, tools, sink)
    found = peers(around, ["amqproxy", "one=127.0.0.1:1", "two=prog {port} {sink}", "three=h:2"], [7, 8])
    assert [(one.name, one.pid) for one in found] == [
        ("amqproxy", None),
        ("one", 7),
        ("two", None),
        ("three", 8),
    ]
    with pytest.raises(TargetError, match="no-such-program is not installed"):
        peers(around, ["x=no-such-program {port}"], [])[0].start()
    for named, pids in ((["unknown"], []), (["x=h:1"], []), (["amqproxy"], [1]), (["=h:1"], [1])):
        with pytest.raises(ValueError, match=r"peer|is not name"):
            peers(around, named, pids)


def test_unlike_tls_is_no_comparison(tools: Tools, sink: Sink, tmp_path: Path) -> None:
    plan = Plan([], 1, True, tmp_path, None, [], False)
    run = Run(plan, Bench(tools.load, sink, QUICK, tmp_path), [], None, Console(quiet=True))
    run.samples += [Sample("churn-tls", name, 0, tls="TLSv1.3 A x25519") for name in ("haproxy", "amqpgate")]
    run.check_tls()
    assert run.failures == []
    run.samples.append(Sample("churn-tls", "other", 0, tls="TLSv1.3 A secp256r1"))
    run.check_tls()
    assert len(run.failures) == 1
    assert "other TLSv1.3 A secp256r1" in run.failures[0]

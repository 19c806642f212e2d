"""What the gateway offers by itself: no more than every broker that may be chosen."""

from __future__ import annotations

from pathlib import Path

from amqpgate.config import Listener, parse
from amqpgate.gateway.handshake.offers import start_for, tune_for
from amqpgate.gateway.upstream.cluster import Cluster
from amqpgate.protocol.handshake import Tune
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.unit.gateway.handshake.test_late_binding import cluster, listener


def test_only_what_all_of_them_offer() -> None:
    a = cluster(mechanisms=b"AMQPLAIN PLAIN EXTERNAL RABBIT-CR-DEMO", confirms=True, nack=True, off=False)
    b = cluster(mechanisms=b"PLAIN EXTERNAL", confirms=True, off=False)
    start = start_for([a, b], listener())  # type: ignore[arg-type]
    # PLAIN and AMQPLAIN say the same, so where there is one there is the other.
    assert start.mechanisms == b"AMQPLAIN PLAIN"
    assert start.server_properties.to_python() == {"product": "R", "capabilities": {"confirms": True}}
    alone = start_for([a], listener())  # type: ignore[arg-type]
    assert alone.mechanisms == b"AMQPLAIN PLAIN"
    assert alone.server_properties.get("cluster_name") == "x"


def test_it_is_made_once_until_a_broker_says_another() -> None:
    """What is made of a start is kept by its identity: a new one for each client would be found by nobody."""
    a, b, to = cluster(mechanisms=b"PLAIN"), cluster(mechanisms=b"PLAIN", confirms=True), listener()
    assert isinstance(to, Listener)
    start = start_for([a, b], to)
    assert start_for([a, b], to) is start
    assert start_for([b], to) is not start
    a.heard(amqp.ConnectionStart(mechanisms=b"PLAIN", locales=b"de_DE"))
    assert start_for([a, b], to).locales == b"de_DE"


def test_external_is_offered_where_it_is_known_whom_it_means(tmp_path: Path) -> None:
    for name in ("cert", "key", "ca"):
        (tmp_path / name).touch()
    plain, certified = (
        parse(
            f"listeners: [{{name: m, bind: '0.0.0.0:0', tls: {{cert: cert, key: key{more}}}}}]\n"
            "upstreams: [{name: c, host: h}]\n",
            {},
            file=str(tmp_path / "amqpgate.yaml"),
        ).listeners[0]
        for more in (", clientCa: ca, requireClientCert: false", ", clientCa: ca")
    )
    itself = cluster(mechanisms=b"PLAIN EXTERNAL")
    own = cluster(mechanisms=b"PLAIN EXTERNAL", more=", user: u, password: p")

    def is_offered(clusters: list[Cluster], to: Listener) -> bool:
        return b"EXTERNAL" in start_for(clusters, to).mechanisms.split()

    assert is_offered([own, own], certified)
    assert not is_offered([own], plain), "who shows no certificate would be somebody else"
    assert not is_offered([itself], certified), "the broker would see no certificate"
    assert not is_offered([own, itself], certified)


def test_what_is_not_known_is_not_promised() -> None:
    known = cluster(mechanisms=b"AMQPLAIN PLAIN", confirms=True)
    for clusters in ([cluster()], [known, cluster()]):
        start = start_for(clusters, listener())  # type: ignore[arg-type]
        assert set(start.mechanisms.split()) == {b"PLAIN", b"AMQPLAIN"}
        assert start.server_properties.get("capabilities") == {}


def test_limits_are_the_listeners_or_what_was_learnt() -> None:
    a, b = cluster(), cluster(more=", channelMax: 50")
    assert tune_for([a], listener()) == Tune(131072, 2047, 60)  # type: ignore[arg-type]
    a.tune = amqp.ConnectionTune(1000, 65536, 30)
    assert tune_for([a], listener()) == Tune(65536, 1000, 30)  # type: ignore[arg-type]
    assert tune_for([a, b], listener()) == Tune(65536, 50, 30)  # type: ignore[arg-type]
    own = listener(", frameMax: 8192, channelMax: 20, heartbeat: 0")
    assert tune_for([a, b], own) == Tune(8192, 20, 0)  # type: ignore[arg-type]

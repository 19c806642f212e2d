"""What the gateway offers by itself: no more than every broker that may be chosen."""

from __future__ import annotations

from amqpgate.gateway.handshake.offers import start_for, tune_for
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

"""When each stage of a handshake was over."""

from __future__ import annotations

from amqpgate.gateway.handshake.timing import HandshakeTiming


def test_stages_are_in_the_order_in_which_they_ended() -> None:
    timing = HandshakeTiming()
    for stage in ("tls", "start", "tune"):
        timing.mark(stage)
    assert [stage for stage, _ in timing.done] == ["tls", "start", "tune"]
    times = [timing.began, *(at for _, at in timing.done)]
    assert times == sorted(times)

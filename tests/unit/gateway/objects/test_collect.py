"""What is older than messages may be goes, and nothing else."""

from __future__ import annotations

from amqpgate.gateway.objects.collect import MARGIN, Collector

from .fake import FakeStore


def test_only_what_is_old_goes() -> None:
    now, keep = 1_000_000.0, 600.0
    edge = now - keep - MARGIN
    store = FakeStore(objects={"old": b"1", "new": b"2"}, uploads={"left": {}, "going": {}})
    store.since = {"old": edge - 1, "new": edge, "left": edge - 1, "going": edge + 1}
    collector = Collector(store, keep)
    for one in list(collector.old(now)):
        collector.remove(one)
    assert list(store.objects) == ["new"]
    assert list(store.uploads) == ["going"]

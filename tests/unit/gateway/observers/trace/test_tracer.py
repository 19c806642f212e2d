"""The spans of a connection's set-up."""

from __future__ import annotations

import itertools
from collections.abc import Callable

from tests.support.otlp import Collector
from tests.unit.gateway.conftest import Stage
from tests.unit.gateway.traced import TRACE


def test_the_set_up_has_its_stages(traced: Callable[..., Stage], collector: Collector) -> None:
    traced().opened()
    [whole] = collector.wait_for("connection.open")
    stages = [span for span in collector.spans if span.parent == whole.id]
    assert [span.name for span in stages] == ["protocol-header", "dial", "start-ok", "tune-ok", "open-ok"]
    assert {span.trace for span in stages} == {whole.trace}
    assert (whole.kind, whole.is_error, whole.attributes["amqpgate.user"]) == ("server", False, "guest")
    assert stages[0].start == whole.start
    assert all(before.end == after.start for before, after in itertools.pairwise(stages))


def test_a_set_up_that_fails(traced: Callable[..., Stage], collector: Collector) -> None:
    anybody = (TRACE % "{id: r, operations: [connection.open], ratio: 1}").replace("guest", "'*'")
    client, _ = traced(anybody).greeted()
    client.raw(b"\x01\0\0\0\0\0\0\x11")
    [whole] = collector.wait_for("connection.open")
    assert whole.is_error
    assert collector.named("dial")

"""The outlets that the settings name."""

from __future__ import annotations

from collections.abc import Callable

from amqpgate.config import Audit
from amqpgate.config.audit_sinks import AuditAmqp, AuditOtlp, AuditSinkSettings
from amqpgate.telemetry.audit.outlets.outlet import Outlet
from amqpgate.telemetry.audit.outlets.receiver import Receiver


def outlets_of(settings: Audit, on_room: Callable[[], None]) -> list[Outlet]:
    """One for each, not started."""
    return [
        Outlet(
            sink.NAME, receiver_of(sink, settings.name), settings.max_queue, sink.when_full == "wait", on_room
        )
        for sink in settings.sinks
    ]


def receiver_of(sink: AuditSinkSettings, gateway: str) -> Receiver:
    """Who gets them; imported where it is used."""
    if isinstance(sink, AuditOtlp):
        from amqpgate.telemetry.audit.outlets.otlp import OtlpReceiver
        from amqpgate.telemetry.otlp.post import Poster

        return OtlpReceiver(Poster(sink.url, sink))
    if isinstance(sink, AuditAmqp):
        from amqpgate.telemetry.audit.outlets.amqp import AmqpReceiver

        return AmqpReceiver(sink, gateway)
    from amqpgate.telemetry.audit.outlets.bulk import BulkReceiver

    return BulkReceiver(sink)

"""Records as messages: persistent, with their ids, and routing keys that say what they are about."""

from __future__ import annotations

import json
import ssl
from collections.abc import Sequence
from typing import Final, cast

import attrs

from amqpgate.config.audit_sinks import AuditAmqp
from amqpgate.errors import ConfigError
from amqpgate.ocsf import OcsfEvent, class_name
from amqpgate.protocol.sasl import Credentials
from amqpgate.telemetry.audit.outlets.publisher import ConfirmedPublisher
from amqpgate.telemetry.audit.outlets.receiver import Ready, Sent
from amqpgate.telemetry.http_request import NotTakenError
from amqpgate.values import define
from amqpgate.wire.generated import v0_9_1 as amqp

_OUTCOMES: Final = {1: "success", 2: "failure"}


@define(eq=False)
class AmqpReceiver:
    """An exchange."""

    settings: AuditAmqp
    #: The gateway's name, which the broker lists.
    gateway: str
    _publisher: ConfirmedPublisher | None = attrs.field(default=None, init=False)

    def ready(self, event: OcsfEvent) -> Ready:
        """A message's body, and its routing key: class, kind of event, outcome."""
        metadata = cast("dict[str, str]", event["metadata"])
        outcome = _OUTCOMES.get(cast("int", event["status_id"]), "other")
        # A kind is two words, such as session.open.
        kind = metadata["event_code"].replace(".", "_")
        key = f"{class_name(event)}.{kind}.{outcome}"
        body = json.dumps(event, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
        return Ready(metadata["uid"], key, body.encode())

    def send(self, records: Sequence[Ready]) -> Sent:
        publisher = self._publisher or self._opened()
        messages = [(one.key, _about(one), one.data) for one in records]
        try:
            settled = publisher.publish(self.settings.exchange, messages)
        except BaseException:
            # Nobody knows which of them the broker has.
            self.close()
            raise
        if settled.broken:
            self.close()
        again = [one for at, one in enumerate(records) if at not in settled.confirmed]
        why = settled.broken or "it answers basic.nack"
        if len(again) == len(records) and settled.broken:
            raise NotTakenError(why)
        there = len(records) - len(again)
        unroutable = min(there, settled.returned)
        return Sent(there - unroutable, unroutable=unroutable, again=again, why=why)

    def ask(self) -> str:
        self._opened()
        return "lets the gateway in, and has the exchange"

    def close(self) -> None:
        if self._publisher is not None:
            self._publisher.close()
            self._publisher = None

    def _opened(self) -> ConfirmedPublisher:
        settings, url = self.settings, self.settings.url
        context = None
        try:
            login = settings.login()
            if url.scheme == "amqps":
                ca = None if settings.ca is None else str(settings.ca)
                context = ssl.create_default_context(cafile=ca)
        except (ConfigError, OSError) as error:
            raise NotTakenError(str(error)) from None
        credentials = Credentials(login.user, login.password.reveal().encode())
        self._publisher = ConfirmedPublisher(url.host, url.port, context, float(settings.timeout))
        try:
            self._publisher.open(
                credentials, url.vhost or "/", f"amqpgate audit {self.gateway}", settings.exchange
            )
        except BaseException:
            self.close()
            raise
        return self._publisher


def _about(record: Ready) -> amqp.BasicProperties:
    return amqp.BasicProperties(
        content_type="application/json",
        delivery_mode=2,
        message_id=record.id,
        type=f"ocsf.{record.key.partition('.')[0]}",
        app_id="amqpgate",
    )

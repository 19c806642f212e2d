"""Where alerts go: standard output, a folder of files, a table, a web hook, an exchange."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from http.client import HTTPException
from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

import attrs

from amqpgate.cli.audit_output import replaced
from amqpgate.cli.failures import WRONG, Failure
from amqpgate.cli.telling import echo
from amqpgate.config.address import is_loopback
from amqpgate.pipeline.lake.answers import add_alerts
from amqpgate.pipeline.lake.table import Lake
from amqpgate.pipeline.watch.alert import Alert, table_of
from amqpgate.pipeline.watch.course import Undelivered

if TYPE_CHECKING:
    from amqpgate.config.address import AmqpUrl

#: Alerts of one request.
_AT_ONCE: Final = 500
_TIMEOUT: Final = 10.0
_TOKEN: Final = "AMQPGATE_WEBHOOK_TOKEN"  # noqa: S105 - the variable's name
_PASSWORD: Final = "AMQPGATE_PUBLISH_PASSWORD"  # noqa: S105 - the variable's name
_CHANNEL: Final = 1
_PERSISTENT: Final = 2
#: Bytes of a routing key (AMQP 0-9-1, section 4.2.5.3).
_LONGEST_KEY: Final = 255


class PrintSink:
    """Standard output: an object per line."""

    def deliver(self, alerts: Sequence[Alert], number: int) -> None:
        """Print them."""
        for alert in alerts:
            # In ASCII: names of clients must not drive a terminal.
            echo(json.dumps(alert.cloud_event(), default=str))


@attrs.frozen
class FileSink:
    """A file of lines for each batch. If it comes again, the same is in the same file."""

    folder: Path
    name: str

    def deliver(self, alerts: Sequence[Alert], number: int) -> None:
        """Write them."""
        self.folder.mkdir(parents=True, exist_ok=True)
        with replaced(str(self.folder / f"{self.name}-{number:06}.json")) as out:
            out.writelines(f"{_line(alert)}\n" for alert in alerts)


@attrs.frozen
class TableSink:
    """A table, which has each alert once."""

    lake: Lake
    name: str

    def deliver(self, alerts: Sequence[Alert], number: int) -> None:
        """Add what it does not have."""
        add_alerts(self.lake, self.name, table_of(alerts))


class _NoRedirects(HTTPRedirectHandler):
    """Another address than the one that was given gets nothing."""

    def redirect_request(self, *_: object) -> None:
        return None


@attrs.frozen
class WebHookSink:
    """A server that takes CloudEvents, many at once. It is asked until it has answered that it has them."""

    url: str

    def deliver(self, alerts: Sequence[Alert], number: int) -> None:
        """Post them. Raises ``Undelivered``."""
        headers = {"Content-Type": "application/cloudevents-batch+json"}
        if token := os.environ.get(_TOKEN):
            headers["Authorization"] = f"Bearer {token}"
        opener = build_opener(_NoRedirects)
        for place in range(0, len(alerts), _AT_ONCE):
            some = [alert.cloud_event() for alert in alerts[place : place + _AT_ONCE]]
            request = Request(self.url, json.dumps(some, default=str).encode(), headers)  # noqa: S310 - checked
            try:
                with opener.open(request, timeout=_TIMEOUT) as answer:
                    answer.read(0)
            except HTTPError as error:
                error.close()
                raise Undelivered(f"the web hook answers {error.code}") from None
            except (OSError, HTTPException) as error:
                raise Undelivered(f"the web hook does not answer: {error}") from error


@attrs.frozen
class _Broker:
    upstream: str
    amqp: AmqpUrl
    user: str


@attrs.frozen
class ExchangeSink:
    """An exchange of a broker: a persistent message for each, confirmed, with the alert's id as its own.

    The routing key is ``KIND.VIRTUAL HOST``, of which it has 255 bytes.
    """

    url: AmqpUrl
    name: str

    def deliver(self, alerts: Sequence[Alert], number: int) -> None:
        """Publish them. Raises ``Undelivered``."""
        from amqpgate.broker.amqp.events import ContentReceived, MethodReceived
        from amqpgate.cli.move_amqp import MoveLink
        from amqpgate.wire.generated import v0_9_1 as amqp

        end = _Broker(self.url.host, self.url, self.url.user or "guest")
        link = MoveLink(
            end,
            self.url.vhost or "/",
            os.environ.get(_PASSWORD, "guest"),
            timeout=_TIMEOUT,
            product="amqpgate audit",
        )
        try:
            link.open()
            link.ask(_CHANNEL, amqp.ConfirmSelect(), amqp.ConfirmSelectOk)
            for alert in alerts:
                publish = amqp.BasicPublish(exchange=self.name, routing_key=routing_key_of(alert))
                properties = amqp.BasicProperties(
                    content_type="application/cloudevents+json",
                    delivery_mode=_PERSISTENT,
                    message_id=alert.id,
                )
                link.publish(_CHANNEL, publish, properties, _event(alert))
            # Queues confirm in their own order, one or several.
            waiting = set(range(1, len(alerts) + 1))
            while waiting:
                event = link.next()
                if not isinstance(event, MethodReceived | ContentReceived):
                    continue
                if isinstance(event.method, amqp.BasicNack):
                    raise Undelivered(f"{self.url.host} does not take a message")
                if isinstance(event.method, amqp.BasicAck):
                    tag = event.method.delivery_tag
                    waiting -= {one for one in waiting if one <= tag} if event.method.multiple else {tag}
        except Failure as error:
            raise Undelivered(str(error).removeprefix("amqpgate: ")) from error
        finally:
            link.close()


def routing_key_of(alert: Alert) -> str:
    """That of an alert. The virtual host is what a client claims, with escapes: it may leave no room."""
    return f"{alert.kind}.{alert.vhost or ''}".encode()[:_LONGEST_KEY].decode(errors="ignore")


def web_hook(url: str) -> WebHookSink:
    """The server at a URL. Raises ``Failure``."""
    if not url.startswith(("https://", "http://")):
        raise Failure("amqpgate: --webhook takes http:// and https:// only", WRONG)
    if "@" in url.split("://", 1)[1].split("/", 1)[0]:
        raise Failure(f"amqpgate: --webhook: no password in a URL; {_TOKEN} is sent as a bearer token", WRONG)
    if (
        os.environ.get(_TOKEN)
        and not url.startswith("https://")
        and not is_loopback(urlsplit(url).hostname or "")
    ):
        raise Failure(
            f"amqpgate: --webhook: {_TOKEN} would cross the network in the clear: say https://", WRONG
        )
    return WebHookSink(url)


def exchange(url: str, name: str) -> ExchangeSink:
    """An exchange of the broker at a URL. Raises ``Failure``."""
    from amqpgate.config.address import AmqpUrl

    try:
        parsed = AmqpUrl.parse(url)
    except ValueError as error:
        raise Failure(f"amqpgate: --publish: {error}", WRONG) from None
    if parsed.password is not None:
        raise Failure(f"amqpgate: --publish: no password in a URL; it is taken from {_PASSWORD}", WRONG)
    return ExchangeSink(parsed, name)


def _line(alert: Alert) -> str:
    return json.dumps(alert.cloud_event(), ensure_ascii=False, default=str)


def _event(alert: Alert) -> bytes:
    return _line(alert).encode()

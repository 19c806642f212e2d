"""What the verbs share that show a running gateway: its answers, its events, and tables for people.

Names come from clients: what is shown of them is on one line, and no terminal takes it for a command.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, TypeAlias, cast
from urllib.parse import urlencode

from amqpgate.cli.asking import admin_address, ask, connection_to, token_option, url_of
from amqpgate.cli.failures import Failure, reported
from amqpgate.logs import on_one_line

if TYPE_CHECKING:
    from amqpgate.config import Address

JSON: TypeAlias = "str | int | float | bool | Sequence[JSON] | Mapping[str, JSON] | None"
Row: TypeAlias = Mapping[str, JSON]

guarded_option = token_option(help="File with the bearer token, as admin.tokenFile has it.")

#: Seconds without a word after which a gateway is taken for gone; it says something every 15.
_SILENCE = 40.0
#: What a session that stops says of itself, for people.
FLOWS = {"slow_broker": "slow broker", "slow_client": "slow client"}


class WatchedGateway(NamedTuple):
    """A running gateway, by its admin interface."""

    address: Address
    headers: Mapping[str, str]
    #: Seconds.
    timeout: float

    def get(self, path: str, **parameters: str | int | None) -> Row:
        """An answer in JSON; parameters that are None are left out. Raises ``Failure``."""
        given = {name: value for name, value in parameters.items() if value is not None}
        return self._said("GET", f"{path}?{urlencode(given)}" if given else path, None)

    def post(self, path: str, body: Row) -> Row:
        """What it says to that order. Raises ``Failure``."""
        return self._said("POST", path, json.dumps(body))

    def order(self, path: str) -> None:
        """An order that is answered by a word. Raises ``Failure``."""
        self._text("POST", path, None)

    def _said(self, verb: str, path: str, body: str | None) -> Row:
        try:
            said = json.loads(self._text(verb, path, body))
        except (ValueError, RecursionError):
            said = None
        if not isinstance(said, dict):
            raise Failure(
                f"amqpgate: {url_of(self.address)}{path} answers with no object of JSON: is that the address "
                "of a gateway's admin interface?"
            )
        return said

    def _text(self, verb: str, path: str, body: str | None) -> str:
        headers = {**self.headers, "Content-Type": "application/json"} if body is not None else self.headers
        status, _, text = ask(self.address, verb, path, timeout=self.timeout, headers=headers, body=body)
        if status not in (HTTPStatus.OK, HTTPStatus.ACCEPTED):
            raise Failure(text or f"amqpgate: {url_of(self.address)}{path} says {status}")
        return text

    def events(self, *only: str) -> Iterator[tuple[str, Row]]:
        """Names and data of events, for as long as the gateway is there. Raises ``Failure``."""
        import http.client

        path = f"/events?{urlencode({'only': ','.join(only)})}"
        connection = connection_to(self.address, _SILENCE)
        try:
            connection.request("GET", path, headers=dict(self.headers))
            answer = connection.getresponse()
            if answer.status != HTTPStatus.OK:
                text = answer.read(4096).decode("utf-8", "replace").strip()
                raise Failure(text or f"amqpgate: {url_of(self.address)}/events says {answer.status}")
            yield "", {}
            name = ""
            while line := answer.readline():
                key, _, value = line.decode().strip().partition(": ")
                if key == "event":
                    name = value
                elif key == "data":
                    yield name, cast("Row", json.loads(value))
        except (OSError, http.client.HTTPException) as error:
            raise Failure(f"amqpgate: no answer from {url_of(self.address)}/events: {error}") from error
        finally:
            connection.close()


def gateway_at(admin: str, token_file: Path | None, timeout: float) -> WatchedGateway:
    """That of the options. Raises ``Failure``."""
    from amqpgate.config.upstream import read_secret
    from amqpgate.yamldoc import FilePath

    headers = {}
    if token_file is not None:
        with reported():
            headers["Authorization"] = f"Bearer {read_secret(FilePath(token_file))}"
    return WatchedGateway(admin_address(admin), headers, timeout)


def rows_of(answer: Row, key: str) -> list[Row]:
    """The objects listed under a key."""
    return cast("list[Row]", answer[key])


def text_of(value: JSON) -> str:
    """One cell: ``-`` where it is not known."""
    if value is None:
        return "-"
    return f"{value:,.1f}" if isinstance(value, float) else on_one_line(str(value))


def lines_of(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """A table as lines of text."""
    widths = [max(map(len, column)) for column in zip(titles, *rows, strict=True)]
    for row in (titles, *rows):
        padded = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(padded).rstrip()

"""``amqpgate run --take-over``: have the gateway that runs here drain, and take its admin address.

::

    the one that runs                        its successor
      │ listens                                │ asks whether there is one, and may be told what to do
      │                                        │ listens on the same ports, and serves
      │ ◀─────────────────────── POST /drain ──│
      │ new connections go to the successor    │
      │ listens no more ── 202 ──────────────▶ │
      │ gives the admin address up             │ takes it
      │ parts with its sessions, and ends      │
"""

from __future__ import annotations

import json
import logging
import socket
import ssl
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Self

import attrs

from amqpgate.cli.asking import ask
from amqpgate.cli.failures import Failure, ensure_free
from amqpgate.config import HttpsAddress

if TYPE_CHECKING:
    from amqpgate.config import Address, Settings

log = logging.getLogger(__name__)

#: Seconds that one waits for the other: to answer, and to give its admin address up.
_PATIENCE: Final = 15.0


@attrs.frozen
class Takeover:
    """Who takes the place of the gateway that is at this admin address."""

    settings: Settings
    address: Address
    headers: dict[str, str]
    #: Who speaks TLS there has the certificate of the settings, whatever name it is for.
    context: ssl.SSLContext | None

    @classmethod
    def find(cls, settings: Settings) -> Self | None:
        """None where nobody is there. Raises ``Failure`` where it cannot be asked."""
        if settings.admin is None:
            raise Failure("amqpgate: --take-over asks the gateway that runs by the admin address: set it")
        token = settings.admin.token()
        headers = {} if token is None else {"Authorization": f"Bearer {token.reveal()}"}
        address, context = settings.admin.bind, None
        if settings.admin.tls is not None:
            address = HttpsAddress(address.host, address.port)
            context = ssl.create_default_context(cafile=settings.admin.tls.cert)
            context.check_hostname = False
            context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
        takeover = cls(settings, address, headers, context)
        try:
            socket.create_connection((takeover.address.host, takeover.address.port), _PATIENCE).close()
        except ConnectionRefusedError:
            return None
        except OSError as error:
            raise Failure(f"amqpgate: --take-over: {takeover.address}: {error.strerror or error}") from error
        takeover._ask("GET", "/lifecycle", HTTPStatus.OK)
        return takeover

    def take_over(self) -> None:
        """Return when the admin address is free. Raises ``Failure``. Blocks: not for a thread that serves."""
        self._ask("POST", "/drain", HTTPStatus.ACCEPTED, json.dumps({"successors": self.settings.workers}))
        log.info("the gateway that was here drains, and new connections come here")
        deadline = time.monotonic() + _PATIENCE
        while True:
            try:
                ensure_free([("admin", self.address.host, self.address.port)])
            except Failure:
                if time.monotonic() > deadline:
                    raise
                time.sleep(0.05)
            else:
                return

    def _ask(self, verb: str, path: str, due: HTTPStatus, body: str | None = None) -> None:
        status, _, text = ask(
            self.address,
            verb,
            path,
            timeout=_PATIENCE,
            headers=self.headers,
            body=body,
            context=self.context,
        )
        if status != due:
            raise Failure(f"amqpgate: --take-over: http://{self.address}{path} says {status}: {text}")

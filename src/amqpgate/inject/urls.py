"""AMQP URLs as text, so that what is not changed stays as it was written.

In a pod's environment ``$(NAME)`` stands for a variable that was defined before (Kubernetes, "dependent
environment variables"), so that much of a URL may not be known yet.
"""

from __future__ import annotations

import re
from typing import Final

import attrs

from amqpgate.config import AmqpUrl
from amqpgate.config.address import Address, is_loopback
from amqpgate.inject.values import NotInjectedError

_URL = re.compile(
    r"(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*)://(?:(?P<login>[^/?#]*)@)?(?P<server>[^/?#@]*)(?P<rest>.*)", re.S
)
#: By the application's scheme: what it says to the sidecar, and what the sidecar says to the broker.
_SCHEMES: Final = {
    "amqp": ("amqp", "amqp"),
    "amqps": ("amqp", "amqps"),
    # kombu's and Celery's names for the same.
    "pyamqp": ("pyamqp", "amqp"),
}
#: Options by which an application tells its library how to speak TLS.
_TLS_OPTION = re.compile(r"[?&][^=&]*(ssl|tls|cert|verify)", re.I)
_SETTINGS: Final = "Such things belong in the sidecar's own settings (annotation amqpgate.io/config)"
REFERENCE: Final = re.compile(r"\$\(([A-Za-z_.-][A-Za-z0-9_.-]*)\)")


@attrs.frozen
class Url:
    """The parts of an AMQP URL."""

    scheme: str
    #: User and password with the ``@`` after them; empty where there are none.
    login: str
    #: ``host[:port]``.
    server: str
    #: Virtual host and options.
    rest: str

    @property
    def upstream(self) -> str:
        """Where the sidecar has to go. `NotInjectedError` says why that cannot be told."""
        if "," in self.server or ";" in self.server:
            raise NotInjectedError(f"several brokers. {_SETTINGS}")
        _, scheme = _SCHEMES[self.scheme]
        if REFERENCE.search(self.server):
            return f"{scheme}://{self.server}"
        url = self._parsed(scheme)
        return f"{scheme}://{Address(url.host, url.port)}"

    @property
    def is_local(self) -> bool:
        """Whether it leads into the pod itself."""
        if REFERENCE.search(self.server):
            return False
        try:
            return is_loopback(self._parsed("amqp").host)
        except NotInjectedError:
            return False

    def _parsed(self, scheme: str) -> AmqpUrl:
        try:
            return AmqpUrl.parse(f"{scheme}://{self.server}")
        except ValueError as error:
            raise NotInjectedError(str(error)) from None

    def at(self, port: int) -> str:
        """The same, with the sidecar in the broker's place. `NotInjectedError` where more had to change."""
        if ";" in self.server or "://" in self.rest:
            raise NotInjectedError(f"several URLs, of which the others lead past the sidecar. {_SETTINGS}")
        if self.scheme == "amqps" and _TLS_OPTION.search(self.rest):
            raise NotInjectedError(f"options for TLS, which only the sidecar will speak. {_SETTINGS}")
        scheme, _ = _SCHEMES[self.scheme]
        return f"{scheme}://{self.login}127.0.0.1:{port}{self.rest}"


def url_in(text: str) -> Url | None:
    """The AMQP URL that ``text`` is; None where it is something else."""
    match = _URL.fullmatch(text)
    if match is None or match["scheme"].lower() not in _SCHEMES:
        return None
    login = "" if match["login"] is None else f"{match['login']}@"
    return Url(match["scheme"].lower(), login, match["server"], match["rest"])

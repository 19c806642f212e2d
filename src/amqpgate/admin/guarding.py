"""Who may ask, and who may change something.

- With a token (``admin.tokenFile``) every request bears it, but for what is open to all: the probes, and
  files in which there is nothing to know.
- Without one the address is on loopback, and whoever is on this machine may ask. A page in a browser of this
  machine is not: it cannot read answers (same-origin policy) unless its own host name comes to mean
  127.0.0.1 (DNS rebinding), so ``Host`` has to be a name of loopback.
- A page may send without reading. So a change is refused where ``Origin`` is another one's, and has to be one
  that no page sends elsewhere without asking first (Fetch standard, CORS-safelisted request-header): by the
  header ``X-Amqpgate``, or a content type of application/json, or the token.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping, Set
from typing import TypeAlias

from amqpgate.admin.subject import Refused
from amqpgate.values import frozen
from amqpgate.yamldoc import Secret

#: Requests that change nothing (RFC 9110, section 9.2.1).
SAFE = frozenset({"GET", "HEAD", "OPTIONS"})

#: By name in small letters; of one that comes twice the first.
Headers: TypeAlias = Mapping[str, str]


@frozen
class Rules:
    """Who may ask at one address."""

    token: Secret | None
    #: Paths that need no token.
    open: Set[str]
    is_loopback: bool = True

    def check(self, method: str, path: str, query: bytes, headers: Headers) -> None:
        """Raises ``Refused``."""
        if self.is_loopback and not is_local_name(headers.get("host")):
            raise Refused(421, "the admin address is on loopback, and Host names something else")
        if not query.isascii():
            # What makes a URL of it takes it for UTF-8 (RFC 3986, section 2: it is percent-encoded).
            raise Refused(400, "a query is written in ASCII")
        if path not in self.open and not is_trusted(headers, self.token):
            raise Refused(401, "a bearer token is needed")
        if method not in SAFE:
            may_change(headers, self.token)


def is_trusted(headers: Headers, token: Secret | None) -> bool:
    """Whether it bears the token, if there is one."""
    given = headers.get("authorization", "")
    return token is None or hmac.compare_digest(given.encode(), f"Bearer {token.reveal()}".encode())


def may_change(headers: Headers, token: Secret | None) -> None:
    """Whether no foreign page is behind a change. Raises ``Refused``."""
    if "origin" in headers and not _is_own(headers):
        raise Refused(403, "not for pages of others")
    kind = headers.get("content-type", "").partition(";")[0].strip().lower()
    if token is None and "x-amqpgate" not in headers and kind != "application/json":
        raise Refused(403, "a change needs the header 'X-Amqpgate: 1', so that no web page can ask for it")


def _is_own(headers: Headers) -> bool:
    return headers["origin"].partition("://")[2].lower() == headers.get("host", "").lower()


def is_local_name(host: str | None) -> bool:
    """Whether a request's ``Host`` means this machine, whatever a name server says. HTTP/1.0 has none."""
    if host is None:
        return True
    if host.startswith("["):
        name = host[1:].partition("]")[0]
    else:
        name = host.rpartition(":")[0] if host.count(":") == 1 else host
    name = name.rstrip(".").lower()
    if name == "localhost" or name.endswith(".localhost"):
        return True
    try:
        return ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False

"""A real issuer of tokens on loopback: the OpenID provider of PyPI's ``oidc-provider-mock``, in a process.

Its ID tokens are signed (RS256), and are for the client that asks for them: that client is the audience here.
"""

from __future__ import annotations

import json
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import attrs

from .ports import free_port
from .processes import Child

#: Whom tokens are for.
AUDIENCE = "rabbitmq"

_REDIRECT = "https://client.example.org/back"


class _NoRedirects(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: object) -> None:
        return None


@attrs.define
class OidcProvider:
    """One provider. `start` it, and `stop` it at the end."""

    folder: Path
    #: Seconds for which a token holds.
    max_age: int = 3600
    port: int = attrs.field(factory=free_port)
    _child: Child | None = None

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start, with a new key, and wait until it answers."""
        command = [sys.executable, "-W", "ignore", "-m", "oidc_provider_mock", "--port", str(self.port)]
        self._child = Child(
            [*command, "--token-max-age", str(self.max_age)],
            log=self.folder / "provider.log",
            env={"AUTHLIB_INSECURE_TRANSPORT": "1", "PATH": "/usr/bin:/bin"},
        )
        self._child.wait_until(self.answers, timeout=120, what="the OpenID provider")

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop()
            self._child = None

    def answers(self) -> bool:
        try:
            return bool(self.get("/jwks"))
        except OSError:
            return False

    def get(self, path: str) -> dict[str, object]:
        """A document of its, which is JSON."""
        with urllib.request.urlopen(self.issuer + path, timeout=20) as answer:
            found: dict[str, object] = json.loads(answer.read())
            return found

    def set_user(self, user: str, claims: Mapping[str, object]) -> None:
        """What its tokens say of a user."""
        request = urllib.request.Request(
            f"{self.issuer}/users/{urllib.parse.quote(user)}",
            json.dumps(claims).encode(),
            {"Content-Type": "application/json"},
            method="PUT",
        )
        urllib.request.urlopen(request, timeout=20).close()

    def token(self, user: str, audience: str = AUDIENCE) -> str:
        """A new token of a user's, by the authorization code flow."""
        asked = {
            "client_id": audience,
            "redirect_uri": _REDIRECT,
            "response_type": "code",
            "scope": "openid",
        }
        opener = urllib.request.build_opener(_NoRedirects)
        try:
            opener.open(
                f"{self.issuer}/oauth2/authorize?{urllib.parse.urlencode(asked)}",
                urllib.parse.urlencode({"sub": user}).encode(),
                timeout=20,
            ).close()
            raise AssertionError("it redirects")
        except urllib.error.HTTPError as redirect:
            with redirect:
                where = urllib.parse.urlsplit(redirect.headers["Location"])
        code = urllib.parse.parse_qs(where.query)["code"][0]
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": _REDIRECT,
            "client_id": audience,
            "client_secret": "any",
        }
        body = urllib.parse.urlencode(form).encode()
        with urllib.request.urlopen(f"{self.issuer}/oauth2/token", body, timeout=20) as answer:
            return str(json.loads(answer.read())["id_token"])


@contextmanager
def oidc_provider(folder: Path, max_age: int = 3600) -> Iterator[OidcProvider]:
    """One that runs while inside."""
    provider = OidcProvider(folder, max_age)
    provider.start()
    try:
        yield provider
    finally:
        provider.stop()

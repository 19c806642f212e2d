"""Who clients are: the issuers of tokens that the gateway verifies itself."""

from __future__ import annotations

from typing import ClassVar, Final, Literal, Self, TypeAlias
from urllib.parse import urlsplit

import attrs

from amqpgate.config.address import is_ipv6, is_loopback, is_name
from amqpgate.values import frozen
from amqpgate.yamldoc import FilePath, Invalid, Seconds, TextValue, between, doc, not_empty

#: Signatures by a private key, whose public key verifies them (RFC 7518, section 3.1; RFC 8037, section 3.1).
#: ``none``, and those by a secret that both sides know, are not among them.
Algorithm: TypeAlias = Literal[
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"
]
_ALL: Final[tuple[Algorithm, ...]] = (
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "EdDSA",
)

#: Where an issuer says where its keys are (OpenID Connect Discovery 1.0, section 4).
WELL_KNOWN: Final = "/.well-known/openid-configuration"


@frozen
class KeysUrl(TextValue):
    """``https://host[:port]/path``; ``http://`` on this machine only: who can change keys can be anybody."""

    text: str
    host: str
    port: int
    #: With the query, if there is one.
    path: str
    is_tls: bool

    FORM: ClassVar[str] = "URL"
    PATTERN: ClassVar[str | None] = r"^https?://[^@#]+$"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read it; ValueError, which does not repeat it."""
        form = "expected https://host/path"
        if not text.isascii() or not text.isprintable() or " " in text:
            raise ValueError(form)
        try:
            parts = urlsplit(text)
            host, port = parts.hostname or "", parts.port
        except ValueError:
            raise ValueError(form) from None
        is_tls = parts.scheme == "https"
        if parts.username is not None or parts.password is not None or parts.fragment:
            raise ValueError("the URL has no login and no fragment")
        if not (is_tls or parts.scheme == "http") or not (is_name(host) or is_ipv6(host)):
            raise ValueError(form)
        if not is_tls and not is_loopback(host):
            raise ValueError("keys cross the network by https:// only; http:// is for this machine")
        path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        return cls(text, host, port or (443 if is_tls else 80), path, is_tls)

    def __str__(self) -> str:
        return self.text


@frozen(kw_only=True)
class OAuth:
    """Tokens (JWT) in the place of passwords: verified here before anything else is done with a login."""

    issuer: str = attrs.field(
        validator=not_empty(),
        metadata=doc("who issues them: `iss` must say exactly that"),
    )
    audience: tuple[str, ...] = attrs.field(
        validator=not_empty(), metadata=doc("whom they are for: `aud` must name one of these")
    )
    jwks: KeysUrl | None = attrs.field(
        default=None,
        metadata=doc(
            "where the issuer's public keys are (JWK Set); `https://`, or `http://` on this machine",
            default="what the issuer says at `/.well-known/openid-configuration`",
        ),
    )
    jwks_file: FilePath | None = attrs.field(
        default=None, metadata=doc("file with the public keys, in the place of a URL")
    )
    ca: FilePath | None = attrs.field(
        default=None,
        metadata=doc("authorities that may sign the certificate there, PEM", default="the system's"),
    )
    algorithms: tuple[Algorithm, ...] = attrs.field(
        default=_ALL, validator=not_empty(), metadata=doc("signatures that are taken", default="all of them")
    )
    clock_skew: Seconds = attrs.field(
        default=Seconds(30),
        validator=between(0, 600),
        metadata=doc("how far the issuer's clock may be off: for `exp`, `nbf` and `iat`"),
    )
    require: bool = attrs.field(
        default=True,
        metadata=doc(
            "refuse logins without a token, but for EXTERNAL with a verified certificate; `false`: a "
            "password that is no token is the broker's matter"
        ),
    )
    user_claims: tuple[str, ...] = attrs.field(
        default=("sub", "client_id"),
        validator=not_empty(),
        metadata=doc("claims that name the user: the first that is there", default="`sub`, `client_id`"),
    )
    scopes_claim: str = attrs.field(
        default="scope",
        validator=not_empty(),
        metadata=doc("claim with the scopes: words, or a list; `a.b` is `b` within `a`"),
    )
    groups_claim: str = attrs.field(
        default="groups",
        validator=not_empty(),
        metadata=doc("claim with the groups, likewise; of text, one group"),
    )
    claims: tuple[str, ...] = attrs.field(
        default=(),
        metadata=doc("other claims that subjects of policies name; no others are kept", default="none"),
    )
    refresh: Seconds = attrs.field(
        default=Seconds(300),
        validator=between(1, 86400),
        metadata=doc("time after which the keys are fetched again; for a key that is not known, at once"),
    )
    keep_keys: Seconds = attrs.field(
        default=Seconds(3600),
        validator=between(1, 7 * 86400),
        metadata=doc("how long the keys hold while they cannot be fetched; then no token is taken"),
    )
    timeout: Seconds = attrs.field(
        default=Seconds(5), validator=between(0.1, 60), metadata=doc("time to fetch the keys")
    )
    expiry_grace: Seconds = attrs.field(
        default=Seconds(0),
        validator=between(0, 86400),
        metadata=doc(
            "how long a session goes on beyond the end of its token (`exp` and `clockSkew`), to renew it by "
            "`connection.update-secret`; then it is closed with 320"
        ),
    )

    def __attrs_post_init__(self) -> None:
        if self.jwks is not None and self.jwks_file is not None:
            raise Invalid("jwks and jwksFile exclude each other", "jwks_file")
        if self.jwks is None and self.jwks_file is None:
            try:
                _ = self.discovery
            except ValueError as error:
                raise Invalid(
                    f"keys are looked for at the issuer: {error}; or give jwks or jwksFile", "issuer"
                ) from None
        if self.ca is not None and not self._asks_by_tls:
            raise Invalid("is for https:// only", "ca")
        for index, name in enumerate(self.claims):
            if name in self.claims[:index]:
                raise Invalid(f"'{name}' is listed already", "claims", index)

    @property
    def _asks_by_tls(self) -> bool:
        if self.jwks_file is not None:
            return False
        return (self.jwks or self.discovery).is_tls

    @property
    def discovery(self) -> KeysUrl:
        """Where the issuer says where its keys are. `ValueError` where its name is no URL."""
        return KeysUrl.parse(self.issuer.rstrip("/") + WELL_KNOWN)


@frozen(kw_only=True)
class Identity:
    """Who clients are."""

    oauth: OAuth | None = attrs.field(
        default=None,
        metadata=doc(
            "tokens that the gateway verifies, at every listener that does not say others", default="none"
        ),
    )

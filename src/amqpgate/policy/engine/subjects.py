"""Whom a policy is about."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Mapping
from typing import ClassVar, Self, TypeAlias

import attrs

from amqpgate.policy.engine.operations import Principal, TokenIdentity
from amqpgate.values import frozen
from amqpgate.yamldoc import Invalid, TextValue, doc, not_empty

Network: TypeAlias = "ipaddress.IPv4Network | ipaddress.IPv6Network"


@frozen
class NamePattern(TextValue):
    """A name, `prefix*`, or `*` for any."""

    text: str
    is_prefix: bool

    FORM: ClassVar[str] = "name, `prefix*` or `*`"
    PATTERN: ClassVar[str | None] = r"^[^*]*\*?$"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read it; ValueError where the asterisk is not last."""
        stem = text.removesuffix("*")
        if "*" in stem:
            raise ValueError("an asterisk stands only at the end: name, prefix* or *")
        if re.search(r"\{[A-Za-z_]", stem):
            raise ValueError("variables such as {user} or ${NAME} are not expanded here")
        return cls(stem, stem != text)

    def matches(self, name: str) -> bool:
        """Whether ``name`` is meant."""
        return name.startswith(self.text) if self.is_prefix else name == self.text

    def __str__(self) -> str:
        return self.text + "*" * self.is_prefix


@frozen
class Cidr(TextValue):
    """A range of IP addresses, such as `10.0.0.0/8` or `2001:db8::/32`; one address is a range, too."""

    text: str
    network: Network = attrs.field(eq=False)

    FORM: ClassVar[str] = "CIDR"
    PATTERN: ClassVar[str | None] = r"^[0-9a-fA-F:.]+(/[0-9]{1,3})?$"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read it; ValueError says what is wrong, such as bits beyond the prefix."""
        try:
            return cls(text, ipaddress.ip_network(text))
        except ValueError as error:
            try:
                wide = ipaddress.ip_network(text, strict=False)
            except ValueError:
                raise ValueError(f"expected a range of addresses such as 10.0.0.0/8: {error}") from None
            raise ValueError(f"bits are set beyond the prefix; did you mean {wide}?") from None

    def contains(self, address: str) -> bool:
        """Whether the address, as text, lies within. One that is no IP address does not."""
        try:
            parsed = ipaddress.ip_address(address.strip("[]").partition("%")[0])
        except ValueError:
            return False
        if isinstance(parsed, ipaddress.IPv6Address) and parsed.ipv4_mapped is not None:
            parsed = parsed.ipv4_mapped
        return parsed in self.network

    def __str__(self) -> str:
        return self.text


@frozen(kw_only=True)
class TlsSubject:
    """The client's verified certificate: all that is given must hold."""

    subject: NamePattern | None = attrs.field(
        default=None, metadata=doc("its subject in the form of RFC 4514, such as `CN=orders,O=Corp`")
    )
    common_name: NamePattern | None = attrs.field(default=None, metadata=doc("its common name"))
    san: NamePattern | None = attrs.field(
        default=None, metadata=doc("one of its alternative names, such as `DNS:orders.corp`")
    )
    spiffe: NamePattern | None = attrs.field(
        default=None, metadata=doc("its SPIFFE id, such as `spiffe://corp/orders`")
    )

    SCHEMA: ClassVar[dict[str, int]] = {"minProperties": 1}

    def __attrs_post_init__(self) -> None:
        if self.subject is self.common_name is self.san is self.spiffe is None:
            raise Invalid("say subject, commonName, san or spiffe")
        if self.spiffe is not None and not self.spiffe.text.startswith("spiffe://"):
            raise Invalid("a SPIFFE id starts with spiffe://", "spiffe")

    def matches(self, principal: Principal) -> bool:
        """Whether the client showed such a certificate."""
        tls = principal.tls
        if tls is None:
            return False
        if self.subject is not None and not self.subject.matches(tls.subject):
            return False
        if self.common_name is not None and not self.common_name.matches(tls.common_name):
            return False
        if self.san is not None and not any(self.san.matches(name) for name in tls.names):
            return False
        return self.spiffe is None or (tls.spiffe is not None and self.spiffe.matches(tls.spiffe))


@frozen(kw_only=True)
class Subject:
    """Whom a policy is about: all that is given must hold."""

    user: NamePattern = attrs.field(default=NamePattern("", True), metadata=doc("user name"))
    vhosts: tuple[NamePattern, ...] | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(not_empty()),
        metadata=doc("virtual hosts, any of them", default="any"),
    )
    source_cidr: tuple[Cidr, ...] | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(not_empty()),
        metadata=doc("where the client is, any of these ranges", key="sourceCIDR", default="anywhere"),
    )
    listeners: tuple[NamePattern, ...] | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(not_empty()),
        metadata=doc("listeners that the client came by, any of them", default="any"),
    )
    tls: TlsSubject | None = attrs.field(
        default=None, metadata=doc("the client's verified certificate", default="any, or none")
    )
    groups: tuple[NamePattern, ...] | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(not_empty()),
        metadata=doc(
            "groups that the user is in, any of them: of `UserGroups` documents, or of a verified token",
            default="any, or none",
        ),
    )
    scopes: tuple[NamePattern, ...] | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(not_empty()),
        metadata=doc("scopes of the client's verified token, any of them", default="any, or no token"),
    )
    claims: Mapping[str, NamePattern] = attrs.field(
        factory=dict,
        metadata=doc(
            "claims of the client's verified token, all of them: of a list, one value; the settings name "
            "those that are kept (`identity.oauth.claims`)",
            default="any, or no token",
        ),
    )
    client: Mapping[str, NamePattern] = attrs.field(
        factory=dict,
        metadata=doc(
            "what the client says of itself (client properties such as `product`); it may say anything",
            default="anything",
        ),
    )

    @property
    def asks_login(self) -> bool:
        """Whether it asks for what is known only when the client has logged in, beside its user."""
        return self.groups is not None or self.scopes is not None or bool(self.claims)

    def selects(self, principal: Principal) -> bool | None:
        """True: it fits. False: it may fit, the user is not known. None: it does not fit."""
        if self.vhosts is not None and not any(name.matches(principal.vhost) for name in self.vhosts):
            return None
        if self.source_cidr is not None and not any(
            block.contains(principal.source or "") for block in self.source_cidr
        ):
            return None
        if self.listeners is not None and not any(
            name.matches(principal.listener or "") for name in self.listeners
        ):
            return None
        if self.tls is not None and not self.tls.matches(principal):
            return None
        for key, pattern in self.client.items():
            said = principal.client.get(key)
            if said is None or not pattern.matches(said):
                return None
        if not self._fits_token(principal.token):
            return None
        is_member = self.groups is None or any(
            name.matches(group) for name in self.groups for group in principal.groups
        )
        if principal.user is not None:
            return True if is_member and self.user.matches(principal.user) else None
        return is_member and self.user.is_prefix and not self.user.text

    def _fits_token(self, token: TokenIdentity | None) -> bool:
        if self.scopes is None and not self.claims:
            return True
        if token is None:
            return False
        if self.scopes is not None and not any(
            name.matches(scope) for name in self.scopes for scope in token.scopes
        ):
            return False
        return all(
            any(pattern.matches(value) for value in token.values_of(claim))
            for claim, pattern in self.claims.items()
        )

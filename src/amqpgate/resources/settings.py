"""The types of the operator's settings file."""

from __future__ import annotations

import re
from collections.abc import Mapping as AbstractMapping
from pathlib import Path
from typing import ClassVar, Literal, Self, TypeAlias
from urllib.parse import urlsplit

import attrs

from amqpgate.config import Address, ListenerTls, Log
from amqpgate.config.address import is_loopback
from amqpgate.policy.engine.subjects import Subject
from amqpgate.yamldoc import (
    FilePath,
    Invalid,
    TextValue,
    compose,
    doc,
    not_empty,
    only_document,
    read,
    schema_for,
    structure,
)
from amqpgate.yamldoc import describe as describe_type
from amqpgate.yamldoc.schema import Schema

SCHEMA_ID = "https://amqpgate.io/schema/operator.json"

#: What the authors of another namespace may write. All other kinds lead sessions elsewhere, change or record
#: their messages, or say who is in a group.
TenantKind: TypeAlias = Literal["AccessPolicy", "RatePolicy"]

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?\Z")
_NAME = re.compile(r"[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?\Z")


@attrs.frozen
class NamespaceName(TextValue):
    """The name of a namespace."""

    text: str

    FORM: ClassVar[str] = "name of a namespace"
    PATTERN: ClassVar[str | None] = r"^[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?$"

    @classmethod
    def parse(cls, text: str) -> Self:
        """ValueError for what is none: it becomes a part of paths."""
        if not _LABEL.match(text):
            raise ValueError("the name of a namespace has a-z, 0-9 and -, 63 at most")
        return cls(text)

    def __str__(self) -> str:
        return self.text


@attrs.frozen
class ObjectName(TextValue):
    """The name of an object of Kubernetes."""

    text: str

    FORM: ClassVar[str] = "name of an object"
    PATTERN: ClassVar[str | None] = r"^[a-z0-9]([-a-z0-9.]{0,251}[a-z0-9])?$"

    @classmethod
    def parse(cls, text: str) -> Self:
        """ValueError for what is none: it becomes a part of paths."""
        if not _NAME.match(text):
            raise ValueError("the name of an object has a-z, 0-9, - and ., 253 at most")
        return cls(text)

    def __str__(self) -> str:
        return self.text


@attrs.frozen
class ServerUrl(TextValue):
    """Where an API server answers."""

    host: str
    port: int
    is_tls: bool

    FORM: ClassVar[str] = "URL"
    PATTERN: ClassVar[str | None] = r"^https?://"

    @classmethod
    def parse(cls, text: str) -> Self:
        """HTTPS; HTTP goes to this machine alone, for a token goes along."""
        try:
            parts = urlsplit(text)
            port = parts.port
        except ValueError:
            raise ValueError("expected https://HOST:PORT") from None
        is_bare = parts.path in ("", "/") and not (parts.query or parts.fragment or parts.username)
        if parts.scheme not in ("http", "https") or not parts.hostname or not is_bare:
            raise ValueError("expected https://HOST:PORT and nothing behind it")
        if parts.scheme == "http" and not is_loopback(parts.hostname):
            raise ValueError("HTTP is spoken with this machine alone: a token goes along")
        is_tls = parts.scheme == "https"
        return cls(parts.hostname, port or (443 if is_tls else 80), is_tls)

    @property
    def authority(self) -> str:
        """``HOST:PORT``."""
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"

    def __str__(self) -> str:
        return f"http{'s' * self.is_tls}://{self.authority}"


@attrs.frozen(kw_only=True)
class ApiServer:
    """How the API server is reached."""

    url: ServerUrl | None = attrs.field(
        default=None, metadata=doc("where it answers", default="as the pod's environment says")
    )
    token_file: FilePath | None = attrs.field(
        default=None,
        metadata=doc("the token to show; read for each request", default="the service account's"),
    )
    ca: FilePath | None = attrs.field(
        default=None, metadata=doc("who signed its certificate", default="the service account's")
    )


@attrs.frozen(kw_only=True)
class Owner:
    """The workload that the ConfigMap goes with: Kubernetes removes it when that is removed."""

    kind: Literal["Deployment", "StatefulSet"] = attrs.field(metadata=doc("kind of the workload"))
    name: ObjectName = attrs.field(metadata=doc("its name, in the operator's namespace"))


@attrs.frozen(kw_only=True)
class Tenant:
    """A namespace whose authors may write policies, for some users."""

    namespace: NamespaceName = attrs.field(metadata=doc("the namespace"))
    subjects: tuple[Subject, ...] = attrs.field(
        validator=not_empty(),
        metadata=doc("whom its policies may select: each subject of theirs has to lie within one of these"),
    )
    kinds: tuple[TenantKind, ...] = attrs.field(
        default=("AccessPolicy", "RatePolicy"),
        validator=not_empty(),
        metadata=doc("what its authors may write", default="`AccessPolicy`, `RatePolicy`"),
    )


@attrs.frozen(kw_only=True)
class GatewayFacts:
    """What the settings of the gateways have, so that no resource asks for what they lack."""

    upstreams: tuple[str, ...] | None = attrs.field(
        default=None, metadata=doc("the names of their upstreams", default="not asked")
    )
    shared_limits: bool = attrs.field(
        default=True, metadata=doc("whether they have `sharedLimits`; else no limit may be `shared`")
    )
    claim_checks: bool = attrs.field(
        default=True, metadata=doc("whether they have an object store for `claimCheck`")
    )


@attrs.frozen(kw_only=True)
class PolicyWebhook:
    """Where the API server asks whether a policy may be stored."""

    tls: ListenerTls = attrs.field(metadata=doc("its certificate; the files are read again when they change"))
    bind: Address = attrs.field(
        default=Address("0.0.0.0", 8443),  # noqa: S104 - the API server calls from elsewhere
        metadata=doc("where `/validate` is served"),
    )

    def __attrs_post_init__(self) -> None:
        if self.tls.certificates:
            raise Invalid("the webhook has one name, and one certificate", "tls", "certificates")


@attrs.frozen(kw_only=True)
class Operator:
    """Whose resources count, and what becomes of them."""

    config_map: ObjectName = attrs.field(
        default=ObjectName("amqpgate-policies"),
        metadata=doc("ConfigMap with what is in force, in the operator's namespace"),
    )
    lease: ObjectName = attrs.field(
        default=ObjectName("amqpgate-operator"),
        metadata=doc("Lease by which one of several operators works"),
    )
    namespace: NamespaceName | None = attrs.field(
        default=None,
        metadata=doc(
            "the operator's namespace, whose authors may write every kind, for everybody",
            default="the service account's",
        ),
    )
    tenants: tuple[Tenant, ...] = attrs.field(
        default=(), metadata=doc("further namespaces, and what their authors may do", default="none")
    )
    owner: Owner | None = attrs.field(
        default=None, metadata=doc("what the ConfigMap goes with", default="nothing: it stays")
    )
    gateway: GatewayFacts = attrs.field(
        factory=GatewayFacts, metadata=doc("what the gateways' settings have")
    )
    server: ApiServer = attrs.field(factory=ApiServer, metadata=doc("how the API server is reached"))
    bind: Address = attrs.field(
        default=Address("127.0.0.1", 15681), metadata=doc("where `/livez`, `/readyz` and `/metrics` are")
    )
    webhook: PolicyWebhook | None = attrs.field(
        default=None,
        metadata=doc("an admission webhook, which refuses what is wrong before it is stored", default="none"),
    )
    log: Log = attrs.field(factory=Log, metadata=doc("what is written to standard error"))

    def __attrs_post_init__(self) -> None:
        seen = set() if self.namespace is None else {self.namespace}
        for index, tenant in enumerate(self.tenants):
            if tenant.namespace in seen:
                raise Invalid(f"{tenant.namespace} is named already", "tenants", index, "namespace")
            seen.add(tenant.namespace)


def load(path: Path, environ: AbstractMapping[str, str]) -> Operator:
    """The settings in the file at ``path``; ``environ`` fills ``${NAME}``. `ConfigError` cites the place."""
    return structure(only_document(read(path), str(path), environ), Operator)


def parse(text: str, environ: AbstractMapping[str, str], *, file: str = "operator.yaml") -> Operator:
    """The settings in ``text``; ``file`` is the name that errors cite and that relative paths start from."""
    return structure(only_document(compose(text, file), file, environ), Operator)


def describe() -> str:
    """A Markdown table of every key, its type, default and meaning."""
    return describe_type(Operator)


def schema() -> Schema:
    """The JSON Schema of the settings file, as committed in ``spec/schema/operator.json``."""
    return schema_for(Operator, identifier=SCHEMA_ID, environment=True)

"""The types of the injector's settings file."""

from __future__ import annotations

from collections.abc import Mapping as AbstractMapping
from pathlib import Path
from typing import Literal, TypeAlias

import attrs

from amqpgate import __version__
from amqpgate.config import Address, ListenerTls, Log
from amqpgate.errors import ConfigError
from amqpgate.yamldoc import (
    AnyValue,
    Invalid,
    between,
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

SCHEMA_ID = "https://amqpgate.io/schema/injector.json"

PullPolicy: TypeAlias = Literal["Always", "IfNotPresent", "Never"]
SidecarKind: TypeAlias = Literal["native", "classic"]
OnError: TypeAlias = Literal["closed", "open"]

#: Names that applications commonly read their AMQP URL from.
VARIABLES = (
    "AMQP_URL",
    "AMQP_URI",
    "RABBITMQ_URL",
    "RABBITMQ_URI",
    "RABBIT_URL",
    "CLOUDAMQP_URL",
    "BROKER_URL",
    "CELERY_BROKER_URL",
)


@attrs.frozen(kw_only=True)
class Resources:
    """The sidecar's share of its node, in the words of Kubernetes."""

    requests: AbstractMapping[str, AnyValue] = attrs.field(
        factory=dict, metadata=doc("what is set aside for it", default="-")
    )
    limits: AbstractMapping[str, AnyValue] = attrs.field(
        factory=dict, metadata=doc("what it cannot exceed", default="-")
    )


def _usual() -> Resources:
    """For an application of some hundred messages a second."""
    return Resources(
        requests={"cpu": AnyValue("50m"), "memory": AnyValue("96Mi")},
        limits={"memory": AnyValue("256Mi")},
    )


@attrs.frozen(kw_only=True)
class Injector:
    """What is put into pods, and where the webhook is served."""

    image: str = attrs.field(
        default=f"ghcr.io/amqpgate/amqpgate:{__version__}",
        validator=not_empty(),
        metadata=doc("image of the sidecar"),
    )
    image_pull_policy: PullPolicy | None = attrs.field(
        default=None, metadata=doc("when the image is pulled", default="as Kubernetes has it")
    )
    sidecar: SidecarKind = attrs.field(
        default="native",
        metadata=doc(
            "`native`: an init container that stays (Kubernetes 1.29 or later); `classic`: one more container"
        ),
    )
    port: int = attrs.field(
        default=5672,
        validator=between(1, 65535),
        metadata=doc("where applications find the sidecar, on 127.0.0.1"),
    )
    variables: tuple[str, ...] = attrs.field(
        default=VARIABLES,
        validator=not_empty(),
        metadata=doc(
            "environment variables that may hold an AMQP URL, in pods that name none",
            default=", ".join(f"`{name}`" for name in VARIABLES),
        ),
    )
    policies: str | None = attrs.field(
        default=None,
        validator=attrs.validators.optional(not_empty()),
        metadata=doc(
            "ConfigMap with policies, in the pod's namespace, for pods that name none",
            default="none: everything is allowed",
        ),
    )
    on_error: OnError = attrs.field(
        default="closed",
        metadata=doc(
            "a pod that cannot be injected is refused (`closed`), or goes in without, with a warning (`open`)"
        ),
    )
    resources: Resources = attrs.field(
        factory=_usual,
        metadata=doc(
            "the sidecar's requests and limits",
            default="50m of CPU and 96Mi requested, limited to 256Mi of memory",
        ),
    )
    bind: Address = attrs.field(
        default=Address("0.0.0.0", 8443),  # noqa: S104 - the API server calls from elsewhere
        metadata=doc("where the webhook is served"),
    )
    tls: ListenerTls | None = attrs.field(
        default=None,
        metadata=doc(
            "certificate of the webhook, and with `clientCa` whose certificate a caller must show; the files "
            "are read again when they change",
            default="required to serve",
        ),
    )
    log: Log = attrs.field(factory=Log, metadata=doc("what is written to standard error"))

    def __attrs_post_init__(self) -> None:
        if self.tls is not None and self.tls.certificates:
            raise Invalid("the webhook has one name, and one certificate", "tls", "certificates")


def load(path: Path, environ: AbstractMapping[str, str]) -> Injector:
    """The settings in the file at ``path``; ``environ`` fills ``${NAME}``. `ConfigError` cites the place."""
    return structure(only_document(read(path), str(path), environ), Injector)


def parse(text: str, environ: AbstractMapping[str, str], *, file: str = "injector.yaml") -> Injector:
    """The settings in ``text``; ``file`` is the name that errors cite and that relative paths start from."""
    return structure(only_document(compose(text, file), file, environ), Injector)


def describe() -> str:
    """A Markdown table of every key, its type, default and meaning."""
    return describe_type(Injector)


def schema() -> Schema:
    """The JSON Schema of the settings file, as committed in ``spec/schema/injector.json``."""
    return schema_for(Injector, identifier=SCHEMA_ID, environment=True)


__all__ = ["ConfigError", "Injector", "describe", "load", "parse", "schema"]

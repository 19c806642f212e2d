"""Frozen settings: what one configuration file, or a few flags, say that the gateway is to be.

In comes a YAML file (or flags); out come `Settings`, validated once, or a `ConfigError` that cites
file, line and column. Nothing here opens a socket; the only I/O is reading files that settings name.

- `address`: `Address`, `AmqpUrl`, `Login`.
- `settings`, `upstream`, `clusters`: the types; every attribute carries the sentence that the docs and JSON
  Schema show.
- `pooling`: how clients share connections to the broker.
- `shared`: where several gateways count together.
- `identity`: the tokens that are verified.
- `audit`: where records are written.
- `tracing`: where spans go; `otlp`: where metrics and log lines do.
- `metrics`: the labels that metrics have for who asks.
- `load`: `load` for a file, `from_flags` for none, `describe` for the table of all keys.

``python -m amqpgate.config`` prints the table of keys, ``--schema`` the JSON Schema.

Neighbours: every room above reads settings; this one knows `amqpgate.yamldoc` and `amqpgate.errors`.
"""

from amqpgate.config.address import Address, AmqpUrl, HttpsAddress, Login
from amqpgate.config.audit import Audit
from amqpgate.config.clusters import Endpoint, HealthCheck, Outliers, Retries
from amqpgate.config.identity import WELL_KNOWN, Algorithm, Identity, KeysUrl, OAuth
from amqpgate.config.load import describe, from_flags, load, parse, schema
from amqpgate.config.metrics import MetricLabels, SessionLabel
from amqpgate.config.otlp import Otlp
from amqpgate.config.pooling import Connections, Pooling
from amqpgate.config.settings import (
    Admin,
    AdminTls,
    Limits,
    Listener,
    ListenerTls,
    Log,
    LogFormat,
    LogLevel,
    NamedCertificate,
    ProxyProtocol,
    Settings,
    TlsVersion,
)
from amqpgate.config.shared import RedisUrl, SharedLimits
from amqpgate.config.tracing import HttpUrl, Tracing
from amqpgate.config.upstream import USUAL_FRAME_MAX, Upstream, UpstreamTls
from amqpgate.yamldoc import Secret

__all__ = [
    "USUAL_FRAME_MAX",
    "WELL_KNOWN",
    "Address",
    "Admin",
    "AdminTls",
    "Algorithm",
    "AmqpUrl",
    "Audit",
    "Connections",
    "Endpoint",
    "HealthCheck",
    "HttpUrl",
    "HttpsAddress",
    "Identity",
    "KeysUrl",
    "Limits",
    "Listener",
    "ListenerTls",
    "Log",
    "LogFormat",
    "LogLevel",
    "Login",
    "MetricLabels",
    "NamedCertificate",
    "OAuth",
    "Otlp",
    "Outliers",
    "Pooling",
    "ProxyProtocol",
    "RedisUrl",
    "Retries",
    "Secret",
    "SessionLabel",
    "Settings",
    "SharedLimits",
    "TlsVersion",
    "Tracing",
    "Upstream",
    "UpstreamTls",
    "describe",
    "from_flags",
    "load",
    "parse",
    "schema",
]

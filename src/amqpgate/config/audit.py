"""Where records of what passed and what happened are written."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from typing import Literal, TypeAlias

import attrs

from amqpgate.config.audit_sinks import AuditAmqp, AuditOpenSearch, AuditOtlp, AuditSinkSettings
from amqpgate.values import frozen
from amqpgate.yamldoc import FolderPath, Invalid, Seconds, Size, between, doc

AuditFormat: TypeAlias = Literal["parquet", "json"]

#: It is part of file names; readers pass over those that begin with "_" or ".".
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")


@frozen(kw_only=True)
class Audit:
    """Audit records: usage by window, and events."""

    format: AuditFormat | None = attrs.field(
        default=None,
        metadata=doc(
            "`parquet`: files below `folder`; needs `pip install 'amqpgate[audit]'`. "
            "`json`: a line for each record, to standard output",
            default="required without `otlp`, `openSearch` or `amqp`",
        ),
    )
    folder: FolderPath | None = attrs.field(
        default=None, metadata=doc("where Parquet files are written", default="required for `parquet`")
    )
    gateway: str | None = attrs.field(
        default=None,
        metadata=doc(
            "name of this gateway in records and file names; letters, digits, `.`, `_`, `-`",
            default="the host's name",
        ),
    )
    window: Seconds = attrs.field(
        default=Seconds(10.0),
        validator=between(0.1, 3600),
        metadata=doc(
            "what passed is summed so long; a crash loses what has not been read out: this time, and a second"
        ),
    )
    roll_records: int = attrs.field(
        default=50_000,
        validator=between(1, 10_000_000),
        metadata=doc("a file is closed after so many records, or at 32 MiB before compression"),
    )
    roll_interval: Seconds = attrs.field(
        default=Seconds(30.0),
        validator=between(0.1, 86400),
        metadata=doc("or when it is so old; only then does it have its name, and readers see it"),
    )
    max_queue: Size = attrs.field(
        default=Size(64 << 20),
        validator=between(64 << 10, 1 << 40),
        metadata=doc(
            "bytes of records that wait to be written. When it is full, who causes an event waits, new "
            "connections first, and usage is summed on in longer windows: nothing is dropped. As much may "
            "wait for each of `otlp`, `openSearch` and `amqp`"
        ),
    )
    otlp: AuditOtlp | None = attrs.field(
        default=None,
        metadata=doc(
            "a collector that gets records as events of OCSF, by OpenTelemetry's protocol", default="none"
        ),
    )
    open_search: AuditOpenSearch | None = attrs.field(
        default=None,
        metadata=doc("OpenSearch or Elasticsearch that gets them, by `_bulk`", default="none"),
    )
    amqp: AuditAmqp | None = attrs.field(
        default=None, metadata=doc("a broker that gets them, a message each", default="none")
    )

    def __attrs_post_init__(self) -> None:
        found = list(self.faults(attrs.asdict(self, recurse=False)))
        if found:
            raise Invalid.together(found)

    @classmethod
    def faults(cls, values: Mapping[str, object]) -> Iterator[Invalid]:
        """What does not fit together, all at once; a value that could not be read is ``...``."""
        form, folder, gateway = (values.get(name) for name in ("format", "folder", "gateway"))
        goes = [name for name in ("format", "otlp", "open_search", "amqp") if values.get(name) is not None]
        if not goes:
            yield Invalid("where do records go? Name a format (parquet, json), otlp, openSearch or amqp")
        if isinstance(gateway, str) and _NAME.fullmatch(gateway) is None:
            yield Invalid("letters, digits, '.', '_', '-', a letter or digit first, at most 100", "gateway")
        if form == "json" and folder is not None:
            yield Invalid("is for parquet; lines of JSON go to standard output", "folder")
        if form is None and goes and folder is not None:
            yield Invalid("is for format: parquet", "folder")
        if form == "parquet" and folder is None:
            yield Invalid("parquet needs a folder", "format")
        if form == "parquet" and find_spec("pyarrow") is None:
            yield Invalid("parquet needs pyarrow: pip install 'amqpgate[audit]'", "format")

    @property
    def sinks(self) -> tuple[AuditSinkSettings, ...]:
        """Who gets records beside what `format` says."""
        return tuple(sink for sink in (self.otlp, self.open_search, self.amqp) if sink is not None)

    @property
    def name(self) -> str:
        """The gateway's name, as in records and file names."""
        if self.gateway is not None:
            return self.gateway
        return re.sub(r"[^A-Za-z0-9._-]|\A[._-]+", "-", socket.gethostname()).lstrip("-")[:100] or "gateway"

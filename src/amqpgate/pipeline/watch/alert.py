"""What a stream tells."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Final, Literal, TypeAlias

import attrs
import pyarrow as pa

AlertKind: TypeAlias = Literal["denied", "shadow", "anomaly", "preflight"]

#: The columns of a table of alerts. ``value`` says how often or how much, ``detail`` is JSON.
SCHEMA: Final = pa.schema(
    [
        pa.field("id", pa.string(), False),
        pa.field("kind", pa.string(), False),
        pa.field("time", pa.timestamp("us", tz="UTC"), False),
        pa.field("user", pa.string()),
        pa.field("vhost", pa.string()),
        pa.field("what", pa.string()),
        pa.field("value", pa.int64()),
        pa.field("detail", pa.string()),
    ]
)


@attrs.frozen(kw_only=True)
class Alert:
    """One thing that somebody should know. The same thing has the same id, whenever it is told."""

    id: str
    kind: AlertKind
    time: datetime
    user: str | None
    vhost: str | None
    what: str
    value: int
    detail: Mapping[str, object]

    def cloud_event(self) -> dict[str, object]:
        """As CloudEvents 1.0 have it."""
        return {
            "specversion": "1.0",
            "id": self.id,
            "source": "amqpgate/audit",
            "type": f"io.amqpgate.audit.{self.kind}",
            "time": self.time.isoformat().replace("+00:00", "Z"),
            "datacontenttype": "application/json",
            "data": {
                "user": self.user,
                "vhost": self.vhost,
                "what": self.what,
                "value": self.value,
                **self.detail,
            },
        }


def id_of(*parts: object) -> str:
    """The id of what these tell apart."""
    return sha256(json.dumps(parts, default=str).encode()).hexdigest()[:32]


def table_of(alerts: Iterable[Alert]) -> pa.Table:
    """Alerts as rows, by id, each once."""
    by_id = {alert.id: alert for alert in alerts}
    rows = [
        attrs.asdict(alert, recurse=False) | {"detail": json.dumps(alert.detail, sort_keys=True, default=str)}
        for _, alert in sorted(by_id.items())
    ]
    return pa.Table.from_pylist(rows, SCHEMA)

"""A gateway that writes audit records, and what it has written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from amqpgate.records import Sort
from amqpgate.wire.generated import v0_9_1 as amqp
from tests.support.audit import Record, records, setting
from tests.support.talker import Talker, relayed

from .conftest import SETTINGS, Stage

MakeStage = Callable[..., Stage]

ACCESS = """
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: access}
spec:
  subjects: [{user: guest}]
  onDeny: {publish: %s}
  rules:
  - {id: small, effect: allow, operations: [basic.publish], exchange: x, properties: {maxBodyBytes: 10}}
  - {id: any, effect: allow, operations: [basic.publish], exchange: x, routingKey: big}
  - id: medium
    effect: allow
    operations: [basic.publish]
    exchange: x
    routingKey: a
    properties: {maxBodyBytes: 20, headers: {deny: [h]}}
  - {id: queues, effect: allow, operations: ["queue.*", basic.consume], queue: {prefix: ""}}
  - {id: bind, effect: allow, operations: [queue.bind], queue: {prefix: ""}, exchange: x}
"""


@pytest.fixture
def audited(make_stage: MakeStage, tmp_path: Path) -> Callable[..., Stage]:
    def make(**options: object) -> Stage:
        return make_stage(text=SETTINGS + setting(tmp_path / "audit", 3600), **options)

    return make


def told(stage: Stage, folder: Path, sort: Sort, **columns: object) -> list[Record]:
    """What was written until the end, which this brings about."""
    stage.running.stop()
    found = records(folder / "audit", sort)
    return [one for one in found if all(one[name] == value for name, value in columns.items())]


def confirming(client: Talker, broker: Talker) -> None:
    relayed(client, broker, amqp.ConfirmSelect(), amqp.ConfirmSelectOk(), 1)

"""What a store is asked, all stores can be asked."""

from __future__ import annotations

import pytest

from amqpgate.gateway.objects.s3 import S3Store
from amqpgate.gateway.objects.store import PART, ObjectStore

from .fake import FakeStore


@pytest.mark.parametrize("kind", [S3Store, FakeStore])
def test_a_store_can_be_asked_all(kind: type) -> None:
    names = {name for name in vars(ObjectStore) if not name.startswith("_")}
    assert "complete" in names
    assert names <= set(dir(kind))


def test_a_part_is_what_s3_takes() -> None:
    assert PART >= 5 * 1024 * 1024

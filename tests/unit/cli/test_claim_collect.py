"""``amqpgate claims collect``: what goes, and what is told."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from amqpgate.cli import main
from amqpgate.gateway.objects.s3 import S3Store
from amqpgate.gateway.objects.store import StoreError
from tests.unit.gateway.objects.fake import FakeStore

POLICY = """
apiVersion: amqpgate.io/v1alpha1
kind: CompatibilityPolicy
metadata: {name: %s}
spec: {subjects: [{}], as: rabbitmq-3.13%s}
"""


def claim(keep: str, prefix: str = "prefix") -> str:
    return f', claimCheck: {{store: "s3://bucket/{prefix}", keepFor: {keep}}}'


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch) -> FakeStore:
    hour, now = 3600, time.time()
    store = FakeStore(objects={"old": b"123", "new": b"4"}, uploads={"left": {}})
    store.since = {"old": now - 10 * hour, "new": now - 5 * hour, "left": now - 10 * hour}
    monkeypatch.setattr(S3Store, "connect", lambda *_: store)
    return store


def collect(folder: Path, *options: str) -> Result:
    return CliRunner().invoke(main, ["claims", "collect", str(folder), *options])


def test_what_is_old_goes(store: FakeStore, tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(POLICY % ("p", claim("6h")))
    dry = collect(tmp_path, "--dry-run")
    assert (dry.exit_code, dry.output) == (0, "s3://bucket/prefix: 2 objects would go, 3 bytes\n")
    assert len(store.objects) == 2
    done = collect(tmp_path)
    assert (done.exit_code, done.output) == (0, "s3://bucket/prefix: 2 objects removed, 3 bytes\n")
    assert list(store.objects) == ["new"]
    assert store.uploads == {}


def test_what_one_policy_still_needs_stays(store: FakeStore, tmp_path: Path) -> None:
    both = "---\n".join((POLICY % ("p", claim("1h")), POLICY % ("q", claim("24h"))))
    (tmp_path / "p.yaml").write_text(both)
    assert "0 objects removed" in collect(tmp_path).output


def test_a_store_that_does_not_answer_is_told(
    store: FakeStore, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> FakeStore:
        raise StoreError("cannot list the object: AccessDenied")

    monkeypatch.setattr(S3Store, "connect", fail)
    (tmp_path / "p.yaml").write_text(POLICY % ("p", claim("6h")))
    result = collect(tmp_path)
    assert result.exit_code == 1
    assert "s3://bucket/prefix: cannot list the object: AccessDenied" in result.output


def test_policies_without_a_store_are_wrong_input(tmp_path: Path) -> None:
    (tmp_path / "p.yaml").write_text(POLICY % ("p", ""))
    assert collect(tmp_path).exit_code == 2

"""What people write for a place with tables."""

from __future__ import annotations

from pathlib import Path

import pytest

from amqpgate.pipeline.errors import PipelineError
from amqpgate.pipeline.lake.address import TableAddress, address_of


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("delta:/srv/audit", TableAddress("delta", "/srv/audit")),
        ("delta:file:///srv/audit", TableAddress("delta", "/srv/audit")),
        ("delta:s3://bucket/a/b/", TableAddress("delta", "s3://bucket/a/b")),
        ("iceberg:/srv/audit", TableAddress("iceberg", "/srv/audit")),
        ("iceberg://prod/a.b", TableAddress("iceberg", "a.b", "prod")),
        ("/srv/audit", None),
        ("s3://bucket/audit", None),
        ("s3a://bucket/audit", None),
    ],
)
def test_it_is_read(text: str, address: TableAddress | None) -> None:
    assert address_of(text) == address
    if address is not None:
        assert address_of(str(address)) == address


@pytest.mark.parametrize(
    "text",
    [
        "delta:",
        "delta:s3://",
        "delta:s3://a/../b",
        "delta:s3://key:secret@bucket/x",
        "delta:gs://bucket",
        "iceberg:",
        "iceberg://prod",
        "iceberg:///audit",
        "iceberg:s3://bucket/audit",
    ],
)
def test_half_an_address_is_refused(text: str) -> None:
    with pytest.raises(PipelineError) as raised:
        address_of(text)
    assert "secret" not in str(raised.value)


def test_a_folder_is_what_is_in_it(tmp_path: Path) -> None:
    assert address_of(str(tmp_path)) is None
    (tmp_path / "catalog.db").touch()
    assert address_of(f"file://{tmp_path}") == TableAddress("iceberg", str(tmp_path))
    (tmp_path / "catalog.db").unlink()
    (tmp_path / "usage/_delta_log").mkdir(parents=True)
    assert address_of(str(tmp_path)) == TableAddress("delta", str(tmp_path))

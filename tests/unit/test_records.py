"""The audit record's tables, as schemas."""

from __future__ import annotations

import attrs
import pyarrow as pa
import pytest

from amqpgate.records import SCHEMA_VERSION, TABLES, VERSION_KEY, Event, Record, Usage, arrow_schema


@pytest.mark.parametrize("table", TABLES.values())
def test_a_column_is_there_for_each_attribute_in_order(table: type[Record]) -> None:
    schema = arrow_schema(table)
    fields = attrs.fields(table)
    assert schema.names == [field.name for field in fields]
    assert schema.metadata == {VERSION_KEY: str(SCHEMA_VERSION).encode()}
    for field in fields:
        column = schema.field(field.name)
        assert column.nullable is field.metadata["null"]
        assert column.metadata == {b"doc": field.metadata["doc"].encode()}
        # What may be null is so by default, and only that.
        assert (field.default is None) is field.metadata["null"]


def test_types() -> None:
    kinds = {field.name: field.type for table in TABLES.values() for field in arrow_schema(table)}
    assert kinds["record_id"] == kinds["exchange"] == pa.string()
    assert kinds["window_start"] == kinds["time"] == pa.timestamp("us", "UTC")
    assert kinds["body"] == pa.binary()
    assert kinds["bytes"] == kinds["body_size"] == pa.int64()
    assert kinds["reply_code"] == pa.int16()
    assert kinds["passive"] == pa.bool_()


def test_both_sorts_begin_and_end_alike() -> None:
    common = attrs.fields(Record)
    first = [field.name for field in common if not field.metadata["later"]]
    last = [field.name for field in common if field.metadata["later"]]
    assert first
    assert last
    for table in (Event, Usage):
        names = arrow_schema(table).names
        assert names[: len(first)] == first
        own = [
            field.name for field in attrs.fields(table) if field.metadata["later"] and field.name not in last
        ]
        # A column of one sort alone comes behind those of both.
        assert names[-len(last + own) :] == last + own


def test_a_column_that_version_1_had_stays() -> None:
    """Readers of older files, and older readers, rely on it: a change is a new version."""
    assert SCHEMA_VERSION == 1
    assert " ".join(arrow_schema(Event).names) == (
        "record_id schema_version gateway session user vhost source listener tls client operation exchange "
        "routing_key routing_key_is_template queue destination arguments passive foreign any_key verdict "
        "policy rule policy_digest time kind outcome reply_code reason body_size properties headers body "
        "body_cut audit_policy audit_rule detail upstream_user amqp_version more_keys token"
    )
    assert " ".join(arrow_schema(Usage).names) == (
        "record_id schema_version gateway session user vhost source listener tls client operation exchange "
        "routing_key routing_key_is_template queue destination arguments passive foreign any_key verdict "
        "policy rule policy_digest window_start window_end first last requests messages bytes upstream_user "
        "amqp_version more_keys token largest_body"
    )

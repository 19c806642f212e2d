"""What usage is summed by, against a model: every count is somewhere, and where it is, it belongs."""

from __future__ import annotations

from collections import Counter

import attrs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.datapath.scanner import Meter
from amqpgate.gateway.observers.audit import rows as rows_module
from amqpgate.gateway.observers.audit.columns import OperationKind
from amqpgate.gateway.observers.audit.rows import Rows, template
from amqpgate.policy.engine.conditions import Match
from amqpgate.telemetry.audit.rows import AuditRow, Origin

ORIGIN = Origin(session="s", user="u", vhost="/", source=None, listener=None)

words = st.one_of(
    st.sampled_from(["order", "created", "", "x", "a-rather-long-word-that-is-an-id"]),
    st.integers(0, 9999).map(str),
    st.text("ab19-", max_size=4),
)
keys = st.lists(words, min_size=1, max_size=4).map(".".join)


def catches(pattern: str, key: str) -> bool:
    """As a topic exchange does."""
    matcher = Match(topic=pattern).compile({})
    return matcher is not None and matcher.matches(key)


def row_of(meter: Meter) -> AuditRow:
    assert isinstance(meter.row, AuditRow)
    return meter.row


@pytest.mark.parametrize(
    ("key", "folded"),
    [
        ("order.4711.created", "order.*.created"),
        ("order.created", "order.created"),
        ("amq.gen-Xa38Kk", "amq.*"),
        ("abcdefghijklmnopq.b", "*.b"),
        ("abcdefghijklmnop.b", "abcdefghijklmnop.b"),
        ("", ""),
        ("a..1", "a..*"),
    ],
)
def test_words_that_vary_are_folded(key: str, folded: str) -> None:
    assert template(key) == folded


@given(keys)
def test_a_template_catches_its_key(key: str) -> None:
    assert catches(template(key), key)
    assert template(template(key)) == template(key)


@given(
    st.lists(
        st.tuples(
            st.sampled_from(["basic.publish", "basic.deliver", "queue.declare"]), keys, st.integers(0, 99)
        )
    )
)
def test_every_count_is_where_it_belongs_and_what_is_kept_is_bounded(
    uses: list[tuple[str, str, int]],
) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rows_module, "EXACT", 3)
        patch.setattr(rows_module, "TEMPLATES", 2)
        book: list[Meter] = []
        rows = Rows(ORIGIN, "digest", book)
        true: Counter[tuple[str, str]] = Counter()
        for operation, key, size in uses:
            is_method = operation == "queue.declare"
            kind = OperationKind(operation=operation, **{"queue" if is_method else "routing_key": key})
            meter = rows.meter(kind)
            meter.count(1, size, 1.0)
            row = row_of(meter)
            assert row.operation == operation
            if is_method:
                assert row.queue == key
            elif row.routing_key_is_template:
                assert row.routing_key is not None
                assert catches(row.routing_key, key)
            else:
                assert row.routing_key == key
                true[operation, key] += 1
            assert len(rows) <= 3 + 2 + 2
        told = [(row_of(meter), *meter.read()[:2]) for meter in book]
        for operation in ("basic.publish", "basic.deliver", "queue.declare"):
            mine = [
                (messages, byte_count) for row, messages, byte_count in told if row.operation == operation
            ]
            sizes = [size for name, _, size in uses if name == operation]
            assert (sum(m for m, _ in mine), sum(o for _, o in mine)) == (len(sizes), sum(sizes))


def test_exact_then_templates_then_all() -> None:
    rows = Rows(ORIGIN, "digest", [])
    publish = OperationKind(operation="basic.publish", exchange="x", routing_key="")
    for number in range(rows_module.EXACT):
        assert not row_of(
            rows.meter(attrs.evolve(publish, routing_key=f"k.{number}"))
        ).routing_key_is_template
    folded = row_of(rows.meter(attrs.evolve(publish, routing_key="k.123456.z")))
    assert (folded.routing_key, folded.routing_key_is_template) == ("k.*.z", True)
    for number in range(rows_module.TEMPLATES):
        rows.meter(attrs.evolve(publish, routing_key=".".join("a" * number)))
    last = row_of(rows.meter(attrs.evolve(publish, routing_key="another.way")))
    assert (last.routing_key, last.routing_key_is_template) == ("#", True)
    assert row_of(rows.meter(attrs.evolve(publish, routing_key="k.9999999.z"))) is folded


def test_further_keys_are_folded_with_the_key() -> None:
    rows = Rows(ORIGIN, "digest", [])
    publish = OperationKind(operation="basic.publish", exchange="x", routing_key="fixed")
    for number in range(rows_module.EXACT):
        more = f'["copy.{number}"]'
        assert row_of(rows.meter(attrs.evolve(publish, more_keys=more))).more_keys == more
    folded = row_of(rows.meter(attrs.evolve(publish, more_keys='["copy.12345","copy.9","log",null]')))
    assert (folded.routing_key, folded.more_keys) == ("fixed", '["copy.*","log",null]')
    # The further keys are templates.
    assert folded.routing_key_is_template
    assert row_of(rows.meter(attrs.evolve(publish, more_keys='["copy.8","copy.7","log",null]'))) is folded
    for number in range(rows_module.TEMPLATES):
        rows.meter(attrs.evolve(publish, routing_key=".".join("a" * number)))
    last = row_of(rows.meter(attrs.evolve(publish, routing_key="z", more_keys='["a"]')))
    assert (last.routing_key, last.more_keys) == ("#", "[null]")
    without = row_of(rows.meter(attrs.evolve(publish, routing_key="z")))
    assert (without.routing_key, without.more_keys) == ("#", None)

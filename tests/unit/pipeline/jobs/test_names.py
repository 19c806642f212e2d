"""Names of queues to patterns: every name means itself, and no pattern more than said."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.pipeline.jobs.names import NameKind, ProposedPattern, fold, name_from_shape, shape_of
from amqpgate.pipeline.jobs.templates import DEFAULT, TemplateBounds
from amqpgate.policy.engine.matching import check_pattern, compile_pattern

UUIDS = ["3fa85f64-5717-4562-b3fc-2c963f66afa6", "00000000-0000-4000-8000-00000000000a"]
PART = st.one_of(
    st.sampled_from(
        [
            *UUIDS,
            "orders",
            "amq.gen-",
            "worker",
            ".",
            "-",
            "{user}",
            "x",
            "1a2b3c4d",
            "q1a" * 11,
            "e1" * 16,
            "\ue000",
            "\n",
        ]
    ),
    st.integers(0, 20_000).map(str),
)
NAMES = st.lists(st.lists(PART, max_size=4).map("".join), min_size=1, max_size=40, unique=True)


def folded(*names: str, bounds: TemplateBounds = DEFAULT) -> list[tuple[str, str]]:
    """The patterns of these names."""
    found = fold([(name,) for name in names], bounds)
    return sorted({(pattern.form, pattern.text) for pattern in found.values()})


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["orders.in", "orders.out"], [("literal", "orders.in"), ("literal", "orders.out")]),
        # The broker's name says nothing, even the only one.
        (["amq.gen-JzTY20BRgKO-HjmUJj0wLg"], [("regex", r"amq\.gen\-(?:[0-9A-Za-z_-]{22})?")]),
        (["amq.rabbitmq.reply-to.g1h2.abc=="], [("prefix", "amq.rabbitmq.reply-to.")]),
        (["amq.rabbitmq.reply-to"], [("literal", "amq.rabbitmq.reply-to")]),
        ([f"reply-{uuid}" for uuid in UUIDS], [("regex", r"reply\-" + NameKind.UUID.value)]),
        ([f"reply-{UUIDS[0]}"], [("literal", f"reply-{UUIDS[0]}")]),
        (["job.4711.in", "job.4712.in"], [("regex", r"job\.[0-9]+\.in")]),
        # UUIDs are known where they begin, also behind a letter; a commit's hash is not.
        ([f"queue{uuid}" for uuid in UUIDS], [("regex", "queue" + NameKind.UUID.value)]),
        ([f"q{uuid.replace('-', '')}.in" for uuid in UUIDS], [("regex", r"q[0-9a-fA-F]{8,}\.in")]),
        (["qabc1" * 8, "qabc2" * 8], [("literal", "qabc1" * 8), ("literal", "qabc2" * 8)]),
        # The first number stays the same.
        (["t1000.job.4711", "t1000.job.4712"], [("regex", r"t1000\.job\.[0-9]+")]),
        (["worker1", "worker2"], [("literal", "worker1"), ("literal", "worker2")]),
        (["a{user}b"], [("search", r"\Aa\x7buser\}b\z")]),
    ],
)
def test_folds_as_an_engineer_would(names: list[str], expected: list[tuple[str, str]]) -> None:
    assert folded(*names) == expected


def test_folds_more_names_than_the_bound() -> None:
    assert folded(*(f"worker{number}.in" for number in range(4)), bounds=TemplateBounds(values=3)) == [
        ("regex", r"worker[0-9]+\.in")
    ]
    own = [f"orders.{name}" for name in ("in", "out", "dead", "audit")]
    assert folded(*own, "mails", bounds=TemplateBounds(values=3)) == [
        ("literal", "mails"),
        ("prefix", "orders."),
    ]
    assert folded(*own, bounds=TemplateBounds(values=4)) == sorted(("literal", name) for name in own)


@given(NAMES, st.integers(1, 5))
def test_every_name_is_meant_by_its_pattern(names: list[str], values: int) -> None:
    for (name,), pattern in fold([(name,) for name in names], TemplateBounds(values)).items():
        check_pattern(pattern.form, pattern.text)
        matcher = compile_pattern(pattern.form, pattern.text, {})
        assert matcher is not None
        assert matcher.matches(str(name)), pattern
        assert (
            pattern.why != "seen"
            or pattern == ProposedPattern("literal", str(name))
            or pattern.form == "search"
        )


@given(NAMES)
def test_a_shape_gives_its_name_back(names: list[str]) -> None:
    for name in names:
        shape, pieces = shape_of(name)
        assert not pieces or "".join(map(str, name_from_shape(shape, pieces))) == name


@pytest.mark.parametrize("name", [f"reply-{UUIDS[0]}", "job.4711.in", "x-1a2b3c4d"])
def test_a_piece_that_differs_means_its_kind(name: str) -> None:
    shape, pieces = shape_of(name)
    (pattern,) = fold([name_from_shape(shape, [None] * len(pieces))]).values()
    matcher = compile_pattern(pattern.form, pattern.text, {})
    assert pattern.why == "ids"
    assert matcher is not None
    assert matcher.matches(name)
    assert not matcher.matches("payroll")


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["job.4711.in", "job.4712.in"], "job.number.in"),
        ([f"{uuid}.reply.pidbox" for uuid in UUIDS], "uuid.reply.pidbox"),
        (["e1" * 16 + ".in", "e2" * 16 + ".in"], "hex.in"),
        (["job.4711", "job.4712"], "job.number"),
        (["a.b"], "a.b"),
    ],
)
def test_an_expression_has_a_label_for_people(names: list[str], expected: str) -> None:
    assert {pattern.label for pattern in fold([(name,) for name in names]).values()} == {expected}

"""Delayed messages: what enters the ladder, and what consumers see."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.gateway.session.delay_ladder import DONE, LONGEST, OWN, TARGET
from amqpgate.gateway.session.delayed_messages import ID, delay_of, into_ladder, number_of, out_of_ladder
from amqpgate.policy.engine.naming import NotTransformedError
from amqpgate.wire.codec import ContentHeader, decode_header, encode_header
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import Field, Table

PUBLISH = amqp.BasicPublish(exchange="later", routing_key="a.b", mandatory=True)
LADDER = "amqpgate.delay."


def header(headers: dict[str, object] | None, **properties: object) -> ContentHeader:
    table = None if headers is None else Table.of(headers)
    return ContentHeader(60, 3, amqp.BasicProperties(headers=table, **properties))  # type: ignore[arg-type]


def properties(content: ContentHeader) -> amqp.BasicProperties:
    assert isinstance(content.properties, amqp.BasicProperties)
    return content.properties


def headers(content: ContentHeader) -> dict[str, object]:
    table = properties(content).headers
    return {} if table is None else dict(table.to_python())


@pytest.mark.parametrize(
    ("said", "delay"),
    [
        (1, 1),
        (5000, 5000),
        (Field("l", 5000), 5000),
        (Field("s", 5), 5),
        (Field("B", 5), 5),
        (LONGEST, LONGEST),
        (LONGEST + 1, None),
        (0, None),
        (-5, None),
        (1.9, 1),
        (0.9, None),
        (float("inf"), None),
        (float("nan"), None),
        ("5000", 5000),
        ("+7", 7),
        ("-7", None),
        (b"64", 64),
        # As the plugin: neither its signed bytes nor what is no number.
        (Field("b", 5), None),
        (True, None),
        (None, None),
        (Decimal(5), None),
        ([5], None),
        ({"ms": 5}, None),
    ],
)
def test_how_long_a_message_waits(said: object, delay: int | None) -> None:
    assert delay_of(header({"x-delay": said})) == delay


@pytest.mark.parametrize("said", ["", "soon", "5.5", "5 s", "٥", b"\xff", "1" * 5000])  # noqa: RUF001
def test_text_that_is_no_number_is_refused(said: str | bytes) -> None:
    with pytest.raises(NotTransformedError, match="x-delay"):
        delay_of(header({"x-delay": Field("S", said)}))


def test_a_message_without_a_delay_waits_for_nothing() -> None:
    assert delay_of(header(None)) is None
    assert delay_of(header({"k": 1})) is None


def test_what_the_ladder_gets() -> None:
    said = {"k": 1, "x-delay": 100, "CC": ["c"], "x-death": [{"queue": "q"}], f"{OWN}to": "forged"}
    publish = header(said, expiration="9", user_id="bob", priority=4)
    method, content = into_ladder(PUBLISH, publish, 100, 77, 5000)
    assert method == amqp.BasicPublish(exchange=f"{LADDER}07", routing_key="a.b", mandatory=True)
    assert headers(content) == {
        "k": 1,
        "CC": ["c"],
        f"{OWN}x-death": [{"queue": "q"}],
        "x-delay": -100,
        TARGET: "later",
        f"{OWN}id": 77,
        f"{OWN}at": 5000,
        f"{OWN}07": True,
        f"{OWN}expiration": "9",
    }
    table = properties(content).headers
    assert table is not None
    assert number_of(table) == 77
    changed = properties(content)
    assert (changed.expiration, changed.user_id, changed.priority) == (None, "bob", 4)


def death(queue: str, exchange: str, time: int = 1) -> Table:
    return Table.of({"queue": queue, "reason": "expired", "exchange": exchange, "time": Field("T", time)})


def as_dead(content: ContentHeader, *deaths: Table) -> ContentHeader:
    """As RabbitMQ has it, which writes over what the publisher said. The latest first."""
    changed = properties(content)
    table = changed.headers
    assert table is not None
    table = table.with_("x-death", Field("A", tuple(Field("F", one) for one in deaths)))
    for order, one in (("first", deaths[-1]), ("last", deaths[0])):
        for part in ("queue", "reason", "exchange"):
            table = table.with_(f"x-{order}-death-{part}", one.field(part))
    wire = encode_header(ContentHeader(60, content.body_size, amqp.BasicProperties(headers=table)))
    return decode_header(wire)


RUNGS = (death(f"{LADDER}to.later", f"{LADDER}due", 9), death(f"{LADDER}07", f"{LADDER}07", 8))


@given(
    st.dictionaries(st.sampled_from(["k", "CC", "x-death", "x-first-death-queue", "x-y"]), st.integers(0, 9)),
    st.none() | st.sampled_from(["0", "5000"]),
    st.integers(1, LONGEST),
)
def test_a_consumer_sees_what_was_published(
    said: dict[str, object], expiration: str | None, delay: int
) -> None:
    method, content = into_ladder(
        PUBLISH, header({**said, "x-delay": delay}, expiration=expiration), delay, 1, 5000
    )
    came = amqp.BasicDeliver("tag", 1, exchange=DONE, routing_key=method.routing_key)
    seen, shown = out_of_ladder(came, as_dead(content, *RUNGS))
    assert (seen.exchange, seen.routing_key) == ("later", "a.b")
    assert headers(shown) == {**said, "x-delay": -delay}
    table = properties(shown).headers
    assert table is not None
    field = table.field("x-delay")
    assert field is not None
    assert field.tag == "l"
    assert properties(shown).expiration == expiration


def test_a_death_behind_the_ladder_is_the_clients() -> None:
    _, content = into_ladder(PUBLISH, header({"x-delay": 100, "x-death": []}, expiration="5"), 100, 1, 5000)
    after = (death("second", "dlx", 20), death("work", DONE, 10), *RUNGS)
    came = amqp.BasicGetOk(1, exchange="dlx", routing_key="a.b", message_count=0)
    seen, shown = out_of_ladder(came, as_dead(content, *after))
    assert seen is came
    told = headers(shown)
    deaths = told["x-death"]
    assert isinstance(deaths, list)
    assert [(one["queue"], one["exchange"]) for one in deaths] == [("second", "dlx"), ("work", "later")]
    assert {name: told[name] for name in told if name.startswith("x-")} == {
        "x-delay": -100,
        "x-death": deaths,
        "x-first-death-queue": "work",
        "x-first-death-reason": "expired",
        "x-first-death-exchange": "later",
        "x-last-death-queue": "second",
        "x-last-death-reason": "expired",
        "x-last-death-exchange": "dlx",
    }
    # RabbitMQ takes it from what it dead-letters.
    assert properties(shown).expiration is None


def test_one_death_behind_the_ladder_is_the_first_and_the_last() -> None:
    _, content = into_ladder(PUBLISH, header({"x-delay": 100}), 100, 1, 5000)
    dead = as_dead(content, death("work", DONE, 10), *RUNGS)
    told = headers(out_of_ladder(amqp.BasicDeliver("t", 1, exchange="dlx"), dead)[1])
    assert (told["x-first-death-exchange"], told["x-last-death-exchange"]) == ("later", "later")


@pytest.mark.parametrize("said", [None, {}, {"x-delay": 5}, {TARGET: 5}, {"x-death": [{"queue": "q"}]}])
def test_all_else_is_as_it_was(said: dict[str, object] | None) -> None:
    method, content = amqp.BasicDeliver("t", 1, exchange="x"), header(said)
    assert out_of_ladder(method, content) == (method, content)
    assert out_of_ladder(method, content)[1] is content


@pytest.mark.parametrize(
    "deaths", [5, "x", [5, "x"], [{}], [{"queue": 5, "time": "x"}], [{"exchange": DONE}]]
)
def test_a_history_that_is_none_does_no_harm(deaths: object) -> None:
    out_of_ladder(amqp.BasicDeliver("t", 1, exchange=DONE), header({TARGET: "x", "x-death": deaths}))


@pytest.mark.parametrize("said", [{}, {ID: "x"}, {ID: Field("d", 1.5)}])
def test_a_message_without_a_number(said: dict[str, object]) -> None:
    assert number_of(Table.of(said)) is None


def test_an_exchange_whose_name_is_no_text() -> None:
    named = amqp.BasicPublish(exchange="\udcff", routing_key="k")
    _, content = into_ladder(named, header({"x-delay": 100}), 100, 1, 5000)
    came = amqp.BasicDeliver("t", 1, exchange=DONE, routing_key="k")
    seen, shown = out_of_ladder(came, decode_header(encode_header(content)))
    assert (seen.exchange, headers(shown)) == ("\udcff", {"x-delay": -100})

"""The expressions of taps: what they mean, and what is wrong with those that mean nothing."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.policy.engine.taps import (
    ALL,
    ATTRIBUTES,
    DEEPEST,
    LONGEST,
    Both,
    Compare,
    Either,
    Expression,
    MatchError,
    Not,
    parse,
)

PUBLISH = {
    "operation": "basic.publish",
    "vhost": "prod",
    "user": "app-1",
    "client": "10.1.2.3",
    "exchange": "orders",
    "routing_key": "order.eu.created",
    "queue": None,
    "destination": None,
    "verdict": "allow",
}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "  ",
        "vhost=prod and exchange=orders",
        "vhost = prod",
        "exchange != payments",
        "not exchange = payments",
        "exchange=payments or user=app-*",
        "(exchange=payments or exchange=orders) and not verdict=deny",
        "operation=basic.*",
        "operation=*.publish",
        "routing_key=order.*.created",
        "routing_key=order.#",
        'routing_key="order.eu.created"',
        "client=10.0.0.0/8",
        "client=10.1.2.3",
        "client ~ ^10[.]",
        "user ~ 'app-[0-9]+'",
        "routing_key ~ eu",
        # What it does not have is no queue of that name, and not "no queue".
        "queue != q",
        "not (queue ~ '.*')",
        "verdict=allow",
        "not not vhost=prod",
        # "and" binds closer.
        "vhost=prod or vhost=x and exchange=payments",
    ],
)
def test_what_matches(text: str) -> None:
    assert parse(text).holds(PUBLISH) is True
    assert parse(f"not ({text})").holds(PUBLISH) is False if text.strip() else True


@pytest.mark.parametrize(
    "text",
    [
        "vhost=Prod",
        "vhost=pro",
        "(vhost=prod or vhost=x) and exchange=payments",
        'routing_key="order.*.created"',
        "routing_key=order.*",
        'user="app-*"',
        "queue=q",
        "queue ~ ''",
        "operation=queue.*",
        "operation=basic.deliver",
        "client=10.2.0.0/16",
        "verdict=deny",
        "user ~ ^pp",
    ],
)
def test_what_does_not_match(text: str) -> None:
    assert parse(text).holds(PUBLISH) is False


def test_quotes_are_written_twice_within_quotes() -> None:
    values = {**PUBLISH, "exchange": 'it\'s "so"'}
    for text in ("exchange='it''s \"so\"'", 'exchange="it\'s ""so"""'):
        assert parse(text).holds(values) is True
    assert parse("exchange=''").holds({**PUBLISH, "exchange": ""}) is True


@pytest.mark.parametrize(
    ("text", "column", "message"),
    [
        ("vhost", 6, "expected =, != or ~ after 'vhost', not the end"),
        ("vhost prod", 7, "expected =, != or ~ after 'vhost', not 'prod'"),
        ("vhost=", 7, "expected a value after =, not the end"),
        ("vhost==prod", 7, "expected a value after =, not '=prod'"),
        ("vhost='prod", 7, "the text after ' does not end"),
        ("vhost=prod exchange=x", 12, "expected 'and' or 'or' before 'exchange=x'"),
        ("vhost=prod and", 15, "expected an attribute, 'not' or (, not the end"),
        ("vhost=prod and or", 16, "expected an attribute, 'not' or (, not 'or'"),
        ("exchnage=x", 1, "there is no 'exchnage' (did you mean 'exchange'?)"),
        ("(vhost=prod", 1, "this ( is never closed"),
        ("(vhost=prod exchange=x)", 13, "expected 'and', 'or' or ) before 'exchange=x'"),
        ("vhost=prod)", 11, "this ) closes nothing"),
        ("verdict=denied", 9, "a verdict is allow or deny, not 'denied' (did you mean 'deny'?)"),
        ("operation=basic.pubish", 11, "no operation is named 'basic.pubish' (did you mean"),
        ("user ~ '('", 8, "not a regular expression of RE2"),
        ("user=a*b", 6, "an asterisk stands only at the end"),
        ("routing_key=a*.b", 13, "* and # stand for whole words, alone between dots"),
        ("routing_key={user}.b", 13, "variables are not filled in here"),
        ("client=10.0.0.1/8", 8, "did you mean 10.0.0.0/8?"),
        ("client=here", 8, "expected a range of addresses"),
        ("vhost=\udcff", 7, "this is no text"),
        ("(" * (DEEPEST + 1), DEEPEST + 1, f"more than {DEEPEST} within each other"),
        ("not " * (DEEPEST + 1), 4 * DEEPEST + 1, f"more than {DEEPEST} within each other"),
        (" " * (LONGEST + 1), LONGEST + 1, f"longer than {LONGEST} characters"),
    ],
)
def test_what_is_wrong_and_where(text: str, column: int, message: str) -> None:
    with pytest.raises(MatchError) as caught:
        parse(text)
    assert caught.value.column == column
    assert message in caught.value.message


WORD = st.text("abc.-_/1", min_size=1, max_size=6)
TEXT = st.text(max_size=6).filter(lambda text: text.isprintable())
COMPARE = st.one_of(
    st.builds(lambda name, word: Compare.of(name, "=", word), st.sampled_from(["user", "vhost"]), WORD),
    st.builds(
        lambda name, text: Compare.of(name, "=", text, is_quoted=True),
        st.sampled_from(["exchange", "queue", "routing_key"]),
        TEXT,
    ),
    st.builds(lambda word: Compare.of("routing_key", "=", word), st.sampled_from(["a.*", "#", "b"])),
    st.builds(lambda word: Compare.of("user", "~", word), st.sampled_from(["^a", "[bc]$", "."])),
    st.builds(lambda word: Compare.of("verdict", "=", word), st.sampled_from(["allow", "deny"])),
)


def _within(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    several = st.lists(inner, min_size=2, max_size=3).map(tuple)
    return st.one_of(st.builds(Not, inner), st.builds(Both, several), st.builds(Either, several))


EXPRESSION: st.SearchStrategy[Expression] = st.recursive(COMPARE, _within, max_leaves=8)
VALUES = st.dictionaries(st.sampled_from(sorted(ATTRIBUTES)), st.none() | WORD | TEXT)
WHOLE = st.fixed_dictionaries(dict.fromkeys(ATTRIBUTES, st.none() | WORD | TEXT))


@given(EXPRESSION)
def test_what_is_written_is_read_again(expression: Expression) -> None:
    assert parse(str(expression)) == expression


def _plain(expression: Expression, values: dict[str, str | None]) -> bool:
    """What it means, said by Python."""
    if isinstance(expression, Compare):
        return bool(expression.holds(values))
    if isinstance(expression, Not):
        return not _plain(expression.of, values)
    told = [_plain(part, values) for part in expression.parts]
    return all(told) if isinstance(expression, Both) else any(told)


@given(EXPRESSION, WHOLE)
def test_all_is_known_and_so_is_the_answer(expression: Expression, values: dict[str, str | None]) -> None:
    assert expression.holds(values) is _plain(expression, values)


@given(EXPRESSION, VALUES, WHOLE)
def test_what_is_said_early_stays_so(
    expression: Expression, known: dict[str, str | None], values: dict[str, str | None]
) -> None:
    """An answer that is given before all is known is that which all gives."""
    early = expression.holds(known)
    assert early is None or expression.holds({**values, **known}) is early


@given(st.text(max_size=60) | st.text("()=!~'\"ab andornot*#.", max_size=60))
def test_any_text_is_an_expression_or_has_a_place_that_is_wrong(text: str) -> None:
    column = 1
    try:
        expression = parse(text)
        assert parse(str(expression)) == expression
    except MatchError as error:
        column = error.column
    assert 1 <= column <= len(text) + 1


def test_nothing_said_is_everything() -> None:
    assert parse(" ") == ALL
    assert ALL.holds({}) is True

"""Documents as the program writes them are read as they were meant."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from amqpgate.policy import Source, build
from amqpgate.policy.tools.writing import access_policy, flow

# An asterisk ends a prefix, and a brace begins a variable: such names no document can say.
NAMES = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="*{"), min_size=1)


@given(NAMES, NAMES)
def test_any_name_comes_back(user: str, vhost: str) -> None:
    text = "\n".join([*access_policy("p", user, [vhost]), "  - {id: r, effect: allow, operations: ['*']}"])
    (policy,) = build([Source("p.yaml", text.encode())]).access
    (subject,) = policy.spec.subjects
    assert subject.user.text == user
    assert [name.text for name in subject.vhosts or ()] == [vhost]


def test_plain_words_have_no_quotes_and_others_do() -> None:
    assert flow({"a": ["b.c", "true", "1", True]}) == '{a: [b.c, "true", "1", true]}'

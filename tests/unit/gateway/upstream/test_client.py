"""What a client whose login is refused is told."""

from __future__ import annotations

import pytest

from amqpgate.gateway.upstream.client import refusal_of_login


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "RABBIT-CR-DEMO"])
def test_it_is_told_in_rabbitmqs_words_and_why_where_that_is_known(mechanism: str) -> None:
    why = refusal_of_login(mechanism, ": late")
    said = f"ACCESS_REFUSED - Login was refused using authentication mechanism {mechanism}"
    assert (why.code, why.reply_text) == (403, f"{said}: late")
    assert refusal_of_login(mechanism).reply_text == said
    # RabbitMQ names no method there.
    assert (why.class_id, why.method_id, why.scope) == (0, 0, "connection")


@pytest.mark.parametrize("said", ["hunter2 is my password", "plain", "X" * 21, "", "PLAIN\nx", "\u00c4"])
def test_what_is_no_name_of_a_mechanism_is_not_repeated(said: str) -> None:
    """Clients put a password there by mistake."""
    text = refusal_of_login(said).reply_text
    assert text == "ACCESS_REFUSED - Login was refused using authentication mechanism of another name"

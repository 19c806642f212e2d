"""What a broker says of a login is withheld where it may quote it."""

from __future__ import annotations

import pytest

from amqpgate.gateway.upstream.redaction import without_login
from amqpgate.wire.generated import v0_9_1 as amqp

TEXT = "REFUSED - b'\\0bob\\0s3cret'"


@pytest.mark.parametrize("code", [501, 502, 503, 504, 505, 540, 999])
def test_a_fault_in_what_was_sent_is_told_without_its_text(code: int) -> None:
    told = without_login(amqp.ConnectionClose(code, TEXT, 10, 11))
    assert (told.reply_code, told.class_id, told.method_id) == (code, 10, 11)
    assert "s3cret" not in told.reply_text
    assert "withheld" in told.reply_text


@pytest.mark.parametrize("code", [320, 402, 403, 530])
def test_who_is_not_let_in_is_told_word_by_word(code: int) -> None:
    refusal = amqp.ConnectionClose(code, "ACCESS_REFUSED - Login was refused", 0, 0)
    assert without_login(refusal) == refusal

"""Reply texts as they go over the wire."""

from __future__ import annotations

import pytest

from amqpgate.errors import ProtocolViolation, cut_reply


@pytest.mark.parametrize(
    ("text", "sent"),
    [
        ("plain é", "plain é"),
        ("a \udcff b", "a \\xff b"),
        ("x" * 255, "x" * 255),
        ("x" * 256, "x" * 252 + "..."),
        ("x" * 251 + "\udcff" * 4, "x" * 251 + "\\..."),
        ("x" * 251 + "é" * 4, "x" * 251 + "..."),
    ],
)
def test_they_are_utf_8_and_fit(text: str, sent: str) -> None:
    assert cut_reply(text) == sent
    assert len(sent.encode()) <= 255


def test_a_violation_names_what_is_no_utf_8() -> None:
    violation = ProtocolViolation(403, "access to exchange '\udcff' refused")
    assert violation.reply_text == "ACCESS_REFUSED - access to exchange '\\xff' refused"


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (404, "NOT_FOUND"),
        (408, "RESOURCE_DELETED"),
        (409, "ILLEGAL_STATE"),
        (531, "ILLEGAL_ARGUMENT"),
        (542, "INVALID_ARGUMENT"),
        (999, "999"),
    ],
)
def test_a_violation_names_its_code(code: int, name: str) -> None:
    assert ProtocolViolation(code, "text").reply_text == f"{name} - text"

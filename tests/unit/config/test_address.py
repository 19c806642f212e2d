"""Addresses and AMQP URLs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.config import Address, AmqpUrl, Secret


@pytest.mark.parametrize(
    ("text", "host", "port", "loopback"),
    [
        ("127.0.0.1:5672", "127.0.0.1", 5672, True),
        ("127.9.9.9:0", "127.9.9.9", 0, True),
        ("localhost:1", "localhost", 1, True),
        ("LocalHost.:1", "LocalHost.", 1, True),
        ("[::1]:5671", "::1", 5671, True),
        ("0.0.0.0:5672", "0.0.0.0", 5672, False),
        ("[::]:5672", "::", 5672, False),
        ("10.0.0.1:65535", "10.0.0.1", 65535, False),
        ("localhost.example.com:1", "localhost.example.com", 1, False),
        ("127.0.0.1.example.com:1", "127.0.0.1.example.com", 1, False),
        (f"{'a' * 63}.{'b' * 63}.:1", f"{'a' * 63}.{'b' * 63}.", 1, False),
    ],
)
def test_addresses(text: str, host: str, port: int, loopback: bool) -> None:
    address = Address.parse(text)
    assert (address.host, address.port) == (host, port)
    assert address.is_loopback is loopback
    assert str(address) == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "5672",
        ":5672",
        "host",
        "host:",
        "host:x",
        "host:65536",
        "host:-1",
        "::1:5672",
        "[::1]",
        "[x]:1",
        "*:1",
        "a b:1",
        # Names that no resolver takes: an empty label, one that is too long, too many.
        "a..b:1",
        "a..:1",
        f"{'a' * 64}:1",
        f"a.{'b' * 64}.c:1",
        f"{'a.' * 127}a:1",
    ],
)
def test_no_addresses(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        Address.parse(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("amqp://h", AmqpUrl("amqp", "h", 5672)),
        ("AMQPS://h", AmqpUrl("amqps", "h", 5671)),
        # A bare slash names no virtual host; see the class's docstring.
        ("amqp://h/", AmqpUrl("amqp", "h", 5672)),
        ("amqp://h//", AmqpUrl("amqp", "h", 5672, "/")),
        ("amqp://h/%2f", AmqpUrl("amqp", "h", 5672, "/")),
        ("amqp://h/%2Fa%2fb", AmqpUrl("amqp", "h", 5672, "/a/b")),
        ("amqp://h:1234/prod", AmqpUrl("amqp", "h", 1234, "prod")),
        ("amqp://[::1]:9/x", AmqpUrl("amqp", "::1", 9, "x")),
        ("amqp://[::1]", AmqpUrl("amqp", "::1", 5672)),
        ("amqp://u:p@h", AmqpUrl("amqp", "h", 5672, None, "u", Secret("p"))),
        ("amqp://u@h", AmqpUrl("amqp", "h", 5672, None, "u", None)),
        ("amqp://u:@h", AmqpUrl("amqp", "h", 5672, None, "u", Secret(""))),
        ("amqp://u%40x:p%3a%2F%40%25:y@h/v", AmqpUrl("amqp", "h", 5672, "v", "u@x", Secret("p:/@%:y"))),
        ("amqp://%C3%BC:p@h", AmqpUrl("amqp", "h", 5672, None, "ü", Secret("p"))),
    ],
)
def test_urls(text: str, expected: AmqpUrl) -> None:
    assert AmqpUrl.parse(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "h:5672",
        "http://u:hunter2@h",
        "amqp:/h",
        "amqp://",
        "amqp://u:hunter2@",
        "amqp://u:hunter2@:5672",
        "amqp://:hunter2@h",
        "amqp://u:hunter2@h:port",
        "amqp://u:hunter2@h:99999",
        "amqp://u:hunter2",
        "amqp://u:hunt@er2@h",
        "amqp://u:hunt/er2@h",
        "amqp://u:hunt?er2@h",
        "amqp://u:hunt#er2@h",
        "amqp://u:hunter2%@h",
        "amqp://u:hunter2%ff@h",
        "amqp://u:hunter2 @h",
        "amqp://u:hunter2@h/a/b",
        "amqp://u:hunter2@h/v?heartbeat=5",
        "amqp://u:hunter2@-h",
        "amqp://u:hunter2@::1",
        "amqp://u:hunter2@[h]",
    ],
)
def test_no_urls_and_no_word_of_them_in_the_message(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w") as caught:
        AmqpUrl.parse(text)
    assert "hun" not in str(caught.value)
    assert "er2" not in str(caught.value)


def test_a_url_is_shown_without_its_password() -> None:
    url = AmqpUrl.parse("amqps://bob:hunter2@h/%2f")
    assert str(url) == "amqps://bob:***@h:5671/%2F"
    assert "hunter2" not in repr(url)
    assert str(AmqpUrl.parse("amqp://[::1]")) == "amqp://[::1]:5672"


@given(st.text(max_size=40))
def test_whatever_follows_is_a_url_or_a_value_error(text: str) -> None:
    try:
        url = AmqpUrl.parse("amqp://" + text)
    except ValueError:
        return
    assert url.host
    assert 0 <= url.port <= 65535

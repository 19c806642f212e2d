"""RabbitMQ's definitions, and what is none."""

from __future__ import annotations

import pytest

from amqpgate.errors import ConfigError
from amqpgate.policy.tools.definitions import parse
from amqpgate.policy.tools.rabbitmq_import import import_permissions


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", "no list 'permissions'"),
        ("{", "d.json:1: not JSON"),
        ("[" * 100_000, "d.json"),
        ('{"permissions": {}}', "'permissions' is not a list"),
        ('{"permissions": [1]}', "'permissions[0]' is not an object"),
        (
            '{"permissions": [{"user": "a"}]}',
            "'permissions[0].vhost' is missing or no text; export all vhosts",
        ),
        ('{"permissions": []}', "there is no user and no permission in it"),
        (
            '{"permissions": [{"user": "a*", "vhost": "/", "configure": "", "write": "", "read": ""}]}',
            "user 'a*': subjects cannot mean a name with an asterisk",
        ),
    ],
)
def test_what_is_no_export_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigError) as caught:
        import_permissions(parse(text.encode(), "d.json"), "d.json")
    assert said in str(caught.value)

"""Labels of metrics: what can be asked for, and what is asked for wrong."""

from __future__ import annotations

import pytest

from amqpgate.config import parse
from amqpgate.errors import ConfigError

REST = "listeners: [{name: a, bind: 'localhost:0'}]\nupstreams: [{name: b, host: b}]\n"


def test_there_are_none_unless_they_are_asked_for() -> None:
    assert parse(REST, {}).metrics is None
    labels = parse(REST + "metrics: {by: [user, vhost], users: [billing]}\n", {}).metrics
    assert labels is not None
    assert (labels.by, labels.users, labels.most) == (("user", "vhost"), ("billing",), 100)


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        ("{}", "by"),
        ("{by: []}", "3:15: must not be empty"),
        ("{by: [vhosts]}", "vhost"),
        ("{by: [vhost, listener, vhost]}", "3:33: 'vhost' is there already"),
        ("{by: [listener, user]}", "3:26: user needs users"),
        ("{by: [vhost], users: [billing]}", "3:31: is for `by: "),
        ("{by: [vhost], most: 0}", "between 1 and 500"),
        ("{by: [vhost], most: 501}", "between 1 and 500"),
    ],
)
def test_what_is_wrong(keys: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        parse(f"{REST}metrics: {keys}\n", {})

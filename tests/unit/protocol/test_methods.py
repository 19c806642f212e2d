"""Who may send what, against the specifications themselves."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from amqpgate.protocol.methods import (
    FROM_CLIENT,
    FROM_SERVER,
    SENT_BY,
    Role,
)
from amqpgate.wire.codec import methods
from amqpgate.wire.dialects import DIALECTS, RABBITMQ_0_9_1, Dialect
from amqpgate.wire.generated import v0_9_1 as amqp

SPEC = Path(__file__).parents[3] / "spec" / "amqp"

#: Names whose direction is not that of the specification file, with the reason.
NOT_AS_SPECIFIED = {
    # RabbitMQ's consumer cancel notification wants no answer, and it refuses one with 503.
    ("basic.cancel-ok", Role.CLIENT),
}


def specified(file: str) -> set[tuple[str, Role]]:
    found = set()
    for amqp_class in ElementTree.parse(SPEC / file).getroot().iter("class"):
        for method in amqp_class.findall("method"):
            for chassis in method.findall("chassis"):
                sender = Role.CLIENT if chassis.get("name") == "server" else Role.SERVER
                found.add((f"{amqp_class.get('name')}.{method.get('name')}", sender))
    return found


ALL = (
    specified("amqp0-8.xml") | specified("amqp0-9.xml") | specified("amqp0-9-1.extended.xml")
) - NOT_AS_SPECIFIED

#: Of the overlays, which have no chassis: methods of brokers.
OF_BROKERS = {
    ("connection.blocked", Role.SERVER),
    ("connection.unblocked", Role.SERVER),
    ("connection.update-secret", Role.CLIENT),
    ("connection.update-secret-ok", Role.SERVER),
    ("exchange.bound", Role.CLIENT),
    ("exchange.bound-ok", Role.SERVER),
    ("basic.recover-sync", Role.CLIENT),
    ("basic.recover-sync-ok", Role.SERVER),
    ("basic.credit", Role.CLIENT),
    ("basic.credit-ok", Role.SERVER),
    ("basic.credit-drained", Role.SERVER),
}


def indexes_sent_by(side: Role, dialect: Dialect = RABBITMQ_0_9_1) -> frozenset[int]:
    """Of every method of `dialect` that `side` may send."""
    return frozenset(index for index, cls in methods(dialect).items() if cls.NAME in SENT_BY[side])


def test_directions_are_those_of_the_specifications() -> None:
    table = {(name, Role.CLIENT) for name in FROM_CLIENT} | {(name, Role.SERVER) for name in FROM_SERVER}
    assert table == ALL | OF_BROKERS


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
def test_every_method_has_a_sender(dialect) -> None:
    known = methods(dialect)
    assert indexes_sent_by(Role.CLIENT, dialect) | indexes_sent_by(Role.SERVER, dialect) == set(known)


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
def test_an_answer_comes_from_the_other_side(dialect) -> None:
    known = methods(dialect)
    for cls in known.values():
        for side in Role:
            if cls.INDEX in indexes_sent_by(side, dialect) and cls.REPLIES:
                answers = set(cls.REPLIES) & set(known)
                # A client does not answer a consumer cancel notification.
                notification = cls.NAME == "basic.cancel" and side is Role.SERVER
                if answers and not notification:
                    assert answers & indexes_sent_by(side.peer, dialect), cls.NAME


def test_indexes_of_known_methods() -> None:
    up, down = indexes_sent_by(Role.CLIENT), indexes_sent_by(Role.SERVER)
    assert amqp.BasicPublish.INDEX in up - down
    assert amqp.BasicDeliver.INDEX in down - up
    assert amqp.BasicAck.INDEX in up & down
    assert {index for index, cls in methods(RABBITMQ_0_9_1).items() if cls.CONTENT} == {
        cls.INDEX for cls in (amqp.BasicPublish, amqp.BasicDeliver, amqp.BasicReturn, amqp.BasicGetOk)
    }


def test_sides_have_peers() -> None:
    assert Role.CLIENT.peer is Role.SERVER
    assert Role.SERVER.peer is Role.CLIENT

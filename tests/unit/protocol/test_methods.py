"""Who may send what, against the specifications themselves."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from amqpgate.protocol.methods import (
    FROM_CLIENT,
    FROM_SERVER,
    Side,
    content_indexes,
    indexes_sent_by,
)
from amqpgate.wire.codec import methods
from amqpgate.wire.dialects import DIALECTS, RABBITMQ_0_9_1
from amqpgate.wire.generated import v0_9_1 as amqp

SPEC = Path(__file__).parents[3] / "spec" / "amqp"

#: Names whose direction is not that of the specification file, with the reason.
NOT_AS_SPECIFIED = {
    # RabbitMQ's consumer cancel notification wants no answer, and it refuses one with 503.
    ("basic.cancel-ok", Side.CLIENT),
}


def specified(file: str) -> set[tuple[str, Side]]:
    found = set()
    for amqp_class in ElementTree.parse(SPEC / file).getroot().iter("class"):
        for method in amqp_class.findall("method"):
            for chassis in method.findall("chassis"):
                sender = Side.CLIENT if chassis.get("name") == "server" else Side.SERVER
                found.add((f"{amqp_class.get('name')}.{method.get('name')}", sender))
    return found


ALL = (
    specified("amqp0-8.xml") | specified("amqp0-9.xml") | specified("amqp0-9-1.extended.xml")
) - NOT_AS_SPECIFIED

#: Of the overlays, which have no chassis: methods of brokers.
OF_BROKERS = {
    ("connection.blocked", Side.SERVER),
    ("connection.unblocked", Side.SERVER),
    ("connection.update-secret", Side.CLIENT),
    ("connection.update-secret-ok", Side.SERVER),
    ("exchange.bound", Side.CLIENT),
    ("exchange.bound-ok", Side.SERVER),
    ("basic.recover-sync", Side.CLIENT),
    ("basic.recover-sync-ok", Side.SERVER),
    ("basic.credit", Side.CLIENT),
    ("basic.credit-ok", Side.SERVER),
    ("basic.credit-drained", Side.SERVER),
}


def test_directions_are_those_of_the_specifications() -> None:
    table = {(name, Side.CLIENT) for name in FROM_CLIENT} | {(name, Side.SERVER) for name in FROM_SERVER}
    assert table == ALL | OF_BROKERS


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
def test_every_method_has_a_sender(dialect) -> None:
    known = methods(dialect)
    assert indexes_sent_by(Side.CLIENT, dialect) | indexes_sent_by(Side.SERVER, dialect) == set(known)
    assert content_indexes(dialect) == {index for index, cls in known.items() if cls.CONTENT}


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
def test_an_answer_comes_from_the_other_side(dialect) -> None:
    known = methods(dialect)
    for cls in known.values():
        for side in Side:
            if cls.INDEX in indexes_sent_by(side, dialect) and cls.REPLIES:
                answers = set(cls.REPLIES) & set(known)
                # A client does not answer a consumer cancel notification.
                notification = cls.NAME == "basic.cancel" and side is Side.SERVER
                if answers and not notification:
                    assert answers & indexes_sent_by(side.peer, dialect), cls.NAME


def test_indexes_of_known_methods() -> None:
    up, down = indexes_sent_by(Side.CLIENT), indexes_sent_by(Side.SERVER)
    assert amqp.BasicPublish.INDEX in up - down
    assert amqp.BasicDeliver.INDEX in down - up
    assert amqp.BasicAck.INDEX in up & down
    assert content_indexes(RABBITMQ_0_9_1) == {
        cls.INDEX for cls in (amqp.BasicPublish, amqp.BasicDeliver, amqp.BasicReturn, amqp.BasicGetOk)
    }


def test_sides_have_peers() -> None:
    assert Side.CLIENT.peer is Side.SERVER
    assert Side.SERVER.peer is Side.CLIENT

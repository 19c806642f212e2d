# ruff: noqa: UP010, UP031
"""Conversations of AMQP 0-10, for Python 2.7 and the unpacked source distribution of qpid-python.

talk_0_10.py SOURCE PORT VHOST NAME     holds one of them; prints what it saw as JSON

Whoever runs it sets a time limit.
"""

from __future__ import print_function

import json
import sys

sys.path.insert(0, sys.argv[1])

from qpid.connection import Connection
from qpid.datatypes import Message, RangedSet
from qpid.messaging import Connection as Api
from qpid.messaging import Empty as NoMore
from qpid.messaging import Message as ApiMessage
from qpid.queue import Empty
from qpid.session import SessionException
from qpid.util import connect
from vhost_0_10 import choose_vhost

HOST = "127.0.0.1"
INFINITE = 0xFFFFFFFF


def low_level(port):
    """Each kind of command of the low-level API."""
    seen = {}
    connection = Connection(sock=connect(HOST, port), username="guest", password="guest")
    connection.start(timeout=10)
    session = connection.session("first", timeout=10)
    session.queue_declare(queue="q", arguments={"qpid.max_count": 100})
    session.exchange_bind(exchange="amq.topic", queue="q", binding_key="a.#")
    session.exchange_declare(exchange="x", type="fanout")
    for number in range(5):
        header = session.delivery_properties(routing_key="a.b")
        properties = session.message_properties(
            content_type="text/plain",
            application_headers={"number": number, "text": b"\xc3\xa4".decode("utf-8")},
        )
        message = Message(header, properties, "m%d" % number)
        session.message_transfer(destination="amq.topic", message=message)
    queue = session.queue_query("q")
    seen["queue"] = [queue.queue, queue.message_count, queue.subscriber_count]
    seen["no queue"] = session.queue_query("nope").queue
    seen["exchanges"] = [session.exchange_query(name).type for name in ("amq.topic", "x", "")]
    seen["no exchange"] = session.exchange_query("nope").not_found
    bound = session.exchange_bound(exchange="q", queue="q")
    seen["bound"] = [bound.exchange_not_found, bound.queue_not_found]
    session.message_subscribe(
        queue="q",
        destination="d",
        accept_mode=session.accept_mode.explicit,
        acquire_mode=session.acquire_mode.pre_acquired,
    )
    incoming = session.incoming("d")
    session.message_flow("d", session.credit_unit.byte, INFINITE)
    session.message_flow("d", session.credit_unit.message, 3)
    seen["bodies"], seen["headers"] = [], []
    for _ in range(3):
        message = incoming.get(timeout=10)
        seen["bodies"].append(message.body)
        properties = message.get("message_properties")
        seen["headers"].append(sorted(properties.application_headers.items()))
        seen["key"] = message.get("delivery_properties").routing_key
        session.message_accept(RangedSet(message.id))
    try:
        seen["beyond credit"] = incoming.get(timeout=0.5).body
    except Empty:
        seen["beyond credit"] = None
    session.message_cancel("d")
    session.tx_select()
    session.message_transfer(message=Message(session.delivery_properties(routing_key="q"), "t"))
    seen["before commit"] = session.queue_query("q").message_count
    session.tx_commit()
    seen["after commit"] = session.queue_query("q").message_count
    session.queue_delete("q")
    session.exchange_delete("x")
    try:
        session.queue_delete("q")
    except SessionException as error:
        exception = error.args[0]
        seen["exception"] = [exception.error_code, exception.class_code, exception.command_code]
    session = connection.session("second", timeout=10)
    session.queue_declare(queue="mine", exclusive=True, auto_delete=True)
    session.close(timeout=10)
    session = connection.session("third", timeout=10)
    seen["left behind"] = session.queue_query("mine").queue
    connection.close(timeout=10)
    return seen


def denied(port):
    """What a policy denies ends the session that asked, and no other."""
    seen = {}
    connection = Connection(sock=connect(HOST, port), username="guest", password="guest")
    connection.start(timeout=10)
    quiet = connection.session("quiet", timeout=10)
    quiet.queue_declare(queue="mine")
    for number, ask in enumerate(
        [
            lambda session: session.message_transfer(
                message=Message(session.delivery_properties(routing_key="theirs"), "no")
            ),
            lambda session: session.queue_declare(queue="theirs"),
            lambda session: session.queue_query("theirs"),
            lambda session: session.exchange_bind(exchange="amq.topic", queue="mine", binding_key="theirs"),
        ]
    ):
        session = connection.session("asks-%d" % number, timeout=10)
        try:
            ask(session)
            seen[str(number)] = "allowed"
        except SessionException as error:
            seen[str(number)] = error.args[0].error_code
    quiet.message_transfer(message=Message(quiet.delivery_properties(routing_key="mine"), "yes"))
    seen["mine"] = quiet.queue_query("mine").message_count
    quiet.queue_delete("mine")
    connection.close(timeout=10)
    return seen


def messaging(port):
    """Senders, receivers and a transaction of the messaging API, whose virtual host is the default one."""
    seen = {}
    connection = Api.establish(
        "%s:%d" % (HOST, port), username="guest", password="guest", sasl_mechanisms="PLAIN"
    )
    session = connection.session()
    sender = session.sender("qpid-0-10; {create: always, delete: always}")
    receiver = session.receiver("qpid-0-10")
    for number in range(3):
        sender.send(ApiMessage("m%d" % number, subject="s", properties={"number": number}))
    seen["bodies"] = []
    for _ in range(3):
        message = receiver.fetch(timeout=10)
        seen["bodies"].append([message.content, message.subject, message.properties["number"]])
        session.acknowledge()
    try:
        receiver.fetch(timeout=0)
    except NoMore:
        seen["empty"] = True
    topics = session.receiver("amq.topic/a.#")
    session.sender("amq.topic/a.b").send("topic")
    seen["topic"] = topics.fetch(timeout=10).content
    session.acknowledge()
    transacted = connection.session(transactional=True)
    transacted.sender("qpid-0-10").send("rolled back")
    transacted.rollback()
    transacted.sender("qpid-0-10").send("committed")
    transacted.commit()
    seen["transaction"] = receiver.fetch(timeout=10).content
    session.acknowledge()
    transacted.close()
    receiver.close()
    sender.close()
    connection.close()
    return seen


if __name__ == "__main__":
    talk = {"denied": denied, "low_level": low_level, "messaging": messaging}[sys.argv[4]]
    choose_vhost(sys.argv[3])
    print(json.dumps(talk(int(sys.argv[2])), sort_keys=True))

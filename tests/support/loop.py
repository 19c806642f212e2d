"""A service's traffic, with ids, and a hundred operations that it never did: what policies that were
recommended for it must let pass, and what they must deny.

Steps are played by a client, or written as the records that a gateway makes of them.
"""

from __future__ import annotations

import json
import random
import uuid
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

import attrs

from amqpgate.records import Usage
from tests.support.audit_records import START, usage

#: The name of the queue that the broker has named for this connection, and of one that it has for another's.
OWN: Final = "(own)"
THEIRS: Final = "(theirs)"
_GENERATED: Final = {OWN: "amq.gen-JzTY20BRgKO-HjmUJj0wLg", THEIRS: "amq.gen-k3Wb8Nq1TtuAEe5OVyXg0Q"}


@attrs.frozen(kw_only=True)
class Step:
    """One operation."""

    operation: str
    exchange: str | None = None
    key: str | None = None
    queue: str | None = None
    destination: str | None = None
    arguments: Mapping[str, str | int] | None = None
    #: The type of an exchange that is declared.
    type: str = "topic"
    cc: Sequence[str] = ()
    bcc: Sequence[str] = ()
    passive: bool = False

    def __str__(self) -> str:
        parts = attrs.asdict(self, filter=lambda field, value: bool(value) and field.name != "type")
        return " ".join(f"{name}={value}" if name != "operation" else value for name, value in parts.items())

    @property
    def record(self) -> Usage:
        """What a gateway writes of it, of user ``shop``."""
        queue = _GENERATED.get(self.queue or "", self.queue)
        count = int(self.operation == "basic.publish")
        more = [*self.cc, *self.bcc]
        return usage(
            "id",
            START,
            user="shop",
            vhost="loop",
            operation=self.operation,
            exchange=self.exchange,
            routing_key=self.key,
            queue=queue,
            destination=self.destination,
            arguments=json.dumps(self.arguments) if self.arguments else None,
            more_keys=json.dumps(more) if more else None,
            passive=self.passive,
            foreign=self.queue == THEIRS,
            requests=1,
            messages=count,
            bytes=count,
        )


def publish(exchange: str, key: str, **further: Sequence[str]) -> Step:
    return Step(operation="basic.publish", exchange=exchange, key=key, **further)


def declare(queue: str, **arguments: str | int) -> Step:
    named = {name.replace("_", "-"): value for name, value in arguments.items()}
    return Step(operation="queue.declare", queue=queue, arguments=named)


def on(queue: str, *operations: str) -> Iterator[Step]:
    for operation in operations:
        yield Step(operation=operation, queue=queue)


def bind(queue: str, exchange: str, key: str, **arguments: str | int) -> Step:
    named = {name.replace("_", "-"): value for name, value in arguments.items()}
    return Step(operation="queue.bind", queue=queue, exchange=exchange, key=key, arguments=named)


def unbind(queue: str, exchange: str, key: str) -> Step:
    return attrs.evolve(bind(queue, exchange, key), operation="queue.unbind")


def exchange(name: str, kind: str = "topic", **further: object) -> Step:
    return Step(operation="exchange.declare", exchange=name, type=kind, **further)  # type: ignore[arg-type]


def feed(destination: str, source: str, key: str) -> Step:
    return Step(operation="exchange.bind", destination=destination, exchange=source, key=key)


def drop(name: str) -> Step:
    return Step(operation="exchange.delete", exchange=name)


def seen(seed: int) -> list[Step]:
    """What the service does: always the same, but for the ids."""
    chance = random.Random(seed)

    def number() -> int:
        return chance.randrange(10_000, 10_000_000)

    def uuid_() -> str:
        return str(uuid.UUID(int=chance.getrandbits(128), version=4))

    def hexadecimal() -> str:
        return f"{chance.getrandbits(120):030x}a1"

    steps = [
        exchange("orders"),
        exchange("orders", passive=True),
        exchange("copies"),
        exchange("dlx", "fanout"),
        exchange("documents", "headers"),
        feed("copies", "orders", "order.#"),
        declare("orders.in", x_dead_letter_exchange="dlx", x_dead_letter_routing_key="dead"),
        declare("orders.dead"),
        declare("docs.pdf"),
        bind("orders.in", "orders", "order.*.created"),
        bind("orders.dead", "dlx", ""),
        bind("docs.pdf", "documents", "", x_match="all", format="pdf"),
        *on("orders.in", "basic.consume", "basic.get"),
        *on("orders.dead", "queue.purge"),
        publish("", "orders.dead"),
        declare(""),
        bind(OWN, "amq.topic", "reply.#"),
        *on(OWN, "basic.consume", "queue.delete"),
    ]
    for _ in range(4):
        reply, worker, spool = f"reply-{uuid_()}", f"worker-{number()}", f"spool.{hexadecimal()}.in"
        batch = number()
        steps += [
            *(declare(name) for name in (reply, worker, spool)),
            bind(worker, "orders", f"order.{batch}.#"),
            *on(reply, "basic.consume", "queue.delete"),
            *on(worker, "basic.get", "queue.purge", "queue.delete"),
            *on(spool, "basic.get", "queue.delete"),
            publish("", reply),
            publish(
                "orders",
                f"order.{batch}.created",
                cc=[f"audit.{uuid_()}", "log.orders"],
                bcc=[f"shadow.{number()}"],
            ),
            publish("orders", f"order.{batch}.paid"),
            publish("orders", f"customer.{uuid_()}.order.{number()}"),
            publish("orders", f"trace.{hexadecimal()}.done"),
            publish("orders", f"day.2026-11-{chance.randrange(10, 30)}.closed"),
            publish("orders", f"parcel.p{number()}.sent"),
            publish("amq.topic", "batch.done"),
        ]
    return steps


#: Of these, what recommended policies let pass: they say nothing of the arguments of declares.
NOT_DENIED: Final = ("queue.declare queue=worker-4711 arguments={'x-max-length': 10}",)

_UUID: Final = "5f0c3f5e-8b1d-4f0e-9d38-0c8a7e2b6a11"
_HEX: Final = "00c3f5e8b1d4f0e9d380c8a7e2b6a11f"
#: A hundred operations that the service never did. Ids of the forms that it uses are no news by themselves.
NEVER_SEEN: Final[tuple[Step, ...]] = (
    # Other words where ids were, ids of another kind, and more or less of a key.
    *(
        publish("orders", key)
        for key in (
            *("order.abc.created", f"order.{_UUID}.created", f"order.{_HEX}.created", "order.4711a.created"),
            *("order..created", "order.created", "order.4711", "order.4711.created.twice"),
            *("order.4711.deleted", "Order.4711.created", "x.order.4711.created"),
            *("customer.4711.order.12", f"customer.{_UUID}.order.last", f"customer.{_UUID}"),
            *(f"customer.{_UUID}.invoice.12", "customer.me.order.12", f"customer.x{_UUID}.order.12"),
            *("trace.on.done", "trace.4711.done", f"trace.{_UUID}.done", f"trace.{_HEX}.lost"),
            *("day.today.closed", "day.secret-2026.closed", "day.2026-11-28.open", "day.20261128x.closed"),
            *("parcel.secret.sent", "parcel.q4711.sent", "parcel.p4711x.sent"),
            *(
                "",
                "#",
                "*",
                "secret",
                "payroll.4711",
                f"audit.{_UUID}.x",
                "audit.all",
                "log.payroll",
                "shadow.x",
            ),
        )
    ),
    # Keys in CC and BCC.
    publish("orders", "order.4711.created", cc=["secret"]),
    publish("orders", "order.4711.created", cc=["audit.everything"]),
    publish("orders", "order.4711.created", bcc=["shadow.nobody"]),
    publish("orders", "order.4711.created", cc=[f"audit.{_UUID}", "log.orders"], bcc=["log.secret"]),
    publish("", "orders.dead", cc=["payroll"]),
    publish("amq.topic", "batch.done", bcc=["batch.undone"]),
    # Other exchanges, and queues behind the default one.
    *(publish(name, "order.4711.created") for name in ("copies", "documents", "amq.topic", "payments")),
    *(publish("amq.fanout", key) for key in ("", "batch.done")),
    publish("amq.topic", "batch.undone"),
    publish("amq.topic", "batch.done.4711"),
    *(
        publish("", key)
        for key in (
            *("orders.in", "docs.pdf", "payroll", "reply-secret", f"reply-{_HEX}", f"reply-{_UUID}-x"),
            *(f"xreply-{_UUID}", "worker-4711", "reply-"),
        )
    ),
    # Other queues, and other things done with those that it has.
    *(
        declare(name)
        for name in (
            *("payroll", "reply-secret", f"reply-{_UUID}x", "worker-", "worker-4711-secret"),
            *(f"spool.{_HEX}.out", "spool.secret.in", "orders.in2", "orders"),
        )
    ),
    declare("orders.in", x_dead_letter_exchange="payments"),
    declare("worker-4711", x_dead_letter_exchange="", x_dead_letter_routing_key="payroll"),
    declare("worker-4711", x_max_length=10),
    *on("orders.in", "queue.purge", "queue.delete"),
    *on("orders.dead", "basic.get", "basic.consume", "queue.delete"),
    *on("docs.pdf", "basic.consume"),
    *on("payroll", "basic.consume", "basic.get", "queue.purge"),
    *on("worker-4711", "basic.consume"),
    *on(f"reply-{_UUID}", "queue.purge"),
    *on(THEIRS, "basic.consume", "queue.delete"),
    # Bindings.
    bind("orders.in", "orders", "#"),
    bind("orders.in", "orders", "order.*.*"),
    bind("worker-4711", "orders", "order.#"),
    bind("worker-4711", "orders", "order.abc.#"),
    bind("orders.in", "copies", "order.*.created"),
    bind(OWN, "orders", "reply.#"),
    bind("docs.pdf", "documents", "", x_match="all", format="zip"),
    bind("docs.pdf", "documents", "", x_match="any", format="pdf", type="payslip"),
    bind("docs.pdf", "documents", ""),
    unbind("orders.in", "orders", "order.*.created"),
    feed("copies", "orders", "#"),
    feed("orders", "copies", "order.#"),
    # Exchanges.
    exchange("payments"),
    exchange("copies", arguments={"alternate-exchange": "payments"}),
    drop("orders"),
)

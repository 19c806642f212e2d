"""What queues, exchanges, bindings and subscriptions are made with: Qpid's words and RabbitMQ's.

To 0-9-1
===============================================  =========================================================
Qpid                                             RabbitMQ
===============================================  =========================================================
queue.declare, alternate-exchange                ``x-dead-letter-exchange``
exchange.declare, alternate-exchange             ``alternate-exchange``
``qpid.max_count``, ``qpid.max_size``            ``x-max-length``, ``x-max-length-bytes``; 0 is no limit
``qpid.policy_type``                             ``x-overflow``: ring is ``drop-head``; reject, which is what
                                                 Qpid does where nothing is said, ``reject-publish``; others
                                                 are 540
``qpid.auto_delete_timeout``, s                  ``x-expires``, ms, of queues that are auto-delete
``qpid.priorities``, ``x-qpid-priorities``       ``x-max-priority``, one less: both count from 0. With
                                                 less than 10, Qpid's lowest level is wider; with
                                                 ring they are 540: RabbitMQ drops what is first,
                                                 Qpid what is lowest
``no-local`` false, ``x-filter-jms-selector``    left out: Qpid's JMS client always says so
empty
``no-local`` of a queue                          left out: see ``no_local``
selectors, other ``no-local``                    540
``x-multiqueue``, other ``qpid.`` names          540, unless they are to be ignored
how a queue is stored or watched                 left out: no client sees a difference
===============================================  =========================================================

To 0-10
===============================================  =========================================================
RabbitMQ                                         Qpid
===============================================  =========================================================
``x-dead-letter-exchange``                       queue.declare, alternate-exchange
``alternate-exchange``                           exchange.declare, alternate-exchange
``x-max-length``, ``x-max-length-bytes``         ``qpid.max_count``, ``qpid.max_size``
``x-overflow``                                   ``qpid.policy_type``; with a limit alone it is ring
``x-expires``, ms                                ``qpid.auto_delete_timeout``, s, rounded up, and auto-delete
``x-max-priority``                               ``qpid.priorities`` 10, which keeps apart all of 0 to 9
``x-queue-type`` classic, ``x-queue-mode``,      left out: no client sees a difference
``x-queue-version``, ``x-queue-master-locator``
another ``x-queue-type``, ``x-message-ttl``,     540
``x-dead-letter-routing-key``, and others that
change what is delivered
===============================================  =========================================================

All others pass, as ``tables`` has it. Strings of bytes are text where RabbitMQ asks for text: under names
that begin with ``x-``.

Error handling
    Violations 540 for what the other side has none of, and for a value of no use 542 to a client of 0-10,
    406 to one of 0-9-1.
"""

from __future__ import annotations

from collections.abc import Mapping
from hashlib import sha256
from operator import itemgetter
from typing import Final

from amqpgate.bridge.v0_10.tables import fields_of, first_fields, map_of_fields, text_field
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.generated import v0_10 as amqp10
from amqpgate.wire.tables import Field, Table
from amqpgate.wire.v0_10.types import Map

_ALTERNATE: Final = "alternate-exchange"
_DEAD_LETTERS: Final = "x-dead-letter-exchange"
_SELECTORS: Final = ("x-filter-jms-selector", "x-apache-selector")
_NO_LOCAL: Final = "no-local"
#: What makes a binding one of headers.
_MATCH: Final = "x-match"
#: Bytes of a routing key that a key of a binding begins with.
_MOST_KEY: Final = 200
#: Qpid's own words begin so.
_QPID: Final = "qpid."
_QPIDS: Final = (_QPID, "x-qpid-", "x-multiqueue")

#: Arguments of queues by what Qpid calls them, with what RabbitMQ does; the values are numbers.
_LIMITS: Final = {"qpid.max_count": "x-max-length", "qpid.max_size": "x-max-length-bytes"}
_PRIORITIES: Final = ("x-qpid-priorities", "qpid.priorities")
_POLICIES: Final = {"ring": "drop-head", "reject": "reject-publish"}
_OVERFLOWS: Final = {overflow: policy for policy, overflow in _POLICIES.items()}
#: How a queue is stored, copied and watched, and when its publishers are slowed down.
_UNSEEN: Final = (
    "qpid.file_",
    "qpid.flow_",
    "qpid.alert_",
    "qpid.paging",
    "qpid.max_pages_loaded",
    "qpid.page_factor",
    "qpid.persist_last_node",
    "qpid.replicate",
)
#: Of Qpid's.
_MOST_PRIORITIES: Final = 10
#: The priority in the middle of Qpid's levels, however many there are.
_MIDDLE: Final = 5

#: Of RabbitMQ's queues: what its clients cannot tell from the outside.
_STORED: Final = ("x-queue-mode", "x-queue-version", "x-queue-master-locator")
#: What changes which messages are delivered, and to whom.
_RABBITMQS: Final = frozenset(
    {
        "x-message-ttl",
        "x-dead-letter-routing-key",
        "x-dead-letter-strategy",
        "x-delivery-limit",
        "x-max-age",
        "x-stream-offset",
    }
)


def queue_arguments(command: amqp10.QueueDeclare, *, ignore_qpid: bool = False) -> Table:
    """Arguments of queue.declare in 0-9-1; ``ignore_qpid`` leaves out what would be 540 otherwise.

    A queue with ``x-expires`` should not be auto-delete besides: RabbitMQ would not wait.
    """
    fields = _common(command.arguments, ignores_local=True)
    made: dict[str, Field] = {}
    for name, limit in _LIMITS.items():
        number = _number(fields, name)
        if number:
            made[limit] = Field.of(number)
    policy = _policy(fields, is_limited=bool(made), ignore_qpid=ignore_qpid)
    if policy is not None:
        made["x-overflow"] = Field("S", policy)
    seconds = _number(fields, "qpid.auto_delete_timeout")
    if seconds and command.auto_delete:
        made["x-expires"] = Field.of(seconds * 1000)
    for name in _PRIORITIES:
        levels = _number(fields, name)
        highest = _highest(levels or 0)
        if highest:
            made["x-max-priority"] = Field.of(highest)
            if policy == _POLICIES["ring"] and not ignore_qpid:
                raise _has_none("a ring with priorities")
    fields = {name: field for name, field in fields.items() if not name.startswith(_UNSEEN)}
    # What a client of Qpid says in RabbitMQ's own words counts.
    return _named(
        {**made, **_known(fields, ignore_qpid=ignore_qpid)}, _DEAD_LETTERS, command.alternate_exchange
    )


def is_no_local(command: amqp10.QueueDeclare) -> bool:
    """Whether a queue is not to get what its own connection publishes."""
    local = _fields(command.arguments).get(_NO_LOCAL)
    return local is not None and _is_true(local)


def exchange_arguments(command: amqp10.ExchangeDeclare, *, ignore_qpid: bool = False) -> Table:
    """Arguments of exchange.declare in 0-9-1."""
    fields = _common(command.arguments)
    fields.pop("qpid.replicate", None)
    return _named(_known(fields, ignore_qpid=ignore_qpid), _ALTERNATE, command.alternate_exchange)


def bind_arguments(command: amqp10.ExchangeBind, *, ignore_qpid: bool = False) -> Table:
    """Arguments of queue.bind in 0-9-1."""
    return Table(tuple(_known(_common(command.arguments), ignore_qpid=ignore_qpid).items()))


def consume_arguments(command: amqp10.MessageSubscribe, *, ignore_qpid: bool = False) -> Table:
    """Arguments of basic.consume in 0-9-1."""
    return Table(tuple(_known(_common(command.arguments), ignore_qpid=ignore_qpid).items()))


def arguments_of(arguments: Map | None) -> Table:
    """Arguments as they are, with text where RabbitMQ asks for text; to compare with those of a binding."""
    return Table(tuple(_fields(arguments).items()))


def queue_declare(method: amqp.QueueDeclare) -> amqp10.QueueDeclare:
    """queue.declare in 0-10. An exclusive queue, which ends with its connection, is auto-delete as well."""
    fields = first_fields(method.arguments.entries)
    _refuse(fields)
    for name in _STORED:
        fields.pop(name, None)
    if fields.pop("x-queue-type", Field("S", "classic")).value != "classic":
        raise _has_none("queues of another type than classic")
    if fields.pop("x-single-active-consumer", Field("t", False)).value:
        raise _has_none("x-single-active-consumer")
    made: dict[str, Field] = {}
    for name, limit in _LIMITS.items():
        number = _their_number(fields, limit)
        if number is not None:
            made[name] = Field.of(number)
    overflow = fields.pop("x-overflow", None)
    if overflow is not None or made:
        text = "drop-head" if overflow is None else _word(overflow)
        if text not in _OVERFLOWS:
            raise _has_none(f"x-overflow {text}")
        made["qpid.policy_type"] = Field("S", _OVERFLOWS[text])
    expires = _their_number(fields, "x-expires", 1)
    if expires is not None:
        made["qpid.auto_delete_timeout"] = Field.of(-(-expires // 1000))
    levels = _their_number(fields, "x-max-priority")
    if levels:
        made["qpid.priorities"] = Field.of(_MOST_PRIORITIES)
    alternate = _their_exchange(fields, _DEAD_LETTERS)
    return amqp10.QueueDeclare(
        queue=method.queue.encode(),
        alternate_exchange=alternate,
        passive=method.passive,
        durable=method.durable,
        exclusive=method.exclusive,
        auto_delete=method.auto_delete or method.exclusive or expires is not None,
        arguments=_passed({**fields, **made}),
    )


def exchange_declare(method: amqp.ExchangeDeclare) -> amqp10.ExchangeDeclare:
    """exchange.declare in 0-10."""
    if method.internal and not method.passive:
        raise _has_none("internal exchanges")
    fields = first_fields(method.arguments.entries)
    alternate = _their_exchange(fields, _ALTERNATE)
    return amqp10.ExchangeDeclare(
        exchange=method.exchange.encode(),
        type=method.type.encode(),
        alternate_exchange=alternate,
        passive=method.passive,
        durable=method.durable,
        auto_delete=method.auto_delete,
        arguments=_passed(fields),
    )


def exchange_bind(method: amqp.QueueBind) -> amqp10.ExchangeBind:
    """exchange.bind of a queue in 0-10. To RabbitMQ headers are compared with all arguments by default."""
    fields = first_fields(method.arguments.entries)
    return amqp10.ExchangeBind(
        queue=method.queue.encode(),
        exchange=method.exchange.encode(),
        binding_key=_binding_key(method.routing_key, fields),
        arguments=_passed({_MATCH: Field("S", "all"), **fields} if fields else fields),
    )


def exchange_unbind(method: amqp.QueueUnbind) -> amqp10.ExchangeUnbind:
    """exchange.unbind of a queue in 0-10."""
    key = _binding_key(method.routing_key, first_fields(method.arguments.entries))
    return amqp10.ExchangeUnbind(method.queue.encode(), method.exchange.encode(), key)


def subscribe_arguments(method: amqp.BasicConsume) -> Map | None:
    """Arguments of message.subscribe in 0-10; None if there are none."""
    fields = first_fields(method.arguments.entries)
    _refuse(fields)
    return _passed(fields)


# -- to 0-9-1 --------------------------------------------------------------------------------------------


def _fields(arguments: Map | None) -> dict[str, Field]:
    if arguments is None:
        return {}
    return {
        name: text_field(field.value)
        if name.startswith("x-") and field.tag == "x" and isinstance(field.value, bytes)
        else field
        for name, field in fields_of(arguments).items()
    }


def _common(arguments: Map | None, *, ignores_local: bool = False) -> dict[str, Field]:
    """The fields of any arguments, less selectors and no-local: 540 if these are meant."""
    fields = _fields(arguments)
    for name in _SELECTORS:
        field = fields.pop(name, None)
        if field is not None and field.value:
            raise _has_none(name)
    local = fields.pop(_NO_LOCAL, None)
    if local is not None and _is_true(local) and not ignores_local:
        raise _has_none(_NO_LOCAL)
    return fields


def _is_true(field: Field) -> bool:
    """As Qpid takes it: text may say so, too."""
    if isinstance(field.value, str | bytes):
        return _word(field) not in ("", "false", "0")
    return bool(field.value)


def _word(field: Field) -> str:
    value = field.value
    return (value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)).lower()


def _known(fields: Mapping[str, Field], *, ignore_qpid: bool) -> dict[str, Field]:
    """The fields less those of Qpid's that RabbitMQ knows nothing of: 540, or left out."""
    known = {name: field for name, field in fields.items() if not name.startswith(_QPIDS)}
    if len(known) != len(fields) and not ignore_qpid:
        raise _has_none(next(name for name in fields if name not in known))
    return known


def _number(fields: dict[str, Field], name: str) -> int | None:
    """Taken out of the fields; text of digits is a number, too. 542 for what is none, or below 0."""
    field = fields.pop(name, None)
    if field is None:
        return None
    word = _word(field)
    if isinstance(field.value, int | str | bytes) and word.isascii() and word.isdigit() and len(word) < 16:
        return int(word)
    raise ProtocolViolation(542, f"{name} is no number of use")


def _highest(levels: int) -> int:
    """The priority from which on Qpid makes no difference, with so many levels; 0 if it makes none at all."""
    levels = min(levels, _MOST_PRIORITIES)
    return _MIDDLE + levels // 2 - 1 if levels > 1 else 0


def _policy(fields: dict[str, Field], *, is_limited: bool, ignore_qpid: bool) -> str | None:
    field = fields.pop("qpid.policy_type", None)
    if field is None:
        return _POLICIES["reject"] if is_limited else None
    overflow = _POLICIES.get(_word(field))
    if overflow is None and not ignore_qpid:
        raise _has_none(f"qpid.policy_type {_word(field)}")
    return overflow


def _named(fields: dict[str, Field], name: str, exchange: bytes | None) -> Table:
    """With the exchange, if there is one, under that name."""
    if exchange:
        try:
            fields[name] = Field("S", exchange.decode())
        except UnicodeDecodeError:
            raise ProtocolViolation(542, "the name of the alternate exchange is not UTF-8") from None
    return Table(tuple(fields.items()))


def _has_none(what: str) -> ProtocolViolation:
    return ProtocolViolation(540, f"{what}: the broker has none")


# -- to 0-10 ---------------------------------------------------------------------------------------------


def _their_number(fields: dict[str, Field], name: str, least: int = 0) -> int | None:
    """Taken out of the fields; 406 for what is none, or below ``least``."""
    field = fields.pop(name, None)
    if field is None:
        return None
    if isinstance(field.value, int) and field.tag not in "tT" and field.value >= least:
        return field.value
    raise ProtocolViolation(406, f"invalid arg '{name}'")


def _their_exchange(fields: dict[str, Field], name: str) -> bytes | None:
    field = fields.pop(name, None)
    if field is None:
        return None
    if isinstance(field.value, str) and field.tag == "S":
        return field.value.encode("utf-8", "surrogateescape")
    raise ProtocolViolation(406, f"invalid arg '{name}'")


def _binding_key(routing_key: str, fields: Mapping[str, Field]) -> bytes:
    """In 0-10 a key stands for one binding; to RabbitMQ the arguments by which headers match do, too."""
    key = routing_key.encode()
    if _MATCH not in fields:
        return key
    digest = sha256(repr(sorted(fields.items(), key=itemgetter(0))).encode("utf-8", "surrogatepass"))
    return b"%s#%s" % (key[:_MOST_KEY], digest.hexdigest()[:16].encode())


def _passed(fields: Mapping[str, Field]) -> Map | None:
    return map_of_fields(fields) if fields else None


def _refuse(fields: Mapping[str, Field]) -> None:
    """540 for what changes deliveries in a way that 0-10 has none of."""
    name = next((name for name in fields if name in _RABBITMQS), None)
    if name is not None:
        raise _has_none(name)

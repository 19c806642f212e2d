"""What a transform policy makes of methods and content headers: one pure function per direction and kind.

Nothing is patched: what changes is made anew, what does not is the very object that came in. Names are
changed in both directions, all else on the way to the broker.

==========================================  ================================================================
names in                                    are changed
==========================================  ================================================================
methods                                     exchange, queue, source, destination
routing key                                 of the default exchange: it is a queue's name
``CC``, ``BCC``                             of a message to the default exchange: likewise
``reply_to``                                always: it is a queue's name by its meaning (section 1.8.1)
``x-dead-letter-exchange``                  and ``x-dead-letter-routing-key``, for the default exchange
``alternate-exchange``
``x-death``, ``x-first-death-...``          queue, exchange, and the routing keys of the default exchange
reply texts of the broker's                 where RabbitMQ quotes a queue or an exchange
==========================================  ================================================================
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import TypeAlias, TypeVar

import attrs

from amqpgate.errors import cut_reply
from amqpgate.policy.engine.naming import LEADS_TO, Naming, precondition_failed
from amqpgate.policy.engine.operations import SENDER_SELECTED, SERVER_NAMED, Operation
from amqpgate.policy.kinds.transform_set import ContentChange, Transform
from amqpgate.wire.codec import ContentHeader
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.method import Method
from amqpgate.wire.tables import EMPTY_TABLE, Field, Table

_NO_CHANGE = ContentChange()

#: What RabbitMQ reads as a number of milliseconds.
_NUMBER = re.compile(r"\+?[0-9]+", re.ASCII)

M = TypeVar("M", bound=Method)

_Declare: TypeAlias = "amqp.QueueDeclare | amqp.ExchangeDeclare"
Sent: TypeAlias = "amqp.BasicDeliver | amqp.BasicGetOk | amqp.BasicReturn"
_Rename: TypeAlias = Callable[[str], str]


# -- to the broker -------------------------------------------------------------------------------------------


def method_up(transform: Transform, method: Method, operation: Operation | None, last_queue: str) -> Method:
    """A method of the client's, but for basic.publish, as the broker gets it.

    ``operation`` is what the policy judged of it; ``last_queue`` is the queue declared last, by the client's
    name. Raises `NotTransformedError`.
    """
    if operation is not None and transform.arguments:
        method = _with_arguments(transform, method, operation)
    return method if transform.naming is None else _named_up(transform.naming, method, last_queue)


def publish_up(transform: Transform, method: amqp.BasicPublish) -> amqp.BasicPublish:
    """The method of a message as the broker gets it. Raises `NotTransformedError`."""
    naming = transform.naming
    if naming is None:
        return method
    return _evolve(
        method,
        exchange=naming.exchange_up(method.exchange),
        routing_key=naming.key_up(method.exchange, method.routing_key),
    )


def header_up(transform: Transform, method: amqp.BasicPublish, header: ContentHeader) -> ContentHeader:
    """The content header of a message; its method is as the client sent it. Raises `NotTransformedError`."""
    properties = header.properties
    assert isinstance(properties, amqp.BasicProperties)
    content = transform.content
    if content.max_body is not None and header.body_size > content.max_body:
        # In RabbitMQ's words for the same (max_message_size).
        raise precondition_failed(
            f"message size {header.body_size} is larger than configured max size {content.max_body}"
        )
    if content.validates_user and properties.user_id is not None and properties.user_id != transform.user:
        raise precondition_failed(
            f"user_id property set to '{properties.user_id}' "
            f"but authenticated user was '{transform.user or ''}'"
        )
    if content != _NO_CHANGE:
        properties = _with_content(content, properties)
    if transform.naming is not None:
        properties = _properties_up(transform.naming, method.exchange, properties)
    return header if properties is header.properties else attrs.evolve(header, properties=properties)


def _with_arguments(transform: Transform, method: Method, operation: Operation) -> Method:
    if not isinstance(method, amqp.QueueDeclare | amqp.ExchangeDeclare | amqp.BasicConsume):
        return method
    if not isinstance(method, amqp.BasicConsume) and method.passive:
        return method  # RabbitMQ takes no notice of them
    table = method.arguments
    for one in transform.arguments_for(operation):
        for name in [name for name, _ in table if any(p.matches(name) for p in one.rule.strip)]:
            table = table.without(name)
        for name, value in one.add.items():
            if name not in table:
                table = table.with_(name, value)
        for name, value in one.force.items():
            table = table.with_(name, value)
        for name, ceiling in one.rule.ceilings.items():
            field = table.field(name)
            # What is no number is for the broker to refuse.
            if field is None or (type(field.value) is int and field.value > ceiling):
                table = table.with_(name, ceiling)
    return _evolve(method, arguments=table)


def _with_content(content: ContentChange, properties: amqp.BasicProperties) -> amqp.BasicProperties:
    headers = properties.headers
    for name in content.strip_properties:
        properties = _evolve_properties(properties, **{name: None})
    for pattern in content.strip_headers:
        for name in [name for name, _ in headers or () if pattern.matches(name)]:
            assert headers is not None
            headers = headers.without(name)
    for name, value in content.set_headers.items():
        headers = (EMPTY_TABLE if headers is None else headers).with_(name, value)
    if "headers" not in content.strip_properties or content.set_headers:
        properties = _evolve_properties(properties, headers=headers)
    properties = _evolve_properties(properties, **content.set_properties)
    if content.max_ttl is not None:
        said = properties.expiration
        if said is None or (_NUMBER.fullmatch(said) and int(said) > content.max_ttl):
            properties = _evolve_properties(properties, expiration=str(content.max_ttl))
    return properties


def _named_up(naming: Naming, method: Method, last_queue: str) -> Method:
    match method:
        case amqp.QueueDeclare() as m:
            return _evolve(m, queue=naming.queue_up(m.queue), arguments=_arguments_up(naming, m))
        case amqp.QueueBind() | amqp.QueueUnbind() as m:
            key = m.routing_key
            if naming.queues is not None and not m.queue and not key and last_queue != SERVER_NAMED:
                key = last_queue  # RabbitMQ would take its own name for it
            return _evolve(
                m,
                queue=naming.queue_up(m.queue),
                exchange=naming.exchange_up(m.exchange),
                routing_key=naming.key_up(m.exchange, key),
            )
        case amqp.QueuePurge() | amqp.QueueDelete() | amqp.BasicConsume() | amqp.BasicGet() as m:
            return _evolve(m, queue=naming.queue_up(m.queue))
        case amqp.ExchangeDeclare() as m:
            return _evolve(m, exchange=naming.exchange_up(m.exchange), arguments=_arguments_up(naming, m))
        case amqp.ExchangeDelete() as m:
            return _evolve(m, exchange=naming.exchange_up(m.exchange))
        case amqp.ExchangeBind() | amqp.ExchangeUnbind() as m:
            return _evolve(
                m, source=naming.exchange_up(m.source), destination=naming.exchange_up(m.destination)
            )
    return method


def _arguments_up(naming: Naming, method: _Declare) -> Table:
    """With the names of the exchanges that messages go to from there."""
    table = method.arguments
    for exchange_name, key_name in LEADS_TO.items():
        field = table.field(exchange_name)
        if field is None:
            continue
        _check_text(field, exchange_name)
        exchange = _text(field)
        if exchange is None:
            continue  # of a type that the broker refuses
        table = _with_text(table, exchange_name, naming.exchange_up(exchange))
        if exchange or naming.queues is None or method.passive:
            continue
        key_field = None if key_name is None else table.field(key_name)
        key = _text(key_field)
        if key is None or key_name is None:
            # Every message would go to the queue that its routing key names, without the prefix.
            needs = f" needs {key_name} here" if key_name is not None else " is not available"
            raise precondition_failed(f"{exchange_name} '' (the default exchange){needs}")
        table = _with_text(table, key_name, naming.queue_up(key))
    return table


def _properties_up(naming: Naming, exchange: str, properties: amqp.BasicProperties) -> amqp.BasicProperties:
    if naming.queues is not None and properties.reply_to is not None:
        properties = _evolve_properties(properties, reply_to=naming.queue_up(properties.reply_to))
    headers = properties.headers
    if headers is None:
        return properties
    if not exchange and naming.queues is not None:
        for name in SENDER_SELECTED:
            keys = headers.field(name)
            for key in keys.value if keys is not None and isinstance(keys.value, tuple) else ():
                _check_text(key, name)
            headers = _with_each(headers, name, naming.queue_up)
    headers = _deaths(headers, naming.exchange_up, naming.queue_up)
    return _evolve_properties(properties, headers=headers)


# -- to the client -------------------------------------------------------------------------------------------


def method_down(transform: Transform, method: Method) -> Method:
    """A method of the broker's without content, as the client gets it."""
    naming = transform.naming
    if naming is None:
        return method
    if isinstance(method, amqp.QueueDeclareOk):
        return _evolve(method, queue=naming.queue_down(method.queue))
    if isinstance(method, amqp.ChannelClose | amqp.ConnectionClose):
        return _evolve(method, reply_text=cut_reply(naming.text_down(method.reply_text)))
    return method


def message_down(transform: Transform, method: Sent, header: ContentHeader) -> tuple[Sent, ContentHeader]:
    """A message to the client, delivered, got or returned: its method and its content header."""
    naming = transform.naming
    if naming is None:
        return method, header
    properties = header.properties
    assert isinstance(properties, amqp.BasicProperties)
    headers = properties.headers
    # A dead letter keeps its routing keys: those of the default exchange are queues' names wherever it went.
    queues = frozenset() if headers is None else _queues_in(headers)
    exchange = naming.exchange_down(method.exchange)
    key = method.routing_key
    if not exchange or key in queues:
        key = naming.queue_down(key)
    method = _evolve(method, exchange=exchange, routing_key=key)
    if properties.reply_to is not None:
        properties = _evolve_properties(properties, reply_to=naming.queue_down(properties.reply_to))
    if headers is not None:

        def key_down(key: str) -> str:
            return naming.queue_down(key) if not exchange or key in queues else key

        for name in SENDER_SELECTED:
            headers = _with_each(headers, name, key_down)
        headers = _deaths(headers, naming.exchange_down, naming.queue_down)
        properties = _evolve_properties(properties, headers=headers)
    if properties is not header.properties:
        header = attrs.evolve(header, properties=properties)
    return method, header


def renames_message(transform: Transform, method: amqp.BasicDeliver | amqp.BasicPublish) -> bool:
    """Whether every message with these names is changed. Raises `NotTransformedError` for a publish."""
    naming = transform.naming
    if naming is None:
        return False
    if isinstance(method, amqp.BasicPublish):
        return publish_up(transform, method) is not method
    exchange = naming.exchange_down(method.exchange)
    return (exchange, naming.key_down(exchange, method.routing_key)) != (method.exchange, method.routing_key)


# -- both ----------------------------------------------------------------------------------------------------


def _queues_in(headers: Table) -> frozenset[str]:
    """The routing keys in ``x-death`` that a message had in the default exchange."""
    deaths = headers.get("x-death")
    found: set[str] = set()
    for death in deaths if isinstance(deaths, list) else ():
        if isinstance(death, Mapping) and death.get("exchange") == "":
            keys = death.get("routing-keys")
            found.update(key for key in (keys if isinstance(keys, list) else ()) if isinstance(key, str))
    return frozenset(found)


def _deaths(headers: Table, exchange: _Rename, queue: _Rename) -> Table:
    """The history of a dead letter, with other names."""
    for order in ("first", "last"):
        headers = _with_named(headers, f"x-{order}-death-exchange", exchange)
        headers = _with_named(headers, f"x-{order}-death-queue", queue)
    field = headers.field("x-death")
    if field is None or not isinstance(field.value, tuple):
        return headers
    deaths = []
    for death in field.value:
        if isinstance(death.value, Table):
            table = death.value
            if table.get("exchange") == "":
                table = _with_each(table, "routing-keys", queue)
            table = _with_named(table, "exchange", exchange)
            death = Field(death.tag, _with_named(table, "queue", queue))
        deaths.append(death)
    return headers.with_("x-death", Field(field.tag, tuple(deaths)))


def _text(field: Field | None) -> str | None:
    """The value of a long string; None where it is none, or no text."""
    return field.value if field is not None and field.tag == "S" and isinstance(field.value, str) else None


def _check_text(field: Field, name: str) -> None:
    """`NotTransformedError` for what the broker takes for a name and nobody can rename."""
    if field.tag == "S" and not isinstance(field.value, str):
        raise precondition_failed(f"{name} is not UTF-8")


def _with_text(table: Table, name: str, text: str) -> Table:
    return table if table.get(name) == text else table.with_(name, text)


def _with_named(table: Table, name: str, rename: _Rename) -> Table:
    text = _text(table.field(name))
    return table if text is None else _with_text(table, name, rename(text))


def _with_each(table: Table, name: str, rename: _Rename) -> Table:
    """With the texts of a list renamed."""
    field = table.field(name)
    if field is None or not isinstance(field.value, tuple):
        return table
    items = []
    for item in field.value:
        text = _text(item)
        items.append(item if text is None else Field("S", rename(text)))
    return table.with_(name, Field(field.tag, tuple(items)))


def _evolve(method: M, **changes: object) -> M:
    """The method with these fields; itself where nothing changes."""
    if all(getattr(method, name) == value for name, value in changes.items()):
        return method
    changed: M = attrs.evolve(method, **changes)  # type: ignore[misc]
    return changed


def _evolve_properties(properties: amqp.BasicProperties, **changes: object) -> amqp.BasicProperties:
    if all(getattr(properties, name) == value for name, value in changes.items()):
        return properties
    return attrs.evolve(properties, **changes)  # type: ignore[arg-type]

"""Arguments of declarations: which are checked, how an earlier declaration is compared, in RabbitMQ's words.

What the arguments ask for is mostly not done here (see ``UNHEEDED``); they are checked and compared all
the same, so that a program that declares against this broker has declared well against RabbitMQ.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn

from amqpgate.broker.terms import INTEGERS, comparable, printed, type_class, type_name
from amqpgate.errors import ProtocolViolation
from amqpgate.wire.tables import Field, Table

#: Longest time in milliseconds that RabbitMQ takes for a TTL: ten years.
_EXPIRY_MAX: Final = 315_360_000_000
_PRIORITY_MAX: Final = 255

#: Queue arguments that are taken and compared but change nothing here.
UNHEEDED: Final = (
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-expires",
    "x-max-length",
    "x-max-length-bytes",
    "x-max-priority",
    "x-message-ttl",
    "x-overflow",
    "x-queue-mode",
    "x-queue-version",
    "x-single-active-consumer",
)

#: What two declarations of one queue must agree on besides its flags, in the order of RabbitMQ's check.
_COMPARED: Final = (
    "x-expires",
    "x-message-ttl",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-max-length",
    "x-max-length-bytes",
    "x-max-priority",
    "x-overflow",
    "x-queue-mode",
    "x-queue-version",
    "x-single-active-consumer",
    "x-queue-type",
    "x-queue-master-locator",
)

#: Arguments of other types of queue, which a classic queue refuses.
_OTHER_TYPES: Final = frozenset(
    {
        "x-dead-letter-strategy",
        "x-delivery-limit",
        "x-initial-cluster-size",
        "x-max-age",
        "x-max-in-memory-bytes",
        "x-max-in-memory-length",
        "x-queue-leader-locator",
        "x-quorum-initial-group-size",
        "x-stream-max-segment-size-bytes",
    }
)


def expiry_error(milliseconds: int) -> str | None:
    """What is wrong with a time to live, as Erlang writes it; None if it is fine."""
    if milliseconds < 0:
        return f"{{value_negative,{milliseconds}}}"
    return f"{{value_too_large,{milliseconds}}}" if milliseconds > _EXPIRY_MAX else None


def _integer(value: Field, _all: Table) -> str | None:
    return None if value.tag in INTEGERS else f'"expected integer, got {type_name(value)}"'


def _number(value: Field) -> int:
    assert isinstance(value.value, int)
    return value.value


def _not_negative(value: Field, arguments: Table) -> str | None:
    wrong = _integer(value, arguments)
    if wrong is None and _number(value) < 0:
        return f"{{value_negative,{_number(value)}}}"
    return wrong


def _ttl(value: Field, arguments: Table) -> str | None:
    return _integer(value, arguments) or expiry_error(_number(value))


def _expires(value: Field, arguments: Table) -> str | None:
    wrong = _integer(value, arguments)
    return "{value_zero,0}" if wrong is None and not value.value else wrong or expiry_error(_number(value))


def _max_priority(value: Field, arguments: Table) -> str | None:
    wrong = _not_negative(value, arguments)
    if wrong is None and _number(value) > _PRIORITY_MAX:
        return f"{{max_value_exceeded,{_number(value)}}}"
    return wrong


def _version(value: Field, arguments: Table) -> str | None:
    wrong = _not_negative(value, arguments)
    if wrong is None and value.value not in (1, 2):
        return f"\"unsupported queue version '{printed(value)}'\""
    return wrong


def _boolean(value: Field, _all: Table) -> str | None:
    return None if value.tag == "t" else f"{{unacceptable_type,{type_name(value)}}}"


def _text(value: Field, _all: Table) -> str | None:
    return None if value.tag == "S" else f"{{unacceptable_type,{type_name(value)}}}"


def _one_of(error: str, *allowed: str) -> Callable[[Field, Table], str | None]:
    def check(value: Field, arguments: Table) -> str | None:
        wrong = _text(value, arguments)
        return error.format(printed(value)) if wrong is None and value.value not in allowed else wrong

    return check


def _dead_letter_key(value: Field, arguments: Table) -> str | None:
    wrong = _text(value, arguments)
    if wrong is None and "x-dead-letter-exchange" not in arguments:
        return "routing_key_but_no_dlx_defined"
    return wrong


#: In RabbitMQ's order; each gives what is wrong, or None.
_QUEUE_CHECKS: Final[dict[str, Callable[[Field, Table], str | None]]] = {
    # Quorum queues and streams are more than a classic queue with another name: refused, not imitated.
    "x-queue-type": _one_of("\"unsupported queue type '{}'\"", "classic"),
    "x-expires": _expires,
    "x-message-ttl": _ttl,
    "x-dead-letter-exchange": _text,
    "x-dead-letter-routing-key": _dead_letter_key,
    "x-max-length": _not_negative,
    "x-max-length-bytes": _not_negative,
    "x-max-priority": _max_priority,
    "x-overflow": _one_of("invalid_overflow", "drop-head", "reject-publish", "reject-publish-dlx"),
    "x-queue-mode": _one_of("\"unsupported queue mode '{}'\"", "default", "lazy"),
    "x-queue-version": _version,
    "x-single-active-consumer": _boolean,
}

_CONSUMER_CHECKS: Final[dict[str, Callable[[Field, Table], str | None]]] = {
    "x-priority": _integer,
    "x-cancel-on-ha-failover": _boolean,
}


def check_exchange_name_argument(arguments: Table, key: str, where: str) -> None:
    """Raise 406 if the argument ``key`` of ``where`` is there and is no name of an exchange."""
    value = arguments.field(key)
    if value is not None and value.tag != "S":
        raise ProtocolViolation(406, f"invalid type '{type_name(value)}' for arg '{key}' in {where}")


def check_queue_arguments(arguments: Table, queue: str) -> None:
    """Raise 406 for an argument that a classic queue (``queue`` is its description) does not take."""
    check_exchange_name_argument(arguments, "x-dead-letter-exchange", queue)
    _check(arguments, queue, _QUEUE_CHECKS, _OTHER_TYPES)


def check_consumer_arguments(arguments: Table, queue: str) -> None:
    """Raise 406 for an argument of basic.consume that a classic queue does not take."""
    _check(arguments, queue, _CONSUMER_CHECKS, frozenset({"x-stream-offset"}))


def _check(
    arguments: Table,
    queue: str,
    checks: dict[str, Callable[[Field, Table], str | None]],
    other_types: frozenset[str],
) -> None:
    for name, check in checks.items():
        value = arguments.field(name)
        wrong = check(value, arguments) if value is not None else None
        if wrong is not None:
            raise ProtocolViolation(406, f"invalid arg '{name}' for {queue}: {wrong}")
    for name, _value in arguments:
        if name in other_types:
            raise ProtocolViolation(
                406, f"invalid arg '{name}' for {queue} of queue type rabbit_classic_queue"
            )


def compare_flag(name: str, received: object, current: object, where: str) -> None:
    """Raise 406 if a declaration says another thing about a flag (or type) than the first one."""
    if received != current:
        _inequivalent(name, where, f"'{_flag(received)}'", f"'{_flag(current)}'")


def compare_queue_arguments(received: Table, current: Table, where: str) -> None:
    """Raise 406 if two declarations of a queue differ in an argument that counts."""
    for name in _COMPARED:
        compare_argument(name, received.field(name), current.field(name), where)


def compare_argument(name: str, received: Field | None, current: Field | None, where: str) -> None:
    """Raise 406 if an argument of two declarations differs."""
    if received is None and current is None:
        return
    if received is None or current is None:
        only = received or current
        if name == "x-queue-type" and only is not None and only.value == "classic":
            return
        _inequivalent(name, where, _with_type(received), _with_type(current))
    elif type_class(received) != type_class(current) or comparable(received) != comparable(current):
        _inequivalent(name, where, f"'{printed(received)}'", f"'{printed(current)}'")


def _inequivalent(name: str, where: str, received: str, current: str) -> NoReturn:
    raise ProtocolViolation(
        406, f"inequivalent arg '{name}' for {where}: received {received} but current is {current}"
    )


def _with_type(value: Field | None) -> str:
    return "none" if value is None else f"the value '{printed(value)}' of type '{type_name(value)}'"


def _flag(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def priority_of(arguments: Table) -> int:
    """The ``x-priority`` of a consumer."""
    value = arguments.get("x-priority", 0)
    return value if isinstance(value, int) else 0

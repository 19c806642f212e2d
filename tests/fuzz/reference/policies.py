"""Access policies, rule by rule as the documents say it: no index, no compiled rules, nothing is shared.

Documents are values as JSON has them; tables are what is on the wire.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import attrs

from amqpgate.policy.engine.operations import OPERATIONS, Principal
from amqpgate.wire.generated import v0_9_1 as amqp
from amqpgate.wire.tables import EMPTY_TABLE, Field, Table
from tests.fuzz.known import tolerates
from tests.fuzz.reference.patterns import (
    Pattern,
    UnsureError,
    Values,
    covers,
    form_of,
    is_known,
    means,
    overlaps,
)

Document = Mapping[str, Any]
_KEYS = {"exchange": "exchange", "queue": "queue", "destination": "destination", "routingKey": "routing_key"}
_TEXTS = {
    "contentType": "content_type",
    "contentEncoding": "content_encoding",
    "correlationId": "correlation_id",
    "replyTo": "reply_to",
    "expiration": "expiration",
    "messageId": "message_id",
    "type": "type",
    "userId": "user_id",
    "appId": "app_id",
}
_PROPERTIES = {**_TEXTS, "deliveryMode": "delivery_mode", "priority": "priority", "timestamp": "timestamp"}


@attrs.frozen
class Request:
    """What a client asks for."""

    name: str
    exchange: str | None = None
    queue: str | None = None
    destination: str | None = None
    routing_key: str | None = None
    arguments: Table = EMPTY_TABLE
    passive: bool = False
    foreign: bool = False
    any_key: bool = False
    properties: amqp.BasicProperties | None = None
    body_size: int = 0


def fits(pattern: str, text: str) -> bool:
    """``name``, ``prefix*`` or ``*``."""
    return text.startswith(pattern[:-1]) if pattern.endswith("*") else text == pattern


def selects(document: Document, principal: Principal) -> tuple[bool, bool]:
    """Whether a policy is about this client, and whether it is so for sure."""
    found = sure = False
    for subject in document["spec"]["subjects"]:
        if "vhosts" in subject and not any(fits(vhost, principal.vhost) for vhost in subject["vhosts"]):
            continue
        user = subject.get("user", "*")
        if principal.user is None:
            found, sure = True, sure or user == "*"
        elif fits(user, principal.user):
            found = sure = True
    return found, sure


def is_allowed(documents: Sequence[Document], principal: Principal, request: Request) -> bool:
    """Whether it is, with all that it leads to."""
    held = [(document, *selects(document, principal)) for document in documents]
    chosen = [
        (rule, sure)
        for document, found, sure in held
        if found and document["spec"].get("mode", "enforce") == "enforce"
        for rule in document["spec"]["rules"]
    ]
    if not any(found and doc["spec"].get("mode", "enforce") == "enforce" for doc, found, _ in held):
        return True
    values = {
        "user": principal.user,
        "vhost": principal.vhost,
        "listener": principal.listener,
        "sourceIP": principal.source,
    }
    return all(_alone(chosen, one, values) for one in (request, *leads_to(request)))


def _alone(rules: list[tuple[Document, bool]], request: Request, values: Values) -> bool:
    if request.name == "queue.declare" and not request.queue:
        request = attrs.evolve(request, queue="amq.gen-")
    names = (request.exchange, request.queue, request.destination)
    if any(name and re.search("[\r\n]", name) for name in names):
        return False
    if any(rule["effect"] == "deny" and _holds(rule, request, values) for rule, _ in rules):
        return False
    for rule, sure in rules:
        if rule["effect"] != "allow" or not sure or not _holds(rule, request, values):
            continue
        if request.foreign and not _means_others(rule, request, values):
            continue
        if any(
            _holds(one, request, values) and _names_ladder(one, request) for one in _variants(rule, request)
        ):
            return True
    return OPERATIONS[request.name].free


def _means_others(rule: Document, request: Request, values: Values) -> bool:
    """Queues that the broker named for other clients: a pattern for them means one's own, unless it reads
    as RabbitMQ's permissions do."""
    if "queue" in rule and form_of(rule["queue"])[0] in ("literal", "search"):
        return True
    return _holds(rule, attrs.evolve(request, queue="amq.", foreign=False), values)


def _variants(rule: Document, request: Request) -> list[Document]:
    """A rule for each thing that it may bind to."""
    if "bindTo" not in rule or not OPERATIONS[request.name].binds:
        return [rule]
    bare = {key: value for key, value in rule.items() if key != "bindTo"}
    return [{**bare, **target} for target in rule["bindTo"]]


def _names_ladder(rule: Document, request: Request) -> bool:
    """Whether a rule says itself that it is about queues and exchanges of the delay ladder, where the request
    has names of those. A message's key may be one, too."""
    for key, name in _KEYS.items():
        value = getattr(request, name)
        if not (value or "").startswith("amqpgate.delay."):
            continue
        if key == "routingKey" and request.name != "basic.publish":
            continue
        pattern = rule.get(key, rule.get("exchange") if key == "destination" else None)
        form, text = ("", "") if pattern is None else form_of(pattern)
        if form not in ("literal", "prefix", "topic", "within") or not text.startswith("amqpgate.delay."):
            return False
    return True


def leads_to(request: Request) -> Iterator[Request]:
    """The publishes that a request makes possible."""
    if request.properties is not None and request.properties.headers is not None:
        for name in ("CC", "BCC"):
            for field in _fields(request.properties.headers, name):
                if isinstance(field.value, tuple):
                    for text in _texts(field.value):
                        yield attrs.evolve(request, routing_key=text)
    elif request.name in ("queue.declare", "exchange.declare") and not request.passive:
        is_queue = request.name == "queue.declare"
        exchanges = _texts(
            _fields(request.arguments, "x-dead-letter-exchange" if is_queue else "alternate-exchange")
        )
        keys = set(_texts(_fields(request.arguments, "x-dead-letter-routing-key")) if is_queue else [])
        key = keys.pop() if len(keys) == 1 else None
        for exchange in exchanges:
            yield Request(
                "basic.publish",
                exchange=exchange,
                routing_key="#" if key is None else key,
                any_key=key is None,
            )


def _fields(table: Table, name: str) -> list[Field]:
    """Every value of that name: a name may stand more than once, and brokers differ in which one counts."""
    return [field for key, field in table if key == name]


def _texts(fields: Iterable[Field]) -> list[str]:
    return [text for text in map(_text, fields) if text is not None]


def _text(field: Field) -> str | None:
    if isinstance(field.value, bytes) and field.tag == "S":
        if tolerates("selected-keys-not-utf8"):
            raise UnsureError
        return field.value.decode("utf-8", "surrogateescape")
    return field.value if isinstance(field.value, str) else None


def _holds(rule: Document, request: Request, values: Values) -> bool:
    """Whether a rule is about the request."""
    kind = OPERATIONS[request.name]
    if not any(re.fullmatch(re.escape(one).replace(r"\*", ".*"), request.name) for one in rule["operations"]):
        return False
    if any(key in rule and name not in kind.attributes for key, name in _KEYS.items()):
        return False
    if "passive" in rule and not request.name.endswith(".declare"):
        return False
    if "properties" in rule and request.name != "basic.publish":
        return False
    if "passive" in rule and rule["passive"] is not request.passive:
        return False
    allows = rule["effect"] == "allow"
    if "arguments" in rule and not table_holds(
        rule["arguments"], Table() if request.passive else request.arguments, allows
    ):
        return False
    if not _names_hold(rule, request, values, allows):
        return False
    if "properties" in rule:
        return request.properties is not None and _content_holds(rule["properties"], request, values, allows)
    return True


def _names_hold(rule: Document, request: Request, values: Values, allows: bool) -> bool:
    kind = OPERATIONS[request.name]

    def one(pattern: Pattern, name: str) -> bool:
        value = getattr(request, name)
        if not is_known(pattern, values):
            return not allows
        if name == "routing_key" and (kind.binds or request.any_key):
            return covers(pattern, value, values) if allows else overlaps(pattern, value, values)
        return means(pattern, value, values)

    for key, name in _KEYS.items():
        if key not in rule or key == "exchange":
            continue
        if not one(rule[key], name):
            return False
    joins = "destination" in kind.attributes and "destination" not in rule

    def exchange(pattern: Pattern) -> bool:
        if not joins:
            return one(pattern, "exchange")
        both = one(pattern, "exchange"), one(pattern, "destination")
        return all(both) if allows else any(both)

    if "exchange" in rule and not exchange(rule["exchange"]):
        return False
    if "bindTo" in rule and kind.binds:
        return any(
            ("exchange" not in target or exchange(target["exchange"]))
            and ("routingKey" not in target or one(target["routingKey"], "routing_key"))
            for target in rule["bindTo"]
        )
    return True


def table_holds(said: Document, table: Table, allows: bool) -> bool:
    """Whether entries are acceptable (allow), or are those that are refused (deny)."""
    names = {name for name, _ in table.entries}
    if not names.issuperset(said.get("require", ())):
        return False
    if any(fits(pattern, name) for pattern in said.get("deny", ()) for name in names):
        return False
    if "allow" in said and not all(any(fits(one, name) for one in said["allow"]) for name in names):
        return False
    for name, wanted in said.get("values", {}).items():
        fields = [field for key, field in table.entries if key == name]
        if not fields:
            if allows:
                continue
            return False
        if tolerates("deny-values") and (len(fields) > 1 or fields[0].tag in "AFdfDTVx"):
            raise UnsureError
        if allows:
            # Of an array it is not known which of its values counts: none is what an allow rule means.
            if any(isinstance(field.value, tuple) or not value_fits(wanted, field) for field in fields):
                return False
        elif not any(value_fits(wanted, field) for field in fields):
            return False
    return True


def value_fits(wanted: Any, field: Field) -> bool:
    """Whether one value is meant."""
    value = field.value
    if isinstance(value, tuple):
        return any(value_fits(wanted, one) for one in value)
    if isinstance(wanted, Mapping) and ({"min", "max"} & set(wanted)):
        if isinstance(value, bool) or field.tag == "t" or not isinstance(value, int):
            return False
        return wanted.get("min", value) <= value <= wanted.get("max", value)
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    if field.tag == "t":
        value = "true" if value else "false"
    if not isinstance(value, str | int):
        return False
    return means(wanted, str(value), {})


def _content_holds(said: Document, request: Request, values: Values, allows: bool) -> bool:
    have = request.properties
    assert have is not None
    for key, name in _TEXTS.items():
        if key not in said:
            continue
        value = getattr(have, name)
        if value is None:
            if not allows:
                return False
        elif not is_known(said[key], values):
            if allows:
                return False
        elif not means(said[key], value, values):
            return False
    if "deliveryMode" in said:
        mode = 1 if have.delivery_mode is None else have.delivery_mode
        if str(mode) != said["deliveryMode"]:
            return False
    if any(getattr(have, _PROPERTIES[key]) is None for key in said.get("require", ())):
        return False
    if "maxBodyBytes" in said and request.body_size > said["maxBodyBytes"]:
        return False
    return "headers" not in said or table_holds(said["headers"], have.headers or Table(), allows)

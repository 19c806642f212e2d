"""What access policies mean, written down once more: slow, one rule after the other, on what is on the wire.

Nothing here is shared with `amqpgate.policy`, so that the two can be compared.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

import attrs

from amqpgate.wire.tables import EMPTY_TABLE, Field, Table


@attrs.frozen
class Said:
    """A pattern: ``form`` is literal, prefix, topic, regex or search."""

    form: str
    text: str
    unless: Said | None = None

    def yaml(self) -> str:
        text = self.text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
        exception = "" if self.unless is None else f", unless: {self.unless.yaml()}"
        return f'{{{self.form}: "{text}"{exception}}}'


@attrs.frozen
class SaidRule:
    """A rule about publishes, or about declares of queues."""

    effect: str
    operation: str
    exchange: Said | None = None
    routing_key: Said | None = None
    queue: Said | None = None
    #: Conditions on headers, or on arguments: a name and what its value must be, as (kind, text or bounds).
    values: tuple[tuple[str, Said | tuple[int, int]], ...] = ()
    require: tuple[str, ...] = ()
    forbid: tuple[str, ...] = ()
    max_body: int | None = None
    reply_to: Said | None = None

    @property
    def asks_table(self) -> bool:
        return bool(self.values or self.require or self.forbid)

    @property
    def asks_content(self) -> bool:
        is_publish = self.operation == "basic.publish"
        return self.max_body is not None or self.reply_to is not None or (is_publish and self.asks_table)

    def yaml(self, number: int) -> str:
        parts = [f"id: r{number}", f"effect: {self.effect}", f"operations: [{self.operation}]"]
        for key, said in (
            ("exchange", self.exchange),
            ("routingKey", self.routing_key),
            ("queue", self.queue),
        ):
            if said is not None:
                parts.append(f"{key}: {said.yaml()}")
        table = []
        if self.values:
            conditions = [
                f"{name}: {{min: {said[0]}, max: {said[1]}}}"
                if isinstance(said, tuple)
                else f"{name}: {said.yaml()}"
                for name, said in self.values
            ]
            table.append(f"values: {{{', '.join(conditions)}}}")
        if self.require:
            table.append(f"require: [{', '.join(self.require)}]")
        if self.forbid:
            table.append(f"deny: [{', '.join(self.forbid)}]")
        if self.operation == "queue.declare":
            if table:
                parts.append(f"arguments: {{{', '.join(table)}}}")
        else:
            content = [f"headers: {{{', '.join(table)}}}"] if table else []
            if self.max_body is not None:
                content.append(f"maxBodyBytes: {self.max_body}")
            if self.reply_to is not None:
                content.append(f"replyTo: {self.reply_to.yaml()}")
            if content:
                parts.append(f"properties: {{{', '.join(content)}}}")
        return ", ".join(parts)


@attrs.frozen
class Asked:
    """A request. ``any_key``, ``any_content``: of messages that are still to come."""

    operation: str
    exchange: str = ""
    routing_key: str = ""
    queue: str = ""
    table: Table = EMPTY_TABLE
    reply_to: str | None = None
    body: int = 0
    any_key: bool = False
    any_content: bool = False


def means(said: Said, text: str, user: str, *, grants: bool) -> bool:
    """Whether a text is meant."""
    if grants and shares(said, user):
        return False
    if not _means(said, text, user):
        return False
    if said.unless is None:
        return True
    exempt = _means(said.unless, text, user)
    return not (exempt and not (not grants and shares(said.unless, user)))


def shares(said: Said, user: str) -> bool:
    """Whether others could have what the pattern gives the user: only such forms are made here."""
    return (said.form, said.text) in (("prefix", "{user}."), ("topic", "{user}.#")) and "." in user


def _means(said: Said, text: str, user: str) -> bool:
    if said.form in ("regex", "search"):
        readable = "".join("\ufffd" if 0xD800 <= ord(letter) < 0xE000 else letter for letter in text)
        pattern = said.text.replace("{user}", re.escape(user)).replace("$", r"\Z")
        find = re.fullmatch if said.form == "regex" else re.search
        return find(pattern, readable, re.DOTALL) is not None
    pattern = said.text.replace("{user}", user)
    if said.form == "literal":
        return text == pattern
    if said.form == "prefix":
        return text.startswith(pattern)
    return _topic(_words(said.text, user), text.split(".") if text else [])


def _words(text: str, user: str) -> list[str]:
    """The words of a topic pattern; ``=`` stands before those that are no wildcards."""
    found = []
    for word in text.split("."):
        if word in ("*", "#"):
            found.append(word)
        else:
            found += [f"={part}" for part in word.replace("{user}", user).split(".")]
    return found


def _topic(pattern: list[str], words: list[str]) -> bool:
    if not pattern:
        return not words
    first, rest = pattern[0], pattern[1:]
    if first == "#":
        return any(_topic(rest, words[count:]) for count in range(len(words) + 1))
    return bool(words) and first in ("*", f"={words[0]}") and _topic(rest, words[1:])


def means_every(said: Said, user: str) -> bool:
    """Whether every routing key is meant. To ``search``, and to a literal, what stands for them is ``#``."""
    return _means_every(said) and (said.unless is None or not _means_some(said.unless, user))


def means_some(said: Said, user: str) -> bool:
    """Whether any routing key is meant."""
    return _means_some(said, user) and (said.unless is None or not _means_every(said.unless))


def _means_every(said: Said) -> bool:
    if said.form == "search":
        return _means(said, "#", "")
    return (said.form, said.text) in (("prefix", ""), ("topic", "#"), ("literal", "#"))


def _means_some(said: Said, user: str) -> bool:
    return said.form != "search" or _means(said, "#", user)


def text_of(field: Field) -> str | None:
    """The text of a value as a consumer reads it."""
    value = field.value
    if isinstance(value, bytes):
        return value.decode("utf-8", "surrogateescape")
    if isinstance(value, str):
        return value
    if field.tag == "t":
        return "true" if value else "false"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return str(int(value)) if value == int(value) else repr(value)
    if isinstance(value, Decimal):
        whole = int(value)
        if whole == value:
            return str(whole)
        return format(value, "f").rstrip("0")
    return None


def number_of(field: Field) -> float | Decimal | None:
    value = field.value
    if field.tag == "t" or isinstance(value, Table | tuple) or value is None:
        return None
    if isinstance(value, int | float | Decimal):
        return value
    try:
        return Decimal((value.decode("ascii") if isinstance(value, bytes) else value).strip())
    except (ArithmeticError, UnicodeDecodeError):
        return None


def leaves(field: Field) -> Iterator[Field]:
    """The value, or those in it."""
    if isinstance(field.value, Table):
        for _, inner in field.value:
            yield from leaves(inner)
    elif isinstance(field.value, tuple):
        for inner in field.value:
            yield from leaves(inner)
    else:
        yield field


def fits(said: Said | tuple[int, int], field: Field) -> bool:
    """Whether one value is what is asked for."""
    if isinstance(said, tuple):
        number = number_of(field)
        return number is not None and said[0] <= number <= said[1]
    text = text_of(field)
    return text is not None and _means(said, text, "")


def holds(rule: SaidRule, table: Table) -> bool:
    names = [name for name, _ in table]
    if any(name not in names for name in rule.require) or any(name in names for name in rule.forbid):
        return False
    for wanted, said in rule.values:
        found = [field for name, field in table if name == wanted]
        if rule.effect == "allow":
            if not all(fits(said, field) for field in found):
                return False
        elif not any(fits(said, leaf) for field in found for leaf in leaves(field)):
            return False
    return True


def matches(rule: SaidRule, asked: Asked, user: str) -> bool:
    if rule.operation != asked.operation:
        return False
    grants = rule.effect == "allow"
    if rule.exchange is not None and not means(rule.exchange, asked.exchange, user, grants=grants):
        return False
    if rule.queue is not None and not means(rule.queue, asked.queue, user, grants=grants):
        return False
    if rule.routing_key is not None:
        said = rule.routing_key
        if not asked.any_key:
            fit = means(said, asked.routing_key, user, grants=grants)
        elif grants:
            fit = means_every(said, user)
        else:
            fit = means_some(said, user)
        if not fit:
            return False
    if rule.operation == "queue.declare":
        return not rule.asks_table or holds(rule, asked.table)
    if not rule.asks_content:
        return True
    if asked.any_content:
        return grants or rule.exchange is not None or rule.routing_key is not None
    if rule.max_body is not None and asked.body > rule.max_body:
        return False
    if rule.reply_to is not None:
        if asked.reply_to is None:
            if not grants:
                return False
        elif not means(rule.reply_to, asked.reply_to, user, grants=grants):
            return False
    return not rule.asks_table or holds(rule, asked.table)


def may_alone(rules: list[SaidRule], asked: Asked, user: str) -> bool:
    if {"\n", "\r"} & {*asked.exchange, *asked.queue}:
        return False
    found = [rule.effect for rule in rules if matches(rule, asked, user)]
    return "deny" not in found and "allow" in found


def may(rules: list[SaidRule], asked: Asked, user: str) -> bool:
    """Whether the request is allowed, with all that it leads to."""
    return all(may_alone(rules, one, user) for one in (asked, *leads_to(asked)))


def leads_to(asked: Asked) -> Iterator[Asked]:
    if asked.operation == "basic.publish":
        for name, field in asked.table:
            if name in ("CC", "BCC") and isinstance(field.value, tuple):
                for item in field.value:
                    if isinstance(item.value, str | bytes):
                        yield attrs.evolve(asked, routing_key=text_of(item) or "")
        return
    exchanges = _texts(asked.table, "x-dead-letter-exchange")
    keys = _texts(asked.table, "x-dead-letter-routing-key")
    for exchange in exchanges:
        if len(keys) == 1:
            (key,) = keys
            yield Asked("basic.publish", exchange, key, any_content=True)
        else:
            yield Asked("basic.publish", exchange, "#", any_key=True, any_content=True)


def _texts(table: Table, wanted: str) -> set[str]:
    found = (
        text_of(field) for name, field in table if name == wanted and isinstance(field.value, str | bytes)
    )
    return {text for text in found if text is not None}

"""RabbitMQ's permissions to access policies that answer alike.

What RabbitMQ 3.10 checks, in its order (rabbit_channel, rabbit_access_control), with the regular
expressions of the user's permission in the vhost, ``configure``, ``write`` and ``read``:

=========================  ================================================================================
queue.declare              configure queue; with a dead letter exchange also read queue, write exchange
queue.delete               configure queue
queue.bind, queue.unbind   write queue, read exchange, read topic
queue.purge                read queue
exchange.declare           configure exchange; with an alternate exchange also read exchange, write alternate
exchange.delete            configure exchange
exchange.bind, .unbind     write destination, read source, read topic
basic.publish              write exchange, write topic
basic.get, basic.consume   read queue; of amq.rabbitmq.reply-to nothing
passive declares           nothing
=========================  ================================================================================

A permission is found anywhere in the name (`re:run`), the empty one is ``^$``, and the default exchange is
called ``amq.default``. What RabbitMQ refuses before or instead of a permission (reserved names, what is
not done with the default exchange) is left to it. A user without a permission may not open the vhost.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import attrs

from amqpgate.errors import ConfigError
from amqpgate.logs import on_one_line
from amqpgate.policy.engine.access_rule import Rule
from amqpgate.policy.engine.conditions import Match
from amqpgate.policy.engine.inclusion import pattern_within
from amqpgate.policy.engine.matching import Matcher, check_pattern, compile_pattern
from amqpgate.policy.engine.operations import SERVER_NAMED
from amqpgate.policy.kinds.access_findings import needed_rules
from amqpgate.policy.kinds.common import Mode
from amqpgate.policy.loader import MAX_FILES, Source, build
from amqpgate.policy.tools.definitions import Definitions, Permission, TopicPermission
from amqpgate.policy.tools.writing import Value, access_policy, flow
from amqpgate.yamldoc import Invalid, from_python, structure

#: Policies per file: a file may have 1 MiB and 1000 documents.
_PER_FILE = 100
#: Users that have a file of their own. Of more, files hold many policies: a folder may have 1,000 files.
_OWN_FILES = MAX_FILES // 2

_Rule: TypeAlias = dict[str, Value]

#: Braces that are not to become variables, with what must not be taken apart before them.
_BRACES = re.compile(r"\\[pPx]\{[^}]*\}|\\?\{(?=[A-Za-z_])|\\.", re.DOTALL)

_SERVER_NAMES = tuple(SERVER_NAMED + name for name in ("AAAAAAAAAAAAAAAAAAAAAA", "kX3-_09zQbY7wLmPaRtUvg"))

_ANY: Value = {"prefix": ""}

_UNSELECTABLE = (
    "subjects cannot mean a name with an asterisk or {NAME} in it, so no policy selects it; "
    "`defaultAccess: deny` in the settings denies it all"
)
_DENIED = "its policy denies all there; write it otherwise in RabbitMQ, and import again"
_COMMENT = "RabbitMQ's permission cannot be said here, so all is denied:"


@attrs.frozen
class Imported:
    """Files of policies, and what they do otherwise than RabbitMQ."""

    files: tuple[Source, ...]
    notes: tuple[str, ...]
    #: What policies cannot say, and what holds in its place.
    gaps: tuple[str, ...] = ()


def translated(regex: str) -> str:
    """The regular expression as documents write it; `Invalid` where RE2 has no such thing."""
    if regex == "":
        return "^$"
    if "\\Q" in regex and "{" in regex:
        raise Invalid("write the braces after \\Q as \\x7b")
    text = _BRACES.sub(lambda match: "\\x7b" if match[0].endswith("{") else match[0], regex)
    check_pattern("search", text)
    return text


class _Names:
    """One permission: its expression, and what it says of names that RabbitMQ treats apart."""

    def __init__(self, regex: str) -> None:
        self.text = translated(regex)
        matcher = compile_pattern("search", self.text, {})
        assert isinstance(matcher, Matcher)
        self.matches = matcher.matches

    @property
    def pattern(self) -> Value:
        """Names that are permitted."""
        return {"search": self.text}

    @property
    def keys(self) -> Value:
        """Routing keys that are permitted. To RabbitMQ's expressions a dot is no line feed."""
        return {"search": f"(?-s){self.text}" if "." in self.text else self.text}

    @property
    def default_exchange(self) -> bool:
        """Whether the default exchange is permitted."""
        return self.matches("amq.default")

    @property
    def named_exchanges(self) -> Value:
        """Exchanges that are permitted, without the default one."""
        return {"search": self.text, "unless": ""} if self.matches("") else self.pattern

    @property
    def is_anything(self) -> bool:
        """Whether it permits every name."""
        return pattern_within(Match(prefix=""), Match(search=self.text))

    def exchanges(self) -> Iterator[Value]:
        """Exchanges that are permitted, each alternative."""
        if self.matches("") and not self.default_exchange:
            yield {"search": self.text, "unless": ""}
        else:
            yield self.pattern
            if self.default_exchange and not self.matches(""):
                yield ""

    @property
    def server_named(self) -> bool | None:
        """Whether server-named queues are permitted; None where that depends on chance."""
        answers = set(map(self.matches, _SERVER_NAMES))
        return answers.pop() if len(answers) == 1 else None

    def declared_queues(self) -> Iterator[Value]:
        """Queues that are permitted; whether a server-named one is depends on the name that it gets."""
        own, later = self.matches(SERVER_NAMED), self.server_named
        if own and not later:
            yield {"search": self.text, "unless": SERVER_NAMED}
        else:
            yield self.pattern
            if later and not own:
                yield SERVER_NAMED


def import_permissions(definitions: Definitions, file: str, mode: Mode = "enforce") -> Imported:
    """The policies, in that mode. A permission that they cannot say is denied as a whole, and is a gap;
    `ConfigError` where there is nothing that they can say."""
    notes: list[str] = []
    gaps: dict[str, None] = {}
    documents: dict[str, list[str]] = {}
    held = {(one.user, one.vhost): one for one in definitions.permissions}
    topics: dict[tuple[str, str], list[TopicPermission]] = {}
    for topic in definitions.topic_permissions:
        topics.setdefault((topic.user, topic.vhost), []).append(topic)
    taken: set[str] = set()

    def name_of(base: str) -> str:
        name, number = base, 1
        while name in taken:
            number += 1
            name = f"{base}-{number}"
        taken.add(name)
        return name

    def selectable(what: str, name: str) -> bool:
        is_ = bool(name) and "*" not in name and not re.search(r"\{[A-Za-z_]", name)
        if not is_:
            gaps[f"{what} '{name}': {_UNSELECTABLE}"] = None
        return is_

    users = {user for user in definitions.users if selectable("user", user)}
    vhosts = [vhost for vhost in definitions.vhosts if selectable("vhost", vhost)]
    for (user, vhost), permission in held.items():
        if user not in users or vhost not in vhosts:
            continue
        found = topics.get((user, vhost), [])
        unsaid = list(_unsaid(permission, found, definitions))
        if unsaid:
            where = f"user '{user}' in vhost '{vhost}'"
            gaps.update(dict.fromkeys(f"a permission of {where}: {why}; {_DENIED}" for why in unsaid))
            rules, comment = [_deny("not-imported", ["*"])], [_COMMENT, *unsaid]
        else:
            rules, comment = list(_rules(permission, found, definitions, notes)), []
        documents.setdefault(user, []).append(
            "".join(f"# {on_one_line(line)}\n" for line in comment)
            + _document(name_of(f"{user}@{vhost}"), user, [vhost], rules, mode)
        )
    for user in definitions.users:
        closed = [vhost for vhost in vhosts if (user, vhost) not in held]
        if closed and user in users:
            text = _document(name_of(f"{user}@nowhere"), user, closed, [_deny("no-permission", ["*"])], mode)
            documents.setdefault(user, []).append(text)
    if not documents:
        wrong = gaps or ["there is no user and no permission in it"]
        raise ConfigError.together([ConfigError(why, file=file) for why in wrong])
    files = tuple(_files(documents))
    build(files)
    return Imported(files, tuple(dict.fromkeys(notes)), tuple(gaps))


def _unsaid(
    permission: Permission, topics: Sequence[TopicPermission], definitions: Definitions
) -> Iterator[str]:
    """What of a permission policies cannot say, each with its expression."""
    said = [(kind, getattr(permission, kind)) for kind in ("configure", "write", "read")]
    keys = {"username": permission.user, "vhost": permission.vhost}
    for topic in topics:
        if definitions.is_topic(topic.vhost, topic.exchange) is not False:
            where = f"on exchange '{topic.exchange}'"
            said += [(f"{kind} {where}", _expanded(getattr(topic, kind), keys)) for kind in ("write", "read")]
    for what, regex in said:
        try:
            _Names(regex)
        except Invalid as error:
            yield f"{what} '{regex}': {error}"


def _files(documents: Mapping[str, Sequence[str]]) -> Iterator[Source]:
    """A file for each user, named after it; of very many users, files of many."""
    if len(documents) > _OWN_FILES:
        documents = {"rabbitmq": [text for texts in documents.values() for text in texts]}
    taken: set[str] = set()
    for user, texts in documents.items():
        # A file whose name starts with a dot or an underscore is not read.
        base = re.sub(r"[^A-Za-z0-9.@+-]", "-", user).lstrip(".-")[:100] or "user"
        for start in range(0, len(texts), _PER_FILE):
            name, number = base, 1
            while name.lower() in taken:
                number += 1
                name = f"{base}-{number:03}"
            taken.add(name.lower())
            yield Source(f"{name}.yaml", "---\n".join(texts[start : start + _PER_FILE]).encode())


def _rules(
    permission: Permission, topics: list[TopicPermission], definitions: Definitions, notes: list[str]
) -> Iterator[_Rule]:
    configure, write, read = (
        _Names(regex) for regex in (permission.configure, permission.write, permission.read)
    )
    if configure.server_named is None:
        notes.append(
            f"permission of user '{permission.user}' in vhost '{permission.vhost}': whether RabbitMQ lets it "
            "declare a server-named queue depends on the random name; the policy denies it"
        )
    yield _allow("passive", ["queue.declare", "exchange.declare"], passive=True)
    yield from _numbered("declare-queues", ["queue.declare"], "queue", configure.declared_queues())
    yield _allow("delete-queues", ["queue.delete"], queue=configure.pattern)
    yield _allow("configure-exchanges", ["exchange.declare", "exchange.delete"], exchange=configure.pattern)
    yield _allow("read-queues", ["basic.get", "basic.consume", "queue.purge"], queue=read.pattern)
    yield _allow("direct-replies", ["basic.consume"], queue="amq.rabbitmq.reply-to")
    yield _allow("publish", ["basic.publish"], exchange=write.named_exchanges)
    if write.default_exchange:
        yield _allow("publish-to-queues", ["basic.publish"], exchange="", routingKey=_ANY)
    yield _allow("bind-queues", ["queue.bind", "queue.unbind"], queue=write.pattern, exchange=read.pattern)
    for number, destination in enumerate(write.exchanges(), 1):
        yield _allow(
            f"bind-exchanges-{number}",
            ["exchange.bind", "exchange.unbind"],
            destination=destination,
            exchange=read.pattern,
        )
    yield from _left_to_the_broker(write)
    if not read.is_anything:
        yield {
            **_deny("dead-letters-need-read", ["queue.declare"]),
            "queue": {**_mapping(_ANY), "unless": read.pattern},
            "arguments": {"require": ["x-dead-letter-exchange"]},
        }
        yield {
            **_deny("alternates-need-read", ["exchange.declare"]),
            "exchange": {**_mapping(_ANY), "unless": read.pattern},
            "arguments": {"require": ["alternate-exchange"]},
        }
    for number, topic in enumerate(topics, 1):
        yield from _topic_rules(number, topic, write, read, definitions, notes)


def _left_to_the_broker(write: _Names) -> Iterator[_Rule]:
    """What RabbitMQ refuses itself, before it looks at permissions."""
    yield _allow("reserved-names", ["queue.declare"], queue={"prefix": "amq.", "unless": SERVER_NAMED})
    yield _allow("system-exchanges", ["exchange.delete"], exchange={"prefix": "amq."})
    yield _allow("default-exchange", ["exchange.declare", "exchange.delete"], exchange="")
    yield _allow("no-last-queue", ["basic.get", "basic.consume", "queue.purge", "queue.delete"], queue="")
    yield _allow("bind-no-last-queue", ["queue.bind", "queue.unbind"], queue="")
    yield _allow("bind-default-exchange", ["queue.bind", "queue.unbind"], queue=write.pattern, exchange="")
    for number, destination in enumerate(write.exchanges(), 1):
        yield _allow(
            f"bind-from-default-exchange-{number}",
            ["exchange.bind", "exchange.unbind"],
            destination=destination,
            exchange="",
        )
    if write.default_exchange:
        yield _allow("bind-to-default-exchange", ["exchange.bind", "exchange.unbind"], destination="")


def _topic_rules(
    number: int,
    topic: TopicPermission,
    write: _Names,
    read: _Names,
    definitions: Definitions,
    notes: list[str],
) -> Iterator[_Rule]:
    """Denials, each for what the permission has let through, since RabbitMQ looks at topics last."""
    exchange = topic.exchange
    where = f"topic permission of user '{topic.user}' on exchange '{exchange}' in vhost '{topic.vhost}'"
    is_topic = definitions.is_topic(topic.vhost, exchange)
    if is_topic is False:
        notes.append(f"{where}: left out, RabbitMQ takes no notice of it: it is no topic exchange")
        return
    if is_topic is None:
        notes.append(f"{where}: it is not in the file, and is taken to be a topic exchange")
    keys = {"username": topic.user, "vhost": topic.vhost}
    sending, catching = (_Names(_expanded(regex, keys)) for regex in (topic.write, topic.read))
    if write.matches(exchange):
        yield {
            **_deny(f"topic-{number}-write", ["basic.publish"]),
            "exchange": exchange,
            "routingKey": {**_mapping(_ANY), "unless": sending.keys},
        }
    if read.matches(exchange):
        # Without a last queue, and of the default exchange, RabbitMQ does not come to look at the topic.
        permitted = {**_mapping(write.pattern), "unless": ""}
        yield {
            **_deny(f"topic-{number}-read", ["queue.bind", "queue.unbind"]),
            "queue": permitted,
            "exchange": exchange,
            "routingKey": {**_mapping(_ANY), "unless": catching.keys},
        }
        yield {
            **_deny(f"topic-{number}-read-exchanges", ["exchange.bind", "exchange.unbind"]),
            "destination": permitted,
            "exchange": exchange,
            "routingKey": {**_mapping(_ANY), "unless": catching.keys},
        }


def _expanded(regex: str, keys: dict[str, str]) -> str:
    """RabbitMQ puts the values in as they are, special characters and all."""
    for name, value in keys.items():
        regex = regex.replace(f"{{{name}}}", value)
    return regex


def _allow(name: str, operations: list[str], **matches: Value) -> _Rule:
    return {"id": name, "effect": "allow", "operations": operations, **matches}


def _deny(name: str, operations: list[str]) -> _Rule:
    return {"id": name, "effect": "deny", "operations": operations}


def _numbered(name: str, operations: list[str], key: str, values: Iterator[Value]) -> Iterator[_Rule]:
    for number, value in enumerate(values, 1):
        yield _allow(name if number == 1 else f"{name}-{number}", operations, **{key: value})


def _mapping(value: Value) -> Mapping[str, Value]:
    assert isinstance(value, Mapping)
    return value


def _document(name: str, user: str, vhosts: list[str], rules: list[_Rule], mode: Mode) -> str:
    needed = needed_rules([structure(from_python(rule, name), Rule) for rule in rules])
    lines = access_policy(name, user, vhosts, mode) + [f"  - {flow(rules[index])}" for index in needed]
    return "\n".join(lines) + "\n"

"""Requests of audit records, judged by the policies that the gateway would enforce.

The evaluator is the gateway's own (`amqpgate.policy`). What a record does not say makes the answer
*depends*: a publish whose message is looked at (properties, headers, body size; `Admission.peek`), and a
template of routing keys of which some may be allowed and some denied, and a publish with further routing keys
(CC, BCC) that are not recorded. Older records have none of these: a publish is judged as if it had none,
unless these very policies have refused it, which then was for its message. Likewise a request whose arguments
the records have in part.

Judged are access policies. Limits, transforms and routes decide nothing here.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Final, Literal, TypeAlias

import attrs

from amqpgate.pipeline.jobs.requests import more_keys_of, told_in
from amqpgate.policy import (
    OPERATIONS,
    Operation,
    PolicySet,
    Principal,
    SessionPolicy,
    Source,
    TlsIdentity,
    TokenIdentity,
    build,
)
from amqpgate.policy.engine.conditions import ALWAYS_PEEKED
from amqpgate.policy.engine.rules import CompiledRule, compile_rule
from amqpgate.policy.kinds.common import DefaultAccess

#: What a candidate answers.
Outcome: TypeAlias = Literal["allow", "deny", "depends"]

#: The columns of a usage record that say who asks.
PRINCIPAL: Final = ("user", "vhost", "source", "listener", "tls", "client", "token")

#: The columns that say for what.
ASKED: Final = (
    "operation",
    "exchange",
    "routing_key",
    "routing_key_is_template",
    "queue",
    "destination",
    "arguments",
    "passive",
    "foreign",
    "any_key",
    "more_keys",
)

#: Sessions of which is remembered what they may do; beyond that all are made anew.
_SESSIONS: Final = 4096


@attrs.frozen
class Judgement:
    """What a candidate says of a request."""

    outcome: Outcome
    #: Who decides, or would if the message does not say otherwise; None where no policy does.
    policy: str | None
    rule: str


#: Of a record with JSON that is none, which no gateway writes.
_UNREADABLE: Final = Judgement("depends", None, "unreadable")


class _UnreadableError(Exception):
    """JSON in a record is none."""


def principal_of(row: Mapping[str, object]) -> Principal:
    """Who asks. Raises ``_UnreadableError``."""
    tls, client, token = row.get("tls"), row.get("client"), _text(row.get("token"))
    said = {} if token is None else _table(token)
    return Principal(
        _text(row.get("user")),
        _text(row.get("vhost")) or "",
        _text(row.get("source")),
        _text(row.get("listener")),
        _tls_of(_table(tls)) if isinstance(tls, str) else None,
        {name: str(value) for name, value in _table(client).items()} if isinstance(client, str) else {},
        groups=frozenset(_texts(said.get("groups"))),
        token=None if token is None else _token_of(said),
    )


def operation_of(row: Mapping[str, object], principal: Principal) -> Operation:
    """What is asked for, as the gateway has judged it.

    A template stands for every key that it catches. Raises ``_UnreadableError``.
    """
    arguments = row["arguments"]
    return Operation(
        principal,
        str(row["operation"]),
        exchange=_text(row["exchange"]),
        routing_key=_text(row["routing_key"]),
        queue=_text(row["queue"]),
        destination=_text(row["destination"]),
        # RabbitMQ takes no notice of the arguments of a passive declare.
        arguments=_table(arguments) if isinstance(arguments, str) and not row["passive"] else {},
        passive=bool(row["passive"]),
        foreign=bool(row["foreign"]),
        any_key=bool(row["any_key"]) or bool(row["routing_key_is_template"]),
    )


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _table(text: str) -> dict[str, object]:
    table = told_in(text)
    if table is None:
        raise _UnreadableError
    return table


def _tls_of(table: Mapping[str, object]) -> TlsIdentity:
    names = table.get("names")
    return TlsIdentity(
        str(table.get("subject") or ""),
        str(table.get("common_name") or ""),
        tuple(map(str, names)) if isinstance(names, list) else (),
    )


def _texts(value: object) -> tuple[str, ...]:
    return tuple(map(str, value)) if isinstance(value, list) else ()


def _token_of(table: Mapping[str, object]) -> TokenIdentity:
    claims = table.get("claims")
    named = claims if isinstance(claims, dict) else {}
    return TokenIdentity(
        frozenset(_texts(table.get("scopes"))),
        tuple((str(name), _texts(values)) for name, values in sorted(named.items())),
    )


class Judge:
    """One set of policies, asked about rows of usage records."""

    def __init__(self, policies: PolicySet) -> None:
        self._policies = policies
        self._limits = {
            (policy.metadata.name, limit.id) for policy in policies.rates for limit in policy.spec.limits
        }
        self._sessions: dict[tuple[object, ...], tuple[Principal, _Session]] = {}

    def answer(self, row: Mapping[str, object]) -> Judgement:
        """The answer to what the row asks for; that it depends where JSON in it is none."""
        try:
            return self._answer(row)
        except _UnreadableError:
            return _UNREADABLE

    def _answer(self, row: Mapping[str, object]) -> Judgement:
        key = (row.get("session"), *(row.get(name) for name in PRINCIPAL))
        known = self._sessions.get(key)
        if known is None:
            principal = principal_of(row)
            if len(self._sessions) >= _SESSIONS:
                self._sessions.clear()
            held = self._policies.for_principal(principal, _text(row.get("session")) or "")
            known = self._sessions[key] = (principal, _Session(held, self._policies))
        principal, session = known
        answer = session.answer(
            operation_of(row, principal),
            more_keys_of(row["more_keys"]),
            is_template=bool(row["routing_key_is_template"]),
        )
        if answer.outcome == "allow" and row["verdict"] == "deny" and self._was_for_more(row):
            return attrs.evolve(answer, outcome="depends")
        return answer

    def _was_for_more(self, row: Mapping[str, object]) -> bool:
        """Whether a refusal had a reason that the record does not tell: the message, or a limit."""
        if (row["policy"], row["rule"]) in self._limits:
            return True
        # Of arguments, the records have the first of a name, and as text what JSON does not have.
        is_partial = row["operation"] == "basic.publish" or bool(row["arguments"])
        return is_partial and row["policy_digest"] == self._policies.digest


class _Session:
    """What holds for one session."""

    def __init__(self, held: SessionPolicy, policies: PolicySet) -> None:
        self._held = held
        self._policies = policies

    def answer(
        self, operation: Operation, more_keys: Sequence[str | None] = (), *, is_template: bool
    ) -> Judgement:
        """The answer to all of its keys: the first that is denied decides, then one of which is not known."""
        has_more = bool(more_keys)
        found = self._answer(operation, is_template=is_template, has_more=has_more)
        for key in more_keys:
            if found.outcome == "deny":
                break
            if key is None:
                other = attrs.evolve(found, outcome="depends")
            else:
                asked = attrs.evolve(operation, routing_key=key)
                other = self._answer(asked, is_template=is_template, has_more=has_more)
            if other.outcome == "deny" or found.outcome == "allow":
                found = other if other.outcome != "allow" else found
        return found

    def _answer(self, operation: Operation, *, is_template: bool, has_more: bool) -> Judgement:
        outcome: Outcome
        if operation.name == "basic.publish":
            admission = self._held.admit(operation)
            verdict = admission.verdict
            asks_more = admission.peek is not None and admission.peek | ALWAYS_PEEKED != ALWAYS_PEEKED
            # Of a message with further keys it is known that it has these headers, and not what is in them.
            asks_more |= has_more and admission.rules is not None
            outcome = "depends" if verdict.allowed and asks_more else verdict.effect
        else:
            verdict = self._held.decide(operation)
            outcome = verdict.effect
        if is_template and outcome == "deny" and self._may_allow(operation):
            outcome = "depends"
        return Judgement(outcome, verdict.policy, verdict.rule)

    def _may_allow(self, operation: Operation) -> bool:
        """Whether some of the keys that the template catches may be allowed."""
        rules = list(self._rules(operation))
        if any(
            rule.verdict.effect == "deny" and rule.content is None and _means_all(rule, operation)
            for rule in rules
        ):
            return False
        return any(rule.verdict.effect == "allow" and _means_some(rule, operation) for rule in rules)

    def _rules(self, operation: Operation) -> Iterator[CompiledRule]:
        values = operation.principal.values
        for policy in self._policies.access:
            if policy.metadata.name not in self._held.policies:
                continue
            for rule in policy.spec.rules:
                listed = any(operation.name in pattern.names for pattern in rule.operations)
                if listed and rule.applies_to(operation.name):
                    yield from compile_rule(
                        policy.metadata.name,
                        rule,
                        OPERATIONS[operation.name],
                        values,
                        on_denied="channel-close",
                        disclosed=False,
                    )


def _means_all(rule: CompiledRule, operation: Operation) -> bool:
    checks = tuple(attrs.evolve(check, allows=True) for check in rule.checks)
    return attrs.evolve(rule, checks=checks).names_match(operation)


def _means_some(rule: CompiledRule, operation: Operation) -> bool:
    checks = tuple(attrs.evolve(check, allows=False) for check in rule.checks)
    return attrs.evolve(rule, checks=checks).names_match(operation)


@lru_cache(maxsize=4)
def judge_of(sources: tuple[Source, ...], default_access: DefaultAccess = "allow") -> Judge:
    """The judge of these files, made once per process. Without files everything is allowed, or nothing."""
    return Judge(build(sources, default_access) if sources else PolicySet.empty(default_access))


def columns_asked(policies: PolicySet) -> tuple[str, ...]:
    """Of who asks, the columns that some answer may depend on: user and vhost always; ``session`` where a
    policy is enforced for a share of the sessions."""
    subjects = [subject for policy in policies.access for subject in policy.spec.subjects]
    variables = {name for policy in policies.access for rule in policy.spec.rules for name in rule.variables}
    shared = any(0 < policy.spec.enforce_percent < 100 for policy in policies.access)
    needed = {
        "source": "sourceIP" in variables or any(one.source_cidr is not None for one in subjects),
        "listener": "listener" in variables or any(one.listeners is not None for one in subjects),
        "tls": any(one.tls is not None for one in subjects),
        "client": any(one.client for one in subjects),
        "token": any(one.asks_login for one in subjects),
        "session": shared,
    }
    return ("user", "vhost", *(name for name, is_needed in needed.items() if is_needed))

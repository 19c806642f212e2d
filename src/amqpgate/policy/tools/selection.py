"""Whom policies of every kind select: subjects that nobody is, policies that are not in force."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from amqpgate.policy.engine.subjects import Cidr, NamePattern, Subject
from amqpgate.policy.kinds.access import AccessPolicy
from amqpgate.policy.kinds.audit import AuditPolicy
from amqpgate.policy.kinds.rate import RatePolicy
from amqpgate.policy.kinds.route import RoutePolicy
from amqpgate.policy.kinds.trace import TracePolicy
from amqpgate.policy.kinds.transform import TransformPolicy
from amqpgate.policy.tools.findings import Finding
from amqpgate.policy.tools.inclusion import subject_within
from amqpgate.yamldoc import Mark, Node, locate

_KINDS_OF_SAN = ("DNS:", "URI:", "IP:", "email:")


def about_selection(documents: Iterable[tuple[Node, object]]) -> Iterator[Finding]:
    """Findings about modes and subjects, document by document."""
    for node, document in documents:
        if isinstance(document, AccessPolicy | RatePolicy | RoutePolicy | TransformPolicy):
            yield from _about_mode(node, document)
        if isinstance(document, AccessPolicy | RatePolicy | TransformPolicy | AuditPolicy | TracePolicy):
            marks = [
                locate(node, type(document), ("spec", "subjects", index))
                for index in range(len(document.spec.subjects))
            ]
            yield from _about_subjects(document.spec.subjects, marks)
        elif isinstance(document, RoutePolicy):
            for index, route in enumerate(document.spec.routes):
                mark = locate(node, RoutePolicy, ("spec", "routes", index, "match"))
                yield from _about_subject(route.match, mark)


def _about_mode(
    node: Node, policy: AccessPolicy | RatePolicy | RoutePolicy | TransformPolicy
) -> Iterator[Finding]:
    name, spec = policy.metadata.name, policy.spec
    if spec.mode == "off":
        mark = locate(node, type(policy), ("spec", "mode"))
        # A transform policy cannot be tried for show.
        remedy = "remove it" if isinstance(policy, TransformPolicy) else "remove it, or try it in mode shadow"
        yield Finding("note", mark, f"policy '{name}' is off", remedy)
    elif not isinstance(policy, TransformPolicy) and spec.mode == "shadow" and spec.enforce_percent >= 100:
        mark = locate(node, type(policy), ("spec", "enforce_percent"))
        yield Finding("note", mark, f"policy '{name}' is enforced for all", "say mode: enforce")


def _about_subjects(subjects: tuple[Subject, ...], marks: list[Mark]) -> Iterator[Finding]:
    for index, subject in enumerate(subjects):
        yield from _about_subject(subject, marks[index])
        for other, wider in enumerate(subjects):
            if index != other and subject_within(subject, wider) and (subject != wider or other < index):
                yield Finding(
                    "note",
                    marks[index],
                    f"subject {other + 1} of the policy takes in this one",
                    "remove one of them",
                )
                break


def _about_subject(subject: Subject, mark: Mark) -> Iterator[Finding]:
    for text, remedy in _nobody(subject):
        yield Finding("problem", mark, f"nobody can be this subject: {text}", remedy)


def _nobody(subject: Subject) -> Iterator[tuple[str, str]]:
    """Why no client can be the subject."""
    if subject.user.text == "" and not subject.user.is_prefix:
        yield "no user has an empty name", "say '*' for any user"
    if subject.source_cidr is not None and all(map(_is_mapped, subject.source_cidr)):
        yield (
            "an IPv4 client is known by its IPv4 address, not by one within ::ffff:0:0/96",
            "write the range as IPv4",
        )
    tls = subject.tls
    if tls is None:
        return
    if tls.san is not None and not _has_kind(tls.san):
        yield "an alternative name starts with its kind", "write DNS:, URI:, IP: or email: before it"
    if tls.san is not None and tls.spiffe is not None and not tls.san.is_prefix:
        said = tls.san.text.removeprefix("URI:")
        if said.startswith("spiffe://") and not tls.spiffe.matches(said):
            yield "a certificate has one SPIFFE id, and san and spiffe say two", "give spiffe alone"
    if tls.subject is not None and tls.common_name is not None and not tls.subject.is_prefix:
        names = [part[3:] for part in tls.subject.text.split(",") if part.startswith("CN=")]
        if not any(map(tls.common_name.matches, names)):
            yield "subject and commonName do not fit each other", "give one of them"


def _has_kind(name: NamePattern) -> bool:
    return name.text.startswith(_KINDS_OF_SAN) or (
        name.is_prefix and any(kind.startswith(name.text) for kind in _KINDS_OF_SAN)
    )


def _is_mapped(block: Cidr) -> bool:
    mapped = Cidr.parse("::ffff:0:0/96").network
    network = block.network
    return network.version == 6 and network.network_address in mapped and network.prefixlen >= 96

"""Whom policies of every kind select: subjects that nobody is, policies that are not in force."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from amqpgate.policy.engine.inclusion import subject_within
from amqpgate.policy.engine.subjects import Cidr, NamePattern, Subject
from amqpgate.policy.kinds.finding import Finding
from amqpgate.policy.kinds.kind import AnyPolicyKind, Document, Placed, mode_of
from amqpgate.policy.kinds.user_groups import Membership
from amqpgate.yamldoc import Mark, nearest

_KINDS_OF_SAN = ("DNS:", "URI:", "IP:", "email:")


def about_selection(kind: AnyPolicyKind, documents: Iterable[Placed[Document]]) -> Iterator[Finding]:
    """Findings about modes and subjects of the documents of one kind."""
    for placed in documents:
        yield from _about_mode(placed)
        subjects = [(placed.mark(*path), one) for path, one in kind.subjects(placed.document)]
        for mark, subject in subjects:
            yield from _about_subject(subject, mark)
        if not kind.takes_one:
            yield from _about_doubles(subjects)


def users_in(documents: Iterable[Placed[Document]]) -> dict[str, Mark]:
    """The users that ``spec.subjects`` of documents name, and where."""
    return {
        subject.user.text: placed.mark("spec", "subjects", index)
        for placed in documents
        for index, subject in enumerate(getattr(getattr(placed.document, "spec", None), "subjects", ()))
        if isinstance(subject, Subject) and not subject.user.is_prefix
    }


def about_groups(documents: Sequence[Placed[Document]], kinds: Sequence[AnyPolicyKind]) -> Iterator[Finding]:
    """Groups that subjects name and no document of the folder has, where there are such documents."""
    known = Membership.of(placed.document for placed in documents).names
    if not known:
        return
    for kind in kinds:
        for placed in documents:
            if placed.document.kind != kind.name:
                continue
            for path, subject in kind.subjects(placed.document):
                for index, group in enumerate(subject.groups or ()):
                    if not any(map(group.matches, known)):
                        yield Finding(
                            "note",
                            placed.mark(*path, "groups", index),
                            f"no UserGroups document has a group {group}{nearest(group.text, known)}: only a "
                            "verified token can put somebody in it",
                            "add the group, or leave this one out",
                        )


def _about_mode(placed: Placed[Document]) -> Iterator[Finding]:
    mode, percent = mode_of(placed.document)
    if mode == "off":
        # A transform policy cannot be tried for show.
        can_be_shadow = hasattr(getattr(placed.document, "spec", None), "enforce_percent")
        remedy = "remove it, or try it in mode shadow" if can_be_shadow else "remove it"
        yield Finding("note", placed.mark("spec", "mode"), f"policy '{placed.name}' is off", remedy)
    elif mode == "shadow" and percent >= 100:
        mark = placed.mark("spec", "enforce_percent")
        yield Finding("note", mark, f"policy '{placed.name}' is enforced for all", "say mode: enforce")


def _about_doubles(subjects: list[tuple[Mark, Subject]]) -> Iterator[Finding]:
    for index, (mark, subject) in enumerate(subjects):
        for other, (_, wider) in enumerate(subjects):
            if index != other and subject_within(subject, wider) and (subject != wider or other < index):
                yield Finding(
                    "note", mark, f"subject {other + 1} of the policy takes in this one", "remove one of them"
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
    for what, named in (("group", subject.groups), ("scope", subject.scopes)):
        if any(name.text == "" and not name.is_prefix for name in named or ()):
            yield f"no {what} has an empty name", f"name a {what}, or say '*' for any"
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

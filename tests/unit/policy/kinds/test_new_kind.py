"""A kind of policy is one module: what follows from a new one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

import attrs
import jsonschema
import pytest
import yaml

from amqpgate.errors import ConfigError
from amqpgate.policy import PolicySet, Principal, Source, build
from amqpgate.policy.engine.subjects import Subject
from amqpgate.policy.kinds.common import Metadata, Mode
from amqpgate.policy.kinds.finding import Finding
from amqpgate.policy.kinds.kind import (
    FolderCheck,
    Placed,
    PolicyKind,
    Row,
    SessionSelection,
    by_subjects,
)
from amqpgate.policy.kinds.registry import DOCUMENT_KINDS
from amqpgate.policy.kinds.schema import describe, schema
from amqpgate.policy.loader import documents_of
from amqpgate.policy.tools.checks import findings
from amqpgate.yamldoc import doc, not_empty
from tests.unit.policy.build_set import BOB

# -- what a module of a new kind says ------------------------------------------------------------------------


@attrs.frozen(kw_only=True)
class LabelSpec:
    """Which sessions are labelled, and how."""

    subjects: tuple[Subject, ...] = attrs.field(
        validator=not_empty(), metadata=doc("whom the policy selects; one that fits is enough")
    )
    label: str = attrs.field(metadata=doc("the label; `{user}` stands for the user"))
    mode: Mode = attrs.field(default="enforce", metadata=doc("`off`: as if the policy were not there"))


@attrs.frozen(kw_only=True)
class LabelPolicy:
    """Labels of sessions."""

    api_version: Literal["amqpgate.io/v1alpha1"] = attrs.field(metadata=doc("version of the format"))
    kind: Literal["LabelPolicy"] = attrs.field(metadata=doc("kind of document"))
    metadata: Metadata = attrs.field(metadata=doc("what the document is called"))
    spec: LabelSpec = attrs.field(metadata=doc("what the document says"))


def labels(session: SessionSelection[LabelPolicy]) -> tuple[str, ...]:
    return tuple(
        one.policy.spec.label.replace("{user}", session.values["user"] or "?") for one in session.policies
    )


def variables(policy: LabelPolicy) -> frozenset[str]:
    return frozenset({"user"} if "{user}" in policy.spec.label else ())


def row(policy: LabelPolicy) -> Row:
    return {"label": policy.spec.label}


def about_labels(folder: FolderCheck[LabelPolicy]) -> Iterator[Finding]:
    for placed in folder.documents:
        if not placed.document.spec.label:
            yield Finding(
                "note", placed.mark("spec", "label"), f"'{placed.name}' says nothing", "say a label"
            )


def check(documents: Sequence[Placed[LabelPolicy]]) -> None:
    for placed in documents:
        if placed.document.spec.label == "forbidden":
            raise placed.node.mark.error("no such label")


LABEL = PolicyKind(
    document=LabelPolicy,
    subjects=by_subjects,
    compile=labels,
    variables=variables,
    row=row,
    findings=about_labels,
    check=check,
)

# -- what follows from it ------------------------------------------------------------------------------------

KINDS = (*DOCUMENT_KINDS, LABEL)
HEAD = "apiVersion: amqpgate.io/v1alpha1\nkind: LabelPolicy\n"


def label(name: str, text: str, more: str = "", subjects: str = "{user: bob}") -> str:
    spec = f"{{subjects: [{subjects}], label: '{text}'{more}}}"
    return f"{HEAD}metadata: {{name: {name}}}\nspec: {spec}\n"


def sources(*documents: str) -> list[Source]:
    return [Source("labels.yaml", "---\n".join(documents).encode())]


def labelled(*documents: str) -> PolicySet:
    return build(sources(*documents), kinds=KINDS)


def test_its_documents_are_loaded() -> None:
    (policy,) = labelled(label("one", "blue")).documents_of(LABEL)
    assert (policy.metadata.name, policy.spec.label) == ("one", "blue")


def test_its_documents_are_unknown_until_it_is_registered() -> None:
    with pytest.raises(ConfigError, match="unknown kind 'LabelPolicy'"):
        build(sources(label("one", "blue")))


def test_it_says_what_excludes_each_other() -> None:
    with pytest.raises(ConfigError, match=r"labels\.yaml:1.* no such label"):
        labelled(label("one", "forbidden"))


def test_it_has_a_schema_and_a_table() -> None:
    validator = jsonschema.Draft202012Validator(schema(LABEL))
    assert validator.is_valid(yaml.safe_load(label("one", "blue")))
    assert not validator.is_valid(yaml.safe_load(label("one", "blue", ", colour: red")))
    assert schema(LABEL)["$id"] == "https://amqpgate.io/schema/label-policy.json"
    assert "| `spec.label` | text |" in describe(LABEL)


def test_it_means_something_for_those_whom_it_selects() -> None:
    policies = labelled(
        label("one", "blue"),
        label("two", "for {user}", subjects="{}"),
        label("three", "gone", ", mode: off"),
    )
    assert policies.compiled(LABEL, BOB) == ("blue", "for bob")
    assert policies.compiled(LABEL, Principal("al", "prod")) == ("for al",)
    assert [one.metadata.name for one in policies.selecting(BOB)] == ["one", "three", "two"]


def test_it_is_compiled_before_a_session_needs_it() -> None:
    policies = labelled(label("one", "blue"), label("two", "for {user}", subjects="{}"))
    assert not policies.is_prepared(BOB, "a")
    policies.prepare(BOB, "a")
    assert policies.is_prepared(BOB, "b")
    assert policies.compiled(LABEL, BOB) is policies.compiled(LABEL, BOB, "b")
    assert not policies.is_prepared(Principal("al", "prod"), "a")


def test_operators_see_it() -> None:
    assert list(labelled(label("one", "blue")).rows()) == [
        {"kind": "LabelPolicy", "name": "one", "mode": "enforce", "rules": [], "label": "blue"}
    ]


def test_policy_check_speaks_of_it() -> None:
    text = label("one", "", ", mode: off", "{user: bob}, {user: b*}, {user: ''}")
    found = findings(documents_of(sources(text), KINDS), kinds=(LABEL,))
    assert {one.text for one in found} == {
        "'one' says nothing",
        "nobody can be this subject: no user has an empty name",
        "policy 'one' is off",
        "subject 2 of the policy takes in this one",
    }
    assert {one.mark.line for one in found} == {4}

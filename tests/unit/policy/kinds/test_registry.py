"""Every kind of policy is registered, documented, and complete."""

from __future__ import annotations

import importlib
import json
import pkgutil
from pathlib import Path
from typing import get_args, get_type_hints

import attrs

from amqpgate.policy import Principal, Source, build, kinds
from amqpgate.policy.engine.subjects import Subject
from amqpgate.policy.kinds.finding import Finding
from amqpgate.policy.kinds.kind import (
    AnyPolicyKind,
    DocumentKind,
    FolderCheck,
)
from amqpgate.policy.kinds.registry import DOCUMENT_KINDS
from amqpgate.policy.loader import documents_of
from tests.unit.policy.build_set import BOB
from tests.unit.policy.kinds.test_kind import each_kind

ROOT = Path(__file__).parents[4]


def test_every_kind_in_the_folder_is_registered() -> None:
    modules = [
        importlib.import_module(f"{kinds.__name__}.{info.name}")
        for info in pkgutil.iter_modules(kinds.__path__)
    ]
    made = {id(one) for module in modules for one in vars(module).values() if isinstance(one, DocumentKind)}
    assert made == {id(kind) for kind in DOCUMENT_KINDS}
    types: set[object] = {
        one
        for module in modules
        for one in vars(module).values()
        if isinstance(one, type) and attrs.has(one) and {"kind", "spec"} <= attrs.fields_dict(one).keys()
    }
    assert types == {kind.document for kind in DOCUMENT_KINDS}


def test_names_of_kinds_are_what_documents_say() -> None:
    for kind in DOCUMENT_KINDS:
        assert get_args(get_type_hints(kind.document)["kind"]) == (kind.name,)
    assert len({kind.name for kind in DOCUMENT_KINDS}) == len(DOCUMENT_KINDS)


@each_kind
def test_each_kind_has_an_example_that_all_parts_take(kind: AnyPolicyKind) -> None:
    """The examples are in ``policies/``; the reader of one learns the kind from it."""
    files = [Source(path.name, path.read_bytes()) for path in sorted((ROOT / "policies").glob("*.yaml"))]
    placed = [one for one in documents_of(files) if one.document.kind == kind.name]
    assert placed, f"policies/ has no {kind.name}"
    policies = build(files)
    assert policies.documents_of(kind) == tuple(
        sorted((one.document for one in placed), key=lambda document: document.metadata.name)
    )
    for one in placed:
        subjects = list(kind.subjects(one.document))
        assert subjects
        for path, subject in subjects:
            assert isinstance(subject, Subject)
            assert one.mark(*path).line >= one.mark().line
        shown = next(row for row in policies.rows() if (row["kind"], row["name"]) == (kind.name, one.name))
        assert json.loads(json.dumps(shown)) == shown
        assert kind.variables is None or kind.variables(one.document) <= BOB.values.keys()
    assert all(isinstance(one, Finding) for one in kind.findings(FolderCheck(placed, {})))
    policies.compiled(kind, Principal("nobody-at-all", "/"), "session")


@each_kind
def test_each_kind_is_documented(kind: AnyPolicyKind) -> None:
    assert any(kind.name in path.read_text() for path in (ROOT / "docs").glob("*.md"))

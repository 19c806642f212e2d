"""The JSON Schemas and tables that are made from the kinds of policy."""

from __future__ import annotations

import json
import re
from pathlib import Path

import jsonschema
import pytest
import yaml

from amqpgate.policy import OPERATIONS
from amqpgate.policy.kinds.access import ACCESS
from amqpgate.policy.kinds.kind import AnyDocumentKind
from amqpgate.policy.kinds.registry import DOCUMENT_KINDS
from amqpgate.policy.kinds.schema import describe, schema
from tests.unit.policy.build_set import document
from tests.unit.policy.test_examples import ROOT

KINDS = {kind.name: kind for kind in DOCUMENT_KINDS}


EXAMPLES = sorted((ROOT / "policies").glob("*.yaml"))


@pytest.mark.parametrize("kind", DOCUMENT_KINDS, ids=lambda kind: kind.name)
def test_the_committed_schema_is_current(kind: AnyDocumentKind) -> None:
    committed = json.loads((ROOT / "spec/schema" / kind.schema_file).read_text())
    assert committed == schema(kind), (
        f"python -m amqpgate.policy {kind.name} > spec/schema/{kind.schema_file}"
    )
    jsonschema.Draft202012Validator.check_schema(committed)


@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.name)
def test_examples_fit_the_schema(path: Path) -> None:
    documents = list(yaml.safe_load_all(path.read_text()))
    assert documents
    for each in documents:
        jsonschema.validate(each, schema(KINDS[each["kind"]]), cls=jsonschema.Draft202012Validator)


@pytest.mark.parametrize(
    "wrong",
    [
        document("effect: permit, operations: ['*']"),
        document("effect: allow, operations: []"),
        document("effect: allow, operations: ['*'], exchange: {}"),
        document("effect: allow, operations: ['*'], exchange: {literal: a, prefix: b}"),
        document("effect: allow, operations: ['*'], exchnge: {literal: a}"),
        document(subjects="{user: 'a*b'}"),
        document(subjects=""),
        document().replace("v1alpha1", "v2"),
    ],
)
def test_the_schema_refuses_what_the_loader_refuses(wrong: str) -> None:
    validator = jsonschema.Draft202012Validator(schema(ACCESS))
    assert validator.is_valid(yaml.safe_load(document("effect: allow, operations: ['*']")))
    assert not validator.is_valid(yaml.safe_load(wrong))


def test_the_readmes_table_is_the_code() -> None:
    keys = {"routing_key": "routingKey"}
    told: dict[str, set[str]] = {}
    for line in (ROOT / "policies/README.md").read_text().splitlines():
        cells = [re.findall(r"`([a-zA-Z.-]+)`", cell) for cell in line.strip("|").split("|")]
        if len(cells) == 2 and cells[0]:
            told |= {operation: set(cells[1]) for operation in cells[0]}
    assert told == {name: {keys.get(a, a) for a in kind.attributes} for name, kind in OPERATIONS.items()}


def test_every_key_is_described() -> None:
    assert "| `spec.rules[].routingKey.topic` | text | - | topic pattern:" in describe(ACCESS)

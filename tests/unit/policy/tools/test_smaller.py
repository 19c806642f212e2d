"""Policies without what nobody needed."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from amqpgate.policy import Source, build
from amqpgate.policy.tools.smaller import diff_of, smaller

HEAD = """\
# Who may do what.
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: p}
spec:
  subjects: [{user: alice}]
  rules:
"""
FIRST = """\
  # Orders.
  - id: orders
    effect: allow
    operations: [basic.publish, "queue.*"]  # all of them
    exchange: {literal: orders}

"""
SECOND = """\
  # Payments,
  # once.
  - id: payments
    effect: allow
    operations:
    - basic.publish
    exchange: {literal: payments}
"""
LAST = "  - {id: never, effect: deny, operations: [basic.get]}\n"
PUBLISH = {"basic.publish": True}


def smaller_text(text: str, needed: dict[str, dict[str, bool]]) -> tuple[str, tuple[str, ...]]:
    found = smaller(Source("p.yaml", text.encode()), {("p", rule): names for rule, names in needed.items()})
    build([found.source])
    return found.source.data.decode(), found.notes


def test_what_was_needed_stays() -> None:
    text = HEAD + FIRST + SECOND + LAST
    assert smaller_text(text, {"orders": PUBLISH, "payments": PUBLISH}) == (text, ())
    source = Source("p.yaml", text.encode())
    assert diff_of(source, source) == ""


def test_a_rule_goes_with_its_comments() -> None:
    needed = {"orders": PUBLISH, "payments": {"basic.publish": False}}
    assert smaller_text(HEAD + FIRST + SECOND + LAST, needed) == (HEAD + FIRST + LAST, ())
    assert smaller_text(HEAD + FIRST + SECOND, needed) == (HEAD + FIRST, ())
    assert smaller_text((HEAD + FIRST + SECOND).rstrip(), needed) == (HEAD + FIRST, ())


def test_the_rules_of_all_that_goes() -> None:
    needed = {"orders": {"basic.publish": False}, "payments": {"basic.publish": False}}
    rest = "---\n" + HEAD.replace("name: p", "name: q") + LAST
    expected = HEAD.rstrip() + " []\n" + rest
    assert smaller_text(HEAD + FIRST + SECOND + rest, needed) == (expected, ())


def test_of_a_rule_what_was_needed_is_named() -> None:
    about = PUBLISH | {"queue.bind": True, "queue.unbind": False}
    found, _ = smaller_text(HEAD + FIRST, {"orders": about})
    assert found == HEAD + FIRST.replace('[basic.publish, "queue.*"]', "[basic.publish, queue.bind]")
    about["queue.unbind"], about["basic.publish"] = True, False
    found, _ = smaller_text(HEAD + FIRST, {"orders": about})
    assert found == HEAD + FIRST.replace('[basic.publish, "queue.*"]', "['queue.*']")


@pytest.mark.parametrize(
    ("text", "about", "note"),
    [
        (
            HEAD + SECOND.replace("    - basic.publish\n", "    - basic.publish\n    - exchange.delete\n"),
            {"payments": PUBLISH | {"exchange.delete": False}},
            "p/payments: write basic.publish as its operations",
        ),
        (
            HEAD.rstrip() + " [{id: a, effect: allow, operations: [basic.publish]}]\n",
            {"a": {"basic.publish": False}},
            "p/a: take it out by hand",
        ),
    ],
)
def test_what_cannot_be_taken_out_is_named(text: str, about: dict[str, dict[str, bool]], note: str) -> None:
    assert smaller_text(text, about) == (text, (note,))


@pytest.mark.parametrize("text", [HEAD + FIRST + SECOND + LAST, (HEAD + FIRST + SECOND + LAST).rstrip()])
def test_patch_takes_the_diff(tmp_path: Path, text: str) -> None:
    before = Source("p.yaml", text.encode())
    after = smaller(before, {("p", "payments"): {"basic.publish": False}}).source
    (tmp_path / "p.yaml").write_bytes(before.data)
    patched = subprocess.run(
        ["git", "apply", "-"], cwd=tmp_path, input=diff_of(before, after).encode(), check=False
    )
    assert patched.returncode == 0
    assert (tmp_path / "p.yaml").read_bytes() == after.data

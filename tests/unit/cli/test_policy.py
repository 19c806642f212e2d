"""``amqpgate policy``: what the verbs print, and how they end."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest
from click.testing import CliRunner, Result

from amqpgate.cli import main

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "policies"

ACCESS = """\
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: one}
spec:
  subjects: [{user: bob}]
  rules:
  - {id: get, effect: allow, operations: [basic.get], queue: {prefix: bob.}}
"""
TEST = """\
---
apiVersion: amqpgate.io/v1alpha1
kind: PolicyTest
metadata: {name: about-bob}
spec:
  cases:
  - {as: {user: bob}, op: basic.get, queue: bob.1, expect: allow, by: one/get}
  - as: {user: bob}
    op: basic.get
    queue: alice.1
    expect: %s
"""


def policy(*args: str | Path) -> Result:
    return CliRunner().invoke(main, ["policy", *map(str, args)])


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "one.yaml").write_text(ACCESS + TEST % "deny")
    return tmp_path


class TestTest:
    def test_the_examples_pass_their_tests(self) -> None:
        result = policy("test", EXAMPLES)
        assert result.exit_code == 0, result.output
        assert result.output.endswith(" 0 failed\n")

    def test_a_case_that_fails_shows_its_line_and_the_reasons(self, folder: Path) -> None:
        (folder / "one.yaml").write_text(ACCESS + TEST % "allow")
        result = policy("test", folder, "--junit", folder / "report.xml")
        assert result.exit_code == 1
        lines = result.output.splitlines()
        assert lines[0] == (
            f"{folder}/one.yaml:15:5: bob: basic.get queue 'alice.1': "
            "expected allow, got deny by default: no rule allows it for this queue"
        )
        assert "    one/get (allow) does not match: queue 'alice.1' is not prefix 'bob.'" in lines
        assert lines[-1] == "2 cases, 1 failed"
        (suite,) = ElementTree.parse(folder / "report.xml").getroot()
        assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == ("about-bob", "2", "1")
        assert [len(case) for case in suite] == [0, 1]

    def test_the_rule_that_decides_is_a_part_of_the_answer(self, folder: Path) -> None:
        (folder / "one.yaml").write_text((ACCESS + TEST % "deny").replace("by: one/get", "by: two/get"))
        result = policy("test", folder)
        assert result.exit_code == 1
        assert "allow as expected, but by one/get, not by two/get" in result.output

    def test_policies_in_shadow_count_where_the_test_says_so(self, folder: Path) -> None:
        text = (ACCESS + TEST % "deny").replace("spec:\n  subj", "spec:\n  mode: shadow\n  subj")
        (folder / "one.yaml").write_text(text)
        assert policy("test", folder).exit_code == 1
        (folder / "one.yaml").write_text(text.replace("  cases:", "  judge: all\n  cases:"))
        assert policy("test", folder).exit_code == 0

    def test_a_folder_without_tests_is_an_error(self, folder: Path) -> None:
        (folder / "one.yaml").write_text(ACCESS)
        assert policy("test", folder).exit_code == 2

    @pytest.mark.parametrize(
        ("wrong", "said"),
        [
            (
                "op: basic.got, queue: q",
                "15:27: no operation is named 'basic.got' (did you mean 'basic.get'?)",
            ),
            ("op: basic.get", "15:5: basic.get needs queue"),
            ("op: basic.get, queue: q, exchange: x", "basic.get has no exchange; it has queue"),
            ("op: basic.get, queue: q, headers: {a: b}", "basic.get carries no message"),
            ("op: basic.get, queue: q, arguments: {a: b}", "basic.get has no arguments"),
            (
                "op: basic.publish, exchange: x, routingKey: k, properties: {prio: 1}",
                "unknown property 'prio'",
            ),
            (
                "op: basic.publish, exchange: x, routingKey: k, properties: {appId: 1}",
                "appId is text: put it in quotes",
            ),
        ],
    )
    def test_a_case_that_makes_no_sense_is_refused(self, folder: Path, wrong: str, said: str) -> None:
        case = f"  - {{as: {{user: bob}}, {wrong}, expect: deny}}\n"
        (folder / "one.yaml").write_text((ACCESS + TEST).partition("  - as:")[0] + case)
        result = policy("test", folder)
        assert result.exit_code == 2
        assert said in result.output


class TestExplain:
    def test_it_says_which_rule_decides_and_why_not_the_others(self) -> None:
        result = policy(
            "explain", "--policies", EXAMPLES, "--as", "user=orders-eu,vhost=prod", "--op", "queue.purge",
            "--queue", "orders.in",
        )  # fmt: skip
        assert result.exit_code == 0
        lines = result.output.splitlines()
        assert lines[1] == "DENIED by keep-prod/nothing-is-lost"
        assert "  orders-service/own-queues (allow) matches, too" in lines
        assert "  demo/own-queues (allow) does not match: queue 'orders.in' is not prefix 'demo.'" in lines

    def test_json_says_the_same(self, folder: Path) -> None:
        result = policy(
            "explain", "--policies", folder, "--as", "user=bob",
            "--as", "client.product=x,y,tls.subject=CN=a,O=b",
            "--op", "queue.declare", "--queue", "bob.1", "--argument", "x-max=5", "--json",
        )  # fmt: skip
        data = json.loads(result.output)
        assert (data["verdict"], data["by"]) == ("deny", "default")
        assert data["steps"][0]["rules"][0]["whyNot"] == "it is about basic.get"
        assert data["request"] == "queue.declare queue 'bob.1' arguments x-max=5"

    def test_it_says_what_the_broker_gets(self, tmp_path: Path) -> None:
        (tmp_path / "rabbitmq-3.yaml").write_text((Path(EXAMPLES) / "rabbitmq-3.yaml").read_text())
        arguments = (
            "explain", "--policies", tmp_path, "--as", "user=demo,vhost=legacy", "--op", "queue.declare",
            "--queue", "orders.in", "--default-access", "allow", "--flag", "durable",
        )  # fmt: skip
        assert policy(*arguments).output.splitlines()[-2:] == [
            "the broker gets queue.declare queue 'orders.in' arguments x-queue-type=quorum, "
            "x-delivery-limit=-1, durable",
            "  by rabbitmq-3: quorum-queue, delivery-limit",
        ]
        broker = json.loads(policy(*arguments, "--json").output)["broker"]
        assert (broker["policy"], broker["left"]) == ("rabbitmq-3", "")

    def test_more_routing_keys_are_judged_as_well(self) -> None:
        arguments = (
            "explain", "--policies", EXAMPLES, "--as", "user=orders-eu,vhost=test-1", "--op", "basic.publish",
            "--exchange", "orders", "--routing-key", "order.1.created", "--header",
        )  # fmt: skip
        assert "\nallowed by" in policy(*arguments, "CC=order.2.created,order.3.created").output
        assert "\nDENIED by" in policy(*arguments, "CC=order.2.created,payroll").output

    @pytest.mark.parametrize(
        ("args", "said"),
        [
            (["--as", "name=bob", "--op", "basic.get"], "expected KEY=VALUE"),
            (["--as", "user=bob", "--op", "basic.get", "--argument", "x"], "expected NAME=VALUE"),
            (["--as", "user=bob", "--op", "basic.get"], "command line: basic.get needs queue"),
            (["--as", "user=bob", "--op", "basic.gte"], "did you mean 'basic.get'?"),
        ],
    )
    def test_a_wrong_command_line_ends_with_2(self, folder: Path, args: list[str], said: str) -> None:
        result = policy("explain", "--policies", folder, *args)
        assert result.exit_code == 2
        assert said in result.output


class TestImport:
    DEFINITIONS = (
        '{"permissions": [{"user": "bob", "vhost": "/", "configure": "^bob", "write": "", "read": ""}],'
        ' "topic_permissions": [{"user": "bob", "vhost": "/", "exchange": "amq.fanout",'
        ' "write": "", "read": ""}]}'
    )

    def test_the_policies_are_written_once_and_can_be_loaded(self, tmp_path: Path) -> None:
        (tmp_path / "d.json").write_text(self.DEFINITIONS)
        result = policy("import", tmp_path / "d.json", "--out", tmp_path / "new" / "policies")
        assert result.exit_code == 0
        assert result.stdout == f"wrote {tmp_path}/new/policies/bob.yaml\n"
        assert "note: topic permission of user 'bob' on exchange 'amq.fanout'" in result.stderr
        asked = policy(
            "explain", "--policies", tmp_path / "new" / "policies", "--as", "user=bob",
            "--op", "queue.delete", "--queue", "bob.1",
        )  # fmt: skip
        assert "\nallowed by bob@//delete-queues\n" in asked.output
        again = policy("import", tmp_path / "d.json", "--out", tmp_path / "new" / "policies")
        assert again.exit_code == 2
        assert "exists already" in again.output

    def test_without_a_folder_they_are_printed(self, tmp_path: Path) -> None:
        (tmp_path / "d.json").write_text(self.DEFINITIONS)
        assert policy("import", tmp_path / "d.json").stdout.startswith("apiVersion: amqpgate.io/")

    def test_what_cannot_be_said_is_denied_and_ends_with_3(self, tmp_path: Path) -> None:
        (tmp_path / "d.json").write_text(self.DEFINITIONS.replace("^bob", "(?!a)b"))
        result = policy("import", tmp_path / "d.json", "--out", tmp_path / "new")
        assert result.exit_code == 3
        said = "not imported: a permission of user 'bob' in vhost '/': configure '(?!a)b': not a regular"
        assert said in result.stderr
        assert result.stdout == f"wrote {tmp_path}/new/bob.yaml\n"
        assert policy("check", tmp_path / "new", "--strict").exit_code == 0
        (tmp_path / "d.json").write_text(self.DEFINITIONS.replace("bob", "*"))
        result = policy("import", tmp_path / "d.json", "--out", tmp_path / "no")
        assert (result.exit_code, (tmp_path / "no").exists()) == (2, False)
        assert policy("import", tmp_path / "none.json").exit_code == 2


class TestCheck:
    def test_the_examples_have_nothing_to_find(self) -> None:
        """But for the routes, which are off because they name clusters that nobody else has, and a prefix."""
        result = policy("check", EXAMPLES)
        assert result.exit_code == 0
        (off, room, count) = result.output.splitlines()
        assert "note: policy 'shop-routes' is off" in off
        assert "note: policy 'tenants' leaves names of exchanges and queues 255 bytes less" in room
        assert count == "0 problems, 2 notes"

    def test_findings_stand_with_their_line_and_what_to_do(self, folder: Path) -> None:
        (folder / "one.yaml").write_text(
            ACCESS + "  - {id: all, effect: allow, operations: [basic.publish]}\n"
        )
        result = policy("check", folder)
        assert result.exit_code == 1
        assert result.output.splitlines() == [
            f"{folder}/one.yaml:8:5: problem: rule 'one/all' lets publish to every queue: the default "
            "exchange is among its exchanges; name the exchanges, or say unless: '', "
            "and allow the default exchange with a routingKey",
            "1 problems, 0 notes",
        ]

    def test_notes_count_only_if_that_is_asked_for(self, folder: Path) -> None:
        (folder / "one.yaml").write_text(ACCESS.replace("spec:", "spec:\n  mode: off"))
        assert policy("check", folder).exit_code == 0
        assert policy("check", folder, "--strict").exit_code == 1

    def test_limits_of_several_workers_are_warned_of_where_each_would_take_them(self, folder: Path) -> None:
        """Those that are not shared by Redis the workers count together, and so there is nothing to say."""
        settings = folder.parent / "amqpgate.yaml"
        limit = (
            "apiVersion: amqpgate.io/v1alpha1\nkind: RatePolicy\nmetadata: {name: r}\n"
            "spec: {subjects: [{user: bob}], limits: [{id: one, messages: 5/s, shared: %s}]}\n"
        )

        def said(shared: str, more: str) -> list[str]:
            (folder / "one.yaml").write_text(limit % shared)
            settings.write_text(
                "listeners: [{name: a, bind: '127.0.0.1:0'}]\nupstreams: [{name: b, host: 127.0.0.1}]\n"
                + more
            )
            result = policy("check", folder, "--config", settings, "--strict")
            assert result.exit_code == (0 if result.output == "0 problems, 0 notes\n" else 1)
            return result.output.splitlines()[:-1]

        redis = "workers: %d\nsharedLimits: {redis: 'redis://localhost', replicas: %d%s}\n"
        (note,) = said("true", redis % (3, 2, ""))
        assert note.startswith(
            f"{settings}: note: limit r/one: while Redis is away each of 3 workers takes it"
        )
        assert said("true", redis % (3, 3, "")) == []
        assert said("true", redis % (3, 2, ", whenAway: closed")) == []
        assert said("false", redis % (3, 2, "")) == []
        assert said("false", "workers: 3\n") == []

    def test_every_document_that_is_not_valid_says_where(self, folder: Path) -> None:
        (folder / "one.yaml").write_text(
            ACCESS.replace("effect: allow", "effect: permit") + "---\n" + ACCESS.replace("bob.}", "1}")
        )
        (folder / "two.yaml").write_text("a: [")
        result = policy("check", folder)
        assert result.exit_code == 2
        # Below each stands the line that it is in.
        lines = [line for line in result.output.splitlines() if not line.startswith(" ")]
        assert lines[0].startswith(f"{folder}/one.yaml:7:23: expected one of allow, deny")
        assert lines[1].startswith(f"{folder}/one.yaml:15:")
        assert lines[2].startswith(f"{folder}/two.yaml:")
        assert len(lines) == 3


class TestDiff:
    def test_what_became_denied_is_shown_by_example(self, folder: Path) -> None:
        (folder / "b").mkdir()
        (folder / "a").mkdir()
        (folder / "a" / "one.yaml").write_text(ACCESS)
        (folder / "b" / "one.yaml").write_text(ACCESS.replace("{prefix: bob.}", "bob.1"))
        result = policy("diff", folder / "a", folder / "b", "--examples", "1")
        assert result.exit_code == 1
        *shown, last = result.output.splitlines()
        assert shown == [
            "basic.get: allow by one/get -> deny by default (5 found)",
            "  basic.get queue 'bob.' as user 'bob' in vhost '/'",
        ]
        assert last.startswith("1 differences; ")

    def test_the_same_is_no_difference(self) -> None:
        result = policy("diff", EXAMPLES, EXAMPLES)
        assert (result.exit_code, result.output) == (0, "0 differences; 0 requests tried\n")

    def test_a_wrong_folder_ends_with_2(self, folder: Path) -> None:
        assert policy("diff", folder, folder / "none").exit_code == 2


def test_explain_by_groups_and_what_a_token_says() -> None:
    asked = ["--op", "basic.publish", "--exchange", "books", "--routing-key", "k"]
    who = "user=bob,vhost=books,scope=books.write,claim.department=accounts"
    result = policy("explain", "--policies", EXAMPLES, "--as", who, *asked)
    assert result.exit_code == 0
    assert "allowed by booking-clerks/books" in result.output
    result = policy("explain", "--policies", EXAMPLES, "--as", "user=bob,vhost=books,scope=other", *asked)
    assert "its scopes (other) are not books.write" in result.output
    asked = ["--op", "basic.get", "--queue", "books.1"]
    for who in ("user=audit-7", "user=bob,group=auditors"):
        result = policy("explain", "--policies", EXAMPLES, "--as", f"{who},vhost=books", *asked)
        assert "in groups auditors" in result.output
        assert "allowed by auditors/reads" in result.output

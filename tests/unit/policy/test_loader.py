"""A folder of documents, all or nothing."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from amqpgate.errors import ConfigError
from amqpgate.policy import Source, build, load_folder, loader
from tests.unit.policy.build_set import BOB, HEAD, document, policies, rules


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as caught:
        build([Source("p.yaml", text.encode())])
    return str(caught.value)


def names(folder: Path) -> list[str]:
    return [policy.metadata.name for policy in load_folder(folder).access]


class TestFolders:
    def test_yaml_files_in_order_others_ignored(self, tmp_path: Path) -> None:
        (tmp_path / "b.yml").write_text(document(name="b"))
        (tmp_path / "a.YAML").write_text(document(name="a1") + "---\n" + document(name="a0"))
        for ignored in (".hidden.yaml", "_draft.yaml", "notes.txt", "b.yaml~"):
            (tmp_path / ignored).write_text("nonsense: [")
        for folder in ("team", ".git", "_old"):
            (tmp_path / folder).mkdir()
            (tmp_path / folder / "c.yaml").write_text(
                document(name="c") if folder == "team" else "nonsense: ["
            )
        assert names(tmp_path) == ["a0", "a1", "b", "c"]

    def test_a_mounted_config_map(self, tmp_path: Path) -> None:
        """Kubernetes: files are links into `..data`, a link to a folder that is swapped whole."""
        for version, name in (("..2024_1", "old"), ("..2024_2", "new")):
            (tmp_path / version).mkdir()
            (tmp_path / version / "p.yaml").write_text(document(name=name))
        (tmp_path / "..data").symlink_to("..2024_1")
        (tmp_path / "p.yaml").symlink_to("..data/p.yaml")
        assert names(tmp_path) == ["old"]
        (tmp_path / "..data").unlink()
        (tmp_path / "..data").symlink_to("..2024_2")
        assert names(tmp_path) == ["new"]
        mount = tmp_path.with_name("mount")
        mount.symlink_to(tmp_path)
        assert names(mount) == ["new"]

    def test_a_swap_while_reading_is_noticed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        for version in ("..1", "..2"):
            (tmp_path / version).mkdir()
            for name in ("a", "b"):
                (tmp_path / version / f"{name}.yaml").write_text(document(name=name + version))
        data = tmp_path / "..data"
        data.symlink_to("..1")
        for name in ("a", "b"):
            (tmp_path / f"{name}.yaml").symlink_to(f"..data/{name}.yaml")
        read, swapped = loader._read, False

        def read_then_swap(path: Path) -> bytes:
            nonlocal swapped
            content = read(path)
            if not swapped:
                swapped = True
                data.unlink()
                data.symlink_to("..2")
            return content

        monkeypatch.setattr(loader, "_read", read_then_swap)
        assert names(tmp_path) == ["a..2", "b..2"]

    def test_a_folder_that_never_rests(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "0.yaml").write_text(document(name="p0"))
        read = loader._read

        def read_and_add(path: Path) -> bytes:
            count = len(list(tmp_path.iterdir()))
            (tmp_path / f"{count}.yaml").write_text(document(name=f"p{count}"))
            return read(path)

        monkeypatch.setattr(loader, "_read", read_and_add)
        with pytest.raises(ConfigError, match="keeps changing"):
            load_folder(tmp_path)

    def test_linked_folders_are_followed_but_not_in_circles(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir()
        (tmp_path / "real" / "p.yaml").write_text(document())
        (tmp_path / "set").mkdir()
        (tmp_path / "set" / "linked").symlink_to(tmp_path / "real")
        assert names(tmp_path / "set") == ["p"]
        (tmp_path / "real" / "again").symlink_to(tmp_path / "real")
        with pytest.raises(ConfigError, match="circle"):
            load_folder(tmp_path / "set")

    def test_nothing_to_read_is_an_error(self, tmp_path: Path) -> None:
        with pytest.raises(ConfigError, match=r"no \.yaml or \.yml file"):
            load_folder(tmp_path)
        with pytest.raises(ConfigError, match="cannot be read"):
            load_folder(tmp_path / "none")
        (tmp_path / "gone.yaml").symlink_to("nowhere.yaml")
        with pytest.raises(ConfigError, match=r"gone\.yaml: cannot be read"):
            load_folder(tmp_path)

    def test_what_is_no_file_does_not_block(self, tmp_path: Path) -> None:
        os.mkfifo(tmp_path / "pipe.yaml")
        with pytest.raises(ConfigError, match=r"pipe\.yaml: not a file"):
            load_folder(tmp_path)

    def test_bounds(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        (tmp_path / "a.yaml").write_text(document(name="a"))
        (tmp_path / "b.yaml").write_text(document(name="b"))
        monkeypatch.setattr(loader, "MAX_TOTAL_BYTES", 200)
        with pytest.raises(ConfigError, match="larger than 200 bytes together"):
            load_folder(tmp_path)
        monkeypatch.setattr(loader, "MAX_FILES", 1)
        with pytest.raises(ConfigError, match="more than 1 policy files"):
            load_folder(tmp_path)
        (tmp_path / "b.yaml").unlink()
        (tmp_path / "a.yaml").write_bytes(b"#" * (1 << 21))
        with pytest.raises(ConfigError, match="larger than"):
            load_folder(tmp_path)

    def test_one_bad_file_and_nothing_takes_effect(self, tmp_path: Path) -> None:
        (tmp_path / "a.yaml").write_text(document())
        (tmp_path / "b.yaml").write_text(document(name="b").replace("rules", "ruls"))
        with pytest.raises(ConfigError, match=r"b\.yaml:6:3: unknown key 'ruls' \(did you mean 'rules'\?\)"):
            load_folder(tmp_path)

    def test_digest(self, tmp_path: Path) -> None:
        (tmp_path / "a.yaml").write_text(document())
        first = load_folder(tmp_path).digest
        copy = tmp_path / "copy"
        shutil.copytree(tmp_path, copy)
        assert load_folder(copy).digest == first
        shutil.rmtree(copy)
        (tmp_path / "a.yaml").write_text(document("effect: deny, operations: ['*']"))
        assert load_folder(tmp_path).digest != first
        assert len(first) == 64


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("- a\n", "p.yaml:1:1: expected a document with"),
        ("metadata: {}\n", "p.yaml:1:1: key 'kind' is missing; known are AccessPolicy"),
        ("kind: AccesPolicy\n", "p.yaml:1:7: unknown kind 'AccesPolicy' (did you mean 'AccessPolicy'?)"),
        ("kind: [AccessPolicy]\n", "p.yaml:1:7: unknown kind"),
        (document().replace("v1alpha1", "v1"), "p.yaml:1:13: expected one of amqpgate.io/v1alpha1"),
        (document() + "---\n" + document(), "p.yaml:8:1: AccessPolicy 'p' exists already, at p.yaml:1"),
        (HEAD % "''" + "  subjects: [{}]\n  rules: []\n", "p.yaml:3:18: must not be empty"),
        (document(subjects=""), "p.yaml:5:13: must not be empty"),
        (document(subjects="{vhosts: []}"), "p.yaml:5:23: must not be empty"),
        (document(subjects="{user: 'a*b'}"), "p.yaml:5:21: an asterisk stands only at the end"),
        (document(subjects="{user: '${TEAM}'}"), "p.yaml:5:21: variables such as"),
        (
            document(subjects="{sourceCIDR: [10.0.0.1/8]}"),
            "p.yaml:5:28: bits are set beyond the prefix; did you mean 10.0.0.0/8?",
        ),
        (document("effect: permit, operations: ['*']"), "expected one of allow, deny; not 'permit'"),
        (document("effect: allow, operations: []"), "must not be empty"),
        (
            document("effect: allow, operations: [basic.pubish]"),
            "'basic.pubish' (did you mean 'basic.publish'?)",
        ),
        (document("effect: allow, operations: [basic.ack]"), "no operation is named 'basic.ack'"),
        (document("effect: allow, operations: ['tc.*']"), "no operation is named 'tc.*'"),
        (
            document("effect: allow, operations: [basic.publish], queue: {literal: q}"),
            "'basic.publish' has no queue",
        ),
        (
            document("effect: deny, operations: [queue.bind, queue.declare], exchange: {literal: e}"),
            "has no exchange",
        ),
        (
            document("effect: deny, operations: ['exchange.*'], queue: {literal: e}"),
            "'exchange.*' has no queue",
        ),
        (document("effect: allow, operations: [basic.get], routingKey: {literal: e}"), "has no routingKey"),
        (
            document("effect: allow, operations: ['*'], exchange: {}"),
            "give exactly one of literal, prefix, topic, within, regex and search",
        ),
        (document("effect: allow, operations: ['*'], exchange: {literal: a, prefix: b}"), "give exactly one"),
        (document("effect: allow, operations: ['*'], exchange: {literal: null}"), "give exactly one"),
        (
            document("effect: allow, operations: ['*'], exchange: {regex: '(?=a)'}"),
            "not a regular expression of RE2, which has no back-references and no look-around",
        ),
        (document("effect: allow, operations: ['*'], exchange: {topic: 'a*'}"), "whole words"),
        (
            document("effect: allow, operations: ['*'], exchange: {literal: amq.default}"),
            "is named '' in rules",
        ),
        (
            document("effect: allow, operations: ['*'], exchange: [x]"),
            "expected a mapping with literal, prefix, topic",
        ),
        (
            document("effect: allow, operations: ['*'], arguments: {}"),
            "says nothing; give deny, allow, require or values",
        ),
        (document("id: default, effect: allow, operations: ['*']"), "'default' is what verdicts say"),
        (
            document("id: a, effect: deny, operations: ['*']", "id: a, effect: deny, operations: ['*']"),
            "have the id 'a'",
        ),
        (
            document().replace("spec:", "spec:\n  mode: enforce\n  enforcePercent: 10"),
            "p.yaml:6:19: belongs to mode shadow",
        ),
        (
            document("effect: deny, operations: [queue.declare], arguments: {deny: [x-expires]}"),
            "a deny rule denies what is there: say require",
        ),
        (
            document("effect: deny, operations: [basic.publish], properties: {maxBodyBytes: 1Ki}"),
            "a ceiling belongs in the allow rules",
        ),
        (
            document("effect: allow, operations: [basic.get], properties: {deliveryMode: 2}"),
            "has no properties",
        ),
        (
            document("effect: allow, operations: [basic.get], arguments: {deny: [x]}"),
            "none of the operations has arguments",
        ),
        (
            document("effect: allow, operations: [basic.get], bindTo: [{exchange: e}]"),
            "none of the operations binds anything",
        ),
        (
            document(subjects="{tls: {}}"),
            "say subject, commonName, san or spiffe",
        ),
    ],
)
def test_refusals(text: str, message: str) -> None:
    got = refusal(text)
    assert message in got
    assert got.startswith("p.yaml:")


def test_the_place_of_an_error_in_a_pattern() -> None:
    text = document("effect: allow, operations: [basic.publish], routingKey: {topic: 'a.b*'}")
    line = text.splitlines()[6]
    assert refusal(text).startswith(f"p.yaml:7:{line.index(chr(39) + 'a.b') + 1}: ")


def test_environment_variables_are_not_expanded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TEAM", "x")
    assert "unknown variable {TEAM}" in refusal(
        document("effect: deny, operations: ['*'], exchange: {prefix: '${TEAM}.'}")
    )


def test_empty_documents_and_comments_are_no_policies() -> None:
    assert policies("# nothing\n").documents == ()
    assert not rules().for_principal(BOB).unrestricted

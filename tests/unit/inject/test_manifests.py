"""Manifests, as `amqpgate inject` reads and writes them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import kubernetes_validate
import pytest
import yaml
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from amqpgate.cli import main
from amqpgate.errors import ConfigError
from amqpgate.inject import Injector, inject_manifests
from amqpgate.inject.manifests import _Dumper, _Loader

SETTINGS = Injector()
ROOT = Path(__file__).parents[3]

SERVICE = """\
apiVersion: v1
kind: Service   # stays as it is
metadata: {name: shop}
spec:
  ports: [{port: 80}]
"""
DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, annotations: {since: "2026-11-22", answer: "no"}}
spec:
  selector: {matchLabels: {app: shop}}
  template:
    metadata: {labels: {app: shop}}
    spec:
      containers:
      - name: app
        image: shop:1
        env:
        - {name: AMQP_URL, value: "amqp://a:b@rabbit/x"}
        - {name: MODE, value: "y"}
        - {name: OCTAL, value: "0644"}
        command: [sh, -c, "echo 1\\necho 2\\n"]
        volumeMounts: [{name: files, mountPath: /files, readOnly: yes}]
      volumes: [{name: files, configMap: {name: files, defaultMode: 0644}}]
"""


def test_documents_that_make_pods() -> None:
    given_ = f"---\n{SERVICE}---\n{DEPLOYMENT}--- # the end\n{SERVICE}"
    text = inject_manifests(given_, SETTINGS, file="x").text
    # Others are given back letter by letter.
    assert text.startswith(f"---\n{SERVICE}---\n")
    assert text.endswith(f"--- # the end\n{SERVICE}")
    changed = yaml.safe_load(text.split("---\n")[2].partition("--- #")[0])
    kubernetes_validate.validate(changed, "1.31", strict=True)
    spec = changed["spec"]["template"]["spec"]
    assert spec["initContainers"][0]["name"] == "amqpgate"
    assert spec["containers"][0]["env"][0]["value"] == "amqp://a:b@127.0.0.1:5672/x"
    # kubectl takes a plain y for true.
    assert "value: 'y'\n" in text
    # As kubectl reads it.
    assert spec["volumes"][0]["configMap"]["defaultMode"] == 0o644
    assert spec["containers"][0]["volumeMounts"][0]["readOnly"] is True
    assert changed["metadata"]["annotations"] == {"since": "2026-11-22", "answer": "no"}
    assert inject_manifests(text, SETTINGS, file="x").text == text


@pytest.mark.parametrize(
    ("version", "kind", "path"),
    [
        ("v1", "Pod", ()),
        ("apps/v1", "StatefulSet", ("spec", "template")),
        ("apps/v1", "DaemonSet", ("spec", "template")),
        ("batch/v1", "Job", ("spec", "template")),
        ("batch/v1", "CronJob", ("spec", "jobTemplate", "spec", "template")),
    ],
)
def test_kinds(version: str, kind: str, path: tuple[str, ...]) -> None:
    document = {"spec": {"containers": [{"name": "a", "env": [{"name": "AMQP_URL", "value": "amqp://b"}]}]}}
    for key in reversed(path):
        document = {key: document}
    document |= {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}}
    for item, out in ((document, None), ({"kind": "List", "apiVersion": "v1", "items": [document]}, "items")):
        changed = json.loads(inject_manifests(json.dumps(item), SETTINGS, file="x").text)
        for key in (*([out, 0] if out else []), *path, "spec"):
            changed = changed[key]
        assert [one["name"] for one in changed["initContainers"]] == ["amqpgate"]


def test_a_kind_of_somebody_else() -> None:
    text = DEPLOYMENT.replace("apps/v1", "example.org/v1")
    assert inject_manifests(text, SETTINGS, file="x").text == text


def test_what_is_wrong_is_told_with_its_place() -> None:
    broken = DEPLOYMENT.replace(
        "    spec:\n      containers", "    spec:\n      hostNetwork: true\n      containers"
    )
    with pytest.raises(ConfigError, match="hostNetwork") as caught:
        inject_manifests(f"{SERVICE}---\n{broken}", SETTINGS, file="x.yaml")
    assert str(caught.value).startswith(f"x.yaml:{SERVICE.count(chr(10)) + 2}: Deployment shop: ")
    assert inject_manifests(broken, Injector(on_error="open"), file="x").text == broken
    with pytest.raises(ConfigError) as caught:
        inject_manifests(f"{SERVICE}---\na: [\n", SETTINGS, file="x.yaml")
    assert caught.value.line == SERVICE.count("\n") + 3


POD = (
    "{apiVersion: v1, kind: Pod, metadata: {name: shop}, spec: {containers: "
    '[{name: app, image: x, env: [{name: AMQP_URL, value: "amqp://a:b@rabbit/x"}]}]}}\n'
)


@pytest.mark.parametrize(
    "before",
    [
        "--- ",
        "---\t ",
        f"{SERVICE}--- ",
        f"{SERVICE}---\r\n",
        f"{SERVICE}... # the end\n--- ",
        "%YAML 1.1\n---\n",
        "# of whom\n\n%YAML 1.1\n%TAG ! tag:example.org,2026:\n--- ",
        f"{SERVICE}...\n%YAML 1.1\n---\n",
    ],
)
@pytest.mark.parametrize("body", [POD, DEPLOYMENT])
def test_wherever_a_document_begins_it_is_seen(before: str, body: str) -> None:
    if body == DEPLOYMENT and before.endswith((" ", "\t")):
        # Only a block's tag or anchor stands on the line of a "---".
        before += "&all\n"
    changed = inject_manifests(f"{before}{body}---\n{SERVICE}", SETTINGS, file="x")
    assert [one.is_injected for one in changed.outcomes if one.is_injected is not None] == [True]
    *_, pod, last = (one for one in yaml.safe_load_all(changed.text) if one is not None)
    assert last["kind"] == "Service"
    template = pod["spec"].get("template", pod)
    assert [one["name"] for one in template["spec"]["initContainers"]] == ["amqpgate"]
    # kubectl takes what is on a line with "---" for nothing.
    assert re.findall(r"^---[ \t]*[^#\s]", changed.text, re.MULTILINE) == []
    assert inject_manifests(changed.text, SETTINGS, file="x").text == changed.text


def test_directives_of_the_next_document_stay() -> None:
    text = inject_manifests(f"{DEPLOYMENT}...\n%YAML 1.1\n---\n{SERVICE}", SETTINGS, file="x").text
    assert text.endswith(f"\n...\n%YAML 1.1\n---\n{SERVICE}")
    assert [one["kind"] for one in yaml.safe_load_all(text)] == ["Deployment", "Service"]
    with pytest.raises(ConfigError, match="expected '<document start>'"):
        inject_manifests(f"{SERVICE}...\n{POD}", SETTINGS, file="x")


def test_lines_end_as_they_were() -> None:
    text = f"{SERVICE}---\n{DEPLOYMENT}---\n{SERVICE}".replace("\n", "\r\n")
    changed = inject_manifests(text, SETTINGS, file="x")
    assert [one.is_injected for one in changed.outcomes] == [None, True, None]
    assert re.findall(r"(?<!\r)\n", changed.text) == []
    assert changed.text.replace("\r", "") == inject_manifests(text.replace("\r", ""), SETTINGS, file="x").text


def test_all_that_is_wrong_is_told_at_once() -> None:
    broken = POD.replace("spec: {", "spec: {hostNetwork: true, ")
    both = f"{{apiVersion: v1, kind: List, items: [{broken.replace('shop', 'one')},{broken}]}}\n"
    text = f"{both}---\na: [\n---\n{POD}---\n{broken.replace('shop', 'last')}--- {{kind: [}}\n"
    with pytest.raises(ConfigError) as caught:
        inject_manifests(text, SETTINGS, file="x")
    told = [str(one).partition(" has ")[0] for one in caught.value.all]
    assert told == [
        "x:1: Pod one: the pod",
        "x:1: Pod shop: the pod",
        told[2],
        "x:9: Pod last: the pod",
        told[4],
    ]
    assert told[2].startswith("x:6: not valid YAML")
    assert told[4].startswith("x:10: not valid YAML")


@given(
    st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs")), max_size=12)
    | st.from_regex(r"[-+0-9.:eExo_yYnN=~]{1,8}", fullmatch=True)
)
def test_texts_stay_texts(text: str) -> None:
    written = yaml.dump({"a": text}, Dumper=_Dumper, allow_unicode=True)
    assert yaml.load(written, _Loader) == {"a": text}
    assert yaml.safe_load(written) == {"a": text}


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ("kind: Pod\nmetadata: [1]\n", "x:1: document.metadata is not a mapping"),
        ("kind: Pod\nmetadata: {name: {a: 1}}\n", "x:1: metadata.name is not text"),
        ("kind: List\nitems: {a: b}\n", "x:1: document.items is not a list"),
        ("kind: List\nitems: &a\n- {kind: List, items: *a}\n", "x:3: not valid YAML: with its aliases"),
        (f"a: {'[' * 900}\n", "x:1: nested too deeply"),
        ("kind: Pod\nspec:\n  x: 1\n  y: {}\n  x: 2\n", "x:5: not valid YAML: key 'x' is given twice"),
        (
            "a0: &a0 aaaaaaaaaa\n"
            + "".join(f"a{n + 1}: &a{n + 1} [{', '.join([f'*a{n}'] * 10)}]\n" for n in range(9)),
            "x:6: not valid YAML: with its aliases written out it has over 1048576 letters more",
        ),
    ],
)
def test_what_is_no_manifest_has_a_place(wrong: str, word: str) -> None:
    with pytest.raises(ConfigError) as caught:
        inject_manifests(wrong, SETTINGS, file="x")
    assert word in str(caught.value)


def test_aliases_are_written_out() -> None:
    text = DEPLOYMENT.replace('{name: MODE, value: "y"}', "&mode {name: MODE, value: a}").replace(
        '{name: OCTAL, value: "0644"}', "*mode"
    )
    changed = yaml.safe_load(inject_manifests(text, SETTINGS, file="x").text)
    assert (
        changed["spec"]["template"]["spec"]["containers"][0]["env"][1:]
        == [{"name": "MODE", "value": "a"}] * 2
    )


class TestCommand:
    def test_a_pod_goes_through(self) -> None:
        result = CliRunner().invoke(main, ["inject", "--image", "mine:2"], input=DEPLOYMENT)
        assert result.exit_code == 0, result.output
        assert (
            yaml.safe_load(result.stdout)["spec"]["template"]["spec"]["initContainers"][0]["image"]
            == "mine:2"
        )

    def test_settings(self, tmp_path: Path) -> None:
        (tmp_path / "injector.yaml").write_text("sidecar: classic\n")
        result = CliRunner().invoke(main, ["inject", "-c", str(tmp_path / "injector.yaml")], input=DEPLOYMENT)
        assert [
            one["name"] for one in yaml.safe_load(result.stdout)["spec"]["template"]["spec"]["containers"]
        ] == [
            "app",
            "amqpgate",
        ]

    def test_it_says_who_got_a_sidecar_and_who_did_not(self) -> None:
        disabled = DEPLOYMENT.replace(
            "metadata: {labels", "metadata: {annotations: {amqpgate.io/inject: disabled}, labels"
        ).replace("name: shop, ", "name: kept, ")
        plain = DEPLOYMENT.replace("amqp:", "redis:").replace("name: shop, ", 'name: "a\\e[2J", ')
        given_ = f"{SERVICE}---\n{DEPLOYMENT}---\n{disabled}---\n{plain}"
        result = CliRunner().invoke(main, ["inject"], input=given_)
        *lines, plain_line, total = result.stderr.splitlines()
        second = SERVICE.count("\n") + 2
        third = second + DEPLOYMENT.count("\n") + 1
        assert lines == [
            f"<stdin>:{second}: Deployment shop: injected: AMQP_URL of container app",
            f"<stdin>:{third}: Deployment kept: skipped: annotation amqpgate.io/inject says so",
        ]
        assert "Deployment a\\x1b[2J: skipped: no AMQP URL of another host in AMQP_URL, " in plain_line
        assert total == "amqpgate: 1 injected, 2 skipped; these make no pods: Service 1"
        again = CliRunner().invoke(main, ["inject"], input=result.stdout)
        assert "Deployment shop: skipped: it has its sidecar" in again.stderr

    def test_it_says_of_all_why_they_cannot_have_one(self) -> None:
        broken = POD.replace("spec: {", "spec: {hostNetwork: true, ")
        result = CliRunner().invoke(main, ["inject"], input=f"--- {broken}--- {broken}")
        assert (result.exit_code, result.stdout) == (2, "")
        lines = result.stderr.splitlines()
        assert [line.partition(" has ")[0] for line in lines] == [
            "<stdin>:1: Pod shop: the pod",
            "<stdin>:2: Pod shop: the pod",
        ]

    def test_it_says_why_one_that_is_let_in_has_none(self, tmp_path: Path) -> None:
        (tmp_path / "injector.yaml").write_text("onError: open\n")
        broken = DEPLOYMENT.replace("    spec:\n      cont", "    spec:\n      hostNetwork: true\n      cont")
        result = CliRunner().invoke(main, ["inject", "-c", str(tmp_path / "injector.yaml")], input=broken)
        assert (result.exit_code, result.stdout) == (0, broken)
        assert "Deployment shop: skipped: the pod has hostNetwork" in result.stderr

    @pytest.mark.parametrize(
        ("args", "given_", "word"),
        [
            ([], b"\xff", "not UTF-8"),
            ([], b"a: [", "<stdin>:1: not valid YAML"),
            (["-c", "/nowhere"], b"", "no such file: /nowhere"),
            (["--image", "x", "serve", "-c", "x"], b"", "stand behind it"),
        ],
    )
    def test_wrong_input(self, args: list[str], given_: bytes, word: str) -> None:
        result = CliRunner().invoke(main, ["inject", *args], input=given_)
        assert result.exit_code == 2
        assert word in result.stderr

    def test_the_example_of_the_documents(self) -> None:
        """What docs/kubernetes.md shows of the answer is in the answer."""
        section = (
            (ROOT / "docs/kubernetes.md").read_text().partition("\n## In every pod")[2].partition("\n## ")[0]
        )
        before, after = re.findall(r"```yaml\n(.*?)```", section, re.DOTALL)[:2]
        result = CliRunner().invoke(main, ["inject"], input=before)
        assert result.exit_code == 0, result.output
        kubernetes_validate.validate(yaml.safe_load(result.stdout), "1.31", strict=True)
        lines = [line.strip() for line in result.stdout.splitlines()]
        shown = [line.strip() for line in after.splitlines() if line.strip() != "..."]
        assert shown
        assert [line for line in shown if line not in lines] == []

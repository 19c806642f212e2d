"""`amqpgate check --values`: what Helm refuses, all at once, with file, line and the nearest key."""

from __future__ import annotations

import json
from pathlib import Path
from typing import cast

import helm_python
import pytest
import yaml
from click.testing import CliRunner, Result

from amqpgate.chart.schema import NEVER_NULL
from amqpgate.cli import main
from tests.unit.chart.rendering import CASES, VALUES, Values, render
from tests.unit.chart.test_values import APART, CONFIG, REFUSED


def check(*files: Path) -> Result:
    return CliRunner().invoke(main, ["check", *(word for file in files for word in ("--values", str(file)))])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "values.yaml"


@pytest.mark.parametrize("case", CASES)
def test_what_can_be_installed_is_well(case: str) -> None:
    assert check(VALUES / f"{case}.yaml").output == "ok\n"


@pytest.mark.parametrize("values", [values for values, _ in REFUSED], ids=str)
def test_what_helm_refuses_is_told(file: Path, values: Values) -> None:
    file.write_text(yaml.safe_dump({"config": CONFIG} | values))
    result = check(file)
    assert result.exit_code == 2
    assert result.output.startswith(f"{file}:")


@pytest.mark.parametrize(("values", "words"), APART)
def test_what_does_not_go_together_is_told(file: Path, values: Values, words: str) -> None:
    file.write_text(json.dumps({"config": CONFIG} | values))
    result = check(file)
    assert result.exit_code == 2
    (line,) = [line for line in result.output.splitlines() if line.startswith(f"{file}:")]
    assert line.endswith(words)


def test_of_several_files_the_last_counts(file: Path) -> None:
    file.write_text("config: {listeners: [{name: a, bind: '0.0.0.0:1'}, {name: b, bind: '0.0.0.0:1'}]}")
    other = file.with_name("other.yaml")
    other.write_text(
        "config: {policies: /x, upstreams: [{name: a, url: amqp://a}], listeners: [{name: a, bind: a:1}]}"
    )
    assert check(file, other).output == "ok\n"
    file.write_text("policies: {a.yaml: '# none'}")
    assert f"{other}:1:20: is another folder than the one with policies" in check(file, other).output


@pytest.mark.parametrize("path", NEVER_NULL)
def test_an_empty_key_is_told(file: Path, path: str) -> None:
    steps = path.split(".")
    file.write_text("\n".join(f"{'  ' * depth}{step}:" for depth, step in enumerate(steps)))
    assert f"{file}:{len(steps)}:" in check(file).output
    assert "is empty, which takes its default away" in check(file).output


def test_an_empty_config_and_empty_policies_are_the_default(file: Path) -> None:
    file.write_text("config:\npolicies:\nresources:\n")
    assert check(file).output == "ok\n"


def test_passwords_in_clear_are_noted(file: Path) -> None:
    file.write_text(
        "config:\n  upstreams:\n"
        '  - {name: a, url: "amqp://gate:s3cret@rabbit/x"}\n'
        '  - {name: b, host: b, user: gate, password: "s3cret"}\n'
        '  - {name: c, url: "amqp://gate:${PASSWORD}@rabbit"}\n'
        '  - {name: d, host: b, user: gate, password: "${PASSWORD}"}\n'
        "  - {name: e, host: b, user: gate, passwordFile: /etc/amqpgate/secrets/d/password}\n"
    )
    result = check(file)
    *notes, ok = result.output.splitlines()
    assert (result.exit_code, ok) == (0, "ok")
    assert [note.partition(": a password in clear")[0] for note in notes] == [
        f"note: {file}:3:20",
        f"note: {file}:4:46",
    ]
    assert "s3cret" not in result.output


MANY = """\
replicaCont: 2
image: {tag: 2}
config:
  upstreams: [{name: rabbit, url: "amqp://rabbit", password: 12345}]
  limits: {drainTimout: 5s, closeTimeout: soon}
  admin: 5
policies:
  a.txt: ""
  b.yaml:
    {apiVersion: amqpgate.io/v1alpha1, kind: AccessPolicy, metadata: {name: b},
     spec: {mode: off, subjects: [{user: a}], rules: []}}
  c.yaml: |
    apiVersion: amqpgate.io/v1alpha1
    kind: AccessPolicy
    metadata: {name: c}
    spec: {subjects: [{usr: a}], rules: []}
autoscaling: {minReplicas: 0}
tcpRoutes: [{port: amqp}]
"""


def test_all_is_told_at_once_at_its_line(file: Path) -> None:
    file.write_text(MANY)
    told = check(file).output
    lines = [line.removeprefix(f"{file}:") for line in told.splitlines() if line.startswith(str(file))]
    for start in (
        "1:1: unknown key 'replicaCont' (did you mean 'replicaCount'?)",
        "2:14: expected text, not a whole number",
        "4:62: expected text or nothing, not a whole number",
        "5:12: unknown key 'drainTimout' (did you mean 'drainTimeout'?); known are maxConnections, ",
        "5:43: expected a time such as 5s or 500ms",
        "6:10: expected a mapping or nothing, not a whole number",
        "8:3: expected text like ^[A-Za-z0-9][A-Za-z0-9._-]*[.]ya?ml$, not 'a.txt'",
        "11:19: expected one of enforce, shadow, off; not 'off, which Helm reads as false: put it in quotes'",
        "16: unknown key 'usr' (did you mean 'user'?)",
        "17:28: 0 is less than the minimum of 1",
        "18:13: key 'parentRefs' is missing",
    ):
        assert any(line.startswith(start) for line in lines), (start, told)
    assert len(lines) == 11
    assert "    1 | replicaCont: 2\n      | ^\n" in told
    # Of a policy that is given as text, too.
    assert "   16 |     spec: {subjects: [{usr: a}], rules: []}\n" in told
    # The excerpt has no password, nor has the message.
    assert "12345" not in told


@pytest.mark.parametrize("text", ["yes", "OFF", "y", "~", "1", "soon", '"yes"'])
def test_a_word_is_what_helm_makes_of_it(file: Path, text: str) -> None:
    file.write_text(f"redis: {{enabled: {text}, existingSecret: a}}")
    values = cast("Values", helm_python.values_from_yaml(file.read_text()))
    try:
        render({"config": CONFIG} | values)
        refused = False
    except helm_python.HelmValuesError:
        refused = True
    assert (check(file).exit_code == 2) == refused


def test_what_one_file_lacks_another_may_have(file: Path) -> None:
    file.write_text("config: {workers: 2}")
    assert f"{file}:1:9: key 'upstreams' is missing" in check(file).output
    other = file.with_name("other.yaml")
    other.write_text("config: {upstreams: [{name: a, url: amqp://a}]}\nmode: gatway")
    told = check(file, other).output
    assert told.splitlines()[0] == (
        f"{other}:2:7: expected one of gateway, sidecar, injector; not 'gatway' (did you mean 'gateway'?)"
    )
    assert "missing" not in told


def test_of_a_chart_that_depends_on_this_one_its_own_values_are_looked_at(file: Path) -> None:
    file.write_text("replicas: 3\namqpgate: {mode: sidecar, config: {upstreams: []}, replicas: 3}")
    told = check(file).output
    assert f"{file}:2:52: unknown key 'replicas'" in told
    assert ":1:1:" not in told


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("- a", "1:1: expected a mapping of values"),
        ("a: 1\n---\nb: 2\n", "3:1: Helm reads the first document of a file only"),
        ("config:\n\tworkers: 1\n", "2:1: not valid YAML: "),
        ("mode: gateway\nmode: gateway\n", "2:1: key 'mode' is given twice (first on line 1)"),
        ("mode: &a gateway\n", "1:7: anchors and aliases"),
        ("policies: {a.yaml: 5}", "1:20: expected a policy, as text or as a mapping"),
        ("policies: {a.yaml: 'kind: ['}", "not valid YAML"),
        ("policies: []", "1:11: expected a mapping, not a list"),
        ("replicaCount: .inf", "1:15: expected a whole number, not a number"),
        ("config: {upstreams: ~}", "1:21: expected a list, not nothing"),
        ("replicaCount: " + "9" * 5000, "1:15: expected a whole number"),
        ("commonLabels: {1: 2}", "1:19: expected text, not a whole number"),
        ("nameOverride: " + "a" * 60, "1:15: does not fit: maxLength is 53"),
    ],
)
def test_odd_files(file: Path, text: str, words: str) -> None:
    file.write_text(text)
    result = check(file)
    assert result.exit_code == 2
    assert words in result.output


def test_a_file_that_is_not_there_and_two_questions(file: Path) -> None:
    assert "cannot be read: No such file" in check(file).output
    both = CliRunner().invoke(main, ["check", "--values", str(file), "--policies", str(file.parent)])
    assert both.exit_code == 2
    assert "check it alone" in both.output
    file.write_text("")
    assert check(file).output == "ok\n"

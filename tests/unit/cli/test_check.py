"""``amqpgate check``: what it prints, what it refuses, and where it points."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import pytest
import trustme
from click.testing import CliRunner, Result
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from amqpgate.cli import main

SETTINGS = """\
listeners:
- {name: clients, bind: "127.0.0.1:5673"}
upstreams:
- {name: rabbit, url: "amqp://app:hunter2@rabbit.example/prod"}
"""
POLICY = """\
apiVersion: amqpgate.io/v1alpha1
kind: AccessPolicy
metadata: {name: one}
spec:
  subjects: [{user: "*"}]
  rules: []
"""


def check(*args: str | Path) -> Result:
    return CliRunner().invoke(main, ["check", *map(str, args)])


@pytest.fixture
def settings(tmp_path: Path) -> Path:
    file = tmp_path / "amqpgate.yaml"
    file.write_text(SETTINGS)
    return file


@pytest.fixture
def policies(tmp_path: Path) -> Path:
    folder = tmp_path / "policies"
    folder.mkdir()
    (folder / "one.yaml").write_text(POLICY)
    return folder


def test_the_summary_is_one_line_each_without_the_password(settings: Path) -> None:
    result = check("--config", settings)
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "listening on amqp://127.0.0.1:5673",
        "forwarding to amqp://app:***@rabbit.example:5672/prod as user app",
        "policies: none, everything is allowed",
        "admin: off",
        "ok",
    ]


def test_policies_come_with_their_number_and_digest(policies: Path) -> None:
    result = check("--policies", policies)
    assert result.exit_code == 0
    digest = hashlib.sha256(f"{len(POLICY)}:{POLICY}".encode()).hexdigest()
    assert result.stdout == f"policies: 1 from {policies}, digest sha256:{digest[:16]}\nok\n"


def test_tests_beside_policies_are_not_counted_as_policies(policies: Path) -> None:
    (policies / "tests.yaml").write_text(
        "apiVersion: amqpgate.io/v1alpha1\nkind: PolicyTest\nmetadata: {name: t}\n"
        "spec: {cases: [{as: {user: bob}, op: basic.get, queue: q, expect: deny}]}\n"
    )
    assert check("--policies", policies).stdout.startswith(f"policies: 1 from {policies}, ")


def test_what_the_settings_do_not_let_policies_do_is_noted(settings: Path, policies: Path) -> None:
    shutil.copy(Path(__file__).parents[3] / "policies" / "audit.yaml", policies)
    result = check("--config", settings, "--policies", policies)
    assert result.exit_code == 0
    assert result.stdout.splitlines()[-2:] == [
        "note: AuditPolicy prod: no audit records are written, for the settings have no `audit`",
        "ok",
    ]
    settings.write_text(SETTINGS + "audit: {format: json}\n")
    assert "note:" not in check("--config", settings, "--policies", policies).stdout


def test_policies_of_the_command_line_replace_those_of_the_file(settings: Path, policies: Path) -> None:
    settings.write_text(SETTINGS + "policies: policies\n")
    other = policies.parent / "other"
    other.mkdir()
    (other / "a.yaml").write_text(POLICY)
    assert f"policies: 1 from {policies}, " in check("--config", settings).stdout
    assert f"policies: 1 from {other}, " in check("--config", settings, "--policies", other).stdout


def test_a_mistake_in_the_settings_is_cited_with_the_nearest_key(settings: Path) -> None:
    settings.write_text(SETTINGS.replace("bind:", "bnid:"))
    result = check("--config", settings)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"{settings}:2:19: unknown key 'bnid' (did you mean 'bind'?)")


def test_a_mistake_in_a_policy_is_cited(settings: Path, policies: Path) -> None:
    (policies / "one.yaml").write_text(POLICY.replace("rules:", "rulez:"))
    result = check("--config", settings, "--policies", policies)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"{policies / 'one.yaml'}:6:3: ")


@pytest.mark.parametrize("option", ["--config", "--policies"])
def test_what_is_not_there_is_named(tmp_path: Path, option: str) -> None:
    result = check(option, tmp_path / "nowhere")
    assert result.exit_code == 2
    assert f"{option}: no such" in result.stderr


def with_tls(settings: Path, cert: Path, key: Path, ca: Path) -> None:
    settings.write_text(
        f"""\
listeners:
- name: clients
  bind: 0.0.0.0:5671
  proxyProtocol: v2
  tls: {{cert: {cert}, key: {key}, clientCa: {ca}}}
upstreams:
- {{name: rabbit, url: "amqps://rabbit.example", tls: {{ca: {ca}}}}}
admin: {{}}
"""
    )


@pytest.fixture
def pems(tmp_path: Path) -> tuple[Path, Path, Path]:
    authority = trustme.CA()
    issued = authority.issue_cert("localhost")
    cert, key, ca = tmp_path / "cert.pem", tmp_path / "key.pem", tmp_path / "ca.pem"
    issued.cert_chain_pems[0].write_to_path(cert)
    issued.private_key_pem.write_to_path(key)
    authority.cert_pem.write_to_path(ca)
    return cert, key, ca


def test_tls_files_are_loaded(settings: Path, pems: tuple[Path, Path, Path]) -> None:
    with_tls(settings, *pems)
    result = check("--config", settings)
    assert result.exit_code == 0, result.output
    assert result.stdout.splitlines() == [
        "listening on amqps://0.0.0.0:5671 (client certificates required, PROXY protocol v2)",
        "forwarding to amqps://rabbit.example:5671 with the client's own login",
        "policies: none, everything is allowed",
        "admin: http://127.0.0.1:15680/ with /livez, /readyz, /metrics",
        "ok",
    ]


@pytest.mark.parametrize("broken", [0, 1, 2])
def test_tls_files_that_cannot_be_used_are_named(
    settings: Path, pems: tuple[Path, Path, Path], broken: int
) -> None:
    pems[broken].write_text("not a certificate")
    with_tls(settings, *pems)
    result = check("--config", settings)
    assert result.exit_code == 2
    assert str(pems[broken]) in result.stderr


def test_the_authorities_of_an_upstream_are_loaded_too(settings: Path, tmp_path: Path) -> None:
    ca = tmp_path / "broken.pem"
    ca.write_text("not a certificate")
    listeners = SETTINGS.partition("upstreams:")[0]
    settings.write_text(f'{listeners}upstreams: [{{name: rabbit, url: "amqps://rabbit", tls: {{ca: {ca}}}}}]')
    result = check("--config", settings)
    assert result.exit_code == 2
    assert str(ca) in result.stderr


def test_a_route_to_an_upstream_that_is_not_there(settings: Path, policies: Path) -> None:
    (policies / "routes.yaml").write_text(
        "apiVersion: amqpgate.io/v1alpha1\nkind: RoutePolicy\nmetadata: {name: p}\n"
        "spec: {routes: [{id: r, upstream: {cluster: nowhere}}]}\n"
    )
    result = check("--config", settings, "--policies", policies)
    assert result.exit_code == 2
    assert "RoutePolicy 'p', route 'r': no upstream is named 'nowhere' in the settings" in result.stderr
    assert check("--policies", policies).exit_code == 0, "alone, the settings are not known"


def test_a_mirror_is_shown_and_needs_a_login(settings: Path, policies: Path) -> None:
    settings.write_text(SETTINGS.replace("app:hunter2@", ""))
    file = policies / "routes.yaml"
    mirror = "{cluster: rabbit, vhost: copies, percent: 5}"
    file.write_text(
        "apiVersion: amqpgate.io/v1alpha1\nkind: RoutePolicy\nmetadata: {name: p}\n"
        f"spec: {{routes: [{{id: r, upstream: {{cluster: rabbit, mirror: {mirror}}}}}]}}\n"
    )
    result = check("--config", settings, "--policies", policies)
    assert result.exit_code == 2
    assert "a mirror needs a login of its own, for the clients' passwords are not kept" in result.stderr
    (policies / "secret").write_text("s")
    file.write_text(file.read_text().replace("copies,", "copies, user: u, passwordFile: secret,"))
    result = check("--config", settings, "--policies", policies)
    assert result.exit_code == 0, result.stderr
    assert "mirroring by route r: 5 % to rabbit (vhost copies)" in result.stdout


def test_where_audit_records_go_is_shown(settings: Path, tmp_path: Path) -> None:
    assert "audit:" not in check("--config", settings).stdout
    settings.write_text(SETTINGS + "audit: {format: json, gateway: gw}\n")
    assert "audit: json to standard output, as gateway gw\n" in check("--config", settings).stdout
    settings.write_text(SETTINGS + f"audit: {{format: parquet, folder: '{tmp_path}', gateway: gw}}\n")
    assert f"audit: parquet to {tmp_path}, as gateway gw\n" in check("--config", settings).stdout


def test_all_certificates_that_cannot_be_used_are_told_where_they_are_named(tmp_path: Path) -> None:
    ca = trustme.CA()
    one, other = ca.issue_cert("a"), ca.issue_cert("b")
    one.cert_chain_pems[0].write_to_path(tmp_path / "a.pem")
    other.private_key_pem.write_to_path(tmp_path / "b.key")
    key = load_pem_private_key(one.private_key_pem.bytes(), None)
    secret = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"hunter2"))
    (tmp_path / "secret.key").write_bytes(secret)
    (tmp_path / "a.der").write_bytes(key.private_bytes(Encoding.DER, PrivateFormat.PKCS8, NoEncryption()))
    file = tmp_path / "amqpgate.yaml"
    pairs = [("a.pem", "b.key"), ("a.pem", "secret.key"), ("b.key", "b.key"), ("a.pem", "a.der")]
    listeners = "".join(
        f"- {{name: n{index}, bind: '127.0.0.1:0', tls: {{cert: {cert}, key: {key}}}}}\n"
        for index, (cert, key) in enumerate(pairs)
    )
    file.write_text(f"listeners:\n{listeners}upstreams: [{{name: r, url: amqps://r, tls: {{ca: b.key}}}}]\n")
    result = check("--config", file)
    assert result.exit_code == 2
    told = [
        line.removeprefix(f"{file}:") for line in result.output.splitlines() if line.startswith(str(file))
    ]
    for line, words in zip(
        told,
        [
            "2:40: the private key is not that of the certificate",
            "3:40: the private key is encrypted",
            f"4:40: no certificate in PEM is in {tmp_path / 'b.key'}",
            f"5:40: no private key in PEM is in {tmp_path / 'a.der'}",
            f"6:44: no certificate in PEM is in {tmp_path / 'b.key'}",
        ],
        strict=True,
    ):
        assert line.startswith(words)


def test_all_unknown_upstreams_are_told_at_once(tmp_path: Path) -> None:
    file = tmp_path / "amqpgate.yaml"
    file.write_text(
        "listeners:\n"
        "- {name: a, bind: '127.0.0.1:0', upstream: rabit}\n"
        "- {name: b, bind: '127.0.0.1:0', upstream: bunny}\n"
        "upstreams: [{name: rabbit, host: rabbit}]\n"
    )
    told = check("--config", file).output
    assert f"{file}:2:44: no upstream is named 'rabit' (did you mean 'rabbit'?); there are rabbit\n" in told
    assert f"{file}:3:44: no upstream is named 'bunny'; there are rabbit\n" in told


def test_all_unknown_clusters_of_routes_are_told_at_once(settings: Path, policies: Path) -> None:
    (policies / "one.yaml").write_text(
        "apiVersion: amqpgate.io/v1alpha1\nkind: RoutePolicy\nmetadata: {name: r}\nspec:\n  routes:\n"
        "  - {id: a, upstream: {cluster: rabit}}\n"
        "  - {id: b, upstream: {cluster: rabbit}}\n"
        "  - {id: c, upstream: {cluster: bunny}}\n"
    )
    told = check("--config", settings, "--policies", policies).output
    assert f"{policies / 'one.yaml'}:6:33: RoutePolicy 'r', route 'a': no upstream is named 'rabit'" in told
    assert f"{policies / 'one.yaml'}:8:33: RoutePolicy 'r', route 'c': no upstream is named 'bunny'" in told


def test_what_else_is_wrong_with_routes_has_its_place_too(settings: Path, policies: Path) -> None:
    file = policies / "one.yaml"
    file.write_text(
        "apiVersion: amqpgate.io/v1alpha1\nkind: RoutePolicy\nmetadata: {name: r}\nspec:\n  routes:\n"
        "  - id: a\n    upstream:\n      cluster: rabbit\n      mirror:\n"
        "        cluster: rabit\n        user: u\n        passwordEnv: NOT_SET\n"
        "  - id: b\n    upstream: {cluster: rabbit, mirror: {cluster: rabbit}}\n"
    )
    told = check("--config", settings, "--policies", policies).output.splitlines()
    place, excerpt, caret, *rest = told
    assert place.startswith(f"{file}:10:18: RoutePolicy 'r', route 'a': no upstream is named 'rabit'")
    assert "(did you mean 'rabbit'?)" in place
    assert excerpt.index("rabit") == caret.index("^")
    assert f"{file}:12:22: RoutePolicy 'r', route 'a', mirror: the environment variable NOT_SET" in "\n".join(
        rest
    )
    assert f"{file}:14:51: RoutePolicy 'r', route 'b': the mirror is the route's own cluster" in "\n".join(
        rest
    )


@pytest.mark.parametrize("text", ["listeners:\n\t- {name: a}\n", "a: 1\nb:\n  c: 1\n\td: 1\n"])
def test_a_tab_is_told_for_what_it_is(settings: Path, text: str) -> None:
    settings.write_text(text)
    assert "; indent by spaces\n" in check("--config", settings).output

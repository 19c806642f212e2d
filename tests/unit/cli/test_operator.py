"""`amqpgate operator`: what it refuses before it asks anybody."""

from __future__ import annotations

from pathlib import Path

import pytest
from click.testing import CliRunner

from amqpgate.cli import main


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ("namespce: mq", "unknown key 'namespce' (did you mean 'namespace'?)"),
        ("server: {url: 'http://kubernetes.example.org'}", "HTTP is spoken with this machine alone"),
        ("server: {url: 'https://a/b'}", "expected https://HOST:PORT and nothing behind it"),
        ("configMap: ../secrets/a", "the name of an object has"),
        ("namespace: a\ntenants: [{namespace: a, subjects: [{user: b}]}]", "a is named already"),
        ("tenants: [{namespace: a, subjects: []}]", "operator.yaml:1:"),
        (
            "tenants: [{namespace: a, subjects: [{user: b}], kinds: [RoutePolicy]}]",
            "expected one of AccessPolicy",
        ),
        ("", "this is no pod: say server.url"),
    ],
)
def test_wrong_settings(settings: str, words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KUBERNETES_SERVICE_HOST", raising=False)
    (tmp_path / "operator.yaml").write_text(settings)
    done = CliRunner().invoke(main, ["operator", "--config", str(tmp_path / "operator.yaml")])
    assert done.exit_code == 2
    assert words in done.output


def test_options_of_its_verbs_stand_behind_them(tmp_path: Path) -> None:
    done = CliRunner().invoke(main, ["operator", "--config", str(tmp_path / "a"), "crds"])
    assert done.exit_code == 2
    assert CliRunner().invoke(main, ["operator", "--config", str(tmp_path / "a")]).exit_code == 2

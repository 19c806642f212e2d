"""Settings, policies and pods' settings: whatever the text, a clean error that says where, or a value."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from pathlib import Path

from amqpgate.config import Settings
from amqpgate.errors import ConfigError
from amqpgate.inject import Injector
from amqpgate.policy import Operation, PolicySet, Principal, Source, build
from amqpgate.policy.engine.operations import OPERATIONS
from amqpgate.policy.kinds.transform_set import SessionDeniedError
from amqpgate.policy.loader import documents_of, errors_in
from amqpgate.policy.tools.checks import findings
from amqpgate.yamldoc import compose, expand, structure

MOST = 4096
TOKENS = (
    *(
        b"${A}",
        b"${A:-x}",
        b"password: ${PASSWORD}",
        b"&a ",
        b"*a",
        b"<<: ",
        b"!!str ",
        b"---\n",
        b": ",
        b"- ",
        b"{",
        b"}",
        b"[",
        b"]",
    ),
    *(b"'", b'"', b"|\n", b"\t", b"\xef\xbb\xbf", b"1e999", b".inf", b".nan", b"99999999999999999999"),
    *(b"0x", b"0o7", b"Mi", b"Gi/s", b"50%", b"{user}", b"{vhost}", b"#.*.#", b"regex: ", b"unless: "),
    *(b"null", b"true", b"AccessPolicy", b"RatePolicy", b"RoutePolicy", b"TransformPolicy", b"AuditPolicy"),
    *(b"CompatibilityPolicy", b"rabbitmq-3.13"),
    *(
        b"listeners",
        b"upstreams",
        b"limits",
        b"tls",
        b"audit",
        b"pooled",
        b"basic.publish",
        b"deny",
        b"allow",
    ),
)
ROOT = Path(__file__).parents[3]
FILE = "fuzz.yaml"
ENVIRON = {"A": "a: [b", "N": "17", "PASSWORD": "s3cr3t"}
PRINCIPALS = (Principal("bob", "prod", "10.0.0.1", "main"), Principal(None, "/"))
#: Errors about a whole file, which have no line.
_NO_LINE = re.compile(
    r"the file is|not valid YAML|the policies are larger|cannot be read|a configuration|.*environment"
)


def seeds() -> Iterator[bytes]:
    """What the documents and the folder of policies have."""
    for path in sorted((ROOT / "policies").glob("*.yaml")):
        for document in path.read_bytes().split(b"\n---\n"):
            yield b"p" + document
    documents = "\n".join(
        path.read_text() for path in [ROOT / "README.md", *sorted((ROOT / "docs").glob("**/*.md"))]
    )
    for text in re.findall(r"^```yaml\n(.*?)^```$", documents, re.DOTALL | re.MULTILINE):
        yield (b"p" if "apiVersion" in text else b"s") + text.encode()
    yield b"s" + b"listeners: [{name: m, bind: '127.0.0.1:0'}]\nupstreams: [{name: b, host: ${A:-h}}]\n"
    yield b"i" + b"image: amqpgate:1\nupstream: {host: broker}\n"


def check(data: bytes) -> None:
    """Read it as one of the three; use what comes out."""
    what, text = data[:1], data[1:]
    try:
        if what == b"s":
            _settings(text, Settings)
        elif what == b"i":
            _settings(text, Injector)
        else:
            _policies(text)
    except ConfigError as error:
        assert error.file is not None, error
        assert error.line is not None or _NO_LINE.match(error.message), error
        assert len(str(error)) < 8192, len(str(error))
        # What a variable stands for may be a secret.
        assert "s3cr3t" not in str(error) or b"s3cr3t" in text, error


def _settings(text: bytes, cls: type[Settings] | type[Injector]) -> None:
    for document in compose(text, FILE):
        repr(structure(expand(document, ENVIRON), cls))


def _policies(text: bytes) -> None:
    source = [Source(FILE, text)]
    errors = errors_in(source)
    found = build(source)
    assert not errors
    list(findings(documents_of(source), overlaps=True))
    for principal in PRINCIPALS:
        _use(found, principal)


def _use(found: PolicySet, principal: Principal) -> None:
    """What a session asks of its policies."""
    policy = found.for_principal(principal)
    for name, kind in OPERATIONS.items():
        names = dict.fromkeys(kind.attributes, "a.b")
        operation = Operation(principal, name, **names)  # type: ignore[arg-type]
        policy.decide(operation)
        if name == "basic.publish":
            policy.admit(operation)
    found.limits_for(principal, "1")
    found.audit_of(principal)
    found.traces_of(principal)
    with contextlib.suppress(SessionDeniedError):
        found.transform_for(principal)

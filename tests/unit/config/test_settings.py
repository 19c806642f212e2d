"""The configuration file."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
import pytest
import yaml

from amqpgate.config import (
    Address,
    Login,
    Pooling,
    Secret,
    Settings,
    describe,
    from_flags,
    load,
    parse,
    schema,
)
from amqpgate.errors import ConfigError

ROOT = Path(__file__).parents[3]

MINIMAL = (
    "listeners: [{name: plain, bind: 127.0.0.1:5672}]\nupstreams: [{name: rabbit, url: amqp://rabbit}]\n"
)

FULL = """\
listeners:
- name: plain
  bind: 127.0.0.1:5672
  upstream: rabbit
  proxyProtocol: any
  frameMax: 64Ki
  channelMax: 100
  heartbeat: 30s
- name: tls
  bind: "[::]:5671"
  upstream: own-login
  tls: {cert: cert.pem, key: key.pem, clientCa: ca.pem, minVersion: TLSv1.3}
upstreams:
- name: rabbit
  url: amqps://rabbit.example.com/%2f
  tls: {ca: ca.pem, cert: cert.pem, key: key.pem, serverName: rabbit, verify: false}
  connectTimeout: 500ms
- name: own-login
  host: 10.0.0.7
  vhost: prod
  user: gateway
  passwordFile: password
policies: policies
admin: {bind: "0.0.0.0:15680", tokenFile: token, allowPlaintext: true}
limits: {maxConnections: 7, bufferHigh: 1Mi, bufferLow: 1Ki, drainTimeout: 1m}
log: {format: json, level: debug}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("cert.pem", "key.pem", "ca.pem"):
        (tmp_path / name).write_text("PEM")
    (tmp_path / "password").write_text("hunter2\n")
    (tmp_path / "token").write_text("t0ken\r\n")
    (tmp_path / "policies").mkdir()
    return tmp_path


def refusal(text: str, environ: dict[str, str] | None = None, file: str = "c.yaml") -> str:
    with pytest.raises(ConfigError) as caught:
        parse(text, environ or {}, file=file)
    return str(caught.value)


def test_minimal() -> None:
    settings = parse(MINIMAL, {})
    (listener,) = settings.listeners
    upstream = settings.upstream_of(listener)
    assert upstream is settings.upstreams[0]
    assert upstream.address == Address("rabbit", 5672)
    assert (upstream.vhost, upstream.login(), upstream.has_login, upstream.tls) == (None, None, False, None)
    assert (settings.policies, settings.admin) == (None, None)
    assert (settings.limits.handshake_timeout, settings.limits.handshake_frame_max) == (10.0, 4096)
    assert settings.limits.buffer_low < settings.limits.buffer_high


def test_full(folder: Path) -> None:
    file = folder / "gate.yaml"
    file.write_text(FULL)
    settings = load(file, {})
    plain, tls = settings.listeners
    assert (plain.proxy_protocol, plain.frame_max, plain.channel_max, plain.heartbeat) == (
        "any",
        65536,
        100,
        30,
    )
    assert tls.bind == Address("::", 5671)
    assert tls.tls is not None
    assert tls.tls.cert == folder / "cert.pem"
    assert tls.tls.require_client_cert  # because there is a clientCa
    assert tls.tls.min_version == "TLSv1.3"
    rabbit, own = settings.upstreams
    assert settings.upstream_of(plain) is rabbit
    assert settings.upstream_of(tls) is own
    assert (rabbit.host, rabbit.port, rabbit.vhost) == ("rabbit.example.com", 5671, "/")
    assert rabbit.tls is not None
    assert (rabbit.tls.server_name, rabbit.tls.verify) == ("rabbit", False)
    assert rabbit.connect_timeout == 0.5
    assert (own.address, own.vhost) == (Address("10.0.0.7", 5672), "prod")
    assert own.login() == Login("gateway", Secret("hunter2"))
    (folder / "password").write_text("other\n\n")
    assert own.login() == Login("gateway", Secret("other\n"))
    (folder / "password").unlink()
    with pytest.raises(ConfigError, match="password: cannot be read"):
        own.login()
    assert settings.policies == folder / "policies"
    assert settings.admin is not None
    assert settings.admin.token() == Secret("t0ken")
    assert settings.limits.drain_timeout == 60.0
    assert (settings.log.format, settings.log.level) == ("json", "debug")


@pytest.mark.parametrize(
    ("upstream", "port", "tls"),
    [
        ("url: amqps://h", 5671, True),
        ("url: amqp://h", 5672, False),
        ("host: h", 5672, False),
        ("host: h, tls: {}", 5671, True),
        ("host: h, tls: {}, port: 99", 99, True),
        ("host: '::1'", 5672, False),
    ],
)
def test_tls_and_ports_of_upstreams(upstream: str, port: int, tls: bool) -> None:
    settings = parse(
        f"listeners: [{{name: a, bind: '127.0.0.1:1'}}]\nupstreams: [{{name: b, {upstream}}}]\n", {}
    )
    assert settings.upstreams[0].port == port
    assert (settings.upstreams[0].tls is not None) is tls


@pytest.mark.parametrize(
    ("listener", "upstream", "culprit", "words"),
    [
        ("frameMax: 4095", "url: amqp://h", "4095", "must be between 4096 and 16777216"),
        ("channelMax: 0", "url: amqp://h", "0}", "must be between 1 and 65535"),
        ("heartbeat: 65536", "url: amqp://h", "65536", "must be between 0 and 65535"),
        ("proxyProtocol: v3", "url: amqp://h", "v3", "expected one of none, v1, v2, any; not 'v3'"),
        (
            "upstream: rabit",
            "url: amqp://h",
            "rabit",
            "no upstream is named 'rabit' (did you mean 'rabbit'?)",
        ),
        ("upstream: x", "url: amqp://h", "x}", "no upstream is named 'x'; there are rabbit"),
        ("heartbeat: 1", "port: 5", "{name: rabbit", "an upstream needs url or host"),
        ("heartbeat: 1", "host: a b", "a b", "neither a name nor an address"),
        ("heartbeat: 1", "host: ''", "''", "an upstream needs url or host"),
        ("heartbeat: 1", "url: amqp://h, host: other", "other", "host is in the url already"),
        ("heartbeat: 1", "url: amqp://h/v, vhost: w", "w}", "vhost is in the url already"),
        ("heartbeat: 1", "url: amqp://h, tls: {}", "{}", "which is without TLS: write amqps://"),
        ("heartbeat: 1", "url: amqps://h, tls: null", "null", "which needs TLS"),
        ("heartbeat: 1", "host: h, user: u", "u}", "a user needs password or passwordFile"),
        ("heartbeat: 1", "host: h, password: p", "p}", "a password needs a user"),
        ("heartbeat: 1", "host: h, mechanisms: []", "[]", "empty"),
        (
            "heartbeat: 1",
            "host: h, mechanisms: [GSSAPI]",
            "GSSAPI",
            "expected one of EXTERNAL, SCRAM-SHA-512",
        ),
        (
            "heartbeat: 1",
            "host: h, mechanisms: [EXTERNAL]",
            "[EXTERNAL]",
            "EXTERNAL needs a certificate to show",
        ),
        ("heartbeat: 1", "host: h, tls: {cert: none.pem}", "none.pem", "no such file"),
        ("heartbeat: 1", "host: h, connections: share", "share", "expected one of own, pooled; not 'share'"),
        ("heartbeat: 1", "host: h, pool: {maxLinks: 0}", "0}", "must be between 1 and 1000"),
        ("heartbeat: 1", "host: h, pool: {channelsPerLink: 65536}", "65536", "between 1 and 65535"),
        ("heartbeat: 1", "host: h, pool: {failedLogins: 0}", "0}", "must be between 1 and 1000000"),
        ("heartbeat: 1", "host: h, pool: {maxWaiting: 1Ki}", "1Ki", "must be between 8192"),
        (
            "heartbeat: 1",
            "host: h, pool: {maxBody: 2Mi, maxCollected: 1Mi}",
            "1Mi",
            "maxCollected must not be less than maxBody",
        ),
        ("heartbeat: 1", "host: h, pool: {maxLink: 3}", "maxLink", "(did you mean 'maxLinks'?)"),
        ("tls: {}", "url: amqp://h", "{}", "key 'cert' is missing"),
        ("frameMx: 4096", "url: amqp://h", "frameMx", "(did you mean 'frameMax'?)"),
    ],
)
def test_refusals(listener: str, upstream: str, culprit: str, words: str) -> None:
    text = (
        f"listeners: [{{name: plain, bind: '127.0.0.1:5672', {listener}}}]\n"
        f"upstreams: [{{name: rabbit, {upstream}}}]\n"
    )
    message = refusal(text)
    assert words in message
    assert message.startswith(f"c.yaml:{place(text, culprit)}: ")


def place(text: str, culprit: str) -> str:
    before = text[: text.index(culprit)]
    return f"{before.count(chr(10)) + 1}:{len(before) - before.rfind(chr(10))}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "the file is empty"),
        ("listeners: []\nupstreams: []\n", "c.yaml:1:12: must not be empty"),
        (MINIMAL + "---\na: 1\n", "one document"),
        (MINIMAL + "limits: {bufferLow: 256Ki}\n", "c.yaml:3:21: bufferLow must be less than bufferHigh"),
        (MINIMAL + "limits: {handshakeTimeout: 0}\n", "c.yaml:3:28: must be between 0.001 and 3600"),
        (MINIMAL + "admin: {bind: '0.0.0.0:1'}\n", "c.yaml:3:15: an admin address that other machines"),
        (
            MINIMAL + "admin: {bind: '[::1]:1', probes: '[::1]:1'}\n",
            "c.yaml:3:34: bind is that address already",
        ),
        (MINIMAL + "policies: none\n", "c.yaml:3:11: no such folder"),
        (MINIMAL.replace("rabbit}", "rabbit}, {name: rabbit, host: h}"), "two upstreams are named 'rabbit'"),
        (MINIMAL.replace("rabbit}", "rabbit}, {name: other, host: h}"), "which upstream? There are several"),
        (
            MINIMAL.replace("5672}", "5672}, {name: plain, bind: 127.0.0.1:5}"),
            "two listeners are named 'plain'",
        ),
        (
            MINIMAL.replace("5672}", "5672}, {name: b, bind: 127.0.0.1:5672}"),
            "'plain' has this address already",
        ),
        (
            MINIMAL + "admin: {probes: '127.0.0.1:5672'}\n",
            "the admin interface has this address already",
        ),
    ],
)
def test_refusals_of_the_whole(text: str, words: str) -> None:
    assert words in refusal(text)


def test_connections_are_the_clients_own_unless_it_is_said() -> None:
    (plain,) = parse(MINIMAL, {}).upstreams
    assert (plain.connections, plain.pool) == ("own", Pooling())
    keys = "connections: pooled, pool: {maxLinks: 3, spareChannels: 0, maxAge: 1m30s, maxBody: 2Mi}"
    (shared,) = parse(MINIMAL.replace("rabbit}", f"rabbit, {keys}}}"), {}).upstreams
    assert shared.connections == "pooled"
    assert (shared.pool.max_links, shared.pool.spare_channels, shared.pool.max_age) == (3, 0, 90.0)
    assert shared.pool.max_body == 2 << 20 < shared.pool.max_collected


def test_empty_token_file_is_refused(folder: Path) -> None:
    (folder / "token").write_text("\n")
    text = MINIMAL + "admin: {tokenFile: token}\n"
    assert "3:20: the token file is empty" in refusal(text, file=str(folder / "c.yaml"))


def test_a_token_does_not_cross_the_network_in_the_clear_unless_it_is_said(folder: Path) -> None:
    (folder / "token").write_text("t0ken")
    text = MINIMAL + "admin: {bind: '0.0.0.0:1', tokenFile: token%s}\n"
    file = str(folder / "c.yaml")
    assert "3:15: the token would cross the network in the clear" in refusal(text % "", file=file)
    for said in (", allowPlaintext: true", ", tls: {cert: token, key: token}"):
        assert parse(text % said, {}, file=file).admin is not None


def test_require_client_cert_needs_someone_who_signs(folder: Path) -> None:
    text = MINIMAL.replace("5672}", "5672, tls: {cert: cert.pem, key: key.pem, requireClientCert: true}}")
    assert "requireClientCert needs clientCa" in refusal(text, file=str(folder / "c.yaml"))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        ("[[]]", "must not be empty"),
        ("[['*']]", "a host name, or *. and a host name"),
        ("[[a.*.example.org]]", "a host name, or *. and a host name"),
        ("[[a.example.org], [b.example.org, A.example.org]]", "'A.example.org' has a certificate already"),
    ],
)
def test_names_of_further_certificates(names: str, message: str, folder: Path) -> None:
    lists = yaml.safe_load(names)
    extra = ", ".join(f"{{serverNames: {json.dumps(one)}, cert: cert.pem, key: key.pem}}" for one in lists)
    text = MINIMAL.replace("5672}", f"5672, tls: {{cert: cert.pem, key: key.pem, certificates: [{extra}]}}}}")
    assert message in refusal(text, file=str(folder / "c.yaml"))


class TestAnUpstreamWithALoginOfItsOwn:
    """Whoever reaches the listener has the gateway's rights on the broker: fail closed."""

    def listener(self, extra: str, folder: Path) -> Settings:
        text = f"listeners: [{{name: a, {extra}}}]\nupstreams: [{{name: b, url: 'amqp://u:p@h'}}]\n"
        return parse(text, {}, file=str(folder / "c.yaml"))

    @pytest.mark.parametrize(
        "extra",
        [
            "bind: '127.0.0.1:1'",
            "bind: '[::1]:1'",
            "bind: 'localhost:1'",
            "bind: '0.0.0.0:1', allowAnonymous: true",
            "bind: '0.0.0.0:1', tls: {cert: cert.pem, key: key.pem, clientCa: ca.pem}",
            "bind: '127.0.0.1:1', proxyProtocol: v1, allowAnonymous: true",
        ],
    )
    def test_allowed(self, extra: str, folder: Path) -> None:
        assert self.listener(extra, folder).upstreams[0].has_login

    @pytest.mark.parametrize(
        "extra",
        [
            "bind: '0.0.0.0:1'",
            "bind: '[::]:1'",
            "bind: 'gate.example.com:1'",
            # Connections that carry a PROXY header come from elsewhere.
            "bind: '127.0.0.1:1', proxyProtocol: v2",
            "bind: '0.0.0.0:1', tls: {cert: cert.pem, key: key.pem}",
            "bind: '0.0.0.0:1', tls: {cert: cert.pem, key: key.pem, clientCa: ca.pem, "
            "requireClientCert: false}",
        ],
    )
    def test_refused(self, extra: str, folder: Path) -> None:
        with pytest.raises(ConfigError, match="logs in with its own user") as caught:
            self.listener(extra, folder)
        assert (caught.value.line, caught.value.column) == (1, 29)


def test_secrets_come_from_the_environment_and_show_nowhere() -> None:
    text = (
        "listeners: [{name: a, bind: '127.0.0.1:1'}]\n"
        "upstreams: [{name: b, host: '${HOST}', user: u, password: '${PW}', frameMax: '${FM:-8Ki}'}]\n"
    )
    settings = parse(text, {"PW": "hunter2: *x", "HOST": "h"})
    upstream = settings.upstreams[0]
    assert upstream.login() == Login("u", Secret("hunter2: *x"))
    assert (upstream.host, upstream.frame_max) == ("h", 8192)
    assert "hunter2" not in repr(settings)
    assert upstream.shown == "amqp://u:***@h:5672"
    assert "environment variable PW is not set" in refusal(text, {"HOST": "h"})
    message = refusal(text, {"HOST": "bad host hunter2", "PW": ""})
    assert "hunter2" not in message


def test_a_url_from_the_environment_is_not_repeated() -> None:
    text = MINIMAL.replace("amqp://rabbit", "'${URL}'")
    assert parse(text, {"URL": "amqp://u:p@h"}).upstreams[0].user == "u"
    assert "hunter2" not in refusal(text, {"URL": "amqp://u:hunter2@h:x"})


def test_numbers_that_bind_both_hops() -> None:
    assert parse(MINIMAL, {}).largest_frame == 131072
    assert parse(MINIMAL.replace("5672}", "5672, frameMax: 1Mi}"), {}).largest_frame == 1 << 20


class TestFlags:
    def test_common_case(self, folder: Path) -> None:
        settings = from_flags(
            "127.0.0.1:0",
            "amqps://u:p@h/%2f",
            policies=str(folder / "policies"),
            admin="127.0.0.1:0",
            log_format="json",
            log_level="error",
        )
        assert settings.listeners[0].bind == Address("127.0.0.1", 0)
        assert settings.upstreams[0].login() == Login("u", Secret("p"))
        assert settings.policies == folder / "policies"
        assert settings.admin is not None
        assert (settings.log.format, settings.log.level) == ("json", "error")
        assert from_flags("127.0.0.1:0", "amqp://h").admin is None
        probed = from_flags("127.0.0.1:0", "amqp://h", probes="0.0.0.0:15681").admin
        assert probed is not None
        assert (probed.probes, probed.bind.is_loopback) == (Address("0.0.0.0", 15681), True)

    @pytest.mark.parametrize(
        ("flags", "words"),
        [
            ({"listen": "nonsense"}, "--listen: expected host:port"),
            ({"upstream_url": "amqp://u:hunter2@h:x"}, "--upstream: the port is not a number"),
            ({"upstream_url": "amqp://u@h"}, "--upstream: a user needs password"),
            ({"policies": "/no/such"}, "--policies: no such folder: /no/such"),
            ({"admin": "0.0.0.0:1"}, "--admin: an admin address that other machines"),
            ({"probes": "x"}, "--probes: expected host:port"),
            ({"log_format": "xml"}, "--log-format: expected one of console, json"),
            ({"log_level": "warn"}, "--log-level: expected one of"),
            (
                {"listen": "0.0.0.0:1", "upstream_url": "amqp://u:hunter2@h"},
                "--listen: upstream 'default' logs in",
            ),
        ],
    )
    def test_errors_cite_the_flag(self, flags: dict[str, str], words: str) -> None:
        arguments = {"listen": "127.0.0.1:0", "upstream_url": "amqp://h", **flags}
        with pytest.raises(ConfigError) as caught:
            from_flags(**arguments)  # type: ignore[arg-type]
        assert str(caught.value).startswith(words)
        assert "hunter2" not in str(caught.value)

    def test_dollar_signs_are_the_shells_business(self) -> None:
        settings = from_flags("127.0.0.1:0", "amqp://u:${PW}@h")
        assert settings.upstreams[0].login() == Login("u", Secret("${PW}"))

    def test_anonymous(self) -> None:
        assert from_flags("0.0.0.0:1", "amqp://u:p@h", allow_anonymous=True).listeners[0].allow_anonymous


def test_the_committed_schema_is_current() -> None:
    committed = json.loads((ROOT / "spec/schema/config.json").read_text())
    assert committed == schema(), "python -m amqpgate.config --schema > spec/schema/config.json"


def accepts(text: str) -> bool:
    validator = jsonschema.Draft202012Validator(schema())
    return validator.is_valid(yaml.safe_load(text))


def test_the_schema_says_what_the_loader_says() -> None:
    jsonschema.Draft202012Validator.check_schema(schema())
    assert accepts(MINIMAL)
    assert accepts(FULL)
    assert accepts(MINIMAL.replace("5672}", "5672, frameMax: '${X}', allowAnonymous: '${Y}'}"))
    assert not accepts("listeners: []\nupstreams: []\n")
    for wrong in (
        "frameMax: 4095",
        "frameMax: 4k5",
        "proxyProtocol: v3",
        "allowAnonymous: 'yes'",
        "color: red",
    ):
        assert not accepts(MINIMAL.replace("5672}", f"5672, {wrong}}}")), wrong
    assert not accepts(MINIMAL.replace("127.0.0.1:5672", "127.0.0.1"))
    assert not accepts(MINIMAL.replace("amqp://rabbit", "http://rabbit"))


def test_every_key_is_described() -> None:
    rows = describe().splitlines()[2:]
    keys = [row.split("`")[1] for row in rows]
    assert {"listeners[].tls.requireClientCert", "upstreams[].passwordFile", "limits.bufferHigh"} <= set(keys)
    assert len(keys) == len(set(keys))
    for row in rows:
        cells = row.replace(" \\| ", " or ").strip("| ").split(" | ")
        assert len(cells) == 4, row
        assert len(cells[3]) >= 8, f"no meaning: {row}"

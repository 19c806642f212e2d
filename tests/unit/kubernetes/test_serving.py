"""The operator's admission webhook, asked over HTTPS as an API server asks it."""

from __future__ import annotations

import http.client
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio
import trustme

from amqpgate.kubernetes.serving import OperatorProcess, serve
from amqpgate.resources.settings import parse
from tests.support.api_server import ApiServer, api_server
from tests.support.ports import free_port
from tests.unit.resources.test_review import POLICY, policy, review

SETTINGS = """\
namespace: mq
bind: 127.0.0.1:0
server: {{url: '{server}'}}
webhook: {{bind: '127.0.0.1:{port}', tls: {{cert: tls.crt, key: tls.key}}}}
"""


@pytest.fixture
def ca(tmp_path: Path) -> trustme.CA:
    authority = trustme.CA()
    leaf = authority.issue_cert("127.0.0.1")
    leaf.private_key_pem.write_to_path(tmp_path / "tls.key")
    leaf.cert_chain_pems[0].write_to_path(tmp_path / "tls.crt")
    return authority


@asynccontextmanager
async def webhook(server: ApiServer, folder: Path, over: trio.Event) -> AsyncIterator[int]:
    port = free_port()
    text = SETTINGS.format(server=server.url, port=port)
    process = OperatorProcess.of(parse(text, {}, file=str(folder / "operator.yaml")), {})
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(serve, process, shutdown=over.wait))
        yield port
        over.set()


def asked(port: int, ca: trustme.CA, thing: object) -> dict[str, Any]:
    context = ssl.create_default_context()
    ca.configure_trust(context)
    connection = http.client.HTTPSConnection("127.0.0.1", port, timeout=20, context=context)
    try:
        headers = {"content-type": "application/json"}
        connection.request("POST", "/validate", json.dumps(review(thing)), headers)
        answer = connection.getresponse()
        assert answer.status == 200
        given: dict[str, Any] = json.loads(answer.read())
        return dict(given["response"])
    finally:
        connection.close()


async def test_it_answers_and_ends(ca: trustme.CA, tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    over = trio.Event()
    async with api_server() as server, webhook(server, tmp_path, over) as port:
        ask = partial(trio.to_thread.run_sync, asked, port, ca)
        assert (await ask(POLICY))["allowed"]
        told = await ask(policy(mod="enforce"))
        assert "did you mean 'mode'?" in told["status"]["message"]
        assert "mq/orders: not stored: Invalid" in caplog.text
    with pytest.raises(OSError, match="refused"):
        await ask(POLICY)


async def test_it_answers_while_the_api_server_is_away(ca: trustme.CA, tmp_path: Path) -> None:
    gone = ApiServer(url=f"http://127.0.0.1:{free_port()}")
    async with webhook(gone, tmp_path, trio.Event()) as port:
        assert (await trio.to_thread.run_sync(asked, port, ca, POLICY))["allowed"]

"""Who takes a running gateway's place: how it is found, and what is said to it."""

from __future__ import annotations

import socket
import threading
from pathlib import Path

import attrs
import pytest
import trio
import trustme

from amqpgate.admin.http import serve_admin
from amqpgate.app.wiring import build
from amqpgate.cli.failures import Failure
from amqpgate.cli.takeover import Takeover
from amqpgate.config import Settings, parse
from amqpgate.gateway.server.gateway import Gateway
from amqpgate.operator.single import SingleGateway
from tests.support.ports import free_port

SETTINGS = """
workers: 3
listeners: [{name: main, bind: "127.0.0.1:0"}]
upstreams: [{name: broker, host: 127.0.0.1}]
"""


def settings_of(folder: Path, more: str) -> Settings:
    return parse(f"{SETTINGS}admin: {{bind: '127.0.0.1:{free_port()}'{more}}}\n", {}, file=str(folder / "a"))


async def predecessor(settings: Settings, nursery: trio.Nursery) -> Gateway:
    """Not started; its admin interface ends when it is given up."""
    gateway = build(settings)

    async def serve(task_status: trio.TaskStatus[list[str]]) -> None:
        assert settings.admin is not None
        over = gateway.lifecycle.handed_over.wait
        await serve_admin(settings.admin, SingleGateway(gateway), shutdown=over, task_status=task_status)

    await nursery.start(serve)
    return gateway


def write_certificate(folder: Path) -> None:
    leaf = trustme.CA().issue_cert("gateway.example.org")
    leaf.private_key_pem.write_to_path(folder / "key")
    leaf.cert_chain_pems[0].write_to_path(folder / "cert")


@pytest.mark.parametrize("more", ["", ", tokenFile: token", ", tls: {cert: cert, key: key}"])
async def test_the_other_drains_and_gives_its_address_up(
    tmp_path: Path, nursery: trio.Nursery, more: str
) -> None:
    (tmp_path / "token").write_text("s3cret")
    write_certificate(tmp_path)
    settings = settings_of(tmp_path, more)
    gateway = await predecessor(settings, nursery)
    takeover = await trio.to_thread.run_sync(Takeover.find, settings)
    assert takeover is not None
    assert gateway.phase == "starting", "to look is not to take"
    nursery.start_soon(trio.to_thread.run_sync, takeover.take_over)
    await gateway.lifecycle.drained.wait()
    assert gateway.lifecycle._successors == 3
    gateway.lifecycle.closed.set()
    with trio.fail_after(20):
        await gateway.lifecycle.handed_over.wait()


async def test_another_certificate_is_another_gateway(tmp_path: Path, nursery: trio.Nursery) -> None:
    # It reads the files again when they change, so it has others.
    (tmp_path / "other").mkdir()
    for folder in (tmp_path, tmp_path / "other"):
        write_certificate(folder)
    settings = settings_of(tmp_path, ", tls: {cert: cert, key: key}")
    assert settings.admin is not None
    assert settings.admin.tls is not None
    tls = attrs.evolve(settings.admin.tls, cert=tmp_path / "other/cert", key=tmp_path / "other/key")
    await predecessor(attrs.evolve(settings, admin=attrs.evolve(settings.admin, tls=tls)), nursery)
    with pytest.raises(Failure, match="CERTIFICATE_VERIFY_FAILED"):
        await trio.to_thread.run_sync(Takeover.find, settings)


async def test_another_token_is_refused(tmp_path: Path, nursery: trio.Nursery) -> None:
    (tmp_path / "token").write_text("s3cret")
    settings = settings_of(tmp_path, ", tokenFile: token")
    gateway = await predecessor(settings, nursery)
    (tmp_path / "token").write_text("other")
    with pytest.raises(Failure, match="/lifecycle says 401"):
        await trio.to_thread.run_sync(Takeover.find, settings)
    assert gateway.phase == "starting"


def test_where_nobody_is(tmp_path: Path) -> None:
    assert Takeover.find(settings_of(tmp_path, "")) is None


def test_without_an_admin_address_nobody_can_be_asked() -> None:
    with pytest.raises(Failure, match="set it"):
        Takeover.find(parse(SETTINGS, {}))


def test_who_is_no_gateway_is_left_alone(tmp_path: Path) -> None:
    settings = settings_of(tmp_path, "")
    assert settings.admin is not None
    with socket.create_server((settings.admin.bind.host, settings.admin.bind.port)) as other:
        other.settimeout(20)

        def hang_up() -> None:
            # The first connection only looks whether somebody is there.
            other.accept()[0].close()
            other.accept()[0].close()

        thread = threading.Thread(target=hang_up)
        thread.start()
        with pytest.raises(Failure, match="no answer"):
            Takeover.find(settings)
        thread.join()

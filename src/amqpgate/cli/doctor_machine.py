"""What ``amqpgate doctor`` sees of this machine: data path, ports, certificates, limits, folders."""

from __future__ import annotations

import errno
import os
import shutil
import socket
import tempfile
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from amqpgate.app import descriptors
from amqpgate.cli.diagnosis import Diagnosis, bad, note, ok

if TYPE_CHECKING:
    from amqpgate.config import Address, Settings
    from amqpgate.yamldoc import FolderPath

#: Open files that are fewer than what is wanted by this factor stop a gateway at its first crowd.
FEW: Final = 10
#: Days before a certificate's end from which on it is told.
SOON: Final = 30
#: Bytes free below which a folder of records is short.
LITTLE_ROOM: Final = 1 << 30
_DAY: Final = 86400
_SYSTEM: Final = Path("/proc/sys")


def machine_of(settings: Settings) -> Iterator[Diagnosis]:
    """All that can be seen without asking anybody."""
    yield _data_path()
    for listener in settings.listeners:
        yield _port(f"listener {listener.name}", listener.bind)
        if listener.tls is not None:
            for file in (listener.tls.cert, *(further.cert for further in listener.tls.certificates)):
                yield certificate(f"listener {listener.name}: certificate", Path(file))
    if settings.admin is not None:
        yield _port("admin", settings.admin.bind)
        if settings.admin.tls is not None:
            yield certificate("admin: certificate", Path(settings.admin.tls.cert))
    for upstream in settings.upstreams:
        if upstream.tls is not None and upstream.tls.cert is not None:
            yield certificate(f"upstream {upstream.name}: own certificate", Path(upstream.tls.cert))
    yield _descriptors(settings)
    yield _backlog()
    yield _local_ports(settings)
    if settings.audit is not None and settings.audit.folder is not None:
        yield from _folder("audit", settings.audit.folder)


def _data_path() -> Diagnosis:
    from amqpgate.datapath.build import COMPILED

    if COMPILED:
        return ok("data path", "compiled")
    return note(
        "data path",
        "plain Python, which takes some ten times the CPU",
        "install a wheel, or a C compiler and Python's headers, and amqpgate again",
    )


def _port(what: str, address: Address) -> Diagnosis:
    """Whether it can be listened on. A port that is taken may be the gateway's own, while it runs."""
    name = f"{what} {address}"
    try:
        (family, kind, protocol, _, place), *_ = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except OSError as error:
        return bad(name, f"{error.strerror or error}", "write an address of this machine, or 0.0.0.0 for all")
    with socket.socket(family, kind, protocol) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(place)
        except OSError as error:
            if error.errno == errno.EADDRINUSE:
                return note(
                    name,
                    "taken",
                    f"by a gateway that runs already, or see: ss -ltnp 'sport = :{address.port}'",
                )
            if error.errno in (errno.EACCES, errno.EPERM):
                return bad(name, "not allowed", "use a port above 1023, or give CAP_NET_BIND_SERVICE")
            return bad(name, os.strerror(error.errno or 0), "this machine does not have that address")
    return ok(name, "free")


def certificate(what: str, file: Path) -> Diagnosis:
    """How long the first certificate of a file is good."""
    from amqpgate.gateway.transport.certificates import expiry

    try:
        return lasting(
            what, expiry(file.read_text("ascii")), f"renew {file}: it is read again when it changes"
        )
    except (OSError, ValueError) as error:
        return bad(what, str(error), f"put a certificate in PEM into {file}")


def lasting(what: str, until: float, remedy: str) -> Diagnosis:
    """``until``: seconds since 1970."""
    day = f"{datetime.fromtimestamp(until, UTC):%Y-%m-%d}"
    left = int((until - time.time()) // _DAY)
    if left < 0:
        return bad(what, f"expired on {day}", remedy)
    if left < SOON:
        return note(what, f"expires on {day}, in {left} days", remedy)
    return ok(what, f"good until {day}")


def _descriptors(settings: Settings) -> Diagnosis:
    wanted, most = descriptors.needed(settings), descriptors.allowed()
    if most is None or most >= wanted:
        allowed = "no limit" if most is None else f"{most} allowed"
        return ok("open files", f"{allowed}, {wanted} for limits.maxConnections")
    return (bad if most < wanted // FEW else note)(
        "open files",
        f"{most} at most; {settings.limits.max_connections} connections take {wanted}",
        f"LimitNOFILE={wanted} in the unit, or ulimit -n, or a lower limits.maxConnections",
    )


def _backlog() -> Diagnosis:
    allowed = _number("net/core/somaxconn")
    if allowed is None or allowed >= 1024:
        return ok("waiting connections", f"net.core.somaxconn is {allowed or 'not shown here'}")
    return note(
        "waiting connections",
        f"net.core.somaxconn is {allowed}: more that come at once are dropped and tried again a second later",
        "sysctl -w net.core.somaxconn=4096",
    )


def _local_ports(settings: Settings) -> Diagnosis:
    """Each session with a connection of its own takes a port towards its broker's address."""
    what = "ports towards brokers"
    try:
        first, last = map(int, (_SYSTEM / "net/ipv4/ip_local_port_range").read_text().split())
    except (OSError, ValueError):
        return ok(what, "net.ipv4.ip_local_port_range is not shown here")
    endpoints = max(len(upstream.places) for upstream in settings.upstreams)
    most = (last - first + 1) * endpoints
    if most >= settings.limits.max_connections:
        return ok(what, f"{most}, limits.maxConnections is {settings.limits.max_connections}")
    return note(
        what,
        f"{most}, fewer than limits.maxConnections {settings.limits.max_connections}",
        "sysctl -w net.ipv4.ip_local_port_range='10240 65535', more endpoints, or connections: pooled",
    )


def _number(name: str) -> int | None:
    try:
        return int((_SYSTEM / name).read_text())
    except (OSError, ValueError):
        return None


def _folder(what: str, folder: FolderPath) -> Iterator[Diagnosis]:
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".doctor-") as probe:
            probe.write(b"x")
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        remedy = (
            "make room there, or name another folder" if is_full else "let the gateway's user write there"
        )
        yield bad(f"{what} {folder}", f"cannot be written: {error.strerror}", remedy)
        return
    free = shutil.disk_usage(folder).free
    text = f"can be written, {free / (1 << 30):.1f} GiB free"
    if free < LITTLE_ROOM:
        yield note(
            f"{what} {folder}",
            text,
            "with a full disk publishers wait: make room, or run amqpgate audit compact",
        )
    else:
        yield ok(f"{what} {folder}", text)

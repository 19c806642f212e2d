"""Run the libraries' own acceptance tests directly and through the gateway, and compare.

    python -m tests.interop.acceptance [--suite pika] [--quick] [--pooled]

prints for every test how it ended on either way, then the sets in numbers and the difference. Exit code 1 if
a test that passes directly does not pass through the gateway; 3 if a suite could not be had.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path

import attrs
import trustme

from amqpgate.config.pooling import Connections
from tests.interop.upstream.docker_stand_in import DockerStandIn
from tests.interop.upstream.suites import SUITES, Address, Suite
from tests.support.environments import NotHere
from tests.support.gateway import Gateway
from tests.support.ports import free_port
from tests.support.rabbitmq import RabbitMQ

#: The gateway with a plain listener and one for TLS.
CONFIG = """
listeners:
  - name: plain
    bind: 127.0.0.1:{port}
  - name: tls
    bind: 127.0.0.1:%(tls)d
    tls: {cert: %(cert)s, key: %(key)s}
upstreams:
  - name: rabbitmq
    url: amqp://127.0.0.1:%(rabbitmq)d
    connections: %(connections)s
admin:
  bind: 127.0.0.1:{admin_port}
limits:
  drainTimeout: 2
"""


@attrs.frozen
class Comparison:
    """How one suite ended on either way."""

    suite: Suite
    direct: Mapping[str, str]
    gateway: Mapping[str, str]
    #: Passed through the gateway at the second attempt only, alone.
    second: frozenset[str]

    @property
    def passed_direct(self) -> set[str]:
        return {test for test, outcome in self.direct.items() if outcome == "passed"}

    @property
    def passed_gateway(self) -> set[str]:
        return {test for test, outcome in self.gateway.items() if outcome == "passed"} | self.second

    @property
    def lost(self) -> list[str]:
        """What passes directly and does not through the gateway."""
        return sorted(self.passed_direct - self.passed_gateway)

    def table(self) -> str:
        """Both sets, a line per test."""
        lines = [
            f"{self.direct.get(test, '-'):8} {self.gateway.get(test, '-'):8} {test}"
            for test in sorted(self.direct.keys() | self.gateway.keys())
        ]
        return "\n".join([f"{'direct':8} {'gateway':8} {self.suite.package} {self.suite.version}", *lines])

    def summary(self) -> str:
        """The sets in numbers, and the difference by name."""
        gained = sorted(self.passed_gateway - self.passed_direct)
        lines = [
            f"{self.suite.package} {self.suite.version}: {len(self.direct)} tests,"
            f" {len(self.passed_direct)} pass directly, {len(self.passed_gateway)} through the gateway",
            *(f"  passes directly only: {test}" for test in self.lost),
            *(f"  passes through the gateway only: {test}" for test in gained),
            *(f"  passed through the gateway at the second attempt: {test}" for test in sorted(self.second)),
        ]
        return "\n".join(lines)


@attrs.frozen
class Addresses:
    """Both ways to one RabbitMQ."""

    direct: Address
    gateway: Address
    #: Empties the virtual host: some tests find what they left there the time before, and fail.
    empty: Callable[[], None]


@contextlib.contextmanager
def addresses(connections: Connections = "own", settings: str = "") -> Iterator[Addresses]:
    """A RabbitMQ and a gateway before it, both with TLS, and a stand-in for Docker each.

    `settings` are further lines of the gateway's configuration.
    """
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="amqpgate-acceptance-")))
        ca, cert, key = certificates(folder)
        direct_tls, gateway_tls = free_port(), free_port()
        rabbitmq = RabbitMQ(
            config=[
                f"listeners.ssl.default = 127.0.0.1:{direct_tls}",
                f"ssl_options.cacertfile = {ca}",
                f"ssl_options.certfile = {cert}",
                f"ssl_options.keyfile = {key}",
                "ssl_options.verify = verify_none",
            ]
        )
        stack.callback(rabbitmq.destroy)
        rabbitmq.start()
        values = {"tls": gateway_tls, "cert": cert, "key": key, "rabbitmq": rabbitmq.port}
        values["connections"] = connections
        gateway = Gateway(config=CONFIG % values + settings)
        gateway.start()
        stack.callback(gateway.stop)

        yield Addresses(
            direct=_address(stack, rabbitmq.port, direct_tls, folder),
            gateway=_address(stack, gateway.port, gateway_tls, folder),
            empty=partial(rabbitmq.fresh_vhost, "/"),
        )


def certificates(folder: Path) -> tuple[Path, Path, Path]:
    """Certificates of an authority, a server and clients in `folder`; paths of the first two, and the key."""
    authority, other = trustme.CA(), trustme.CA()
    server = authority.issue_cert("localhost", "127.0.0.1")
    ca, cert, key = (folder / name for name in ("ca_certificate.pem", "server.pem", "server_key.pem"))
    authority.cert_pem.write_to_path(ca)
    server.cert_chain_pems[0].write_to_path(cert)
    server.private_key_pem.write_to_path(key)
    for issuer, suffix in ((authority, ""), (other, "_broken")):
        client = issuer.issue_cert("client")
        client.cert_chain_pems[0].write_to_path(folder / f"client_certificate{suffix}.pem")
        client.private_key_pem.write_to_path(folder / f"client_key{suffix}.pem")
    return ca, cert, key


def _address(stack: contextlib.ExitStack, plain: int, tls: int, folder: Path) -> Address:
    docker = DockerStandIn({"5672/tcp": plain, "5671/tcp": tls})
    stack.callback(docker.close)
    return Address(plain, tls, docker.url, folder)


def compare(suite: Suite, at: Addresses, *, quick: bool = False) -> Comparison:
    """Run `suite` both ways. What is lost gets a second chance alone: these tests measure time, too."""
    at.empty()
    direct = suite.run(at.direct, quick=quick)
    at.empty()
    gateway = suite.run(at.gateway, quick=quick)
    first = Comparison(suite, direct, gateway, frozenset())
    if not first.lost:
        return first
    at.empty()
    again = suite.run(at.gateway, only=first.lost)
    return attrs.evolve(first, second=frozenset(test for test in first.lost if again.get(test) == "passed"))


def main() -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--suite", action="append", choices=list(SUITES), help="only this one (default: all)")
    parser.add_argument("--quick", action="store_true", help="only what takes seconds")
    parser.add_argument("--pooled", action="store_true", help="through shared connections to the broker")
    options = parser.parse_args()
    lost = missing = 0
    with addresses("pooled" if options.pooled else "own") as at:
        for name in options.suite or SUITES:
            try:
                comparison = compare(SUITES[name], at, quick=options.quick)
            except NotHere as error:
                print(f"{name}: NOT RUN: {error}", file=sys.stderr)
                missing += 1
                continue
            print(comparison.table())
            print(comparison.summary(), flush=True)
            lost += len(comparison.lost)
    return 1 if lost else 3 if missing else 0


if __name__ == "__main__":
    sys.exit(main())

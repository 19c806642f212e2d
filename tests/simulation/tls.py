"""TLS of the models: OpenSSL on buffers in memory, between the network and a peer that knows nothing of it.

Keys are Ed25519's, whose signatures have one length: what is random is as long each time, so a story's pieces
are the same.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import ssl
from datetime import UTC, datetime
from pathlib import Path
from random import Random

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from tests.simulation.connection import Connection, Peer
from tests.simulation.ledger import Violation

_FROM, _UNTIL = datetime(2020, 1, 1, tzinfo=UTC), datetime(2049, 1, 1, tzinfo=UTC)
#: What the listener's certificate names, for clients.
GATEWAY = "gateway"
#: Bytes that are read at once.
_READ = 64 * 1024


class Papers:
    """An authority, the certificates that it has signed, and who shows which: files of a folder."""

    def __init__(self, folder: Path, brokers: list[str]) -> None:
        self.folder = folder
        self._numbers = 1 << 64
        self._written = 0
        self._authority = Ed25519PrivateKey.generate()
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "authority")])
        self.ca = self._write("ca.pem", self._sign(self._name, self._authority, is_authority=True))
        #: The listener's, in DER, that is to be shown; None: the key is not that of the certificate.
        self.shown: bytes | None = None
        self.begin_to_replace()
        self.finish()
        self.broker = self._server_context(brokers)

    # -- the gateway's -----------------------------------------------------------------------------

    @property
    def listener(self) -> str:
        """Of its settings."""
        return f"{{cert: {self.folder}/listener.pem, key: {self.folder}/listener.key}}"

    @property
    def upstream(self) -> str:
        """Likewise."""
        return f"{{ca: {self.ca}}}"

    def begin_to_replace(self) -> None:
        """The certificate is a new one, and the key not yet."""
        self._key = Ed25519PrivateKey.generate()
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, GATEWAY)])
        self._newest = self._sign(name, self._key, names=[x509.DNSName(GATEWAY)])
        self._write("listener.pem", self._newest)
        self.shown = None

    def finish(self) -> None:
        """The key is there."""
        self._write("listener.key", self._key)
        self.shown = self._newest.public_bytes(Encoding.DER)

    # -- the models' -------------------------------------------------------------------------------

    def client(self, random: Random) -> ssl.SSLContext:
        """Of a client's."""
        context = ssl.create_default_context(cafile=self.ca)
        if random.random() < 0.3:
            context.maximum_version = ssl.TLSVersion.TLSv1_2
        return context

    def _server_context(self, addresses: list[str]) -> ssl.SSLContext:
        key = Ed25519PrivateKey.generate()
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "broker")])
        certificate = self._sign(
            name, key, names=[x509.IPAddress(ipaddress.ip_address(one)) for one in addresses]
        )
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self._write("broker.pem", certificate), self._write("broker.key", key))
        return context

    def _sign(
        self,
        name: x509.Name,
        key: Ed25519PrivateKey,
        names: list[x509.GeneralName] | None = None,
        *,
        is_authority: bool = False,
    ) -> x509.Certificate:
        self._numbers += 1
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(self._numbers)
            .not_valid_before(_FROM)
            .not_valid_after(_UNTIL)
            .add_extension(x509.BasicConstraints(ca=is_authority, path_length=None), critical=True)
        )
        if names:
            builder = builder.add_extension(x509.SubjectAlternativeName(names), critical=False)
        return builder.sign(self._authority, None)

    def _write(self, name: str, what: x509.Certificate | Ed25519PrivateKey) -> str:
        if isinstance(what, x509.Certificate):
            data = what.public_bytes(Encoding.PEM)
        else:
            data = what.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        new = self.folder / f"{name}.new"
        new.write_bytes(data)
        # Within a tick of the kernel's clock two files that replace each other would look the same.
        self._written += 1
        os.utime(new, (self._written, self._written))
        return str(new.replace(self.folder / name))


class Secured:
    """The peer of a connection, and the line of a peer."""

    def __init__(self, peer: Peer, context: ssl.SSLContext, papers: Papers | None = None) -> None:
        """``papers``: a client's, which looks at what it is shown; None: a broker's."""
        self._peer, self._papers = peer, papers
        self._incoming, self._outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self._tls = context.wrap_bio(
            self._incoming,
            self._outgoing,
            server_side=papers is None,
            server_hostname=None if papers is None else GATEWAY,
        )
        self._connection: Connection | None = None
        #: What the peer says before there is TLS.
        self._waiting: list[bytes] | None = []
        #: What it has to be shown; None: the files did not fit, and the gateway goes on with what it has.
        self._due = papers.shown if papers is not None else None

    # -- as a peer ---------------------------------------------------------------------------------

    def connected(self, connection: Connection) -> None:
        """It stands, but for TLS."""
        self._connection = connection
        connection.is_secret = True
        self._peer.connected(self)
        self._go_on()

    def received(self, data: bytes) -> None:
        self._incoming.write(data)
        self._go_on()

    def ended(self, why: str) -> None:
        self._peer.ended(why)

    def _go_on(self) -> None:
        connection = self._connection
        assert connection is not None
        try:
            if self._waiting is not None:
                self._tls.do_handshake()
                self._look()
                waiting, self._waiting = self._waiting, None
                for data in waiting:
                    self._tls.write(data)
                self._flush()
            while not connection.is_over and (data := self._tls.read(_READ)):
                connection.network.told(data)
                self._peer.received(data)
        except (ssl.SSLWantReadError, ssl.SSLZeroReturnError):
            # Of the latter TCP's own end tells.
            pass
        except ssl.SSLError as error:
            raise Violation(f"connection {connection.number} of {connection.near}: {error}") from error
        self._flush()

    def _look(self) -> None:
        """A certificate that was replaced before the client came is shown to nobody."""
        due = self._due if self._papers is not None and self._papers.shown is self._due else None
        if due is not None and self._tls.getpeercert(binary_form=True) != due:
            raise Violation("a client was shown a certificate that had been replaced")

    def _flush(self) -> None:
        assert self._connection is not None
        self._connection.send(self._outgoing.read())

    # -- as the line of a peer ---------------------------------------------------------------------

    @property
    def number(self) -> int:
        return 0 if self._connection is None else self._connection.number

    def send(self, data: bytes) -> None:
        """Once there is TLS."""
        connection = self._connection
        assert connection is not None
        if connection.is_over or connection.peer_left or not data:
            return
        if self._waiting is not None:
            self._waiting.append(data)
            return
        # The other end may have said that it hears no more.
        with contextlib.suppress(ssl.SSLZeroReturnError):
            self._tls.write(data)
        self._flush()

    def close(self) -> None:
        """With ``close_notify``, or without, as many clients do."""
        connection = self._connection
        assert connection is not None
        if connection.peer_left or connection.is_over:
            return
        if self._waiting is None and connection.random.random() < 0.5:
            # What is raised waits for the other end's.
            with contextlib.suppress(ssl.SSLError):
                self._tls.unwrap()
            self._flush()
        connection.close()

    def reset(self) -> None:
        assert self._connection is not None
        self._connection.reset()

    def lose(self, *, inward: bool, outward: bool) -> None:
        assert self._connection is not None
        self._connection.lose(inward=inward, outward=outward)

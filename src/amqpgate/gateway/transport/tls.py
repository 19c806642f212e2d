"""TLS contexts, made once and made anew when their files change.

A listener's certificate is replaced without a restart: each new connection uses the files as they
are, and a broken replacement keeps the old ones and is reported.

Clients may go on with a TLS session that they had with a listener (RFC 8446, section 2.2). The keys of
its tickets are the context's, so it ends with the files that it was begun under, and with the process.
"""

from __future__ import annotations

import logging
import os
import socket
import ssl
import time
from collections.abc import Callable
from pathlib import Path

import attrs

from amqpgate.config import ListenerTls, UpstreamTls
from amqpgate.errors import ConfigError
from amqpgate.gateway.transport.certificates import expiry
from amqpgate.policy import TlsIdentity
from amqpgate.values import define, frozen

log = logging.getLogger(__name__)

_Stamp = tuple[tuple[int, int, int], ...]


@frozen
class _Loaded:
    context: ssl.SSLContext
    files: tuple[str, ...]
    stamp: _Stamp


@define
class TlsContexts:
    """The contexts of one gateway. Loading reads files: it happens when a connection arrives and a
    file has changed since, which is rare and takes under a millisecond."""

    _loaded: dict[ListenerTls | UpstreamTls, _Loaded] = attrs.field(factory=dict)
    #: Of the listeners' certificates that are in use: when they expire, by listener and file.
    _expiries: dict[ListenerTls, dict[Path, float]] = attrs.field(factory=dict)

    def for_listener(self, tls: ListenerTls) -> ssl.SSLContext:
        """Raises ``ConfigError`` where the files cannot be used and no older ones were."""
        known = self._loaded.get(tls)
        if known is not None and known.stamp == _stamp(known.files):
            return known.context
        files: list[Path | None] = [tls.cert, tls.key, tls.client_ca]
        for certificate in tls.certificates:
            files += [certificate.cert, certificate.key]
        return self._load(tls, files, lambda: self._server_context(tls))

    def expiries(self, tls: ListenerTls) -> dict[Path, float]:
        """When the certificates in use expire, in seconds since 1970. Raises as ``for_listener``."""
        self.for_listener(tls)
        return self._expiries[tls]

    def _server_context(self, tls: ListenerTls) -> ssl.SSLContext:
        context = _server_context(tls)
        expiries = self._expiries[tls] = {}
        for file in (tls.cert, *(certificate.cert for certificate in tls.certificates)):
            try:
                expiries[file] = expiry(file.read_text(errors="replace"))
            except ValueError as error:
                log.warning("when the certificate in %s expires cannot be told: %s", file, error)
        return context

    def for_upstream(self, tls: UpstreamTls) -> ssl.SSLContext:
        """Raises ``ConfigError`` likewise."""
        known = self._loaded.get(tls)
        if known is not None and known.stamp == _stamp(known.files):
            return known.context
        return self._load(tls, [tls.ca, tls.cert, tls.key], lambda: _client_context(tls))

    def _load(
        self,
        key: ListenerTls | UpstreamTls,
        given: list[Path | None],
        make: Callable[[], ssl.SSLContext],
    ) -> ssl.SSLContext:
        known = self._loaded.get(key)
        files = tuple([str(file) for file in given if file is not None])
        stamp = _stamp(files)
        try:
            context = make()
        except (OSError, ssl.SSLError) as error:
            message = _why_not(key, files, error)
            if known is None:
                raise ConfigError(message) from error
            log.error("%s; the certificates loaded before stay in use", message)
            self._loaded[key] = _Loaded(known.context, files, stamp)
            return known.context
        if known is not None:
            log.info("TLS certificates reloaded: %s", files[0] if files else "the system's")
        self._loaded[key] = _Loaded(context, files, stamp)
        return context


class _EncryptedKeyError(OSError):
    """Nobody is asked for a password: a gateway starts by itself."""


def _no_password() -> str:
    raise _EncryptedKeyError


def _why_not(tls: ListenerTls | UpstreamTls, files: tuple[str, ...], error: OSError) -> str:
    """Why its files cannot be loaded, and what helps. OpenSSL does not say which it means."""
    names = ", ".join(files)
    if isinstance(error, _EncryptedKeyError):
        return f"the private key is encrypted ({names}): write it without a password (openssl pkey)"
    if isinstance(error, ssl.SSLError) and error.reason == "KEY_VALUES_MISMATCH":
        return f"the private key is not that of the certificate ({names}): name two that fit"
    pairs = tls.certificates if isinstance(tls, ListenerTls) else ()
    authorities = tls.client_ca if isinstance(tls, ListenerTls) else tls.ca
    for file in (tls.cert, authorities, *(pair.cert for pair in pairs)):
        if _lacks(file, b"CERTIFICATE-----"):
            return f"no certificate in PEM is in {file}"
    for file in (tls.key, *(pair.key for pair in pairs)):
        if _lacks(file, b"PRIVATE KEY-----"):
            return f"no private key in PEM is in {file}"
    return f"TLS files cannot be loaded ({names}): {error}"


def _lacks(file: Path | None, word: bytes) -> bool:
    try:
        return file is not None and word not in file.read_bytes()
    except OSError:
        return False


def _stamp(files: tuple[str, ...]) -> _Stamp:
    stamps = []
    for file in files:
        try:
            stat = os.stat(file)
        except OSError:
            stamps.append((0, 0, 0))
        else:
            stamps.append((stat.st_ino, stat.st_mtime_ns, stat.st_size))
    return tuple(stamps)


def _server_context(tls: ListenerTls) -> ssl.SSLContext:
    context = _context_with(tls, tls.cert, tls.key)
    by_name = {
        name.lower(): _context_with(tls, certificate.cert, certificate.key)
        for certificate in tls.certificates
        for name in certificate.server_names
    }

    def choose(connection: ssl.SSLObject, name: str | None, _default: ssl.SSLContext) -> None:
        asked = (name or "").lower()
        chosen = by_name.get(asked) or by_name.get("*." + asked.partition(".")[2])
        if chosen is not None:
            connection.context = chosen

    if by_name:
        context.sni_callback = choose
    return context


def _context_with(tls: ListenerTls, cert: Path, key: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion[tls.min_version.replace(".", "_")]
    # OpenSSL gives two, for browsers, which open several connections at once. Each costs 33 us, a 14th of the
    # handshake (spec/decisions/0042-tls-sessions-and-the-kernel.md).
    context.num_tickets = 1
    context.load_cert_chain(cert, key, _no_password)
    if tls.client_ca is not None:
        context.load_verify_locations(tls.client_ca)
        context.verify_mode = ssl.CERT_REQUIRED if tls.require_client_cert else ssl.CERT_OPTIONAL
    return context


def _client_context(tls: UpstreamTls) -> ssl.SSLContext:
    context = ssl.create_default_context(cafile=None if tls.ca is None else str(tls.ca))
    if tls.cert is not None:
        context.load_cert_chain(tls.cert, tls.key, _no_password)
    if not tls.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def serve_tls(sock: socket.socket, context: ssl.SSLContext) -> ssl.SSLSocket:
    """A client's socket, whose TLS handshake is still to be done. Raises ``ssl.SSLError`` or ``OSError``."""
    return context.wrap_socket(
        sock, server_side=True, do_handshake_on_connect=False, suppress_ragged_eofs=False
    )


#: The short names of RFC 4514, section 3, by OpenSSL's long ones.
_SHORT = {
    "commonName": "CN",
    "localityName": "L",
    "stateOrProvinceName": "ST",
    "organizationName": "O",
    "organizationalUnitName": "OU",
    "countryName": "C",
    "streetAddress": "STREET",
    "domainComponent": "DC",
    "userId": "UID",
}
#: Kinds of alternative names, as Python's ``ssl`` calls them and as everybody else does.
_KINDS = {"DNS": "DNS", "URI": "URI", "email": "email", "IP Address": "IP"}


def identity(sock: ssl.SSLSocket) -> TlsIdentity | None:
    """The client's verified certificate; None where it showed none.

    Raises ``ssl.SSLCertVerificationError`` where it has expired since the session was begun that the client
    goes on with: OpenSSL verifies it in full handshakes alone, and gives a new ticket for each old one.
    """
    certificate = sock.getpeercert()
    if not certificate:
        return None
    if sock.session_reused and ssl.cert_time_to_seconds(str(certificate["notAfter"])) < time.time():
        raise ssl.SSLCertVerificationError("the certificate of a resumed session has expired")
    relatives = [[(str(pair[0]), str(pair[1])) for pair in relative] for relative in certificate["subject"]]
    names = [value for relative in relatives for key, value in relative if key == "commonName"]
    others = [(str(pair[0]), str(pair[1])) for pair in certificate.get("subjectAltName", ())]
    return TlsIdentity(
        ",".join("+".join(map(_rfc4514, relative)) for relative in reversed(relatives)),
        names[-1] if names else "",
        tuple([f"{_KINDS[kind]}:{value}" for kind, value in others if kind in _KINDS]),
    )


def _rfc4514(pair: tuple[str, str]) -> str:
    """One attribute of a subject (RFC 4514, section 2.4)."""
    key, value = pair
    text = "".join("\\" + letter if letter in '\\",+;<>' else letter for letter in value)
    if text[:1] in ("#", " "):
        text = "\\" + text
    if text.endswith(" ") and len(text) > 1:
        text = text[:-1] + "\\ "
    return f"{_SHORT.get(key, key)}={text}"

"""Certificates for tests."""

from __future__ import annotations

import ssl
from pathlib import Path

import attrs
import trustme


@attrs.frozen
class Papers:
    """An authority, and certificates of its in files."""

    ca: trustme.CA
    folder: Path

    def make(self, stem: str, *names: str, common_name: str | None = None) -> str:
        """A certificate; the YAML keys that name it."""
        issued = self.ca.issue_cert(*names, common_name=common_name)
        self.write(stem, issued)
        return f"cert: {stem}.pem, key: {stem}.key"

    def write(self, stem: str, issued: trustme.LeafCert) -> None:
        chain, key = self.folder / f"{stem}.pem", self.folder / f"{stem}.key"
        chain.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        key.write_bytes(issued.private_key_pem.bytes())

    def client_context(self, stem: str | None = None) -> ssl.SSLContext:
        """Trusts the authority, and shows the certificate `stem`."""
        context = ssl.create_default_context()
        self.ca.configure_trust(context)
        if stem is not None:
            context.load_cert_chain(self.folder / f"{stem}.pem", self.folder / f"{stem}.key")
        return context

    def server_context(self, stem: str) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.folder / f"{stem}.pem", self.folder / f"{stem}.key")
        return context

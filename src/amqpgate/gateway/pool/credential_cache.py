"""Which logins the broker has accepted lately, so that the next client with the same one need not ask it.

Decisions only: nothing here dials, and time is an argument (seconds of a clock that never goes back).

- A proof holds for ``pool.proofTtl`` from when the broker was asked, however often it is used: a password
  that is changed, or a user who is deleted, is found out by then. It says that a login is right, not what
  it may do.
- What is kept of a login is a digest: BLAKE2b, keyed with bytes that are drawn at the start and never
  leave the process. A slow hash would protect nothing here: who can read this memory reads the passwords
  themselves, which a pool keeps to dial its next connection. And it would cost: everybody who
  connects makes the gateway hash.
- A login that fails leaves no proof. It is counted by its source address, in a bucket of
  ``pool.failedLogins`` per ``pool.failedLoginsPeriod``; where that is empty, logins from there wait unless
  they are proven. Those that are under way at that moment are not held back, so a bucket may be in debt,
  which is paid first.
- All of it is bounded. Beyond the bounds the proof that was used longest ago is forgotten, and is proven
  anew; and the source that failed longest ago, which has its bucket full again.
"""

from __future__ import annotations

import hashlib
import os
from collections import OrderedDict
from ipaddress import IPv6Address, IPv6Network, ip_address
from typing import Final

import attrs

from amqpgate.config import Pooling
from amqpgate.datapath.scanner import Bucket
from amqpgate.protocol.sasl import Credentials
from amqpgate.values import define

#: Proofs, and sources that have failed, that are remembered: some 200 and 400 bytes each.
MOST_PROOFS: Final = 10_000
MOST_SOURCES: Final = 10_000


@define(eq=False)
class CredentialCache:
    """The logins of one upstream, in one process."""

    settings: Pooling
    _key: bytes = attrs.field(factory=lambda: os.urandom(32), init=False, repr=False)
    #: Until when each holds. The one used longest ago comes first.
    _proofs: OrderedDict[bytes, float] = attrs.field(factory=OrderedDict, init=False, repr=False)
    #: The source that failed longest ago comes first.
    _sources: OrderedDict[str, Bucket] = attrs.field(factory=OrderedDict, init=False)

    def digest(self, vhost: str, login: Credentials) -> bytes:
        """What stands for a login in the virtual host it opens: 32 bytes, others for every other one.

        It may be kept and compared, and names a pool.
        """
        digest = hashlib.blake2b(key=self._key, digest_size=32)
        for part in (vhost.encode(), login.user.encode(), login.password):
            # With its length: "a", "bc" is not "ab", "c".
            digest.update(len(part).to_bytes(8, "big") + part)
        return digest.digest()

    # -- what was right ----------------------------------------------------------------------

    def proven(self, digest: bytes, now: float) -> bool:
        """Whether the broker has accepted it, not too long ago."""
        if now >= self._proofs.get(digest, now):
            self._proofs.pop(digest, None)
            return False
        self._proofs.move_to_end(digest)
        return True

    def prove(self, digest: bytes, asked: float) -> None:
        """The broker has accepted it; ``asked`` is when it was asked, since when it may have changed."""
        self._proofs[digest] = asked + self.settings.proof_ttl
        self._proofs.move_to_end(digest)
        if len(self._proofs) > MOST_PROOFS:
            self._proofs.popitem(last=False)

    def forget(self, digest: bytes) -> None:
        """The broker has refused it, or closed a connection of that login."""
        self._proofs.pop(digest, None)

    # -- what was wrong ----------------------------------------------------------------------

    def wait(self, source: str, now: float) -> float:
        """Seconds until a login that is not proven may be tried from that address; 0: at once."""
        bucket = self._sources.get(_network(source))
        return 0.0 if bucket is None else bucket.ready_at(now) - now

    def failed(self, source: str, now: float) -> None:
        """The broker has refused a login from that address. That it was away is no failure."""
        key, most = _network(source), self.settings.failed_logins
        bucket = self._sources.get(key)
        if bucket is None:
            bucket = self._sources[key] = Bucket(most / self.settings.failed_logins_period, most)
        bucket.ready_at(now)
        bucket.take(1)
        self._sources.move_to_end(key)
        if len(self._sources) > MOST_SOURCES:
            self._sources.popitem(last=False)


def _network(source: str) -> str:
    """Who counts as one: an address, of IPv6 all that one subscriber has. What is no address is itself."""
    try:
        address = ip_address(source.strip("[]").partition("%")[0])
    except ValueError:
        return source
    if not isinstance(address, IPv6Address):
        return str(address)
    if address.ipv4_mapped is not None:
        return str(address.ipv4_mapped)
    return str(IPv6Network((address, 64), strict=False))

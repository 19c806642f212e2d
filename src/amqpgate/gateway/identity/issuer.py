"""An issuer of tokens, as the gateway knows it: its keys, and the tokens that it has verified lately.

::

    no keys ──── fetched ────▶ keys ──── `refresh` later, or a key is asked for that is not there ────┐
       ▲                        ▲ └─────────────────────── fetched again ◀────────────────────────────┘
       └── `keepKeys` is over ──┘   (not fetched: those from before hold)

One fetch at a time, and whoever asks meanwhile waits for it. Strangers can name any key: who asks for one
that is not there has the keys fetched once, and then, for a while, nobody has.
"""

from __future__ import annotations

import hashlib
import logging
import math
import os
import time
from collections import OrderedDict
from collections.abc import Callable
from pathlib import Path
from typing import Final

import attrs
import trio

from amqpgate.config import KeysUrl, OAuth
from amqpgate.gateway.identity.https import Authorities, FetchError, get
from amqpgate.gateway.identity.keys import MAX_SET, KeysError, KeySet
from amqpgate.gateway.identity.tokens import TokenError, VerifiedToken, read_object
from amqpgate.gateway.identity.verification import UnknownKeyError, verify

log = logging.getLogger(__name__)

#: Tokens that are remembered as verified, until they expire: some 1 KiB each.
MOST_VERIFIED: Final = 4096

#: Seconds from one fetch to the next that a token asks for.
PATIENCE: Final = 10.0

#: Seconds until keys that could not be fetched are tried again, twice as long each time, up to ``refresh``.
FIRST_RETRY: Final = 1.0


@attrs.define(eq=False)
class Issuer:
    """One issuer. Times are seconds of the clock that never goes back, but for those in tokens."""

    oauth: OAuth
    #: Told what has become of each token.
    count: Callable[[str], None]
    #: Told whether there are keys that hold.
    on_keys: Callable[[bool], None] = lambda _: None
    _keys: KeySet | None = attrs.field(default=None, init=False)
    #: When the keys were fetched, and until when a token's wish for others is not heard.
    _fetched: float = attrs.field(default=-math.inf, init=False)
    _deaf_until: float = attrs.field(default=-math.inf, init=False)
    #: A fetch that is under way.
    _fetching: trio.Event | None = attrs.field(default=None, init=False)
    _authorities: Authorities = attrs.field(init=False)
    #: By digest. The one used longest ago comes first.
    _verified: OrderedDict[bytes, VerifiedToken] = attrs.field(factory=OrderedDict, init=False, repr=False)
    #: What tokens are called here; nobody else can tell which token has which digest.
    _secret: bytes = attrs.field(factory=lambda: os.urandom(32), init=False, repr=False)

    def __attrs_post_init__(self) -> None:
        self._authorities = Authorities(self.oauth.ca)

    # -- tokens -------------------------------------------------------------------------------

    def verify_now(self, token: bytes) -> VerifiedToken | None:
        """Who bears the token; None: `verify` has to be asked, which waits. Raises `TokenError`."""
        if not self._holds:
            return None
        try:
            return self._verified_by_keys(token)
        except UnknownKeyError as error:
            if not self._is_deaf:
                return None
            self.count(error.outcome)
            raise
        except TokenError as error:
            self.count(error.outcome)
            raise

    async def verify(self, token: bytes) -> VerifiedToken:
        """Who bears the token, by keys that are fetched for it, if they may be. Raises `TokenError`."""
        found = self.verify_now(token)
        if found is not None:
            return found
        if self._fetching is not None or not self._is_deaf:
            if self._fetching is None:
                self._deaf_until = time.monotonic() + PATIENCE
            await self._fetch()
        try:
            if not self._holds:
                raise TokenError("unavailable", "the issuer's keys could not be fetched")
            return self._verified_by_keys(token)
        except TokenError as error:
            self.count(error.outcome)
            raise

    def _verified_by_keys(self, token: bytes) -> VerifiedToken:
        assert self._keys is not None, "they hold"
        digest = hashlib.blake2b(token, key=self._secret, digest_size=32).digest()
        now = time.time()
        found = self._verified.get(digest)
        if found is None or found.expires + self.oauth.clock_skew <= now:
            self._verified.pop(digest, None)
            found = self._verified[digest] = verify(token, self.oauth, self._keys, now)
            if len(self._verified) > MOST_VERIFIED:
                self._verified.popitem(last=False)
        self._verified.move_to_end(digest)
        self.count("verified")
        return found

    # -- keys ---------------------------------------------------------------------------------

    async def run(self) -> None:
        """For ever: fetch the keys, again and again."""
        pause = FIRST_RETRY
        while True:
            if await self._fetch():
                pause = FIRST_RETRY
                await trio.sleep(self.oauth.refresh)
            else:
                await trio.sleep(pause)
                pause = min(2 * pause, self.oauth.refresh)

    @property
    def _is_deaf(self) -> bool:
        return time.monotonic() < self._deaf_until

    @property
    def _age(self) -> float:
        return time.monotonic() - self._fetched

    @property
    def _holds(self) -> bool:
        """Whether there are keys that hold."""
        return self._age < self.oauth.keep_keys

    async def _fetch(self) -> bool:
        """Fetch the keys, or wait until somebody else has: whether there are keys that hold."""
        if self._fetching is not None:
            await self._fetching.wait()
        else:
            self._fetching = trio.Event()
            try:
                await self._read()
            finally:
                self._fetching.set()
                self._fetching = None
        self.on_keys(self._holds)
        return self._age < self.oauth.refresh

    async def fetched(self) -> KeySet:
        """The keys that the issuer has now; nothing of them is kept. Raises `FetchError`, `KeysError`."""
        return KeySet.read(await self._document())

    async def _read(self) -> None:
        try:
            keys = await self.fetched()
        except (FetchError, KeysError) as error:
            held = self.oauth.keep_keys - self._age
            if held > 0:
                log.warning(
                    "keys of issuer %s: %s; those from before hold for %d s", self.oauth.issuer, error, held
                )
            else:
                log.error("keys of issuer %s: %s; no token is taken", self.oauth.issuer, error)
            return
        before, self._keys = self._keys, keys
        self._fetched = time.monotonic()
        if before is None or before.digest != keys.digest:
            # What was signed by a key that is gone is not taken any more.
            self._verified.clear()
            log.info("issuer %s has %d keys for signatures", self.oauth.issuer, len(keys.keys))

    async def _document(self) -> bytes:
        oauth = self.oauth
        if oauth.jwks_file is not None:
            return await trio.to_thread.run_sync(_read_file, oauth.jwks_file)
        url = oauth.jwks
        if url is None:
            url = _keys_url(await self._get(oauth.discovery), oauth)
        return await self._get(url)

    async def _get(self, url: KeysUrl) -> bytes:
        return await get(url, self._authorities, within=self.oauth.timeout, most=MAX_SET)


def _read_file(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(MAX_SET + 1)
    except OSError as error:
        raise KeysError(f"{path}: cannot be read: {error.strerror}") from None


def _keys_url(data: bytes, oauth: OAuth) -> KeysUrl:
    """Where an issuer says that its keys are (OpenID Connect Discovery 1.0, section 4.3)."""
    try:
        said = read_object(data, "discovery")
    except TokenError:
        raise KeysError(f"{oauth.discovery}: no JSON object") from None
    if said.get("issuer") != oauth.issuer:
        raise KeysError(f"{oauth.discovery}: tells of another issuer")
    url = said.get("jwks_uri")
    if not isinstance(url, str):
        raise KeysError(f"{oauth.discovery}: has no jwks_uri")
    try:
        return KeysUrl.parse(url)
    except ValueError as error:
        raise KeysError(f"{oauth.discovery}: jwks_uri: {error}") from None

"""Whether ``amqpgate doctor`` finds the keys of those who issue tokens."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import attrs
import trio

from amqpgate.cli.diagnosis import Diagnosis, bad, milliseconds, ok
from amqpgate.yamldoc import Seconds

if TYPE_CHECKING:
    from amqpgate.config import OAuth, Settings


def issuers_of(settings: Settings, timeout: float) -> Iterator[Diagnosis]:
    """Each one once, however many listeners take his tokens; ``timeout``, in seconds, is for each answer."""
    for oauth in dict.fromkeys(filter(None, map(settings.oauth_of, settings.listeners))):
        yield trio.run(_issuer, attrs.evolve(oauth, timeout=Seconds(timeout)))


async def _issuer(oauth: OAuth) -> Diagnosis:
    """Asked as the gateway does."""
    from amqpgate.gateway.identity.https import FetchError
    from amqpgate.gateway.identity.issuer import Issuer
    from amqpgate.gateway.identity.keys import KeysError

    what, began = f"issuer {oauth.issuer}", time.monotonic()
    try:
        keys = await Issuer(oauth, lambda _: None).fetched()
    except (FetchError, KeysError) as error:
        named = "jwks" if oauth.jwks is not None else "issuer"
        where = "jwksFile" if oauth.jwks_file is not None else f"{named}, ca"
        return bad(
            what, str(error), f"start it, or correct identity.oauth: {where}; until then no token is taken"
        )
    return ok(what, f"keys for signatures: {len(keys.keys)}, in {milliseconds(began)}")

"""An issuer's keys: fetched, kept, changed, and missing."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path

import attrs
import pytest
import trio
import trio.testing

from amqpgate.config import KeysUrl, OAuth
from amqpgate.gateway.identity import issuer as module
from amqpgate.gateway.identity.issuer import MOST_VERIFIED, PATIENCE, Issuer
from amqpgate.gateway.identity.keys import KeysError
from amqpgate.gateway.identity.tokens import TokenError
from amqpgate.yamldoc import FilePath
from tests.support.tokens import AUDIENCE, ISSUER, claims, jwk, key_for, key_set, token
from tests.unit.gateway.identity.keys_server import KeysServer, answer, keys_server

OLD, NEW = jwk(key_for("ES256"), "old"), jwk(key_for("EdDSA"), "new")


@attrs.define
class Clock:
    """Both clocks of the module."""

    now: float = 1_800_000_000.0

    def monotonic(self) -> float:
        return self.now

    def time(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(module, "time", clock)
    return clock


@pytest.fixture
async def server() -> AsyncIterator[KeysServer]:
    async with keys_server() as server:
        server.answers["/jwks"] = answer(key_set(OLD))
        yield server


def issuer_at(server: KeysServer, counts: list[str] | None = None) -> Issuer:
    url = KeysUrl.parse(server.url("/jwks"))
    oauth = OAuth(issuer=ISSUER, audience=(AUDIENCE,), jwks=url)
    return Issuer(oauth, nobody if counts is None else counts.append)


def nobody(_outcome: str) -> None:
    """Is told."""


def old(clock: Clock, **more: object) -> bytes:
    return token(claims(clock.now, **more), key_id="old")


def new(clock: Clock) -> bytes:
    return token(claims(clock.now), algorithm="EdDSA", key_id="new")


async def refused(issuer: Issuer, data: bytes) -> str:
    with pytest.raises(TokenError) as raised:
        await issuer.verify(data)
    return raised.value.outcome


async def test_keys_come_with_the_first_token(server: KeysServer, clock: Clock) -> None:
    counts: list[str] = []
    issuer = issuer_at(server, counts)
    assert issuer.verify_now(old(clock)) is None
    assert (await issuer.verify(old(clock))).user == "bob"
    found = issuer.verify_now(old(clock))
    assert found is not None
    assert server.asked == ["/jwks"]
    assert counts == ["verified", "verified"]


async def test_one_fetch_for_all_who_wait(server: KeysServer, clock: Clock) -> None:
    issuer, server.gate = issuer_at(server), trio.Event()
    users: list[str] = []

    async def log_in() -> None:
        users.append((await issuer.verify(old(clock))).user)

    async with trio.open_nursery() as nursery:
        for _ in range(5):
            nursery.start_soon(log_in)
        await trio.testing.wait_all_tasks_blocked(0.01)
        server.gate.set()
    assert users == ["bob"] * 5
    assert server.asked == ["/jwks"]


async def test_a_new_key_is_fetched_once(server: KeysServer, clock: Clock) -> None:
    issuer = issuer_at(server)
    await issuer.verify(old(clock))
    clock.now += PATIENCE
    server.answers["/jwks"] = answer(key_set(OLD, NEW))
    assert (await issuer.verify(new(clock))).user == "bob"
    assert len(server.asked) == 2


async def test_strangers_do_not_have_keys_fetched_at_will(server: KeysServer, clock: Clock) -> None:
    issuer = issuer_at(server)
    await issuer.verify(old(clock))
    clock.now += PATIENCE
    for _ in range(20):
        assert await refused(issuer, new(clock)) == "key"
    assert len(server.asked) == 2
    clock.now += PATIENCE
    assert await refused(issuer, new(clock)) == "key"
    assert len(server.asked) == 3


async def test_what_a_key_signed_that_is_gone_is_not_taken(server: KeysServer, clock: Clock) -> None:
    issuer = issuer_at(server)
    data = old(clock)
    await issuer.verify(data)
    clock.now += PATIENCE
    server.answers["/jwks"] = answer(key_set(NEW))
    await issuer.verify(new(clock))
    assert await refused(issuer, data) == "key"


async def test_keys_hold_for_a_while_where_they_cannot_be_fetched(server: KeysServer, clock: Clock) -> None:
    issuer = issuer_at(server)
    data = old(clock, exp=clock.now + 10_000)
    await issuer.verify(data)
    server.answers["/jwks"] = answer(b"", "503 Away")
    clock.now += issuer.oauth.keep_keys - 1
    assert (await issuer.verify(data)).user == "bob"
    clock.now += 1
    assert await refused(issuer, data) == "unavailable"
    # And what is not fetched is not asked for with every login.
    asked = len(server.asked)
    assert await refused(issuer, data) == "unavailable"
    assert len(server.asked) == asked
    clock.now += PATIENCE
    server.answers["/jwks"] = answer(key_set(OLD))
    assert (await issuer.verify(data)).user == "bob"


async def test_nobody_is_taken_without_keys(server: KeysServer, clock: Clock) -> None:
    server.answers["/jwks"] = answer(b"{}")
    assert await refused(issuer_at(server), old(clock)) == "unavailable"


async def test_what_was_verified_is_remembered_until_it_expires(server: KeysServer, clock: Clock) -> None:
    issuer = issuer_at(server)
    data = old(clock)
    await issuer.verify(data)
    clock.now += 60 + issuer.oauth.clock_skew - 1
    assert issuer.verify_now(data) is not None
    clock.now += 1
    with pytest.raises(TokenError) as raised:
        issuer.verify_now(data)
    assert raised.value.outcome == "expired"
    assert not issuer._verified


async def test_what_is_remembered_is_bounded(
    server: KeysServer, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert MOST_VERIFIED < 10_000
    monkeypatch.setattr(module, "MOST_VERIFIED", 3)
    issuer = issuer_at(server)
    for number in range(5):
        await issuer.verify(old(clock, jti=str(number)))
    assert len(issuer._verified) == 3
    assert not any(part in repr(issuer) for part in old(clock, jti="4").decode().split("."))


async def test_discovery(server: KeysServer, clock: Clock) -> None:
    name = server.url("")
    found = "/.well-known/openid-configuration"
    server.answers[found] = answer(json.dumps({"issuer": name, "jwks_uri": server.url("/jwks")}).encode())
    issuer = Issuer(OAuth(issuer=name, audience=(AUDIENCE,)), nobody)
    assert (await issuer.verify(old(clock, iss=name))).user == "bob"
    assert server.asked == [found, "/jwks"]


@pytest.mark.parametrize(
    "said",
    [
        b"[]",
        b'{"issuer": "https://other.example.org", "jwks_uri": "ISSUER/jwks"}',
        b'{"issuer": "ISSUER/", "jwks_uri": "ISSUER/jwks"}',
        b'{"issuer": "ISSUER"}',
        b'{"issuer": "ISSUER", "jwks_uri": 1}',
        b'{"issuer": "ISSUER", "jwks_uri": "http://keys.example.org/"}',
        b'{"issuer": "ISSUER", "jwks_uri": "file:///etc/passwd"}',
    ],
)
async def test_a_discovery_that_is_not_followed(server: KeysServer, clock: Clock, said: bytes) -> None:
    name = server.url("")
    server.answers["/.well-known/openid-configuration"] = answer(said.replace(b"ISSUER", name.encode()))
    issuer = Issuer(OAuth(issuer=name, audience=(AUDIENCE,)), nobody)
    assert await refused(issuer, old(clock, iss=name)) == "unavailable"


async def test_keys_in_a_file(tmp_path: Path, clock: Clock) -> None:
    file = tmp_path / "keys.json"
    file.write_bytes(key_set(OLD))
    issuer = Issuer(
        attrs.evolve(OAuth(issuer=ISSUER, audience=(AUDIENCE,)), jwks_file=FilePath(file)), nobody
    )
    assert (await issuer.verify(old(clock))).user == "bob"
    file.write_bytes(key_set(NEW))
    clock.now += PATIENCE
    assert (await issuer.verify(new(clock))).user == "bob"
    file.unlink()
    clock.now += issuer.oauth.keep_keys
    assert await refused(issuer, new(clock)) == "unavailable"


async def test_keys_are_fetched_again_and_again(
    server: KeysServer, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By time alone: at first, after ``refresh``, and sooner where they could not be had."""
    reads: list[float] = []

    async def document(_self: Issuer) -> bytes:
        reads.append(trio.current_time())
        if len(reads) in (2, 3, 4):
            raise KeysError("away")
        return key_set(OLD)

    monkeypatch.setattr(Issuer, "_document", document)
    monkeypatch.setattr(module, "time", _TriosTime())
    holds: list[bool] = []
    issuer = attrs.evolve(issuer_at(server), on_keys=holds.append)
    with trio.move_on_after(700):
        await issuer.run()
    assert [at - reads[0] for at in reads] == [0, 300, 301, 303, 307, 607]
    assert holds == [True] * 6


class _TriosTime:
    def monotonic(self) -> float:
        return trio.current_time()

    def time(self) -> float:
        return 1_800_000_000.0

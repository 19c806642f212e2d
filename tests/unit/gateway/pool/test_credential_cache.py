"""Which logins need not be asked again, and who waits after failures. No clock runs here."""

from __future__ import annotations

import pytest

from amqpgate.config import Pooling
from amqpgate.gateway.pool import credential_cache as module
from amqpgate.gateway.pool.credential_cache import CredentialCache
from amqpgate.protocol.sasl import Credentials, amqplain_response, credentials, plain_response
from amqpgate.yamldoc import Seconds

BOB = Credentials("bob", b"secret")


@pytest.fixture
def proofs() -> CredentialCache:
    return CredentialCache(
        Pooling(proof_ttl=Seconds(300), failed_logins=10, failed_logins_period=Seconds(1)),
    )


def test_each_login_has_a_digest_of_its_own(proofs: CredentialCache) -> None:
    logins = [
        ("/", BOB),
        ("v", BOB),
        ("", Credentials("/bob", b"secret")),
        ("/bob", Credentials("secret", b"")),
        ("/", Credentials("bobs", b"ecret")),
        ("/", Credentials("bo", b"bsecret")),
        ("/", Credentials("bob", b"secret2")),
        ("/", Credentials("bob", b"")),
        ("/", Credentials("bob", b"secret\0")),
        ("/", Credentials("bob", b"\xff\xfe")),
    ]
    digests = {proofs.digest(vhost, login) for vhost, login in logins}
    assert len(digests) == len(logins)
    assert {len(digest) for digest in digests} == {32}
    assert proofs.digest("/", Credentials("bob", b"secret")) == proofs.digest("/", BOB)


def test_the_mechanism_does_not_matter(proofs: CredentialCache) -> None:
    plain = credentials("PLAIN", plain_response("bob", "secret"))
    amqplain = credentials("AMQPLAIN", amqplain_response("bob", "secret"))
    assert plain is not None
    assert amqplain is not None
    assert proofs.digest("/", plain) == proofs.digest("/", amqplain)


def test_digests_mean_nothing_elsewhere_and_nothing_is_shown(proofs: CredentialCache) -> None:
    digest = proofs.digest("/", BOB)
    assert CredentialCache(proofs.settings).digest("/", BOB) != digest
    proofs.prove(digest, 0.0)
    assert repr(proofs._key) not in repr(proofs)
    assert repr(digest) not in repr(proofs)


def test_a_proof_holds_for_its_time_however_often_it_is_used(proofs: CredentialCache) -> None:
    digest = proofs.digest("/", BOB)
    assert not proofs.proven(digest, 0.0)
    proofs.prove(digest, 0.0)
    assert all(proofs.proven(digest, float(now)) for now in range(300))
    assert not proofs.proven(digest, 300.0)
    assert not proofs._proofs
    proofs.prove(digest, 310.0)
    assert proofs.proven(digest, 609.9)
    assert not proofs.proven(proofs.digest("v", BOB), 400.0)


def test_what_was_refused_is_not_proven_any_more(proofs: CredentialCache) -> None:
    digest = proofs.digest("/", BOB)
    proofs.prove(digest, 0.0)
    proofs.forget(digest)
    proofs.forget(digest)
    assert not proofs.proven(digest, 0.0)


def test_without_a_time_each_login_is_asked() -> None:
    proofs = CredentialCache(Pooling(proof_ttl=Seconds(0)))
    digest = proofs.digest("/", BOB)
    proofs.prove(digest, 5.0)
    assert not proofs.proven(digest, 5.0)


def test_proofs_are_bounded_and_those_in_use_stay(
    proofs: CredentialCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_PROOFS", 3)
    one, *more = [proofs.digest(str(number), BOB) for number in range(6)]
    proofs.prove(one, 0.0)
    for digest in more:
        proofs.prove(digest, 0.0)
        assert proofs.proven(one, 1.0)
        assert len(proofs._proofs) <= 3
    assert [proofs.proven(digest, 1.0) for digest in more] == [False, False, False, True, True]


# -- failures ------------------------------------------------------------------------------------------------


def fail(proofs: CredentialCache, times: int, source: str = "10.0.0.7", now: float = 100.0) -> float:
    """How long the source waits after so many."""
    for _ in range(times):
        proofs.failed(source, now)
    return proofs.wait(source, now)


def test_so_many_fail_at_once_and_then_one_at_a_time(proofs: CredentialCache) -> None:
    assert proofs.wait("10.0.0.7", 100.0) == 0
    assert fail(proofs, 9) == 0
    assert fail(proofs, 1) == pytest.approx(0.1)
    assert proofs.wait("10.0.0.7", 100.1) == 0
    assert fail(proofs, 1, now=100.1) == pytest.approx(0.1)
    # Nobody else is meant, and after the whole period all is as before.
    assert proofs.wait("10.0.0.8", 100.1) == 0
    assert fail(proofs, 9, now=101.2) == 0


def test_those_under_way_are_paid_for_first(proofs: CredentialCache) -> None:
    """Over time no more fail than the settings say, whatever comes at once."""
    assert fail(proofs, 510) == pytest.approx(50.1)
    assert proofs.wait("10.0.0.7", 120.0) == pytest.approx(30.1)
    assert proofs.wait("10.0.0.7", 150.2) == 0


@pytest.mark.parametrize("rate", [(1, 1), (3, 60), (10, 1)])
def test_who_waits_as_long_as_told_fails_no_more_often_than_the_rate(rate: tuple[int, int]) -> None:
    most, period = rate
    proofs = CredentialCache(Pooling(failed_logins=most, failed_logins_period=Seconds(period)))
    now = start = 1000.0
    for _ in range(21 * most):
        # A nanosecond for what floating point loses.
        now += proofs.wait("h", now) + 1e-9
        proofs.failed("h", now)
    # The last token may be spent when it is not whole yet.
    assert 20 * period - period / most <= now - start <= 20 * period + 1e-6


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("10.0.0.7", "10.0.0.8", False),
        ("2001:db8::1", "2001:db8::ffff:2", True),
        ("[2001:db8::1]", "2001:db8::2", True),
        ("2001:db8::1", "2001:db8:0:1::1", False),
        ("fe80::1%eth0", "fe80::2%eth1", True),
        ("::ffff:10.0.0.7", "10.0.0.7", True),
        ("::ffff:10.0.0.7", "::ffff:10.0.0.8", False),
        ("somewhere", "somewhere", True),
        ("somewhere", "", False),
    ],
)
def test_who_counts_as_one_source(proofs: CredentialCache, one: str, other: str, same: bool) -> None:
    assert fail(proofs, 10, one) > 0
    assert (proofs.wait(other, 100.0) > 0) is same


def test_sources_are_bounded_and_only_failures_are_remembered(
    proofs: CredentialCache, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_SOURCES", 3)
    for number in range(9):
        proofs.wait(f"10.0.1.{number}", 100.0)
    assert not proofs._sources
    fail(proofs, 20)
    for number in range(9):
        fail(proofs, 1, f"10.0.1.{number}")
        fail(proofs, 1)
        assert len(proofs._sources) <= 3
    # Who goes on failing is not forgotten for those who fail once.
    assert proofs.wait("10.0.0.7", 100.0) > 0
    fail(proofs, 20, "10.0.2.0")
    for number in range(3):
        fail(proofs, 1, f"10.0.3.{number}")
    assert proofs.wait("10.0.2.0", 100.0) == 0

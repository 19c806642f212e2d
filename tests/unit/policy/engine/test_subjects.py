"""Whom a policy is about."""

from __future__ import annotations

import attrs
import pytest

from amqpgate.policy import Principal, TlsIdentity, TokenIdentity
from tests.unit.policy.build_set import document, policies

WHO = Principal(
    user="bob",
    vhost="prod",
    source="10.1.2.3",
    listener="inside",
    tls=TlsIdentity(
        "CN=orders,O=Corp",
        "orders",
        ("DNS:orders.corp", "URI:spiffe://corp/ns/prod/orders", "IP:10.1.2.3"),
    ),
    client={"product": "pika", "version": "1.3"},
)


def selected(subject: str, principal: Principal = WHO) -> bool:
    return not policies(document(subjects=subject)).for_principal(principal).unrestricted


@pytest.mark.parametrize(
    ("subject", "fits"),
    [
        ("{sourceCIDR: [10.0.0.0/8]}", True),
        ("{sourceCIDR: [192.168.0.0/16, 10.1.2.3]}", True),
        ("{sourceCIDR: [10.1.2.4/32]}", False),
        ("{sourceCIDR: ['::/0']}", False),
        ("{listeners: [inside]}", True),
        ("{listeners: ['in*', outside]}", True),
        ("{listeners: [outside]}", False),
        ("{tls: {subject: 'CN=orders,O=Corp'}}", True),
        ("{tls: {subject: 'CN=orders*'}}", True),
        ("{tls: {subject: 'O=Corp'}}", False),
        ("{tls: {commonName: orders}}", True),
        ("{tls: {san: 'DNS:orders.corp'}}", True),
        ("{tls: {san: 'DNS:corp'}}", False),
        ("{tls: {spiffe: 'spiffe://corp/ns/prod/*'}}", True),
        ("{tls: {spiffe: 'spiffe://corp/ns/test/*'}}", False),
        ("{tls: {commonName: orders, san: 'DNS:x'}}", False),
        ("{client: {product: 'pik*'}}", True),
        ("{client: {product: pika, version: '2*'}}", False),
        ("{client: {platform: '*'}}", False),
        ("{user: bob, sourceCIDR: [10.0.0.0/8], client: {product: pika}}", True),
        ("{user: al, sourceCIDR: [10.0.0.0/8], client: {product: pika}}", False),
    ],
)
def test_all_that_is_said_must_hold(subject: str, fits: bool) -> None:
    assert selected(subject) is fits


@pytest.mark.parametrize(
    ("source", "fits"),
    [
        ("::ffff:10.1.2.3", True),
        ("[::ffff:10.1.2.3]", True),
        ("fe80::1%eth0", False),
        ("", False),
        (None, False),
    ],
)
def test_addresses_as_sockets_write_them(source: str | None, fits: bool) -> None:
    assert selected("{sourceCIDR: [10.0.0.0/8]}", attrs.evolve(WHO, source=source)) is fits


def test_who_shows_no_certificate_fits_none() -> None:
    assert not selected("{tls: {commonName: '*'}}", attrs.evolve(WHO, tls=None))


def test_a_certificate_with_two_spiffe_ids_has_none() -> None:
    """The standard allows one (SPIFFE X.509-SVID, section 2)."""
    two = TlsIdentity("CN=x", "x", ("URI:spiffe://a/b", "URI:spiffe://a/c"))
    assert two.spiffe is None
    assert not selected("{tls: {spiffe: 'spiffe://a/*'}}", attrs.evolve(WHO, tls=two))


TOKEN = TokenIdentity(frozenset({"orders.read", "openid"}), (("roles", ("a", "b")), ("unit", ("x",))))


@pytest.mark.parametrize(
    ("subject", "fits"),
    [
        ("{scopes: [orders.read]}", True),
        ("{scopes: [orders.write, 'open*']}", True),
        ("{scopes: [orders.write]}", False),
        ("{claims: {unit: x}}", True),
        ("{claims: {roles: b}}", True),
        ("{claims: {unit: x, roles: c}}", False),
        ("{claims: {other: '*'}}", False),
        ("{scopes: ['*'], claims: {roles: 'a*'}, user: bob}", True),
        ("{scopes: ['*'], user: al}", False),
    ],
)
def test_what_a_verified_token_says(subject: str, fits: bool) -> None:
    assert selected(subject, attrs.evolve(WHO, token=TOKEN)) is fits
    # Who has shown none, or none that was verified, fits no such subject, known or not.
    assert not selected(subject)
    assert not selected(subject, attrs.evolve(WHO, user=None))

"""PROXY headers as a load balancer writes them."""

from __future__ import annotations

from ipaddress import IPv4Address, IPv6Address, ip_address

from amqpgate.protocol.proxy_header import (
    _LOCAL,
    _PROXY,
    _TCP4,
    _TCP6,
    _UNSPECIFIED,
    _V2_FIXED,
    _V4,
    _V6,
    V1_PREFIX,
    V2_SIGNATURE,
    PeerAddress,
)


def encode_v1(source: PeerAddress | None, destination: PeerAddress | None) -> bytes:
    """A version 1 header; UNKNOWN unless both ends are given. :class:`ValueError` for mixed families."""
    ends = _ends(source, destination)
    if ends is None or source is None or destination is None:
        return V1_PREFIX + b"UNKNOWN\r\n"
    family = "TCP4" if ends[0].version == 4 else "TCP6"
    return V1_PREFIX + f"{family} {ends[0]} {ends[1]} {source.port} {destination.port}\r\n".encode("ascii")


def encode_v2(source: PeerAddress | None, destination: PeerAddress | None, tlvs: bytes = b"") -> bytes:
    """A version 2 header; LOCAL unless both ends are given. :class:`ValueError` for mixed families."""
    ends = _ends(source, destination)
    if ends is None or source is None or destination is None:
        return _V2_FIXED.pack(V2_SIGNATURE, _LOCAL, _UNSPECIFIED, len(tlvs)) + tlvs
    layout, family = (_V4, _TCP4) if ends[0].version == 4 else (_V6, _TCP6)
    rest = layout.pack(ends[0].packed, ends[1].packed, source.port, destination.port) + tlvs
    return _V2_FIXED.pack(V2_SIGNATURE, _PROXY, family, len(rest)) + rest


_Ip = IPv4Address | IPv6Address


def _ends(source: PeerAddress | None, destination: PeerAddress | None) -> tuple[_Ip, _Ip] | None:
    if source is None or destination is None:
        return None
    # By way of the bytes, which have no scope ("%eth0").
    ends = ip_address(ip_address(source.host).packed), ip_address(ip_address(destination.host).packed)
    if ends[0].version != ends[1].version:
        raise ValueError("both ends must be of one address family")
    return ends

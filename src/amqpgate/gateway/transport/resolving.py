"""Names are looked up in threads of their own, each once at a time, whoever asks.

The system's resolver may take ten seconds and more for a name whose servers are gone, and trio has 40
threads. The clients of such a broker had all of them: whoever went to another broker, and what a reload or a
proof of a password needs a thread for, stood behind them (decision 0097).
"""

from __future__ import annotations

import socket
from socket import AddressFamily, SocketKind
from typing import Final, Literal

import attrs
import trio

from amqpgate.gateway.transport.translation import anew
from amqpgate.values import define

#: Lookups at once: more than a gateway's settings have names.
_THREADS: Final = 100

#: What is asked: host, port, family, kind, protocol, flags.
_Question = tuple[bytes | None, bytes | str | int | None, int, int, int, int]
#: As trio has it.
_Address = (
    tuple[Literal[AddressFamily.AF_INET], SocketKind, int, str, tuple[str, int]]
    | tuple[
        Literal[AddressFamily.AF_INET6], SocketKind, int, str, tuple[str, int, int, int] | tuple[int, bytes]
    ]
)


@define(eq=False)
class _Lookup:
    """One that is under way, or over."""

    _over: trio.Event = attrs.field(factory=trio.Event, init=False)
    _addresses: list[_Address] = attrs.field(factory=list, init=False)
    _error: Exception | None = attrs.field(default=None, init=False)

    async def run(self, question: _Question, threads: trio.CapacityLimiter) -> None:
        """Look it up, in a thread."""
        try:
            self._addresses = await trio.to_thread.run_sync(
                socket.getaddrinfo, *question, abandon_on_cancel=True, limiter=threads
            )
        except Exception as error:
            self._error = error
        finally:
            self._over.set()

    async def answer(self) -> list[_Address]:
        """What was found, once it is. Raises what was raised, an error for each who asks."""
        await self._over.wait()
        if self._error is not None:
            raise anew(self._error)
        return self._addresses


class SharedLookups(trio.abc.HostnameResolver):
    """For ``trio.socket.set_custom_hostname_resolver``: who asks what is being looked up waits for that.

    Who is cancelled leaves it to the others. Raises what ``socket.getaddrinfo`` does.
    """

    def __init__(self) -> None:
        self._under_way: dict[_Question, _Lookup] = {}
        self._threads = trio.CapacityLimiter(_THREADS)

    async def getaddrinfo(
        self,
        host: bytes | None,
        port: bytes | str | int | None,
        family: int = 0,
        type: int = 0,  # noqa: A002 - trio's name
        proto: int = 0,
        flags: int = 0,
    ) -> list[_Address]:
        question = (host, port, family, type, proto, flags)
        lookup = self._under_way.get(question)
        if lookup is None:
            lookup = self._under_way[question] = _Lookup()
            trio.lowlevel.spawn_system_task(self._look_up, question, lookup)
        return await lookup.answer()

    async def getnameinfo(
        self, sockaddr: tuple[str, int] | tuple[str, int, int, int], flags: int
    ) -> tuple[str, str]:
        return await trio.to_thread.run_sync(
            socket.getnameinfo, sockaddr, flags, abandon_on_cancel=True, limiter=self._threads
        )

    async def _look_up(self, question: _Question, lookup: _Lookup) -> None:
        try:
            await lookup.run(question, self._threads)
        finally:
            del self._under_way[question]

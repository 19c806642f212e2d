"""Frames on their way to a client: in order, or as a scenario wants them."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Final

import attrs
import trio

#: A consumer gets nothing more while so many bytes wait.
FULL: Final = 1 << 20

#: So many bytes of a connection are cut into segments; the rest goes as it is.
_MOST_CUT: Final = 20_000


@attrs.define(eq=False)
class ServedOutbox:
    """One connection's. Frames of a channel stay in order, whatever `is_mixed` does to those of others."""

    stream: trio.abc.Stream
    #: Called whenever nothing waits any more.
    drained: Callable[[], None]
    #: Whether channels with frames that wait take turns.
    is_mixed: bool = False
    #: Bytes in a segment; 0: as many as there are.
    segment: int = 0
    #: Whether frames of two channels were ever mixed.
    was_mixed: bool = False
    size: int = 0
    _waiting: deque[tuple[int, bytes]] = attrs.field(factory=deque)
    _wanted: trio.Event = attrs.field(factory=trio.Event)
    _is_ended: bool = False
    _is_held: bool = False
    _to_cut: int = _MOST_CUT

    def put(self, channel: int, *frames: bytes) -> None:
        """Frames of one channel."""
        for one in frames:
            self._waiting.append((channel, one))
            self.size += len(one)
        if not self._is_held:
            self._wanted.set()

    def hold(self) -> None:
        """Send nothing for now."""
        self._is_held = True

    def release(self) -> None:
        """Send all that was held, in one piece if it fits."""
        self._is_held = False
        self._wanted.set()

    def end(self) -> None:
        """Send what waits, and end the stream then."""
        self._is_ended = True
        self.release()

    async def run(self) -> None:
        """Sends until it is ended; whoever has hung up is not told."""
        with suppress(trio.BrokenResourceError, trio.ClosedResourceError):
            while not self._is_ended or self._waiting:
                await self._wanted.wait()
                self._wanted = trio.Event()
                if not self._is_held:
                    for part in self._parts():
                        await self.stream.send_all(part)
                    self.drained()
            await self.stream.aclose()

    def _parts(self) -> Iterator[bytes]:
        data = b"".join(self._mixed() if self.is_mixed else (one for _, one in self._waiting))
        self._waiting.clear()
        self.size = 0
        cut = min(self._to_cut, len(data)) if self.segment else 0
        self._to_cut -= cut
        for start in range(0, cut, self.segment or 1):
            yield data[start : min(start + self.segment, cut)]
        if data[cut:]:
            yield data[cut:]

    def _mixed(self) -> Iterator[bytes]:
        by_channel: dict[int, deque[bytes]] = {}
        for channel, one in self._waiting:
            by_channel.setdefault(channel, deque()).append(one)
        self.was_mixed |= sum(len(frames) > 1 for frames in by_channel.values()) > 1
        while by_channel:
            for channel in list(by_channel):
                yield by_channel[channel].popleft()
                if not by_channel[channel]:
                    del by_channel[channel]

"""Keys of `amqpgate top`, one after another.

Terminals send many at once: what is pasted, what waited on a slow line. Textual hands all of them to whoever
has the focus when they come. Here the next is handed on when the one before has done what it does, with the
focus where it leads: behind ``/`` all of ``c*`` is text of the filter.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque

from textual.app import App
from textual.events import Event, Key, Paste
from textual.message_pump import MessagePump

#: Seconds after which a key is taken for done, whatever it still does.
_PATIENCE = 5.0


class OrderedKeys(App[None]):
    """An app whose keys wait for each other."""

    def __init__(self) -> None:
        super().__init__()
        self._held_keys: deque[Event] = deque()
        self._is_handing_on = False

    async def on_event(self, event: Event) -> None:
        """Keys wait for their turn; what comes back from those who had the focus does not."""
        if not isinstance(event, Key | Paste) or event.is_forwarded:
            await super().on_event(event)
            return
        self._held_keys.append(event)
        if not self._is_handing_on:
            self._is_handing_on = True
            self.run_worker(self._hand_on())

    async def _hand_on(self) -> None:
        try:
            while self._held_keys:
                focused = self.focused or self.screen
                await super().on_event(self._held_keys.popleft())
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(_PATIENCE):
                        # It goes up from there to the app, which does it; a screen that opens gets ready.
                        for pump in (*focused.ancestors_with_self, self):
                            await _caught_up(pump)
                        await _caught_up(self.screen)
        finally:
            self._is_handing_on = False


async def _caught_up(pump: MessagePump) -> None:
    """Wait until it has dealt with all it was sent so far, if it still deals with anything."""
    done = asyncio.Event()
    if pump.call_later(done.set):
        await done.wait()

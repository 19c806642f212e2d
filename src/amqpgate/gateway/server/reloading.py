"""Policies that are read again while sessions go on: at a signal, by an admin's call, or when files change.

Whatever the cause: the folder is read and checked as a whole, off the main thread; what is right takes the
place of what was in force at once; what is wrong changes nothing, and is told in the log, the metrics and the
admin interface until something right is read.

A folder that changes is read once it has looked the same twice. Editors write in several steps, and a
mounted ConfigMap is swapped by its links: what is compared is where they lead (`policy.loader.stamp`).
"""

from __future__ import annotations

import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final

import attrs
import trio

from amqpgate.errors import ConfigError
from amqpgate.gateway.server.policy_state import PolicyState
from amqpgate.gateway.session.policy_compiling import PolicyCompiler
from amqpgate.policy import PolicySet, load_folder
from amqpgate.policy.kinds.common import DefaultAccess
from amqpgate.policy.loader import Stamp, stamp
from amqpgate.telemetry.policies import PolicyMetrics
from amqpgate.values import define

log = logging.getLogger(__name__)

#: Seconds between two looks at the folder; and more where a look takes long: so many times as long as it
#: took, up to the last.
_EVERY: Final = 1.0
_REST: Final = 100
_LONGEST: Final = 30.0


@define(eq=False)
class Reloading:
    """Reads one gateway's policies again."""

    #: None: there are no policies, and there is nothing to read.
    folder: Path | None
    #: Puts other policies in the place of those in force.
    use: Callable[[PolicySet], Awaitable[None]]
    metrics: PolicyMetrics
    state: PolicyState
    #: How the folder looked before it was read last.
    seen: Stamp | None = None
    #: What becomes of sessions that no access policy selects.
    default_access: DefaultAccess = "allow"
    #: Raises ``ConfigError`` where they do not fit the settings.
    check: Callable[[PolicySet], None] = lambda _: None
    #: What to say of them in the log.
    notes: Callable[[PolicySet], Sequence[str]] = lambda _: ()
    #: Told of the state after each reading that found something else, or something wrong.
    on_read: Callable[[PolicyState], None] = lambda _: None
    #: Where they are read.
    compiling: PolicyCompiler = attrs.field(factory=PolicyCompiler)
    _lock: trio.Lock = attrs.field(factory=trio.Lock, init=False)

    async def reload(self) -> PolicyState:
        """Read them now. One at a time; the answer is about a reading that began after the call."""
        async with self._lock:
            return await self._reload(only_changes=False)

    async def watch(self) -> None:
        """Read them whenever their files have changed."""
        if self.folder is None:
            return
        changed: Stamp | None = None
        pause = _EVERY
        while True:
            await trio.sleep(pause)
            began = time.perf_counter()
            now = await trio.to_thread.run_sync(stamp, self.folder)
            pause = max(_EVERY, min(_LONGEST, _REST * (time.perf_counter() - began)))
            async with self._lock:
                if now == self.seen:
                    changed = None
                elif now != changed:
                    changed = now
                else:
                    changed = None
                    await self._reload(only_changes=True)

    async def _reload(self, *, only_changes: bool) -> PolicyState:
        if self.folder is None:
            log.warning("policies not reloaded: the settings name no folder of policies")
            self.state = attrs.evolve(self.state, status="nothing", error="no folder of policies is set")
            return self.state
        try:
            read = partial(_read, self.folder, self.default_access, self.check)
            seen, policies = await self.compiling.run(read)
        except _NotReadError as wrong:
            self.seen = wrong.seen
            self._refused(wrong.why)
            return self.state
        self.seen = seen
        if only_changes and policies.digest == self.state.digest and self.state.status != "refused":
            log.debug("policies: files were touched, and say the same")
            return self.state
        try:
            await self.use(policies)
        except Exception as error:
            log.exception("policies could not be put in force")
            self._refused(error)
            return self.state
        self.state = PolicyState("done", policies.digest, time.time())
        self.metrics.reloaded(True)
        self.on_read(self.state)
        for note in self.notes(policies):
            log.warning("%s", note)
        log.info("policies reloaded, digest sha256:%s", policies.digest[:16])
        return self.state

    def _refused(self, error: Exception) -> None:
        if isinstance(error, ConfigError):
            told, file, line, column = error.message, error.file, error.line, error.column
        else:
            # A defect of the gateway's; it must not cost the sessions that go on.
            told, file, line, column = f"amqpgate failed: {error!r}; see its log", None, None, None
        log.error("policies not reloaded, those from before stay in force: %s", error)
        self.state = attrs.evolve(
            self.state, status="refused", error=told, file=file, line=line, column=column
        )
        self.metrics.reloaded(False)
        self.on_read(self.state)


class _NotReadError(Exception):
    """What is in the folder cannot be used."""

    def __init__(self, seen: Stamp, why: Exception) -> None:
        super().__init__(str(why))
        self.seen = seen
        self.why = why


def _read(
    folder: Path, default_access: DefaultAccess, check: Callable[[PolicySet], None]
) -> tuple[Stamp, PolicySet]:
    # First the look, then the reading: what changes in between is seen as a change later.
    seen = stamp(folder)
    try:
        policies = load_folder(folder, default_access)
        check(policies)
        return seen, policies
    except Exception as error:
        if not isinstance(error, ConfigError):
            log.exception("policies could not be read")
        raise _NotReadError(seen, error) from error

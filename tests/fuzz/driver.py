"""One target in one process, until it is stopped: coverage-guided with atheris, by plain mutation without.

``python -m tests.fuzz.driver TARGET WORK SECONDS``: ``WORK`` is a folder with the growing corpus. Whatever
the target raises is made smaller and kept as a crash, one input for each place where it is raised; then the
run goes on. The input under way lies in a file that the parent reads should the process die or hang.
"""

from __future__ import annotations

import contextlib
import mmap
import random
import resource
import struct
import sys
import time
import traceback
from pathlib import Path

from tests.fuzz.mutation import mutated, smaller

#: Bytes of address space that a target may take.
MEMORY = 6 << 30
#: Whose coverage does not guide: generated code, which takes long to prepare.
UNSEEN = ["amqpgate.wire.generated"]
_HEAD = struct.Struct("<QQI")


class Slot:
    """The input under way and what was done, in a file that both the target's process and its parent see."""

    ROOM = 1 << 20

    def __init__(self, path: Path) -> None:
        if not path.exists() or path.stat().st_size != self.ROOM:
            path.write_bytes(bytes(self.ROOM))
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), self.ROOM)

    def begin(self, data: bytes) -> None:
        """It is about to be checked."""
        done, found, _ = _HEAD.unpack_from(self._map)
        self._map[_HEAD.size : _HEAD.size + len(data)] = data
        _HEAD.pack_into(self._map, 0, done + 1, found, len(data))

    def found(self) -> None:
        """It has failed."""
        done, found, size = _HEAD.unpack_from(self._map)
        _HEAD.pack_into(self._map, 0, done, found + 1, size)

    @property
    def counts(self) -> tuple[int, int]:
        """Executions, and those that failed."""
        done, found, _ = _HEAD.unpack_from(self._map)
        return done, found

    @property
    def data(self) -> bytes:
        """The input that was begun last."""
        size = _HEAD.unpack_from(self._map)[2]
        return self._map[_HEAD.size : _HEAD.size + size]


def place_of(error: BaseException) -> str:
    """What was raised, and where: the innermost line of the gateway, or of the target."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    frames = traceback.extract_tb(error.__traceback__)
    ours = [frame for frame in frames if "amqpgate" in frame.filename or "/fuzz/" in frame.filename]
    inside = [frame for frame in ours if "/src/amqpgate/" in frame.filename]
    frame = (inside or ours or frames or [None])[-1]
    where = "nowhere" if frame is None else f"{Path(frame.filename).stem}-{frame.lineno}"
    return f"{type(error).__name__}-{where}"


def quoted(word: bytes) -> str:
    """A line of libFuzzer's dictionaries."""
    return '"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n'


def main() -> None:
    """Run the target that the command line names."""
    name, work, seconds = sys.argv[1], Path(sys.argv[2]), float(sys.argv[3])
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    slot = Slot(work / "slot")
    try:
        import atheris
    except ImportError:
        atheris = None  # type: ignore[assignment]
    from tests.fuzz import store

    name, _, engine = name.partition("@")
    if engine:
        store.use_plain_engine()
    with contextlib.ExitStack() as stack:
        if atheris is not None:
            stack.enter_context(atheris.instrument_imports(include=["amqpgate"], exclude=UNSEEN))
        target = store.load(name)
    places: set[str] = set()

    def fails(data: bytes) -> str | None:
        try:
            target.check(data)
        except (Exception, BaseExceptionGroup) as error:
            return place_of(error)
        return None

    def one(data: bytes) -> None:
        slot.begin(data)
        try:
            target.check(data)
        except (Exception, BaseExceptionGroup) as error:
            slot.found()
            place = place_of(error)
            if place in places:
                return
            places.add(place)
            told = "".join(traceback.format_exception(error))
            least = smaller(data, lambda other: fails(other) == place)
            store.put(store.CRASHES / name, least, place)
            (work / f"{place}.txt").write_text(f"{least.hex()}\n\n{told}")

    corpus = work / "corpus"
    for data in (*target.seeds(), *store.inputs(store.CORPUS / name)):
        store.put(corpus, data[: target.MOST])
    if atheris is not None:
        words = work / "words"
        words.write_text("".join(map(quoted, target.TOKENS)))
        arguments = [
            sys.argv[0],
            f"-max_total_time={int(seconds)}",
            f"-max_len={target.MOST}",
            f"-dict={words}",
            # The parent has an eye on that: this one would end the process.
            "-timeout=100000",
            f"-artifact_prefix={work}/",
            "-rss_limit_mb=0",
            "-print_final_stats=1",
            "-verbosity=0",
            str(corpus),
        ]
        atheris.Setup(arguments, one)
        atheris.Fuzz()
        return
    chance = random.Random()
    inputs = store.inputs(corpus)
    for data in inputs:
        one(data)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        one(mutated(chance, inputs, target.TOKENS, target.MOST))


if __name__ == "__main__":
    main()

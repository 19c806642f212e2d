"""The reserve, in processes of their own: their address space is bounded, and what is there is asked for."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from amqpgate.datapath import reserve
from amqpgate.datapath.build import COMPILED

pytestmark = pytest.mark.skipif(not COMPILED, reason="the plain data path has no reserve")

BEGINNING = """
import ctypes, resource, threading
from amqpgate.datapath import reserve

raw = ctypes.CDLL(None)
for name in ("Malloc", "Calloc", "Realloc", "Free"):
    function = getattr(raw, "PyMem_Raw" + name)
    function.restype = None if name == "Free" else ctypes.c_void_p
malloc = raw.PyMem_RawMalloc
def calloc(count, size):
    return raw.PyMem_RawCalloc(ctypes.c_size_t(count), ctypes.c_size_t(size))
def realloc(piece, size):
    return raw.PyMem_RawRealloc(ctypes.c_void_p(piece), ctypes.c_size_t(size))
def free(piece):
    raw.PyMem_RawFree(ctypes.c_void_p(piece))
def read(piece, size):
    return ctypes.string_at(piece, size)

KIB = 1024
held = []

def exhaust():
    # What glibc has left is used up, the largest pieces first.
    size = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size, resource.RLIM_INFINITY))
    for size in (1024 * KIB, 65 * KIB, 64 * KIB, 16 * KIB, 4 * KIB, KIB):
        used = reserve.in_use()
        while piece := malloc(ctypes.c_size_t(size)):
            if reserve.in_use() - used >= size:
                free(piece)
                break
            held.append(piece)
            used = reserve.in_use()

def relieve():
    resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    while held:
        free(held.pop())

"""


def play(scene: str, **environment: str) -> None:
    script = BEGINNING + textwrap.dedent(scene)
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={"PYTHONPATH": ":".join(sys.path)} | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_little_is_there_where_much_is_not() -> None:
    play("""
    assert reserve.install() and reserve.install()
    exhaust()
    assert malloc(ctypes.c_size_t(64 * KIB + 1)) is None
    piece = malloc(ctypes.c_size_t(64 * KIB))
    assert piece and reserve.in_use() >= 64 * KIB
    free(piece)
    # Python's own: lists, dicts, objects, frames of calls one in another.
    def deep(count):
        return [object()] if not count else [*deep(count - 1), {}]
    for _ in range(3):
        assert len(deep(800)) == 801
    assert reserve.numbers()[3] == 0
    relieve()
    """)


def test_what_is_in_it_is_kept() -> None:
    play("""
    reserve.install()
    outside = malloc(ctypes.c_size_t(3000))
    ctypes.memmove(outside, b"o" * 3000, 3000)
    exhaust()
    before = reserve.in_use()
    inside = realloc(outside, 40 * KIB)
    assert read(inside, 3000) == b"o" * 3000
    assert reserve.in_use() - before == 64 * KIB
    ctypes.memmove(inside, b"i" * (40 * KIB), 40 * KIB)
    assert realloc(inside, 64 * KIB) == inside
    assert realloc(inside, 65 * KIB) is None
    assert read(inside, 40 * KIB) == b"i" * (40 * KIB)
    for size in (1, 32, 33, 5000):
        used = calloc(1, size)
        ctypes.memset(used, 255, size)
        free(used)
        assert read(calloc(1, size), size) == bytes(size)
    assert calloc(1 << 40, 1 << 40) is None
    relieve()
    assert read(moved := realloc(inside, 1024 * KIB), 40 * KIB) == b"i" * (40 * KIB)
    free(moved)
    """)


def test_it_is_short_until_there_is_memory_again() -> None:
    play("""
    reserve.install()
    assert not reserve.is_short()
    exhaust()
    pieces = [malloc(ctypes.c_size_t(KIB)) for _ in range(reserve.SHORT // KIB)]
    assert reserve.is_short()
    relieve()
    # Some of it is in use for long, and nothing is short.
    assert reserve.in_use() >= reserve.SHORT and not reserve.is_short()
    for piece in pieces:
        free(piece)
    assert reserve.in_use() < reserve.SHORT
    """)


def test_what_comes_back_is_for_any_size() -> None:
    """100 of its 128 chunks at a time."""
    play("""
    reserve.install()
    exhaust()
    for size, count in ((64 * KIB, 100), (3000, 1600), (100, 3000), (64 * KIB, 100)):
        pieces = [malloc(ctypes.c_size_t(size)) for _ in range(count)]
        assert None not in pieces
        pieces.sort()
        assert all(pieces[i] + size <= pieces[i + 1] for i in range(count - 1))
        for piece in pieces:
            free(piece)
        del pieces
    assert reserve.numbers()[3] == 0
    relieve()
    """)


def test_it_has_an_end() -> None:
    """Then Python itself lacks memory."""
    play("""
    reserve.install()
    exhaust()
    try:
        while piece := malloc(ctypes.c_size_t(4 * KIB)):
            held.append(piece)
    except MemoryError:
        pass
    relieve()
    assert reserve.numbers()[3] > 0
    # Some list of free pieces has all of them.
    assert reserve.in_use() < 64 * KIB
    exhaust()
    assert malloc(ctypes.c_size_t(64 * KIB))
    relieve()
    """)


def test_several_threads_at_once() -> None:
    # A thread has free memory of its own, from glibc, unless all share it.
    play(
        """
    reserve.install()
    begin = threading.Barrier(5)
    faults = []
    def work(number):
        begin.wait()
        for turn in range(400):
            pieces = []
            for size in (40, 700, 9000):
                piece = malloc(ctypes.c_size_t(size))
                ctypes.memset(piece, number, size)
                pieces.append((piece, size))
            for piece, size in pieces:
                if read(piece, size) != bytes([number]) * size:
                    faults.append(number)
                free(piece)
    threads = [threading.Thread(target=work, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    exhaust()
    begin.wait()
    for thread in threads:
        thread.join()
    assert faults == []
    assert reserve.numbers()[2] > 1000
    relieve()
    """,
        MALLOC_ARENA_MAX="1",
    )


@pytest.mark.parametrize(("allocator", "is_there"), [("malloc", True), ("debug", False), ("pymalloc", True)])
def test_other_allocators(allocator: str, *, is_there: bool) -> None:
    play(
        f"""
    assert reserve.install() is {is_there}
    things = [bytes(count) for count in range(3000)]
    assert [len(thing) for thing in things] == list(range(3000))
    del things
    assert reserve.numbers() == (0, 0, 0, 0)
    """,
        PYTHONMALLOC=allocator,
    )


def test_under_tracemalloc_there_is_none() -> None:
    """It puts back what was there before it, when it stops."""
    play("""
    import tracemalloc
    tracemalloc.start()
    assert not reserve.install()
    tracemalloc.stop()
    assert reserve.install()
    tracemalloc.start()
    tracemalloc.stop()
    exhaust()
    assert malloc(ctypes.c_size_t(KIB))
    relieve()
    """)


def test_trio_goes_on() -> None:
    play("""
    import trio
    reserve.install()
    async def main():
        exhaust()
        for _ in range(3):
            with trio.move_on_after(0.01):
                async with trio.open_nursery() as nursery:
                    for _ in range(1000):
                        nursery.start_soon(trio.sleep_forever)
        relieve()
    trio.run(main)
    assert reserve.numbers()[1] > 256 * KIB
    """)


def test_nobody_has_it_who_has_not_asked() -> None:
    assert (reserve.numbers(), reserve.is_short()) == ((0, 0, 0, 0), False)

"""How the cost of `amqpgate audit usage` grows, up to a billion records that are compacted part by part.

    python -m tests.bench.growth  # 10 to 1,000 million; 30 GB of disk, and an hour of two cores
    python -m tests.bench.growth --millions 1,2 --part 1  # does it work?

Records are made a part at a time, one day per million, and compacted into one table, as a job does every
night; then the raw files of the part go. The next part is made meanwhile. At each size each engine is asked
once, and the answers have to be the same. The table is kept: a later run goes on with it.
"""

from __future__ import annotations

import argparse
import filecmp
import multiprocessing
import shutil
import sys
import time
from datetime import timedelta
from pathlib import Path

from tests.bench.pipeline import MASTER, MILLION, Cost, run
from tests.support.audit_records import START, Traffic, write

_SIZES = "10,50,100,200,500,1000"


def make_part(folder: Path, begin: int, end: int) -> None:
    """The days from one million to another, as gateways roll files."""
    traffic = Traffic(services=200, keys=50)
    for day in range(begin, end):
        table = traffic.usage(MILLION, first=day * MILLION, start=START + timedelta(days=day))
        write(folder, "usage", table, gateway=f"gate-{day}-5eed")


class Growing:
    """A table that becomes larger, and how large it is."""

    def __init__(self, folder: Path, part: int) -> None:
        self.table = folder / "table"
        self._folder = folder
        self._part = part
        self._known = folder / "millions"
        self.millions = int(self._known.read_text()) if self._known.exists() else 0
        self._coming: tuple[int, multiprocessing.Process] | None = None

    def grow(self, millions: int, last: int) -> list[Cost]:
        """Compact parts until it has so many millions; ``last``: how many it will have in the end."""
        costs = []
        while self.millions < millions:
            end = self._made(last)
            raw = self._raw(end)
            self._make(end, last)
            command = [sys.executable, "-m", "amqpgate", "audit", "compact", str(raw), str(self.table)]
            costs.append(run([*command, "--master", MASTER]))
            self._known.write_text(str(end))
            self.millions = end
            shutil.rmtree(raw)
        return costs

    def _raw(self, end: int) -> Path:
        return self._folder / f"raw-{end}"

    def _made(self, last: int) -> int:
        """Wait for the next part: where it ends."""
        if self._coming is None:
            self._make(self.millions, last)
        assert self._coming is not None
        end, process = self._coming
        process.join()
        if process.exitcode:
            sys.exit("the records could not be made")
        return end

    def _make(self, begin: int, last: int) -> None:
        """Begin to make the part from there on, if there is one."""
        self._coming = None
        if begin >= last:
            return
        end = min(begin + self._part, last)
        raw = self._raw(end)
        shutil.rmtree(raw, ignore_errors=True)
        process = multiprocessing.Process(target=make_part, args=(raw, begin, end))
        process.start()
        self._coming = end, process

    def size(self) -> int:
        """Bytes of its files."""
        return sum(path.stat().st_size for path in self.table.rglob("*.parquet"))


def main() -> None:
    """Grow, ask, print."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--millions", default=_SIZES, help="at which sizes to ask (default: %(default)s)")
    parser.add_argument("--part", type=int, default=25, help="millions that are compacted at once")
    parser.add_argument("--engines", default="local,spark", help="who is asked (default: %(default)s)")
    parser.add_argument("--per", default="day", help="usage per what (default: %(default)s)")
    parser.add_argument("--records", type=Path, default=Path("build/bench/growth"))
    options = parser.parse_args()
    sizes = [int(word) for word in options.millions.split(",")]
    options.records.mkdir(parents=True, exist_ok=True)
    growing = Growing(options.records, options.part)
    for millions in sizes:
        before, began = growing.millions, time.monotonic()
        if costs := growing.grow(millions, sizes[-1]):
            _tell(
                f"compact, {before} to {growing.millions}",
                time.monotonic() - began,
                sum(one.cpu for one in costs),
                growing.millions - before,
                max(one.memory for one in costs),
            )
            print(f"table: {growing.size() / growing.millions / MILLION:.1f} bytes a record", flush=True)
        answers: list[Path] = []
        for engine in options.engines.split(","):
            how = ["--engine", "local"] if engine == "local" else ["--master", MASTER]
            command = [sys.executable, "-m", "amqpgate", "audit", "usage", str(growing.table), *how]
            answer = options.records / f"usage-{engine}.csv"
            cost = run([*command, "--per", options.per, "--format", "csv", "-o", str(answer)])
            answers.append(answer)
            _tell(f"usage, {engine}, {millions}", cost.seconds, cost.cpu, millions, cost.memory)
        if not all(filecmp.cmp(answers[0], other, shallow=False) for other in answers):
            sys.exit(f"the answers differ: {', '.join(map(str, answers))}")


def _tell(what: str, seconds: float, cpu: float, millions: int, memory: int) -> None:
    print(
        f"| {what} | {seconds:.0f} s | {cpu:.0f} CPU s | {cpu / millions:.2f} CPU s a million "
        f"| {memory >> 20} MiB |",
        flush=True,
    )


if __name__ == "__main__":
    main()

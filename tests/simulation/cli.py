"""The command: seeds, for how long, what is said of them; a story that is played again."""

from __future__ import annotations

import argparse
import gc
import random
from collections.abc import Callable, Iterator
from pathlib import Path

from tests.simulation import seams
from tests.simulation.crew import play_all, play_alone
from tests.simulation.play import Outcome, play
from tests.simulation.shrink import shrink
from tests.simulation.story import Story, on_0_10, story_of
from tests.simulation.tally import Tally, write


def main(now: Callable[[], float], engine: str) -> int:
    """0 where all held. ``engine`` is the one that is there."""
    options = _options()
    if options.sum:
        print(*Tally.of(options.sum).lines(), sep="\n")
        return 0
    if options.story or options.once:
        story = Story.load(options.story) if options.story else _story(options.seed, options, engine)
        return _once(story, options, now)
    seams.warm()
    gc.freeze()
    seed = options.seed or f"{random.SystemRandom().getrandbits(32):08x}"
    print(f"simulation: SEED={seed}, {engine} engine, {options.jobs} at once", flush=True)
    began, tally, failures = now(), Tally(), list[Outcome]()

    def wanted() -> Iterator[Story]:
        number = 0
        while now() - began < options.seconds and tally.virtual < options.hours * 3600:
            if len(failures) >= options.failures or tally.cpu >= options.cpu:
                return
            yield _story(f"{seed}.{number}", options, engine)
            number += 1

    looked = began
    for outcome in play_all(wanted(), options.jobs, now):
        tally.add(outcome)
        if options.log:
            write(outcome, options.log)
        if outcome.failure:
            failures.append(outcome)
            _keep(outcome, options.out)
            at = f"{tally.cpu:.0f} s of CPU, {tally.virtual / 3600:.2f} virtual hours"
            print(f"FAILED {outcome.story.seed} after {at}: {_last(outcome)}", flush=True)
        if now() - looked > 30:
            looked = now()
            print("  " + tally.lines()[0], flush=True)
    print(*tally.lines()[:3], f"  {now() - began:.0f} s by the clock", sep="\n")
    for outcome in _one_of_each(failures):
        _tell(outcome, options, now)
    return 1 if failures else 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", default="", help="whatever text; a fresh one unless given")
    parser.add_argument("--seconds", type=float, default=60.0, help="real time")
    parser.add_argument("--cpu", type=float, default=float("inf"), help="seconds of CPU")
    parser.add_argument("--hours", type=float, default=float("inf"), help="virtual time")
    parser.add_argument(
        "--each", type=float, help="virtual seconds of one story; it says so itself unless given"
    )
    parser.add_argument(
        "--engine", choices=("plain", "compiled"), help="compiled if it was built; a story has its own"
    )
    parser.add_argument(
        "--brokers", choices=("0-9-1", "0-10"), default="0-9-1", help="the version they speak"
    )
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--failures", type=int, default=3, help="end after so many")
    parser.add_argument("--shrinking", type=float, default=60.0, help="real seconds for smaller stories")
    parser.add_argument(
        "--once", action="store_true", help="play the story of exactly this seed, in this process"
    )
    parser.add_argument("--story", type=Path, help="play this file, in this process")
    parser.add_argument(
        "--out", type=Path, default=Path("build/simulation"), help="where stories that failed are kept"
    )
    parser.add_argument("--log", type=Path, help="a line for each story is added to this file")
    parser.add_argument("--sum", type=Path, nargs="+", help="only say what these files come to")
    parser.add_argument("--verbose", "-v", action="store_true")
    return parser.parse_args()


def _story(seed: str, options: argparse.Namespace, engine: str) -> Story:
    story = story_of(seed, options.each, engine)
    return on_0_10(story) if options.brokers == "0-10" else story


def _once(story: Story, options: argparse.Namespace, now: Callable[[], float]) -> int:
    began = now()
    print(*story.lines(), sep="\n")
    outcome = play(story, aloud=options.verbose)
    print(outcome.failure or "all held")
    print(f"trace {outcome.digest}; {outcome.virtual:.1f} virtual seconds in {now() - began:.2f} s")
    print(outcome.figures)
    return 1 if outcome.failure else 0


def _last(outcome: Outcome) -> str:
    return outcome.failure.strip().splitlines()[-1]


def _one_of_each(failures: list[Outcome]) -> list[Outcome]:
    return list({outcome.kind: outcome for outcome in reversed(failures)}.values())


def _tell(outcome: Outcome, options: argparse.Namespace, now: Callable[[], float]) -> None:
    """Shrink it, print it, and keep it."""
    print(f"\nshrinking {outcome.story.seed}: {_last(outcome)}", flush=True)
    until = now() + options.shrinking
    least = shrink(outcome, lambda story: play_alone(story, now), until=lambda: now() > until)
    print(*_lines(least), sep="\n")
    print(f"again: python -m tests.simulation -v --story {_keep(least, options.out)}", flush=True)


def _lines(outcome: Outcome) -> list[str]:
    return [*outcome.story.lines(), *outcome.lines[-12:], outcome.failure]


def _keep(outcome: Outcome, folder: Path) -> Path:
    """The story, and what became of it beside it."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{outcome.story.seed}.json"
    path.write_text(outcome.story.to_json())
    path.with_suffix(".txt").write_text("\n".join(_lines(outcome)) + "\n")
    return path

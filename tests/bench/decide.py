"""What a decision costs that the data path has no flow for: 10 rules beside 10,000.

    python -m tests.bench.decide

Prints the microseconds per `SessionPolicy.decide` and per `PolicySet.access_of` (once per session). Nothing
is asserted here: times are the machine's. What is asserted in the tests is how many rules are looked at.
"""

from __future__ import annotations

import gc
import statistics
import time
from collections.abc import Callable

from amqpgate.policy import MessageContent, Operation, PolicySet, Principal, Source, build

ROUNDS = 9
HEAD = "apiVersion: amqpgate.io/v1alpha1\nkind: AccessPolicy\nmetadata: {name: %s}\nspec:\n"


def for_everybody(rules: int) -> PolicySet:
    """Every rule selects everybody, so that all of them hold for the session."""
    each = min(rules, 1000)
    return build(
        Source(f"{start}.yaml", _policy(f"p{start}", '{user: "*"}', start, each).encode())
        for start in range(0, rules, each)
    )


def by_subject(subjects: int, rules: int) -> PolicySet:
    """So many rules for so many users, and a few for everyone."""
    each = rules // subjects
    files = [
        Source(
            f"{start}.yaml",
            "---\n".join(
                _policy(f"p{number}", f"{{user: user-{number}}}", number * each, each)
                for number in range(start, min(start + 100, subjects))
            ).encode(),
        )
        for start in range(0, subjects, 100)
    ]
    return build([*files, Source("all.yaml", _policy("everyone", '{user: "*"}', 0, 10).encode())])


def _policy(name: str, subject: str, start: int, count: int) -> str:
    lines = [HEAD % name, f"  subjects: [{subject}]\n  rules:\n"]
    for number in range(start, start + count):
        names = (
            f"operations: [basic.publish], exchange: exchange-{number % 97}, "
            f"routingKey: {{topic: 'a.{number}.*'}}",
            f"operations: [basic.publish], exchange: exchange-{number}",
            f"operations: [queue.declare, basic.consume], queue: {{prefix: 'queue-{number}.'}}",
            f"operations: [queue.bind], queue: queue-{number}, exchange: x, "
            f"routingKey: {{topic: 'k.{number}.#'}}",
        )[number % 4]
        effect = "deny" if number % 8 == 5 else "allow"
        lines.append(f"  - {{id: r{number}, effect: {effect}, {names}}}\n")
    return "".join(lines)


def cases(principal: Principal, rules: int) -> dict[str, Operation]:
    """Requests that rules allow, and that none does."""
    last = (rules - 1) // 8 * 8  # a rule with a topic pattern, that allows
    content = MessageContent(100, {"delivery_mode": 2}, {"trace": "x"})
    return {
        "publish, allowed": Operation(
            principal,
            "basic.publish",
            exchange=f"exchange-{last % 97}",
            routing_key=f"a.{last}.x",
            content=content,
        ),
        "publish, denied by default": Operation(
            principal, "basic.publish", exchange="exchange-none", routing_key="a.b.c", content=content
        ),
        "declare, denied by default": Operation(principal, "queue.declare", queue="other"),
        "bind, denied by default": Operation(
            principal, "queue.bind", queue="other", exchange="x", routing_key="k.none.y"
        ),
    }


def microseconds(call: Callable[[], object], number: int) -> float:
    """The median round's CPU time per call: other work on the machine does not count, but for its caches."""
    call()
    times = []
    for _ in range(ROUNDS):
        start = time.process_time()
        for _ in range(number):
            call()
        times.append((time.process_time() - start) / number * 1e6)
    return statistics.median(times)


def main() -> None:
    gc.disable()
    me = Principal("user-0", "/")
    sets = {
        "10 rules": (for_everybody(10), 10),
        "10,000 rules for everybody": (for_everybody(10_000), 10_000),
        "10,000 rules, 1,000 subjects": (by_subject(1000, 10_000), 10),
    }
    print(f"{'microseconds, median of ' + str(ROUNDS) + ' rounds':34}", *(f"{name:>30}" for name in sets))
    for what in cases(me, 10):
        row = []
        for policy_set, rules in sets.values():
            session = policy_set.for_principal(me)
            operation = cases(me, rules)[what]
            row.append(microseconds(lambda s=session, o=operation: s.decide(o), 2000))  # type: ignore[misc]
        print(f"{what:34}", *(f"{time:30.2f}" for time in row))
    row = [microseconds(lambda s=each: s.access_of(me), 500) for each, _ in sets.values()]  # type: ignore[misc]
    print(f"{'a new session: who selects it':34}", *(f"{time:30.2f}" for time in row))


if __name__ == "__main__":
    main()

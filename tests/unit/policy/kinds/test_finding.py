"""What policy check says: a line that editors can follow."""

from __future__ import annotations

from amqpgate.policy.kinds.finding import Finding
from amqpgate.yamldoc import Mark


def test_a_finding_is_a_line_with_its_place_its_level_and_what_to_do() -> None:
    finding = Finding("note", Mark("policies/p.yaml", 7, 3), "policy 'p' is off", "take it out")
    assert str(finding) == "policies/p.yaml:7:3: note: policy 'p' is off; take it out"

"""What ``amqpgate audit recommend`` notes for a person."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.support.audit_records import START, lines, usage


def test_a_note_is_one_line_whatever_is_in_a_name(tmp_path: Path) -> None:
    """Else whoever chooses a name writes lines of his own, or to the terminal."""
    records = [usage("1", START, user="a*\nwrote all\x1b[2J"), usage("2", START, user="bob", routing_key="k")]
    (tmp_path / "records.jsonl").write_text("\n".join(lines("usage", records)))
    command = [sys.executable, "-m", "amqpgate", "audit", "recommend", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stderr == "note: user 'a*\\nwrote all\\x1b[2J' is left out: no subject can mean it\n"
    assert "bob" in done.stdout

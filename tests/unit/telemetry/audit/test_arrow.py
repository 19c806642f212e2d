"""pyarrow without what it does not need: files are the same."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from .records import messages

SCRIPT = """
import sys
from pathlib import Path
from amqpgate.telemetry.audit.arrow import LEFT_OUT, import_arrow
import_arrow()
from tests.unit.telemetry.audit.records import parquet_sink, usage_pieces
sink = parquet_sink(Path(sys.argv[1]))
sink.start()
for piece in usage_pieces(1, 2):
    sink.write(piece)
sink.close()
print(*sorted(LEFT_OUT & sys.modules.keys()))
"""


def test_files_are_written_without_what_is_left_out(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr) == ("\n", "")
    # Read here with all of it.
    assert messages(tmp_path) == [1, 2]

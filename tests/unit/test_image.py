"""What the Dockerfile says, where that can be known without building it."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_what_the_image_asserts_can_be_asked() -> None:
    # It is Python in a shell's line: neither mypy nor an import contract sees what it imports.
    scripts = re.findall(r"python -c '([^']+)'", (ROOT / "Dockerfile").read_text())
    assert scripts
    for script in scripts:
        asked = [node for node in ast.parse(script).body if isinstance(node, ast.Import | ast.ImportFrom)]
        assert asked
        exec(compile(ast.Module(asked, []), "Dockerfile", "exec"), {})

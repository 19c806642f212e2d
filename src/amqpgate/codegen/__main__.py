"""``python -m amqpgate.codegen [--check] [--root FOLDER]``."""

from __future__ import annotations

import argparse
import difflib
import sys
from pathlib import Path

from amqpgate.codegen import render, render_tests
from amqpgate.codegen.loader import SpecError, load, sources
from amqpgate.codegen.v0_10 import loader as loader_0_10
from amqpgate.codegen.v0_10 import render as render_0_10
from amqpgate.codegen.v0_10 import render_tests as render_tests_0_10

_SPEC = Path("spec/amqp")
_MODULES = Path("src/amqpgate/wire/generated")
_TESTS = Path("tests/unit/wire/generated")

#: Changed lines shown per stale file.
_DIFF_LINES = 40


def project_root() -> Path:
    """The folder that holds ``src``, when run from a checkout."""
    return Path(__file__).resolve().parents[3]


def generate(root: Path) -> dict[Path, str]:
    """Path below ``root`` to text, for every file that codegen makes; nothing is written."""
    files: dict[Path, str] = {
        _MODULES / "__init__.py": render.package(),
        _TESTS / "__init__.py": "",
    }
    for source in sources(root):
        spec = load(source, root / _SPEC)
        files[_MODULES / f"{source.module}.py"] = render.module(spec)
        files[_TESTS / f"test_roundtrip_{source.module}.py"] = render_tests.module(spec, source.module)
    grammar = loader_0_10.load(root / _SPEC)
    files[_MODULES / "v0_10.py"] = render_0_10.module(grammar)
    files[_MODULES / "v0_10_types.py"] = render_0_10.types_module(grammar)
    files[_TESTS / "test_roundtrip_v0_10.py"] = render_tests_0_10.module(grammar)
    return files


def stale(root: Path, files: dict[Path, str]) -> dict[Path, list[str]]:
    """Which files differ from what is on disk, each with a unified diff."""
    differing: dict[Path, list[str]] = {}
    for path, text in files.items():
        try:
            old = (root / path).read_text(encoding="utf-8")
        except FileNotFoundError:
            old = ""
            if not text:
                differing[path] = [f"{path} is missing"]
                continue
        if old != text:
            names = (f"{path} (committed)", f"{path} (generated)")
            diff = difflib.unified_diff(old.splitlines(), text.splitlines(), *names, n=1, lineterm="")
            differing[path] = list(diff)
    return differing


def main(argv: list[str] | None = None) -> int:
    """0 if all is written or up to date, 1 if ``--check`` finds stale files, 2 if the XML is unusable."""
    parser = argparse.ArgumentParser(prog="python -m amqpgate.codegen", description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit 1 if a file is stale")
    parser.add_argument("--root", type=Path, default=project_root(), help="the project's folder")
    options = parser.parse_args(argv)
    root: Path = options.root
    try:
        files = generate(root)
    except SpecError as error:
        print(f"codegen: {error}", file=sys.stderr)
        return 2
    differing = stale(root, files)
    if options.check:
        for diff in differing.values():
            print("\n".join(diff[:_DIFF_LINES]))
            if len(diff) > _DIFF_LINES:
                print(f"... {len(diff) - _DIFF_LINES} more lines")
        if differing:
            print(f"codegen: {len(differing)} stale; run `python -m amqpgate.codegen`", file=sys.stderr)
        return 1 if differing else 0
    for path in differing:
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(files[path], encoding="utf-8")
        print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env bash
# Write what amqpgate consists of as a CycloneDX list, into dist: the package and all that it is installed with.
set -euo pipefail
cd "$(dirname "$0")/.."

export UV_PYTHON_DOWNLOADS=never
tools/install.sh uv
uv=.tools/bin/uv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$uv" venv --quiet --python "${PYTHON:-python3}" "$work/venv"
"$uv" pip install --quiet --python "$work/venv/bin/python" --constraints constraints.txt --build-constraints constraints.txt \
  ".${EXTRAS:+[$EXTRAS]}"
version=$("$work/venv/bin/python" -c 'import amqpgate; print(amqpgate.__version__)')
mkdir -p dist
"$uv" tool run --quiet --from 'cyclonedx-bom>=7' cyclonedx-py environment --pyproject pyproject.toml --mc-type application \
  --output-reproducible --output-format JSON --output-file "dist/amqpgate-$version.cdx.json" "$work/venv/bin/python"
# The tool reads the version from pyproject.toml only, where it is dynamic.
"$work/venv/bin/python" - "$version" "dist/amqpgate-$version.cdx.json" <<'END'
import json, pathlib, sys

version, path = sys.argv[1], pathlib.Path(sys.argv[2])
listed = json.loads(path.read_text())
listed["metadata"]["component"]["version"] = version
path.write_text(json.dumps(listed, indent=2) + "\n")
END
echo "dist/amqpgate-$version.cdx.json"

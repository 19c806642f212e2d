#!/usr/bin/env bash
# Build a wheel for each Python that is named, into dist, and try it in an environment of its own.
#
# Usage: tools/wheels.sh PYTHON...
#
# Tried is what nobody sees in a wheel's name: that the data path is compiled in it, and that what it was installed
# with is enough to deny a message in front of the embedded broker.
set -euo pipefail
cd "$(dirname "$0")/.."

export UV_PYTHON_DOWNLOADS=never
here=$PWD uv=$PWD/.tools/bin/uv
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

die() { echo "amqpgate: $*" >&2; exit 1; }

try() { # try PYTHON WHEEL
  local bin=$work/venv/bin shown
  "$uv" venv --quiet --clear --python "$1" "$work/venv"
  "$uv" pip install --quiet --python "$bin/python" --constraints constraints.txt "$2"
  # From elsewhere: here `amqpgate` might be the source.
  cd "$work"
  "$bin/python" -c 'from amqpgate.datapath import build, scanner; assert build.COMPILED and scanner.COMPILED' ||
    die "$2: the data path is not compiled"
  "$bin/amqpgate" --version
  shown=$("$bin/amqpgate" demo --count 6 --interval 0.01 2>&1) || die "$2: $shown"
  [[ $shown == *"demo over: 3 allowed, 3 denied, 3 consumed"* ]] || die "$2: $shown"
  cd "$here"
  echo "${2##*/}: installed, compiled, and it denies"
}

[ $# -gt 0 ] || die "usage: tools/wheels.sh PYTHON..."
tools/install.sh uv
# All wheels are of what the source archive has, so that nothing of the working tree gets into them.
"$uv" build --quiet --sdist --python "$1" --build-constraints constraints.txt --require-hashes --out-dir "$work"
for python in "$@"; do
  "$uv" build --quiet --wheel --python "$python" --build-constraints constraints.txt --require-hashes \
    --out-dir "$work/wheels" "$work"/amqpgate-*.tar.gz
  for wheel in "$work"/wheels/*.whl; do try "$python" "$wheel"; done
  mkdir -p dist
  mv "$work"/wheels/*.whl dist/
done
mv "$work"/amqpgate-*.tar.gz dist/

#!/usr/bin/env bash
# Make .venv, or the folder that VENV names, and install amqpgate into it, with nothing assumed but python3 and pip.
#   tools/install.sh run    the gateway alone
#   tools/install.sh dev    with what the tests need
#   tools/install.sh lock   write constraints.txt anew
#   tools/install.sh uv     nothing but uv, in .tools
set -euo pipefail
cd "$(dirname "$0")/.."

python=${PYTHON:-python3}
venv=${VENV:-.venv}
export UV_PYTHON_DOWNLOADS=never

die() { echo "amqpgate: $*" >&2; exit 1; }

"$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null ||
  die "$python is missing or older than 3.11; name another with: make PYTHON=/path/to/python3"

uv=
find_uv() {
  # Into a folder of its own, because many systems forbid pip to install outside a virtual environment.
  if [ ! -x .tools/bin/uv ]; then
    # Debian's Pythons come without pip, but for the one that is python3.
    local pip=$python
    "$pip" -m pip --version >/dev/null 2>&1 || pip=python3
    "$pip" -m pip install --quiet --disable-pip-version-check --require-hashes --target .tools -r tools/uv.txt ||
      return 1
  fi
  uv=.tools/bin/uv
  "$uv" --version >/dev/null
}

case "${1:-}" in
  run) what=. ;;
  dev) what=.[dev] ;;
  lock)
    find_uv || die "uv is needed to pin dependencies"
    build=$("$python" -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")')
    "$uv" pip compile --quiet --universal --python-version 3.11 --upgrade --all-extras --generate-hashes \
      --no-header --no-annotate --no-emit-index-url --no-emit-find-links \
      --output-file constraints.txt pyproject.toml - <<<"$build"
    "$uv" pip compile --quiet --universal --python-version 3.11 --upgrade --generate-hashes \
      --no-header --no-annotate --no-emit-index-url --no-emit-find-links --output-file tools/uv.txt - <<<uv
    echo "constraints.txt: $(grep -c == constraints.txt) pinned packages, with their hashes"
    exit ;;
  uv) find_uv || die "uv could not be had"; exit ;;
  *) die "usage: tools/install.sh run|dev|lock|uv" ;;
esac

if find_uv; then
  [ -x "$venv/bin/python" ] || "$uv" venv --quiet --python "$python" "$venv"
  "$uv" pip install --quiet --python "$venv/bin/python" --constraints constraints.txt --build-constraints constraints.txt --editable "$what"
else
  echo "amqpgate: uv could not be had; installing with venv and pip" >&2
  [ -x "$venv/bin/pip" ] || "$python" -m venv "$venv" ||
    die "neither uv nor venv works with $python (Debian: apt-get install python3-venv)"
  # pip takes no hashes where a folder is installed: without uv the versions hold, and not the hashes.
  pins=$(mktemp)
  trap 'rm -f "$pins"' EXIT
  sed -e '/^ /d' -e 's/ \\$//' constraints.txt >"$pins"
  "$venv/bin/pip" install --quiet --disable-pip-version-check --constraint "$pins" --editable "$what"
fi

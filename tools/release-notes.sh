#!/usr/bin/env bash
# Print what CHANGELOG.md says of one version, with links that lead home from anywhere.
#
# Usage: tools/release-notes.sh VERSION
set -euo pipefail
cd "$(dirname "$0")/.."

version=${1:?usage: tools/release-notes.sh VERSION}
notes=$(awk -v begin="## [$version]" 'index($0, "## [") == 1 { on = index($0, begin) == 1; next } on' CHANGELOG.md)
[ -n "$notes" ] || { echo "amqpgate: CHANGELOG.md has no section [$version]" >&2; exit 1; }
sed -E "s#\]\(([A-Za-z-]+[/.])#](https://github.com/amqpgate/amqpgate/blob/v$version/\1#g" <<<"$notes"

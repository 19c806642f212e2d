#!/usr/bin/env bash
# Build a Debian package of the gateway for this machine's Debian and its python3, into dist.
#
# All that the gateway needs beside Python lies in /opt/amqpgate, at the versions that constraints.txt pins; nothing else
# of the system changes. Needs gcc and python3-dev, for the data path. EXTRAS are those of pyproject.toml, with commas
# between; what OAuth needs, if nothing is said.
set -euo pipefail
cd "$(dirname "$0")/.."

die() { echo "amqpgate: $*" >&2; exit 1; }
command -v dpkg-deb >/dev/null || die "dpkg-deb is missing: this is no Debian"

python=${PYTHON:-/usr/bin/python3}
extras=${EXTRAS-oauth}
export UV_PYTHON_DOWNLOADS=never
here=$PWD uv=$PWD/.tools/bin/uv
tools/install.sh uv
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT
chmod 755 "$root"

version=$(sed -n 's/^__version__ = "\(.*\)"$/\1/p' src/amqpgate/__init__.py)
series=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])')
next=$("$python" -c 'import sys; print("%d.%d" % (sys.version_info[0], sys.version_info[1] + 1))')
libc=$(dpkg-query -W -f '${Version}' libc6 | cut -d- -f1)

# Relocatable: its scripts find their Python beside them, and not where they were made.
"$uv" venv --quiet --relocatable --python "$python" "$root/opt/amqpgate"
"$uv" build --quiet --wheel --python "$python" --build-constraints constraints.txt --require-hashes --out-dir "$root/wheel" .
"$uv" pip install --quiet --compile-bytecode --link-mode copy --python "$root/opt/amqpgate/bin/python" \
  --constraints constraints.txt "$(echo "$root"/wheel/*.whl)${extras:+[$extras]}"
rm -rf "$root/wheel"
"$root/opt/amqpgate/bin/python" -c 'from amqpgate.datapath.build import COMPILED; assert COMPILED' ||
  die "the data path is not compiled: install gcc and python3-dev"
# What is for people in a shell, and a lock that everybody might write to.
rm -f "$root"/opt/amqpgate/{.lock,.gitignore,CACHEDIR.TAG} "$root"/opt/amqpgate/bin/{activate*,deactivate*,*.bat}
ln -sfn /usr/bin/python$series "$root/opt/amqpgate/bin/python"

install -d "$root/usr/bin" "$root/usr/share/doc/amqpgate" "$root/usr/lib/systemd/system" "$root/DEBIAN"
ln -s /opt/amqpgate/bin/amqpgate "$root/usr/bin/amqpgate"
install -m 644 -D tools/debian/amqpgate.yaml "$root/etc/amqpgate/amqpgate.yaml"
install -d "$root/etc/amqpgate/policies"
install -m 644 tools/debian/amqpgate.service "$root/usr/lib/systemd/system/"
install -m 644 LICENSE "$root/usr/share/doc/amqpgate/copyright"
gzip -9n <CHANGELOG.md >"$root/usr/share/doc/amqpgate/changelog.gz"
install -m 755 tools/debian/{postinst,prerm,postrm} "$root/DEBIAN/"
echo /etc/amqpgate/amqpgate.yaml >"$root/DEBIAN/conffiles"
cat >"$root/DEBIAN/control" <<EOF
Package: amqpgate
Version: $version
Architecture: $(dpkg --print-architecture)
Maintainer: amqpgate contributors <noreply@amqpgate.invalid>
Depends: python3 (>= $series), python3 (<< $next), libc6 (>= $libc), passwd
Suggests: rabbitmq-server
Section: net
Priority: optional
Homepage: https://github.com/amqpgate/amqpgate
Installed-Size: $(du -sk "$root" | cut -f1)
Description: transparent AMQP gateway
 Policy, audit and throttling between AMQP clients and their brokers, and a
 bridge between AMQP 0-8, 0-9, 0-9-1 and 0-10.
EOF
mkdir -p dist
dpkg-deb --build --root-owner-group -Zxz "$root" "$here/dist" >/dev/null
ls -1 dist/amqpgate_"${version}"_*.deb

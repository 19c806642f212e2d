#!/usr/bin/env bash
# Get what the tests talk to: a RabbitMQ server, a Redis server, clients of other languages, Chromium,
# Prometheus, and an object store.
#
# As root on a machine with apt-get, missing packages are installed; no service is started by that. Anybody else
# is told in one line what is missing. Ends with an error only where CI=true and there is no RabbitMQ; the tests
# themselves report every tool that they go without.
set -uo pipefail
cd "$(dirname "$0")/.."

have() { command -v "$1" >/dev/null; }
have_rabbitmq() { have erl && { [ -f /usr/lib/rabbitmq/bin/rabbitmq-server ] || have rabbitmq-server; }; }
have_php() { have php && [ -f /usr/share/php/PhpAmqpLib/autoload.php ]; }
have_old_amqplib() { [ -x /usr/bin/python3 ] && /usr/bin/python3 -c "import amqplib" 2>/dev/null; }
have_net_amqp() { have perl && perl -MNet::AMQP -e 1 2>/dev/null; }
have_bunny() { have ruby && ruby -e 'require "bunny"' 2>/dev/null; }

missing=() packages=()
need() { # need NAME TEST PACKAGE...
  local name=$1 check=$2
  shift 2
  if ! $check; then
    missing+=("$name")
    packages+=("$@")
  fi
}

look() {
  missing=() packages=()
  need "RabbitMQ" have_rabbitmq rabbitmq-server
  need "Redis" "have redis-server" redis-server
  need "librabbitmq's amqp-tools" "have amqp-publish" amqp-tools
  need "php-amqplib" have_php php-cli php-amqplib
  need "Ruby's bunny" have_bunny ruby-bunny
  need "py-amqplib" have_old_amqplib python3-amqplib
  need "Perl's Net::AMQP" have_net_amqp libnet-amqp-perl
  need "Wireshark's tshark" "have tshark" tshark
  need "Node.js" "have node" nodejs
  need "npm" "have npm" npm
  need "Chromium" "have chromium" chromium
  need "mmdebstrap (for RabbitMQ 4)" "have mmdebstrap" mmdebstrap
}

install() {
  # Debian starts a server as soon as it is installed, unless a policy says no. If there is no policy, ours
  # stands for the time of the installation.
  local policy=/usr/sbin/policy-rc.d ours=
  if [ ! -e $policy ]; then
    ours=$policy
    trap 'rm -f "$ours"' EXIT
    printf '#!/bin/sh\nexit 101\n' >$policy
    chmod +x $policy
  fi
  export DEBIAN_FRONTEND=noninteractive
  local apt=(apt-get -qq -o DPkg::Lock::Timeout=300)
  echo "installing ${packages[*]}" >&2
  local log
  log=$(mktemp)
  "${apt[@]}" install -y --no-install-recommends "${packages[@]}" >"$log" 2>&1 ||
    { "${apt[@]}" update >"$log" 2>&1 &&
      "${apt[@]}" install -y --no-install-recommends "${packages[@]}" >"$log" 2>&1; } ||
    tail -n 3 "$log" >&2
  rm -f "$log"
  if [ -n "$ours" ]; then rm -f "$ours"; trap - EXIT; fi
}

look
if [ ${#packages[@]} -gt 0 ] && [ "$(id -u)" = 0 ] && have apt-get; then
  install
  look
fi

# Node's clients, in a folder that git ignores. The pinned versions are in the package file beside their test.
node_manifest=tests/interop/clients/node/package.json
if have npm && [ -f $node_manifest ] && ! cmp -s $node_manifest .cache/node/package.json; then
  rm -rf .cache/node
  mkdir -p .cache/node.new
  cp $node_manifest .cache/node.new/
  if npm install --silent --no-package-lock --no-audit --no-fund --prefix .cache/node.new >/dev/null 2>&1; then
    mv .cache/node.new .cache/node
  else
    rm -rf .cache/node.new
    missing+=("Node's amqplib and amqp (npm could not install them)")
  fi
fi

# Other RabbitMQs than this Debian's, each in a folder of its own. Most tests need 4.3 alone; AMQPGATE_MORE_RABBITMQ
# gets 3.8 and 4.0, too (tests/interop/version_table.py).
rabbitmq_of() { # rabbitmq_of FOLDER SUITE
  [ "$(id -u)" = 0 ] && [ ! -d "$1" ] && have mmdebstrap || return 0
  rm -rf "$1.new"
  mmdebstrap --quiet --variant=apt --aptopt='Acquire::Check-Valid-Until "false"' --include=rabbitmq-server \
    "$2" "$1.new" >/dev/null 2>&1 && mv "$1.new" "$1"
  rm -rf "$1.new"
}
[ -n "${AMQPGATE_RABBITMQ_ROOT:-}" ] || rabbitmq_of .tools/rabbitmq-4 forky
[ -n "${AMQPGATE_RABBITMQ_ROOT:-}" ] || [ -d .tools/rabbitmq-4 ] || missing+=("RabbitMQ 4")
if [ -n "${AMQPGATE_MORE_RABBITMQ:-}" ]; then
  rabbitmq_of .tools/rabbitmq-3.8 bullseye
  rabbitmq_of .tools/rabbitmq-4.0 trixie
  for version in 3.8 4.0; do
    [ -d .tools/rabbitmq-$version ] || missing+=("RabbitMQ $version")
  done
fi

# Prometheus and its promtool, unpacked and not installed: no service starts, and nobody need be root.
have_prometheus() { { have prometheus && have promtool; } || [ -x .tools/prometheus/usr/bin/promtool ]; }
if ! have_prometheus && have apt-get && have dpkg; then
  rm -rf .tools/prometheus .tools/prometheus.new
  mkdir -p .tools/prometheus.new
  (
    cd .tools/prometheus.new &&
      { apt-get -qq download prometheus || { [ "$(id -u)" = 0 ] && apt-get -qq update && apt-get -qq download prometheus; }; } &&
      dpkg -x prometheus_*.deb . && rm prometheus_*.deb
  ) >/dev/null 2>&1 && mv .tools/prometheus.new .tools/prometheus
  rm -rf .tools/prometheus.new
fi
have_prometheus || missing+=("Prometheus")

# An object store that speaks S3. Its libraries are not those of amqpgate, and so it has its own environment.
have_swift() { [ -x .tools/swift/bin/swift-proxy-server ]; }
if ! have_swift && [ -x .tools/bin/uv ]; then
  rm -rf .tools/swift
  { .tools/bin/uv venv --quiet .tools/swift &&
    .tools/bin/uv pip install --quiet --python .tools/swift/bin/python swift==2.38.3 setuptools; } >/dev/null 2>&1
fi
have_swift || missing+=("OpenStack Swift")

# Qpid's conformance tests of AMQP 0-8 to 0-10, with its tools, and the Python that they need. Pinned, and its hash is checked.
python2() {
  local python
  for python in "${AMQPGATE_PYTHON2:-}" python2.7 "$HOME"/.pyenv/versions/2.7.*/bin/python2.7; do
    [ -n "$python" ] && "$python" -c "import sys; assert sys.version_info[:2] == (2, 7)" 2>/dev/null &&
      echo "$python" && return
  done
  return 1
}
qpid_pin=tests/interop/qpid/requirements.txt
if python2=$(python2) && ! cmp -s $qpid_pin .cache/qpid/requirements.txt; then
  rm -rf .cache/qpid .cache/qpid.new
  mkdir -p .cache/qpid.new
  if "$python2" -m pip download --quiet --no-deps --no-binary :all: --require-hashes -r $qpid_pin \
    --dest .cache/qpid.new >/dev/null 2>&1 &&
    printf '%s\n' .cache/qpid.new/*.tar.gz | xargs -n 1 tar -C .cache/qpid.new -xzf; then
    echo "$python2" >.cache/qpid.new/python
    cp $qpid_pin .cache/qpid.new/
    mv .cache/qpid.new .cache/qpid
  fi
  rm -rf .cache/qpid.new
fi
[ -f .cache/qpid/python ] || missing+=("Qpid's conformance tests (Python 2.7 with pip)")

if [ ${#missing[@]} -gt 0 ]; then
  list=$(printf ', %s' "${missing[@]}")
  hint=
  [ ${#packages[@]} -eq 0 ] || hint=" (Debian, as root: apt-get install ${packages[*]})"
  echo "interop tests go without: ${list:2}$hint" >&2
fi
if ! have_rabbitmq && [ "${CI:-}" = true ]; then
  echo "CI=true and no RabbitMQ: the tests would prove too little" >&2
  exit 1
fi

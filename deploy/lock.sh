#!/bin/sh
# Regenerate requirements*.lock and docs/licences.md from pyproject.toml. Needs: pip install pip-tools
# With --upgrade all packages move to the newest versions; without it only changes in pyproject.toml take effect.
# Run it with the oldest supported Python: newer ones need no additional packages.
# requirements-switches.lock is for the machine that queries switches, requirements-wire.lock for one with a mirror port,
# requirements-demo.lock for the zipapp, which a user meets first, deploy/manual/requirements.lock for the programs that write manual
# pages and completion, docs/generate/requirements.lock for the site. Other extras are not locked: no package includes them.
set -eu
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
lock() {
  output=$1
  shift
  CUSTOM_COMPILE_COMMAND=deploy/lock.sh "$python" -m piptools compile --quiet --generate-hashes --strip-extras \
    --allow-unsafe --no-emit-index-url --no-emit-trusted-host --no-emit-find-links --no-emit-options \
    --output-file="$output" "$@"
}
lock requirements.lock pyproject.toml "$@"
lock requirements-demo.lock --extra=demo pyproject.toml "$@"
lock requirements-switches.lock --extra=gnmi pyproject.toml "$@"
lock requirements-wire.lock --extra=wire pyproject.toml "$@"
lock requirements-build.lock --only-build-deps --build-deps-for=wheel pyproject.toml "$@"
lock requirements-test.lock --extra=test pyproject.toml "$@"
lock deploy/manual/requirements.lock deploy/manual/requirements.in "$@"
# No package in two versions: one environment has them all.
lock docs/generate/requirements.lock --constraint=requirements-test.lock --constraint=requirements-build.lock docs/generate/requirements.in "$@"
# The licences of all locked packages, from their metadata.
shipped=$(mktemp -d)
trap 'rm -rf "$shipped"' EXIT
"$python" -m venv --without-pip "$shipped"
set --
for name in requirements*.lock */*/requirements.lock; do set -- "$@" "--requirement=$name"; done
"$python" -m pip --python="$shipped/bin/python" install --quiet --require-hashes "$@"
"$shipped/bin/python" deploy/licences.py

#!/bin/sh
# The tests against the built wheel, in a virtual environment of their own; docs/testing.md says what is in each tier.
#
#   sh tests/run.sh              lint, types and the tests of the tier `test`, in a worker more than there are processors
#   sh tests/run.sh --tier=ci    the tests of another tier, in as many workers
#   sh tests/run.sh ARGUMENT...  one plain pytest with these arguments
#
# As root or with sudo it installs what is missing of these Debian packages, and starts none of their services. Tests of programs that are missing
# all the same are skipped and named; with CI=true they fail. With CI=true a failed test is tried once more alone: tests/again.py.
set -eu
cd "$(dirname "$0")/.."
# shellcheck source=deploy/bare.sh
. deploy/bare.sh
began=$(date +%s)
prepare 'prometheus prometheus its tests are skipped
prometheus-alertmanager alertmanager,prometheus-alertmanager its tests are skipped
redis-server redis-server its tests are skipped
ethtool ethtool its tests are skipped
iproute2 dcb its tests are skipped
pciutils lspci its tests are skipped
git git its tests are skipped'

venv=${ROCE_TEST_VENV:-.venv-test}
work=$(mktemp -d)
types=
trap 'rm -rf "$work"; [ -z "$types" ] || kill "$types" 2>/dev/null || true' EXIT
trap 'exit 130' INT
trap 'exit 143' HUP TERM

# Coverage-guided fuzzing belongs to the nightly run. Its wheels are for x86-64 alone.
extras='test'
case "$*" in *--tier=nightly*) [ "$(uname -m)" != x86_64 ] || extras=test,fuzz ;; esac
environment "$venv"
stamp=$venv/.with-$extras
if [ ! -e "$stamp" ] || [ -n "$(find pyproject.toml README.md LICENSE roce_exporter alerts -newer "$stamp" ! -path '*/__pycache__*')" ]; then
  # Its own pip, for tests that use it.
  install --only-binary=atheris pip ".[$extras]"
  touch "$stamp"
fi

unset PYTHONDONTWRITEBYTECODE # the workers compile what they import once
case ${1-} in
  '')
    set -- --tier=test
    (
      "$venv/bin/ruff" check . && "$venv/bin/ruff" format --check . && exec "$venv/bin/mypy"
    ) >"$work/types" 2>&1 &
    types=$!
    ;;
esac
tier=
case $1 in
  --tier=*)
    tier=$1
    # Some tests wait for servers: a worker more keeps the processors busy.
    set -- --numprocesses="$(($(nproc) + 1))" --dist=loadfile --no-loadscope-reorder --durations=20 "$@"
    ;;
esac
[ "${CI:-}" != true ] || set -- "$@" -o cache_dir="$work/cache"

status=0
"$venv/bin/pytest" "$@" || status=$?
if [ $status = 1 ] && [ "${CI:-}" = true ]; then
  status=0
  "$venv/bin/python" tests/again.py "$work/cache" ${tier:+"$tier"} || status=$?
fi
if [ -n "$types" ]; then
  wait "$types" || status=$?
  types=
  cat "$work/types"
fi
times >"$work/times"
tr 'ms' '  ' <"$work/times" | awk -v wall=$(($(date +%s) - began)) \
  '{ cpu += 60 * $1 + $2 + 60 * $3 + $4 } END { printf "%d s, %d CPU-seconds\n", wall, cpu }'
exit $status

#!/usr/bin/env bash
# A tier again and again next to busy loops, two for each processor: tests/under_load.sh [ROUNDS [ARGUMENT OF run.sh...]].
# LOOPS=0 is for a machine that is busy anyway. Any failure ends it, also one that passes when it is tried once more.
set -euo pipefail
cd "$(dirname "$0")/.."
rounds=${1:-10}
[ $# = 0 ] || shift
loops=()
trap '[ ${#loops[@]} = 0 ] || kill "${loops[@]}"' EXIT
for _ in $(seq "${LOOPS:-$((2 * $(nproc)))}"); do
  sh -c 'while :; do :; done' &
  loops+=($!)
done
for round in $(seq "$rounds"); do
  begin=$SECONDS load=$(cut -d' ' -f1 /proc/loadavg)
  CI=false sh tests/run.sh "$@" >"${TMPDIR:-/tmp}/under_load.$$.log" 2>&1 || { cat "${TMPDIR:-/tmp}/under_load.$$.log"; echo "round $round failed" >&2; exit 1; }
  echo "round $round: $((SECONDS - begin)) s, load $load to $(cut -d' ' -f1 /proc/loadavg), $(grep -E '[0-9]+ passed' "${TMPDIR:-/tmp}/under_load.$$.log" | tail -n 1)"
done
rm -f "${TMPDIR:-/tmp}/under_load.$$.log"

#!/usr/bin/env bash
# Everything, in hours: all tiers, new random examples, clean roots, fuzzing, mutants, all of the lab, and the tests under load.
# As root. A stage that fails does not end the run; the table at the end has the seconds and the exit code of each.
# tests/nightly.sh [STAGE...] runs only the named stages.
set -uo pipefail
cd "$(dirname "$0")/.." || exit
export CI=true DEBIAN_FRONTEND=noninteractive
python=${ROCE_TEST_VENV:-.venv-test}/bin/python
stages=(command-2 tools ci nightly newest advisories release clean-roots fuzz rules mutants lab load)
report="" failed=0

run_stage() {
  local target
  case "$1" in
  command-2) sh tests/run.sh ;;
  tools) tests/tools.sh nightly && tests/nightly_tools.sh ;;
  ci | nightly) sh tests/run.sh --tier="$1" ;;
  newest) tests/newest.sh && tests/newest.sh tests/deploy/test_agents.py tests/deploy/test_stores.py ;;
  advisories)
    "$python" -m venv build/audit && build/audit/bin/pip install --quiet pip-audit==2.10.1 && build/audit/bin/python deploy/audit_dependencies.py index
    ;;
  release) "$python" tests/release_check.py ;;
  clean-roots)
    tests/clean_roots.sh && ARCH=arm64 FILES="wheel deb rpm zipapp" QUICK="tests/unit/test_web.py tests/unit/test_recorded.py" tests/clean_roots.sh trixie
    ;;
  fuzz)
    "$python" -m pip install --quiet --only-binary=:all: '.[fuzz]' || return 1
    for target in tests/fuzz/corpus/*.txt; do
      "$python" tests/fuzz/fuzz.py "$(basename "$target" .txt)" --seconds "${ROCE_FUZZ_SECONDS:-600}" || return 1
    done
    ;;
  rules) "$python" tests/mutants/rules.py ;;
  mutants) make mutants PYTHON="$python" ;;
  lab) tests/lab/run.sh --all && tests/lab/run.sh --core --arch=arm64 ;;
  load) tests/under_load.sh 10 && tests/under_load.sh 2 --tier=ci ;;
  *) echo "nightly: no stage $1; the stages are: ${stages[*]}" >&2; return 2 ;;
  esac
}

[ $# = 0 ] || stages=("$@")
for stage in "${stages[@]}"; do
  begin=$SECONDS status=0
  echo "== $stage"
  run_stage "$stage" || status=$? failed=1
  report+=$(printf '%-12s %6d s  exit %d' "$stage" $((SECONDS - begin)) "$status")$'\n'
done
printf '%s' "$report"
exit $failed

#!/usr/bin/env bash
# The tests that talk to servers again, with the newest Prometheus, Alertmanager and VictoriaMetrics that Debian packages: unpacked, not
# installed. tests/run.sh has run them with the machine's own. With --all first, those of all alerts, dashboards and the demo too. Other
# arguments go to pytest; paths below tests/ replace the list of tests.
#
# The virtual environment is that of tests/run.sh ($ROCE_TEST_VENV). If the packages are not available this fails with
# CI=true; elsewhere it prints a message and succeeds.
set -eu
here=$(dirname "$(realpath "$0")")
cd "$here/.."
. "$here/newer.sh"
servers=$cache/servers
packages="prometheus promtool prometheus-alertmanager victoria-metrics"
programs="prometheus promtool prometheus-alertmanager amtool victoria-metrics vmalert"

versions_of_packages() {
  local package
  for package in $packages; do printf '%s ' "$package" && newest_version "$package" || return 1; done
}

# Unpacks the packages unless these versions are already unpacked.
prepare_servers() {
  local found program
  found=$(versions_of_packages) || return 1
  if [ "$found" != "$(cat "$servers/.done" 2>/dev/null)" ]; then
    rm -rf "$servers"
    # shellcheck disable=SC2086  # a list of names
    unpack_newest "$servers" $packages || return 1
    echo "$found" >"$servers/.done"
  fi
  for program in $programs; do
    "$servers/usr/bin/$program" --version >/dev/null 2>&1 || { echo "newest: $program does not run here" >&2; return 1; }
  done
  "$servers/usr/bin/prometheus" --version 2>&1 | grep -qE '^prometheus, version ([3-9]|[1-9][0-9])\.' ||
    { echo "newest: Debian's newest Prometheus is older than 3" >&2; return 1; }
  cat "$servers/.done"
}

prepare_servers || {
  echo "newest: nothing was tested with Prometheus 3" >&2
  [ "${CI:-}" != true ] || exit 1
  exit 0
}
venv=${ROCE_TEST_VENV:-.venv-test}
[ -x "$venv/bin/pytest" ] || { echo "newest: no $venv/bin/pytest; run tests/run.sh first" >&2; exit 2; }
servers_tests="tests/newest tests/alerts/test_end_to_end.py tests/alerts/test_alertmanager.py tests/e2e/test_prometheus.py
  tests/deploy/test_prometheus_files.py tests/deploy/test_remote_write.py"
all_tests="tests/alerts tests/dashboards tests/e2e/test_demo.py"
# shellcheck disable=SC2086  # lists of paths
case " $*" in
*" tests/"*) ;;
" --all"*) shift; set -- "$@" $servers_tests $all_tests ;;
*) set -- "$@" $servers_tests ;;
esac
PATH=$servers/usr/bin:$PATH ROCE_NEWEST=1 exec "$venv/bin/pytest" "$@"

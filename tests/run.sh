#!/bin/sh
# All checks: lint, types, and all tests against the built wheel, in a separate virtual environment.
# Tests of tools that are missing (promtool, prometheus) are skipped and named; with CI=true they fail.
#
# Without arguments the tests run in two workers per processor, because many of them wait for other programs most of the time.
# One worker runs all tests of a file, so that shared fixtures are made once. Arguments go to one plain pytest instead.
set -eu
cd "$(dirname "$0")/.."
python3 -m venv --help >/dev/null 2>&1 || { echo "python3-venv is missing: apt-get install python3-venv" >&2; exit 2; }
venv=${ROCE_TEST_VENV:-.venv-test}
[ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
install() {
  # A folder is always built and installed again, also where its version is installed already.
  "$venv/bin/pip" install --quiet --disable-pip-version-check --only-binary=atheris "$@"
}
# Coverage-guided fuzzing has wheels for x86-64 alone. Without it those tests are skipped; with CI=true they fail.
install ".[test,fuzz]" || { echo "no atheris: no fuzzing" >&2; install ".[test]"; }
"$venv/bin/ruff" check .
"$venv/bin/ruff" format --check .
if [ $# -gt 0 ]; then
  "$venv/bin/mypy"
  exec "$venv/bin/pytest" "$@"
fi
report=$(mktemp)
trap 'rm -f "$report"' EXIT
"$venv/bin/mypy" >"$report" 2>&1 &
types=$!
# The tests are compiled once, next to mypy, and not in every worker.
unset PYTHONDONTWRITEBYTECODE
"$venv/bin/pytest" --collect-only --quiet >/dev/null || true
status=0
"$venv/bin/pytest" --numprocesses=$((2 * $(nproc))) --dist=loadfile --no-loadscope-reorder || status=$?
wait $types || status=$?
cat "$report"
exit $status

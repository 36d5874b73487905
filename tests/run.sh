#!/bin/sh
# All checks: lint, types, and all tests against the built wheel, in a separate virtual environment.
# Arguments go to pytest. Tests of tools that are missing (promtool, prometheus) are skipped and named; with CI=true they fail.
set -eu
cd "$(dirname "$0")/.."
python3 -m venv --help >/dev/null 2>&1 || { echo "python3-venv is missing: apt-get install python3-venv" >&2; exit 2; }
venv=${ROCE_TEST_VENV:-.venv-test}
[ -x "$venv/bin/pip" ] || python3 -m venv "$venv"
"$venv/bin/pip" install --quiet --disable-pip-version-check --upgrade --force-reinstall --no-deps .
"$venv/bin/pip" install --quiet --disable-pip-version-check ".[test]"
# Coverage-guided fuzzing has wheels for x86-64 alone. Without it those tests are skipped; with CI=true they fail.
"$venv/bin/pip" install --quiet --disable-pip-version-check --only-binary=atheris ".[fuzz]" || echo "no atheris: no fuzzing" >&2
"$venv/bin/ruff" check .
"$venv/bin/ruff" format --check .
"$venv/bin/mypy"
exec "$venv/bin/pytest" "$@"

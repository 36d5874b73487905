#!/bin/sh
# Runs inside a clean root: tests_in_root.sh {wheel|deb|rpm|zipapp}. Installs one built file, serves a simulated host with it, and runs the quick
# tests with it. Nothing is downloaded: /built has the release, /libraries the locked wheels, /checkout the repository without the package.
set -eu
cd /checkout
tools=/test-libraries
if [ ! -d "$tools" ]; then
  python3 -m venv /pip
  /pip/bin/pip install --quiet --no-index --find-links=/libraries --require-hashes --no-deps --no-compile --target="$tools" \
    --requirement=/libraries/tests.lock
fi

# quick PYTHON FOLDER: the quick tests; the package must come from the folder. The place of the sources' tests is the checkout.
quick() {
  export PYTHONPATH="$2:$tools"
  "$1" - "$2" <<'END'
import sys, roce_exporter
assert roce_exporter.__file__.startswith(sys.argv[1]), roce_exporter.__file__
END
  # tests/contract reads the sources
  eval "set -- \"$1\" ${QUICK:-$(sed -n 's/^QUICK ?= //p' Makefile | sed 's|tests/contract ||')}"
  python=$1
  shift
  "$python" -m pytest -q -n 2 -p no:cacheprovider "$@" >/tmp/tests.log 2>&1 || { cat /tmp/tests.log; return 1; }
  grep '^SKIPPED' /tmp/tests.log || true
  tail -n 1 /tmp/tests.log
}

case $1 in
  wheel)
    python3 -m venv /wheel
    /wheel/bin/pip install --quiet --no-index --find-links=/libraries --require-hashes --requirement=requirements.lock
    /wheel/bin/pip install --quiet --no-index --no-deps /built/*.whl
    /wheel/bin/pip check
    python3 tests/storm_in_root.py /wheel/bin/roce-exporter
    quick /wheel/bin/python "$(echo /wheel/lib/python3.*/site-packages)"
    ;;
  deb)
    dpkg --install "/built/roce-exporter_"*"_$(dpkg --print-architecture).deb" >/tmp/dpkg.log 2>&1 || { cat /tmp/dpkg.log; exit 1; }
    python3 tests/storm_in_root.py /usr/bin/roce-exporter
    quick python3 /opt/roce-exporter/lib
    ;;
  rpm) # unpacked in /rpm, for there is no RHEL; its libraries are for every Python from 3.11 on
    python3 tests/storm_in_root.py python3 -IB /rpm/opt/roce-exporter/bin/roce-exporter
    quick python3 /rpm/opt/roce-exporter/lib
    ;;
  zipapp)
    python3 tests/storm_in_root.py python3 /built/*.pyz
    quick python3 "$(echo /root/.cache/roce-exporter/*)"
    ;;
esac

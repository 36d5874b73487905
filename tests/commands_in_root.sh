#!/bin/sh
# Runs inside a bare root: commands_in_root.sh {root|sudo|user|old}. The README's two commands, verbatim, in the clone /clone: as root without sudo, as
# a user with sudo, as a user without, and on a Python that is too old. Afterwards nothing runs, and policy-rc.d is as it was.
set -eu
cd /clone
export DEBIAN_FRONTEND=noninteractive
policy=/usr/sbin/policy-rc.d
before='#!/bin/sh
exit 0'

fail() { echo "$*"; exit 1; }
add() { apt-get -qq update && apt-get -qq install --yes --no-install-recommends "$@" >/dev/null 2>&1; }
newcomer() { setpriv --reuid=newcomer --regid=newcomer --init-groups env HOME=/home/newcomer "$@"; }
make_newcomer() {
  useradd --create-home newcomer
  chown -R newcomer: /clone
}

# shows FILE EXPRESSION: prints its first line in which the expression is found
shows() { grep -m1 -E "$2" "$1" || { cat "$1"; fail "no line with $2"; }; }

# refused COMMAND...: one line on standard error and exit code 2
refused() {
  status=0
  "$@" >/tmp/out 2>/tmp/err || status=$?
  cat /tmp/err
  [ "$status $(wc -l </tmp/err) $(wc -c </tmp/out)" = "2 1 0" ] || fail "exit code $status"
}

# both PREFIX...: both commands; TESTS selects tests of the second
both() {
  touch /before
  "$@" sh deploy/try.sh --duration=60 >/demo.log 2>&1 || { cat /demo.log; fail "the demo failed"; }
  shows /demo.log '\(critical\)'
  left=$(find /clone /tmp /root /home -newer /before -type f ! -path '/clone/.venv/*')
  [ -z "$left" ] || fail "the demo leaves $left"
  # shellcheck disable=SC2086 # arguments of pytest
  "$@" sh tests/run.sh ${TESTS:-} >/tests.log 2>&1 || { cat /tests.log; fail "the tests failed"; }
  grep -E '^(FLAKY|SKIPPED)|CPU-seconds$' /tests.log
  tail -n 1 /tests.log
}

case $1 in
  root)
    both env CI=true
    [ ! -e "$policy" ] || fail "$policy remains"
    ;;
  sudo)
    make_newcomer
    add sudo
    echo 'newcomer ALL=(ALL) NOPASSWD: ALL' >/etc/sudoers.d/newcomer
    echo "$before" >"$policy"
    chmod 750 "$policy"
    both newcomer env CI=true
    [ "$(cat "$policy") $(stat --format=%a "$policy")" = "$before 750" ] || fail "$policy was changed"
    ;;
  user)
    make_newcomer
    add python3
    for script in deploy/try.sh tests/run.sh; do refused newcomer sh "$script"; done
    add python3-venv
    newcomer sh deploy/try.sh --duration=40 >/demo.log 2>&1 || { cat /demo.log; fail "the demo failed"; }
    shows /demo.log 'not installed.*prometheus \(no alerts\).*redis-server'
    shows /demo.log 'storm begins'
    newcomer sh tests/run.sh tests/unit/test_catalog.py >/tests.log 2>&1 || { cat /tests.log; fail "the tests failed"; }
    tail -n 1 /tests.log
    ;;
  old)
    add python3
    for script in deploy/try.sh tests/run.sh; do refused sh "$script"; done
    refused python3 -m roce_exporter demo
    ;;
esac
running=$(cat /proc/[0-9]*/comm | grep -E 'prometheus|alertmanager|redis|python|pytest|roce' || true)
[ -z "$running" ] || fail "still running: $running"
started=$(find /etc/rc[2-5].d /etc/systemd/system \( -name 'S*' -o -path '*.wants/*' \) \( -name '*prometheus*' -o -name '*redis*' \))
[ -z "$started" ] || fail "starts at the next boot: $started"
